"""What every node leaks: the node itself, and what its two sides tell about it.

leak(i) = own level of i + max over states x ≠ x' of (left bound + right bound)[x, x']. A series of
few runs of equal levels is followed from end to end. Of many runs only stretches that can hold the
worst node are: a quick bound of each comes from the highest levels around it, and a stretch is
followed from some nodes further out, from bounds that hold everywhere.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.ratios import BoolArray
from quiltwork.influence.sweep.horizon import SMALL_PIECE, InfiniteHorizon
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.observations import between_shown
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.runs import Followed
from quiltwork.influence.sweep.step import Contracted, Exact, Side
from quiltwork.influence.timeline import Timeline

_CELLS = 1 << 22
_MOST_WORK = 1 << 32
"""So many entries of programs are looked at for one set of levels: some seconds."""
_MOST_NODES, _MOST_STEPS = 1 << 20, 1 << 14
_VERY_FEW, _FEW_RUNS, _LITTLE_WORK, _SOME_WORK = 4, 512, 1 << 30, 1 << 33
"""Series of few runs are followed from end to end where that takes a second, of states with others
behind them some seconds: their stretches have no good quick bounds."""
_SETTLES = 128
_MOST_APART = 10_000
"""So many nodes of turns that are alike are told apart in a profile."""
"""In about so many nodes most chains settle."""


@dataclass(frozen=True)
class Leak:
    """The worst node, or stretch of nodes: what it leaks, and where that comes from.

    `leak` bounds every node asked about; `own` is what is spent on the node itself, `before` and
    `after` what its neighbours on either side add.
    """

    leak: float
    node: int
    own: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """A belief about a series of some length, as two sides and a walk.

    What is secret is every stretch of `episode` nodes, whatever is known about the others. `coarse`
    bounds either side whatever the start, if there is such a bound.
    """

    walk: Timeline
    left: Side
    right: Side
    length: int
    episode: int = 1
    coarse: Contracted | None = None

    def fresh(self) -> Sweep:
        """The same for another question, with nothing learnt from those before."""
        one, other = replace(self.left), replace(self.right)
        return replace(self, left=one, right=one if self.left is self.right else other)

    def worst(self, levels: Levels, nodes: range) -> Leak:
        """The node among `nodes` that leaks most."""
        return Swept(self, levels, nodes).worst()

    def profile(self, levels: Levels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and a bound on what each of their nodes leaks."""
        return Swept(self, levels, nodes).profile()

    def charged(self, levels: Levels) -> Levels:
        """What changes are charged: every node its own level where some changes are not seen.

        What neighbours pay only once may then be paid by a node that is not the first to change.
        """
        if self.walk.all_told:
            return levels
        return replace(levels, forward=levels.own, backward=levels.own)

    def constant(self, own: float, forward: float, backward: float) -> Leak | None:
        """What a node leaks in an endless series of constant levels; None if there is no bound."""
        left, right = self.left_bounds(backward), self.right.fixed(forward)
        if left is None or right is None:
            return None
        nodes = np.arange(self.walk.period) + self.late
        ends = np.roll(right, 1 - self.episode, axis=0)
        before, after = self.told(nodes, np.full(len(nodes), own), left, ends)
        worst = int(np.argmax(before + after))
        sides = float(before[worst]), float(after[worst])
        spent = own + (self.episode - 1) * forward
        return Leak(spent + sum(sides), int(nodes[worst]), spent, *sides)

    def left_bounds(self, level: float) -> FloatArray | None:
        """Bounds to the left in an endless series of this level; None if there are none.

        From any start they hold at every node, so that long spans may serve as well.
        """
        found, known = self.left.fixed(level), self.by_long_spans(level)
        if known is None:
            return found
        return known + self.left.rest(np.array([1])) if found is None else np.minimum(found, known)

    def by_long_spans(self, level: float) -> FloatArray | None:
        """One number for all states to the left, from any start: long spans are not swept."""
        weighted = isinstance(self.left, Exact) and self.left.any_start
        return None if self.coarse is None or not weighted else self.coarse.fixed(level)

    @property
    def started(self) -> bool:
        """Whether the left side is that of nodes after a given start."""
        given = self.walk.laws is not None and len(self.walk.possible) > 0
        return given and isinstance(self.left, Exact)

    @property
    def late(self) -> int:
        """A node of phase 0 beyond those that are known one by one."""
        period = self.walk.period
        return -(-(len(self.walk.possible) + 1) // period) * period + 1

    def leaks(
        self, levels: Levels, nodes: IntArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """What the secrets that begin at these nodes leak, and the three parts of that.

        `left` bounds the side before their first node, `right` that after their last.
        """
        own = levels.block(nodes, nodes + self.episode - 1)
        before, after = self.told(nodes, own, left, right)
        leak = np.minimum((own + before + after) * (1 + 2.0**-50), levels.total)
        if not self.walk.all_secret:
            known = self.walk.known_at(nodes)
            for further in range(1, self.episode if known.any() else 0):
                known = known & self.walk.known_at(nodes + further)
            leak[known] = 0.0
        return leak, own, before, after

    def told(
        self, nodes: IntArray, own: FloatArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What the two sides add to a secret on which this much is spent itself.

        Between shown states less is told than between the worst of the states behind them.
        """
        before, after = self.parts(nodes, left, right)
        walk, exact = self.walk, isinstance(self.left, Exact) and isinstance(self.right, Exact)
        if walk.all_told or self.episode > 1 or walk.laws is None or not exact:
            return before, after
        added = between_shown(walk, nodes, own, left + right)
        total = np.minimum(before + after, np.maximum(added - own, 0.0) * (1 + 2.0**-50))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(before / (before + after), nan=0.5)
            first, second = total * share, total * (1 - share) * (1 + 2.0**-50)
        bounded = np.isfinite(total)
        return np.where(bounded, first, before), np.where(bounded, second, after)

    def parts(
        self, nodes: IntArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What the two sides add, at the pair of states for which that is most.

        The states at the two ends of an episode differ independently of each other, also where the
        data do not tell them apart: what happens at one end shifts the hidden state of the other.
        """
        if isinstance(self.left, Exact) and not self.left.any_start:
            with np.errstate(invalid="ignore"):
                left = left + self.walk.tilts(nodes)
            left = np.where(np.isnan(left), np.inf, left)
        if self.episode > 1:
            first, last = (self._pairs(ends) for ends in (nodes, nodes + self.episode - 1))
            return _most(left, first), _most(right, last)
        x, y = self.walk.pairs
        if not len(x):
            return np.zeros(len(nodes)), np.zeros(len(nodes))
        shape = len(nodes), self.walk.size, self.walk.size
        left, right = (np.broadcast_to(one, shape)[:, x, y] for one in (left, right))
        with np.errstate(invalid="ignore"):
            both = left + right
        both[np.isnan(both)] = np.inf
        if not self.walk.all_secret:
            both[~self._secret(nodes)[:, x, y]] = -np.inf
        pair = both.argmax(axis=1)
        rows = np.arange(len(nodes))
        total = np.maximum(both[rows, pair], 0.0)
        before = np.clip(left[rows, pair], 0.0, total)
        with np.errstate(invalid="ignore"):
            after = np.where(total > before, total - before, 0.0)
        return before, after * (1 + 2.0**-51)

    def _secret(self, nodes: IntArray) -> BoolArray:
        """(nodes, k, k) the pairs of possible states that are kept apart."""
        return self._pairs(nodes) & self.walk.secret

    def _pairs(self, nodes: IntArray) -> BoolArray:
        """(nodes, k, k) the pairs of different possible states."""
        possible = self.walk.possible_at(nodes)
        different = ~np.eye(self.walk.size, dtype=np.bool_)
        return np.asarray(possible[:, :, np.newaxis] & possible[:, np.newaxis, :] & different)

    def affordable(self, nodes: int) -> int:
        """So many stretches of these nodes can be swept in some seconds."""
        programs = 1 + 2 * len(self.walk.pairs[0]) * len(self.walk.spans)
        return _MOST_WORK // (programs * self.walk.size**2 * nodes)

    def known_all(self, nodes: range) -> bool:
        """Whether no node has anything to hide."""
        early = len(self.walk.possible)
        shown = np.arange(
            nodes.start, min(nodes.stop, max(early, nodes.start) + self.walk.period + 1)
        )
        return bool(self.walk.known_at(shown).all())


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of nodes first..last, each followed alone."""

    first: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.first)


class Swept:
    """One set of levels swept over a series."""

    def __init__(self, sweep: Sweep, levels: Levels, nodes: range) -> None:
        self.sweep, self.levels = sweep, sweep.charged(levels)
        last = max(nodes.start, min(nodes.stop - 1, levels.length) - sweep.episode + 1)
        self.nodes = range(nodes.start, last + 1)

    @cached_property
    def whole(self) -> bool:
        """Whether the series is followed from end to end."""
        runs, walk = len(self.levels.first), self.sweep.walk
        programs = 1 + 2 * len(walk.pairs[0]) * len(walk.spans)
        work = runs * _SETTLES * programs * walk.size**2
        most = _LITTLE_WORK if walk.all_told else _SOME_WORK
        few = runs <= _VERY_FEW or (runs <= _FEW_RUNS and work <= most)
        return few or self.horizon.short

    @cached_property
    def horizon(self) -> InfiniteHorizon:
        """Where stretches are followed from."""
        return InfiniteHorizon(self.sweep, self.levels)

    def worst(self) -> Leak:
        """Stretches in order of their bounds, until no other can be worse or too many are left."""
        start = Leak(-1.0, self.nodes.start, 0.0, 0.0, 0.0)
        if self.whole:
            return self._worst_between(self.nodes.start, self.nodes.stop - 1, start)
        stretches = self.stretches()
        bounds = self.bounds(stretches)
        order = np.argsort(-bounds, kind="stable")
        best, most = start, self._affordable
        for done, which in enumerate(order.tolist()):
            if bounds[which] <= best.leak:
                break
            if done >= most:  # what is left leaks no more than the quick bound of the next
                return replace(best, leak=float(bounds[which]))
            first, last = int(stretches.first[which]), int(stretches.last[which])
            best = self._worst_between(first, last, best)
        return best

    def _worst_between(self, first: int, last: int, best: Leak) -> Leak:
        for nodes, _, leak, *parts in self._leaks(first, last):
            top = int(np.argmax(leak))
            if leak[top] > best.leak:
                best = Leak(float(leak[top]), int(nodes[top]), *(float(one[top]) for one in parts))
        return best

    def profile(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Every stretch, node by node; beyond what is affordable, the lesser ones as a whole."""
        every = Stretches(np.array([self.nodes.start]), np.array([self.nodes.stop - 1]))
        stretches = every if self.whole else self.stretches()
        first: list[IntArray] = []
        last: list[IntArray] = []
        values: list[FloatArray] = []
        which = np.arange(len(stretches))
        if not self.whole and self._affordable < len(stretches):
            bounds = self.bounds(stretches)
            order = np.argsort(-bounds, kind="stable")
            which, rest = np.sort(order[: self._affordable]), order[self._affordable :]
            first, last, values = [stretches.first[rest]], [stretches.last[rest]], [bounds[rest]]
        for one in which.tolist():
            begin, end = int(stretches.first[one]), int(stretches.last[one])
            for nodes, ends, leak, *_ in self._leaks(begin, end):
                run_first, run_last, run_leak = _runs_of_alike(
                    nodes, ends, leak, self.sweep.walk.period
                )
                first.append(run_first)
                last.append(run_last)
                values.append(run_leak)
        firsts, lasts, leaks = np.concatenate(first), np.concatenate(last), np.concatenate(values)
        order = np.argsort(firsts, kind="stable")
        return firsts[order], lasts[order], leaks[order]

    def _leaks(self, first: int, last: int) -> Iterator[tuple[Any, ...]]:
        """The nodes of a stretch that stand for all, and the last node that each stands for.

        With what they leak, and the three parts of that. Of equal nodes those of one period are
        looked at, which together stand for all up to the last.
        """
        more = self.sweep.episode - 1
        left, right = self.followed(first, last)
        early, runs = len(self.sweep.walk.possible), self.levels.first
        ends = np.array([first, last + 1, early + 1, early + 1 - more])
        cuts = ends, runs, runs - more, left.cuts, right.cuts - more
        begins: IntArray = np.unique(np.concatenate(cuts))
        begins = begins[(begins >= first) & (begins <= last + 1)]
        begins, ends = begins[:-1], begins[1:] - 1
        alike = left.is_steady(begins) & right.is_steady(begins + more) & (begins > early)
        sizes = np.where(
            alike, np.minimum(ends - begins + 1, self.sweep.walk.period), ends - begins + 1
        )
        part = np.repeat(np.arange(len(begins)), sizes)
        nodes = begins[part] + np.arange(len(part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        until = np.where(alike[part], ends[part], nodes)
        step = max(1, _CELLS // self.sweep.walk.size**2)
        at = 0
        while at < len(nodes):
            stop = min(at + step, len(nodes))
            while stop < len(nodes) and until[stop] == until[stop - 1]:
                stop += 1
            these = nodes[at:stop]
            told = self.sweep.leaks(self.levels, these, left.at(these), right.at(these + more))
            yield these, until[at:stop], *told
            at = stop

    def followed(self, first: int, last: int) -> tuple[Followed, Followed]:
        """The bounds of both sides at the nodes of a stretch; those after it begin at its ends."""
        sweep, levels, more = self.sweep, self.levels, self.sweep.episode - 1
        caps = self._caps
        starts: tuple[FloatArray | None, FloatArray | None] = (None, None)
        reaches = 1, levels.length
        if not self.whole:
            reach, starts = self.horizon.warm_up, self.horizon.outer
            begin = first - reach
            if sweep.started and first <= len(sweep.walk.possible) + reach:
                begin = 1
            reaches = max(begin, 1), min(last + more + reach, levels.length)
        begin, end = reaches
        before = self._start(sweep.left, begin, begin == 1, starts[0])
        after = self._start(sweep.right, end, end == levels.length, starts[1])
        most = [
            _MOST_STEPS if isinstance(side, Contracted) else min(sweep.affordable(1), _MOST_NODES)
            for side in (sweep.left, sweep.right)
        ]
        left = Followed(sweep.left, levels, begin, last, before, 1, caps[0], most[0])
        right = Followed(sweep.right, levels, end, first + more, after, -1, caps[1], most[1])
        return left, right

    def _start(self, side: Side, node: int, at_end: bool, outer: FloatArray | None) -> FloatArray:
        """The bounds at the node that a side begins at."""
        if at_end:
            return side.rest(np.array([node]))
        return side.unknown(1) if outer is None else outer[[(node - 1) % len(outer)]]

    @cached_property
    def _caps(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Bounds that long spans, which are not swept, say about every node."""
        sweep, levels = self.sweep, self.levels
        left = sweep.by_long_spans(float(levels.backward.max()))
        if isinstance(sweep.left, Contracted):
            left = sweep.left.fixed(float(levels.backward.max()))
        elif left is None and not self.whole and isinstance(sweep.left, Exact):
            left = self.horizon.outer[0] if sweep.left.any_start else None
        if not isinstance(sweep.right, Contracted):
            return left, None
        return left, sweep.right.fixed(float(levels.forward.max()))

    def stretches(self) -> Stretches:
        """Stretches around every change of level, of some hundred nodes, and those between."""
        reach, more = self.horizon.warm_up, self.sweep.episode - 1
        early, nodes = len(self.sweep.walk.possible), self.nodes
        edges = np.append(self.levels.first, self.levels.length + 1)
        begins, ends = edges - reach - more, edges + reach
        begins[0], ends[0] = 1, max(int(ends[0]), early + reach)
        begins, ends = _merged(begins, ends)
        size = max(SMALL_PIECE, reach)
        inner = [
            np.arange(max(begin, min(early, end - 1)), end, size)
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        first = np.unique(np.concatenate([begins, ends, [nodes.start], *inner]))
        first = first[(first >= nodes.start) & (first < nodes.stop)]
        return Stretches(first, np.append(first[1:], nodes.stop) - 1)

    def bounds(self, stretches: Stretches) -> FloatArray:
        """A quick bound for each stretch, from the highest levels in and around it."""
        reach, levels, more = self.horizon.warm_up, self.levels, self.sweep.episode - 1
        left, right, _ = self.horizon.probes
        start = np.maximum(stretches.first - reach, 1)
        end = np.minimum(stretches.last + more, levels.length)
        stop = np.minimum(end + reach, levels.length)
        own = levels.most(levels.own, stretches.first, stretches.last)
        own = own + more * levels.most(levels.forward, stretches.first, end)
        behind, beyond = self.horizon.grids
        back = np.searchsorted(behind, levels.most(levels.backward, start, stretches.last))
        ahead = np.searchsorted(beyond, levels.most(levels.forward, stretches.first, stop))
        code, where = np.unique(back * len(beyond) + ahead, return_inverse=True)
        pairs = np.divmod(code, len(beyond))
        sides = np.array([self._sides(left[[b]], right[[a]]) for b, a in zip(*pairs, strict=True)])
        bound = own + sides[where.ravel()]
        early = stretches.first <= len(self.sweep.walk.possible)
        return np.minimum(np.where(early, np.inf, bound), levels.total)

    def _sides(self, left: FloatArray, right: FloatArray) -> float:
        nodes = np.arange(self.sweep.walk.period) + self.sweep.late
        shape = (len(nodes), *left.shape[1:])
        after_shape = (len(nodes), *right.shape[1:])
        before, after = self.sweep.parts(
            nodes, np.broadcast_to(left, shape), np.broadcast_to(right, after_shape)
        )
        return float((before + after).max())

    @cached_property
    def _affordable(self) -> int:
        """So many stretches are followed; the others keep their quick bounds."""
        return max(1, self.sweep.affordable(3 * max(SMALL_PIECE, self.horizon.warm_up)))


def _runs_of_alike(
    nodes: IntArray, ends: IntArray, leak: FloatArray, period: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Runs (first, last, leak) of nodes that stand for all up to their end.

    Turns of a period are alike, and their nodes are not: they are told apart, as far as that is
    worth it; beyond, the largest stands for all.
    """
    group = np.flatnonzero(np.append(True, np.diff(ends) > 0))
    first, last, worst = nodes[group], ends[group], np.maximum.reduceat(leak, group)
    sizes = np.diff(np.append(group, len(nodes)))
    turning = (sizes == period) & (last - first >= period) & (period > 1)
    found = [(first[~turning], last[~turning], worst[~turning])]
    for at in np.flatnonzero(turning).tolist():
        count = int(last[at] - first[at]) + 1
        apart = np.arange(min(count, _MOST_APART))
        one = first[at] + apart
        found.append((one, one, leak[group[at] + apart % period]))
        if count > len(apart):
            found.append((one[-1:] + 1, last[[at]], worst[[at]]))
    firsts, lasts, leaks = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return firsts, lasts, leaks


def _merged(begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Unite intervals begin..end−1 that meet; both arrays ascend."""
    reach = np.maximum.accumulate(ends)
    opens = np.append(True, begins[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return begins[opens], reach[closes]


def _most(bounds: FloatArray, secret: BoolArray) -> FloatArray:
    """The largest bound over the pairs of states; 0 where there is no pair."""
    flat = np.where(secret, bounds, 0.0).reshape(len(secret), -1)
    return np.asarray(flat.max(axis=1, initial=0.0))
