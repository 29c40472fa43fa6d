"""Counts the questions that an adaptive analyst could ask, and bounds the error of all of them.

Answers with few values leave few possible questions. For fixed coins of the analyst these form a
tree that does not depend on the data, so one union bound covers its nodes: without noise or
max-information, under any belief with a concentration bound for a fixed question.

A reusable holdout gives at most B answers from the holdout, each rounded to one of g+1 values, and
all others from the training set: N = Σ_{b<B} C(m, b+1)·(g+1)^b. A Ladder announces at most a scores
that rise on a grid of g+1: C(m, b+1)·C(g+1, b) submissions after b of them. A board of one bit
announces no value: C(m, b+1). Closed formulas, with a sum over b.

Theorem: docs/theory/counting.md, docs/theory/ladder.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Clusters
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.concentration import concentration

Levels = NDArray[np.float64]
"""The log number of possible submissions after b announcements, for b = 0, 1, …"""


def ladder_levels(submissions: int, steps: int, announcements: int | None = None) -> Levels:
    """Return ln C(m, b+1)·C(g+1, b) for every b before the last announcement.

    At most g+1 scores can rise on the grid, so without a limit that many may be announced.

    Theorem: docs/theory/ladder.md

    >>> [round(math.exp(one)) for one in ladder_levels(4, 2)]
    [4, 18, 12]
    """
    count = min(submissions, steps + 1, announcements or steps + 1)
    return _log_binomials(submissions, 1, count) + _log_binomials(steps + 1, 0, count)


def one_bit_levels(submissions: int, steps: int, announcements: int | None = None) -> Levels:
    """Return ln C(m, b+1) for every b up to the largest number of improvements by more than a step.

    Theorem: docs/theory/counting.md
    """
    count = min(submissions, steps + 1, announcements or steps + 1)
    return _log_binomials(submissions, 1, count)


def exponents(levels: Levels, beta: float, means: int = 1) -> Levels:
    """Return exponents E_b at which a union bound over all nodes fails with probability β at most.

    A node after b announcements gets β·(½/N + ½/(L·N_b)), with N_b of all N nodes at its level of
    L, split over two sides of every mean in its score. So early announcements are known much more
    precisely than late ones, and late ones hardly worse than under an even split.

    Theorem: docs/theory/ladder.md
    """
    largest = float(levels.max())
    total = largest + math.log(float(np.exp(levels - largest).sum()))
    weights = np.logaddexp(-total, -levels - math.log(len(levels))) - math.log(2)
    exponent = math.log(2 * means / beta) - weights
    # Increasing, so that one width bounds all announcements up to a given one.
    return np.asarray(np.maximum.accumulate(exponent) * _UP + 2.0**-30)


def _log_binomials(top: int, first: int, count: int) -> Levels:
    """Return ln C(top, first + j) for j below `count`; `first` is 0 or 1."""
    chosen = np.arange(first, first + count - 1, dtype=float)
    # Beyond `top` the binomial is 0; 0.5 keeps the logarithm finite, and errs upwards.
    ratios = np.log(np.maximum(top - chosen, 0.5)) - np.log(chosen + 1)
    return np.concatenate([[0.0], np.cumsum(ratios)]) + (math.log(top) if first else 0.0)


_UP = 1 + 2.0**-40
_MOST_TERMS = 4096


def log_possible_questions(queries: int, overfits: int, values: int) -> float:
    """Return ln N, rounded up: the log number of questions that an analyst could ever ask.

    The i-th question is determined by the places of the b < B answers from the holdout before it,
    and by their values: C(i−1, b)·(g+1)^b of them, which adds up to C(m, b+1)·(g+1)^b.

    Theorem: docs/theory/counting.md

    >>> from math import comb, log
    >>> exact = log(sum(comb(100, b + 1) * 8**b for b in range(5)))
    >>> abs(log_possible_questions(100, 5, 7) - exact) < 1e-9
    True
    """
    rounds, answers = min(overfits, queries), math.log(values + 1)
    unlimited = queries * math.log(values + 2) - answers  # Σ_{b<m}, by the binomial theorem
    if rounds > _MOST_TERMS:
        # Terms grow up to b ≈ m(g+1)/(g+2), and ln C(m, j) is at most m times the entropy of j/m.
        growing = rounds * (values + 2) <= queries * (values + 1)
        last = _log_choose(queries, rounds) + (rounds - 1) * answers
        log_count = min(unlimited, math.log(rounds) + last) if growing else unlimited
    else:
        step = np.arange(1, rounds, dtype=float)
        ratios = np.log(np.maximum(queries - step, 0.5)) - np.log(step + 1) + answers
        terms = np.concatenate([[0.0], np.cumsum(ratios)]) + math.log(queries)
        largest = float(terms.max())
        log_count = largest + math.log(float(np.exp(terms - largest).sum()))
    return max(0.0, min(log_count, unlimited)) * _UP + 2.0**-30


def _log_choose(top: int, chosen: int) -> float:
    """Return an upper bound m·H(j/m) on ln C(m, j)."""
    rest = top - chosen
    return chosen * math.log(top / chosen) + (rest * math.log(top / rest) if rest else 0.0)


def counting_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    queries: int,
    overfits: int,
    values: int,
    failure: float,
    means_only: bool = True,
) -> float:
    """Return w with P(∃ a question that can be asked: |Q(X) − Q(P)| ≥ w) ≤ failure.

    Theorem: docs/theory/counting.md
    """
    possible = log_possible_questions(queries, overfits, values)
    return concentration(beliefs, means_only).width(rows, possible, failure)


def fresh_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the error width if the rows are split into m parts, one for each question.

    Clusters of one size stay whole; infinite if a question gets less than one row, or one cluster.
    Series and networks are refused, because their parts are not independent.
    """
    sizes = [
        int(belief.largest)
        for belief in as_beliefs(beliefs or Clusters([0]))
        if isinstance(belief, Clusters) and belief.sizes.min() == belief.largest
    ]
    if beliefs is not None and len(sizes) < len(as_beliefs(beliefs)):
        raise UnsupportedError(
            "No bound is proven for fresh parts of rows that depend on each other in time, in a "
            "network, or in clusters of several sizes: the parts are not independent. Take "
            "mechanism='counting'."
        )
    part = min(rows // size // questions * size for size in sizes)
    rate = concentration(beliefs).rate
    return math.sqrt(math.log(2 * questions / beta) / (rate * part)) if part else math.inf
