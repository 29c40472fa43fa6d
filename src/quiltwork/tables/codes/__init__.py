"""Columns as integer codes, and counts of them: what every other folder computes on."""
