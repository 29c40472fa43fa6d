"""Caps: the squares that every time point may spend, fixed before the first release.

For (ε, δ) no filter on what was reached is sound: whoever chooses by what came out adds up the
better halves of several plans. So the f-sweep is applied to caps beforehand, and any adaptive
choice within them is covered. Where there is a bound for series of every length, it is the cap, so
that a series grows freely.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.beliefs import Belief, Gaussian
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.exact import float_down, float_up
from quiltwork.influence.calibration_arguments import LONGEST
from quiltwork.influence.tradeoffs.curves import gaussian_epsilon, gaussian_level
from quiltwork.influence.tradeoffs.noise_level import epsilon_of_level, largest_level
from quiltwork.influence.tradeoffs.sweep import Window


@dataclass(frozen=True)
class Cap:
    """How much every time point may spend.

    Attributes:
        level: μ of all Gaussian releases together, rounded down; inf where nothing is unknown.
        alone: what it would be if no time point said anything about another.
        method: "f-sweep", "group", or "gaussian" for beliefs that are.
        unlimited: whether it holds for series of every length.
    """

    level: float
    alone: float
    method: str
    unlimited: bool

    @property
    def square(self) -> Fraction:
        """What squares of levels may add up to."""
        return Fraction(10**100) if math.isinf(self.level) else Fraction(self.level) ** 2


def cap_of(secrets: Secrets, epsilon: Fraction, delta: Fraction, pure: Fraction) -> Cap:
    """The cap under the worst of some beliefs, beside pure levels that add up to `pure`.

    Cost: some four f-sweeps for each belief.

    Raises:
        UnsupportedError: for networks, which have no order in time.
    """
    ends = float_down(epsilon), float_down(delta), float_up(pure)
    found = [_cap(one.belief, secrets, *ends) for one in secrets.bounds]
    return min(found, key=lambda one: (one.level, one.unlimited))


def _cap(belief: Belief, secrets: Secrets, epsilon: float, delta: float, pure: float) -> Cap:
    alone = gaussian_level(epsilon, delta, pure)
    if isinstance(belief, Gaussian):
        return Cap(alone, alone, "gaussian", True)
    if belief.length is None:
        every = Window(1, LONGEST, LONGEST, secrets.episode)
        found = largest_level(belief, every, epsilon, delta, pure)
        if found.method == "f-sweep":
            return Cap(found.level, alone, found.method, True)
    whole = Window(1, secrets.length, secrets.length, secrets.episode)
    found = largest_level(belief, whole, epsilon, delta, pure)
    return Cap(found.level, alone, found.method, False)


def epsilon_of_plan(
    secrets: Secrets, square: Fraction, used: tuple[int, int], delta: Fraction
) -> float:
    """ε at which releases that were fixed beforehand keep δ, rounded up.

    Every time point of `used` counts as the one that pays most: `square`.
    """
    level, left = float_up(square) ** 0.5 * (1 + 2.0**-50), float_down(delta)
    window = Window(*used, secrets.length, secrets.episode)
    return max(
        gaussian_epsilon(level, left)
        if isinstance(one.belief, Gaussian)
        else epsilon_of_level(one.belief, window, level, left)
        for one in secrets.bounds
    )
