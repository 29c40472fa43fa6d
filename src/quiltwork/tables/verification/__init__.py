"""Does every coalition leave enough? `all_groups` is the one answer, for cutting and verifying.

Asked in this order, each for what the one before leaves open: bounds for all groups
and coalitions at once; then `one_group`: nothing to try for k-anonymity and distinct l-diversity of
records (`searches`, which has the paper's methods too), else every coalition up to a limit. What is
still open is not private.
"""

from quiltwork.tables.verification.one_group import LIMIT, group_breach, group_is_private
from quiltwork.tables.verification.searches import METHODS
from quiltwork.tables.verification.verdict import Verdict
from quiltwork.tables.verification.verify import max_m, verify_counts, verify_m_privacy

__all__ = [
    "LIMIT",
    "METHODS",
    "Verdict",
    "group_breach",
    "group_is_private",
    "max_m",
    "verify_counts",
    "verify_m_privacy",
]
