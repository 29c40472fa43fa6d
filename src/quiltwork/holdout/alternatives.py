"""What else a holder of n rows could do, and what it promises: the paper's own numbers, splitting,
questions fixed in advance. Closed formulae, for comparison with the reusable holdout.

Theorem: docs/theory/reusable-holdout.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from quiltwork.beliefs import Belief
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.guarantee import overfit_width

LEMMA_1 = 0.92
"""ε ≤ .92·√κ·τ gives P(|Q(X) − Q(P)| ≥ τ) ≤ 4·exp(−κnτ²/4): Lemma 1 with its constant mended."""


def lemma_1_tail(rate: float, rows: int, tolerance: float) -> float:
    """Return 4·exp(−κnτ²/4), valid if the Bayesian DP level is at most .92·√κ·τ.

    Theorem: docs/theory/max-information.md
    """
    return min(1.0, 4 * math.exp(-rate * rows * tolerance**2 / 4))


def paper_blanket_rows(
    budget: int, noise: float, tolerance: float, beta: float, influence: float = 0.0
) -> float:
    """Return n_* of equation (7); `influence` is a, the largest of a row's Markov blanket.

    As printed it holds for independent rows only, where a = 0: its concentration step needs them.
    """
    return paper_quilt_rows(budget, noise, tolerance, beta, 1, influence)


def paper_quilt_rows(
    budget: int,
    noise: float,
    tolerance: float,
    beta: float,
    nearby: int = 1,
    influence: float = 0.0,
) -> float:
    """Return n_# of equation (8) for quilts that leave `nearby` rows, the row itself included.

    Infinite where the influence b is too large (4b ≥ τ/3). As printed it holds for independent
    rows only.

    >>> import math
    >>> round(paper_quilt_rows(5, 0.05 / (12 * math.log(8000)), 0.0125, 0.05 / 200))
    5823704
    """
    room = tolerance / 3 - 4 * influence
    privacy = 9 * budget * nearby / (4 * noise * room) if room > 0 else math.inf
    return max(9 * math.log(4 / beta) / tolerance**2, privacy)


def lemma_1_rows(rate: float, budget: int, noise: float, tolerance: float, beta: float) -> float:
    """Return the rows that Lemma 1 with its constant mended asks for, at concentration rate κ.

    For clusters, `rate` is that of their mix of sizes.

    >>> import math
    >>> math.ceil(lemma_1_rows(2, 5, 0.05 / (12 * math.log(8000)), 0.0125, 0.05 / 200))
    1492022
    """
    share = rate / 2  # n becomes n/s for clusters of s rows, whose level is s times as large
    privacy = 9 * budget / (4 * noise * LEMMA_1 * math.sqrt(2) * tolerance * share)
    return max(4 * math.log(4 / beta) / (rate * tolerance**2), privacy)


def fixed_questions_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the width for m questions that were all fixed before the first answer."""
    return overfit_width(beliefs, rows, 0.0, questions, 2 * beta)


def splitting_width(
    beliefs: Belief | Sequence[Belief] | None, rows: int, questions: int, beta: float
) -> float:
    """Return the width if the rows are split into m parts, one for each question.

    Clusters stay whole; infinite where there is less than one row for a question.
    """
    rate = concentration(beliefs).rate
    part = rows // questions
    return math.sqrt(math.log(2 * questions / beta) / (rate * part)) if part else math.inf
