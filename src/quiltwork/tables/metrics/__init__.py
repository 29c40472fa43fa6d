"""Measures of tables: what they keep, and the values of the privacy models."""
