"""The numbers that rounding and tolerances of the program rest on; see `docs/theory/sweep.md`."""

LARGEST_LIMIT = 300.0
"""Limits above e^300 count as none: the answer is then the largest ratio of single entries."""
SMALLEST_ENTRY = 1e-140
MARGIN = 2.0**-40
"""What a bound may exceed its program by, in logarithms."""
SLACK = 2.0**-44
SIGN = 2.0**-46
FEASIBLE = 2.0**-30
