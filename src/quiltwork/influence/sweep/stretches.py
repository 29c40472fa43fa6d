"""Stretches of nodes that are swept in step.

A stretch begins some nodes further out than it is asked for, from bounds that hold there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quiltwork.influence.kernel import sweep, sweep_two
from quiltwork.influence.ratios import BoolArray
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.sides import Exact, Side

SMALL_PIECE = 256
_CONVERGED = 2.0**-36
_FIRST_NODES = 256
_MOST_TURNS = 64
_FIRST_RAISE, _LAST_RAISE = -36, -8
_ORDINARY = 64.0
_LONG_PERIOD, _LONG_RAISE = 256, -20


@dataclass(frozen=True, eq=False)
class Pieces:
    """Stretches of nodes start..stop; a deep one stands for all nodes up to `last`."""

    start: IntArray
    stop: IntArray
    last: IntArray
    deep: BoolArray

    def __len__(self) -> int:
        return len(self.start)

    def take(self, which: IntArray) -> Pieces:
        """Some of them."""
        return Pieces(self.start[which], self.stop[which], self.last[which], self.deep[which])


def merged(begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Unite intervals begin..end−1 that meet; both arrays ascend."""
    reach = np.maximum.accumulate(ends)
    opens = np.append(True, begins[1:] > reach[:-1])
    closes = np.append(opens[1:], True)
    return begins[opens], reach[closes]


def pieces_around(
    edges: IntArray, nodes: range, reach: int, early: int, more: int, period: int
) -> Pieces:
    """Stretches up to `reach` nodes around the edges, in pieces, and one node for each rest.

    The first `early` nodes are swept from the start, so they stay in one piece. A secret begins up
    to `more` nodes before an edge that it meets.
    """
    begins, ends = edges - reach - more, edges + reach
    begins[0], ends[0] = 1, max(ends[0], early + reach)
    begins, ends = merged(begins, ends)
    begins, ends = np.maximum(begins, nodes.start), np.minimum(ends, nodes.stop)
    kept = begins < ends
    begins, ends = begins[kept], ends[kept]
    size = max(SMALL_PIECE, reach)
    start = [
        np.unique(np.append(np.arange(max(b, min(early, e - 1)), e, size), b))
        for b, e in zip(begins, ends, strict=True)
    ]
    stop = [np.append(s[1:], e) - 1 for s, e in zip(start, ends, strict=True)]
    gap_first = np.concatenate([[nodes.start], ends])
    gap_last = np.concatenate([begins, [nodes.stop]]) - 1
    gaps = gap_first <= gap_last
    gap_first, gap_last = gap_first[gaps], gap_last[gaps]
    gap_stop = np.minimum(gap_first + period - 1, gap_last)
    starts = np.concatenate([*start, gap_first]).astype(np.int64)
    stops = np.concatenate([*stop, gap_stop]).astype(np.int64)
    lasts = np.concatenate([*stop, gap_last]).astype(np.int64)
    return Pieces(starts, stops, lasts, np.arange(len(starts)) >= len(starts) - len(gap_first))


def capped(bounds: FloatArray, pieces: Pieces, outer: FloatArray) -> FloatArray:
    """Bounds of the nodes of pieces, none above what holds at every node of its phase."""
    nodes = pieces.start[:, np.newaxis] + np.arange(bounds.shape[1])
    return np.asarray(np.minimum(bounds, outer[(nodes - 1) % len(outer)]))


def agree(one: FloatArray, other: FloatArray, tolerance: float) -> bool:
    """Whether bounds agree as far as it matters; where one is unknown nothing is compared."""
    both = np.isfinite(one) & np.isfinite(other)
    apart = np.abs(one[both] - other[both]).max(initial=0.0)
    largest = np.abs(one[both]).max(initial=0.0)
    return bool(apart <= max(tolerance, _CONVERGED) * (1e-3 + largest))


def endless(
    side: Side,
    bounds: FloatArray,
    node: int,
    toward: int,
    levels: FloatArray,
    steps: int,
    gap: float = 0.0,
) -> FloatArray:
    """The bounds after 0, 1, …, `steps` steps at constant levels: (levels, steps + 1, …).

    `gap` is what every step pays on its way.
    """
    lanes = len(levels)
    nodes = np.full((lanes, 1), node) + toward * np.arange(steps + 1)
    if isinstance(side, Exact):
        result = np.empty((lanes, steps + 1, *bounds.shape[1:]))
        spent = np.repeat(levels[:, np.newaxis], steps + 1, axis=1)
        first = nodes.min(axis=1)
        count = np.full(lanes, steps)
        sweep_stretches(side, bounds, nodes[:, 0], count, nodes, spent, first, result, gap)
        return result if toward > 0 else result[:, ::-1]
    known = [bounds]
    paid = gap * ~np.eye(bounds.shape[-1], dtype=np.bool_)
    for _ in range(steps):
        beyond = known[: -side.spans[-1] - 1 : -1]
        known.append(side.step(beyond, [levels] * len(beyond)) + paid)
    return np.stack(known, axis=1)


def cyclic_bounds(side: Exact, level: float) -> FloatArray | None:
    """Bounds, by phase, that no step at this level exceeds where matrices change; None if unknown.

    A sweep of some nodes, then of twice as many, comes close to what repeats. From there one turn
    begins a little higher: if it ends no higher than it began, its bounds hold for ever, since each
    comes from those before it.
    """
    period, toward = side.walk.period, 1 if side.to_left else -1
    node = (1 << 40) // period * period + 1
    levels, off = np.array([level]), ~np.eye(side.walk.size, dtype=np.bool_)
    ahead, power = min(_FIRST_NODES, period), _FIRST_RAISE
    if period >= _LONG_PERIOD:  # which what is added at its beginning does not outlive
        power = _LONG_RAISE
    again = True
    bounds = side.rest(np.array([node - toward * ahead]))
    while True:
        if ahead:
            bounds = endless(side, bounds, node - toward * ahead, toward, levels, ahead)[:, -1]
        raised = bounds + off * 2.0**power
        found = endless(side, raised, node, toward, levels, period)
        if (found[:, -1] <= raised).all():
            return np.asarray(found[0, (toward * np.arange(period)) % period])
        both = np.isfinite(found[:, -1]) & np.isfinite(raised)
        moved = np.abs(found[:, -1][both] - raised[both]).max(initial=0.0)
        bounds = found[:, -1]
        if moved > 2.0 ** (power + 1) and again:  # not yet where it stays
            again, ahead = False, 0
        elif moved > 2.0 ** (power + 1):  # longer sweeps
            ahead = 2 * max(ahead, period)
            ahead -= ahead % period
            if ahead > _MOST_TURNS * period:
                return None
        else:
            power += 2
            ahead = 0
            if power >= _LAST_RAISE:
                return None


def are_ratios(side: Exact, start: FloatArray, spent: FloatArray) -> bool:
    """Whether two states are swept by ratios: all steps likely, and no level beyond what is met."""
    walk = side.walk
    alike = walk.size == 2 and walk.spans == (1,) and side.uniform() and not side.any_start
    ordinary = alike and walk.all_told and float(spent.max(initial=0.0)) < _ORDINARY
    return ordinary and bool(np.isfinite(start).all())


def sweep_stretches(
    side: Exact,
    start: FloatArray,
    begin: IntArray,
    steps: IntArray,
    visited: IntArray,
    spent: FloatArray,
    first: IntArray,
    result: FloatArray,
    gap: float = 0.0,
    known: int = 0,
) -> None:
    """Sweep stretches by the kernel; what they begin with holds at `known` nodes more."""
    walk = side.walk
    if not gap and are_ratios(side, start, spent):
        rows = walk.steps[0].T if side.to_left else walk.steps[0]
        given = np.exp(start), begin, steps, first, np.exp(spent), result
        sweep_two(rows, *given, to_left=side.to_left)
        with np.errstate(divide="ignore", invalid="ignore"):  # where no node is
            np.log(result, out=result)
        return
    possible = np.ones((*visited.shape, walk.size), dtype=np.bool_)
    if side.to_left:
        possible[:] = walk.possible_at(visited.ravel()).reshape(possible.shape)
    sweep(
        *side.stacked,
        np.array(side.spans),
        np.array([walk.margin(span) + gap for span in side.spans]),
        walk.pairs,
        walk.tells,
        start,
        begin,
        steps,
        first,
        spent,
        possible,
        result,
        to_left=side.to_left,
        any_start=side.any_start,
        known=known,
    )
