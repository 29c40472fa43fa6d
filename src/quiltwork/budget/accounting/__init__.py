"""Accounting: what many releases from the same data cost together, and how to plan them."""
