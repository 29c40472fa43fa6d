"""The laws of `laws` in logarithms, for probabilities that floats cannot hold.

Slower by an order of magnitude and accurate to about 1e-8 instead of 1e-11 for a thousand time
points; used only where an underflow could hide a leak.

Theorem: exact-leakage
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from quiltwork.audit.laws import NodeLaw, check_cost, supports
from quiltwork.audit.statistics import Joint
from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.matrices import FloatArray, IntArray

_SMALLEST = 1e-200
_STEEPEST = 16.0
_HALVINGS = 16
_LOGARITHM_COST = 5


def log_laws(chain: MarkovChain, length: int, statistic: Joint, nodes: range) -> Iterator[NodeLaw]:
    """Yield the logarithm of the law at each node, conditional on every possible state."""
    check_cost(chain, length, statistic, nodes, slower=_LOGARITHM_COST)
    possible = supports(chain, length)
    step = logarithm(chain.transition)
    after = _suffixes(step, length, statistic, nodes.start)
    before = _first(logarithm(chain.start), statistic)
    slopes: list[float] = []
    for node in range(1, nodes.stop):
        if node > 1:
            before = _advance(before, step, statistic.gain(node))
        if node in nodes:
            rows = []
            for one, other in zip(before, after[node - nodes.start], strict=True):
                row, slopes = _convolve(one, other, statistic.cells, slopes)
                rows.append(_conditional(row))
            yield NodeLaw(node, np.array(rows), possible[node - 1])


def logarithm(values: FloatArray) -> FloatArray:
    """Return log(values), −∞ for 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def _first(start: FloatArray, statistic: Joint) -> FloatArray:
    codes = statistic.start
    law = np.full((len(start), int(codes.max()) + 1), -np.inf)
    law[np.arange(len(start)), codes] = start
    return law


def _advance(law: FloatArray, step: FloatArray, gain: IntArray) -> FloatArray:
    size, width = law.shape
    following = np.full((size, width + int(gain.max())), -np.inf)
    for x, y in zip(*np.nonzero(step > -np.inf), strict=True):
        part = following[y, gain[x, y] : gain[x, y] + width]
        np.logaddexp(part, law[x] + step[x, y], out=part)
    return following


def _suffixes(step: FloatArray, length: int, statistic: Joint, first: int) -> list[FloatArray]:
    current = np.zeros((len(step), 1))
    found = [current]
    for t in range(length, first, -1):
        gain = statistic.gain(t)
        width = current.shape[1]
        before = np.full((len(step), width + int(gain.max())), -np.inf)
        for x, y in zip(*np.nonzero(step > -np.inf), strict=True):
            part = before[x, gain[x, y] : gain[x, y] + width]
            np.logaddexp(part, current[y] + step[x, y], out=part)
        current = before
        found.append(current)
    return found[::-1]


def _convolve(
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
    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        mean = 0.0
        for law in (one, other):
            weights, _ = _tilted(law, middle)
            mean += float(weights @ np.arange(len(law)) / weights.sum())
        low, high = (middle, high) if mean < code else (low, middle)
    return (low + high) / 2


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
