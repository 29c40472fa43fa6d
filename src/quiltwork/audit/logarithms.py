"""The laws of `laws` in logarithms, for probabilities that floats cannot hold.

Slower by an order of magnitude and accurate to about 1e-8 instead of 1e-11 for a thousand time
points; used only where an underflow could hide a leak.

Theorem: exact-leakage
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from quiltwork.audit.laws import NodeLaw, check_size, supports
from quiltwork.audit.statistics import Joint
from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.matrices import FloatArray, IntArray


def log_laws(chain: MarkovChain, length: int, statistic: Joint, nodes: range) -> Iterator[NodeLaw]:
    """Yield the logarithm of the law at each node, conditional on every possible state."""
    check_size(chain, length, statistic)
    possible = supports(chain, length)
    step = logarithm(chain.transition)
    after = _suffixes(step, length, statistic, nodes.start)
    before = _first(logarithm(chain.start), statistic)
    for node in range(1, nodes.stop):
        if node > 1:
            before = _advance(before, step, statistic.gain(node))
        if node in nodes:
            rows = [
                _convolve(one, other, statistic.cells)
                for one, other in zip(before, after[node - nodes.start], strict=True)
            ]
            yield NodeLaw(node, np.array([_conditional(row) for row in rows]), possible[node - 1])


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


def _convolve(one: FloatArray, other: FloatArray, cells: int) -> FloatArray:
    law = np.full(cells, -np.inf)
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    for code in np.flatnonzero(short > -np.inf):
        end = min(cells, int(code) + len(long))
        part = law[code:end]
        np.logaddexp(part, long[: end - code] + short[code], out=part)
    return law


def _conditional(row: FloatArray) -> FloatArray:
    highest = row.max()
    if highest == -np.inf:
        return row
    return np.asarray(row - (highest + np.log(np.exp(row - highest).sum())))
