"""What a Markov blanket betrays at most, factor by factor: for blankets too large for one table.

log P(x_i|x_M)/P(x_i'|x_M) is a sum over the factors that hold node i, so its range over x_M is at
most the sum of their ranges. It bounds the projective influence of every quilt, whatever is known.

Theorem: docs/theory/networks.md
"""

from __future__ import annotations

import numpy as np

from quiltwork.beliefs import Network
from quiltwork.influence.ratios import row_ratios


def blanket_bound(network: Network, node: int) -> float:
    """Return a bound on the projective influence of any quilt of a node (0-based), rounded up."""
    total = np.zeros((network.sizes[node], network.sizes[node]))
    for one in network.tables:
        if node in one.scope:
            moved = one.over([node, *(other for other in one.scope if other != node)])
            rows = moved.values.reshape(1, network.sizes[node], -1)
            ratios = row_ratios(rows, moved.support().reshape(rows.shape))[0]
            np.fill_diagonal(ratios, 0.0)
            total += ratios + ratios.T
    return float(total.max()) * (1 + 2.0**-48) + 2.0**-48
