"""The law of an additive statistic given the state of one time point, for every time point.

Given X_i = a, the past and the future are independent, so the law of F is the convolution of a
prefix (steps up to i) with a suffix (steps after i). Both come from one pass over the chain with
the running value as a second coordinate, and all nodes share them. Only non-negative numbers are
added and multiplied, so every probability keeps its relative accuracy until it underflows. Cost for
V values: O(T·k²·V) for the passes and O(k·V²) per node for the convolutions.

One recursion, three number types: floats (`float_laws`), integers without any rounding
(`integer_laws`), and logarithms (`log_laws`), which do not underflow but are slower by an order of
magnitude and accurate to about 1e-8 instead of 1e-11 for a thousand time points.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.audit.additive import JointStatistic
from quiltwork.audit.inner import InnerChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray
from quiltwork.errors import UnsupportedError
from quiltwork.roots import bisect

Weights: TypeAlias = NDArray[Any]
"""Floats, or Python integers of any size."""
Back: TypeAlias = Callable[[Weights, int], Weights]

_MOST_NUMBERS = 1 << 26
"""The suffixes of all nodes are kept: half a gigabyte of floats."""
MOST_PRODUCTS = 3 * 10**10
"""Multiplications: seconds to a minute."""
_DENSE_FROM = 64
"""A dense convolution is so much cheaper per product than one over the positive entries."""
_INTEGER_COST = 100
_LOGARITHM_COST = 5
_SMALLEST = 1e-200
"""Convolved entries below this share of the largest may have lost accuracy to underflow."""
_STEEPEST = 16.0
_HALVINGS = 16


class TooLargeError(UnsupportedError):
    """Raised for an exact law that would not fit in memory or take minutes; use `report`."""


@dataclass(frozen=True, eq=False)
class NodeLaw:
    """The law of the statistic's code given each state of a node; zeros for impossible states."""

    node: int
    weights: Weights
    possible: BoolArray


def supports(chain: InnerChain, length: int) -> list[BoolArray]:
    """Return the possible inner states of each time point, by boolean steps, however rare."""
    sets = [chain.begins]
    for t in range(2, length + 1):
        sets.append(np.asarray(chain.possible[chain.phase(t)][sets[-1]].any(axis=0)))
    return sets


def marginals(chain: InnerChain, length: int) -> list[FloatArray]:
    """Return the distribution of each time point, by steps of the chain's own floats."""
    laws = [np.array(chain.start)]
    for t in range(2, length + 1):
        laws.append(laws[-1] @ chain.matrices[chain.phase(t)])
    return laws


def float_laws(
    chain: InnerChain, length: int, statistic: JointStatistic, nodes: range
) -> Iterator[NodeLaw]:
    """Yield the law at each node as probabilities, conditional on every possible state.

    The prefix runs on the backward kernels m_{t−1}(b)·P(b, a)/m_t(a), so that no probability is
    small only because the state of the node is rare. Inner states that show the same state are
    mixed by their conditional probabilities.
    """
    check_cost(chain, length, statistic, nodes)
    m = marginals(chain, length)

    def kernel(t: int) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            backwards = m[t - 2][:, None] * chain.matrices[chain.phase(t)] / m[t - 1][None, :]
        # 0/0 at a state of marginal 0, whose column is not used.
        return np.asarray(np.nan_to_num(backwards, nan=0.0, posinf=0.0))

    def shares(node: int) -> FloatArray:
        law = m[node - 1]
        totals = np.bincount(chain.shown, weights=law, minlength=len(chain.states))
        return np.asarray(law / np.where(totals > 0, totals, 1.0)[chain.shown])

    # Conditional on its own state, the first node has probability 1, however rare the state is.
    given_state = (m[0] > 0).astype(np.float64)
    for law in _laws(chain, length, statistic, nodes, given_state, kernel, chain.matrices):
        if chain.plain:
            yield law
        else:
            mixed = law.weights * shares(law.node)[:, None]
            yield _shown(chain, law.node, mixed, law.possible)


def integer_laws(
    chain: InnerChain, length: int, statistic: JointStatistic, nodes: range
) -> Iterator[NodeLaw]:
    """Yield the joint weights of (X_i = a, F) as integers, up to one common power of two.

    The chain's floats are dyadic rationals, so this is exact; numbers grow by about 60 bits per
    time point.
    """
    check_cost(chain, length, statistic, nodes, slower=_INTEGER_COST * length)
    steps, start = dyadic(chain.matrices), dyadic(chain.start)

    def forward(t: int) -> Weights:
        return np.asarray(steps[chain.phase(t)])

    for law in _laws(chain, length, statistic, nodes, start, forward, steps):
        yield _shown(chain, law.node, law.weights, law.possible)


def dyadic(values: FloatArray) -> Weights:
    """Return floats as integers over one common power of two."""
    ratios = [float(value).as_integer_ratio() for value in values.ravel()]
    denominator = max(ratio[1] for ratio in ratios)
    whole = [numerator * (denominator // bottom) for numerator, bottom in ratios]
    return np.array(whole, dtype=object).reshape(values.shape)


def _laws(
    chain: InnerChain,
    length: int,
    statistic: JointStatistic,
    nodes: range,
    start: Weights,
    forward: Callable[[int], Weights],
    matrices: Weights,
) -> Iterator[NodeLaw]:
    """Yield the law per inner state of each node; `forward(t)` is the kernel that leads to t."""
    possible = supports(chain, length)
    last = np.ones((chain.size, 1), dtype=matrices.dtype)
    after = suffixes(
        last,
        length,
        statistic,
        nodes.start,
        lambda law, t: retreat(law, matrices[chain.phase(t)], statistic.gain(t)),
    )
    before = first_prefix(start, statistic)
    for node in range(1, nodes.stop):
        if node > 1:
            before = advance(before, forward(node), statistic.gain(node))
        if node in nodes:
            rows = [
                convolve(prefix, suffix, statistic.cells)
                for prefix, suffix in zip(before, after[node - nodes.start], strict=True)
            ]
            yield NodeLaw(node, np.array(rows), possible[node - 1])


def _shown(chain: InnerChain, node: int, weights: Weights, possible: BoolArray) -> NodeLaw:
    """Return the law per shown state: the sum over the inner states behind it."""
    summed = chain.summed(weights, lambda rows: rows.sum(axis=0))
    return NodeLaw(node, summed, chain.summed(possible, np.any))


def check_cost(
    chain: InnerChain, length: int, statistic: JointStatistic, nodes: range, slower: float = 1
) -> None:
    """Raise TooLargeError before a computation that would not fit in memory or take minutes.

    Args:
        chain: the belief.
        length: the number of time points.
        statistic: the statistic of the law.
        nodes: the time points of the law.
        slower: the cost of a product relative to one of floats.

    Raises:
        TooLargeError: naming the size.
    """
    if statistic.cells * chain.size * length > _MOST_NUMBERS:
        raise_too_large(
            chain, length, statistic, f"more than the {_MOST_NUMBERS:,} numbers kept here"
        )
    work = slower * products(chain, statistic, nodes)
    if work > MOST_PRODUCTS:
        raise_too_large(chain, length, statistic, time_estimate(work))


def time_estimate(work: float) -> str:
    """Return the cost of so many multiplications in words, for a message."""
    return (
        f"which takes the time of some {work:.0e} multiplications, more than the "
        f"{MOST_PRODUCTS:.0e} (seconds to a minute) allowed here"
    )


def raise_too_large(
    chain: InnerChain, length: int, statistic: JointStatistic, why: str
) -> NoReturn:
    """Raise TooLargeError with the size of a law and the alternatives."""
    raise TooLargeError(
        f"The exact law has {statistic.cells:,} combinations of values at {length:,} time points "
        f"with {chain.size} {chain.noun}, {why}. Ask about one cell, a shorter series or window, "
        "or a coarser sum; quiltwork.audit.report answers at any length, and the bound of "
        "quiltwork.audit.misspecification holds there."
    )


def products(chain: InnerChain, statistic: JointStatistic, nodes: range) -> float:
    """How many multiplications the convolutions of these nodes take, at most."""
    at = np.arange(nodes.start, nodes.stop, dtype=np.float64)
    dense_before, dense_after = np.ones_like(at), np.ones_like(at)
    # A law is dense over its range of codes, or sparse over the sums that can occur; the cheaper
    # of the two counts, as in `convolve`.
    sparse = np.ones_like(at)
    for stride, part in zip(statistic.strides, statistic.parts, strict=True):
        passed = np.clip(at - part.first + 1, 0, part.steps)
        most, kinds = int(part.gain.max()), len(np.unique(part.gain))
        before = int(part.start.max()) + most * passed
        after = most * (part.steps - passed)
        dense_before += stride * before
        dense_after += stride * after
        sparse *= np.minimum(before + 1, _combinations(passed + 1, kinds))
        sparse *= np.minimum(after + 1, _combinations(part.steps - passed, kinds))
    return chain.size * float(np.minimum(dense_before * dense_after, _DENSE_FROM * sparse).sum())


def _combinations(terms: FloatArray, kinds: int) -> FloatArray:
    """Return the number of multisets of `terms` elements of `kinds` kinds: a bound on sums."""
    count = np.ones_like(terms)
    for kind in range(1, kinds):
        count = count * (terms + kind) / kind
    return count


def first_prefix(start: Weights, statistic: JointStatistic, nothing: float = 0) -> Weights:
    """Return the law of the code at time point 1, per state; `nothing` is a probability of 0."""
    codes = statistic.start
    law = np.full((len(start), int(codes.max()) + 1), nothing, dtype=start.dtype)
    law[np.arange(len(start)), codes] = start
    return law


def advance(law: Weights, matrix: Weights, gain: IntArray) -> Weights:
    """Return the laws one step forward: state y sums over every x, shifted by gain[x, y]."""
    width = law.shape[1]
    following = np.zeros((len(law), width + int(gain.max())), dtype=law.dtype)
    for shift in np.unique(gain):
        following[:, shift : shift + width] += np.where(gain == shift, matrix, 0).T @ law
    return following


def suffixes(
    last: Weights, length: int, statistic: JointStatistic, first: int, back: Back
) -> list[Weights]:
    """Return the law of the steps after each node first..length given its state; O(k²·V) each.

    `last` is that after the last node, and back(law, t) goes back over the step to node t.
    """
    laws = [last]
    for t in range(length, first, -1):
        laws.append(back(laws[-1], t))
    return laws[::-1]


def retreat(law: Weights, matrix: Weights, gain: IntArray) -> Weights:
    """Return the laws one step backward: state x sums over every y, shifted by gain[x, y]."""
    return advance(law, matrix.T, gain.T)


def convolve(a: Weights, b: Weights, cells: int) -> Weights:
    """Return the law of a sum of independent codes; sparse laws are multiplied by entries."""
    left, right = np.flatnonzero(a), np.flatnonzero(b)
    law = np.zeros(cells, dtype=a.dtype)
    if len(left) == 0 or len(right) == 0:
        return law
    dense, sparse = len(a) * len(b), len(left) * len(right)
    if dense < _DENSE_FROM * sparse:
        product = np.convolve(a[: left[-1] + 1], b[: right[-1] + 1])
        law[: len(product)] = product
        return law
    # The Python loop runs over the law with fewer entries; the other is one array operation.
    if len(left) > len(right):
        a, b, left, right = b, a, right, left
    for code in left:
        law[code + right] += a[code] * b[right]
    return law


def log_laws(
    chain: InnerChain, length: int, statistic: JointStatistic, nodes: range
) -> Iterator[NodeLaw]:
    """Yield the logarithm of the law at each node, conditional on every possible state."""
    check_cost(chain, length, statistic, nodes, slower=_LOGARITHM_COST)
    possible = supports(chain, length)
    steps = logarithm(chain.matrices)
    after = suffixes(
        np.zeros((chain.size, 1)),
        length,
        statistic,
        nodes.start,
        lambda law, t: _log_advance(law, steps[chain.phase(t)].T, statistic.gain(t).T),
    )
    before = first_prefix(logarithm(chain.start), statistic, -np.inf)
    slopes: list[float] = []
    for node in range(1, nodes.stop):
        if node > 1:
            before = _log_advance(before, steps[chain.phase(node)], statistic.gain(node))
        if node in nodes:
            rows = []
            for prefix, suffix in zip(before, after[node - nodes.start], strict=True):
                row, slopes = _log_convolve(prefix, suffix, statistic.cells, slopes)
                rows.append(row)
            gathered = chain.summed(np.array(rows), np.logaddexp.reduce)
            able = chain.summed(possible[node - 1], np.any)
            yield NodeLaw(node, np.array([_conditional(row) for row in gathered]), able)


def logarithm(values: FloatArray) -> FloatArray:
    """Return log(values), −∞ for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _log_advance(law: FloatArray, step: FloatArray, gain: IntArray) -> FloatArray:
    size, width = law.shape
    following = np.full((size, width + int(gain.max())), -np.inf)
    for x, y in zip(*np.nonzero(step > -np.inf), strict=True):
        part = following[y, gain[x, y] : gain[x, y] + width]
        np.logaddexp(part, law[x] + step[x, y], out=part)
    return following


def _log_convolve(
    a: FloatArray, b: FloatArray, cells: int, slopes: Sequence[float]
) -> tuple[FloatArray, list[float]]:
    """Return the log-law of a sum of independent codes, and the slopes used.

    By convolutions of exponentially tilted laws: multiplied by e^(slope·code), both laws have their
    bulk at codes that add up to a chosen one, and entries near it do not underflow. A slope covers
    all codes within 10^200 of its bulk, so a few suffice, mostly the same for neighbouring nodes:
    `slopes` are tried first. Codes that even their own slope does not cover are summed directly.
    """
    law = np.full(cells, -np.inf)
    width = min(cells, len(a) + len(b) - 1)
    combinations = np.convolve((a > -np.inf) * 1.0, (b > -np.inf) * 1.0)[:width]
    open_codes = np.flatnonzero(combinations)
    candidates, useful = list(slopes), []
    while len(open_codes):
        code, own = int(open_codes[len(open_codes) // 2]), not candidates
        slope = _slope(a, b, code) if own else candidates.pop()
        left, top = _tilted(a, slope)
        right, height = _tilted(b, slope)
        product = np.convolve(left, right)[:width]
        accurate = product > _SMALLEST * product.max()
        # Entries far below the largest one may be rounding noise of the convolution.
        codes = np.flatnonzero(accurate)
        law[codes] = np.log(product[codes]) + (top + height - slope * codes)
        # Even the tilt centred on this code does not reach it, so sum the rest directly.
        if own and not accurate[code]:
            law[open_codes] = [_single(a, b, int(code)) for code in open_codes]
            break
        if accurate[open_codes].any():
            useful.append(slope)
        open_codes = open_codes[~accurate[open_codes]]
    return law, useful[::-1]


def _slope(a: FloatArray, b: FloatArray, code: int) -> float:
    """Return the tilt under which the mean of the sum is about this code."""

    def reaches(slope: float) -> bool:
        mean = 0.0
        for law in (a, b):
            weights, _ = _tilted(law, slope)
            mean += float(weights @ np.arange(len(law)) / weights.sum())
        return mean >= code

    return sum(bisect(reaches, -_STEEPEST, _STEEPEST, _HALVINGS)) / 2


def _tilted(law: FloatArray, slope: float) -> tuple[FloatArray, float]:
    """Return a law times e^(slope·code) over its largest entry, and that entry's logarithm."""
    logs = law + slope * np.arange(len(law))
    top = float(logs.max())
    return np.exp(logs - top), top


def _single(a: FloatArray, b: FloatArray, code: int) -> float:
    first, last = max(0, code - len(b) + 1), min(len(a) - 1, code)
    terms = a[first : last + 1] + b[code - last : code - first + 1][::-1]
    return float(np.logaddexp.reduce(terms))


def _conditional(row: FloatArray) -> FloatArray:
    highest = row.max()
    if highest == -np.inf:
        return row
    return np.asarray(row - (highest + np.log(np.exp(row - highest).sum())))
