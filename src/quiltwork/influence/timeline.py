"""Timelines: the matrices, laws and possible states of a chain's time points, built once per
belief.

Matrices repeat with a period (1 for a homogeneous chain) or follow any public order (`order`), such
as a calendar of working days and holidays. The laws of the first nodes are computed one by one;
later laws are within `slack` of a limit that repeats with the same period. In a public order every
law is computed (`sequence_timeline`), and the sweep runs from end to end; a day that starts from
the same bounds as an earlier day reuses that day's results.
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
"""Laws of at most this many nodes are computed one by one."""
CONVERGED = 2.0**-36
"""Projective distance from its limit below which a law counts as converged."""

UNSETTLED_NODES = 64
"""Nodes of a chain that never mixes which are computed one by one after its supports settle."""

_SPANS = (1, 2, 4, 8, 16)
_UNLIKELY = 1e-6
"""Relative to the likeliest move: every move of a slow chain is unlikely, and spans of one node
suffice for it."""
_UNLIKELY_FROM_ANY = 0.04
"""From any start: some laws that are possible after one step are impossible after several."""
_MOST_BEHIND = 32
_MANY_PAIRS = 20_000
"""Above this, steps of one node are used where all moves are possible: longer spans cost five times
as much and gain little."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """The time points X_1, X_2, … of a chain, with P_t leading from X_t to X_{t+1}.

    Node t has phase (t − 1) mod period.

    Attributes:
        steps: (period, k, k) the matrices; with an order, all that occur in it.
        laws: (n, k) numbers proportional to the laws of X_1..X_n; None for every start at once.
        possible: (n, k) the possible states of X_1..X_n.
        limits: (period, k) limits of later laws up to a factor, or None if there is no limit;
            for every start at once, 1 for the possible states of later nodes.
        slack: projective distance of later laws from the limit, rounding included.
        distinguishable: (k, k) pairs of states with different observed values; the states of any
            other pair look the same, so the pair is no secret and no release moves between them.
        secret_pairs: (k, k) pairs that must stay indistinguishable; None for all of them. Bounds
            from node to node are about every pair, the worst node is sought among these pairs.
        order: (n,) index of the matrix that leads from each of X_1..X_n; None if they repeat.
        marks: first nodes of days, ascending, where results of an earlier day may be reused.
    """

    steps: FloatArray
    laws: FloatArray | None
    possible: BoolArray
    limits: FloatArray | None
    slack: float
    distinguishable: BoolArray
    secret_pairs: BoolArray | None = None
    order: IntArray | None = None
    marks: IntArray | None = None

    @property
    def size(self) -> int:
        """The number of states."""
        return int(self.steps.shape[1])

    @property
    def period(self) -> int:
        """The number of nodes after which the matrices repeat; 1 in a public order, where they do
        not.
        """
        return len(self.steps) if self.order is None else 1

    @cached_property
    def independent(self) -> bool:
        """Whether nodes are independent: all rows of each matrix are equal."""
        return bool((self.steps == self.steps[:, :1]).all())

    @cached_property
    def fully_observed(self) -> bool:
        """Whether all states are distinguishable in the data."""
        return bool(self.distinguishable.sum() == self.size * (self.size - 1))

    @cached_property
    def all_secret(self) -> bool:
        """Whether every node has several possible states, all of them distinguishable and
        secret.
        """
        all_possible = bool(self.possible.all() and self.late_possible.all())
        return self.size > 1 and self.fully_observed and self.secret_pairs is None and all_possible

    @cached_property
    def secret(self) -> BoolArray:
        """(k, k) the secret pairs of distinguishable states."""
        return (
            self.distinguishable
            if self.secret_pairs is None
            else self.distinguishable & self.secret_pairs
        )

    @cached_property
    def secret_observations(self) -> tuple[IntArray, IntArray]:
        """The secret pairs of observed values, as indices into `observation_sets`."""
        first = self.observation_sets.argmax(axis=1)
        a, b = np.nonzero(self.secret[np.ix_(first, first)])
        return a, b

    @cached_property
    def observation_sets(self) -> BoolArray:
        """(observed values, k) the states behind each observed value."""
        return np.unique(~self.distinguishable, axis=0)

    @cached_property
    def _without_secret(self) -> tuple[BoolArray, BoolArray]:
        """Whether nodes have no secret: those with laws of their own, and later ones by phase."""
        early, late = (
            (sets[:, :, np.newaxis] & sets[:, np.newaxis, :] & self.secret).any(axis=(1, 2))
            for sets in (self.possible, self.late_possible)
        )
        return np.logical_not(early), np.logical_not(late)

    def is_deterministic(self, nodes: IntArray) -> BoolArray:
        """Whether each node has no secret: no secret pair among its possible states."""
        return self._at(nodes, *self._without_secret)

    @cached_property
    def spans(self) -> tuple[int, ...]:
        """The numbers of nodes that one step may cover: 1 if every move is likely enough, else up
        to 16.

        In chains of many states with long memory only few states can follow each, and several steps
        reach all of them; there steps of one node are a hundred times faster, for some percent more
        noise.
        """
        # hidden states with long memory: see the docstring for the price
        if not self.fully_observed and self.size > _MOST_BEHIND:
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
        """The number of programs solved on one side per period."""
        return self.period * len(self.pairs[0]) * len(self.spans)

    @cached_property
    def products(self) -> dict[int, FloatArray]:
        """The distinct products P_t⋯P_{t+span−1} of every span; `product_at` gives the index."""
        if self.order is not None:
            return {span: self._product_of(span) for span in self.spans}
        products, product = {}, self.steps
        for span in range(1, self.spans[-1] + 1):
            if span > 1:
                ahead = np.roll(self.steps, 1 - span, axis=0)
                product = product_of(product, ahead)
            if span in self.spans:
                products[span] = product
        return products

    def _product_of(self, span: int) -> FloatArray:
        """The distinct products of `span` consecutive matrices in a public order."""
        rows, _ = self._windows[span]
        product = self.steps[rows[:, 0]]
        for step in range(1, rows.shape[1]):
            product = product_of(product, self.steps[rows[:, step]])
        return np.asarray(product)

    @cached_property
    def _windows(self) -> dict[int, tuple[IntArray, IntArray]]:
        """For every span, the distinct windows of consecutive matrices, and the window at each
        node.
        """
        order = np.zeros(1, np.int64) if self.order is None else self.order
        windows = {}
        for span in self.spans:
            if span > len(order):  # no step is that long
                windows[span] = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
                continue
            # few distinct windows occur in a calendar, so each product is computed once
            rolling = np.lib.stride_tricks.sliding_window_view(order, span)
            rows, index = np.unique(rolling, axis=0, return_inverse=True)
            windows[span] = rows, index.ravel()
        return windows

    def product_at(self, span: int, nodes: IntArray) -> IntArray:
        """The index in `products[span]` of the product from each node to the node `span` later."""
        if self.order is None:
            return np.asarray((nodes - 1) % len(self.steps))
        index = self._windows[span][1]
        return np.asarray(index[np.clip(nodes - 1, 0, len(index) - 1)])

    def margin(self, span: int) -> float:
        """The rounding error of a log-ratio of entries of a product of `span` matrices."""
        return 0.0 if span == 1 else float(product_margin(span, self.size))

    def possible_at(self, nodes: IntArray) -> BoolArray:
        """(len(nodes), k) the possible states of each node."""
        return self._at(nodes, self.possible, self.late_possible)

    @cached_property
    def late_possible(self) -> BoolArray:
        """(period, k) the possible states of nodes after those with laws of their own."""
        if self.limits is None:
            return np.ones((self.period, self.size), dtype=np.bool_)
        return np.asarray(self.limits > 0)

    def _at(self, nodes: IntArray, early: np.ndarray, late: np.ndarray) -> np.ndarray:
        """The value of each node: from `early` for the first nodes, else from `late` by phase."""
        count = len(early)
        if not count and self.period == 1:  # all alike
            return np.broadcast_to(late, (len(nodes), *late.shape[1:]))
        values = late[(nodes - 1) % self.period].copy()
        is_early = nodes <= count
        values[is_early] = early[nodes[is_early] - 1]
        return values

    def prior_log_ratios(self, nodes: IntArray) -> FloatArray:
        """(len(nodes), k, k) upper bounds on log m(x')/m(x); +inf unless both states are
        possible.
        """
        if self.period == 1 and self.laws is not None and not len(self.laws):  # all alike
            return np.broadcast_to(self._late_prior_log_ratios, (len(nodes), self.size, self.size))
        bounds = self._late_prior_log_ratios[(nodes - 1) % self.period]
        early_rows = np.flatnonzero(nodes <= (0 if self.laws is None else len(self.laws)))
        if self.laws is not None and len(early_rows):
            early = nodes[early_rows]
            margin = product_margin(early, self.size)
            bounds[early_rows] = _log_ratios(self.laws[early - 1], self.possible[early - 1], margin)
        return bounds

    @cached_property
    def _late_prior_log_ratios(self) -> FloatArray:
        """The same for nodes beyond those known one by one, by phase."""
        limits = np.zeros((self.period, self.size)) if self.limits is None else self.limits
        return _log_ratios(limits, self.late_possible, np.full(self.period, self.slack))

    @cached_property
    def late_prior_log_ratios(self) -> FloatArray:
        """(period, k, k) upper bounds on log m(x)/m(x') for later nodes; 0 for x = x'."""
        odds = np.swapaxes(self._late_prior_log_ratios, 1, 2).copy()
        odds[:, np.arange(self.size), np.arange(self.size)] = 0.0
        return odds


def _log_ratios(law: FloatArray, possible: BoolArray, margin: FloatArray) -> FloatArray:
    """Log-ratios of a law between possible states, rounded up by a margin; +inf for other pairs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(law)
        log_ratio = logs[:, np.newaxis, :] - logs[:, :, np.newaxis]
    both = possible[:, :, np.newaxis] & possible[:, np.newaxis, :]
    return np.where(
        both & np.isfinite(log_ratio), log_ratio + margin[:, np.newaxis, np.newaxis], np.inf
    )


def timeline_of(
    chain: MarkovChain,
    length: int,
    shown: IntArray | None = None,
    secret_pairs: BoolArray | None = None,
) -> Timeline:
    """The timeline of a homogeneous chain, restricted to the states it can ever take.

    Args:
        chain: the chain.
        length: of the series.
        shown: (k,) the observed value of each state; by default the state itself.
        secret_pairs: pairs of observed values that are secret; all by default.
    """
    reached = _ever_possible(chain)
    matrix = np.asarray(chain.transition)[np.ix_(reached, reached)]
    observed = (np.arange(chain.size) if shown is None else shown)[reached]
    distinguishable = np.not_equal.outer(observed, observed)
    secret_pairs = None if secret_pairs is None else secret_pairs[np.ix_(observed, observed)]
    steps = matrix[np.newaxis]
    if isinstance(chain.initial, str) and chain.initial == "any":
        reachable = supports(chain, length)  # they only shrink, so that late ones are all the same
        settled = reachable.settled is not None
        late = (
            reachable.at(reachable.settled or 1)[np.newaxis, reached].astype(np.float64)
            if settled
            else None
        )
        return Timeline(
            steps, None, reachable.sets[:, reached], late, 0.0, distinguishable, secret_pairs
        )
    if isinstance(chain.initial, str):
        law = np.asarray(chain.stationary)[np.newaxis, reached]
        nothing = np.empty((0, len(reached)))
        # both the law of x and that of x' may be off
        slack = 2 * relative_error(chain.size)
        return Timeline(steps, nothing, nothing > 0, law, slack, distinguishable, secret_pairs)
    return replace(
        _started(chain, length, reached, steps, distinguishable), secret_pairs=secret_pairs
    )


def _started(
    chain: MarkovChain,
    length: int,
    reached: IntArray,
    steps: FloatArray,
    distinguishable: BoolArray,
) -> Timeline:
    """Follow supports until they repeat, and laws until they are close to their limit."""
    sets = supports(chain, length)
    laws = marginals(chain, sets, length)
    nodes = len(laws.values)
    possible = np.array([sets.at(node + 1) for node in range(nodes)])[:, reached]
    values, period = laws.values[:, reached], sets.period
    if nodes >= length or laws.limit is None or sets.settled is None:
        return Timeline(steps, values, possible, None, 0.0, distinguishable)
    final_set = sets.at(nodes)
    slack = projective_distance(laws.values[-1], laws.limit, final_set)
    # the law followed, its limit, and a ratio of each
    slack += float(product_margin(nodes, chain.size)) + 4 * relative_error(chain.size)
    phases = [sets.at(nodes + 1 + (phase - nodes) % period) for phase in range(period)]
    limits = np.where(np.array(phases), laws.limit, 0.0)[:, reached]
    return Timeline(
        np.repeat(steps, period, axis=0), values, possible, limits, slack, distinguishable
    )


def cyclic_timeline(
    chain: CyclicChain, length: int, secret_pairs: BoolArray | None = None
) -> Timeline:
    """The timeline of a cyclic chain, restricted to the states it can ever take.

    From a given start, laws are followed period by period until they are close to the limit.
    `secret_pairs` marks the secret pairs of states, all by default.

    Theorem: docs/theory/cyclic-chains.md
    """
    reached = _ever_possible_in_cycle(chain)
    timeline = _cycle(chain, length, reached)
    return (
        timeline
        if secret_pairs is None
        else replace(timeline, secret_pairs=secret_pairs[np.ix_(reached, reached)])
    )


def _cycle(chain: CyclicChain, length: int, reached: IntArray) -> Timeline:
    """The timeline of a cyclic chain with all pairs of states secret."""
    steps = np.asarray(chain.matrices)[:, reached][:, :, reached]
    distinguishable = ~np.eye(len(reached), dtype=np.bool_)
    if isinstance(chain.initial, str) and chain.initial == "stationary":
        no_laws = np.empty((0, len(reached)))
        return Timeline(
            steps, no_laws, no_laws > 0, chain.laws[:, reached], _law_error(chain), distinguishable
        )
    begin = np.asarray(chain.support(1))[reached]
    if isinstance(chain.initial, str):  # supports only shrink, so that late ones are all the same
        possible, settled = _followed_supports(steps > 0, begin, length)
        # the last turn repeats, so it serves every later one
        late = possible[-chain.period :].astype(np.float64) if settled else None
        return Timeline(
            steps, None, possible[: length if late is None else None], late, 0.0, distinguishable
        )
    return _cycle_from_start(chain, length, reached, steps, distinguishable)


def dated_timeline(
    chain: DatedChain, length: int, secret_pairs: BoolArray | None = None
) -> Timeline:
    """The timeline of a chain that follows the clock of a time zone.

    Theorem: docs/theory/cyclic-chains.md
    """
    phases = chain.phases(max(length, 2))[:-1]
    start = None if isinstance(chain.initial, str) else np.asarray(chain.start)
    possible, days = np.asarray(chain.support(1)), np.flatnonzero(phases == 0) + 1
    return sequence_timeline(
        np.asarray(chain.matrices), phases, start, possible, days, secret_pairs
    )


def sequence_timeline(
    matrices: FloatArray,
    order: IntArray,
    start: FloatArray | None,
    possible: BoolArray,
    marks: IntArray | None = None,
    secret_pairs: BoolArray | None = None,
) -> Timeline:
    """The timeline of a chain whose matrices come in a public order.

    Cost: O(k²) per node, and (n, k) numbers in memory.

    Args:
        matrices: the distinct matrices.
        order: matrix `order[t − 1]` leads from X_t to X_{t+1}; there is one node more than entries.
        start: proportional to the law of X_1; None for every start at once.
        possible: (k,) the possible states of X_1.
        marks: the first nodes of days, if days are alike: results of one day serve the others that
            start from the same bounds.
        secret_pairs: pairs of states that are secret; all by default.
    """
    laws = None if start is None else [np.asarray(start, dtype=np.float64)]
    sets = [np.asarray(possible, dtype=np.bool_)]
    positive = matrices > 0
    for matrix_index in order.tolist():
        sets.append(positive[matrix_index][sets[-1]].any(axis=0))
        if laws is not None:
            # laws are kept up to a factor: dividing by the maximum prevents underflow
            law = product_of(laws[-1], matrices[matrix_index])
            laws.append(law / law.max())
    distinguishable = ~np.eye(matrices.shape[1], dtype=np.bool_)
    known_laws = None if laws is None else np.array(laws)
    supports_by_node = np.array(sets)
    return Timeline(
        matrices,
        known_laws,
        supports_by_node,
        None,
        0.0,
        distinguishable,
        secret_pairs,
        np.asarray(order),
        marks,
    )


def _law_error(chain: CyclicChain) -> float:
    """Bound the projective error of the floating-point laws of phases.

    The stationary law of a turn is a sum of products of k − 1 entries of its matrix (trees), each
    of them as far off as a product of p matrices; then the steps to the phase.
    """
    turn = float(product_margin(chain.period, chain.size))
    return 2 * relative_error(chain.size) + (2 * chain.size + 1) * turn


def _cycle_from_start(
    chain: CyclicChain,
    length: int,
    reached: IntArray,
    steps: FloatArray,
    distinguishable: BoolArray,
) -> Timeline:
    """Follow laws until they are close to the periodic limit, for at most
    `MARGINAL_STEPS` nodes.
    """
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
                return Timeline(
                    steps, np.array(laws), np.array(possible), limits, slack, distinguishable
                )
        matrix = steps[(node - 1) % period]
        laws.append(product_of(laws[-1], matrix))
        possible.append((matrix > 0)[possible[-1]].any(axis=0))
    return Timeline(
        steps, np.array(laws[:most]), np.array(possible[:most]), None, 0.0, distinguishable
    )


def _followed_supports(steps: BoolArray, begin: BoolArray, length: int) -> tuple[BoolArray, bool]:
    """The possible states of nodes for whole turns, until a turn repeats the one before it."""
    supports: list[BoolArray] = []
    support = begin
    while len(supports) < min(length, MARGINAL_STEPS):
        turn = []
        for step in steps:
            turn.append(support)
            support = step[support].any(axis=0)
        supports += turn
        if (support == turn[0]).all():
            return np.array(supports), True
    return np.array(supports), False


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
    """The states that can be reached from the possible initial states."""
    reached = np.asarray(chain.support(1)).copy()
    while True:
        further = reached | np.asarray(chain.possible)[reached].any(axis=0)
        if (further == reached).all():
            return np.flatnonzero(reached)
        reached = further


@dataclass(frozen=True, eq=False)
class Supports:
    """The possible states of X_t: `sets[t−1]` up to `settled + period − 1`, then periodic.

    `settled` is the first node of the periodic part, or None if it was not reached. `mixes` is
    true if the periodic part forgets its past: one recurrent class, entered in one phase.
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
        """The number of nodes from the first on that have one possible state."""
        several = np.flatnonzero(self.sets.sum(axis=1) > 1)
        return int(several[0]) if len(several) else len(self.sets)


def supports(chain: MarkovChain, length: int) -> Supports:
    """Follow the possible states of X_1, X_2, … until they repeat. O(k²) per step."""
    step = chain.possible
    current = np.asarray(chain.support(1))
    first_node_of: dict[bytes, int] = {}
    sets: list[BoolArray] = []
    while len(sets) < min(length, _SUPPORT_STEPS) and current.tobytes() not in first_node_of:
        first_node_of[current.tobytes()] = len(sets) + 1
        sets.append(current)
        current = np.asarray(step[current].any(axis=0))
    settled = first_node_of.get(current.tobytes())
    if settled is None:
        return Supports(np.array(sets), None, 1, False)
    period = len(sets) + 1 - settled
    mixes = _forgets(chain, np.array(sets[settled - 1 :]))
    return Supports(np.array(sets), settled, period, mixes)


def _forgets(chain: MarkovChain, cycle: BoolArray) -> bool:
    """Whether a cycle of supports is one recurrent class entered in one phase."""
    visited = np.flatnonzero(cycle.any(axis=0))
    for members in chain.recurrent_classes:
        if np.array_equal(members, visited):
            period = class_period(chain.possible[np.ix_(members, members)])
            return period == len(cycle) and bool((cycle.sum(axis=0) == 1)[visited].all())
    return False


@dataclass(frozen=True, eq=False)
class Marginals:
    """Distributions of X_1..X_n, and the limit of later ones; None if there is no limit.

    Row t−1 of `values` is proportional to the law of X_t, `limit` to its limit on its support. The
    projective distance between the two never grows.
    """

    values: FloatArray
    limit: FloatArray | None


def marginals(chain: MarkovChain, possible: Supports, length: int) -> Marginals:
    """Follow the distribution until it is within 2^-36 of its limit, doubling the number of nodes.

    O(k²) per node and O(k³) per doubling; at most 65,536 nodes.
    """
    most_nodes = min(length, MARGINAL_STEPS)
    limit = _limit(chain, possible)
    if limit is None and possible.settled is not None:
        most_nodes = min(most_nodes, possible.settled + UNSETTLED_NODES)
    values, power = chain.start[np.newaxis], chain.transition
    while len(values) < most_nodes and not _converged(values, limit, possible):
        values = np.concatenate([values, product_of(values, power)])[:most_nodes]
        power = product_of(power, power)
    return Marginals(values, limit)


def _converged(values: FloatArray, limit: FloatArray | None, possible: Supports) -> bool:
    """Whether the last distribution is within 2^-36 of the limit."""
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
    """The stationary law on the states visited in the periodic part; None if the chain does not
    mix.
    """
    if possible.settled is None or not possible.mixes:
        return None
    visited = np.flatnonzero(possible.sets[possible.settled - 1 :].any(axis=0))
    result = np.zeros(chain.size)
    result[visited] = irreducible_stationary(chain.transition[np.ix_(visited, visited)])
    return result
