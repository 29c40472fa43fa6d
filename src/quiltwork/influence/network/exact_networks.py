"""Exact influence in a network, from the tables of variable elimination.

The tables around node i alone determine the ratios of P(x_Q, x_i) between two values of X_i; the
remote part determines which x_Q are possible, and the marginal of X_i the rest. Log-ratios are
rounded up by the rounding error of an entry.

Theorem: docs/theory/networks.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from quiltwork.beliefs import Network
from quiltwork.beliefs.elimination import MOST_ENTRIES, Weights, eliminate
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.influence.network.separators import Quilt
from quiltwork.influence.quilts.max_influence import quilt_influence
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.influence.ratios import BoolArray, row_ratios

_UNIT = 2.0**-52
_LOG_ERROR = 2.0**-50
_SEARCH_ENTRIES = 1 << 14


def conditional_influence(
    network: Network, node: int, quilt: Sequence[int], given: Sequence[int] = ()
) -> float:
    """Return I(X_Q ⇝ X_i | X_L), rounded up: the influence of Q on node i for an adversary who
    knows L.

    That is max log P(x_Q | x_i, x_L)/P(x_Q | x_i', x_L) over possible values, by elimination; nodes
    are 1-based. Its cost is that of the largest table.

    Theorem: docs/theory/networks.md

    Raises:
        InvalidInputError: for nodes that do not exist or are named twice.
        UnsupportedError: if a table of more than 2^22 entries would be needed.
    """
    nodes = [integer(number, "A node", 1) for number in (node, *quilt, *given)]
    for number in nodes:
        if number > network.length:
            raise InvalidInputError(
                f"A node is {number}, but there are only {network.length} nodes."
            )
    if len(set(nodes)) < len(nodes):
        raise InvalidInputError(
            "The node, its quilt and the known nodes must all differ, and one is named twice."
        )
    places = [number - 1 for number in nodes]
    return influence_given(network.joint(places), len(quilt))


def influence_given(joint: Weights, quilt: int) -> float:
    """Return the largest influence in P(x_i, x_Q, x_L), where `quilt` axes after the
    first are Q.
    """
    values, support = by_known(joint, quilt)
    if values.shape[2] == 1:
        return 0.0
    law, possible = values.sum(axis=2), np.asarray(support.any(axis=2))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        total = row_ratios(values, support) + (logs[:, np.newaxis, :] - logs[:, :, np.newaxis])
    total = between_possible(total, possible)
    # every entry of a table is off by its roundings, in numerator and denominator
    margin = 8 * (joint.roundings + values.shape[2]) * _UNIT
    return rounded_up(float(total.max(initial=0.0)), margin + _LOG_ERROR * _size(logs))


def by_known(table: Weights, free: int) -> tuple[FloatArray, BoolArray]:
    """Return a table and its support as [known values, state of the node, free values]."""
    shape = table.values.shape
    middle = math.prod(shape[1 : 1 + free])
    values = table.values.reshape(shape[0], middle, -1).transpose(2, 0, 1)
    support = table.support().reshape(shape[0], middle, -1).transpose(2, 0, 1)
    return values, support


def between_possible(ratios: FloatArray, possible: BoolArray) -> FloatArray:
    """Keep ratios between two different possible states; NaN counts as +∞."""
    both = possible[:, :, np.newaxis] & possible[:, np.newaxis, :]
    both &= ~np.eye(possible.shape[1], dtype=np.bool_)
    return np.where(both, np.where(np.isnan(ratios), np.inf, ratios), 0.0)


def _size(logs: FloatArray) -> float:
    """The largest finite logarithm, in absolute value."""
    finite = logs[np.isfinite(logs)]
    return float(np.abs(finite).max(initial=0.0))


def rounded_up(value: float, margin: float) -> float:
    """Round up by a margin."""
    return value * (1 + _LOG_ERROR) + margin


def around(network: Network, quilt: Quilt) -> Weights:
    """Return the table over (node, separator) from the factors around the node.

    Raises:
        UnsupportedError: if a table of more than 2^14 entries would be needed (2^22 for the
            blanket): there are many quilts to compute.
    """
    tables = [
        table
        for table in network.tables
        if quilt.core.intersection(table.scope)
        and not (network.directed and table.scope[-1] in quilt.barren)
    ]
    most = MOST_ENTRIES if len(quilt.nearby) == 1 else _SEARCH_ENTRIES
    return eliminate(tables, (quilt.node, *sorted(quilt.separator)), network.sizes, most)


def quilt_ratios(table: Weights, states: BoolArray) -> tuple[FloatArray, float]:
    """Return max_q log ψ(x,q)/ψ(x',q) between possible states, and the margin to add."""
    rows = len(states)
    values = table.values.reshape(rows, -1)[states]
    support = table.support().reshape(rows, -1)[states]
    ratios = row_ratios(values[np.newaxis], support[np.newaxis])[0]
    np.fill_diagonal(ratios, 0.0)
    return ratios, 8 * table.roundings * _UNIT


def blanket_bound(network: Network, node: int) -> float:
    """Return a bound on the projective influence of any quilt of a node (0-based), rounded up.

    log P(x_i|x_M)/P(x_i'|x_M) is a sum over the factors that hold node i, so its range over x_M is
    at most the sum of their ranges: for blankets too large for one table.
    """
    total = np.zeros((network.sizes[node], network.sizes[node]))
    for table in network.tables:
        if node in table.scope:
            ordered = table.over([node, *(other for other in table.scope if other != node)])
            rows = ordered.values.reshape(1, network.sizes[node], -1)
            ratios = row_ratios(rows, ordered.support().reshape(rows.shape))[0]
            np.fill_diagonal(ratios, 0.0)
            total += ratios + ratios.T
    return float(total.max()) * (1 + 2.0**-48) + 2.0**-48


@quilt_influence.register
def _(belief: Network, node: int, quilt: list[int], length: int) -> float:
    if not quilt:
        return 0.0
    return influence_given(belief.joint([node - 1, *(other - 1 for other in quilt)]), len(quilt))
