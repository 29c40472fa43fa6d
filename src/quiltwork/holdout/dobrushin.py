"""Dobrushin's interdependence matrix: how far one node moves the conditional law of another.

c_ij = max over x, x' that differ in node j alone of the total variation between P(X_i|x) and
P(X_i|x'), all other nodes given. If the matrix has a norm below 1, functions of the nodes
concentrate almost as for independent ones. Conditionals at values that cannot occur are undefined,
and any choice is allowed there: they count as 1. Everything is rounded up.

Theorem: docs/theory/dobrushin.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.beliefs import Belief, ChainBox, Clusters, MarkovChain, Network
from quiltwork.beliefs.elimination import multiply
from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.influence.calibration_arguments import common_length
from quiltwork.influence.diameters import box_diameter
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.ratios import row_ratios
from quiltwork.results import ResultBase

_UP = 1 + 2.0**-40
_BLANKET_ENTRIES = 1 << 18
_DENSE = 600


@dataclass(frozen=True, eq=False)
class Interdependence(ResultBase):
    """The entries of Dobrushin's matrix that are not 0, and its norms.

    Attributes:
        length: the number of nodes.
        rows: the node i (1-based) of each entry, whose law is moved …
        columns: … and the node j that moves it.
        values: c_ij, rounded up, at most 1.
    """

    length: int
    rows: IntArray
    columns: IntArray
    values: FloatArray

    @property
    def row_norm(self) -> float:
        """The largest row sum, rounded up: how far all others together move one node."""
        return self._largest_sum(self.rows)

    @property
    def column_norm(self) -> float:
        """The largest column sum, rounded up: how far one node moves all others together."""
        return self._largest_sum(self.columns)

    @property
    def norm(self) -> float:
        """A bound on the spectral norm: √(row norm · column norm), or less for few nodes."""
        bound = math.sqrt(self.row_norm * self.column_norm) * _UP
        if self.length > _DENSE or bound == 0:
            return bound
        largest = float(np.linalg.norm(self.matrix(), 2))
        return min(bound, largest + 2.0**-40 * self.length)

    def body(self) -> dict[str, Any]:
        """Return the number of nodes and the norms."""
        norms = {"row_norm": self.row_norm, "column_norm": self.column_norm}
        return {"length": self.length, "norm": self.norm, **norms}

    def matrix(self) -> FloatArray:
        """Return the matrix itself; O(length²) memory."""
        result = np.zeros((self.length, self.length))
        result[self.rows - 1, self.columns - 1] = self.values
        return result

    def _largest_sum(self, places: IntArray) -> float:
        sums = np.bincount(places, weights=self.values, minlength=2)
        return float(sums.max()) * _UP


def interdependence(belief: Belief, length: int | None = None) -> Interdependence:
    """Return Dobrushin's interdependence matrix of a belief, rounded up.

    O(k⁴) for a chain (O(k³) for a box, by a bound), plus O(length); for a network the table of
    every blanket, or a bound factor by factor where that is too large.

    Theorem: docs/theory/dobrushin.md

    Args:
        belief: a MarkovChain, ChainBox, Network, or Clusters of one row each.
        length: the number of nodes; None for beliefs about fixed rows.

    Raises:
        UnsupportedError: for clusters of several rows, which may depend in any way.

    >>> found = interdependence(MarkovChain([[0.6, 0.4], [0.4, 0.6]]), 100)
    >>> round(found.norm, 4)
    0.3844
    """
    return _matrix(belief, common_length((belief,), length))


@singledispatch
def _matrix(belief: Any, length: int) -> Interdependence:
    raise UnsupportedError(f"Dobrushin's matrix of a {type(belief).__name__} is not known here.")


@_matrix.register
def _(belief: Clusters, length: int) -> Interdependence:
    if belief.largest > 1:
        raise UnsupportedError(
            "Rows of one cluster may depend in any way, so Dobrushin's matrix says nothing; count "
            "each cluster as one observation instead."
        )
    nothing = np.empty(0, dtype=np.int64)
    return Interdependence(length, nothing, nothing, np.empty(0))


@_matrix.register
def _(belief: MarkovChain, length: int) -> Interdependence:
    step = belief.transition
    inner = step[:, :, np.newaxis] * step[np.newaxis]
    inner = inner.transpose(1, 0, 2)
    before = variation(inner, 1)
    after = variation(inner, 2)
    first = _first(belief, step)
    last = variation(step.T, 1)
    return _banded(length, before, after, first, last)


def _first(chain: MarkovChain, step: FloatArray) -> float:
    """How far X_2 moves X_1; for any start by the range of the likelihood."""
    if isinstance(chain.initial, str) and chain.initial == "any":
        return by_spread(step)
    start = chain.start
    possible = start > 0
    reached = step[possible] > 0
    table = start[possible, np.newaxis] * step[possible]
    return variation(table, 1) if reached.any(axis=0).all() else 1.0


@_matrix.register
def _(belief: ChainBox, length: int) -> Interdependence:
    """Changing one neighbour moves the log-odds of a node by the diameter at most."""
    side = _up(math.tanh(box_diameter(belief.lower, belief.upper) / 4))
    return _banded(length, side, side, side, side)


def _banded(length: int, before: float, after: float, first: float, last: float) -> Interdependence:
    """A node is moved by the one before and the one after it."""
    points = integer(length, "length", 1)
    lower = np.arange(2, points + 1)
    down, up = np.full(points - 1, before), np.full(points - 1, after)
    down[-1:], up[:1] = last, first
    return _sparse(
        points,
        np.concatenate([lower, lower - 1]),
        np.concatenate([lower - 1, lower]),
        np.concatenate([down, up]),
    )


@_matrix.register
def _(belief: Network, length: int) -> Interdependence:
    rows, columns, values = [], [], []
    for node, near in enumerate(belief.neighbours):
        for other, value in _moved(belief, node, sorted(near)).items():
            rows.append(node + 1)
            columns.append(other + 1)
            values.append(value)
    return _sparse(
        length,
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array(values, dtype=np.float64),
    )


def _sparse(length: int, rows: IntArray, columns: IntArray, values: FloatArray) -> Interdependence:
    kept = values > 0
    return Interdependence(length, rows[kept], columns[kept], values[kept])


def _moved(network: Network, node: int, near: list[int]) -> dict[int, float]:
    """How far each neighbour moves a node (0-based)."""
    tables = [one for one in network.tables if node in one.scope]
    entries = math.prod(network.sizes[v] for v in (node, *near))
    if entries <= _BLANKET_ENTRIES:
        joined = multiply(tables, (node, *near))
        shape = [network.sizes[v] for v in (node, *near)]
        values = np.broadcast_to(joined.values, shape)
        return {other: variation(values, axis) for axis, other in enumerate(near, start=1)}
    return {
        other: _up(math.tanh(sum(_cross(one, node, other) for one in tables) / 4)) for other in near
    }


def _cross(one: Any, node: int, other: int) -> float:
    """How far `other` moves the log-odds of two states of the node in one factor."""
    if other not in one.scope:
        return 0.0
    rest = [v for v in one.scope if v not in (node, other)]
    moved = one.over([*rest, node, other])
    shape = moved.values.shape
    values = moved.values.reshape(-1, *shape[-2:])
    ratios = row_ratios(values, moved.support().reshape(values.shape))
    return float((ratios + ratios.transpose(0, 2, 1)).max()) * _UP


def variation(weights: FloatArray, axis: int) -> float:
    """Return the largest total variation between laws along axis 0 as one other axis changes.

    `weights` need not be normalised; 1 where a law is undefined (all weights 0).

    >>> variation(np.array([[0.9, 0.4], [0.1, 0.6]]), 1)
    0.50000000000045...
    """
    totals = weights.sum(axis=0)
    if not (totals > 0).all():
        return 1.0
    laws = np.moveaxis(weights / totals, axis, 1)
    laws = laws.reshape(*laws.shape[:2], -1)
    worst = 0.0
    for j in range(laws.shape[1] - 1):
        apart = np.abs(laws[:, j : j + 1] - laws[:, j + 1 :]).sum(axis=0) / 2
        worst = max(worst, float(apart.max()))
    return _up(worst)


def by_spread(likelihood: FloatArray) -> float:
    """Return a bound on the same for any prior on axis 0: tanh(range of the log-odds/4)."""
    ratios = row_ratios(likelihood[np.newaxis], (likelihood > 0)[np.newaxis])[0]
    return _up(math.tanh(float((ratios + ratios.T).max()) / 4))


def _up(value: float) -> float:
    """Round up; 1 is the most there is."""
    return 0.0 if value == 0 else min(1.0, value * _UP + 2.0**-48)
