"""Checks by providers: with their own rows, with the rows of all, and without showing any row."""
