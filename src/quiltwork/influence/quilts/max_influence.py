"""Max-influence of one node on any set of nodes (Definition 2.2, over states that can occur).

Theorem: docs/theory/max-influence.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, ChainBox, Clusters, MarkovChain, as_beliefs
from quiltwork.beliefs.stationary import relative_error
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer
from quiltwork.influence.calibration_arguments import common_length
from quiltwork.influence.quilts.distance_bounds import smallest
from quiltwork.influence.quilts.powers import powers_of
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.influence.ratios import BoolArray, log_ratios, product_margin


def max_influence(
    beliefs: Belief | Sequence[Belief],
    node: int,
    quilt: Iterable[int],
    length: int | None = None,
) -> float:
    """Return the max-influence of X_node on the nodes in `quilt` together, rounded up.

    That is max log P(x_Q | X_i = a)/P(x_Q | X_i = b) over possible states a, b of X_i and all x_Q,
    the worst over the beliefs; +inf where one state excludes values that another allows. For a
    ChainBox it is an upper bound. O(k³ log length).

    Theorem: docs/theory/max-influence.md

    Args:
        beliefs: one belief or a list.
        node: the node, 1-based.
        quilt: any nodes but that one; () has no influence.
        length: the number of nodes; None for beliefs about fixed rows.

    Raises:
        InvalidInputError: for nodes outside 1..length, or a quilt that holds the node itself.

    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    >>> round(max_influence(chain, 8, (1, 13), length=100), 6)
    0.149532
    """
    parsed = as_beliefs(beliefs)
    points = common_length(parsed, length)
    target = _parse_node(node, "node", points)
    others = sorted(
        {_parse_node(quilt_node, "A quilt node", points) for quilt_node in listed(quilt, "quilt")}
    )
    if target in others:
        raise InvalidInputError(
            f"The quilt contains node {target} itself; name only other nodes, which separate it "
            "from the rest."
        )
    return max(quilt_influence(belief, target, others, points) for belief in parsed)


def _parse_node(value: object, name: str, length: int) -> int:
    """Return a node number between 1 and the length."""
    node = integer(value, name, 1)
    if node > length:
        raise InvalidInputError(f"{name} is {node}, but there are only {length} nodes.")
    return node


@singledispatch
def quilt_influence(belief: Any, node: int, quilt: list[int], length: int) -> float:
    """Return an upper bound on e(Q|i) for sorted quilt nodes other than i."""
    raise UnsupportedError(
        f"The influence of quilts is not defined for a {type(belief).__name__}; use a chain, "
        "clusters or a network."
    )


@quilt_influence.register
def _(belief: MarkovChain, node: int, quilt: list[int], length: int) -> float:
    states = np.asarray(belief.support(node))
    if states.sum() == 1:
        return 0.0
    before, after = _neighbours(node, quilt)
    total = np.zeros((belief.size, belief.size))
    if before is not None:
        total += _left(belief, node, before, states)
    if after is not None:
        total += powers_of(belief).forward(np.array([after - node]))[0]
    np.fill_diagonal(total, 0.0)
    result = float(total[np.ix_(states, states)].max(initial=0.0))
    return float(np.nextafter(result, np.inf)) if result > 0 else 0.0


def _left(chain: MarkovChain, node: int, before: int, states: BoolArray) -> FloatArray:
    """The influence of the nearest quilt node on the left, [x, x']."""
    start = np.asarray(chain.support(before))
    rows = chain.transition[np.asarray(chain.support(node - 1))]
    # a known node, or one independent of X_i, has no influence: exactly 0
    if start.sum() == 1 or (rows == rows[0]).all():
        return np.zeros((chain.size, chain.size))
    backward = powers_of(chain).backward(np.array([node - before]), start)[0]
    impossible = ~np.outer(states, states)
    with np.errstate(invalid="ignore"):
        total = backward + _tilt(chain, node, states)
    total[np.isnan(total)] = np.inf
    total[impossible] = 0.0
    return np.asarray(np.maximum(total, 0.0))


def _tilt(chain: MarkovChain, node: int, states: BoolArray) -> FloatArray:
    """log m(x')/m(x) for the marginal m of a node, or its worst value over all starts."""
    if isinstance(chain.initial, str) and chain.initial == "any":
        all_states = np.ones(chain.size, dtype=np.bool_)
        return np.asarray(powers_of(chain).backward(np.array([node - 1]), all_states)[0].T)
    law = chain.marginal(node)
    stationary = isinstance(chain.initial, str)
    margin = 2 * relative_error(chain.size) if stationary else product_margin(node, chain.size)
    return np.asarray(log_ratios(law, law, states) + margin)


@quilt_influence.register
def _(belief: ChainBox, node: int, quilt: list[int], length: int) -> float:
    before, after = _neighbours(node, quilt)
    total = 0.0
    if before is not None:
        total += float(smallest(belief, np.array([node - before]))[0][0])
    if after is not None:
        total += float(smallest(belief, np.array([after - node]))[1][0])
    return total * (1 + 2.0**-52)


@quilt_influence.register
def _(belief: Clusters, node: int, quilt: list[int], length: int) -> float:
    own = belief.codes[node - 1]
    return float("inf") if any(belief.codes[one - 1] == own for one in quilt) else 0.0


def _neighbours(node: int, quilt: list[int]) -> tuple[int | None, int | None]:
    """The nearest quilt node on each side: given it, those beyond add nothing."""
    before = max((other for other in quilt if other < node), default=None)
    after = min((other for other in quilt if other > node), default=None)
    return before, after
