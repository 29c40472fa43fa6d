"""The scale that each node needs, as runs of nodes that need the same."""

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
    """Nodes first..last; the worst of them needs this scale."""

    first: int
    last: int
    scale: float


@dataclass(frozen=True)
class Profile:
    """Runs of nodes in order."""

    runs: tuple[Run, ...]

    def __iter__(self) -> Iterator[Run]:
        """The runs in order."""
        return iter(self.runs)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.runs)

    def at(self, node: int) -> float:
        """Return the scale of one node.

        Raises:
            KeyError: if the node is not among the protected ones.
        """
        index = int(np.searchsorted([run.first for run in self.runs], node, side="right")) - 1
        if index < 0 or node > self.runs[index].last:
            raise KeyError(node)
        return self.runs[index].scale

    def times(self, unit: Fraction) -> Profile:
        """Return the same in another unit, rounded up."""
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
    """Put runs of nodes together, neighbours of the same scale as one."""
    begins = np.flatnonzero(np.append(True, scale[1:] != scale[:-1]))
    ends = np.append(begins[1:], len(scale)) - 1
    columns = first[begins].tolist(), last[ends].tolist(), scale[begins].tolist()
    return Profile(tuple(Run(*row) for row in zip(*columns, strict=True)))


def combined(
    profiles: Sequence[Profile], choose: Callable[[FloatArray, FloatArray], FloatArray]
) -> Profile:
    """Put profiles of the same nodes together, run by run, by np.maximum or np.minimum."""
    cuts = np.unique([run.first for one in profiles for run in one])
    last = np.append(cuts[1:] - 1, profiles[0].runs[-1].last)
    rows = []
    for one in profiles:
        places = np.searchsorted([run.first for run in one], cuts, side="right") - 1
        rows.append(np.array([run.scale for run in one])[places])
    return runs_of(cuts, last, np.asarray(reduce(choose, rows)))
