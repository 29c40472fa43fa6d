"""An account as a row: what it spends on each time point, and a digest that binds it.

Levels add up per time point, so an account is the times at which they change, all of them one
text. It is written for some hundred debits at once, so that its length hardly matters to each.
Numbers are exact and in lowest terms: an account read from its row is the account that wrote it,
and writes it again.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.usage import Integers, Usage
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Composition
from quiltwork.exact import written_fraction

DIGESTS = 1 << 256
PLACE = 0
"""Where the one row of an account is."""
_KINDS = "bhiq"
_LARGE = "x"


@dataclass(frozen=True)
class Kept:
    """An account without its row.

    Attributes:
        count: how many releases it has.
        latest: what the latest composes by.
        others: what releases without a level per time point add.
        denominator: of all charges.
        peak: the most that is spent on any time point itself.
        digest: of the row, so that one that was changed, lost or put back betrays itself.
        narrowest: the narrowest range that values were clipped to.
    """

    count: int = 0
    latest: Composition | None = None
    others: Fraction = Fraction(0)
    denominator: int = 1
    peak: Fraction = Fraction(0)
    digest: int = 0
    narrowest: Fraction | None = None

    @classmethod
    def of(cls, account: Account) -> tuple[Kept, str]:
        """Return what is kept of an account, and its row. O(changes)."""
        others, usage = account.by_theorem_3_6, account.usage
        text, last = row(usage), int(usage.times[-1]) if len(usage.times) else 1
        parts = account.count, account.latest, others, usage.denominator, usage.highest(1, last)
        return cls(*parts, digest({PLACE: text}), usage.narrowest), text

    def account(self, rows: Mapping[int, str], secrets: Secrets) -> Account:
        """Return the account with these rows, one or none, without its history.

        Raises:
            ArithmeticError, ValueError: if they are not the ones that were kept.
        """
        if digest(rows) != self.digest:
            raise ValueError("the levels were changed")
        usage = Usage(self.denominator, narrowest=self.narrowest)
        if rows:
            times, rises = _read_row(rows[PLACE], self.denominator)
            usage = Usage.of_rises(self.denominator, times, rises, self.narrowest)
            if usage.highest(1, int(times[-1])) > self.peak:
                raise ValueError("a time point is charged more than was kept")
        return Account(secrets, usage, None, self.count, self.others, self.latest)

    def body(self) -> dict[str, Any]:
        """Write it as JSON values."""
        return {
            "count": self.count,
            "latest": self.latest,
            "others": str(self.others),
            "denominator": self.denominator,
            "peak": str(self.peak),
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
        others, peak = (read_charge(body, name) for name in ("others", "peak"))
        span = body.get("narrowest")
        narrowest = None if span is None else written_fraction(span, "narrowest")
        denominator, digest = int(body["denominator"]), int(body["digest"], 16)
        if denominator < 1:
            raise ValueError(denominator)
        return cls(int(body["count"]), latest, others, denominator, peak, digest, narrowest)


NOTHING_KEPT: Kept = Kept()


def read_charge(body: Mapping[str, Any], name: str) -> Fraction:
    """Read what is never less than nothing.

    Raises:
        KeyError, ValueError: if it is something else.
    """
    found = written_fraction(body[name], name)
    if found < 0:
        raise ValueError(name)
    return found


def row(usage: Usage) -> str:
    """Write how charges change; no text where they do not.

    The denominator, then how long after the one before each change is, and its corners, as
    integers of the least size that holds them all.
    """
    if not len(usage.times):
        return ""
    times, rises = usage.rises(0, len(usage.times))
    if rises.dtype == object:
        common = math.gcd(usage.denominator, *rises.ravel().tolist())
    else:
        common = math.gcd(usage.denominator, int(np.gcd.reduce(rises, axis=None)))
    steps = np.diff(times, prepend=0)[:, np.newaxis]
    numbers: Integers = np.concatenate([steps.astype(rises.dtype), rises // common], axis=1)
    low, high = int(numbers.min()), int(numbers.max())
    for kind in _KINDS:
        bounds = np.iinfo(np.dtype(kind))
        if bounds.min <= low and high <= bounds.max:
            data = numbers.astype(np.dtype(kind).newbyteorder("<")).tobytes()
            return f"{usage.denominator // common} {kind}{base64.b64encode(data).decode()}"
    text = ",".join(map(str, numbers.ravel().tolist()))
    return f"{usage.denominator // common} {_LARGE}{text}"


def _read_row(text: str, denominator: int) -> tuple[NDArray[np.int64], Integers]:
    """Read times and corners, over the common denominator.

    Raises:
        ArithmeticError, ValueError: if the text is no row.
    """
    below, _, coded = text.partition(" ")
    kind, data = coded[:1], coded[1:]
    if kind == _LARGE:
        numbers: Integers = np.array(list(map(int, data.split(","))), dtype=object)
    elif kind in _KINDS and kind:
        found = np.frombuffer(
            base64.b64decode(data, validate=True), np.dtype(kind).newbyteorder("<")
        )
        numbers = found.astype(np.int64)
    else:
        raise ValueError("no row of levels")
    numbers = numbers.reshape(-1, 5)
    factor = denominator // int(below)
    if factor * int(np.abs(numbers[:, 1:]).max()) >= 1 << 62:
        numbers = numbers.astype(object)
    return np.cumsum(numbers[:, 0].astype(np.int64)), numbers[:, 1:] * factor


def digest(rows: Mapping[Any, str]) -> int:
    """Add up the hashes of rows, whatever their order; rows without text count nothing."""
    found = (
        hashlib.sha256(f"{len(str(name))} {name} {text}".encode(errors="surrogatepass")).digest()
        for name, text in rows.items()
        if text
    )
    return sum(int.from_bytes(one, "big") for one in found) % DIGESTS
