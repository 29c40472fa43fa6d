"""Theorem 3.4: two Pufferfish releases of level ε that together exceed 2ε.

A chain X_1, X_2 of two states with P(X_2=1|X_1=1) = p and P(X_2=1|X_1=0) = q; the sum X_1 + X_2 is
released twice with Laplace noise of scale 1, and X_1 is the secret. S is the worst likelihood
ratio of one answer, D that of two. With p = .9 and q = .01, S² = e²·6.2672 and D ≥ e²·6.3448.

    python -m papers.examples.theorem_3_4
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quiltwork.exact import Number, float_up, to_fraction

_VALUES = (0.0, 1.0, 2.0)
"""Likelihood ratios are monotone between the values of the sum and constant beyond."""


@dataclass(frozen=True)
class Comparison:
    """The worst likelihood ratios of one and of two answers."""

    one: float
    two: float

    @property
    def twice_the_level(self) -> float:
        """The level of two answers if levels added up."""
        return 2 * math.log(self.one)

    @property
    def level_of_both(self) -> float:
        """The level of two answers."""
        return math.log(self.two)


def density(answers: Sequence[float], probability_of_one: float, first: int) -> float:
    """Return the density of the answers given X_1 = first, up to a factor: a mixture over X_2."""

    def given(second: int) -> float:
        return math.exp(-sum(abs(w - first - second) for w in answers))

    return probability_of_one * given(1) + (1 - probability_of_one) * given(0)


def compare(p: Number, q: Number) -> Comparison:
    """Return the worst ratios over all answers, both ways."""
    after_one, after_zero = (float_up(to_fraction(x, "a probability")) for x in (p, q))

    def worst(answers: Sequence[tuple[float, ...]]) -> float:
        ratios = [density(w, after_one, 1) / density(w, after_zero, 0) for w in answers]
        return max(*ratios, *(1 / ratio for ratio in ratios))

    return Comparison(
        worst([(w,) for w in _VALUES]), worst([(u, v) for u in _VALUES for v in _VALUES])
    )


def main() -> None:
    """Print both sides of the comparison."""
    ratios = compare(0.9, 0.01)
    print("The sum X_1 + X_2 of a two-step chain, released with Laplace noise of scale 1.")
    print(f"one answer:  S = {ratios.one:.4f}, level ε = {math.log(ratios.one):.4f}")
    print(f"two answers: D = {ratios.two:.4f}, level {ratios.level_of_both:.4f}")
    print(f"S²/e² = {ratios.one**2 / math.e**2:.4f}, D/e² = {ratios.two / math.e**2:.4f}")
    print(f"2ε = {ratios.twice_the_level:.4f} is exceeded: levels of Pufferfish do not add up.")


if __name__ == "__main__":
    main()
