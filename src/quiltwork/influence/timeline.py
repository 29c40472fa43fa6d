"""A chain as bounds see it: matrices, laws and possible states of its time points.

Matrices repeat with a period (1 for a homogeneous chain), or come in any public order (`order`), as
a calendar of working days and holidays has them. Laws of the first nodes are known one by one;
later ones are within `slack` of a limit that repeats with the same period. In a public order all
nodes are known one by one (`sequence_timeline`), and the sweep goes from end to end; days that it
enters as it entered one like them before are not swept again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from quiltwork.beliefs import CyclicChain, DatedChain, MarkovChain
from quiltwork.beliefs.stationary import irreducible_stationary, relative_error
from quiltwork.beliefs.structure import class_period
from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence.kernel import product as product_of
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.ratios import BoolArray, product_margin

_SUPPORT_STEPS = 4096
MARGINAL_STEPS = 1 << 16
CONVERGED = 2.0**-36

UNSETTLED_NODES = 64
"""How many nodes of a chain that never mixes are looked at one by one after its supports settle."""

_SPANS = (1, 2, 4, 8, 16)
_UNLIKELY = 1e-6
"""Of the likeliest move: all moves of a slow chain are unlikely, and one step at a time does."""
_UNLIKELY_FROM_ANY = 0.04
"""From any start: laws that one step allows for are out of reach after several."""
_MOST_BEHIND = 32
_MANY_PAIRS = 20_000
"""In longer periods one step is taken where all are possible: five times the work gains little."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """X_1, X_2, … with P_t leading from X_t to X_{t+1}; node t has phase (t − 1) mod period.

    Attributes:
        steps: (period, k, k) the matrices; with an order all that occur in it.
        laws: (n, k) numbers proportional to the laws of X_1..X_n; None for every start at once.
        possible: (n, k) the states they can take.
        limits: (period, k) what later laws are proportional to, or None where they have no limit;
            for every start at once, 1 for the states that later nodes can take.
        slack: how far they can be from it, projectively; what rounding may add is included.
        tells: (k, k) which pairs of states the data tell apart; the others are no secret, and a
            release does not move between them.
        kept: (k, k) which of these are secret pairs; None for all of them. What is passed on from
            node to node is about every pair, the worst node is sought among secret ones.
        order: (n,) which of the matrices leads from each of X_1..X_n; None where they repeat.
        marks: nodes at which what follows may be like what followed an earlier one, ascending; the
            first nodes of days.
    """

    steps: FloatArray
    laws: FloatArray | None
    possible: BoolArray
    limits: FloatArray | None
    slack: float
    tells: BoolArray
    kept: BoolArray | None = None
    order: IntArray | None = None
    marks: IntArray | None = None

    @property
    def size(self) -> int:
        """The number of states."""
        return int(self.steps.shape[1])

    @property
    def period(self) -> int:
        """After how many nodes the matrices repeat; 1 in a public order, where they do not."""
        return len(self.steps) if self.order is None else 1

    @cached_property
    def independent(self) -> bool:
        """Whether nodes tell nothing about each other: all rows of a matrix are the same."""
        return bool((self.steps == self.steps[:, :1]).all())

    @cached_property
    def all_told(self) -> bool:
        """Whether the data tell all states apart."""
        return bool(self.tells.sum() == self.size * (self.size - 1))

    @cached_property
    def all_secret(self) -> bool:
        """Whether every node can take all of several states, and the data tell them apart."""
        all_possible = bool(self.possible.all() and self.late_possible.all())
        return self.size > 1 and self.all_told and self.kept is None and all_possible

    @cached_property
    def secret(self) -> BoolArray:
        """(k, k) the pairs of states that are kept apart, of those that the data tell apart."""
        return self.tells if self.kept is None else self.tells & self.kept

    @cached_property
    def secret_sets(self) -> tuple[IntArray, IntArray]:
        """The pairs of shown states that are kept apart, as positions in `shown_sets`."""
        first = self.shown_sets.argmax(axis=1)
        a, b = np.nonzero(self.secret[np.ix_(first, first)])
        return a, b

    @cached_property
    def shown_sets(self) -> BoolArray:
        """(shown states, k) which states show the same."""
        return np.unique(~self.tells, axis=0)

    @cached_property
    def _nothing_told(self) -> tuple[BoolArray, BoolArray]:
        """For nodes known one by one, and for later ones by phase."""
        early, late = (
            (sets[:, :, np.newaxis] & sets[:, np.newaxis, :] & self.secret).any(axis=(1, 2))
            for sets in (self.possible, self.late_possible)
        )
        return np.logical_not(early), np.logical_not(late)

    def known_at(self, nodes: IntArray) -> BoolArray:
        """Whether a node has nothing to hide: no two of its possible states are kept apart."""
        return self._at(nodes, *self._nothing_told)

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """How many steps are taken at once: one where all are likely enough, else up to 16.

        Of many states with a long memory few can follow, and several steps reach all of them: one
        step is a hundred times quicker there, for some percent more noise.
        """
        if not self.all_told and self.size > _MOST_BEHIND:
            return (1,)
        if self.laws is None:
            return (1,) if bool((self.steps > _UNLIKELY_FROM_ANY).all()) else _SPANS
        moves = ~np.eye(self.size, dtype=np.bool_)
        unlikely = np.where(moves, self.steps.max(initial=0.0, where=moves), 1.0) * _UNLIKELY
        if self.period * len(self.pairs[0]) > _MANY_PAIRS:
            unlikely = np.zeros_like(unlikely)
        return (1,) if bool((self.steps > unlikely).all()) else _SPANS

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """All ordered pairs of different states."""
        x, y = np.nonzero(~np.eye(self.size, dtype=np.bool_))
        return x, y

    @property
    def programs(self) -> int:
        """How many are solved on one side in a period."""
        return self.period * len(self.pairs[0]) * len(self.spans)

    @cached_property
    def products(self) -> dict[int, FloatArray]:
        """For every span the products P_t⋯P_{t+span−1} that there are: see `product_at`."""
        if self.order is not None:
            return {span: self._product_of(span) for span in self.spans}
        found, product = {}, self.steps
        for span in range(1, self.spans[-1] + 1):
            if span > 1:
                ahead = np.roll(self.steps, 1 - span, axis=0)
                product = product_of(product, ahead)
            if span in self.spans:
                found[span] = product
        return found

    def _product_of(self, span: int) -> FloatArray:
        """The different products of so many matrices in a row in a public order."""
        rows, _ = self._windows[span]
        product = self.steps[rows[:, 0]]
        for place in range(1, rows.shape[1]):
            product = product_of(product, self.steps[rows[:, place]])
        return np.asarray(product)

    @cached_property
    def _windows(self) -> dict[int, tuple[IntArray, IntArray]]:
        """For every span the different rows of so many matrices, and which begins at each node."""
        order = np.zeros(1, np.int64) if self.order is None else self.order
        found = {}
        for span in self.spans:
            if span > len(order):  # no step is that long
                found[span] = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
                continue
            windows = np.lib.stride_tricks.sliding_window_view(order, span)
            rows, which = np.unique(windows, axis=0, return_inverse=True)
            found[span] = rows, which.ravel()
        return found

    def product_at(self, span: int, nodes: IntArray) -> IntArray:
        """Which of `products[span]` leads from each node to the one `span` later."""
        if self.order is None:
            return np.asarray((nodes - 1) % len(self.steps))
        which = self._windows[span][1]
        return np.asarray(which[np.clip(nodes - 1, 0, len(which) - 1)])

    def margin(self, span: int) -> float:
        """What rounding in a product of so many matrices adds to a log-ratio."""
        return 0.0 if span == 1 else float(product_margin(span, self.size))

    def possible_at(self, nodes: IntArray) -> BoolArray:
        """(len(nodes), k) the states that each node can take."""
        return self._at(nodes, self.possible, self.late_possible)

    @cached_property
    def late_possible(self) -> BoolArray:
        """(period, k) the states of nodes beyond those known one by one."""
        if self.limits is None:
            return np.ones((self.period, self.size), dtype=np.bool_)
        return np.asarray(self.limits > 0)

    def _at(self, nodes: IntArray, early: np.ndarray, late: np.ndarray) -> np.ndarray:
        known = len(early)
        if not known and self.period == 1:  # all alike
            return np.broadcast_to(late, (len(nodes), *late.shape[1:]))
        found = late[(nodes - 1) % self.period].copy()
        soon = nodes <= known
        found[soon] = early[nodes[soon] - 1]
        return found

    def tilts(self, nodes: IntArray) -> FloatArray:
        """(len(nodes), k, k) upper bounds on log m(x')/m(x); +inf unless both are possible."""
        if self.period == 1 and self.laws is not None and not len(self.laws):  # all alike
            return np.broadcast_to(self._late_tilts, (len(nodes), self.size, self.size))
        found = self._late_tilts[(nodes - 1) % self.period]
        soon = np.flatnonzero(nodes <= (0 if self.laws is None else len(self.laws)))
        if self.laws is not None and len(soon):
            early = nodes[soon]
            margin = product_margin(early, self.size)
            found[soon] = _log_ratios(self.laws[early - 1], self.possible[early - 1], margin)
        return found

    @cached_property
    def _late_tilts(self) -> FloatArray:
        """The same for nodes beyond those known one by one, by phase."""
        limits = np.zeros((self.period, self.size)) if self.limits is None else self.limits
        return _log_ratios(limits, self.late_possible, np.full(self.period, self.slack))

    @cached_property
    def late_odds(self) -> FloatArray:
        """(period, k, k) upper bounds on log m(x)/m(x') at those nodes; 0 for x = x'."""
        odds = np.swapaxes(self._late_tilts, 1, 2).copy()
        odds[:, np.arange(self.size), np.arange(self.size)] = 0.0
        return odds


def _log_ratios(law: FloatArray, possible: BoolArray, margin: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        tilt = logs[:, np.newaxis, :] - logs[:, :, np.newaxis]
    both = possible[:, :, np.newaxis] & possible[:, np.newaxis, :]
    return np.where(both & np.isfinite(tilt), tilt + margin[:, np.newaxis, np.newaxis], np.inf)


def timeline_of(
    chain: MarkovChain,
    length: int,
    shown: IntArray | None = None,
    kept: BoolArray | None = None,
) -> Timeline:
    """See a homogeneous chain as a walk, on the states that it can ever be in.

    `shown` is what the data show of each state, all of it if not given; `kept` which shown states
    are secret pairs, all if not given.
    """
    reached = _ever_possible(chain)
    matrix = np.asarray(chain.transition)[np.ix_(reached, reached)]
    seen = (np.arange(chain.size) if shown is None else shown)[reached]
    tells = np.not_equal.outer(seen, seen)
    kept = None if kept is None else kept[np.ix_(seen, seen)]
    steps = matrix[np.newaxis]
    if isinstance(chain.initial, str) and chain.initial == "any":
        found = supports(chain, length)  # they only shrink, so that late ones are all the same
        settled = found.settled is not None
        late = (
            found.at(found.settled or 1)[np.newaxis, reached].astype(np.float64)
            if settled
            else None
        )
        return Timeline(steps, None, found.sets[:, reached], late, 0.0, tells, kept)
    if isinstance(chain.initial, str):
        law = np.asarray(chain.stationary)[np.newaxis, reached]
        nothing = np.empty((0, len(reached)))
        slack = 2 * relative_error(chain.size)
        return Timeline(steps, nothing, nothing > 0, law, slack, tells, kept)
    return replace(_started(chain, length, reached, steps, tells), kept=kept)


def _started(
    chain: MarkovChain, length: int, reached: IntArray, steps: FloatArray, tells: BoolArray
) -> Timeline:
    """Follow supports until they repeat and laws until they are close to their limit."""
    found = supports(chain, length)
    law = marginals(chain, found, length)
    known = len(law.values)
    possible = np.array([found.at(node + 1) for node in range(known)])[:, reached]
    values, period = law.values[:, reached], found.period
    if known >= length or law.limit is None or found.settled is None:
        return Timeline(steps, values, possible, None, 0.0, tells)
    last = found.at(known)
    slack = projective_distance(law.values[-1], law.limit, last)
    slack += float(product_margin(known, chain.size)) + 4 * relative_error(chain.size)
    phases = [found.at(known + 1 + (phase - known) % period) for phase in range(period)]
    limits = np.where(np.array(phases), law.limit, 0.0)[:, reached]
    return Timeline(np.repeat(steps, period, axis=0), values, possible, limits, slack, tells)


def cyclic_timeline(chain: CyclicChain, length: int, kept: BoolArray | None = None) -> Timeline:
    """See a cyclic chain as a walk, on the states that it can ever be in.

    From a given start laws are followed turn by turn until they are close to what repeats. `kept`
    says which states are secret pairs, all if not given.

    Theorem: docs/theory/cyclic-chains.md
    """
    reached = _ever_possible_in_cycle(chain)
    walk = _cycle(chain, length, reached)
    return walk if kept is None else replace(walk, kept=kept[np.ix_(reached, reached)])


def _cycle(chain: CyclicChain, length: int, reached: IntArray) -> Timeline:
    """The same with all pairs of states kept apart."""
    steps = np.asarray(chain.matrices)[:, reached][:, :, reached]
    tells = ~np.eye(len(reached), dtype=np.bool_)
    if isinstance(chain.initial, str) and chain.initial == "stationary":
        nothing = np.empty((0, len(reached)))
        return Timeline(
            steps, nothing, nothing > 0, chain.laws[:, reached], _law_error(chain), tells
        )
    begin = np.asarray(chain.support(1))[reached]
    if isinstance(chain.initial, str):  # supports only shrink, so that late ones are all the same
        possible, settled = _followed_supports(steps > 0, begin, length)
        late = possible[-chain.period :].astype(np.float64) if settled else None
        return Timeline(steps, None, possible[: length if late is None else None], late, 0.0, tells)
    return _cycle_from_start(chain, length, reached, steps, tells)


def dated_timeline(chain: DatedChain, length: int, kept: BoolArray | None = None) -> Timeline:
    """See a chain that follows the clock of a zone as a timeline.

    Theorem: docs/theory/cyclic-chains.md
    """
    phases = chain.phases(max(length, 2))[:-1]
    start = None if isinstance(chain.initial, str) else np.asarray(chain.start)
    possible, days = np.asarray(chain.support(1)), np.flatnonzero(phases == 0) + 1
    return sequence_timeline(np.asarray(chain.matrices), phases, start, possible, days, kept)


def sequence_timeline(
    matrices: FloatArray,
    order: IntArray,
    start: FloatArray | None,
    possible: BoolArray,
    marks: IntArray | None = None,
    kept: BoolArray | None = None,
) -> Timeline:
    """See a chain whose matrices come in a public order as a timeline.

    Matrix `order[t − 1]` of `matrices` leads from X_t to X_{t+1}; there is one node more than
    entries. `start` is proportional to the law of X_1, None for every start at once, `possible`
    says which states X_1 can take. Give `marks`, the first nodes of days, where days are alike:
    what was computed for one serves the others, as far as they are entered alike. `kept` says which
    states are secret pairs, all if not given.

    Cost: O(k²) per node, and (n, k) numbers are kept.
    """
    laws = None if start is None else [np.asarray(start, dtype=np.float64)]
    sets = [np.asarray(possible, dtype=np.bool_)]
    able = matrices > 0
    for one in order.tolist():
        sets.append(able[one][sets[-1]].any(axis=0))
        if laws is not None:
            law = product_of(laws[-1], matrices[one])
            laws.append(law / law.max())
    tells = ~np.eye(matrices.shape[1], dtype=np.bool_)
    known = None if laws is None else np.array(laws)
    every = np.array(sets)
    return Timeline(matrices, known, every, None, 0.0, tells, kept, np.asarray(order), marks)


def _law_error(chain: CyclicChain) -> float:
    """How far the laws of phases can be from what floats say, projectively.

    The stationary law of a turn is a sum of products of k − 1 entries of its matrix (trees), each
    of them as far off as a product of p matrices; then the steps to the phase.
    """
    turn = float(product_margin(chain.period, chain.size))
    return 2 * relative_error(chain.size) + (2 * chain.size + 1) * turn


def _cycle_from_start(
    chain: CyclicChain, length: int, reached: IntArray, steps: FloatArray, tells: BoolArray
) -> Timeline:
    """Follow laws until they are close to those that repeat, or for some time."""
    limits = None
    with suppress(InvalidInputError, UnsupportedError):
        limits = chain.laws[:, reached]
    laws, possible = [np.asarray(chain.start)[reached]], [np.asarray(chain.support(1))[reached]]
    most, period = min(length, MARGINAL_STEPS), chain.period
    while len(laws) <= most:
        node = len(laws)
        if limits is not None and (node - 1) % period == 0:
            same = bool((possible[-1] == (limits[0] > 0)).all())
            slack = projective_distance(laws[-1], limits[0], possible[-1]) if same else np.inf
            if slack <= CONVERGED:
                slack += float(product_margin(node, chain.size)) + _law_error(chain)
                return Timeline(steps, np.array(laws), np.array(possible), limits, slack, tells)
        matrix = steps[(node - 1) % period]
        laws.append(product_of(laws[-1], matrix))
        possible.append((matrix > 0)[possible[-1]].any(axis=0))
    return Timeline(steps, np.array(laws[:most]), np.array(possible[:most]), None, 0.0, tells)


def _followed_supports(steps: BoolArray, begin: BoolArray, length: int) -> tuple[BoolArray, bool]:
    """The possible states of nodes for whole turns, until a turn repeats the one before it."""
    found: list[BoolArray] = []
    current = begin
    while len(found) < min(length, MARGINAL_STEPS):
        turn = []
        for step in steps:
            turn.append(current)
            current = step[current].any(axis=0)
        found += turn
        if (current == turn[0]).all():
            return np.array(found), True
    return np.array(found), False


def _ever_possible_in_cycle(chain: CyclicChain) -> IntArray:
    """The states that some node can take: sets by phase grow until a turn adds nothing."""
    current = np.asarray(chain.support(1)).copy()
    ever = current.copy()
    while True:
        begin = current.copy()
        for step in np.asarray(chain.possible):
            current = step[current].any(axis=0)
            ever |= current
        current |= begin
        if (current == begin).all():
            return np.flatnonzero(ever)


def _ever_possible(chain: MarkovChain) -> IntArray:
    reached = np.asarray(chain.support(1)).copy()
    while True:
        further = reached | np.asarray(chain.possible)[reached].any(axis=0)
        if (further == reached).all():
            return np.flatnonzero(reached)
        reached = further


@dataclass(frozen=True, eq=False)
class Supports:
    """The possible states of X_t: `sets[t−1]` up to `settled + period − 1`, then periodic.

    `settled` is the first node of the periodic part, or None if it was not reached. `mixes` tells
    whether the periodic part forgets where it was: one recurrent class, entered in one phase.
    """

    sets: BoolArray
    settled: int | None
    period: int
    mixes: bool

    def at(self, node: int) -> BoolArray:
        """The possible states of X_node."""
        if self.settled is not None and node >= self.settled:
            node = self.settled + (node - self.settled) % self.period
        result: BoolArray = self.sets[node - 1]
        return result

    @property
    def known_prefix(self) -> int:
        """How many nodes from the first on have one possible state."""
        several = np.flatnonzero(self.sets.sum(axis=1) > 1)
        return int(several[0]) if len(several) else len(self.sets)


def supports(chain: MarkovChain, length: int) -> Supports:
    """Follow the possible states of X_1, X_2, … until they repeat. O(k²) per step."""
    step = chain.possible
    current = np.asarray(chain.support(1))
    seen: dict[bytes, int] = {}
    sets: list[BoolArray] = []
    while len(sets) < min(length, _SUPPORT_STEPS) and current.tobytes() not in seen:
        seen[current.tobytes()] = len(sets) + 1
        sets.append(current)
        current = np.asarray(step[current].any(axis=0))
    settled = seen.get(current.tobytes())
    if settled is None:
        return Supports(np.array(sets), None, 1, False)
    period = len(sets) + 1 - settled
    mixes = _forgets(chain, np.array(sets[settled - 1 :]))
    return Supports(np.array(sets), settled, period, mixes)


def _forgets(chain: MarkovChain, cycle: BoolArray) -> bool:
    visited = np.flatnonzero(cycle.any(axis=0))
    for found in chain.recurrent_classes:
        if np.array_equal(found, visited):
            period = class_period(chain.possible[np.ix_(found, found)])
            return period == len(cycle) and bool((cycle.sum(axis=0) == 1)[visited].all())
    return False


@dataclass(frozen=True, eq=False)
class Marginals:
    """Distributions of X_1..X_n, and the limit that later nodes approach; None if there is none.

    Row t−1 of `values` is proportional to the law of X_t, `limit` to what it approaches on its
    support. The projective distance between the two never grows.
    """

    values: FloatArray
    limit: FloatArray | None


def marginals(chain: MarkovChain, possible: Supports, length: int) -> Marginals:
    """Follow the distribution until it is within 2^-36 of its limit, doubling what is known.

    O(k²) per node and O(k³) per doubling; at most 65,536 nodes.
    """
    longest = min(length, MARGINAL_STEPS)
    limit = _limit(chain, possible)
    if limit is None and possible.settled is not None:
        longest = min(longest, possible.settled + UNSETTLED_NODES)
    values, power = chain.start[np.newaxis], chain.transition
    while len(values) < longest and not _converged(values, limit, possible):
        values = np.concatenate([values, product_of(values, power)])[:longest]
        power = product_of(power, power)
    return Marginals(values, limit)


def _converged(values: FloatArray, limit: FloatArray | None, possible: Supports) -> bool:
    node = len(values)
    if limit is None or possible.settled is None or node < possible.settled:
        return False
    return projective_distance(values[-1], limit, possible.at(node)) <= CONVERGED


def projective_distance(weights: FloatArray, limit: FloatArray, possible: BoolArray) -> float:
    """Return max log [m(x)π(x')/(m(x')π(x))] over possible states; +inf if a weight is 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights[possible] / limit[possible])
    return float(logs.max() - logs.min())


def _limit(chain: MarkovChain, possible: Supports) -> FloatArray | None:
    if possible.settled is None or not possible.mixes:
        return None
    visited = np.flatnonzero(possible.sets[possible.settled - 1 :].any(axis=0))
    result = np.zeros(chain.size)
    result[visited] = irreducible_stationary(chain.transition[np.ix_(visited, visited)])
    return result
