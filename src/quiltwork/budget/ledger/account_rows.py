"""An account as rows: what it spends on each time point, and a digest that binds the rows.

Levels add up per time point, so an account is the times at which they change. A debit changes at
most three of them, whatever came before, and rows hold exact numbers in lowest terms: an account
read from its rows is the account that wrote them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.leakage import Secrets
from quiltwork.budget.accounting.usage import Corner, Usage
from quiltwork.budget.spending import Composition
from quiltwork.exact import written_fraction

DIGESTS = 1 << 256


@dataclass(frozen=True)
class Kept:
    """An account without its rows.

    Attributes:
        count: how many releases it has.
        latest: what the latest composes by.
        others: what releases without a level per time point add.
        denominator: of all charges.
        digest: the hashes of all rows added up, so that a row that was changed, lost or put back
            betrays itself, and writing one takes two hashes.
        narrowest: the narrowest range that values were clipped to.
    """

    count: int = 0
    latest: Composition | None = None
    others: Fraction = Fraction(0)
    denominator: int = 1
    digest: int = 0
    narrowest: Fraction | None = None

    @classmethod
    def of(cls, account: Account) -> tuple[Kept, dict[int, str]]:
        """Return what is kept of an account, and all its rows. O(rows)."""
        usage = account.usage
        rows = {time: row(usage, time) for time in sorted(usage.corners)}
        return cls._with(account, digest(rows)), rows

    def plus(
        self, before: Account, after: Account, *spendings: Spending
    ) -> tuple[Kept, dict[int, str]]:
        """Return what is kept once releases were added, and the rows they change."""
        parts = [part for one in spendings for part in one.parts]
        times = sorted({t for one in parts for t in (one.start, one.stop, one.stop + 1)})
        old = {time: row(before.usage, time) for time in times}
        new = {time: row(after.usage, time) for time in times}
        found = (self.digest - digest(old) + digest(new)) % DIGESTS
        return self._with(after, found), {t: new[t] for t in new if new[t] != old[t]}

    @classmethod
    def _with(cls, account: Account, found: int) -> Kept:
        others, denominator = account.by_theorem_3_6, account.usage.denominator
        narrowest = account.usage.narrowest
        return cls(account.count, account.latest, others, denominator, found, narrowest)

    def account(self, rows: Mapping[int, str], secrets: Secrets) -> Account:
        """Return the account with these rows, without its history.

        Raises:
            ValueError: if they are not the ones that were kept.
        """
        if digest(rows) != self.digest:
            raise ValueError("the levels were changed")
        corners = {text: self._corner(text) for text in set(rows.values())}
        times = {time: corners[rows[time]] for time in rows}
        usage = Usage.of_corners(self.denominator, times, self.narrowest)
        return Account(secrets, usage, None, self.count, self.others, self.latest)

    def _corner(self, text: str) -> Corner:
        parts = (part.partition("/") for part in text.split(" "))
        numbers = [int(above) * (self.denominator // int(below or 1)) for above, _, below in parts]
        point, pair, begun, ended = numbers
        return point, pair, begun, ended

    def body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {
            "count": self.count,
            "latest": self.latest,
            "others": str(self.others),
            "denominator": self.denominator,
            "digest": f"{self.digest:064x}",
            **({} if self.narrowest is None else {"narrowest": str(self.narrowest)}),
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Kept:
        """Read what `body` wrote.

        Raises:
            KeyError, TypeError, ValueError: if it is something else.
        """
        latest = body["latest"]
        if latest not in (None, *get_args(Composition)):
            raise ValueError(latest)
        others = written_fraction(body["others"], "others")
        span = body.get("narrowest")
        narrowest = None if span is None else written_fraction(span, "narrowest")
        denominator, digest = int(body["denominator"]), int(body["digest"], 16)
        return cls(int(body["count"]), latest, others, denominator, digest, narrowest)


NOTHING_KEPT: Kept = Kept()


def row(usage: Usage, time: int) -> str:
    """Write how charges change at one time; no text where they do not."""
    corner = usage.corner(time)
    return " ".join(map(str, corner)) if any(corner) else ""


def digest(rows: Mapping[Any, str]) -> int:
    """Add up the hashes of rows, whatever their order; rows without text count nothing."""
    found = (
        hashlib.sha256(f"{len(str(name))} {name} {text}".encode(errors="surrogatepass")).digest()
        for name, text in rows.items()
        if text
    )
    return sum(int.from_bytes(one, "big") for one in found) % DIGESTS
