"""Reports on tables, as data and as one page."""
