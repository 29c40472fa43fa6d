"""An account as rows: what it spends on each time point, and a digest that binds the rows.

Levels add up per time point, so an account is the times at which they change. A row has all
changes within a stretch of time as one text, so that a new process reads some hundred rows at
most, however many releases there were; a debit writes at most three. Numbers are exact and in
lowest terms: an account read from its rows is the account that wrote them, and writes them again.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.budget import Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.usage import Integers, Usage
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Composition
from quiltwork.exact import written_fraction

DIGESTS = 1 << 256
_MOST_ROWS = 1024
_NARROWEST = 64
_KINDS = "bhiq"
_LARGE = "x"


def width(length: int) -> int:
    """How many time points share a row, in a series of this length: a power of 2."""
    return max(_NARROWEST, 1 << math.ceil(length / _MOST_ROWS - 1).bit_length())


@dataclass(frozen=True)
class Kept:
    """An account without its rows.

    Attributes:
        count: how many releases it has.
        latest: what the latest composes by.
        others: what releases without a level per time point add.
        denominator: of all charges.
        peak: the most that is spent on any time point itself.
        digest: the hashes of all rows added up, so that a row that was changed, lost or put back
            betrays itself, and writing one takes two hashes.
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
    def of(cls, account: Account) -> tuple[Kept, dict[int, str]]:
        """Return what is kept of an account, and all its rows. O(changes)."""
        usage, wide = account.usage, width(account.secrets.length)
        rows = {place: row(usage, place, wide) for place in np.unique(usage.times // wide).tolist()}
        last = int(usage.times[-1]) if len(usage.times) else 1
        return cls._with(account, usage.highest(1, last), digest(rows)), rows

    def plus(
        self, before: Account, after: Account, *spendings: Spending
    ) -> tuple[Kept, dict[int, str]]:
        """Return what is kept once releases were added, and the rows they change."""
        wide = width(after.secrets.length)
        parts = [part for one in spendings for part in one.parts]
        times = {time for one in parts for time in (one.start, one.stop, one.stop + 1)}
        places = sorted({time // wide for time in times})
        old = {place: row(before.usage, place, wide) for place in places}
        new = {place: row(after.usage, place, wide) for place in places}
        found = (self.digest - digest(old) + digest(new)) % DIGESTS
        return self.later(after, found, spendings), {n: new[n] for n in new if new[n] != old[n]}

    def later(self, after: Account, digest: int, spendings: Sequence[Spending]) -> Kept:
        """What is kept once releases were added, where others have written the rows."""
        if not spendings:
            return self._with(after, self.peak, digest)
        first, last = min(one.start for one in spendings), max(one.stop for one in spendings)
        return self._with(after, max(self.peak, after.usage.highest(first, last)), digest)

    @classmethod
    def _with(cls, account: Account, peak: Fraction, found: int) -> Kept:
        others, usage = account.by_theorem_3_6, account.usage
        parts = account.count, account.latest, others, usage.denominator, peak, found
        return cls(*parts, usage.narrowest)

    def account(self, rows: Mapping[int, str], secrets: Secrets) -> Account:
        """Return the account with these rows, without its history.

        Raises:
            ValueError: if they are not the ones that were kept.
        """
        if digest(rows) != self.digest:
            raise ValueError("the levels were changed")
        wide, denominator = width(secrets.length), self.denominator
        parts = [_read_row(rows[place], place, wide, denominator) for place in sorted(rows)]
        times = np.concatenate([np.empty(0, dtype=np.int64), *(part[0] for part in parts)])
        rises = np.concatenate([np.empty((0, 4), dtype=np.int64), *(part[1] for part in parts)])
        usage = Usage.of_rises(denominator, times, rises, self.narrowest)
        if len(times) and usage.highest(1, int(times[-1])) > self.peak:
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
        others, peak = (written_fraction(body[name], name) for name in ("others", "peak"))
        span = body.get("narrowest")
        narrowest = None if span is None else written_fraction(span, "narrowest")
        denominator, digest = int(body["denominator"]), int(body["digest"], 16)
        return cls(int(body["count"]), latest, others, denominator, peak, digest, narrowest)


NOTHING_KEPT: Kept = Kept()


def row(usage: Usage, place: int, wide: int) -> str:
    """Write how charges change within one stretch; no text where they do not.

    The denominator, then times within the stretch and corners as integers of the least size that
    holds them all.
    """
    begin, end = np.searchsorted(usage.times, [place * wide, (place + 1) * wide]).tolist()
    if begin == end:
        return ""
    times, rises = usage.rises(begin, end)
    if rises.dtype == object:
        common = math.gcd(usage.denominator, *rises.ravel().tolist())
    else:
        common = math.gcd(usage.denominator, int(np.gcd.reduce(rises, axis=None)))
    offsets = (times - place * wide)[:, np.newaxis]
    numbers: Integers = np.concatenate([offsets.astype(rises.dtype), rises // common], axis=1)
    low, high = int(numbers.min()), int(numbers.max())
    for kind in _KINDS:
        bounds = np.iinfo(np.dtype(kind))
        if bounds.min <= low and high <= bounds.max:
            data = numbers.astype(np.dtype(kind).newbyteorder("<")).tobytes()
            return f"{usage.denominator // common} {kind}{base64.b64encode(data).decode()}"
    text = ",".join(map(str, numbers.ravel().tolist()))
    return f"{usage.denominator // common} {_LARGE}{text}"


def _read_row(
    text: str, place: int, wide: int, denominator: int
) -> tuple[NDArray[np.int64], Integers]:
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
    return numbers[:, 0].astype(np.int64) + place * wide, numbers[:, 1:] * factor


def digest(rows: Mapping[Any, str]) -> int:
    """Add up the hashes of rows, whatever their order; rows without text count nothing."""
    found = (
        hashlib.sha256(f"{len(str(name))} {name} {text}".encode(errors="surrogatepass")).digest()
        for name, text in rows.items()
        if text
    )
    return sum(int.from_bytes(one, "big") for one in found) % DIGESTS
