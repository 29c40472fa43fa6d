"""Theorem 3.6's E for small cases: how far two noisy answers are from independent, given a secret.

With Laplace or geometric noise both the joint density of two answers and the product of their
densities are mixtures over the values of the queries. Between two values of one query, with the
other answer fixed, their ratio is monotone, and beyond the extreme values it is constant; so its
extremes lie on the grid of values of both queries.

Theorem: docs/theory/composition.md
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quiltwork.beliefs import Belief, MarkovChain, as_beliefs
from quiltwork.beliefs.matrices import read_numbers
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, shortened
from quiltwork.queries import Query
from quiltwork.queries.base import read_query

FloatArray: TypeAlias = NDArray[np.float64]

_LONGEST = 16
_MOST_PATHS = 1 << _LONGEST
_ROUNDING = 1 + 2.0**-40
_MARGIN = 2.0**-40


def max_divergence(joint: ArrayLike) -> float:
    """Return E of one secret: the largest |log joint/product| of a table of two answers' laws.

    `joint[u, v]` is proportional to the probability of the answers u and v. Infinite if a pair of
    possible answers cannot occur together.

    >>> round(max_divergence([[0.4, 0.1], [0.1, 0.4]]), 6)
    0.916291
    """
    table = read_numbers(joint, "joint", dimensions=2)
    if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
        raise InvalidInputError("joint must be a matrix of probabilities, one row per answer.")
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0] / table.sum()
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    if (table == 0).any():
        return math.inf
    return _largest_log(table, product)


def divergence(
    beliefs: Belief | Sequence[Belief],
    length: int,
    query_a: Query,
    scale_a: Number,
    query_b: Query,
    scale_b: Number,
) -> float:
    """Return Theorem 3.6's E for two queries answered with noise of these scales, rounded up.

    Covers every secret X_i = a of the series. Scales count the integers of the queries; Laplace
    and geometric noise give the same. All paths are enumerated, at most 65,536.

    Raises:
        UnsupportedError: for other beliefs than chains with a start, longer series, and queries
            with several cells.

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    >>> first, second = queries.count(1).on(1, 1), queries.count(1).on(2, 2)
    >>> round(divergence(chain, 2, first, 1, second, 1), 9)
    0.0
    """
    points = integer(length, "length", 1)
    a, b = (float_up(positive_fraction(s, "scale")) for s in (scale_a, scale_b))
    found = [
        _noisy_divergence(law, a, b)
        for belief in as_beliefs(beliefs)
        for law in _laws(belief, points, query_a, query_b)
    ]
    return max(found, default=0.0)


def _laws(
    belief: Belief, length: int, query_a: Query, query_b: Query
) -> Iterator[Mapping[tuple[int, int], float]]:
    """The law of both answers given each secret."""
    if not isinstance(belief, MarkovChain):
        raise UnsupportedError(
            f"The divergence is computed for a MarkovChain, not for {type(belief).__name__}."
        )
    if length > _LONGEST or belief.size**length > _MOST_PATHS:
        raise UnsupportedError(
            f"{belief.size}^{shortened(length)} paths are too many to enumerate (at most "
            f"{_MOST_PATHS:,}); use an Accountant, which needs no divergence."
        )
    laws: dict[tuple[int, int], dict[tuple[int, int], float]] = {}
    for path, probability in _paths(belief, length):
        codes = np.array(path, dtype=np.int64)
        answers = _one(query_a, codes, belief), _one(query_b, codes, belief)
        for secret in enumerate(path):
            law = laws.setdefault(secret, {})
            law[answers] = law.get(answers, 0.0) + probability
    return iter(laws.values())


def _paths(chain: MarkovChain, length: int) -> Iterator[tuple[tuple[int, ...], float]]:
    start, step = chain.start, chain.transition
    for path in itertools.product(range(chain.size), repeat=length):
        steps = (float(step[x, y]) for x, y in itertools.pairwise(path))
        probability = math.prod(steps, start=float(start[path[0]]))
        if probability > 0:
            yield path, probability


def _one(query: Query, codes: Any, chain: MarkovChain) -> int:
    answer = read_query(query).evaluate(codes, chain.states)
    if len(answer) != 1 or query.mechanism != "two-sided geometric":
        raise UnsupportedError(
            f"The divergence is computed for queries with one number, not for a {query.kind}."
        )
    return int(answer[0])


def _noisy_divergence(
    law: Mapping[tuple[int, int], float], scale_a: float, scale_b: float
) -> float:
    """The largest |log joint/product| of two densities on the grid of the queries' values."""
    values_a, values_b = (sorted({pair[side] for pair in law}) for side in (0, 1))
    table = np.zeros((len(values_a), len(values_b)))
    for (x, y), probability in law.items():
        table[values_a.index(x), values_b.index(y)] += probability
    table /= table.sum()
    noise_a = np.exp(-np.abs(np.subtract.outer(values_a, values_a)) / scale_a)
    noise_b = np.exp(-np.abs(np.subtract.outer(values_b, values_b)) / scale_b)
    joint = noise_a @ table @ noise_b
    product = np.outer(noise_a @ table.sum(axis=1), table.sum(axis=0) @ noise_b)
    return _largest_log(joint, product)


def _largest_log(joint: FloatArray, product: FloatArray) -> float:
    """The largest |log joint/product|, rounded up by more than floats can be off."""
    return float(np.abs(np.log(joint / product)).max()) * _ROUNDING + _MARGIN
