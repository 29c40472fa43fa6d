"""`GaussianAccount`: the immutable state of an account of (ε, δ), and its use of the caps.

A debit adds squares of levels (and pure levels, where a share is kept for them); whether it fits is
a comparison with the cap. Without a budget nothing is capped, and the total is that of a plan fixed
beforehand.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from quiltwork.budget.accounting.account import History, check_window, releases_in
from quiltwork.budget.accounting.caps import GaussianBudget, epsilon_of_plan
from quiltwork.budget.accounting.headroom import Grants, largest_granted
from quiltwork.budget.accounting.squares import (
    SquareRun,
    Squares,
    empty_squares,
    largest_multiple,
)
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.caching import cached_property
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_down, float_up, format_up
from quiltwork.influence.tradeoffs.curves import pure_of_level

_UNLIMITED_FACTOR = 10**12
_SMALLEST_USEFUL = 1e-8
"""Below this factor a release would need more than 10⁴ times its noise: say that nothing fits."""
_ROUNDING = 1e-9
ALL = Fraction(1)
"""All of the caps, as a share."""


@dataclass(frozen=True, eq=False)
class GaussianAccount:
    """Releases and the squares of levels that they spend.

    Attributes:
        secrets: what the account is about.
        gaussian: ε, δ and the caps.
        squares: the sums of squares, per time point or per secret.
        levels: the sums of pure levels, where a share is kept for them.
        history: all releases, the latest first.
        count: their number.
    """

    secrets: Secrets
    gaussian: GaussianBudget
    squares: Squares
    levels: Usage = field(default_factory=Usage)
    history: History = None
    count: int = 0

    @classmethod
    def empty(cls, secrets: Secrets, gaussian: GaussianBudget) -> GaussianAccount:
        """Return an account without releases."""
        return cls(secrets, gaussian, empty_squares(secrets))

    def plus(self, spendings: Iterable[Spending]) -> GaussianAccount:
        """Add releases, whether they fit or not.

        Raises:
            InvalidInputError: if a window lies outside the series.
            UnsupportedError: for releases without a level for substituting one time point.
        """
        squares, levels = self.squares, self.levels
        history, count = self.history, self.count
        for spending in spendings:
            check_window(spending, self.secrets.length)
            if spending.composes_by not in ("levels", "squares"):
                raise UnsupportedError(
                    "An account with δ adds up levels for substituting one time point, and this "
                    "release has none; cap its DP level (dp_epsilon=…)."
                )
            history, count = (spending, history), count + 1
            if spending.composes_by == "levels" and self.gaussian.pure:
                levels = levels.plus(_flat(spending))
            else:
                squares = squares.plus(spending)
        return replace(self, squares=squares, levels=levels, history=history, count=count)

    @cached_property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""
        return releases_in(self.history)

    @cached_property
    def square(self) -> Fraction:
        """The largest sum of squares of any secret."""
        return self.squares.most

    @cached_property
    def level(self) -> Fraction:
        """The largest sum of pure levels on a time point, charged to the share for them."""
        if not self.levels.total_charge:
            return Fraction(0)
        return Fraction(int(self.levels.runs.own.max()), self.levels.denominator)

    @property
    def used(self) -> Fraction:
        """The largest used share of a cap; 0 without a budget."""
        cap, pure = self.gaussian.cap, self.gaussian.pure
        if cap is None:
            return Fraction(0)
        return max(self.square / cap.square, self.level / pure if pure else Fraction(0))

    @property
    def spent(self) -> Fraction:
        """What counts against limits: the used share of the caps."""
        return self.used

    def bound(self, limit: Fraction) -> tuple[Fraction, Literal["squares"]]:
        """Return the used share of the caps, and how it was computed."""
        return self.used, "squares"

    def fits(self, limit: Fraction = ALL) -> bool:
        """Whether the used share is at most `limit`."""
        return self.used <= limit

    @cached_property
    def total(self) -> Fraction:
        """The proven ε: the whole budget from the first debit, or that of a plan."""
        if not self.square and not self.level:
            return Fraction(0)
        if self.gaussian.budget is not None:
            return self.gaussian.budget
        windows = [(run.first, run.last) for run in self.runs if run.square]
        used = windows[0][0], windows[-1][1]
        epsilon = epsilon_of_plan(self.secrets, self.square, used, self.gaussian.delta)
        return Fraction(epsilon) if math.isfinite(epsilon) else Fraction(10**100)

    @property
    def runs(self) -> tuple[SquareRun, ...]:
        """The sum of squares of each time point, or of each secret."""
        return tuple(self.squares.runs(self.secrets.length))

    @property
    def worst_node(self) -> int:
        """A time point with the largest sum of squares."""
        return max(self.runs, key=lambda run: run.square).first

    def times_more(self, spendings: Iterable[Spending]) -> Fraction | None:
        """Return the largest x such that these releases fit x times over; None if unlimited."""
        cap = self.gaussian.cap
        if cap is None:
            return None
        added = list(spendings)
        pure = [
            spending
            for spending in added
            if self.gaussian.pure and spending.composes_by == "levels"
        ]
        squared = [spending for spending in added if spending not in pure]
        factors = [self.squares.times_more(cap.square, squared)]
        if pure:
            more = self.emptied().plus(pure)
            factors.append(largest_multiple(self.gaussian.pure, self.levels, more.levels))
        limits = [max(factor, Fraction(0)) for factor in factors if factor is not None]
        least = min(limits, default=None)
        return None if least is None or least > _UNLIMITED_FACTOR else least

    def with_secrets(self, secrets: Secrets) -> GaussianAccount:
        """Return the same releases for a longer series, under the same caps.

        Raises:
            UnsupportedError: if the cap holds for one length only.
        """
        cap, length = self.gaussian.cap, self.secrets.length
        if secrets.length > length and cap is not None and not cap.unlimited:
            raise UnsupportedError(
                f"The cap on what was released holds for {length:,} time points: one for series of "
                "every length would grant less or nothing, and a cap that is lowered after answers "
                "would not keep δ. Start with the greatest length that the series may reach."
            )
        return replace(self, secrets=secrets, squares=self.squares.with_secrets(secrets))

    def emptied(self) -> GaussianAccount:
        """Return an account without releases, with the same secrets and caps."""
        return GaussianAccount.empty(self.secrets, self.gaussian)

    def with_history(self, load: Callable[[], tuple[Spending, ...]] | None) -> GaussianAccount:
        """Return the same account with its releases stored elsewhere, where `load` reads them."""
        return replace(self, history=load)

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values, without its history."""
        squares, levels = self.squares.to_body(), self.levels.to_body()
        return {"count": self.count, "squares": squares, "levels": levels}

    def restored(self, body: Mapping[str, Any], secrets: Secrets) -> GaussianAccount:
        """Read what `to_body` wrote, for an account with the same caps.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: for anything else.
        """
        squares = empty_squares(secrets).restored(body["squares"])
        levels = Usage.from_body(body["levels"])
        return GaussianAccount(secrets, self.gaussian, squares, levels, None, int(body["count"]))


def _flat(spending: Spending) -> Spending:
    """Return a pure release charged with its level on every point of its window."""
    level = spending.dp_epsilon or Fraction(0)
    return replace(spending, per_point=level, per_pair=Fraction(0), once=Fraction(0))


def pure_advice(account: GaussianAccount, added: Iterable[Spending]) -> str:
    """Explain why a pure level costs much here, and what would grant more; "" where it does not."""
    budget, cap = account.gaussian, account.gaussian.cap
    has_pure = any(spending.composes_by == "levels" for spending in added)
    if not has_pure or budget.pure or cap is None or budget.budget is None:
        return ""
    if math.isinf(cap.level):
        return ""
    pure_level = float_down(account.secrets.safe_level(budget.budget))
    beside = ""
    if pure_level:
        beside = f", where a pure ε = {float(budget.budget):g} grants {pure_level:.4g}"
    return (
        " A pure level is charged as the least Gaussian level that hides as much, which costs "
        f"much: a pure level of {pure_of_level(cap.level):.4g} on every time point uses up the "
        f"cap{beside}. Keep a share for such releases with pure=… when the account is opened, or "
        "use Gaussian noise."
    )


def noise_that_fits(
    account: GaussianAccount, refused: Sequence[Spending], grants: Grants | None = None
) -> str:
    """Say with how much more noise releases that exceed the caps would fit."""
    if any(spending.composes_by != "squares" for spending in refused):
        advice = pure_advice(account, refused).strip()
        return advice or "Ask for a lower level or a shorter window."
    most = largest_granted(float_down(account.times_more(refused) or Fraction(0)), refused, grants)
    if most < _SMALLEST_USEFUL:
        return "Nothing fits on this window any more."
    whose = "this" if len(refused) == 1 else "their"
    if most > 1 - _ROUNDING:
        return f"It misses by rounding alone: round {whose} noise up in the ninth digit."
    return f"With {format_up(math.sqrt(1 / most) * (1 + 2.0**-50))} times {whose} noise it fits."


def format_share(share: Fraction) -> str:
    """Write a share of a cap in percent, rounded up."""
    text = f"{100 * float_up(share):.6g} %"
    return "more than 100 %" if share > ALL and text == "100 %" else text
