"""Leakage of every node: its own level, and what its two sides reveal about it.

leak(i) = own level of i + max over states x ≠ x' of (left bound + right bound)[x, x']. A series of
few runs of equal levels is swept from end to end. In a series of many runs only stretches that may
hold the worst node are swept: a quick bound for each comes from the highest levels around it, and
its sweep starts some nodes further out, from bounds that hold everywhere.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.caching import cached_property
from quiltwork.influence.ratios import BoolArray
from quiltwork.influence.sweep.levels import Levels, few_levels
from quiltwork.influence.sweep.observations import leakage_between_observations
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.runs import SideBounds
from quiltwork.influence.sweep.step import ContractionSide, ExactSide, Side
from quiltwork.influence.timeline import Timeline

_BITS, _GRID = 30, 24
_END = 2.0**-_BITS
_CONVERGED = 2.0**-36
_STRIDE = 32
SHORT = 512
"""Series of up to this length are swept from end to end."""
SMALL_PIECE = 256
"""The least number of nodes of a stretch that is swept on its own."""
MOST_WARM_UP = 4096
"""A stretch starts at most this many nodes further out."""
_CELLS = 1 << 22
_MOST_WORK = 1 << 32
"""Entries of programs per set of levels: some seconds of work."""
_MOST_NODES, _MOST_STEPS = 1 << 20, 1 << 14
_VERY_FEW, _FEW_RUNS, _LITTLE_WORK, _SOME_WORK = 4, 512, 1 << 30, 1 << 33
"""Series of few runs are swept from end to end if that takes a second; for hidden states some
seconds, since their stretches have no good quick bounds."""
_SETTLES = 128
"""Most chains converge within about this many nodes."""
_MOST_APART = 10_000
"""At most this many nodes of repeated turns are listed one by one in a profile."""


@dataclass(frozen=True)
class Leak:
    """The worst node, or stretch of nodes: its leakage, and the parts of it.

    `leak` bounds every node in question; `own` is the level spent on the node itself, `before` and
    `after` what its neighbours on either side add.
    """

    leak: float
    node: int
    own: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """A belief about a series of some length, as a timeline and two sides.

    Every stretch of `episode` nodes is a secret, whatever is known about the others. `coarse`
    bounds either side for any start, if there is such a bound.
    """

    timeline: Timeline
    left: Side
    right: Side
    length: int
    episode: int = 1
    coarse: ContractionSide | None = None

    def without_cache(self) -> Sweep:
        """A copy without cached results, for a new calibration."""
        left, right = replace(self.left), replace(self.right)
        return replace(self, left=left, right=left if self.left is self.right else right)

    def worst(self, levels: Levels, nodes: range) -> Leak:
        """The node among `nodes` with the largest leakage."""
        return SweptSeries(self, levels, nodes).worst()

    def profile(self, levels: Levels, nodes: range) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes (first, last) and a bound on the leakage of each of their nodes."""
        return SweptSeries(self, levels, nodes).profile()

    def charged_levels(self, levels: Levels) -> Levels:
        """The levels that changes cost: a node's own level if some changes are not observable.

        A cost that neighbours share may then fall on a node that is not the first to change.
        """
        if self.timeline.fully_observed:
            return levels
        return replace(levels, forward=levels.own, backward=levels.own)

    def constant_levels(self, own: float, forward: float, backward: float) -> Leak | None:
        """The leakage of a node in an infinite series of constant levels; None if it has
        no bound.
        """
        left, right = self.left_bounds(backward), self.right.fixed(forward)
        if left is None or right is None:
            return None
        nodes = np.arange(self.timeline.period) + self.late_node
        ends = np.roll(right, 1 - self.episode, axis=0)
        before, after = self.side_leakage(nodes, np.full(len(nodes), own), left, ends)
        worst = int(np.argmax(before + after))
        sides = float(before[worst]), float(after[worst])
        spent = own + (self.episode - 1) * forward
        return Leak(spent + sum(sides), int(nodes[worst]), spent, *sides)

    def left_bounds(self, level: float) -> FloatArray | None:
        """Bounds to the left in an infinite series of this level; None if there are none.

        From any start they hold at every node, so that long spans may serve as well.
        """
        by_steps, by_spans = self.left.fixed(level), self.long_span_bound(level)
        if by_spans is None:
            return by_steps
        return (
            by_spans + self.left.boundary_value(np.array([1]))
            if by_steps is None
            else np.minimum(by_steps, by_spans)
        )

    def long_span_bound(self, level: float) -> FloatArray | None:
        """One bound to the left for all pairs, from any start, by spans too long to be swept."""
        any_start = isinstance(self.left, ExactSide) and self.left.any_start
        return None if self.coarse is None or not any_start else self.coarse.fixed(level)

    @property
    def has_given_start(self) -> bool:
        """Whether the left side starts from a given law."""
        known_law = self.timeline.laws is not None and len(self.timeline.possible) > 0
        return known_law and isinstance(self.left, ExactSide)

    @property
    def late_node(self) -> int:
        """A node of phase 0 after those with laws of their own."""
        period = self.timeline.period
        return -(-(len(self.timeline.possible) + 1) // period) * period + 1

    def leakage_parts(
        self, levels: Levels, nodes: IntArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The leakage of the secrets that begin at these nodes: total, own level, before and after.

        `left` bounds the side before their first node, `right` that after their last.
        """
        own = levels.block(nodes, nodes + self.episode - 1)
        before, after = self.side_leakage(nodes, own, left, right)
        # two additions; and no secret leaks more than everything that was spent
        leak = np.minimum((own + before + after) * (1 + 2.0**-50), levels.total)
        if not self.timeline.all_secret:
            deterministic = self.timeline.is_deterministic(nodes)
            for offset in range(1, self.episode if deterministic.any() else 0):
                deterministic = deterministic & self.timeline.is_deterministic(nodes + offset)
            leak[deterministic] = 0.0
        return leak, own, before, after

    def side_leakage(
        self, nodes: IntArray, own: FloatArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The leakage that the two sides add to a secret with this own level.

        Between two observed values it is less than between the worst hidden states behind them.
        """
        before, after = self.worst_pair(nodes, left, right)
        timeline, exact = (
            self.timeline,
            isinstance(self.left, ExactSide) and isinstance(self.right, ExactSide),
        )
        if timeline.fully_observed or self.episode > 1 or timeline.laws is None or not exact:
            return before, after
        leak = leakage_between_observations(timeline, nodes, own, left + right)
        total = np.minimum(before + after, np.maximum(leak - own, 0.0) * (1 + 2.0**-50))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(before / (before + after), nan=0.5)
            left_part, right_part = total * share, total * (1 - share) * (1 + 2.0**-50)
        bounded = np.isfinite(total)
        return np.where(bounded, left_part, before), np.where(bounded, right_part, after)

    def worst_pair(
        self, nodes: IntArray, left: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The leakage that the two sides add, at the worst pair of states.

        The states at the two ends of an episode differ independently of each other, also where the
        data do not distinguish them: a change at one end shifts the hidden state of the other.
        """
        if isinstance(self.left, ExactSide) and not self.left.any_start:
            with np.errstate(invalid="ignore"):
                left = left + self.timeline.prior_log_ratios(nodes)
            left = np.where(np.isnan(left), np.inf, left)
        if self.episode > 1:
            first, last = (self._pairs(ends) for ends in (nodes, nodes + self.episode - 1))
            return _most(left, first), _most(right, last)
        x, y = self.timeline.pairs
        if not len(x):
            return np.zeros(len(nodes)), np.zeros(len(nodes))
        shape = len(nodes), self.timeline.size, self.timeline.size
        left, right = (np.broadcast_to(bounds, shape)[:, x, y] for bounds in (left, right))
        with np.errstate(invalid="ignore"):
            both = left + right
        # ∞ − ∞: one side has no bound
        both[np.isnan(both)] = np.inf
        if not self.timeline.all_secret:
            both[~self._secret(nodes)[:, x, y]] = -np.inf
        pair = both.argmax(axis=1)
        rows = np.arange(len(nodes))
        total = np.maximum(both[rows, pair], 0.0)
        before = np.clip(left[rows, pair], 0.0, total)
        with np.errstate(invalid="ignore"):
            after = np.where(total > before, total - before, 0.0)
        return before, after * (1 + 2.0**-51)

    def _secret(self, nodes: IntArray) -> BoolArray:
        """(nodes, k, k) the pairs of possible states that are secret."""
        return self._pairs(nodes) & self.timeline.secret

    def _pairs(self, nodes: IntArray) -> BoolArray:
        """(nodes, k, k) the pairs of different possible states."""
        possible = self.timeline.possible_at(nodes)
        different = ~np.eye(self.timeline.size, dtype=np.bool_)
        return np.asarray(possible[:, :, np.newaxis] & possible[:, np.newaxis, :] & different)

    def affordable(self, nodes: int) -> int:
        """How many stretches of `nodes` nodes can be swept in some seconds."""
        programs = 1 + 2 * len(self.timeline.pairs[0]) * len(self.timeline.spans)
        return _MOST_WORK // (programs * self.timeline.size**2 * nodes)

    def all_deterministic(self, nodes: range) -> bool:
        """Whether no node has a secret."""
        early = len(self.timeline.possible)
        first_nodes = np.arange(
            nodes.start, min(nodes.stop, max(early, nodes.start) + self.timeline.period + 1)
        )
        return bool(self.timeline.is_deterministic(first_nodes).all())


class InfiniteHorizon:
    """Infinite series at the levels of a given series."""

    def __init__(self, sweep: Sweep, levels: Levels) -> None:
        """Choose a grid of levels up to the highest."""
        self.sweep, self.length = sweep, levels.length
        ordered = isinstance(sweep.right, ExactSide) and sweep.right.timeline.order is not None
        self.short = levels.length <= SHORT or ordered or _reaches_everywhere(sweep, levels)
        """Whether the series is swept from end to end, in one piece."""
        grid_size = max(4, min(_GRID, 64 * _GRID // sweep.timeline.size**2))
        self.grids = tuple(
            row.max(keepdims=True) if self.short else few_levels(row, grid_size)
            for row in (levels.backward, levels.forward)
        )

    @property
    def warm_up(self) -> int:
        """The number of nodes further out at which the sweep of a stretch starts."""
        return self.length if self.short else self.probes[2]

    @cached_property
    def outer(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Bounds, by phase, at every late node, left and right; None where there is no bound."""
        before, after = (float(grid[-1]) for grid in self.grids)
        if self.short:
            return self.sweep.long_span_bound(before), None
        right = self.sweep.right.fixed(after)
        if not self.sweep.has_given_start:
            return self.sweep.left_bounds(before), right
        # a certificate for the stationary law does not hold for a given start: take that of any
        # start, and add the log-ratios of the late law
        contracted = None if self.sweep.coarse is None else self.sweep.coarse.fixed(before)
        return (
            None if contracted is None else contracted + self.sweep.timeline.late_prior_log_ratios,
            right,
        )

    @cached_property
    def probes(self) -> tuple[FloatArray, FloatArray, int]:
        """Bounds deep inside runs of each grid level, and the number of nodes after which they
        hold.
        """
        left, steps = self._probe(self.sweep.left, 1, self.grids[0], self.outer[0])
        right, more = self._probe(self.sweep.right, -1, self.grids[1], self.outer[1])
        return left, right, max(steps, more)

    def _probe(
        self, side: Side, toward: int, grid: FloatArray, outer: FloatArray | None
    ) -> tuple[FloatArray, int]:
        """Sweep an infinite series of each level until it converges; the worst over a period.

        The highest level is also swept from the boundary value, which shows how far an end reaches.
        """
        period, node = self.sweep.timeline.period, self.sweep.late_node
        node += (1 << 40) // period * period
        start = side.unbounded(1) if outer is None else outer[[0]]
        inner_bounds: list[FloatArray] = []
        longest = 0
        from_end = _Probe(
            side, side.boundary_value(np.array([node])), node, toward, float(grid[-1])
        )
        for level in grid[::-1].tolist():
            probe = _Probe(side, start, node, toward, level)
            while True:
                probe.extend(max(_STRIDE, period, probe.steps))
                settled = agree(probe.rows[-1], probe.rows[-1 - period], 0.0)
                if not inner_bounds:
                    from_end.extend(probe.steps - from_end.steps)
                    settled = settled and agree(probe.rows[-1], from_end.rows[-1], _END)
                if settled or probe.steps >= min(self.length, MOST_WARM_UP) + period:
                    break
            inner_bounds.append(probe.rows[-period:].max(axis=0))
            longest = max(longest, probe.steps)
        return np.array(inner_bounds[::-1]), longest + side.spans[-1]


class _Probe:
    """A side that is swept at one level for as many nodes as needed."""

    def __init__(self, side: Side, start: FloatArray, node: int, toward: int, level: float) -> None:
        self.side, self.rows, self.node, self.toward = side, start, node, toward
        self.level, self.steps = level, 0

    def extend(self, steps: int) -> None:
        """Sweep `steps` more nodes."""
        recent = min(len(self.rows), self.side.spans[-1])
        first = self.node + self.toward * (self.steps - recent + 1)
        levels = np.full(recent + steps, self.level)
        ahead = self.side.follow(self.rows[-recent:], first, levels)[recent:]
        self.rows = np.concatenate([self.rows, ahead])
        self.steps += steps


def agree(first: FloatArray, second: FloatArray, tolerance: float) -> bool:
    """Whether bounds agree within a tolerance; infinite bounds are not compared."""
    both = np.isfinite(first) & np.isfinite(second)
    apart = np.abs(first[both] - second[both]).max(initial=0.0)
    largest = np.abs(first[both]).max(initial=0.0)
    return bool(apart <= max(tolerance, _CONVERGED) * (1e-3 + largest))


def _reaches_everywhere(sweep: Sweep, levels: Levels) -> bool:
    """Whether a warm-up would be about as long as the series itself."""
    side, most = sweep.right, levels.length // 4
    if levels.length > MOST_WARM_UP or sweep.timeline.period > 1 or sweep.timeline.size == 1:
        return False
    level = float(levels.forward.max())
    return (
        isinstance(side, ExactSide) and side.homogeneous.boundary_reach(level, most, _BITS) >= most
    )


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of nodes first..last, each swept on its own."""

    first: IntArray
    last: IntArray

    def __len__(self) -> int:
        return len(self.first)


class SweptSeries:
    """One set of levels swept over a series."""

    def __init__(self, sweep: Sweep, levels: Levels, nodes: range) -> None:
        self.sweep, self.levels = sweep, sweep.charged_levels(levels)
        last = max(nodes.start, min(nodes.stop - 1, levels.length) - sweep.episode + 1)
        self.nodes = range(nodes.start, last + 1)

    @cached_property
    def whole(self) -> bool:
        """Whether the series is swept from end to end."""
        runs, timeline = len(self.levels.first), self.sweep.timeline
        programs = 1 + 2 * len(timeline.pairs[0]) * len(timeline.spans)
        work = runs * _SETTLES * programs * timeline.size**2
        affordable_work = _LITTLE_WORK if timeline.fully_observed else _SOME_WORK
        few = runs <= _VERY_FEW or (runs <= _FEW_RUNS and work <= affordable_work)
        return few or self.horizon.short

    @cached_property
    def horizon(self) -> InfiniteHorizon:
        """The bounds from which stretches are swept."""
        return InfiniteHorizon(self.sweep, self.levels)

    def worst(self) -> Leak:
        """The worst node: stretches in order of their quick bounds, until no other can be worse."""
        start = Leak(-1.0, self.nodes.start, 0.0, 0.0, 0.0)
        if self.whole:
            return self._worst_between(self.nodes.start, self.nodes.stop - 1, start)
        stretches = self.stretches()
        bounds = self.bounds(stretches)
        order = np.argsort(-bounds, kind="stable")
        best, most = start, self._affordable
        for count, index in enumerate(order.tolist()):
            # stretches are in order of their bounds: no later one can be worse
            if bounds[index] <= best.leak:
                break
            if count >= most:  # the quick bound of the next stretch bounds all that are left
                return replace(best, leak=float(bounds[index]))
            first, last = int(stretches.first[index]), int(stretches.last[index])
            best = self._worst_between(first, last, best)
        return best

    def _worst_between(self, first: int, last: int, best: Leak) -> Leak:
        """The worse of a known node and the nodes first..last."""
        for nodes, _, leak, *parts in self._leaks(first, last):
            top = int(np.argmax(leak))
            if leak[top] > best.leak:
                best = Leak(
                    float(leak[top]), int(nodes[top]), *(float(part[top]) for part in parts)
                )
        return best

    def profile(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Runs of nodes and their leakage; stretches beyond the affordable ones keep their quick
        bounds.
        """
        every = Stretches(np.array([self.nodes.start]), np.array([self.nodes.stop - 1]))
        stretches = every if self.whole else self.stretches()
        first: list[IntArray] = []
        last: list[IntArray] = []
        values: list[FloatArray] = []
        indices = np.arange(len(stretches))
        if not self.whole and self._affordable < len(stretches):
            bounds = self.bounds(stretches)
            order = np.argsort(-bounds, kind="stable")
            indices, others = np.sort(order[: self._affordable]), order[self._affordable :]
            first, last, values = (
                [stretches.first[others]],
                [stretches.last[others]],
                [bounds[others]],
            )
        for index in indices.tolist():
            begin, end = int(stretches.first[index]), int(stretches.last[index])
            for nodes, ends, leak, *_ in self._leaks(begin, end):
                run_first, run_last, run_leak = _runs_of_alike(
                    nodes, ends, leak, self.sweep.timeline.period
                )
                first.append(run_first)
                last.append(run_last)
                values.append(run_leak)
        firsts, lasts, leaks = np.concatenate(first), np.concatenate(last), np.concatenate(values)
        order = np.argsort(firsts, kind="stable")
        return firsts[order], lasts[order], leaks[order]

    def _leaks(self, first: int, last: int) -> Iterator[tuple[Any, ...]]:
        """Representative nodes of a stretch, the last node that each represents, and their leakage.

        Of equal nodes those of one period are computed, which together represent all up to the
        last.
        """
        more = self.sweep.episode - 1
        left, right = self.followed(first, last)
        early, runs = len(self.sweep.timeline.possible), self.levels.first
        ends = np.array([first, last + 1, early + 1, early + 1 - more])
        cuts = ends, runs, runs - more, left.cuts, right.cuts - more
        begins: IntArray = np.unique(np.concatenate(cuts))
        begins = begins[(begins >= first) & (begins <= last + 1)]
        begins, ends = begins[:-1], begins[1:] - 1
        steady = left.is_steady(begins) & right.is_steady(begins + more) & (begins > early)
        sizes = np.where(
            steady, np.minimum(ends - begins + 1, self.sweep.timeline.period), ends - begins + 1
        )
        part = np.repeat(np.arange(len(begins)), sizes)
        nodes = begins[part] + np.arange(len(part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        until = np.where(steady[part], ends[part], nodes)
        step = max(1, _CELLS // self.sweep.timeline.size**2)
        at = 0
        while at < len(nodes):
            stop = min(at + step, len(nodes))
            while stop < len(nodes) and until[stop] == until[stop - 1]:
                stop += 1
            chunk = nodes[at:stop]
            parts = self.sweep.leakage_parts(
                self.levels, chunk, left.at(chunk), right.at(chunk + more)
            )
            yield chunk, until[at:stop], *parts
            at = stop

    def followed(self, first: int, last: int) -> tuple[SideBounds, SideBounds]:
        """The bounds of both sides at the nodes of a stretch, swept from some nodes further out."""
        sweep, levels, more = self.sweep, self.levels, self.sweep.episode - 1
        caps = self._caps
        starts: tuple[FloatArray | None, FloatArray | None] = (None, None)
        reaches = 1, levels.length
        if not self.whole:
            reach, starts = self.horizon.warm_up, self.horizon.outer
            begin = first - reach
            if sweep.has_given_start and first <= len(sweep.timeline.possible) + reach:
                begin = 1
            reaches = max(begin, 1), min(last + more + reach, levels.length)
        begin, end = reaches
        left_start = self._start(sweep.left, begin, begin == 1, starts[0])
        right_start = self._start(sweep.right, end, end == levels.length, starts[1])
        most = [
            _MOST_STEPS
            if isinstance(side, ContractionSide)
            else min(sweep.affordable(1), _MOST_NODES)
            for side in (sweep.left, sweep.right)
        ]
        left = SideBounds(sweep.left, levels, begin, last, left_start, 1, caps[0], most[0])
        right = SideBounds(
            sweep.right, levels, end, first + more, right_start, -1, caps[1], most[1]
        )
        return left, right

    def _start(self, side: Side, node: int, at_end: bool, outer: FloatArray | None) -> FloatArray:
        """The bounds at the node at which a side starts."""
        if at_end:
            return side.boundary_value(np.array([node]))
        return side.unbounded(1) if outer is None else outer[[(node - 1) % len(outer)]]

    @cached_property
    def _caps(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Bounds at every node by spans that are too long to be swept."""
        sweep, levels = self.sweep, self.levels
        left = sweep.long_span_bound(float(levels.backward.max()))
        if isinstance(sweep.left, ContractionSide):
            left = sweep.left.fixed(float(levels.backward.max()))
        elif left is None and not self.whole and isinstance(sweep.left, ExactSide):
            left = self.horizon.outer[0] if sweep.left.any_start else None
        if not isinstance(sweep.right, ContractionSide):
            return left, None
        return left, sweep.right.fixed(float(levels.forward.max()))

    def stretches(self) -> Stretches:
        """Stretches around every change of level, some hundred nodes each, and those in between."""
        reach, more = self.horizon.warm_up, self.sweep.episode - 1
        early, nodes = len(self.sweep.timeline.possible), self.nodes
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
        left_level = np.searchsorted(behind, levels.most(levels.backward, start, stretches.last))
        right_level = np.searchsorted(beyond, levels.most(levels.forward, stretches.first, stop))
        code, where = np.unique(left_level * len(beyond) + right_level, return_inverse=True)
        pairs = np.divmod(code, len(beyond))
        sides = np.array([self._sides(left[[b]], right[[a]]) for b, a in zip(*pairs, strict=True)])
        # levels around the stretch are at most those of the grid, and bounds rise with levels
        bound = own + sides[where.ravel()]
        # early nodes have laws of their own, for which the infinite series is no bound
        early = stretches.first <= len(self.sweep.timeline.possible)
        return np.minimum(np.where(early, np.inf, bound), levels.total)

    def _sides(self, left: FloatArray, right: FloatArray) -> float:
        """The largest sum of both sides over a period and all pairs of states."""
        nodes = np.arange(self.sweep.timeline.period) + self.sweep.late_node
        shape = (len(nodes), *left.shape[1:])
        after_shape = (len(nodes), *right.shape[1:])
        before, after = self.sweep.worst_pair(
            nodes, np.broadcast_to(left, shape), np.broadcast_to(right, after_shape)
        )
        return float((before + after).max())

    @cached_property
    def _affordable(self) -> int:
        """The number of stretches that are swept; the others keep their quick bounds."""
        return max(1, self.sweep.affordable(3 * max(SMALL_PIECE, self.horizon.warm_up)))


def _runs_of_alike(
    nodes: IntArray, ends: IntArray, leak: FloatArray, period: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Runs (first, last, leak) of nodes, each represented by its worst node.

    Turns of a period are alike, their nodes are not: up to `_MOST_APART` nodes are listed one by
    one, beyond that the worst of a turn stands for all.
    """
    group = np.flatnonzero(np.append(True, np.diff(ends) > 0))
    first, last, worst = nodes[group], ends[group], np.maximum.reduceat(leak, group)
    sizes = np.diff(np.append(group, len(nodes)))
    turning = (sizes == period) & (last - first >= period) & (period > 1)
    parts = [(first[~turning], last[~turning], worst[~turning])]
    for index in np.flatnonzero(turning).tolist():
        count = int(last[index] - first[index]) + 1
        offsets = np.arange(min(count, _MOST_APART))
        nodes_of_turns = first[index] + offsets
        parts.append((nodes_of_turns, nodes_of_turns, leak[group[index] + offsets % period]))
        if count > len(offsets):
            parts.append((nodes_of_turns[-1:] + 1, last[[index]], worst[[index]]))
    firsts, lasts, leaks = (np.concatenate(column) for column in zip(*parts, strict=True))
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
