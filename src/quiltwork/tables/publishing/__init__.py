"""Groups as a table that may be published: its texts, its order, its files."""
