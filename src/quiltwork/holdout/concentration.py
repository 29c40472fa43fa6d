"""How close answers on the holdout are to the truth: of fixed questions, and of few possible ones.

Every bound has the form P(|Q(X) − E Q(X)| ≥ τ) ≤ 2·exp(−rate·n·τ²). Independence is never assumed
unless the belief says so: n copies of one coin satisfy the paper's formulae and miss by ½ every
time. O(n) for clusters, O(k³) for chains.

Answers of few values leave few questions that could ever be asked. Let at most B answers come from
the holdout, each rounded to one of g+1 public values, and all others from the training set. For
fixed coins the analyst's questions then form a tree of at most N = Σ_{b<B} C(m, b+1)·(g+1)^b nodes,
and one union bound covers them all: no noise, no max-information, any dependence under which a
fixed question has a rate. Closed formulae, with a sum of up to 4,096 terms.

Theorem: docs/theory/concentration.md, docs/theory/counting.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    """

    rate: float
    theorem: str

    def tail(self, rows: int, tolerance: float) -> float:
        """Return the bound on the probability of an error of `tolerance` or more."""
        return min(1.0, 2 * math.exp(-self.rate * rows * max(tolerance, 0.0) ** 2))

    def width(self, rows: int, log_questions: float, failure: float) -> float:
        """Return w with P(some of N fixed questions is off by w or more) ≤ failure, from ln N.

        κnw² = ln(2N/β), and what rounding values of rows to steps may add.
        """
        exponent = math.log(2 / failure) + log_questions
        return math.sqrt(exponent / (self.rate * rows)) * (1 + 2.0**-40) + _ROUNDING

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
        return Concentration(2.0, "Hoeffding's inequality for independent rows")
    found = [_of_one(belief, means_only) for belief in as_beliefs(beliefs)]
    return min(found, key=lambda one: one.rate)


def _of_one(belief: Belief, means_only: bool) -> Concentration:
    if isinstance(belief, Clusters):
        sizes = belief.sizes.astype(float)
        share = float(sizes.sum() / (sizes @ sizes))
        return Concentration(2 * share * _DOWN, "Hoeffding's inequality for independent clusters")
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
    from quiltwork.influence.quilts.dobrushin import interdependence

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


_UP = 1 + 2.0**-40
_MOST_TERMS = 4096


def log_possible_questions(queries: int, overfits: int, values: int) -> float:
    """Return ln N, rounded up: how many questions the analyst could ever ask, as a logarithm.

    A question is known from the places of the b < B answers that came from the holdout before it,
    and from their values: C(i−1, b)·(g+1)^b for the i-th, which adds up to C(m, b+1)·(g+1)^b.

    Theorem: docs/theory/counting.md

    >>> from math import comb, log
    >>> exact = log(sum(comb(100, b + 1) * 8**b for b in range(5)))
    >>> abs(log_possible_questions(100, 5, 7) - exact) < 1e-9
    True
    """
    rounds, answers = min(overfits, queries), math.log(values + 1)
    everything = queries * math.log(values + 2) - answers  # Σ_{b<m}, by the binomial theorem
    if rounds > _MOST_TERMS:
        # Terms grow up to b ≈ m(g+1)/(g+2), and ln C(m, j) is at most m times the entropy of j/m.
        growing = rounds * (values + 2) <= queries * (values + 1)
        last = _log_choose(queries, rounds) + (rounds - 1) * answers
        found = min(everything, math.log(rounds) + last) if growing else everything
    else:
        step = np.arange(1, rounds, dtype=float)
        ratios = np.log(np.maximum(queries - step, 0.5)) - np.log(step + 1) + answers
        terms = np.concatenate([[0.0], np.cumsum(ratios)]) + math.log(queries)
        largest = float(terms.max())
        found = largest + math.log(float(np.exp(terms - largest).sum()))
    return max(0.0, min(found, everything)) * _UP + 2.0**-30


def _log_choose(top: int, chosen: int) -> float:
    """Bound ln C(m, j) by m·H(j/m)."""
    rest = top - chosen
    return chosen * math.log(top / chosen) + (rest * math.log(top / rest) if rest else 0.0)


def counting_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    queries: int,
    overfits: int,
    values: int,
    failure: float,
    means_only: bool = True,
) -> float:
    """Return w with P(∃ a question that is ever asked: |Q(X) − Q(P)| ≥ w) ≤ failure.

    Theorem: docs/theory/counting.md
    """
    possible = log_possible_questions(queries, overfits, values)
    return concentration(beliefs, means_only).width(rows, possible, failure)


def fresh_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the width if the rows are split into m parts, one for each question.

    Clusters of one size stay whole; infinite where there is less than one row, or one cluster, for
    a question. Rows in time and networks are refused: their parts tell about each other.
    """
    sizes = [
        int(belief.largest)
        for belief in as_beliefs(beliefs or Clusters([0]))
        if isinstance(belief, Clusters) and belief.sizes.min() == belief.largest
    ]
    if beliefs is not None and len(sizes) < len(as_beliefs(beliefs)):
        raise UnsupportedError(
            "Parts of rows that depend on each other in time or in a network tell about each "
            "other, so no bound is proven for fresh parts of them; clusters must be of one size. "
            "Take counting."
        )
    part = min(rows // size // questions * size for size in sizes)
    rate = concentration(beliefs).rate
    return math.sqrt(math.log(2 * questions / beta) / (rate * part)) if part else math.inf
