"""Which version of the theorems' bounds a debit was granted by, and what was corrected since.

Every debit records a bound on the total with it, as the release that granted it computed it. A
correction may make what was released dearer, even dearer than its budget. Then nothing more is
granted, and the sentence says which correction it was; nobody did anything wrong.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.budget.ledger.claims import AnyAccount, Claim
from quiltwork.exact import float_up

VERSION = 1
"""Of the bounds; raised by every correction that makes a total dearer."""
CORRECTIONS: dict[int, str] = {}
"""What each version from 2 on corrected, as the end of a sentence: "the bound of … was too low"."""

_ROUNDING = Fraction(1, 10**9)
_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)


@dataclass(frozen=True)
class RecordedBound:
    """What everything released up to a debit spends at most, as it was found then.

    Attributes:
        total: rounded up; for (ε, δ) a share of the caps.
        by: "levels" if they alone told that it fits, "priced" if a theorem was evaluated,
            "squares" for caps.
        version: of the bounds.
    """

    total: float
    by: str
    version: int

    @classmethod
    def of(cls, account: AnyAccount, limit: Fraction) -> RecordedBound:
        """The bound by which an account is within a limit."""
        total, by = account.bound(limit)
        return cls(float_up(total), by, VERSION)

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {"total": self.total, "by": self.by, "version": self.version}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> RecordedBound:
        """Read what `to_body` wrote.

        Raises:
            KeyError, TypeError, ValueError: if it is something else.
        """
        return cls(float(body["total"]), str(body["by"]), int(body["version"]))

    def allows(self, account: AnyAccount) -> bool:
        """Whether an account costs no more than this, but for rounding."""
        return account.fits(Fraction(self.total) * (1 + _ROUNDING_OF_SWEEPS))


def is_above(account: AnyAccount, limit: Fraction) -> bool:
    """Whether an account spends more than its limit, by more than rounding can explain."""
    return not account.fits(limit) and account.spent > limit * (1 + _ROUNDING)


def dearer(name: str, spent: Fraction, claim: Claim, granted_by: int) -> str:
    """Say that what was released from dataset `name` costs more than its budget by now, and why."""
    since = [text for version, text in CORRECTIONS.items() if granted_by < version <= VERSION]
    why = f" Since it was granted by version {granted_by}, {'; '.join(since)}." if since else ""
    return (
        f"What was released from {name!r} costs {claim.shown(spent)} by version {VERSION} of the "
        f"bounds, above {claim.whole}.{why} Nothing more is granted from it."
    )
