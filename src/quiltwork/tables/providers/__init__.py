"""What providers check: with their own rows, with the rows of all, without showing any."""
