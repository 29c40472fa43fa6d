"""How many questions could ever be asked, and how far off any of them may be.

Answers of few values leave few questions that anybody could come to. For fixed coins they form a
tree, fixed before the data are looked at; one union bound covers its nodes: no noise, no
max-information, any dependence under which a fixed question has a concentration bound.

A reusable holdout gives at most B answers from the holdout, each rounded to one of g+1 values, and
all others from the training set: N = Σ_{b<B} C(m, b+1)·(g+1)^b. A Ladder announces at most a scores
that rise on a grid of g+1: C(m, b+1)·C(g+1, b) submissions after b of them. A board of one bit
announces no value: C(m, b+1). Closed formulae, with a sum over b.

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
"""ln of how many submissions can be made after b announcements, for b = 0, 1, …"""


def ladder_levels(submissions: int, steps: int, announcements: int | None = None) -> Levels:
    """Return ln C(m, b+1)·C(g+1, b) for every b before the last announcement.

    At most g+1 scores rise on the grid, and without a limit so many may be announced.

    Theorem: docs/theory/ladder.md

    >>> [round(math.exp(one)) for one in ladder_levels(4, 2)]
    [4, 18, 12]
    """
    count = min(submissions, steps + 1, announcements or steps + 1)
    return _log_binomials(submissions, 1, count) + _log_binomials(steps + 1, 0, count)


def one_bit_levels(submissions: int, steps: int, announcements: int | None = None) -> Levels:
    """Return ln C(m, b+1) for every b up to the most lifts of more than a step that can be.

    Theorem: docs/theory/counting.md
    """
    count = min(submissions, steps + 1, announcements or steps + 1)
    return _log_binomials(submissions, 1, count)


def exponents(levels: Levels, beta: float, means: int = 1) -> Levels:
    """Return E_b so that all nodes are off by what e^(−E_b) allows with probability β at most.

    A node after b announcements gets β·(½/N + ½/(L·N_b)), N_b of all N nodes being at its level of
    L; each is for two sides of every mean that its score is made of. So an early announcement is
    held to less than a late one, and a late one to hardly more than if all were alike.

    Theorem: docs/theory/ladder.md
    """
    largest = float(levels.max())
    whole = largest + math.log(float(np.exp(levels - largest).sum()))
    weights = np.logaddexp(-whole, -levels - math.log(len(levels))) - math.log(2)
    found = math.log(2 * means / beta) - weights
    return np.asarray(np.maximum.accumulate(found) * _UP + 2.0**-30)


def _log_binomials(top: int, first: int, count: int) -> Levels:
    """Return ln C(top, first + j) for j below `count`; `first` is 0 or 1."""
    chosen = np.arange(first, first + count - 1, dtype=float)
    ratios = np.log(np.maximum(top - chosen, 0.5)) - np.log(chosen + 1)
    return np.concatenate([[0.0], np.cumsum(ratios)]) + (math.log(top) if first else 0.0)


_UP = 1 + 2.0**-40
_MOST_TERMS = 4096


def log_possible_questions(queries: int, overfits: int, values: int) -> float:
    """Return ln N, rounded up: how many questions the analyst could ever ask, as a logarithm.

    A question is known from the places of the b < B answers that came from the holdout before it,
    and from their values: C(i−1, b)·(g+1)^b for the i-th, which adds up to C(m, b+1)·(g+1)^b.

    Theorem: docs/theory/counting.md

    >>> from math import comb, log
    >>> exact = log(sum(comb(100, b + 1) * 8**b for b in range(5)))
    >>> abs(log_possible_questions(100, 5, 7) - exact) < 1e-9
    True
    """
    rounds, answers = min(overfits, queries), math.log(values + 1)
    everything = queries * math.log(values + 2) - answers  # Σ_{b<m}, by the binomial theorem
    if rounds > _MOST_TERMS:
        # Terms grow up to b ≈ m(g+1)/(g+2), and ln C(m, j) is at most m times the entropy of j/m.
        growing = rounds * (values + 2) <= queries * (values + 1)
        last = _log_choose(queries, rounds) + (rounds - 1) * answers
        found = min(everything, math.log(rounds) + last) if growing else everything
    else:
        step = np.arange(1, rounds, dtype=float)
        ratios = np.log(np.maximum(queries - step, 0.5)) - np.log(step + 1) + answers
        terms = np.concatenate([[0.0], np.cumsum(ratios)]) + math.log(queries)
        largest = float(terms.max())
        found = largest + math.log(float(np.exp(terms - largest).sum()))
    return max(0.0, min(found, everything)) * _UP + 2.0**-30


def _log_choose(top: int, chosen: int) -> float:
    """Bound ln C(m, j) by m·H(j/m)."""
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
    """Return w with P(∃ a question that is ever asked: |Q(X) − Q(P)| ≥ w) ≤ failure.

    Theorem: docs/theory/counting.md
    """
    possible = log_possible_questions(queries, overfits, values)
    return concentration(beliefs, means_only).width(rows, possible, failure)


def fresh_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the width if the rows are split into m parts, one for each question.

    Clusters of one size stay whole; infinite where there is less than one row, or one cluster, for
    a question. Rows in time and networks are refused: their parts tell about each other.
    """
    sizes = [
        int(belief.largest)
        for belief in as_beliefs(beliefs or Clusters([0]))
        if isinstance(belief, Clusters) and belief.sizes.min() == belief.largest
    ]
    if beliefs is not None and len(sizes) < len(as_beliefs(beliefs)):
        raise UnsupportedError(
            "Parts of rows that depend on each other in time or in a network tell about each "
            "other, so no bound is proven for fresh parts of them; clusters must be of one size. "
            "Take counting."
        )
    part = min(rows // size // questions * size for size in sizes)
    rate = concentration(beliefs).rate
    return math.sqrt(math.log(2 * questions / beta) / (rate * part)) if part else math.inf
