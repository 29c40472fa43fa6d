"""How close the answer to one fixed question is to the truth, under each belief.

Every bound has the form P(|Q(X) − E Q(X)| ≥ τ) ≤ 2·exp(−rate·n·τ²). Independence is never assumed
unless the belief says so: n copies of one coin satisfy the paper's formulae and miss by ½ every
time. Where rows, or clusters of them, are independent, the binomial tail of Chernoff holds besides,
which is sharper the nearer a mean is to 0 or 1. O(n) for clusters, O(k³) for chains.

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
"""Rates round down by more than the few float operations behind them can lose."""
_ROUNDING = 2.0**-21
"""By how much rounding values of rows to at least 2^20 steps may move a mean."""
_NARROW = 2.0**-44
_LONGEST_MEMORY = 20_000
"""Steps after which a chain that has not forgotten its state is refused by the coupling."""
_STRIDES = 64
"""Steps between two looks at a chain are at most this part of those already taken."""


@dataclass(frozen=True)
class Concentration:
    """P(|Q(X) − E Q(X)| ≥ τ) ≤ 2·exp(−rate·n·τ²) for every fixed question.

    Attributes:
        rate: κ per row; 2 for independent rows.
        theorem: whose inequality it is.
        weight: for how many independent values in [0, 1] a row counts in the binomial tail; 0 where
            none is proven.
    """

    rate: float
    theorem: str
    weight: float = 0.0

    def tail(self, rows: int, tolerance: float) -> float:
        """Return the bound on the probability of an error of `tolerance` or more."""
        return min(1.0, 2 * math.exp(-self.rate * rows * max(tolerance, 0.0) ** 2))

    def width(self, rows: int, log_questions: float, failure: float) -> float:
        """Return w with P(some of N fixed questions is off by w or more) ≤ failure, from ln N.

        κnw² = ln(2N/β), and what rounding values of rows to steps may add.
        """
        return self.width_at(rows, math.log(2 / failure) + log_questions)

    def width_at(self, rows: int, exponent: float) -> float:
        """Return the width that each side exceeds with probability e^(−exponent) at most."""
        return math.sqrt(exponent / (self.rate * rows)) * (1 + 2.0**-40) + _ROUNDING

    def upper(self, rows: int, mean: float, exponent: float) -> float:
        """Return where the truth ends if a mean is seen, but for a probability of e^(−exponent).

        The smaller of mean + √(E/κn) and the largest q with w·n·kl(mean, q) ≤ E.

        Theorem: docs/theory/concentration.md (Binomial tails)

        >>> round(concentration(None).upper(12_000, 0.85, 100), 4)
        0.8921
        """
        seen = min(mean + _ROUNDING, 1.0)
        end = min(seen + math.sqrt(exponent / (self.rate * rows)) * (1 + 2.0**-40), 1.0)
        trials = self.weight * rows
        if not trials or _divergence(seen, end) * trials <= exponent:
            return end
        inside, outside = seen, end
        while outside - inside > _NARROW:
            middle = (inside + outside) / 2
            if _divergence(seen, middle) * trials <= exponent * (1 + 2.0**-30):
                inside = middle
            else:
                outside = middle
        return outside

    def lower(self, rows: int, mean: float, exponent: float) -> float:
        """Return where the truth begins, likewise."""
        return 1 - self.upper(rows, 1 - mean, exponent)

    @property
    def independent_rows(self) -> float:
        """How many independent rows one row is worth."""
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
    found = [_of_one(belief, means_only) for belief in as_beliefs(beliefs)]
    weight = min(one.weight for one in found)
    return replace(min(found, key=lambda one: one.rate), weight=weight)


def _divergence(seen: float, true: float) -> float:
    """Return kl(seen, true) of two coins."""
    there = seen * math.log(seen / true) if seen > 0 else 0.0
    if seen >= 1:
        return there
    return there + ((1 - seen) * math.log((1 - seen) / (1 - true)) if true < 1 else math.inf)


def _of_one(belief: Belief, means_only: bool) -> Concentration:
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
    """Bound a chain from any start by how long two copies of it stay apart: κ = 2/D².

    D = Σ_k θ_k, θ_k the largest total variation distance of two rows of P^k, which never grows:
    later ones are looked at in strides of a 64th of the way, each counted as its first. It covers
    every statistic with bounded differences. O(k³·log steps), steps being those until θ falls
    below ½.
    """
    matrix = np.ascontiguousarray(transition, dtype=float)
    return _by_memory(_memory(matrix.tobytes(), len(matrix)))


@lru_cache(maxsize=16)
def _memory(matrix: bytes, size: int) -> float:
    """Bound D for a transition matrix; kept, because planning asks for it again and again."""
    transition = np.frombuffer(matrix).reshape(size, size)
    power, leap, steps, stride, total = np.eye(size), transition, 0, 1, 0.0
    while steps < _LONGEST_MEMORY:
        apart = largest_distance(power)
        if apart < 0.5:
            return total / (1 - apart)
        total += stride * apart
        power, steps = power @ leap, steps + stride
        if steps > _STRIDES * (stride + 1):
            leap, stride = leap @ transition, stride + 1
    raise UnsupportedError(
        "This chain has not forgotten its state after 20,000 steps, so no concentration "
        "inequality with a useful rate is proven for it; thin the series, or use Clusters."
    )


def forgetting(belief: MarkovChain | ChainBox, share: float) -> tuple[int, float]:
    """Return after how many steps two starts are at most `share` apart, and how far they are then.

    The distance is that of total variation, of any two rows of P^k; of a box, θ^k. Powers are
    squared, then halved: O(k³·log steps).
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
                "This chain has not forgotten its state after 20,000 steps, so no part of it is "
                "independent of the rest; keep no rows for the end."
            )
        powers.append(powers[-1] @ powers[-1])
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
            "Two chains of this box may never meet, so no concentration inequality is proven for "
            "it; narrow the box, or use Clusters."
        )
    return Concentration(2 / max(memory, 1.0) ** 2 * _DOWN, "McDiarmid's inequality by coupling")


def _distance_in_box(box: ChainBox) -> float:
    """Bound the distance of any two rows of any two matrices of the box."""
    excess = np.maximum(box.upper[:, None, :] - box.lower[None, :, :], 0).sum(axis=2)
    return min(1.0, float(excess.max()) + 2.0**-44)


def _of_network(belief: Belief) -> Concentration:
    """Bound a network by Dobrushin's matrix C: κ = 2(1−‖C‖)², for every statistic."""
    from quiltwork.holdout.dobrushin import interdependence

    found = interdependence(belief)
    norm = min(found.norm, found.column_norm)
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
