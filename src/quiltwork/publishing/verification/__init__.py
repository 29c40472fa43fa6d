"""Verification of m-privacy: the paper's searches, and an exact one that avoids them."""

from quiltwork.publishing.verification.one_group import LIMIT, group_breach, group_is_private
from quiltwork.publishing.verification.search import METHODS
from quiltwork.publishing.verification.verdict import Verdict
from quiltwork.publishing.verification.verify import verify_counts, verify_m_privacy

__all__ = [
    "LIMIT",
    "METHODS",
    "Verdict",
    "group_breach",
    "group_is_private",
    "verify_counts",
    "verify_m_privacy",
]
