"""Approximate max-information: how much a mechanism's output can tell about the holdout.

The bound takes the sum of squared leakages V = Σ ε_i², ε_i being what the output can tell about
row i (or cluster i) to somebody who knows the rows before it. Along a chain that is the right side
of the sweep; otherwise V = n·ε² for ε-Bayesian DP; cluster by cluster, V = Σ (s·ε)² for ε-DP. No
independence is needed.

Theorem: docs/theory/max-information.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from quiltwork.beliefs import Belief, Clusters
from quiltwork.beliefs.gaussian import Gaussian
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import UnsupportedError

_UP = 1 + 2.0**-40


def squared_leakages(
    beliefs: Belief | Sequence[Belief] | None, dp_epsilon: float, rows: int
) -> float:
    """Return V for an algorithm of level `dp_epsilon` per replaced row, the worst of the beliefs.

    Clusters count by their own mix of sizes, scaled to `rows` rows. O(1) after the sizes are
    counted; chains and networks cost a translation into Bayesian DP.
    """
    if beliefs is None:
        return rows * dp_epsilon**2 * _UP
    return max(_of_one(belief, dp_epsilon, rows) for belief in as_beliefs(beliefs))


def _of_one(belief: Belief, dp_epsilon: float, rows: int) -> float:
    if isinstance(belief, Clusters):
        sizes = belief.sizes.astype(float)
        return rows * float(sizes @ sizes / sizes.sum()) * dp_epsilon**2 * _UP
    _refuse_gaussian(belief)
    from quiltwork.influence.bayesian.conversion import told_after

    return rows * told_after(belief, dp_epsilon, _length((belief,), rows)) ** 2 * _UP


def bayesian_epsilon(
    beliefs: Belief | Sequence[Belief] | None, dp_epsilon: float, rows: int
) -> float:
    """Return the level of Bayesian DP of an algorithm that is `dp_epsilon`-DP, rounded up."""
    if beliefs is None:
        return dp_epsilon
    members = as_beliefs(beliefs)
    if all(isinstance(one, Clusters) for one in members):
        largest = max(one.largest for one in members if isinstance(one, Clusters))
        return largest * dp_epsilon * _UP
    for one in members:
        _refuse_gaussian(one)
    from quiltwork.influence import bayesian_dp

    return float(bayesian_dp(beliefs, dp_epsilon, length=_length(members, rows)))


def _refuse_gaussian(belief: Belief) -> None:
    if isinstance(belief, Gaussian):
        raise UnsupportedError(
            "Gaussian beliefs bound what sums of clipped numbers tell, not what any statistic "
            "does; give Clusters of the rows that depend on each other."
        )


def _length(members: Sequence[Belief], rows: int) -> int | None:
    return None if any(one.length is not None for one in members) else rows


def max_information(squares: float, beta: float) -> float:
    """Bound I_∞^β in bits: (V/8 + √(V·ln(1/β)/2))·log₂e.

    Theorem: docs/theory/max-information.md

    >>> round(max_information(100 * 0.1**2, 0.05), 4)
    1.946
    """
    return (squares / 8 + math.sqrt(squares * math.log(1 / beta) / 2)) / math.log(2) * _UP
