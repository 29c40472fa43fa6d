"""Profiles: the noise scale that each node needs, as runs of nodes with the same scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from quiltwork.exact import float_up
from quiltwork.influence.quilts.protocol import FloatArray, IntArray


@dataclass(frozen=True)
class Run:
    """Nodes first..last with one scale: that of the worst of them."""

    first: int
    last: int
    scale: float


@dataclass(frozen=True)
class Profile:
    """Runs of nodes in order.

    >>> from quiltwork.beliefs import MarkovChain
    >>> from quiltwork.influence import calibrate
    >>> profile = calibrate(MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 10, 1).per_node()
    >>> [(run.first, run.last, run.scale) for run in profile]
    [(1, 10, 1.0)]
    """

    runs: tuple[Run, ...]

    def __iter__(self) -> Iterator[Run]:
        """Iterate over the runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.runs)

    def at(self, node: int) -> float:
        """Return the scale of one node.

        Raises:
            KeyError: if the node is not protected.
        """
        index = int(np.searchsorted([run.first for run in self.runs], node, side="right")) - 1
        if index < 0 or node > self.runs[index].last:
            raise KeyError(node)
        return self.runs[index].scale

    def times(self, unit: Fraction) -> Profile:
        """Return the profile in another unit, rounded up."""
        if unit == 1:
            return self
        return Profile(
            tuple(
                replace(run, scale=float_up(Fraction(run.scale) * unit))
                if np.isfinite(run.scale)
                else run
                for run in self.runs
            )
        )

    def arrays(self) -> tuple[IntArray, FloatArray]:
        """Return all nodes and their scales, one entry per node; O(nodes) memory."""
        sizes = [run.last - run.first + 1 for run in self.runs]
        nodes = np.concatenate([np.arange(run.first, run.last + 1) for run in self.runs])
        return nodes, np.repeat([run.scale for run in self.runs], sizes)


def runs_of(first: IntArray, last: IntArray, scale: FloatArray) -> Profile:
    """Build a profile from runs of nodes, merging neighbours of the same scale."""
    changes = np.flatnonzero(np.append(True, scale[1:] != scale[:-1]))
    ends = np.append(changes[1:], len(scale)) - 1
    columns = first[changes].tolist(), last[ends].tolist(), scale[changes].tolist()
    return Profile(tuple(Run(*row) for row in zip(*columns, strict=True)))


def combined(
    profiles: Sequence[Profile], choose: Callable[[FloatArray, FloatArray], FloatArray]
) -> Profile:
    """Combine profiles of the same nodes, run by run, by np.maximum or np.minimum."""
    # between two cuts every profile is constant
    cuts = np.unique([run.first for profile in profiles for run in profile])
    last = np.append(cuts[1:] - 1, profiles[0].runs[-1].last)
    rows = []
    for profile in profiles:
        indices = np.searchsorted([run.first for run in profile], cuts, side="right") - 1
        rows.append(np.array([run.scale for run in profile])[indices])
    return runs_of(cuts, last, np.asarray(reduce(choose, rows)))
