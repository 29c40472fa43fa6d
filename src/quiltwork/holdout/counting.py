"""A holdout by counting: answers of few values leave few questions that could ever be asked.

Let at most B answers come from the holdout, each rounded to one of g+1 public values, and all
others from the training set. For fixed coins the analyst's questions then form a tree of at most
N = Σ_{b<B} C(m, b+1)·(g+1)^b nodes, and one union bound covers them all: no noise, no
max-information, any dependence under which a fixed question has a rate. Closed formulae, with a sum
of up to 4,096 terms.

Theorem: docs/theory/counting.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from quiltwork.beliefs import Belief, Clusters
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import UnsupportedError
from quiltwork.holdout.concentration import concentration

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
