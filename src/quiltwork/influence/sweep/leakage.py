"""What every node leaks: the node itself, and what its two sides tell about it.

leak(i) = own level of i + max over states x ≠ x' of (left bound + right bound)[x, x']. Stretches
around the places where levels change are swept node by node, all of them in step; a sweep begins
some nodes further out, from bounds that hold everywhere. Away from such places all nodes are
alike, so that cost follows the number of places and not the length.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from quiltwork.influence.ratios import BoolArray
from quiltwork.influence.sweep.endless import Endless
from quiltwork.influence.sweep.levels import Levels
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.influence.sweep.shown import between_shown
from quiltwork.influence.sweep.sides import Contracted, Exact, Side
from quiltwork.influence.sweep.stretches import (
    SMALL_PIECE,
    Pieces,
    capped,
    pieces_around,
    sweep_stretches,
)
from quiltwork.influence.sweep.walks import Walk

_CELLS = 1 << 24
_MOST_WORK = 1 << 32
"""So many entries of programs are looked at for one set of levels: some seconds."""


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

    walk: Walk
    left: Side
    right: Side
    length: int
    episode: int = 1
    coarse: Contracted | None = None

    def worst(self, levels: Levels, nodes: range, endless: Endless | None = None) -> Leak:
        """The node among `nodes` that leaks most; `endless` is that of these levels, if known."""
        return Swept(self, levels, nodes, endless).worst()

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

    def about_all_pairs(self) -> Sweep:
        """The same with all pairs of states kept apart."""
        return self if self.walk.kept is None else replace(self, walk=replace(self.walk, kept=None))

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


class Swept:
    """One set of levels swept over a series."""

    def __init__(
        self, sweep: Sweep, levels: Levels, nodes: range, endless: Endless | None = None
    ) -> None:
        levels = sweep.charged(levels)
        self.endless = Endless(sweep, levels) if endless is None else endless
        last = max(nodes.start, min(nodes.stop - 1, levels.length) - sweep.episode + 1)
        self.sweep, self.levels, self.nodes = sweep, levels, range(nodes.start, last + 1)

    def pieces(self) -> Pieces:
        """The stretches around every change of level, in pieces, and one node for each rest."""
        if self.endless.short:
            node, last = np.array([self.nodes.start]), np.array([self.nodes.stop - 1])
            return Pieces(node, last, last, np.array([False]))
        early, more = len(self.sweep.walk.possible), self.sweep.episode - 1
        edges = np.concatenate([self.levels.first, [self.levels.length + 1]])
        return pieces_around(
            edges, self.nodes, self.endless.warm_up, early, more, self.sweep.walk.period
        )

    def bounds(self, pieces: Pieces) -> FloatArray:
        """A quick bound for each piece, from the highest levels in and around it."""
        if self.endless.short:
            return np.full(len(pieces), np.inf)
        reach, levels, more = self.endless.warm_up, self.levels, self.sweep.episode - 1
        left, right, _ = self.endless.probes
        start = np.maximum(pieces.start - reach, 1)
        end = np.minimum(pieces.stop + more, levels.length)
        stop = np.minimum(end + reach, levels.length)
        own = levels.most(levels.own, pieces.start, pieces.stop)
        own = own + more * levels.most(levels.forward, pieces.start, end)
        behind, beyond = self.endless.grids
        back = np.searchsorted(behind, levels.most(levels.backward, start, pieces.stop))
        ahead = np.searchsorted(beyond, levels.most(levels.forward, pieces.start, stop))
        code, where = np.unique(back * len(beyond) + ahead, return_inverse=True)
        pairs = np.divmod(code, len(beyond))
        sides = np.array([self._sides(left[[b]], right[[a]]) for b, a in zip(*pairs, strict=True)])
        bound = own + sides[where.ravel()]
        early = pieces.start <= len(self.sweep.walk.possible)
        return np.minimum(np.where(early, np.inf, bound), levels.total)

    def _sides(self, left: FloatArray, right: FloatArray) -> float:
        nodes = np.arange(self.sweep.walk.period) + self.sweep.late
        shape = (len(nodes), *left.shape[1:])
        after_shape = (len(nodes), *right.shape[1:])
        before, after = self.sweep.parts(
            nodes, np.broadcast_to(left, shape), np.broadcast_to(right, after_shape)
        )
        return float((before + after).max())

    def affordable(self, pieces: Pieces) -> int:
        """So many pieces are swept; the others keep their quick bounds."""
        longest = int((pieces.stop - pieces.start).max(initial=0)) + 1
        return max(1, self.sweep.affordable(longest + self.endless.warm_up))

    def worst(self) -> Leak:
        """Pieces in order of their bounds, until no other can be worse or too many are left."""
        pieces = self.pieces()
        bounds = self.bounds(pieces)
        order = np.argsort(-bounds, kind="stable")
        best = Leak(-1.0, self.nodes.start, 0.0, 0.0, 0.0)
        done, most = 0, self.affordable(pieces)
        while done < len(order) and bounds[order[done]] > best.leak:
            if done >= most:  # what is left leaks no more than the quick bound of the next
                return replace(best, leak=float(bounds[order[done]]))
            batch = min(4 * done + 1, self._lanes, most - done)
            which = order[done : done + batch]
            done += len(which)
            nodes, _, leak, *parts = self.swept(pieces.take(which))
            top = int(np.argmax(leak))
            if leak[top] > best.leak:
                best = Leak(float(leak[top]), int(nodes[top]), *(float(one[top]) for one in parts))
        return best

    @property
    def _lanes(self) -> int:
        cells = self.sweep.walk.size**2 * max(SMALL_PIECE, self.endless.warm_up)
        return max(1, _CELLS // cells)

    def profile(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Every piece, node by node; beyond what is affordable, the lesser pieces as a whole."""
        pieces = self.pieces()
        first, last, values = [], [], []
        if (affordable := self.affordable(pieces)) < len(pieces):
            bounds = self.bounds(pieces)
            order = np.argsort(-bounds, kind="stable")
            rest, pieces = pieces.take(order[affordable:]), pieces.take(np.sort(order[:affordable]))
            first, last, values = [rest.start], [rest.last], [bounds[order[affordable:]]]
        for begin in range(0, len(pieces), self._lanes):
            part = pieces.take(np.arange(begin, min(begin + self._lanes, len(pieces))))
            nodes, piece, leak, *_ = self.swept(part)
            begins = np.flatnonzero(np.diff(piece, prepend=-1))
            alike = part.deep[piece]  # these nodes stand for all up to the last one
            most = np.maximum.reduceat(leak, begins)[piece]
            shown = ~alike
            shown[begins] = True
            first.append(nodes[shown])
            last.append(np.where(alike, part.last[piece], nodes)[shown])
            values.append(np.where(alike, most, leak)[shown])
        firsts, lasts, leaks = np.concatenate(first), np.concatenate(last), np.concatenate(values)
        if (np.diff(firsts) > 0).all():
            return firsts, lasts, leaks
        order = np.argsort(firsts)
        return firsts[order], lasts[order], leaks[order]

    def swept(
        self, pieces: Pieces
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """All nodes with the piece of each, what they leak, and the three parts of that."""
        left = self._lane(self.sweep.left, 1, pieces, self.endless.outer[0])
        more = self.sweep.episode - 1
        ends = Pieces(pieces.start + more, pieces.stop + more, pieces.last, pieces.deep)
        right = self._lane(self.sweep.right, -1, ends, self.endless.outer[1])
        sizes = pieces.stop - pieces.start + 1
        piece = np.repeat(np.arange(len(pieces)), sizes)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        nodes = pieces.start[piece] + place
        sides = left[piece, place], right[piece, place]
        leak, own, before, after = self.sweep.leaks(self.levels, nodes, *sides)
        return nodes, piece, leak, own, before, after

    def _lane(
        self, side: Side, toward: int, pieces: Pieces, outer: FloatArray | None
    ) -> FloatArray:
        """The bounds of one side at all nodes of the pieces, (pieces, nodes, …).

        `toward` is the direction in which they are swept: 1 on the left, −1 on the right. The two
        sides of a box are one and the same, so that it cannot be read from the side.
        """
        to_left = toward == 1
        size, lanes = int((pieces.stop - pieces.start).max()) + 1, len(pieces)
        walk = self.sweep.walk
        started = to_left and self.sweep.started
        near = pieces.start if to_left else pieces.stop
        reach = self.endless.warm_up
        if started:
            early = near <= len(walk.possible) + reach
            reach = max(reach, int((near[early] - 1).max(initial=0)))
        begin = np.clip(near - toward * reach, 1, self.levels.length)
        at_end = (begin == (1 if to_left else self.levels.length)) & ~pieces.deep
        steps = np.abs(pieces.stop - begin) if to_left else np.abs(begin - pieces.start)
        longest = int(steps.max(initial=0))
        delay = longest - steps  # lanes with fewer steps wait, so that all arrive together
        values = self.levels.backward if to_left else self.levels.forward
        fresh = np.where(
            at_end[:, None, None],
            side.rest(begin),
            side.unknown(lanes) if outer is None else outer[(begin - 1) % len(outer)],
        )
        result = np.empty((lanes, size, *fresh.shape[1:]))
        if isinstance(side, Exact):
            offsets = np.minimum(np.arange(longest + 1), steps[:, None])
            visited = begin[:, None] + toward * offsets
            spent = self.levels.at(values, visited.ravel()).reshape(visited.shape)
            sweep_stretches(side, fresh, begin, steps, visited, spent, pieces.start, result)
            # of one number per phase only long spans, which are not swept, say less than a sweep
            return capped(result, pieces, outer) if side.any_start and outer is not None else result
        steps_of = begin[:, None] + toward * np.maximum(np.arange(longest + 1) - delay[:, None], 0)
        spent = self.levels.at(values, steps_of.ravel()).reshape(steps_of.shape)
        bounds: list[FloatArray] = []
        levels: list[FloatArray] = []
        unknown = side.unknown(lanes)
        constant = outer is None or len(outer) == 1
        changes = np.flatnonzero((spent[:, 1:] != spent[:, :-1]).any(axis=0))
        alike = max(int(changes[-1]) + 1 if len(changes) else 0, int(delay.max())) + side.spans[-1]
        for step in range(longest + 1):
            nodes = steps_of[:, step]
            waiting = step <= delay
            if bounds:
                found = side.step(bounds, levels)
                if outer is not None:  # from long spans, which are not swept
                    found = np.minimum(found, outer[(nodes - 1) % len(outer)])
                found = np.where(waiting[:, None, None], fresh, found)
            else:
                found = fresh
            place = nodes - pieces.start
            shown = (place >= 0) & (nodes <= pieces.stop)
            result[np.flatnonzero(shown), place[shown]] = found[shown]
            if constant and step >= alike and all(np.array_equal(found, one) for one in bounds):
                # Equal bounds and levels gave an equal bound, and will to the end.
                later = steps_of[:, step + 1 :]
                place = later - pieces.start[:, None]
                lane, column = np.nonzero((place >= 0) & (later <= pieces.stop[:, None]))
                result[lane, place[lane, column]] = found[lane]
                break
            early = step < delay
            own = np.where(early, np.inf, spent[:, step])
            found = np.where(early[:, None, None], unknown, found)
            bounds = [found, *bounds[: side.spans[-1] - 1]]
            levels = [own, *levels[: side.spans[-1] - 1]]
        return result


def _most(bounds: FloatArray, secret: BoolArray) -> FloatArray:
    """The largest bound over the pairs of states; 0 where there is no pair."""
    flat = np.where(secret, bounds, 0.0).reshape(len(secret), -1)
    return np.asarray(flat.max(axis=1, initial=0.0))
