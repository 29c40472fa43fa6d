"""Verification of m-privacy: the paper's searches, and an exact one that avoids them."""

from quiltwork.tables.verification.one_group import LIMIT, group_breach, group_is_private
from quiltwork.tables.verification.search import METHODS
from quiltwork.tables.verification.verdict import Verdict
from quiltwork.tables.verification.verify import verify_counts, verify_m_privacy

__all__ = [
    "LIMIT",
    "METHODS",
    "Verdict",
    "group_breach",
    "group_is_private",
    "verify_counts",
    "verify_m_privacy",
]
