"""`Account`: the immutable state behind an accountant, and what its releases cost together.

A combination of releases is accepted only if a theorem prices it. Levels for substituting one time
point add up per time point and are swept. A Pufferfish mechanism without such a level composes by
Theorem 3.6, with a bound E on its dependence on all releases before. Any other mechanism must stay
alone: Theorem 3.4 shows two mechanisms of level ε that together exceed 2ε.

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
"""A linked list of releases, the latest first, shared by the accounts that contain them; its end
may be a function that loads the earlier releases in order."""

EXAMPLE = "docs/theory/composition.md"

_MANY_CHANGES = 64
"""With fewer changes of levels pricing is as cheap as a bound by levels."""
_FEW_RELEASES = 64
"""Up to so many new releases update the cached maximum one by one."""
_LONGEST_DENOMINATOR_BITS = 1024
_FINE = 1 << 256


def releases_in(history: History) -> tuple[Spending, ...]:
    """Return the releases of a history in order."""
    newest_first = []
    while isinstance(history, tuple):
        spending, history = history
        newest_first.append(spending)
    return (*(history() if history else ()), *reversed(newest_first))


def check_window(spending: Spending, length: int) -> None:
    """Refuse a release whose window lies outside a series of so many time points.

    Raises:
        InvalidInputError: if it does.
    """
    if spending.stop > length:
        raise InvalidInputError(
            f"The window {spending.start}..{spending.stop} does not fit a series of "
            f"{length} time points; windows are 1-based and inclusive."
        )


@dataclass(frozen=True, eq=False)
class Account:
    """Releases and what they spend on each time point.

    Attributes:
        secrets: what the account is about.
        usage: the charges of releases with a level per time point.
        history: all releases, the latest first.
        count: their number.
        by_theorem_3_6: the cost of releases without a level per time point.
        latest: by which theorem the latest release composes.
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
            check_window(spending, self.secrets.length)
            _check_composition(count, latest, spending)
            _check_episode(spending.composes_by, self.secrets)
            history, count, latest = (spending, history), count + 1, spending.composes_by
            others = _shortened_up(others + by_theorem_3_6(spending))
            if spending.composes_by == "levels":
                levels.append(self.secrets.charged(spending, narrowest))
                narrowest = least_span(narrowest, levels[-1])
        usage = self.usage.plus(*levels)
        after = Account(self.secrets, usage, history, count, others, latest)
        if "max_point_charge" in self.__dict__ and len(levels) <= _FEW_RELEASES:
            # Charges only rise, so the maximum changes at most within the new windows.
            in_windows = (
                usage.max_point_charge(spending.start, spending.stop) for spending in levels
            )
            after.__dict__["max_point_charge"] = max([self.max_point_charge, *in_windows])
        return after

    def plus_scaled(self, others: Account, factor: Number) -> Account:
        """Return the account with another's releases too, all their charges times `factor`.

        For totals only: those releases are not in the history. Cheaper than adding them one by one.
        """
        exact_factor = positive_fraction(factor, "factor")
        return replace(self, usage=self.usage.combined(others.usage, exact_factor))

    @cached_property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""
        return releases_in(self.history)

    def with_history(self, load: Callable[[], tuple[Spending, ...]] | None) -> Account:
        """Return the same account with its releases stored elsewhere, where `load` reads them."""
        same = replace(self, history=load)
        cached = ("worst", "max_point_charge")
        same.__dict__.update(
            {name: self.__dict__[name] for name in cached if name in self.__dict__}
        )
        return same

    @cached_property
    def worst(self) -> WorstPoint:
        """The time point with the largest leakage, over releases with levels."""
        return self.secrets.worst(self.usage)

    @property
    def total(self) -> Fraction:
        """The best proven total for every time point."""
        return self.worst.exact + self.by_theorem_3_6

    @property
    def spent(self) -> Fraction:
        """What counts against limits: the total."""
        return self.total

    @cached_property
    def max_point_charge(self) -> Fraction:
        """The largest charge for a single time point itself."""
        times = self.usage.times
        return self.usage.max_point_charge(1, int(times[-1])) if len(times) else Fraction(0)

    def bound(self, limit: Fraction) -> tuple[Fraction, Literal["levels", "priced"]]:
        """Return a bound on the total and how it was found; cheap where levels show that it fits.

        Levels suffice if all of them together are within the limit (group privacy), or none is
        above the level that would be safe on every time point. Otherwise the total is priced.
        """
        left = limit - self.by_theorem_3_6
        if self.usage.total <= left:
            return self.usage.total + self.by_theorem_3_6, "levels"
        is_dear = "worst" not in self.__dict__ and len(self.usage.times) >= _MANY_CHANGES
        if is_dear and left > 0 and self.max_point_charge <= self.secrets.safe_level(left):
            return limit, "levels"
        return self.total, "priced"

    def fits(self, limit: Fraction) -> bool:
        """Whether the total is at most `limit`; a bound by levels may save the sweep."""
        return self.by_theorem_3_6 <= limit and self.bound(limit)[0] <= limit

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values, without its history. O(changes of levels)."""
        return {
            "count": self.count,
            "latest": self.latest,
            "others": str(self.by_theorem_3_6),
            "usage": self.usage.to_body(),
        }

    def emptied(self) -> Account:
        """Return an account without releases, with the same secrets."""
        return Account(self.secrets)

    def restored(self, body: Mapping[str, Any], secrets: Secrets) -> Account:
        """Read what `to_body` wrote.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: for anything else.
        """
        others, latest = parse_stored_fraction(body["others"], "others"), body["latest"]
        if latest not in (None, *get_args(Composition)):
            raise ValueError(latest)
        usage = Usage.from_body(body["usage"])
        return Account(secrets, usage, None, int(body["count"]), others, latest)

    def with_secrets(self, secrets: Secrets) -> Account:
        """Return the same releases with other secrets, or for a longer series.

        Raises:
            UnsupportedError: if one without levels was made while the series was a single point.
        """
        _check_episode("nothing" if self.by_theorem_3_6 else self.latest, secrets)
        return replace(self, secrets=secrets)


def by_theorem_3_6(spending: Spending) -> Fraction:
    """Return the cost of a release without levels: ε + 2E, or ε if it is alone; 0 for others."""
    if spending.composes_by == "levels" or spending.epsilon is None:
        return Fraction(0)
    return spending.epsilon + 2 * (spending.divergence or Fraction(0))


def _check_episode(composes_by: Composition | None, secrets: Secrets) -> None:
    """Refuse a release without a level per time point where episodes of several are secret."""
    if composes_by not in (None, "levels") and secrets.episode > 1:
        raise UnsupportedError(
            "A release without a level per time point protects single time points only, and "
            f"episodes of {secrets.episode} are protected here; release with a level, or protect "
            "single time points."
        )


def _check_composition(before: int, last: Composition | None, spending: Spending) -> None:
    """Refuse a release that no theorem combines with the earlier ones.

    There are so many `before` it, and the latest of them composes by `last`.
    """
    if spending.composes_by == "squares":
        raise UnsupportedError(
            "Gaussian noise has no pure level, and this account keeps a pure ε. Open one with "
            "delta=…, or release with geometric noise."
        )
    if last == "nothing":
        raise UnsupportedError(
            "A release without a level for substituting one time point was made from these data. "
            "No theorem combines it with another release, so nothing can follow. Cap the DP level "
            f"of such a release next time (dp_epsilon=…). Why: {EXAMPLE}"
        )
    if before and spending.composes_by == "nothing":
        raise UnsupportedError(
            "This release has no level for substituting one time point, so no theorem combines it "
            f"with the {before} before it; cap its DP level, or bound its divergence from "
            f"them (Theorem 3.6). Why: {EXAMPLE}"
        )
    if last == "general" and spending.composes_by == "levels":
        raise UnsupportedError(
            "The latest release was combined by Theorem 3.6, with a divergence E from everything "
            "before it. After it, only releases with an E of their own can follow."
        )


def _shortened_up(cost: Fraction) -> Fraction:
    """Round up by less than 2⁻²⁵⁶ where the denominator would grow without limit."""
    if cost.denominator.bit_length() <= _LONGEST_DENOMINATOR_BITS:
        return cost
    return Fraction(math.ceil(cost * _FINE), _FINE)
