"""The law of an additive statistic given the state of one time point, for every time point.

Given X_i = a, what came before and what follows are independent, so the law of F is the
convolution of a prefix (states 1..i) with a suffix (i+1..T). Both come from one pass over the
chain with the running value as a second coordinate, and all nodes share them. Only non-negative
numbers are added and multiplied, so every probability keeps its relative accuracy until it
underflows. Cost for V values: O(T·k²·V) for the passes and O(k·V²) per node for the convolutions.

With integer weights (`integer_laws`) nothing is rounded at all. In logarithms (`log_laws`) nothing
underflows; that is slower by an order of magnitude and accurate to about 1e-8 instead of 1e-11 for
a thousand time points.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork.audit.additive import Joint
from quiltwork.audit.inner import InnerChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray
from quiltwork.errors import UnsupportedError
from quiltwork.roots import bisect

Weights: TypeAlias = NDArray[Any]
"""Floats, or Python integers of any size."""
Back: TypeAlias = Callable[[Weights, int], Weights]

_MOST_NUMBERS = 1 << 26
MOST_PRODUCTS = 3 * 10**10
_DENSE_FROM = 64
_INTEGER_COST = 100
_SMALLEST = 1e-200
_STEEPEST = 16.0
_HALVINGS = 16
_LOGARITHM_COST = 5


class TooLargeError(UnsupportedError):
    """An exact law that would not fit in memory or take minutes; `report` still answers."""


@dataclass(frozen=True, eq=False)
class NodeLaw:
    """The law of the statistic's code given each state of a node; impossible states have zeros."""

    node: int
    weights: Weights
    possible: BoolArray


def supports(chain: InnerChain, length: int) -> list[BoolArray]:
    """Which inner states each time point can take, by boolean steps: none is too rare."""
    current = chain.begins
    found = [current]
    for t in range(2, length + 1):
        current = np.asarray(chain.possible[chain.phase(t)][current].any(axis=0))
        found.append(current)
    return found


def marginals(chain: InnerChain, length: int) -> list[FloatArray]:
    """The distribution of each time point, by steps of the chain's own floats."""
    found = [np.array(chain.start)]
    for t in range(2, length + 1):
        found.append(found[-1] @ chain.matrices[chain.phase(t)])
    return found


def float_laws(chain: InnerChain, length: int, statistic: Joint, nodes: range) -> Iterator[NodeLaw]:
    """Yield the law at each node as probabilities, conditional on every possible state.

    The prefix runs on the backward kernels m_{t−1}(b)·P(b, a)/m_t(a), so that nothing is small
    only because the state of the node is rare. Inner states that show the same are mixed by how
    likely each is given what the node shows.
    """
    check_cost(chain, length, statistic, nodes)
    m = marginals(chain, length)

    def kernel(t: int) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            backwards = m[t - 2][:, None] * chain.matrices[chain.phase(t)] / m[t - 1][None, :]
        return np.asarray(np.nan_to_num(backwards, nan=0.0, posinf=0.0))

    def shares(node: int) -> FloatArray:
        here = m[node - 1]
        totals = np.bincount(chain.shown, weights=here, minlength=len(chain.states))
        return np.asarray(here / np.where(totals > 0, totals, 1.0)[chain.shown])

    sure = (m[0] > 0).astype(np.float64)
    for law in _laws(chain, length, statistic, nodes, sure, kernel, chain.matrices):
        if chain.plain:
            yield law
        else:
            mixed = law.weights * shares(law.node)[:, None]
            yield _shown(chain, law.node, mixed, law.possible)


def integer_laws(
    chain: InnerChain, length: int, statistic: Joint, nodes: range
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
    statistic: Joint,
    nodes: range,
    start: Weights,
    forward: Callable[[int], Weights],
    matrices: Weights,
) -> Iterator[NodeLaw]:
    """The law per inner state of each node; `forward(t)` is the kernel that leads to node t."""
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
                convolve(one, other, statistic.cells)
                for one, other in zip(before, after[node - nodes.start], strict=True)
            ]
            yield NodeLaw(node, np.array(rows), possible[node - 1])


def _shown(chain: InnerChain, node: int, weights: Weights, possible: BoolArray) -> NodeLaw:
    """Add up the laws of the inner states that show the same."""
    summed = chain.summed(weights, lambda rows: rows.sum(axis=0))
    return NodeLaw(node, summed, chain.summed(possible, np.any))


def check_cost(
    chain: InnerChain, length: int, statistic: Joint, nodes: range, slower: float = 1
) -> None:
    """Refuse what would not fit in memory or take minutes, before anything is computed.

    Args:
        chain: the belief.
        length: the number of time points.
        statistic: what is followed.
        nodes: for which time points the law is wanted.
        slower: by how much a product costs more than one of floats.

    Raises:
        TooLargeError: naming the size.
    """
    if statistic.cells * chain.size * length > _MOST_NUMBERS:
        refuse(chain, length, statistic, f"more than the {_MOST_NUMBERS:,} numbers kept here")
    work = slower * products(chain, statistic, nodes)
    if work > MOST_PRODUCTS:
        refuse(chain, length, statistic, too_long(work))


def too_long(work: float) -> str:
    """Say how much time so many multiplications take."""
    return (
        f"which takes the time of some {work:.0e} multiplications, more than the "
        f"{MOST_PRODUCTS:.0e} (seconds to a minute) allowed here"
    )


def refuse(chain: InnerChain, length: int, statistic: Joint, why: str) -> NoReturn:
    """Name the size of a law, and what to ask instead."""
    raise TooLargeError(
        f"The exact law has {statistic.cells:,} combinations of values at {length:,} time points "
        f"with {chain.size} {chain.noun}, {why}. Ask about one cell, a shorter series or window, "
        "or a coarser sum; quiltwork.audit.report answers at any length, and the bound of "
        "quiltwork.audit.misspecification holds there."
    )


def products(chain: InnerChain, statistic: Joint, nodes: range) -> float:
    """How many multiplications the convolutions of these nodes take, at most."""
    at = np.arange(nodes.start, nodes.stop, dtype=np.float64)
    dense_before, dense_after = np.ones_like(at), np.ones_like(at)
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
    """How many sums so many terms of some kinds can have."""
    found = np.ones_like(terms)
    for kind in range(1, kinds):
        found = found * (terms + kind) / kind
    return found


def first_prefix(start: Weights, statistic: Joint, nothing: float = 0) -> Weights:
    """The running code at time point 1, per state; `nothing` stands for what is impossible."""
    codes = statistic.start
    law = np.full((len(start), int(codes.max()) + 1), nothing, dtype=start.dtype)
    law[np.arange(len(start)), codes] = start
    return law


def advance(law: Weights, matrix: Weights, gain: IntArray) -> Weights:
    """One step forward: state y collects from every x, moved on by gain[x, y]."""
    width = law.shape[1]
    following = np.zeros((len(law), width + int(gain.max())), dtype=law.dtype)
    for moved in np.unique(gain):
        following[:, moved : moved + width] += np.where(gain == moved, matrix, 0).T @ law
    return following


def suffixes(last: Weights, length: int, statistic: Joint, first: int, back: Back) -> list[Weights]:
    """What the steps after each node first..length add, given its state; O(k²·V) per step.

    `last` is what follows the last node, and back(law, t) goes back over the step to node t.
    """
    found = [last]
    for t in range(length, first, -1):
        found.append(back(found[-1], t))
    return found[::-1]


def retreat(law: Weights, matrix: Weights, gain: IntArray) -> Weights:
    """One step backward: state x collects from every y that may follow, moved by gain[x, y]."""
    return advance(law, matrix.T, gain.T)


def convolve(one: Weights, other: Weights, cells: int) -> Weights:
    """The law of a sum of independent codes; sparse ones are multiplied entry by entry."""
    left, right = np.flatnonzero(one), np.flatnonzero(other)
    law = np.zeros(cells, dtype=one.dtype)
    if len(left) == 0 or len(right) == 0:
        return law
    dense, sparse = len(one) * len(other), len(left) * len(right)
    if dense < _DENSE_FROM * sparse:
        found = np.convolve(one[: left[-1] + 1], other[: right[-1] + 1])
        law[: len(found)] = found
        return law
    if len(left) > len(right):
        one, other, left, right = other, one, right, left
    for code in left:
        law[code + right] += one[code] * other[right]
    return law


def log_laws(chain: InnerChain, length: int, statistic: Joint, nodes: range) -> Iterator[NodeLaw]:
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
            for one, other in zip(before, after[node - nodes.start], strict=True):
                row, slopes = _log_convolve(one, other, statistic.cells, slopes)
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
    one: FloatArray, other: FloatArray, cells: int, slopes: Sequence[float]
) -> tuple[FloatArray, list[float]]:
    """The law of a sum of independent codes, by plain convolutions of tilted laws.

    Multiplied by e^(slope·code), both laws have their bulk at codes that add up to a given one,
    and what is convolved there underflows nowhere near. A slope covers all codes within 10^200 of
    its bulk, so a few do, mostly those that served another node: they are tried first and those
    that served are returned. If a code's own slope leaves it out, the rest is summed directly.
    """
    law = np.full(cells, -np.inf)
    width = min(cells, len(one) + len(other) - 1)
    ways = np.convolve((one > -np.inf) * 1.0, (other > -np.inf) * 1.0)[:width]
    open_codes = np.flatnonzero(ways)
    waiting, served = list(slopes), []
    while len(open_codes):
        code, own = int(open_codes[len(open_codes) // 2]), not waiting
        slope = _slope(one, other, code) if own else waiting.pop()
        left, top = _tilted(one, slope)
        right, height = _tilted(other, slope)
        found = np.convolve(left, right)[:width]
        seen = found > _SMALLEST * found.max()
        codes = np.flatnonzero(seen)
        law[codes] = np.log(found[codes]) + (top + height - slope * codes)
        if own and not seen[code]:
            law[open_codes] = [_single(one, other, int(code)) for code in open_codes]
            break
        if seen[open_codes].any():
            served.append(slope)
        open_codes = open_codes[~seen[open_codes]]
    return law, served[::-1]


def _slope(one: FloatArray, other: FloatArray, code: int) -> float:
    """The tilt under which the mean of the sum is about this code."""

    def reaches(slope: float) -> bool:
        mean = 0.0
        for law in (one, other):
            weights, _ = _tilted(law, slope)
            mean += float(weights @ np.arange(len(law)) / weights.sum())
        return mean >= code

    return sum(bisect(reaches, -_STEEPEST, _STEEPEST, _HALVINGS)) / 2


def _tilted(law: FloatArray, slope: float) -> tuple[FloatArray, float]:
    """A law times e^(slope·code), divided by its largest entry, and that entry's logarithm."""
    logs = law + slope * np.arange(len(law))
    top = float(logs.max())
    return np.exp(logs - top), top


def _single(one: FloatArray, other: FloatArray, code: int) -> float:
    first, last = max(0, code - len(other) + 1), min(len(one) - 1, code)
    terms = one[first : last + 1] + other[code - last : code - first + 1][::-1]
    return float(np.logaddexp.reduce(terms))


def _conditional(row: FloatArray) -> FloatArray:
    highest = row.max()
    if highest == -np.inf:
        return row
    return np.asarray(row - (highest + np.log(np.exp(row - highest).sum())))
