"""How far a level can move when the true chain is not the one believed.

Two bounds, and the smaller one counts. Perturbation: if every possible transition keeps its
probability within a factor e^r and the start within e^s, no level rises by more than
4·(s + (T−1)·r). Sweep: every chain in the box around the belief, from any start, leaks at most
the influence curve of that box at the plain level of the noise, whatever the length.

Theorem: docs/theory/robustness.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Literal

import numpy as np

from quiltwork.audit import leakage
from quiltwork.audit.inner import single_chains
from quiltwork.beliefs import Belief, ChainBox, MarkovChain
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, float_up, integer, shortened, to_fraction
from quiltwork.influence import influence_curve
from quiltwork.queries import Query
from quiltwork.queries.base import read_query

_ROUNDING = 1 + 2.0**-40
_MOST_CHAINS = 512


@dataclass(frozen=True)
class Robustness:
    """What noise leaks when the true chain lies within a distance of the belief.

    Attributes:
        distance: every transition probability differs by at most this.
        believed: the exact level under the beliefs.
        observed: the largest exact level found at chains that far away.
        bound: no chain that close leaks more.
        by: which bound is the smaller one.
    """

    distance: float
    believed: float
    observed: float
    bound: float
    by: Literal["perturbation", "sweep"]


def robustness(
    beliefs: Belief | Sequence[Belief],
    length: int,
    query: Query,
    scale: Number,
    distance: float,
    start_distance: float = 0.0,
) -> Robustness:
    """Bound the leakage of noise on a query at every chain near the beliefs, and look at some.

    Args:
        beliefs: one chain or several with known starts.
        length: the number of time points.
        query: what was asked.
        scale: of the noise added to its integers, > 0.
        distance: how far each transition probability may be off; impossible ones stay impossible.
        start_distance: how far each probability of the start may be off.

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> found = robustness(chain, 30, queries.count(1), 3.336, 0.01)
    >>> found.believed <= found.observed <= found.bound
    True

    Theorem: docs/theory/robustness.md
    """
    chains = single_chains(beliefs)
    points = integer(length, "length", 1)
    sigma = to_fraction(scale, "scale")
    if sigma <= 0:
        raise InvalidInputError(f"scale must be greater than 0, not {scale!r}.")
    release = [(read_query(query), sigma)]
    distance, start_distance = read_distance(distance), read_distance(start_distance)
    levels = [leakage(chain, points, release) for chain in chains]
    moved = [
        level + perturbation_bound(chain, points, distance, start_distance)
        for chain, level in zip(chains, levels, strict=True)
    ]
    boxes = [box_bound(chain, points, query, sigma, distance) for chain in chains]
    near = [
        leakage(other, points, release) for c in chains for other in shifted_chains(c, distance)
    ]
    best = [min(one, other) for one, other in zip(moved, boxes, strict=True)]
    worst = int(np.argmax(best))
    return Robustness(
        distance,
        max(levels),
        max(levels + near),
        best[worst],
        "perturbation" if moved[worst] <= boxes[worst] else "sweep",
    )


def read_distance(value: object) -> float:
    """Read how far a probability may be off, in [0, 1)."""
    distance = to_fraction(value, "A distance")
    if not 0 <= distance < 1:
        raise InvalidInputError(f"A distance must lie in [0, 1), not {shortened(value)}.")
    return float_up(distance)


def perturbation_bound(
    chain: MarkovChain, length: int, distance: float, start_distance: float = 0.0
) -> float:
    """Return 4·(s + (T−1)·r): how far a level can rise, rounded up.

    Theorem: docs/theory/robustness.md
    """
    steps = log_ratio(chain.transition, distance)
    start = log_ratio(np.asarray(chain.start), start_distance)
    return 4 * (start + (length - 1) * steps) * _ROUNDING if length > 1 else 4 * start * _ROUNDING


def log_ratio(probabilities: FloatArray, distance: float) -> float:
    """The largest |log p'/p| when a positive p moves by at most `distance`; ∞ if it may vanish.

    >>> round(log_ratio(np.array([0.9, 0.1, 0.0]), 0.05), 4)
    0.6931
    """
    smallest = float(probabilities[probabilities > 0].min())
    return -math.log1p(-distance / smallest) if distance < smallest else math.inf


def box_bound(
    chain: MarkovChain, length: int, query: Query, scale: Fraction, distance: float
) -> float:
    """Return the influence curve of the box around a chain at the noise's plain level.

    Holds for every start, and for matrices that change from step to step within the box.

    Theorem: docs/theory/robustness.md
    """
    possible = chain.transition > 0
    lower = np.where(possible, np.maximum(chain.transition - distance, 0.0), 0.0)
    upper = np.where(possible, np.minimum(chain.transition + distance, 1.0), 0.0)
    nodes = np.arange(1, length + 1)
    plain = float_up(int(query.change(nodes, nodes, length).max()) / scale)
    if plain == 0:
        return 0.0
    return influence_curve(ChainBox(lower, upper, chain.states), length).epsilon(plain)


def shifted_chains(chain: MarkovChain, distance: float) -> Iterator[MarkovChain]:
    """Yield chains with `distance` of each row's mass moved between two of its entries.

    Every entry differs by at most `distance`, and by less where it would leave [0, 1]; impossible
    transitions stay impossible. The start is kept as an array. Where there are more than 512
    combinations, all rows move the same pair.
    """
    if not 0 < distance < 1:
        raise InvalidInputError(f"distance must lie between 0 and 1, not {distance!r}.")
    moves = [_moved_rows(row, distance) for row in chain.transition]
    if np.prod([len(rows) for rows in moves], dtype=float) <= _MOST_CHAINS:
        combinations = product(*moves)
    else:
        longest = max(len(rows) for rows in moves)
        combinations = zip(*(_repeated(rows, longest) for rows in moves), strict=True)  # type: ignore[assignment]
    for rows in combinations:
        yield MarkovChain(np.array(rows), np.array(chain.start), chain.states)


def _moved_rows(row: FloatArray, distance: float) -> list[FloatArray]:
    found = [np.array(row)]
    for giver, taker in permutations(np.flatnonzero(row > 0), 2):
        moved = np.array(row)
        amount = min(distance, row[giver] / 2, (1 - row[taker]))
        moved[giver] -= amount
        moved[taker] += amount
        found.append(moved)
    return found


def _repeated(rows: list[FloatArray], number: int) -> list[FloatArray]:
    return [rows[j % len(rows)] for j in range(number)]
