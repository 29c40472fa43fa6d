"""Releases: one private answer with its error bars, and what may be done to it for free."""
