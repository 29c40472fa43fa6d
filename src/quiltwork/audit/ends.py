"""The leakage of the two ends, the highest and the lowest outputs, for series of any length.

Beyond all values of a statistic F the likelihood ratio of F + noise is that of the moments
E[e^(F/σ) | X_i] or E[e^(−F/σ) | X_i], which are products of exponentially tilted matrices forwards
and backwards. Outputs in between may leak more, but not where the tilted chain is stochastically
monotone in an order of the states in which the answers rise (`Order.rises`): then the ends are the
exact leakage. Chains without negative 2×2 minors (totally positive of order 2; two states with
P₀₀ ≥ P₁₀) are so for any noise. Cost: that of `power_iteration`, which does not grow with the
length once the chain has forgotten its start.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from quiltwork.audit.laws import dyadic
from quiltwork.audit.node_levels import Laws
from quiltwork.audit.power_iteration import OutOfRangeError, PowerIteration, iterate
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray

_UNIT = 2.0**-53
_LARGEST_EXPONENT = 300.0
_MOST_STATES = 16
"""The check of the order costs O(k⁴) per vector."""
_DIGITS = 12
"""Keys that agree to so many digits are tied, since they carry rounding errors."""
_CHUNK = 1 << 14
_LOWEST = -150.0
"""The product of two entries of e^−150 is still a normal float."""
_LEAST_LOSS = -1e-150
_MOST_NUMBERS = 1 << 24


@dataclass(frozen=True, eq=False)
class Tilt:
    """One end: the tilt of each answer, negative at the low end, and the moments under it.

    Attributes:
        rates: the exponent per unit of each answer.
        forwards: E[e^(Σ rate·(F up to i)) ; X_i = x] from the first node on.
        backwards: E[e^(Σ rate·(F after i)) | X_i = x] from the last node back.
    """

    rates: tuple[float, ...]
    forwards: PowerIteration
    backwards: PowerIteration


@dataclass(frozen=True, eq=False)
class Ends:
    """The leakage of the two ends about every node, by runs of nodes with the same level.

    Attributes:
        starts: the first node of each run.
        leak: the level of each run, rounded up.
        margin: the true level of the ends is at most twice this lower.
        likelier: the index of the state that the output makes likelier.
        rarer: the index of the state that it makes less likely.
        upper: whether that output is the upper end.
        tilts: the upper and the lower end.
    """

    starts: IntArray
    leak: FloatArray
    margin: FloatArray
    likelier: IntArray
    rarer: IntArray
    upper: BoolArray
    tilts: tuple[Tilt, Tilt] = field(repr=False)


class TiltedChain:
    """A chain with its statistic, for exponential tilts of any rate; impossible states left out."""

    def __init__(self, laws: Laws) -> None:
        """Cost: O(k³)."""
        self.laws, self.length = laws, laws.length
        chain = laws.chain
        reached, possible = chain.begins, np.asarray(chain.possible.any(axis=0))
        # k steps reach every state that is ever reached; others would only add zero rows.
        for _ in range(chain.size):
            reached = reached | possible[reached].any(axis=0)
        self.states = np.flatnonzero(reached)
        kept = np.ix_(self.states, self.states)
        self.matrices = chain.matrices[:, self.states[:, None], self.states]
        self.start, self.shown = chain.start[self.states], chain.shown[self.states]
        self.gains = [part.gain[kept] for part in laws.statistic.parts]

    @cached_property
    def edges(self) -> list[int]:
        """The first step of each run of equal ones, and one past the last step."""
        parts, chain = self.laws.statistic.parts, self.laws.chain
        edges = {2, self.length + 1, *(e for part in parts for e in (part.first, part.last + 1))}
        if chain.period > 1:
            if self.length * chain.size**2 > _MOST_NUMBERS:
                raise OutOfRangeError
            # Under a cyclic chain every step has its own matrix, so every step is a run of its own.
            edges.update(range(2, self.length + 1))
        return sorted(edge for edge in edges if 2 <= edge <= self.length + 1)

    @cached_property
    def order(self) -> Order | None:
        """The order of the states in which the answers rise; None if there is none.

        None for statistics of pairs of states, too. Where matrices change from step to step, all of
        them must be monotone in it for any noise.
        """
        if any((gain != gain[0]).any() for gain in self.gains):
            return None
        if not self.laws.chain.plain:
            return None
        order = find_order(self.matrices[0], [gain[0] for gain in self.gains])
        if order is None or len(self.matrices) == 1:
            return order
        both = np.ix_(order.states, order.states)
        monotone = order.always and all(not (_minors(m[both]) < 0).any() for m in self.matrices)
        return order if monotone else None

    @cached_property
    def marginals(self) -> PowerIteration:
        """The distribution of every node."""
        legs = [(self._step(edge).T, n) for edge, n in self._spans()]
        return iterate(self.start, legs, self._error(0.0))

    def ends(self, rates: Sequence[float]) -> Ends:
        """Return the leakage of the ends, for noise of scales 1/rate.

        Raises:
            OutOfRangeError: if floats do not hold the moments, or very many steps would be needed.
        """
        if not max(rates) <= _LARGEST_EXPONENT:
            raise OutOfRangeError
        signs = self.order.signs if self.order else (1,) * len(self.gains)
        up = self._tilt([rate * sign for rate, sign in zip(rates, signs, strict=True)])
        down = self._tilt([-rate for rate in up.rates])
        nodes = self._nodes([self.marginals, up.forwards, down.forwards], [up, down])
        nodes = sorted_union([np.clip(nodes, self.laws.nodes.start, self.laws.nodes.stop - 1)])
        laws, slack = self.marginals.at(nodes - 1)
        before = self._by_shown_state(laws)
        possible, log_moments, margins = before > -np.inf, [], []
        for tilt in (up, down):
            past, past_slack = tilt.forwards.at(nodes - 1)
            future, future_slack = tilt.backwards.at(self.length - nodes)
            both = self._by_shown_state(past + future)
            moments = np.subtract(both, before, where=possible, out=np.zeros_like(both))
            log_moments.append(
                np.stack([np.where(possible, moments, x) for x in (-np.inf, np.inf)])
            )
            # Adding logarithms loses digits in proportion to their magnitude.
            sizes = np.where(laws > -np.inf, np.abs(past) + np.abs(laws), 0.0) + np.abs(future)
            rounding = 16 * _UNIT * (1 + len(self.states)) * (1 + sizes.max(axis=1))
            margins.append(slack + past_slack + future_slack + rounding)
        spread = [high.max(axis=1) - low.min(axis=1) for high, low in log_moments]
        upper = spread[0] >= spread[1]
        high, low = np.where(upper[None, :, None], log_moments[0], log_moments[1])
        unknown = possible.sum(axis=1) > 1
        # A time point with one possible state is no secret: its level is exactly 0.
        margin = np.where(unknown, np.maximum(*margins), 0.0)
        return Ends(
            nodes,
            np.where(unknown, np.maximum(*spread) + margin, 0.0),
            margin,
            self._shown_states[high.argmax(axis=1)],
            self._shown_states[low.argmin(axis=1)],
            upper,
            (up, down),
        )

    @cached_property
    def _shown_states(self) -> IntArray:
        """The indices of the states that can be shown."""
        return np.unique(self.shown)

    def _by_shown_state(self, logs: FloatArray) -> FloatArray:
        """Return logarithms per shown state: sums over the inner states behind it."""
        if self.laws.chain.plain:
            return logs
        columns = [
            np.logaddexp.reduce(logs[:, self.shown == state], axis=1)
            for state in self._shown_states
        ]
        return np.stack(columns, axis=1)

    def exact(self, ends: Ends) -> bool:
        """Return whether no output leaks more than the ends: the tilted chain is monotone."""
        return self.order is not None and all(self._rises(tilt, self.order) for tilt in ends.tilts)

    def _rises(self, tilt: Tilt, order: Order) -> bool:
        if self.length == 1 or order.always:
            return True
        nodes = sorted_union([self._nodes([], [tilt]), np.array(self.edges[:-1])])
        nodes = nodes[nodes >= 2]
        after, slack = tilt.backwards.at(self.length - nodes)
        added = np.stack([self._exponents(tilt.rates, edge)[0] for edge in self.edges[:-1]])
        after = after + added[np.searchsorted(self.edges[:-1], nodes, side="right") - 1]
        before = tilt.forwards.logs[tilt.forwards.starts < self.length - 1]
        # Both vectors of a product err by their slack; a chain that is monotone only within the
        # tolerance is rejected, and the whole law is computed.
        tolerance = 1e-9 + 8 * float(max(slack.max(), tilt.forwards.slack.max()))
        return order.rises(after, tolerance) and order.rises(before, tolerance, backwards=True)

    def _nodes(self, forwards: Sequence[PowerIteration], tilts: Sequence[Tilt]) -> IntArray:
        """Return the nodes at which a run of equal vectors begins."""
        starts = [np.array([1])]
        starts += [vectors.starts + 1 for vectors in forwards]
        starts += [self.length - tilt.backwards.starts[1:] + 1 for tilt in tilts]
        return sorted_union(starts)

    def _tilt(self, rates: Sequence[float]) -> Tilt:
        first = np.zeros(len(self.states))
        for rate, part in zip(rates, self.laws.statistic.parts, strict=True):
            first += rate * part.start[self.states]
        spans = self._spans()
        added = [self._exponents(rates, step) for step, _ in spans]
        largest = max(float(np.abs(exponents).max()) for exponents in (first, *added))
        if not largest <= _LARGEST_EXPONENT:
            raise OutOfRangeError
        tilted = zip(added, spans, strict=True)
        legs = [(self._step(edge) * np.exp(x), n) for x, (edge, n) in tilted]
        error = self._error(largest)
        return Tilt(
            tuple(rates),
            iterate(self.start * np.exp(first), [(matrix.T, n) for matrix, n in legs], error),
            iterate(np.ones(len(self.states)), legs[::-1], error),
        )

    def _spans(self) -> list[tuple[int, int]]:
        """Return the first step of each run of equal steps, and the length of the run."""
        return [(a, b - a) for a, b in zip(self.edges, self.edges[1:], strict=False)]

    def _step(self, t: int) -> FloatArray:
        """Return the matrix that leads to node t."""
        return np.asarray(self.matrices[self.laws.chain.phase(t)])

    def _exponents(self, rates: Sequence[float], step: int) -> FloatArray:
        """Return the exponent of the step that arrives at a node, per pair of states."""
        total = np.zeros(self.matrices.shape[1:])
        for rate, part, gain in zip(rates, self.laws.statistic.parts, self.gains, strict=True):
            if part.first <= step <= part.last:
                total += rate * gain
        return total

    def _error(self, largest: float) -> float:
        """Return the relative error of one step: row sums within 8 units of 1, exponents, sums."""
        return _UNIT * (len(self.states) + 13 + (len(self.gains) + 2) * largest)


def sorted_union(runs: Sequence[IntArray]) -> IntArray:
    """Return the distinct numbers of sorted runs; linear in their length, as timsort merges."""
    merged = np.sort(np.concatenate(runs), kind="stable")
    return np.asarray(merged[np.append(True, merged[1:] != merged[:-1])])


@dataclass(frozen=True, eq=False)
class Order:
    """An order of the states, from the lowest to the highest.

    Attributes:
        states: their indices.
        signs: per answer 1 if it rises with the state, −1 if it falls.
        minors: P(x,z)·P(x',z') − P(x,z')·P(x',z) for x < x' (rows) and z < z' (columns).
    """

    states: IntArray
    signs: tuple[int, ...]
    minors: FloatArray

    @property
    def always(self) -> bool:
        """Whether no minor is negative, so that the chain is monotone under every tilt."""
        return not (self.minors < 0).any()

    def rises(self, logs: FloatArray, tolerance: float, backwards: bool = False) -> bool:
        """Return whether P(x, ·) tilted by each vector rises with x in stochastic order.

        Σ minor·y(z)·y(z') over z ≤ j < z' must not be negative, for all j and x < x'.

        Args:
            logs: the logarithms of the vectors y, one per row, in the chain's own order of states.
            tolerance: the relative error of every product y(z)·y(z'). Vectors so uneven that
                products could underflow do not rise.
            backwards: for the chain run backwards, P(·, x) instead of P(x, ·).

        Cost: O(k⁴) per vector and j.
        """
        minors = self.minors.T if backwards else self.minors
        doubtful = minors[(minors < 0).any(axis=1)]
        gains, losses = np.maximum(doubtful, 0.0), np.maximum(-doubtful, 0.0)
        low, high = np.triu_indices(len(self.states), 1)
        for first in range(0, len(logs), _CHUNK):
            part = logs[first : first + _CHUNK, self.states]
            part = part - part.max(axis=1, keepdims=True)
            # An underflowing product could hide a negative term.
            if part[part > -np.inf].min() < _LOWEST:
                return False
            y = np.exp(part)
            products = y[:, low] * y[:, high]
            for j in range(len(self.states) - 1):
                across = (low <= j) & (j < high)
                gained = products[:, across] @ gains[:, across].T
                lost = products[:, across] @ losses[:, across].T
                if (lost * (1 + tolerance) > gained * (1 - tolerance)).any():
                    return False
        return True


def find_order(transition: FloatArray, answers: Sequence[IntArray]) -> Order | None:
    """Return the only order in which answers and chain can rise together; None if there is none.

    In a monotone chain P·v, P²·v, … rise with an answer v, so they sort the states; ties after
    that keep their order.

    Args:
        transition: the matrix P.
        answers: per answer, the contribution of each state.

    >>> find_order(np.array([[0.9, 0.1], [0.4, 0.6]]), [np.array([1, 0])]).states.tolist()
    [1, 0]
    """
    k = len(transition)
    varied = [v for v in answers if np.ptp(v) > 0]
    if not varied:
        return Order(np.arange(k), (1,) * len(answers), np.zeros((0, 0)))
    if k > _MOST_STATES:
        return None
    keys = [varied[0] / np.abs(varied[0]).max()]
    for _ in range(k - 1):
        keys.append(transition @ keys[-1])
    # Rounded, since equal keys may differ in their last digits; a wrong order is noticed by the
    # signs and minors, which are computed exactly.
    states = np.lexsort([np.round(key, _DIGITS) for key in reversed(keys)])
    signs = [_sign(v[states]) for v in answers]
    if 0 in signs:
        return None
    return Order(states, tuple(signs), _minors(transition[np.ix_(states, states)]))


def _sign(values: IntArray) -> int:
    steps = np.diff(values)
    return 1 if (steps >= 0).all() else -1 if (steps <= 0).all() else 0


def _minors(matrix: FloatArray) -> FloatArray:
    """Return all 2×2 minors with exact signs: floats are dyadic, so integers suffice."""
    whole = dyadic(matrix)
    low, high = np.triu_indices(len(matrix), 1)
    main = whole[np.ix_(low, low)] * whole[np.ix_(high, high)]
    other = whole[np.ix_(low, high)] * whole[np.ix_(high, low)]
    largest = int(whole.max()) ** 2
    return np.array(
        [[_share(int(m), largest) for m in row] for row in main - other], dtype=np.float64
    ).reshape(main.shape)


def _share(minor: int, largest: int) -> float:
    """Return a minor as a float; a negative one is never lost to underflow."""
    return min(minor / largest, _LEAST_LOSS) if minor < 0 else minor / largest
