"""The state behind an accountant: what its releases cost together; immutable.

A combination of releases is accepted only if a theorem prices it. Releases with a level for
substituting one time point add up per time point, and are swept; a Pufferfish mechanism without one
composes by Theorem 3.6, with a bound E on how much it depends on everything before; anything else
stays alone, for Theorem 3.4 shows two mechanisms of level ε that together exceed 2ε.

Theorem: docs/theory/sweep.md, docs/theory/composition.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from quiltwork.budget.accounting.usage import Usage, least_span
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Composition, Spending
from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, parse_stored_fraction, positive_fraction
from quiltwork.influence.belief_bound import WorstPoint

History: TypeAlias = "tuple[Spending, History] | Callable[[], tuple[Spending, ...]] | None"
"""Releases, the latest first, shared by all accounts that have them; those before may be kept
elsewhere, where a function finds them in order."""

EXAMPLE = "docs/theory/composition.md"

_MANY = 64
"""With fewer changes of levels pricing costs as little as a bound by levels."""
_FEW = 64
"""So many releases are looked at one by one, and not all levels for them."""
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
        """Add releases. Cost: some milliseconds after 10⁵ others.

        Raises:
            InvalidInputError: if a window lies outside the series.
            UnsupportedError: if no theorem combines a release with those before it.
        """
        others, levels = self.by_theorem_3_6, []
        history, count, latest = self.history, self.count, self.latest
        narrowest = self.usage.narrowest
        for spending in spendings:
            if spending.stop > self.secrets.length:
                raise InvalidInputError(
                    f"The window {spending.start}..{spending.stop} does not fit a series of "
                    f"{self.secrets.length} time points; windows are 1-based and inclusive."
                )
            _check_composition(count, latest, spending)
            _check_stretch(spending.composes_by, self.secrets)
            history, count, latest = (spending, history), count + 1, spending.composes_by
            others = bounded(others + by_theorem_3_6(spending))
            if spending.composes_by == "levels":
                levels.append(self.secrets.charged(spending, narrowest))
                narrowest = least_span(narrowest, levels[-1])
        usage = self.usage.plus(*levels)
        after = Account(self.secrets, usage, history, count, others, latest)
        if "peak" in self.__dict__ and len(levels) <= _FEW:
            here = (usage.highest(one.start, one.stop) for one in levels)
            after.__dict__["peak"] = max([self.peak, *here])
        return after

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

    def kept(self, earlier: Callable[[], tuple[Spending, ...]] | None) -> Account:
        """The same account, whose releases are kept elsewhere, where a function may find them."""
        same = replace(self, history=earlier)
        same.__dict__.update(
            {name: self.__dict__[name] for name in ("worst", "peak") if name in self.__dict__}
        )
        return same

    @cached_property
    def worst(self) -> WorstPoint:
        """The time point about which the releases with levels tell most."""
        return self.secrets.worst(self.usage)

    @property
    def total(self) -> Fraction:
        """The best proven total for every time point."""
        return self.worst.exact + self.by_theorem_3_6

    @property
    def spent(self) -> Fraction:
        """What is shared out: the total."""
        return self.total

    @cached_property
    def peak(self) -> Fraction:
        """The most that is charged for a time point itself."""
        times = self.usage.times
        return self.usage.highest(1, int(times[-1])) if len(times) else Fraction(0)

    def bound(self, limit: Fraction) -> tuple[Fraction, Literal["levels", "priced"]]:
        """A bound on the total, and how it was found: by levels if they tell that it is in a limit.

        Levels tell if all of them together are within the limit (group privacy), or none is above
        the level that would be safe on every time point. Otherwise the total is priced.
        """
        left = limit - self.by_theorem_3_6
        if self.usage.total <= left:
            return self.usage.total + self.by_theorem_3_6, "levels"
        asks = "worst" not in self.__dict__ and len(self.usage.times) >= _MANY
        if asks and left > 0 and self.peak <= self.secrets.safe_level(left):
            return limit, "levels"
        return self.total, "priced"

    def fits(self, limit: Fraction) -> bool:
        """Whether the total is at most `limit`; its levels may tell without a sweep."""
        return self.by_theorem_3_6 <= limit and self.bound(limit)[0] <= limit

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values, without its history. O(changes of levels)."""
        others = str(self.by_theorem_3_6)
        return {
            "count": self.count,
            "latest": self.latest,
            "others": others,
            "usage": self.usage.to_body(),
        }

    def nothing(self) -> Account:
        """The account of nobody's releases, with the same secrets."""
        return Account(self.secrets)

    def with_body(self, body: Mapping[str, Any], secrets: Secrets) -> Account:
        """Read what `to_body` wrote.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: if it is something else.
        """
        others, latest = parse_stored_fraction(body["others"], "others"), body["latest"]
        if latest not in (None, *get_args(Composition)):
            raise ValueError(latest)
        usage = Usage.from_body(body["usage"])
        return Account(secrets, usage, None, int(body["count"]), others, latest)

    def seen_by(self, secrets: Secrets) -> Account:
        """The same releases, with other secrets or in a longer series.

        Raises:
            UnsupportedError: if one without levels was made while the series was a single point.
        """
        _check_stretch("nothing" if self.by_theorem_3_6 else self.latest, secrets)
        return replace(self, secrets=secrets)


def by_theorem_3_6(spending: Spending) -> Fraction:
    """What a release without levels adds: ε + 2E, or ε if it is alone; 0 for the others."""
    if spending.composes_by == "levels" or spending.epsilon is None:
        return Fraction(0)
    return spending.epsilon + 2 * (spending.divergence or Fraction(0))


def _check_stretch(composes_by: Composition | None, secrets: Secrets) -> None:
    """Refuse a release without a level per time point where stretches of several are secret."""
    if composes_by not in (None, "levels") and secrets.episode > 1:
        raise UnsupportedError(
            "A release that has no level per time point promises something about single ones, and "
            f"stretches of {secrets.episode} are protected here; release with a level, or protect "
            "single time points."
        )


def _check_composition(before: int, last: Composition | None, spending: Spending) -> None:
    """Refuse a release that no theorem combines with the `before` ones, of which one is `last`."""
    if spending.composes_by == "squares":
        raise UnsupportedError(
            "Gaussian noise has no pure level, and this account keeps a pure ε. Open one with "
            "delta=…, or release with geometric noise."
        )
    if last == "nothing":
        raise UnsupportedError(
            "A release without a level for substituting one time point was made from these data, "
            "and no theorem combines it with another one: nothing can follow. Cap its DP level "
            f"next time (dp_epsilon=…). Why: {EXAMPLE}"
        )
    if before and spending.composes_by == "nothing":
        raise UnsupportedError(
            "This release has no level for substituting one time point, so no theorem combines it "
            f"with the {before} before it; cap its DP level, or bound its divergence from "
            f"them (Theorem 3.6). Why: {EXAMPLE}"
        )
    if last == "general" and spending.composes_by == "levels":
        raise UnsupportedError(
            "The release before was combined by Theorem 3.6, whose E was bounded against what had "
            "been released until then; after it, only releases with an E of their own can follow."
        )


def bounded(cost: Fraction) -> Fraction:
    """Round up by less than 2⁻²⁵⁶ where a denominator would grow without end."""
    if cost.denominator.bit_length() <= _LONGEST_DENOMINATOR_BITS:
        return cost
    return Fraction(math.ceil(cost * _FINE), _FINE)
