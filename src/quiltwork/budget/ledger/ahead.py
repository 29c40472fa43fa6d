"""The latest debits of a dataset, which are not yet in its rows of levels.

Writing rows, and adding to them what others have debited, is done for several dozen debits at once.
Until then they stand in the dataset's own row of totals, a line each, and so do those of the time
before: whoever knows the levels as they were then has not far to go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up

MOST = 64
"""So many debits wait for their rows."""
_UP = 1 + 2.0**-40
_LEVELS = {
    "composes_by": "levels",
    "epsilon": None,
    "divergence": None,
    "quilts": None,
    "label": "",
}


class Recent(NamedTuple):
    """A debit: the number of its entry, for whom, and what."""

    number: int
    analyst: str | None
    spending: Spending

    @property
    def line(self) -> str:
        """The debit as text, with all that its levels depend on."""
        one = self.spending
        costs = str(one.per_point), str(one.per_pair), str(one.once)
        return json.dumps([self.number, self.analyst, one.start, one.stop, *costs])


def read_lines(text: str) -> tuple[Recent, ...]:
    """Read debits, a line each.

    Raises:
        KeyError, TypeError, ValueError: if they are none.
    """
    found = json.loads(f"[{','.join(text.splitlines())}]")
    return tuple(
        Recent(
            int(number),
            who,
            Spending.from_body(
                {
                    **_LEVELS,
                    "start": start,
                    "stop": stop,
                    "per_point": point,
                    "per_pair": pair,
                    "once": once,
                }
            ),
        )
        for number, who, start, stop, point, pair, once in found
    )


def can_wait(spending: Spending) -> bool:
    """Whether all that an account needs of a release is in its line."""
    return spending.composes_by == "levels" and spending.span is None and not spending.runs


def everything(spending: Spending) -> Fraction:
    """What a release charges for changing its whole window, gaps between runs included."""
    size = spending.stop - spending.start + 1
    return spending.per_point * size + spending.per_pair * (size - 1) + spending.once


def highest(spending: Spending) -> Fraction:
    """The most that a release charges for one time point."""
    return spending.per_point + 2 * spending.per_pair + spending.once


@dataclass(frozen=True)
class Ahead:
    """Debits that are not in the rows of levels, which have everything up to entry `since`.

    `text` has a line for each, and `older` for those that were written into the rows last, after
    entry `before`. With them everything is charged `total`, and no time point more than `peak`.
    """

    since: int
    total: Fraction
    peak: Fraction
    debits: tuple[Recent, ...] = ()
    text: str = ""
    before: int = 0
    older: str = ""

    def plus(self, debit: Recent, peak: Fraction) -> Ahead:
        """One more, with which no time point is charged more than `peak`."""
        total, debits = self.total + everything(debit.spending), (*self.debits, debit)
        text = f"{self.text}{debit.line}\n"
        return Ahead(self.since, total, peak, debits, text, self.before, self.older)

    def written(self, account: Account, peak: Fraction, last: int) -> Ahead:
        """None any more: all is in the rows.

        Where a line does not have all that a debit's levels depend on, nobody goes on by lines.
        """
        total = account.usage.total
        if not all(can_wait(debit.spending) for debit in self.debits):
            return Ahead(last, total, peak, before=last)
        return Ahead(last, total, peak, before=self.since, older=self.text)

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

    def after(self, number: int) -> tuple[Recent, ...] | None:
        """All debits after an entry; None if they reach not so far back."""
        if number >= self.since:
            found = self.debits
        elif number >= self.before:
            found = (*read_lines(self.older), *self.debits)
        else:
            return None
        return tuple(one for one in found if one.number > number)
