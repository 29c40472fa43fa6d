"""A chain as the sweep sees it: matrices, laws and possible states of its time points.

Matrices repeat with a period (1 for a homogeneous chain). Laws of the first nodes are known one by
one; later ones are within `slack` of a limit that repeats with the same period.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from quiltwork.beliefs import CyclicChain, DatedChain, MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence.kernel import product as product_of
from quiltwork.influence.quilts.timeline import (
    CONVERGED,
    MARGINAL_STEPS,
    marginals,
    projective_distance,
    supports,
)
from quiltwork.influence.ratios import BoolArray, product_margin
from quiltwork.influence.sweep.program import FloatArray, IntArray
from quiltwork.lazy import cached_property

_SPANS = (1, 2, 4, 8, 16)
_UNLIKELY = 1e-6
"""Of the likeliest move: all moves of a slow chain are unlikely, and one step at a time does."""
_UNLIKELY_FROM_ANY = 0.04
"""From any start: laws that one step allows for are out of reach after several."""
_MOST_BEHIND = 32
_MANY_PAIRS = 20_000
"""In longer periods one step is taken where all are possible: five times the work gains little."""


@dataclass(frozen=True, eq=False)
class Walk:
    """X_1, X_2, … with P_t leading from X_t to X_{t+1}; node t has phase (t − 1) mod period.

    Attributes:
        steps: (period, k, k) the matrices.
        laws: (n, k) numbers proportional to the laws of X_1..X_n; None for every start at once.
        possible: (n, k) the states they can take.
        limits: (period, k) what later laws are proportional to, or None where they have no limit;
            for every start at once, 1 for the states that later nodes can take.
        slack: how far they can be from it, projectively; what rounding may add is included.
        tells: (k, k) which pairs of states the data tell apart; the others are no secret, and a
            release does not move between them.
        kept: (k, k) which of these are secret pairs; None for all of them. What is passed on from
            node to node is about every pair, the worst node is sought among secret ones.
    """

    steps: FloatArray
    laws: FloatArray | None
    possible: BoolArray
    limits: FloatArray | None
    slack: float
    tells: BoolArray
    kept: BoolArray | None = None

    @property
    def size(self) -> int:
        """The number of states."""
        return int(self.steps.shape[1])

    @property
    def period(self) -> int:
        """After how many nodes the matrices repeat."""
        return len(self.steps)

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
        """For every span the products P_t⋯P_{t+span−1}, by the phase of t."""
        found, product = {}, self.steps
        for span in range(1, self.spans[-1] + 1):
            if span > 1:
                ahead = np.roll(self.steps, 1 - span, axis=0)
                product = product_of(product, ahead)
            if span in self.spans:
                found[span] = product
        return found

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


def walk_of(
    chain: MarkovChain,
    length: int,
    shown: IntArray | None = None,
    kept: BoolArray | None = None,
) -> Walk:
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
        return Walk(steps, None, found.sets[:, reached], late, 0.0, tells, kept)
    if isinstance(chain.initial, str):
        law = np.asarray(chain.stationary)[np.newaxis, reached]
        nothing = np.empty((0, len(reached)))
        slack = 2 * relative_error(chain.size)
        return Walk(steps, nothing, nothing > 0, law, slack, tells, kept)
    return replace(_started(chain, length, reached, steps, tells), kept=kept)


def _started(
    chain: MarkovChain, length: int, reached: IntArray, steps: FloatArray, tells: BoolArray
) -> Walk:
    """Follow supports until they repeat and laws until they are close to their limit."""
    found = supports(chain, length)
    law = marginals(chain, found, length)
    known = len(law.values)
    possible = np.array([found.at(node + 1) for node in range(known)])[:, reached]
    values, period = law.values[:, reached], found.period
    if known >= length or law.limit is None or found.settled is None:
        return Walk(steps, values, possible, None, 0.0, tells)
    last = found.at(known)
    slack = projective_distance(law.values[-1], law.limit, last)
    slack += float(product_margin(known, chain.size)) + 4 * relative_error(chain.size)
    phases = [found.at(known + 1 + (phase - known) % period) for phase in range(period)]
    limits = np.where(np.array(phases), law.limit, 0.0)[:, reached]
    return Walk(np.repeat(steps, period, axis=0), values, possible, limits, slack, tells)


def cyclic_walk(chain: CyclicChain, length: int, kept: BoolArray | None = None) -> Walk:
    """See a cyclic chain as a walk, on the states that it can ever be in.

    From a given start laws are followed turn by turn until they are close to what repeats. `kept`
    says which states are secret pairs, all if not given.

    Theorem: docs/theory/cyclic-chains.md
    """
    reached = _ever_possible_in_cycle(chain)
    walk = _cycle(chain, length, reached)
    return walk if kept is None else replace(walk, kept=kept[np.ix_(reached, reached)])


def _cycle(chain: CyclicChain, length: int, reached: IntArray) -> Walk:
    """The same with all pairs of states kept apart."""
    steps = np.asarray(chain.matrices)[:, reached][:, :, reached]
    tells = ~np.eye(len(reached), dtype=np.bool_)
    if isinstance(chain.initial, str) and chain.initial == "stationary":
        nothing = np.empty((0, len(reached)))
        return Walk(steps, nothing, nothing > 0, chain.laws[:, reached], _law_error(chain), tells)
    begin = np.asarray(chain.support(1))[reached]
    if isinstance(chain.initial, str):  # supports only shrink, so that late ones are all the same
        possible, settled = _followed_supports(steps > 0, begin, length)
        late = possible[-chain.period :].astype(np.float64) if settled else None
        return Walk(steps, None, possible[: length if late is None else None], late, 0.0, tells)
    return _cycle_from_start(chain, length, reached, steps, tells)


def dated_walk(chain: DatedChain, length: int, kept: BoolArray | None = None) -> Walk:
    """See a chain that follows the clock of a zone as a walk, a matrix for every step.

    Theorem: docs/theory/cyclic-chains.md
    """
    phases = chain.phases(max(length, 2))[:-1]
    given = not isinstance(chain.initial, str)
    law = np.asarray(chain.start) if given else None
    possible = [np.asarray(chain.support(1))]
    laws = [] if law is None else [law]
    for phase in phases[: length - 1].tolist():
        possible.append((chain.matrices[phase] > 0)[possible[-1]].any(axis=0))
        if law is not None:
            law = product_of(law, chain.matrices[phase])
            law = law / law.max()
            laws.append(law)
    steps = np.asarray(chain.matrices)[phases]
    tells = ~np.eye(chain.size, dtype=np.bool_)
    known = np.array(laws) if given else None
    return Walk(steps, known, np.array(possible), None, 0.0, tells, kept)


def _law_error(chain: CyclicChain) -> float:
    """How far the laws of phases can be from what floats say, projectively.

    The stationary law of a turn is a sum of products of k − 1 entries of its matrix (trees), each
    of them as far off as a product of p matrices; then the steps to the phase.
    """
    turn = float(product_margin(chain.period, chain.size))
    return 2 * relative_error(chain.size) + (2 * chain.size + 1) * turn


def _cycle_from_start(
    chain: CyclicChain, length: int, reached: IntArray, steps: FloatArray, tells: BoolArray
) -> Walk:
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
                return Walk(steps, np.array(laws), np.array(possible), limits, slack, tells)
        matrix = steps[(node - 1) % period]
        laws.append(product_of(laws[-1], matrix))
        possible.append((matrix > 0)[possible[-1]].any(axis=0))
    return Walk(steps, np.array(laws[:most]), np.array(possible[:most]), None, 0.0, tells)


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
