"""Caps: the sum of squares that every time point may spend, fixed before the first release.

For (ε, δ) no filter on the reached profile is sound: an adaptive analyst who chooses by earlier
answers combines the better halves of several plans. So the f-sweep is applied to caps beforehand,
which covers every adaptive choice within them. Where a bound for series of every length grants as
much as that of the given length, up to 1 %, it is the cap, so that the series grows freely.
Otherwise the cap is that of the given length, and the series cannot grow after its first release:
choosing by earlier answers between the caps of two lengths would exceed δ.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from quiltwork.beliefs import Belief, Gaussian
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_down, float_up
from quiltwork.influence.calibration_arguments import LONGEST
from quiltwork.influence.tradeoffs.curves import gaussian_epsilon, gaussian_level
from quiltwork.influence.tradeoffs.noise_level import (
    epsilon_of_level,
    holds_for_every_length,
    largest_level,
)
from quiltwork.influence.tradeoffs.sweep import SHORT, Window

_PRICE_OF_GROWTH = 0.99
"""A cap for every length is taken if it is at least this share of that of the given length."""


@dataclass(frozen=True)
class Cap:
    """The most that every time point may spend.

    Attributes:
        level: μ of all Gaussian releases together, rounded down; inf where there is no secret.
        alone: the level if time points were independent.
        method: how it was computed: "f-sweep", "group", or "gaussian" for Gaussian beliefs.
        unlimited: whether it holds for series of every length.
    """

    level: float
    alone: float
    method: str
    unlimited: bool

    @property
    def square(self) -> Fraction:
        """The largest allowed sum of squared levels."""
        return Fraction(10**100) if math.isinf(self.level) else Fraction(self.level) ** 2


@dataclass(frozen=True)
class GaussianBudget:
    """The budget of a claim of (ε, δ): ε as `budget`, δ, a share for pure levels, and the cap.

    `budget` and `cap` are None for a plan fixed beforehand, which has no limit.
    """

    budget: Fraction | None
    delta: Fraction
    pure: Fraction = Fraction(0)
    cap: Cap | None = None

    @classmethod
    def compute(
        cls,
        secrets: Secrets,
        budget: Fraction | None,
        delta: Fraction,
        pure: Fraction,
        *,
        is_final: bool = False,
    ) -> GaussianBudget:
        """Compute the cap, before anything is released; `is_final` if the length is final.

        Raises:
            InvalidInputError: for a share of pure levels without a budget.
            UnsupportedError: if that share leaves nothing to Gaussian noise, and for networks.
        """
        if budget is None:
            if pure:
                raise InvalidInputError("pure is a share of a budget; give budget=, too.")
            return cls(None, delta)
        cap = (cap_of_length if is_final else cap_of)(secrets, budget, delta, pure)
        if not cap.level:
            raise UnsupportedError(
                f"A share of {float(pure):g} for pure releases leaves nothing of ε = "
                f"{float(budget):g} to Gaussian noise under these beliefs; keep a smaller share."
            )
        return cls(budget, delta, pure, cap)


def cap_of(secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction) -> Cap:
    """Return the cap of a series that may grow, under the worst of several beliefs.

    That for every length where it costs at most 1 %, otherwise that of the given length. A series
    of no more than one secret has not begun (a curator creates it before its rows arrive): it must
    be able to grow, and takes the cap for every length wherever there is one.
    Cost: some four f-sweeps for each belief, twice for up to 48 time points.

    Raises:
        UnsupportedError: for networks, which have no order in time.
    """
    final = cap_of_length(secrets, epsilon, delta, pure)
    if final.unlimited or any(bound.belief.length is not None for bound in secrets.bounds):
        return final
    has_begun = secrets.length > secrets.episode
    least = final.level * _PRICE_OF_GROWTH if has_begun else 0.0
    if has_begun and secrets.length < SHORT:
        # a longer series grants no more, and short ones are swept at once however slowly they mix
        longer = Window(1, SHORT, SHORT, secrets.episode)
        if _least(secrets, epsilon, delta, pure, longer).level < least:
            return final
    endless = cap_of_every_length(secrets, epsilon, delta, pure)
    allows_growth = endless is not None and endless.level and endless.level >= least
    return endless if endless is not None and allows_growth else final


def cap_of_length(secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction) -> Cap:
    """Return the cap of a series of the given length, beside pure levels up to `pure`."""
    series = Window(1, secrets.length, secrets.length, secrets.episode)
    return _least(secrets, epsilon, delta, pure, series)


def cap_of_every_length(
    secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction
) -> Cap | None:
    """Return the cap for series of every length; None if a belief has none."""
    if any(bound.belief.length is not None for bound in secrets.bounds):
        return None
    endless = Window(1, LONGEST, LONGEST, secrets.episode)
    cap = _least(secrets, epsilon, delta, pure, endless)
    return cap if cap.unlimited else None


def _least(
    secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction, window: Window
) -> Cap:
    """Return the least cap of any belief; it holds for every length if all of them do."""
    rounded = float_down(epsilon), float_down(delta), float_up(pure)
    caps = [_cap(bound.belief, window, *rounded) for bound in secrets.bounds]
    least = min(caps, key=lambda cap: cap.level)
    return replace(least, unlimited=all(cap.unlimited for cap in caps))


def _cap(belief: Belief, window: Window, epsilon: float, delta: float, pure: float) -> Cap:
    if isinstance(belief, Gaussian):
        alone = gaussian_level(epsilon, delta, pure)
        return Cap(alone, alone, "gaussian", True)
    largest = largest_level(belief, window, epsilon, delta, pure)
    unlimited = largest.method == "f-sweep" and holds_for_every_length(belief, window)
    return Cap(largest.level, largest.alone, largest.method, unlimited)


def epsilon_of_plan(
    secrets: Secrets, square: Fraction, used: tuple[int, int], delta: Fraction
) -> float:
    """Return ε, at this δ, of releases that were all fixed beforehand; rounded up.

    Every time point of the window `used` is charged like the one that pays most: `square`. So a
    large level on one point and small ones on others give a total far above the leakage.
    """
    level, delta_down = float_up(square) ** 0.5 * (1 + 2.0**-50), float_down(delta)
    window = Window(*used, secrets.length, secrets.episode)
    return max(
        gaussian_epsilon(level, delta_down)
        if isinstance(bound.belief, Gaussian)
        else epsilon_of_level(bound.belief, window, level, delta_down)
        for bound in secrets.bounds
    )
