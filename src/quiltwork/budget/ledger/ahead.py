"""The latest debits of a dataset, which are not yet in its rows of levels.

Writing rows is done for many debits at once. Until then the entries themselves say what was
debited, and the dataset's own row bounds it: what everything is charged, and the most that is
charged for any time point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from quiltwork.budget.accounting.account import Account, bounded
from quiltwork.budget.ledger.entries import Entry
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up

MOST = 256
"""So many debits wait for their rows."""
_UP = 1 + 2.0**-40


class Recent(NamedTuple):
    """A debit: the number of its entry, for whom, and what."""

    number: int
    analyst: str | None
    spending: Spending

    @classmethod
    def of(cls, entry: Entry) -> Recent:
        """Read a debit from its entry.

        Raises:
            KeyError, TypeError, ValueError: if it is none.
        """
        body = entry.content
        return cls(entry.seq, body["analyst"], Spending.from_body(body["spending"]))


def can_wait(spending: Spending) -> bool:
    """Whether `everything` and `highest` are exactly what a release adds to the totals."""
    return spending.composes_by == "levels" and spending.span is None and not spending.runs


def everything(spending: Spending) -> Fraction:
    """What a release charges for changing its whole window, gaps between runs included."""
    size = spending.stop - spending.start + 1
    total = spending.per_point * size
    if spending.per_pair:
        total += spending.per_pair * (size - 1)
    return total + spending.once if spending.once else total


def highest(spending: Spending) -> Fraction:
    """The most that a release charges for one time point."""
    if not spending.per_pair and not spending.once:
        return spending.per_point
    return spending.per_point + 2 * spending.per_pair + spending.once


@dataclass(frozen=True)
class Ahead:
    """Debits that are not in the rows of levels, which have everything up to entry `since`.

    With them everything is charged `total`, and no time point more than `peak`.
    """

    since: int
    total: Fraction
    peak: Fraction
    debits: tuple[Recent, ...] = ()

    def plus(self, debit: Recent, peak: Fraction) -> Ahead:
        """One more, with which no time point is charged more than `peak`."""
        total = bounded(self.total + everything(debit.spending))
        return replace(self, total=total, peak=peak, debits=(*self.debits, debit))

    def plus_all(self, debits: Sequence[Recent]) -> Ahead:
        """Several more, wherever their windows are."""
        spent = [debit.spending for debit in debits]
        total = bounded(self.total + sum(map(everything, spent)))
        peak = Fraction(float_up(self.peak + sum(map(highest, spent))))
        return replace(self, total=total, peak=peak, debits=(*self.debits, *debits))

    def peak_with(self, base: Account, spending: Spending) -> Fraction:
        """A bound on what any time point is charged with one more release.

        From the levels within its window and the debits that meet it. O(rows between + debits).
        """
        start, stop = spending.start, spending.stop
        changes = sorted(self._changes(start, stop))
        level = most = 0.0
        for _, change in changes:
            level += change
            most = max(most, level)
        known = base.usage.highest(start, stop) + highest(spending)
        return max(self.peak, Fraction(float_up(known + Fraction(most)) * _UP))

    def _changes(self, start: int, stop: int) -> Iterator[tuple[int, float]]:
        for debit in self.debits:
            one = debit.spending
            if one.start <= stop and one.stop >= start:
                level = float_up(highest(one))
                yield one.start, level
                yield one.stop + 1, -level

    def of(self, analyst: str) -> list[Spending]:
        """What was debited for an analyst."""
        return [one.spending for one in self.debits if one.analyst == analyst]
