"""The holdout paper's definitions, applied literally to tables of probabilities.

`leakage` is equation (3), the leakage to an adversary who knows some rows; `influence` is (6), the
conditional max-influence, and (5) if nothing is known. Both enumerate all databases, so tables have
few rows. `rows_of_theorem_1` is n_# of (8) for a belief, by Lemma 2 or 4; `paper_quilt_rows` is
n_# for a quilt, and n_* of (7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief
from quiltwork.influence import dp_for_bayesian_dp

Table = NDArray[np.float64]
LEMMA_1 = 0.92
"""ε ≤ .92·√κ·τ gives P(|Q(X) − Q(P)| ≥ τ) ≤ 4·exp(−κnτ²/4): Lemma 1 with its constant corrected."""


def chain_table(start: Sequence[float], transition: Sequence[Sequence[float]], rows: int) -> Table:
    """Return the joint probabilities of a chain, one axis for each row."""
    joint = np.asarray(start, dtype=float)
    for _ in range(rows - 1):
        joint = joint[..., None] * np.asarray(transition, dtype=float)
    return joint


def randomized_response(shape: Sequence[int], level: float) -> Table:
    """Return P(y | x) if every row of two states is released by randomized response; axes x, y."""
    true = math.exp(level) / (1 + math.exp(level))
    answer = np.array([[true, 1 - true], [1 - true, true]])
    kernel = np.ones((2,) * (2 * len(shape)))
    for x in product(range(2), repeat=len(shape)):
        for y in product(range(2), repeat=len(shape)):
            kernel[(*x, *y)] = math.prod(answer[a, b] for a, b in zip(x, y, strict=True))
    return kernel


def leakage(joint: Table, kernel: Table, target: int, known: Sequence[int]) -> float:
    """Return equation (3): the supremum of ln P(y | x_i, x_S)/P(y | x_i', x_S) for A(i, S).

    For events the supremum is the same as for single outputs. Values of probability 0 are left out.

    >>> fair = chain_table([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], 2)
    >>> round(leakage(fair, randomized_response((2, 2), 0.5), 0, [1]), 6)
    0.5
    """
    rows, worst = joint.ndim, 0.0
    for values in _values(joint.shape, known):
        laws = []
        for value in range(joint.shape[target]):
            at = _at(rows, {target: value, **dict(zip(known, values, strict=True))})
            weights = joint[at]
            if weights.sum() > 0:
                outputs = (weights[(..., *[None] * rows)] * kernel[at]).reshape(
                    -1, *kernel.shape[rows:]
                )
                laws.append(outputs.sum(axis=0) / weights.sum())
        for first, second in product(laws, repeat=2):
            worst = max(worst, float(np.log(first / second).max()))
    return worst


def influence(joint: Table, target: int, others: Sequence[int], given: Sequence[int] = ()) -> float:
    """Return equation (6): ln max P(x_S | x_i, x_K)/P(x_S | x_i', x_K); (5) if `given` is empty."""
    rows, worst = joint.ndim, 0.0
    for known in _values(joint.shape, given):
        laws = []
        for value in range(joint.shape[target]):
            part = joint[_at(rows, {target: value, **dict(zip(given, known, strict=True))})]
            free = [axis for axis in range(rows) if axis != target and axis not in given]
            law = part.sum(axis=tuple(i for i, axis in enumerate(free) if axis not in others))
            if law.sum() > 0:
                laws.append(law / law.sum())
        for first, second in product(laws, repeat=2):
            worst = max(worst, _ratio(np.atleast_1d(first), np.atleast_1d(second)))
    return worst


def adversaries(rows: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield all adversaries A(i, S)."""
    for target in range(rows):
        rest = [row for row in range(rows) if row != target]
        for size in range(rows):
            yield from ((target, known) for known in combinations(rest, size))


def rows_of_theorem_1(
    belief: Belief | None, budget: int, noise: float, tolerance: float, beta: float, length: int
) -> float:
    """Return n_# of (8): the larger of 9B/(4σε'), ε' by Lemmas 2 to 4 at τ/3, and 9·ln(4/β)/τ²."""
    third = tolerance / 3
    level = third
    if belief is not None:
        fixed = belief.length is not None
        level = float(
            dp_for_bayesian_dp(belief, third, length=None if fixed else length, bound="paper")
        )
    return max(9 * math.log(4 / beta) / tolerance**2, 9 * budget / (4 * noise * level))


def paper_quilt_rows(
    budget: int,
    noise: float,
    tolerance: float,
    beta: float,
    nearby: int = 1,
    influence: float = 0.0,
) -> float:
    """Return n_# of equation (8) for quilts that leave `nearby` rows, the row itself included.

    With one nearby row it is n_* of equation (7), the influence being that of a row's Markov
    blanket. Infinite where the influence b is too large (4b ≥ τ/3). As printed both hold for
    independent rows only.

    >>> import math
    >>> round(paper_quilt_rows(5, 0.05 / (12 * math.log(8000)), 0.0125, 0.05 / 200))
    5823704
    """
    room = tolerance / 3 - 4 * influence
    privacy = 9 * budget * nearby / (4 * noise * room) if room > 0 else math.inf
    return max(9 * math.log(4 / beta) / tolerance**2, privacy)


def lemma_1_rows(rate: float, budget: int, noise: float, tolerance: float, beta: float) -> float:
    """Return the rows that Lemma 1 needs with its constant corrected, at concentration rate κ.

    For clusters, `rate` is that of their mix of sizes.

    Theorem: docs/theory/max-information.md

    >>> import math
    >>> math.ceil(lemma_1_rows(2, 5, 0.05 / (12 * math.log(8000)), 0.0125, 0.05 / 200))
    1492022
    """
    share = rate / 2  # n becomes n/s for clusters of s rows, whose level is s times as large
    privacy = 9 * budget / (4 * noise * LEMMA_1 * math.sqrt(2) * tolerance * share)
    return max(4 * math.log(4 / beta) / (rate * tolerance**2), privacy)


def _values(shape: Sequence[int], axes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    yield from product(*(range(shape[axis]) for axis in axes))


def _at(rows: int, fixed: dict[int, int]) -> tuple[Any, ...]:
    return tuple(fixed.get(axis, slice(None)) for axis in range(rows))


def _ratio(law: Table, other_law: Table) -> float:
    possible = law > 0
    if (other_law[possible] == 0).any():
        return math.inf
    return float(np.log(law[possible] / other_law[possible]).max())
