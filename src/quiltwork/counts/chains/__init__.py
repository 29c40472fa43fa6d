"""Counts of a chain: the optimal mechanism, its floor, and what every route to one costs."""
