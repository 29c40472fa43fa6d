"""Quilt families of chains, boxes of chains and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from quiltwork.beliefs import ChainBox, Clusters, CyclicChain, DatedChain, HiddenChain, MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence.quilts import distance_bounds
from quiltwork.influence.quilts.exact_chains import ExactChainQuilts
from quiltwork.influence.quilts.families import (
    ClusterFamily,
    IntervalFamily,
    ListedFamily,
    bounded_rows,
    silent_rows,
)
from quiltwork.influence.quilts.protocol import (
    InfluenceMethod,
    IntArray,
    QuiltFamily,
    quilt_families,
)
from quiltwork.wording import argument

Bound: TypeAlias = Callable[[Any, IntArray], distance_bounds.BothSides]

_BOUNDS: dict[str, Bound] = {
    "approx": distance_bounds.smallest,
    "contraction": distance_bounds.contraction,
    "spectral": distance_bounds.spectral,
}


@quilt_families.register
def _(
    belief: MarkovChain, length: int, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method == "exact":
        return ExactChainQuilts(belief, length, min(reach, length - 1)).families()
    if method in _BOUNDS:
        recurrent = distance_bounds.restrict_to_recurrent(belief)
        if recurrent.size == 1:
            return iter([ListedFamily.known(range(1, length + 1))])
        if method == "spectral":
            distance_bounds.require_mixing(recurrent)
        return iter([_bounded(recurrent, length, reach, _BOUNDS[method])])
    return baseline(length, method)


@quilt_families.register(ChainBox)
@quilt_families.register(CyclicChain)
@quilt_families.register(DatedChain)
def _(
    belief: ChainBox | CyclicChain | DatedChain, length: int, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method in ("exact", "spectral"):
        several = "chains" if isinstance(belief, ChainBox) else "matrices"
        raise UnsupportedError(
            f"A {type(belief).__name__} has many {several}, and {argument('method', method)} "
            f"needs a single one; use {argument('method', 'sweep')}, 'approx' or 'contraction'."
        )
    if method in _BOUNDS and belief.size == 1:
        return iter([ListedFamily.known(range(1, length + 1))])
    if method in _BOUNDS:
        return iter([_bounded(belief, length, reach, _BOUNDS[method])])
    return baseline(length, method)


@quilt_families.register
def _(
    belief: Clusters, length: int | None, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method in ("group", "entry"):
        return baseline(belief.length, method)
    return iter([cluster_family(belief)])


@quilt_families.register
def _(
    belief: HiddenChain, length: int, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method not in ("group", "entry"):
        raise UnsupportedError(
            f"A HiddenChain has no quilts of observed values, which {argument('method', method)} "
            "needs. Leave method out: the sweep supports it."
        )
    return baseline(length, method)


def baseline(length: int, method: InfluenceMethod) -> Iterator[QuiltFamily]:
    """The baselines: `group` (everything is nearby) and `entry` (the node alone, as if
    independent).
    """
    rows = silent_rows(int(method == "entry" and length > 1))
    yield IntervalFamily(range(1, length + 1), length, rows, rows, complete=True)


def _bounded(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, length: int, reach: int, bound: Bound
) -> QuiltFamily:
    """The family of interval quilts with influences bounded by distance."""
    cut = min(reach, length - 1)
    left = bounded_rows(cut, lambda distances: bound(belief, distances)[0])
    right = bounded_rows(cut, lambda distances: bound(belief, distances)[1])
    return IntervalFamily(range(1, length + 1), length, left, right, complete=cut == length - 1)


def cluster_family(clusters: Clusters) -> ClusterFamily:
    """The family of clusters: each cluster as runs of neighbouring rows. O(n)."""
    rows = clusters.grouped_rows
    cluster_of_row = clusters.codes[rows - 1]
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (np.diff(rows) != 1) | (np.diff(cluster_of_row) != 0)
    ends = np.append(begins[1:], True)
    offset = np.searchsorted(cluster_of_row[begins], np.arange(len(clusters.names) + 1))
    return ClusterFamily(
        range(1, clusters.length + 1), clusters.codes, offset, rows[begins], rows[ends]
    )
