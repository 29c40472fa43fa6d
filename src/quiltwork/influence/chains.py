"""Chains, boxes and clusters answer `quilt_families`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from quiltwork.beliefs import ChainBox, Clusters, MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import bounds
from quiltwork.influence.exact import exact_families
from quiltwork.influence.families import ClusterFamily, IntervalFamily
from quiltwork.influence.protocol import InfluenceMethod, IntArray, QuiltFamily, quilt_families
from quiltwork.influence.rows import Bounds

_BOUNDS: dict[str, Callable[[Any, IntArray], bounds.Sides]] = {
    "approx": bounds.smallest,
    "contraction": bounds.contraction,
    "spectral": bounds.spectral,
}


@quilt_families.register
def _(
    belief: MarkovChain, length: int, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method == "exact":
        return exact_families(belief, length, reach)
    if method in _BOUNDS:
        return _bounded(length, reach, _BOUNDS[method](belief, _distances(length, reach)))
    return baseline(length, method)


@quilt_families.register
def _(belief: ChainBox, length: int, reach: int, method: InfluenceMethod) -> Iterator[QuiltFamily]:
    if method in ("exact", "spectral"):
        raise UnsupportedError(
            f"A ChainBox holds many chains, and method={method!r} needs a single one; use "
            "method='approx' or 'contraction'."
        )
    if method in _BOUNDS:
        return _bounded(length, reach, _BOUNDS[method](belief, _distances(length, reach)))
    return baseline(length, method)


@quilt_families.register
def _(
    belief: Clusters, length: int | None, reach: int, method: InfluenceMethod
) -> Iterator[QuiltFamily]:
    if method in ("group", "entry"):
        return baseline(belief.length, method)
    return iter([cluster_family(belief)])


def baseline(length: int, method: InfluenceMethod) -> Iterator[QuiltFamily]:
    """`group`: everything is nearby. `entry`: the node alone, as if all were independent."""
    rows = Bounds(np.zeros(1 if method == "entry" and length > 1 else 0))
    yield IntervalFamily(range(1, length + 1), length, rows, rows, complete=True)


def _distances(length: int, reach: int) -> IntArray:
    return np.arange(1, min(reach, length - 1) + 1)


def _bounded(length: int, reach: int, sides: bounds.Sides) -> Iterator[QuiltFamily]:
    left, right = (Bounds(np.minimum.accumulate(side)) for side in sides)
    nodes = range(1, length + 1)
    yield IntervalFamily(nodes, length, left, right, complete=reach >= length - 1)


def cluster_family(clusters: Clusters) -> ClusterFamily:
    """Cut each cluster into runs of neighbouring rows. O(n)."""
    rows = clusters.grouped_rows
    owner = clusters.codes[rows - 1]
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (np.diff(rows) != 1) | (np.diff(owner) != 0)
    ends = np.append(begins[1:], True)
    offset = np.searchsorted(owner[begins], np.arange(len(clusters.names) + 1))
    return ClusterFamily(clusters.codes, offset, rows[begins], rows[ends])
