"""The state behind an account of (ε, δ): what was spent of the caps; immutable.

A debit is an addition of squares (of pure levels, where a share is kept for them), and whether it
fits is a comparison with the cap. Without a budget nothing is capped, and the total is that of a
plan fixed beforehand.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from quiltwork.budget.accounting.account import History
from quiltwork.budget.accounting.caps import Cap, cap_of, epsilon_of_plan
from quiltwork.budget.accounting.squares import SquareRun, Squares, least_room, no_squares
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_up
from quiltwork.lazy import cached_property

_MOST = 10**12


@dataclass(frozen=True)
class Room:
    """What a claim of (ε, δ) allows: a cap of squares, and a share for pure levels.

    `budget` is ε, or None for no limit.
    """

    budget: Fraction | None
    delta: Fraction
    pure: Fraction = Fraction(0)
    cap: Cap | None = None

    @classmethod
    def of(cls, secrets: Secrets, budget: Fraction | None, delta: Fraction, pure: Fraction) -> Room:
        """Fix the cap; nothing may have been released yet."""
        if budget is None:
            if pure:
                raise InvalidInputError("pure is a share of a budget; give budget=, too.")
            return cls(None, delta)
        cap = cap_of(secrets, budget, delta, pure)
        if not cap.level:
            raise UnsupportedError(
                f"A share of {float(pure):g} for pure releases leaves nothing of ε = "
                f"{float(budget):g} to Gaussian noise under these beliefs; keep a smaller share."
            )
        return cls(budget, delta, pure, cap)


@dataclass(frozen=True, eq=False)
class GaussianAccount:
    """`count` releases, the latest first in `history`, and what they spend."""

    secrets: Secrets
    room: Room
    squares: Squares
    levels: Usage = field(default_factory=Usage)
    history: History = None
    count: int = 0

    @classmethod
    def empty(cls, secrets: Secrets, room: Room) -> GaussianAccount:
        """Nothing was released."""
        return cls(secrets, room, no_squares(secrets))

    def plus(self, spendings: Iterable[Spending]) -> GaussianAccount:
        """Add releases, whether they fit or not.

        Raises:
            InvalidInputError: if a window lies outside the series.
            UnsupportedError: for releases without a level for substituting one time point.
        """
        squares, levels = self.squares, self.levels
        history, count = self.history, self.count
        for spending in spendings:
            if spending.stop > self.secrets.length:
                raise InvalidInputError(
                    f"The window {spending.start}..{spending.stop} does not fit a series of "
                    f"{self.secrets.length} time points; windows are 1-based and inclusive."
                )
            if spending.composes_by not in ("levels", "squares"):
                raise UnsupportedError(
                    "An account with δ adds up levels for substituting one time point, and this "
                    "release has none; cap its DP level (dp_epsilon=…)."
                )
            history, count = (spending, history), count + 1
            if spending.composes_by == "levels" and self.room.pure:
                level = spending.dp_epsilon or Fraction(0)
                levels = levels.plus(_of_level(spending, level))
            else:
                squares = squares.plus(spending)
        return replace(self, squares=squares, levels=levels, history=history, count=count)

    @cached_property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""
        found, history = [], self.history
        while isinstance(history, tuple):
            spending, history = history
            found.append(spending)
        return (*(history() if history else ()), *reversed(found))

    @cached_property
    def square(self) -> Fraction:
        """The largest sum of squares that a secret pays for."""
        return self.squares.most

    @cached_property
    def level(self) -> Fraction:
        """The largest sum of pure levels on a time point, out of the share for them."""
        if not self.levels.everything:
            return Fraction(0)
        return Fraction(int(self.levels.runs.own.max()), self.levels.denominator)

    @property
    def used(self) -> Fraction:
        """The share of the caps that is used where most is; 0 without a budget."""
        cap, pure = self.room.cap, self.room.pure
        if cap is None:
            return Fraction(0)
        return max(self.square / cap.square, self.level / pure if pure else Fraction(0))

    @property
    def fits(self) -> bool:
        """Whether all of it lies below the caps."""
        cap = self.room.cap
        return cap is None or (self.square <= cap.square and self.level <= self.room.pure)

    @cached_property
    def total(self) -> Fraction:
        """The proven ε: the whole budget from the first debit, or that of a plan."""
        if not self.square and not self.level:
            return Fraction(0)
        if self.room.budget is not None:
            return self.room.budget
        windows = [(one.first, one.last) for one in self.runs if one.square]
        used = windows[0][0], windows[-1][1]
        found = epsilon_of_plan(self.secrets, self.square, used, self.room.delta)
        return Fraction(found) if math.isfinite(found) else Fraction(10**100)

    @property
    def runs(self) -> tuple[SquareRun, ...]:
        """What each time point, or secret, pays for."""
        return tuple(self.squares.runs(self.secrets.length))

    def times_more(self, spendings: Iterable[Spending]) -> Fraction | None:
        """The largest x such that these releases fit x times over; None without a limit."""
        cap = self.room.cap
        if cap is None:
            return None
        added = list(spendings)
        pure = [one for one in added if self.room.pure and one.composes_by == "levels"]
        factors = [self.squares.room(cap.square, [one for one in added if one not in pure])]
        if pure:
            more = GaussianAccount.empty(self.secrets, self.room).plus(pure)
            factors.append(least_room(self.room.pure, self.levels, more.levels))
        known = [max(one, Fraction(0)) for one in factors if one is not None]
        found = min(known, default=None)
        return None if found is None or found > _MOST else found

    def seen_by(self, secrets: Secrets) -> GaussianAccount:
        """The same releases in a longer series, under the same caps."""
        return GaussianAccount.empty(secrets, self.room).plus(self.spendings)


def _of_level(spending: Spending, level: Fraction) -> Spending:
    """A release charged with its level on every point of its window."""
    return replace(spending, per_point=level, per_pair=Fraction(0), once=Fraction(0))


def worst_run(account: GaussianAccount) -> int:
    """A time point that pays most."""
    return max(account.runs, key=lambda one: one.square).first


def shown_share(share: Fraction) -> str:
    """A share of a cap as text, rounded up."""
    return f"{100 * float_up(share):.6g} %"
