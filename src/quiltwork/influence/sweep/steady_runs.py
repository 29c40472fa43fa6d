"""A whole series swept from end to end, but for what is steady.

Within a run of constant level bounds come close to those that hold for ever, as fast as the chain
forgets; from there on one bound stands for all nodes of the run. What is left are some nodes after
every change of level, so that a series of few runs is swept as a whole, with nothing assumed beyond
a stretch of it.

Cost: for each side and run as many steps as the chain takes to forget, O(k²) for each of k² pairs
of states and every span.

Theorem: docs/theory/sweep.md (Endless series: steady runs)
"""

from __future__ import annotations

import numpy as np

from quiltwork.influence.sweep.endless import MOST_WARM_UP, SHORT
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import BoolArray, FloatArray
from quiltwork.influence.sweep.sides import Exact
from quiltwork.influence.sweep.stretches import sweep_stretches

_MOST_NODES = 1 << 24
_NEAR = 2.0**-31
_LEAST = 0.25


def worst_of_runs(sweep: Sweep, levels: Levels, nodes: range) -> Leak | None:
    """The worst secret among `nodes`; None where there are too many runs, or nothing is steady.

    For chains whose nodes are all alike.
    """
    levels = sweep.charged(levels).joined()
    left, right = sweep.left, sweep.right
    if not SHORT < levels.length <= _MOST_NODES:
        return None
    if not (isinstance(left, Exact) and isinstance(right, Exact)):
        return None
    if sweep.by_long_spans(1.0) is not None or not (left.uniform() and right.uniform()):
        return None
    for fading in (True, False):
        before, after = (_Bounds(side, levels, fading) for side in (left, right))
        work, more = max(before.work, after.work), sweep.episode - 1
        if not sweep.affordable(work) or not (before.follow() and after.follow()):
            return None
        every = np.arange(
            nodes.start, max(nodes.start, min(nodes.stop - 1, levels.length) - more) + 1
        )
        run, end = levels.run_of(every), levels.run_of(every + more)
        behind, beyond = before.row[every - 1], after.row[levels.length - every - more]
        alike = np.stack([behind, beyond, run, end])
        apart = np.append(True, (np.diff(alike) != 0).any(axis=0)) | (run != end)
        every, sides = every[apart], (before.table[behind[apart]], after.table[beyond[apart]])
        leak, *parts = sweep.leaks(levels, every, *sides)
        top = int(np.argmax(leak))
        found = Leak(float(leak[top]), int(every[top]), *(float(one[top]) for one in parts))
        if found.own > 0:  # else what fades may be the worst, and is to be known
            break
    return found


class _Bounds:
    """The bounds of one side at all nodes, in the order in which they are swept: rows of a table.

    After the last release a few nodes do for all, if that side's bounds may be `fading`.
    """

    def __init__(self, side: Exact, levels: Levels, fading: bool) -> None:
        self.side, self.length = side, levels.length
        self._tail = 2 * side.spans[-1] if fading else 0
        first, last, self.spent = levels.first - 1, levels.last - 1, levels.own
        if not side.to_left:
            first, last = self.length - 1 - last[::-1], self.length - 1 - first[::-1]
            self.spent = self.spent[::-1]
        self.first, self.last = first, last
        self.widest, self.memory = side.spans[-1], side.homogeneous
        self.row = np.zeros(self.length, dtype=np.int64)
        self._found = [side.rest(np.array([1 << 40]))]
        highest = side.fixed(float(self.spent.max()))
        with np.errstate(invalid="ignore"):
            told = np.zeros(1) if highest is None else highest - self._found[0]
        self.largest = float(told[np.isfinite(told)].max(initial=_LEAST))

    @property
    def work(self) -> int:
        """About how many steps are taken."""
        sizes = self.last - self.first + 1
        return int(np.minimum(sizes, self.memory.settles + self.widest).sum())

    @property
    def table(self) -> FloatArray:
        """(rows, k, k) the bounds."""
        return np.concatenate(self._found)

    def follow(self) -> bool:
        """Sweep all that is not steady; False where it does not become so."""
        run = int(self.spent[0] == 0)  # where nothing was released yet nothing is told
        while run < len(self.first):
            reached = self._settled(run)
            if reached is None:
                return False
            run = reached
        return True

    def _settled(self, run: int) -> int | None:
        """Sweep from a run on until one is steady; the next one, None if it takes too long."""
        start = max(int(self.first[run]) - self.widest, 0)  # up to there all is steady
        final, tail = len(self.first) - 1, self._tail
        while self.memory.settles <= MOST_WARM_UP:
            at, steps = run, self.memory.settles
            while at < final and self.last[at] - self.first[at] <= steps + self.widest:
                at += 1
            fades = at == final and self.spent[at] == 0 and tail > 0  # the rest need not be close
            end = min(int(self.first[at]) + (tail if fades else steps), int(self.last[at]))
            swept = self._swept(start, int(self.first[run]) - start, end)
            steady = None
            if end < self.last[at]:
                steady = self._steady(swept[int(self.first[at]) - start :], at, fades)
                if steady is None:
                    tail = 0
                    self.memory.settles += 0 if fades else steps // 2
                    continue
            self._keep(start, end, swept)
            if steady is not None:
                self._keep(end + 1, int(self.last[at]), steady[np.newaxis])
            return at + 1
        return None

    def _steady(self, found: FloatArray, run: int, fades: bool) -> FloatArray | None:
        """Bounds for all nodes of a run after the first ones, close to the last; None if unknown.

        Those that have fallen for as many steps as are taken at once go on falling, and those that
        were below a certificate for as many nodes stay there, whatever rounding adds to them.
        """
        drops = np.asarray((found[1:] <= found[:-1]).all(axis=(1, 2)))
        falls = np.flatnonzero(_in_a_row(drops, self.widest))
        if fades:
            return found[falls[-1] + self.widest] if len(falls) else None
        near = _NEAR * self.largest
        with np.errstate(invalid="ignore"):
            if not np.nan_to_num(np.abs(found[-1] - found[-1 - self.widest])).max() <= near / 32:
                return None
        fixed = self.side.fixed(float(self.spent[run]))
        kept = [found[falls[-1] + self.widest]] if len(falls) else []
        if fixed is not None:
            below = np.asarray((found <= fixed).all(axis=(1, 2)))
            kept += [fixed[0]] if _in_a_row(below, self.widest).any() else []
        with np.errstate(invalid="ignore"):
            above = [float(np.nan_to_num(one - found[-1]).max()) for one in kept]
        return kept[int(np.argmin(above))] if above and min(above) <= near else None

    def _keep(self, start: int, end: int, bounds: FloatArray) -> None:
        """Note the bounds of start..end, one for all or one for each."""
        row = sum(map(len, self._found))
        self.row[start : end + 1] = row + (np.arange(len(bounds)) if len(bounds) > 1 else 0)
        self._found.append(bounds)

    def _swept(self, start: int, known: int, end: int) -> FloatArray:
        """Bounds at start..end, from those at start, which hold at as many more as are known."""
        places = np.arange(start, end + 1)
        spent = self.spent[np.searchsorted(self.first, places, side="right") - 1][np.newaxis]
        nodes = (places + 1 if self.side.to_left else self.length - places)[np.newaxis]
        result = np.empty((1, len(places), self.side.walk.size, self.side.walk.size))
        begin, steps, first = nodes[:, 0], np.array([end - start]), nodes.min(axis=1)
        given = self.side, self.table[[self.row[start]]], begin, steps, nodes, spent, first, result
        sweep_stretches(*given, known=known)
        return result[0] if self.side.to_left else result[0, ::-1]


def _in_a_row(true: BoolArray, many: int) -> BoolArray:
    """At which places so many in a row begin."""
    sums = np.cumsum(np.append(0, true))
    return np.asarray(sums[many:] - sums[:-many] == many)
