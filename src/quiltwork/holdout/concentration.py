"""Concentration inequalities: the error of one fixed question's answer, under each belief.

Every bound has the form P(|Q(X) − E Q(X)| ≥ τ) ≤ 2·exp(−rate·n·τ²). Independence is assumed only if
the belief says so: n copies of one coin satisfy the paper's formulas and miss by ½ every time.
Where rows, or clusters of rows, are independent, Chernoff's binomial tail holds as well, which is
sharper for means near 0 or 1. O(n) for clusters, O(k³) for chains.

Theorem: docs/theory/concentration.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from quiltwork.beliefs import Belief, ChainBox, Clusters, MarkovChain
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import UnsupportedError

_DOWN = 1 - 2.0**-40
"""Rates are rounded down by more than the float operations behind them can lose."""
_ROUNDING = 2.0**-21
"""The largest shift of a mean from rounding row values to at least 2^20 steps."""
_NARROW = 2.0**-44
_LONGEST_MEMORY = 20_000
"""Chains that have not mixed after this many steps are refused."""
_STRIDES = 64
"""Powers of a chain are inspected at strides of at most 1/64 of the steps so far."""


@dataclass(frozen=True)
class Concentration:
    """A proven bound P(|Q(X) − E Q(X)| ≥ τ) ≤ 2·exp(−rate·n·τ²) for every fixed question.

    Attributes:
        rate: κ per row; 2 for independent rows.
        theorem: the name of the inequality.
        weight: the number of independent values in [0, 1] that a row counts for in the binomial
            tail; 0 where no such tail is proven.
    """

    rate: float
    theorem: str
    weight: float = 0.0

    def tail(self, rows: int, tolerance: float) -> float:
        """Return the bound on the probability of an error of `tolerance` or more."""
        return min(1.0, 2 * math.exp(-self.rate * rows * max(tolerance, 0.0) ** 2))

    def width(self, rows: int, log_questions: float, failure: float) -> float:
        """Return a width that no one of N fixed questions exceeds, but for `failure`; from ln N.

        It solves κnw² = ln(2N/β), plus the effect of rounding row values to steps.
        """
        return self.width_at(rows, math.log(2 / failure) + log_questions)

    def width_at(self, rows: int, exponent: float) -> float:
        """Return the width that each side exceeds with probability e^(−exponent) at most."""
        return math.sqrt(exponent / (self.rate * rows)) * (1 + 2.0**-40) + _ROUNDING

    def upper(self, rows: int, mean: float, exponent: float) -> float:
        """Return an upper bound on the true mean; it fails with probability e^(−exponent).

        The smaller of mean + √(E/κn) and the largest q with w·n·kl(mean, q) ≤ E.

        Theorem: docs/theory/concentration.md (Binomial tails)

        >>> round(concentration(None).upper(12_000, 0.85, 100), 4)
        0.8921
        """
        observed = min(mean + _ROUNDING, 1.0)
        end = min(observed + math.sqrt(exponent / (self.rate * rows)) * (1 + 2.0**-40), 1.0)
        trials = self.weight * rows
        if not trials or _divergence(observed, end) * trials <= exponent:
            return end
        inside, outside = observed, end
        # Bisection keeps the outer end, so that rounding only widens the interval.
        while outside - inside > _NARROW:
            middle = (inside + outside) / 2
            if _divergence(observed, middle) * trials <= exponent * (1 + 2.0**-30):
                inside = middle
            else:
                outside = middle
        return outside

    def lower(self, rows: int, mean: float, exponent: float) -> float:
        """Return a lower bound on the true mean, likewise."""
        return 1 - self.upper(rows, 1 - mean, exponent)

    @property
    def independent_rows(self) -> float:
        """The number of independent rows that one row is worth."""
        return self.rate / 2


def concentration(
    beliefs: Belief | Sequence[Belief] | None, means_only: bool = True
) -> Concentration:
    """Return the weakest of the beliefs' concentration bounds; None stands for independent rows.

    Theorem: docs/theory/concentration.md

    Args:
        beliefs: one belief, a list, or None.
        means_only: False asks for a bound that also covers statistics with a declared
            sensitivity, which costs chains some of their rate.

    >>> concentration(None).rate
    2.0
    >>> round(concentration(Clusters(["a", "a", "b", "b"])).rate, 6)
    1.0
    """
    if beliefs is None:
        return Concentration(2.0, "Hoeffding's inequality for independent rows", 1.0)
    bounds = [_concentration_of(belief, means_only) for belief in as_beliefs(beliefs)]
    weight = min(bound.weight for bound in bounds)
    return replace(min(bounds, key=lambda bound: bound.rate), weight=weight)


def _divergence(observed: float, true: float) -> float:
    """Return kl(observed, true), the relative entropy of two coins."""
    heads = observed * math.log(observed / true) if observed > 0 else 0.0
    if observed >= 1:
        return heads
    return heads + (
        (1 - observed) * math.log((1 - observed) / (1 - true)) if true < 1 else math.inf
    )


def _concentration_of(belief: Belief, means_only: bool) -> Concentration:
    if isinstance(belief, Clusters):
        sizes = belief.sizes.astype(float)
        share = float(sizes.sum() / (sizes @ sizes))
        theorem = "Hoeffding's inequality for independent clusters"
        return Concentration(2 * share * _DOWN, theorem, _DOWN / belief.largest)
    if isinstance(belief, MarkovChain):
        stationary = isinstance(belief.initial, str) and belief.initial == "stationary"
        if stationary and means_only and belief.second_singular_value < 1:
            return spectral(belief)
        return coupling(belief.transition)
    if isinstance(belief, ChainBox):
        return _by_memory(1 / (1 - _distance_in_box(belief)) if _distance_in_box(belief) < 1 else 0)
    return _of_network(belief)


def spectral(chain: MarkovChain) -> Concentration:
    """Bound a stationary chain by its gap: κ = 2(1−λ)/(1+λ), λ the norm of P on mean-0 functions.

    λ is the absolute second eigenvalue of a reversible chain, and the second singular value of
    D^½PD^−½ of any other. Rows may be valued by functions that change with time, so a negative
    eigenvalue does not help. O(k³).

    Theorem: docs/theory/concentration.md
    """
    norm = chain.second_singular_value
    rate = 2 * (1 - norm) / (1 + norm) * _DOWN
    return Concentration(rate, "the spectral Hoeffding inequality for stationary chains")


def coupling(transition: FloatArray) -> Concentration:
    """Bound a chain from any start by its mixing: κ = 2/D², D = Σ_k θ_k.

    θ_k is the largest total variation distance of two rows of P^k, which never grows: later ones
    are inspected at strides of 1/64 of the way, each counted as its first. The bound covers every
    statistic with bounded differences. O(k³·log steps), until θ falls below ½.
    """
    matrix = np.ascontiguousarray(transition, dtype=float)
    return _by_memory(_memory(matrix.tobytes(), len(matrix)))


@lru_cache(maxsize=16)
def _memory(matrix: bytes, size: int) -> float:
    """Bound D for a transition matrix; cached, because planning asks for it repeatedly."""
    transition = np.frombuffer(matrix).reshape(size, size)
    power, leap, steps, stride, total = np.eye(size), transition, 0, 1, 0.0
    while steps < _LONGEST_MEMORY:
        distance = largest_distance(power)
        if distance < 0.5:
            return total / (1 - distance)
        total += stride * distance
        power, steps = power @ leap, steps + stride
        if steps > _STRIDES * (stride + 1):
            leap, stride = leap @ transition, stride + 1
    raise UnsupportedError(
        "This chain still depends on its state after 20,000 steps, so no concentration "
        "inequality with a useful rate is proven for it; thin the series, or use Clusters."
    )


def mixing_steps(belief: MarkovChain | ChainBox, share: float) -> tuple[int, float]:
    """Return the steps after which any two starts are within `share`, and their distance.

    Distance is total variation, of any two rows of P^k; for a box, θ^k. Powers are squared, then
    bisected: O(k³·log steps).
    """
    if isinstance(belief, ChainBox):
        step = _distance_in_box(belief)
        if step >= 1:
            _by_memory(0.0)
        steps = 1 if step <= share else math.ceil(math.log(share) / math.log(step)) + 1
        return steps, step**steps
    powers = [np.ascontiguousarray(belief.transition, dtype=float)]
    while largest_distance(powers[-1]) > share:
        if 1 << len(powers) > _LONGEST_MEMORY:
            raise UnsupportedError(
                "This chain still depends on its state after 20,000 steps, so no part of it is "
                "independent of the rest; keep no rows apart for the final ranking (final=0)."
            )
        powers.append(powers[-1] @ powers[-1])
    # From the largest power down: the last number of steps that is still too few.
    steps, reached = 0, np.eye(len(powers[0]))
    for at in reversed(range(len(powers) - 1)):
        further = reached @ powers[at]
        if largest_distance(further) > share:
            steps, reached = steps + (1 << at), further
    return steps + 1, largest_distance(reached @ powers[0])


def largest_distance(rows: FloatArray) -> float:
    """Return the largest total variation distance of two rows, rounded up. O(k³)."""
    if len(rows) == 1:
        return 0.0
    worst = max(float(np.maximum(rows[i] - rows[:i], 0).sum(1).max()) for i in range(1, len(rows)))
    return min(1.0, worst + 2.0**-44)


def _by_memory(memory: float) -> Concentration:
    if memory <= 0:
        raise UnsupportedError(
            "Two chains of this box may never coalesce, so no concentration inequality is proven "
            "for it; narrow the box, or use Clusters."
        )
    return Concentration(2 / max(memory, 1.0) ** 2 * _DOWN, "McDiarmid's inequality by coupling")


def _distance_in_box(box: ChainBox) -> float:
    """Bound the distance of any two rows of any two matrices of the box."""
    excess = np.maximum(box.upper[:, None, :] - box.lower[None, :, :], 0).sum(axis=2)
    return min(1.0, float(excess.max()) + 2.0**-44)


def _of_network(belief: Belief) -> Concentration:
    """Bound a network by Dobrushin's matrix C: κ = 2(1−‖C‖)², for every statistic."""
    from quiltwork.holdout.dobrushin import interdependence

    dependence = interdependence(belief)
    norm = min(dependence.norm, dependence.column_norm)
    if norm >= 1:
        raise UnsupportedError(
            f"The rows of this {type(belief).__name__} depend on each other too much for "
            f"Dobrushin's condition (its norm is {norm:.3g}, and must be below 1), so no "
            "concentration inequality is proven. Use Clusters whose labels join all rows that may "
            "depend on each other."
        )
    return Concentration(
        2 * (1 - norm) ** 2 * _DOWN, "McDiarmid's inequality under Dobrushin's condition"
    )
