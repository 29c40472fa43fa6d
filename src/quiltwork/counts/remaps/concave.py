"""The best answer to every posterior under a power of the error below 1, for many counts.

Costs come in blocks (`remaps.blocks`), but are not convex. So the first answers of all blocks are
settled beforehand, level by level those halfway between settled ones: as the best answer never
falls, the neighbours confine the candidates. These are tried outwards from the median. As |x|^p is
a metric for p ≤ 1, the costs of two candidates differ by at most their distance to the power p; so
what lies near to a candidate much worse than the best is leapt over, and what lies far from the
best is left out. Two first answers then confine the answers between them. Cost: O(n/B) times the
costs of one answer to a block of candidates, O(B·K) each, where the losses that remain do not grow
with n; at most O(n/B·log n) times.

Theorem: geometric-mechanism, *Powers below 1*.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

from quiltwork.counts.consumers.losses import FloatArray
from quiltwork.counts.remaps.blocks import BlockCosts, Losses, assemble
from quiltwork.counts.remaps.filters import Posteriors
from quiltwork.counts.remaps.quantiles import quantile
from quiltwork.counts.remaps.whole import Centres

_TIE = 1e-12
_SLACK = 1e-9
_FAR = 34.0  # e^34 is beyond all counts


def concave_centres(post: Posteriors, exponent: Fraction) -> Centres:
    """Return the least best candidates for |i−r|^exponent, exponent ≤ 1.

    Candidates within a relative 1e-12 of the best count as tied.
    """
    costs = BlockCosts(post, exponent)
    low, high = _first_answers(post, costs, float(exponent))

    def tried(b: int, before: int, rows: FloatArray, losses: Losses) -> range:
        return range(low[b] // costs.size, high[b + 1] // costs.size + 1)

    return assemble(costs, post.n, tried)


def _first_answers(
    post: Posteriors, costs: BlockCosts, exponent: float
) -> tuple[list[int], list[int]]:
    """Return the least and the greatest best candidate of every block's first answer.

    Each list ends with the greatest possible count, as if of a block after the last.
    """
    bottom, top = int(post.support[0]), int(post.support[-1])
    low, high = [bottom] * costs.blocks + [top], [bottom] * costs.blocks + [top]
    rows = costs.laws.first_rows()
    firsts = np.arange(costs.blocks) * costs.size
    guesses = quantile(post.at(firsts), Fraction(1, 2)).tolist()
    settled = [-1, costs.blocks]
    while len(settled) < costs.blocks + 2:
        halfway = []
        for below, above in pairwise(settled):
            halfway.append(below)
            if above - below > 1:
                b = (below + above) // 2
                ends = low[below] if below >= 0 else bottom, high[above]
                low[b], high[b] = _best_range(costs, rows[b], b, ends, guesses[b], exponent)
                halfway.append(b)
        settled = [*halfway, costs.blocks]
    return low, high


def _best_range(
    costs: BlockCosts, row: FloatArray, b: int, ends: tuple[int, int], guess: int, exponent: float
) -> tuple[int, int]:
    """Return the least and the greatest of the candidates that are tied for the best."""
    size = costs.size
    first, last = ends[0] // size, ends[1] // size
    middle = min(max(guess // size, first), last)
    tried = {middle: costs.row_costs(row, b, middle)}
    at = int(tried[middle].argmin())
    best, centre = float(tried[middle][at]), middle * size + at
    for step in (1, -1):
        c, edge = middle, -1 if step > 0 else 0
        while True:
            ahead = float(tried[c][edge]) - best * (1 + _SLACK)
            c += step * (1 + _reach(ahead, exponent) // size)
            far = _reach(2 * best, exponent) + 2
            if not max(first, (centre - far) // size) <= c <= min(last, (centre + far) // size):
                break
            tried[c] = costs.row_costs(row, b, c)
            at = int(tried[c].argmin())
            if tried[c][at] < best:
                best, centre = float(tried[c][at]), c * size + at
    tied = [
        c * size + int(at)
        for c, cost in tried.items()
        if cost.min() <= best * (1 + _TIE)
        for at in np.flatnonzero(cost <= best * (1 + _TIE))[[0, -1]]
    ]
    return min(tied), max(tied)


def _reach(ahead: float, exponent: float) -> int:
    """Return nearly the largest whole d with d^exponent ≤ ahead, or one beyond all counts."""
    if ahead <= 0:
        return 0
    return int(math.exp(min(math.log(ahead) / exponent, _FAR)) * (1 - _SLACK))
