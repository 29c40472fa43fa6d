"""Caps: the sum of squares that every time point may spend, fixed before the first release.

For (ε, δ) no filter on the reached profile is sound: an adaptive analyst who chooses by earlier
answers combines the better halves of several plans. So the f-sweep is applied to caps beforehand,
which covers every adaptive choice within them. Where there is a bound for series of every length,
it is the cap, so that a series grows freely.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.beliefs import Belief, Gaussian
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_down, float_up
from quiltwork.influence.calibration_arguments import LONGEST
from quiltwork.influence.tradeoffs.curves import gaussian_epsilon, gaussian_level
from quiltwork.influence.tradeoffs.noise_level import epsilon_of_level, largest_level
from quiltwork.influence.tradeoffs.sweep import Window


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
        cls, secrets: Secrets, budget: Fraction | None, delta: Fraction, pure: Fraction
    ) -> GaussianBudget:
        """Compute the cap, before anything is released.

        Raises:
            InvalidInputError: for a share of pure levels without a budget.
            UnsupportedError: if that share leaves nothing to Gaussian noise, and for networks.
        """
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


def cap_of(secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction) -> Cap:
    """Return the cap under the worst of several beliefs, beside pure levels up to `pure`.

    Cost: some four f-sweeps for each belief.

    Raises:
        UnsupportedError: for networks, which have no order in time.
    """
    rounded = float_down(epsilon), float_down(delta), float_up(pure)
    caps = [_cap(bound.belief, secrets, *rounded) for bound in secrets.bounds]
    return min(caps, key=lambda cap: (cap.level, cap.unlimited))


def _cap(belief: Belief, secrets: Secrets, epsilon: float, delta: float, pure: float) -> Cap:
    alone = gaussian_level(epsilon, delta, pure)
    if isinstance(belief, Gaussian):
        return Cap(alone, alone, "gaussian", True)
    if belief.length is None:
        any_length = Window(1, LONGEST, LONGEST, secrets.episode)
        largest = largest_level(belief, any_length, epsilon, delta, pure)
        if largest.method == "f-sweep":
            return Cap(largest.level, alone, largest.method, True)
    series = Window(1, secrets.length, secrets.length, secrets.episode)
    largest = largest_level(belief, series, epsilon, delta, pure)
    return Cap(largest.level, alone, largest.method, False)


def epsilon_of_plan(
    secrets: Secrets, square: Fraction, used: tuple[int, int], delta: Fraction
) -> float:
    """Return ε, at this δ, of releases that were all fixed beforehand; rounded up.

    Every time point of the window `used` is charged like the one that pays most: `square`.
    """
    level, delta_down = float_up(square) ** 0.5 * (1 + 2.0**-50), float_down(delta)
    window = Window(*used, secrets.length, secrets.episode)
    return max(
        gaussian_epsilon(level, delta_down)
        if isinstance(bound.belief, Gaussian)
        else epsilon_of_level(bound.belief, window, level, delta_down)
        for bound in secrets.bounds
    )
