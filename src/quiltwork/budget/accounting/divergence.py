"""Theorem 3.6's E for two noisy counts on a chain: the distance of their joint law from a product.

Given a secret, two answers from one series are dependent. E bounds the logarithm of their joint
density over the product of both densities, in both directions. With Laplace or geometric noise of
one scale the ratio is monotone in each answer between two values of its count and constant beyond
them, so its extremes lie on the grid of all pairs of values.

Cost: O(length·k²·a·b) for the joint laws of counts of at most a and b, and O(length·k·a²·b²) for
joining both sides of every secret.

Theorem: docs/theory/composition.md (Theorem 3.6)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import instance
from quiltwork.beliefs import Belief, MarkovChain, as_beliefs
from quiltwork.beliefs.evolution import ordered_product
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.queries import Count

_MOST_CELLS = 1 << 12
_MARGIN = 1 + 1e-9

ScaledCount = tuple[Count, Number]


def count_divergence(
    beliefs: Belief | Sequence[Belief], length: int, first: ScaledCount, second: ScaledCount
) -> float:
    """Return Theorem 3.6's E for two counts with noise, for every secret and belief; rounded up.

    Args:
        beliefs: one chain or several, with known starts.
        length: the number of time points.
        first: a count on its window, and the scale of the Laplace or geometric noise added to it.
        second: another, or the same again.

    Raises:
        InvalidInputError: for anything but a pair of a count and a scale, and for invalid windows
            and scales.
        UnsupportedError: for beliefs other than chains with a known start, and for windows so long
            that the joint laws have more than 4,096 cells.

    >>> from quiltwork.queries import count
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> morning = count(1).on(1, 5)
    >>> for later in (count(1).on(6, 10), count(1).on(15, 19)):
    ...     print(round(count_divergence(chain, 30, (morning, 4), (later, 4)), 5))
    0.0305
    6e-05

    Theorem: docs/theory/composition.md (Theorem 3.6)
    """
    points = integer(length, "length", 1)
    scaled = [_scaled_count(first, "first"), _scaled_count(second, "second")]
    queries = tuple(query for query, _ in scaled)
    kernels = [_kernel(scale, query.points(points)) for query, scale in scaled]
    cells = (queries[0].points(points) + 1) * (queries[1].points(points) + 1)
    if cells > _MOST_CELLS:
        raise UnsupportedError(
            f"The joint law of both counts has {cells:,} cells; up to {_MOST_CELLS:,} are "
            "computed. Ask about shorter windows, or use an Accountant, which takes any."
        )
    chains = [_with_known_start(belief) for belief in as_beliefs(beliefs)]
    worst = max(
        _log_ratio(law, *kernels) for chain in chains for law in _laws(chain, points, queries)
    )
    return worst * _MARGIN + 1e-12


def _scaled_count(pair: ScaledCount, name: str) -> ScaledCount:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidInputError(
            f"`{name}` is a pair: a count and the scale of its noise, as in (count('walk'), 4)."
        )
    return instance(pair[0], Count, "A count"), pair[1]


def _with_known_start(belief: Belief) -> MarkovChain:
    if not isinstance(belief, MarkovChain) or str(belief.initial) == "any":
        raise UnsupportedError(
            "The divergence of two counts is computed for chains with a known start; under other "
            "beliefs use an Accountant, which needs none."
        )
    return belief


def _kernel(scale: Number, most: int) -> NDArray[np.float64]:
    """Return the weights of answers 0..most (rows) given values 0..most, up to a constant."""
    values = np.arange(most + 1)
    distance = np.abs(values[:, np.newaxis] - values)
    return np.asarray(np.exp(-distance / float(positive_fraction(scale, "scale"))))


def _laws(chain: MarkovChain, length: int, queries: tuple[Count, ...]) -> list[NDArray[np.float64]]:
    """Return the joint law of both counts given each possible state of each time point."""
    from scipy.signal import convolve2d

    states = list(chain.states)
    all_hits = [np.zeros((length + 1, len(states)), dtype=np.int64) for _ in queries]
    for query, hits in zip(queries, all_hits, strict=True):
        query.check(chain.states)
        for start, stop in query.windows(length):
            hits[start : stop + 1, states.index(query.state)] = 1
    shape = tuple(query.points(length) + 1 for query in queries)

    def shifted(law: NDArray[np.float64], node: int, state: int) -> NDArray[np.float64]:
        """Return the law of the counts with this time point included."""
        for axis, hits in enumerate(all_hits):
            if hits[node, state]:
                law = np.roll(law, 1, axis=axis)  # the last row is 0: no count is that large yet
        return law

    before = [np.zeros((len(states), *shape))]
    before[0][:, 0, 0] = chain.marginal(1)
    for node in range(1, length + 1):
        if node > 1:
            before.append(np.einsum("xab,xy->yab", before[-1], chain.transition))
        for state in range(len(states)):
            before[-1][state] = shifted(before[-1][state], node, state)
    after = np.zeros((len(states), *shape))
    after[:, 0, 0] = 1.0
    laws = []
    for node in range(length, 0, -1):
        for state in range(len(states)):
            mass = before[node - 1][state]
            if mass.sum() > 0:
                joined = convolve2d(mass / mass.sum(), after[state])
                laws.append(joined[: shape[0], : shape[1]])
        moved = np.stack([shifted(after[state], node, state) for state in range(len(states))])
        after = np.einsum("xy,yab->xab", chain.transition, moved)
    return laws


def _log_ratio(
    law: NDArray[np.float64], first: NDArray[np.float64], second: NDArray[np.float64]
) -> float:
    """Return the largest |log| ratio of the joint density to the product of the two densities.

    Infinite where the noise is so small that densities are below the least float.
    """
    joint = ordered_product(ordered_product(first, law), second.T)
    marginals = ordered_product(first, law.sum(axis=1)), ordered_product(second, law.sum(axis=0))
    product = np.outer(*marginals)
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = float(np.abs(np.log(joint / product)).max())
    return math.inf if math.isnan(worst) else worst
