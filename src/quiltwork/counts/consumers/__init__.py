"""What consumers believe, what errors cost them, and when one mechanism serves them all."""
