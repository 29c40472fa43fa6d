"""The state behind an account of (ε, δ): what was spent of the caps; immutable.

A debit is an addition of squares (of pure levels, where a share is kept for them), and whether it
fits is a comparison with the cap. Without a budget nothing is capped, and the total is that of a
plan fixed beforehand.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from quiltwork.budget.accounting.account import History
from quiltwork.budget.accounting.caps import Cap, cap_of, epsilon_of_plan
from quiltwork.budget.accounting.limits import Grants, largest_granted
from quiltwork.budget.accounting.squares import SquareRun, Squares, least_room, no_squares
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_down, float_up, format_up
from quiltwork.influence.tradeoffs.curves import pure_of_level

_MOST = 10**12
_NOTHING = 1e-8
"""A release that needs more than 10⁴ times its noise does not fit, for a person."""
ALL = Fraction(1)
"""Of the caps."""


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
    def spent(self) -> Fraction:
        """What is shared out: the share of the caps that is used."""
        return self.used

    def bound(self, limit: Fraction) -> tuple[Fraction, Literal["squares"]]:
        """The share that is used, and how it was found."""
        return self.used, "squares"

    def fits(self, limit: Fraction = ALL) -> bool:
        """Whether all of it lies below this share of the caps."""
        return self.used <= limit

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
        """The same releases in a longer series, under the same caps.

        Raises:
            UnsupportedError: where the cap is that of a length.
        """
        cap, length = self.room.cap, self.secrets.length
        if secrets.length > length and cap is not None and not cap.unlimited:
            raise UnsupportedError(
                f"The cap of this account holds for {length:,} time points: under its beliefs "
                "there is none for series of every length, and caps are fixed before the first "
                "release. Open an account with the final length."
            )
        return replace(self, secrets=secrets, squares=self.squares.seen_by(secrets))

    def nothing(self) -> GaussianAccount:
        """The account of nobody's releases, with the same secrets and caps."""
        return GaussianAccount.empty(self.secrets, self.room)

    def kept(self, earlier: Callable[[], tuple[Spending, ...]] | None) -> GaussianAccount:
        """The same account, whose releases are kept elsewhere, where a function may find them."""
        return replace(self, history=earlier)

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values, without its history."""
        squares, levels = self.squares.to_body(), self.levels.to_body()
        return {"count": self.count, "squares": squares, "levels": levels}

    def with_body(self, body: Mapping[str, Any], secrets: Secrets) -> GaussianAccount:
        """Read what `to_body` wrote, of an account with this room.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: if it is something else.
        """
        squares = no_squares(secrets).with_body(body["squares"])
        levels = Usage.from_body(body["levels"])
        return GaussianAccount(secrets, self.room, squares, levels, None, int(body["count"]))


def _of_level(spending: Spending, level: Fraction) -> Spending:
    """A release charged with its level on every point of its window."""
    return replace(spending, per_point=level, per_pair=Fraction(0), once=Fraction(0))


def pure_advice(account: GaussianAccount, added: Iterable[Spending]) -> str:
    """Say why a pure level is dear here, and what would grant more; "" where that is not it."""
    room, cap = account.room, account.room.cap
    pure = any(one.composes_by == "levels" for one in added)
    if not pure or room.pure or cap is None or room.budget is None or math.isinf(cap.level):
        return ""
    most = float_down(account.secrets.safe_level(room.budget))
    beside = f", where a pure ε = {float(room.budget):g} grants {most:.4g}" if most else ""
    return (
        " A pure level is charged as the least Gaussian level that hides as much, which is dear: "
        f"{pure_of_level(cap.level):.4g} on every time point is all there is room for{beside}. "
        "Keep a share for such releases with pure=… when the account is opened, or use Gaussian "
        "noise."
    )


def noise_that_fits(
    account: GaussianAccount, refused: Sequence[Spending], grants: Grants | None = None
) -> str:
    """Say with which noise releases that exceed the caps would fit."""
    if any(one.composes_by != "squares" for one in refused):
        dear = pure_advice(account, refused).strip()
        return dear or "Ask for a lower level or a shorter window."
    most = largest_granted(float_down(account.times_more(refused) or Fraction(0)), refused, grants)
    if most < _NOTHING:
        return "Nothing fits on this window any more."
    which = "this" if len(refused) == 1 else "their"
    return f"With {format_up(math.sqrt(1 / most) * (1 + 2.0**-50))} times {which} noise it fits."


def worst_run(account: GaussianAccount) -> int:
    """A time point that pays most."""
    return max(account.runs, key=lambda one: one.square).first


def shown_share(share: Fraction) -> str:
    """A share of a cap as text, rounded up."""
    return f"{100 * float_up(share):.6g} %"
