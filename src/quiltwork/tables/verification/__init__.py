"""Does every coalition leave enough? `bounds` is the one answer, for cutting and verifying.

Asked in this order, each for what the one before leaves open: a constraint's bounds for all groups
and coalitions at once; then `search`: nothing to try for k-anonymity and distinct l-diversity of
records, else every coalition up to a limit (`paper_searches` are the paper's methods). What is
still open is not private. `verify` asks groups in order, `max_m` for growing coalitions.
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
