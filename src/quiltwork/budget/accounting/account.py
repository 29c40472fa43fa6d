"""The state behind an accountant: what its releases cost together; immutable.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from quiltwork.budget.accounting.rules import by_theorem_3_6, check_composition, check_window
from quiltwork.budget.accounting.total import Secrets
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.accounting.worst import Worst
from quiltwork.budget.spending import Composition, Spending
from quiltwork.exact import Number, positive_fraction

History: TypeAlias = "tuple[Spending, History] | Callable[[], tuple[Spending, ...]] | None"
"""Releases, the latest first, shared by all accounts that have them; those before may be kept
elsewhere, where a function finds them in order."""

_LONGEST_DENOMINATOR_BITS = 1024
_FINE = 1 << 256


@dataclass(frozen=True, eq=False)
class Account:
    """`count` releases, the latest first in `history`, and what they spend on each time point.

    `by_theorem_3_6` is what releases without a level per time point add; the latest release
    composes by `latest`.
    """

    secrets: Secrets
    usage: Usage = field(default_factory=Usage)
    history: History = None
    count: int = 0
    by_theorem_3_6: Fraction = Fraction(0)
    latest: Composition | None = None

    def plus(self, spendings: Iterable[Spending]) -> Account:
        """Add releases.

        Raises:
            InvalidInputError: if a window lies outside the series.
            UnsupportedError: if no theorem combines a release with those before it.
        """
        usage, others = self.usage, self.by_theorem_3_6
        history, count, latest = self.history, self.count, self.latest
        for spending in spendings:
            check_window(spending, self.secrets.length)
            check_composition(count, latest, spending)
            history, count, latest = (spending, history), count + 1, spending.composes_by
            others = _bounded(others + by_theorem_3_6(spending))
            if spending.composes_by == "levels":
                usage = usage.plus(spending)
        return Account(self.secrets, usage, history, count, others, latest)

    def plus_scaled(self, others: Account, factor: Number) -> Account:
        """Add the releases of another account with all their charges times `factor`.

        For totals only: the releases are not in the history. Cheaper than adding them one by one.
        """
        times = positive_fraction(factor, "factor")
        return replace(self, usage=self.usage.combined(others.usage, times))

    @cached_property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""
        found, history = [], self.history
        while isinstance(history, tuple):
            spending, history = history
            found.append(spending)
        return (*(history() if history else ()), *reversed(found))

    def kept(self, earlier: Callable[[], tuple[Spending, ...]]) -> Account:
        """The same account, whose releases are kept elsewhere."""
        account = replace(self, history=earlier)
        if "worst" in self.__dict__:
            account.__dict__["worst"] = self.worst
        return account

    @cached_property
    def worst(self) -> Worst:
        """The time point about which the releases with levels tell most."""
        return self.secrets.worst(self.usage)

    @property
    def total(self) -> Fraction:
        """The best proven total for every time point."""
        return self.worst.exact + self.by_theorem_3_6

    def fits(self, limit: Fraction) -> bool:
        """Whether the total is at most `limit`."""
        left = limit - self.by_theorem_3_6
        return left >= 0 and (self.usage.total <= left or self.worst.exact <= left)

    def seen_by(self, secrets: Secrets) -> Account:
        """The same releases, with other secrets or in a longer series."""
        return replace(self, secrets=secrets)


def _bounded(cost: Fraction) -> Fraction:
    """Round up by less than 2⁻²⁵⁶ where a denominator would grow without end."""
    if cost.denominator.bit_length() <= _LONGEST_DENOMINATOR_BITS:
        return cost
    return Fraction(math.ceil(cost * _FINE), _FINE)
