"""Verification of m-privacy: does every coalition leave enough of every group?

`group_verification` answers that, for cutting and for verifying. First a constraint's bounds decide
all groups and coalitions they can, at once. For the others, `breach_search`: k-anonymity and
distinct l-diversity of records need no coalitions tried; for other constraints every coalition is
tried, up to a limit (`paper_searches` are the paper's methods). What is still undecided counts as
not private. `max_m` finds the largest coalition that is withstood.
"""

from quiltwork.tables.verification.breach_search import LIMIT, find_breach, group_is_private
from quiltwork.tables.verification.group_verification import verify_counts
from quiltwork.tables.verification.max_m import max_m
from quiltwork.tables.verification.paper_searches import METHODS
from quiltwork.tables.verification.verdict import Verdict

__all__ = [
    "LIMIT",
    "METHODS",
    "Verdict",
    "find_breach",
    "group_is_private",
    "max_m",
    "verify_counts",
]
