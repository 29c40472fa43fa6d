"""The guarantee of a reusable holdout, from its parameters alone: levels, widths, probabilities.

The error of an answer has two parts: the holdout differs from the population (`overfit_width`), and
the answer differs from the holdout (the threshold and three kinds of noise). The first rests on
max-information, a bound on what the answers reveal about the holdout: on the sum of squared
leakages V = Σ ε_i², where ε_i bounds what they reveal about row i (or cluster i) to an adversary
who knows the rows before it. Along a chain that is the right side of the sweep; otherwise V = n·ε²
for ε-Bayesian DP; cluster by cluster, V = Σ (s·ε)² for ε-DP. No independence is needed. Closed
formulas.

Theorem: docs/theory/reusable-holdout.md, docs/theory/max-information.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from quiltwork.beliefs import Belief, Clusters
from quiltwork.beliefs.gaussian import Gaussian
from quiltwork.beliefs.sets import as_beliefs
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import proper_fraction, shortened
from quiltwork.holdout.algorithm import parse_count
from quiltwork.holdout.concentration import concentration
from quiltwork.holdout.counting import counting_width
from quiltwork.results import ResultBase
from quiltwork.wording import either


def squared_leakages(
    beliefs: Belief | Sequence[Belief] | None, dp_epsilon: float, rows: int
) -> float:
    """Return V for an algorithm of level `dp_epsilon` per row, under the worst belief.

    Clusters count by their own mix of sizes, scaled to `rows` rows. O(1) once sizes are counted;
    chains and networks cost a translation into Bayesian DP.
    """
    if beliefs is None:
        return rows * dp_epsilon**2 * _UP
    return max(_squared_leakages_of(belief, dp_epsilon, rows) for belief in as_beliefs(beliefs))


def _squared_leakages_of(belief: Belief, dp_epsilon: float, rows: int) -> float:
    if isinstance(belief, Clusters):
        sizes = belief.sizes.astype(float)
        return rows * float(sizes @ sizes / sizes.sum()) * dp_epsilon**2 * _UP
    _refuse_gaussian(belief)
    from quiltwork.influence.bayesian.conversion import leakage_given_past

    return rows * leakage_given_past(belief, dp_epsilon, _length((belief,), rows)) ** 2 * _UP


def bayesian_epsilon(
    beliefs: Belief | Sequence[Belief] | None, dp_epsilon: float, rows: int
) -> float:
    """Return the Bayesian DP level of a `dp_epsilon`-DP algorithm, rounded up."""
    if beliefs is None:
        return dp_epsilon
    members = as_beliefs(beliefs)
    if all(isinstance(belief, Clusters) for belief in members):
        largest = max(belief.largest for belief in members if isinstance(belief, Clusters))
        return largest * dp_epsilon * _UP
    for belief in members:
        _refuse_gaussian(belief)
    from quiltwork.influence import bayesian_dp

    return float(bayesian_dp(beliefs, dp_epsilon, length=_length(members, rows)))


def _refuse_gaussian(belief: Belief) -> None:
    if isinstance(belief, Gaussian):
        raise UnsupportedError(
            "Gaussian beliefs bound the leakage of sums of clipped numbers only, not of arbitrary "
            "statistics; give Clusters of the rows that depend on each other."
        )


def _length(members: Sequence[Belief], rows: int) -> int | None:
    return None if any(belief.length is not None for belief in members) else rows


def max_information(squares: float, beta: float) -> float:
    """Return a bound on I_∞^β in bits: (V/8 + √(V·ln(1/β)/2))·log₂e.

    Theorem: docs/theory/max-information.md

    >>> round(max_information(100 * 0.1**2, 0.05), 4)
    1.946
    """
    return (squares / 8 + math.sqrt(squares * math.log(1 / beta) / 2)) / math.log(2) * _UP


VACUOUS = 0.5
"""Always answering ½ errs by at most this, so a wider guarantee is empty."""
_LEAST_SHARE = Fraction(1, 10**12)
_UP = 1 + 2.0**-40
_GRID = 1 + 2.0**-20
"""A two-sided geometric tail exceeds the Laplace tail e^(−t/σ) by a factor 2/(1+α) at most."""


def parse_share(value: object, name: str) -> float:
    """Validate a share such as a confidence, which floats must be able to tell from 0 and 1."""
    share = proper_fraction(value, name)
    if not _LEAST_SHARE <= share <= 1 - _LEAST_SHARE:
        raise InvalidInputError(
            f"{name} is {shortened(value)}, too close to 0 or 1 to compute with; give a number "
            "between 1e-12 and 1 - 1e-12."
        )
    return float(share)


def dp_level(rows: int, noise: float, budget: int) -> float:
    """Return 9·B/(4·σ·n), the privacy loss of Algorithm 1 for replacing one row, rounded up.

    Theorem: docs/theory/reusable-holdout.md
    """
    return 9 * budget / (4 * noise * rows) * _UP


def overfit_width(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    dp_epsilon: float,
    questions: int,
    failure: float,
    means_only: bool = True,
) -> float:
    """Return τ with P(∃ i ≤ m: |Q_i(X) − Q_i(P)| ≥ τ) ≤ failure for adaptively chosen questions.

    It is the width for 2m·e^(V/8 + √(V·ln(2/β)/2)) fixed questions, with V the belief's sum of
    squared leakages. With `dp_epsilon` 0 it is the width for questions fixed in advance.

    Theorem: docs/theory/reusable-holdout.md
    """
    squares = squared_leakages(beliefs, dp_epsilon, rows) if dp_epsilon else 0.0
    log_growth = squares / 8 + math.sqrt(squares * math.log(2 / failure) / 2)
    bound = concentration(beliefs, means_only)
    return bound.width(rows, math.log(2 * questions) + log_growth, failure)


def noise_failure(
    noise: float, questions: int, budget: int, shift: float, jitter: float, blur: float
) -> float:
    """Return a bound on the probability that any noise exceeds its limit.

    `shift` is the limit of the B thresholds of scale σ, `jitter` of the m comparisons of scale 2σ,
    `blur` of the B answers of scale 4σ.
    """
    return _GRID * (
        budget * math.exp(-shift / noise)
        + questions * math.exp(-jitter / (2 * noise))
        + budget * math.exp(-blur / (4 * noise))
    )


@dataclass(frozen=True)
class Guarantee(ResultBase):
    """The accuracy and privacy of a holdout of given size, threshold, noise and budget.

    Attributes:
        rows: of the holdout.
        questions: m, how many may be asked.
        budget: B, how many of them may find overfitting.
        threshold: T.
        noise: σ.
        confidence: 1 − β.
        epsilon: the level of differential privacy for replacing one row.
        bayesian_epsilon: the level of Bayesian DP under the beliefs.
        max_information: in bits at β/2, with the sharper proven constant.
        overfit_width: no question differs by more between holdout and population, with probability
            1 − β/2.
        noise_width: no answer differs by more from the holdout's value, with probability 1 − β/2.
        concentration: the inequality behind `overfit_width`.
    """

    also = ("tolerance", "vacuous")
    rows: int
    questions: int
    budget: int
    threshold: float
    noise: float
    confidence: float
    epsilon: float
    bayesian_epsilon: float
    max_information: float
    overfit_width: float
    noise_width: float
    concentration: str

    @property
    def tolerance(self) -> float:
        """The largest error of any answer, with the stated confidence, while the budget lasts."""
        return self.overfit_width + self.noise_width

    @property
    def vacuous(self) -> bool:
        """Whether always answering ½ would be as accurate."""
        return self.tolerance >= VACUOUS

    def explain(self) -> str:
        """Return the guarantee in sentences."""
        protected = [
            f"Privacy: {self.epsilon:.4g}-DP for replacing a row (9B/(4σn)); "
            f"{self.bayesian_epsilon:.4g}-Bayesian DP under the belief.",
            f"Max-information: at most {self.max_information:,.4g} bits.",
        ]
        lines = [
            f"{self.rows:,} rows, {self.questions:,} questions, {self.budget:,} of them may find "
            f"overfitting; threshold {self.threshold:g}, noise {self.noise:g}.",
            *(protected if self.noise else ["Privacy: none; rows are not protected by noise."]),
            *(
                [f"An answer from the holdout: {_answer_noise_text(self.noise)}."]
                if self.noise
                else []
            ),
            f"With probability {self.confidence:g}, every answer is within {self.tolerance:.4g} of "
            f"the true value: {self.overfit_width:.4g} between holdout and population by "
            f"{self.concentration}, {self.noise_width:.4g} for threshold and noise.",
        ]
        if self.vacuous:
            lines.append(
                "This guarantee is vacuous: always answering 1/2 errs by at most 0.5. Use "
                + either("plan_holdout", "`quiltwork holdout plan`")
                + " to see how many rows a useful guarantee takes, and what sample splitting or "
                "a Ladder would give."
            )
        return "\n".join(lines)


def _answer_noise_text(noise: float) -> str:
    """Return the spread of an answer's noise in words; it is larger than σ."""
    return f"noise of standard deviation {math.sqrt(2) * 4 * noise:.3g} (√2·4σ, Algorithm 1)"


def guarantee(
    beliefs: Belief | Sequence[Belief] | None,
    rows: int,
    threshold: float,
    noise: float,
    budget: int,
    questions: int,
    confidence: float = 0.95,
    means_only: bool = True,
    values: int | None = None,
) -> Guarantee:
    """Return the guarantee for these parameters; costs one translation into Bayesian DP.

    Where answers are rounded to `values`, the smaller of two widths counts: that of
    max-information, which holds whatever is rounded, and that of counting. Without noise only the
    latter exists.

    Theorem: docs/theory/reusable-holdout.md, docs/theory/counting.md

    >>> round(guarantee(None, 2_000_000, 0.01, 0.0005, 5, 100).tolerance, 4)
    0.0266
    """
    beta = 1 - parse_share(confidence, "confidence")
    parse_count(questions, "queries")
    theorem = concentration(beliefs, means_only).theorem
    if not noise:  # rows are not protected
        if values is None:
            raise InvalidInputError("Without noise answers must be rounded: give values.")
        width = counting_width(beliefs, rows, questions, budget, values, 1 - confidence)
        parameters = (rows, questions, budget, threshold, 0.0, confidence, *(math.inf,) * 3)
        return Guarantee(*parameters, width, max(threshold, 1 / (2 * values)) * _UP, theorem)
    level = dp_level(rows, noise, budget)
    share = beta / 2
    # The other half in three equal parts: thresholds, comparisons and answers.
    shift = noise * math.log(3 * _GRID * budget / share)
    jitter = 2 * noise * math.log(3 * _GRID * questions / share)
    blur = 4 * noise * math.log(3 * _GRID * budget / share)
    bayesian = bayesian_epsilon(beliefs, level, rows)
    width = overfit_width(beliefs, rows, level, questions, share, means_only)
    rounding = 0.0
    if values is not None:
        counted = counting_width(beliefs, rows, questions, budget, values, share, means_only)
        width, rounding = min(width, counted), 1 / (2 * values)
    return Guarantee(
        rows,
        questions,
        budget,
        threshold,
        noise,
        confidence,
        level,
        bayesian,
        max_information(squared_leakages(beliefs, level, rows), share),
        width,
        max(threshold + shift + jitter, blur + rounding) * _UP,
        theorem,
    )
