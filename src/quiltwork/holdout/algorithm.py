"""Algorithm 1 of the paper in integer arithmetic: three noises and one threshold, without data.

All quantities are multiples of 1/(n·2^bits), so replacing one row moves a sum by at most 2^bits
steps. Noise of scales σ, 2σ and 4σ is drawn as integers from the operating system's randomness.
Where answers are rounded to few public values the noise may be 0: accuracy then rests on counting
alone, and rows are not protected.

Theorem: docs/theory/reusable-holdout.md, docs/theory/counting.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_nearest, integer, shortened, to_fraction
from quiltwork.noise import TwoSidedGeometric
from quiltwork.wording import argument

MOST = 1 << 60
"""Largest number of rows, questions or rounds."""
_LARGEST_THRESHOLD = 10**6
"""In units of rows·sensitivity; above 1 the training set always answers."""
_FINEST_BITS = 40
_LEAST_BITS = 20
_STEPS_PER_SCALE = 1 << 20
_LARGEST_SCALE = 1 << 48
_FINEST_GRID = 1 << 20


def parse_count(value: object, name: str) -> int:
    """Validate a number of rows, questions or rounds, at most 2^60."""
    return integer(value, name, 1, MOST)


def parse_sigma(noise: object, answer_sd: object) -> object:
    """Return σ from itself, or from the standard deviation √2·4σ of an answer's noise."""
    if (noise is None) == (answer_sd is None):
        raise InvalidInputError(
            "Give either noise, the scale sigma of Algorithm 1, or answer_sd, the standard "
            "deviation of an answer's noise, which is 5.66 times sigma."
        )
    if answer_sd is None:
        return noise
    return to_fraction(answer_sd, "answer_sd") / Fraction(4 * math.sqrt(2))


@dataclass(frozen=True)
class AlgorithmSettings:
    """The public constants of one run of Algorithm 1.

    Attributes:
        rows: n, of the holdout.
        threshold: T, exact.
        noise: σ, exact.
        budget: B, the number of rounds.
        bits: a value in [0, 1] has 2^bits steps.
        values: g; answers from the holdout are rounded to 0, 1/g, …, 1. None for no rounding.
    """

    rows: int
    threshold: Fraction
    noise: Fraction
    budget: int
    bits: int
    values: int | None = None

    @classmethod
    def choose(
        cls, rows: int, threshold: object, noise: object, budget: object, values: object = None
    ) -> AlgorithmSettings:
        """Choose the grid from public numbers: at least 2^20 steps per value and per scale."""
        limit, scale = to_fraction(threshold, "threshold"), to_fraction(noise, "noise")
        rounds = parse_count(budget, "budget")
        grid = None if values is None else parse_count(values, "values")
        if scale < 0 or (scale == 0 and grid is None):
            raise InvalidInputError(
                f"noise must be positive, not {shortened(noise)}. It may be 0 only if answers are "
                "rounded to few values (values=), which protects accuracy but no row."
            )
        if grid is not None and grid > _FINEST_GRID:
            raise InvalidInputError(
                f"values is {grid:,}; answers can be rounded to at most 2^20 values."
            )
        if limit < 0:
            raise InvalidInputError(f"threshold must be at least 0, not {shortened(threshold)}.")
        if limit > _LARGEST_THRESHOLD:
            raise InvalidInputError(
                f"threshold is {shortened(threshold)}; means of values in [0, 1] differ by at "
                "most 1."
            )
        bits = _LEAST_BITS
        # A finer grid only where σ would have too few steps, which would distort its law.
        while bits < _FINEST_BITS and scale * rows * (1 << bits) < _STEPS_PER_SCALE:
            bits += 1
        if scale and not _STEPS_PER_SCALE <= scale * rows * (1 << bits) <= _LARGEST_SCALE // 4:
            raise InvalidInputError(
                f"noise {float_nearest(scale):g} is out of range for {rows:,} rows: it must be "
                f"between about {1 / (rows * 2.0**20):.2g} and {2.0**26 / rows:.2g}."
            )
        return cls(rows, limit, scale, rounds, bits if scale else _LEAST_BITS, grid)

    @property
    def steps(self) -> int:
        """The number of steps in the whole range of a mean: n·2^bits."""
        return self.rows << self.bits

    @property
    def round_epsilon(self) -> Fraction:
        """The privacy loss of one round, for replacing a row: 9/(4σn), exact."""
        if not self.noise:
            raise UnsupportedError(
                "A holdout without noise protects no row: its answers have no finite epsilon that "
                f"a ledger could debit. Plan it with {argument('protect', 'rows')}."
            )
        return Fraction(9, 4) / (self.noise * self.rows)

    @property
    def epsilon(self) -> Fraction:
        """The privacy loss of all B rounds: 9B/(4σn), exact."""
        return self.budget * self.round_epsilon

    @cached_property
    def threshold_law(self) -> TwoSidedGeometric:
        """The noise of a round's threshold, of scale σ."""
        return TwoSidedGeometric.from_scale(self.noise * self.steps)

    @cached_property
    def comparison_law(self) -> TwoSidedGeometric:
        """The noise of every comparison, of scale 2σ."""
        return TwoSidedGeometric.from_scale(2 * self.noise * self.steps)

    @cached_property
    def answer_law(self) -> TwoSidedGeometric:
        """The noise of an answer from the holdout, of scale 4σ."""
        return TwoSidedGeometric.from_scale(4 * self.noise * self.steps)

    @property
    def answer_sd(self) -> float:
        """The standard deviation of the noise of an answer from the holdout: √2·4σ.

        At 2^20 steps per scale the two-sided geometric law of scale 4σ has it to 12 digits.
        """
        return math.sqrt(2) * 4 * float_nearest(self.noise)

    def shown(self, value: Fraction) -> Fraction:
        """Round an answer from the holdout, half up, to the public values, if there are any."""
        if self.values is None:
            return value
        nearest = (value * self.values + Fraction(1, 2)).__floor__()
        return Fraction(min(max(nearest, 0), self.values), self.values)

    def exceeds(self, distance: Fraction, comparison: int, threshold: int) -> bool:
        """Line 8: |Q(X) − Q(D)| + γ > T + δ, all in steps."""
        return distance + comparison > self.threshold * self.steps + threshold


@dataclass(frozen=True)
class QueryValues:
    """The two values of a question that Algorithm 1 compares, in steps.

    Attributes:
        holdout: Q(X), in whole steps. Secret.
        train: Q(D), in the same steps, exact.
        unit: the value of one step.
        sensitivity: for a declared number, how far one row can move it; None for a mean.
    """

    holdout: int
    train: Fraction
    unit: Fraction
    sensitivity: Fraction | None = None

    def __repr__(self) -> str:
        return f"QueryValues(train={self.train}, unit={self.unit})"


def answer(
    settings: AlgorithmSettings, question: QueryValues, comparison: int, threshold: int
) -> tuple[Fraction, bool]:
    """Run lines 8 to 12 of Algorithm 1 with given noises γ and δ.

    Returns the answer, and whether it came from the holdout, which ends the round.

    Theorem: docs/theory/reusable-holdout.md
    """
    distance = abs(question.holdout - question.train)
    if settings.exceeds(distance, comparison, threshold):
        blurred = (question.holdout + settings.answer_law.draw_one()) * question.unit
        return settings.shown(blurred), True
    return question.train * question.unit, False


def mean_question(
    settings: AlgorithmSettings, holdout: int, train: int, train_rows: int
) -> QueryValues:
    """Return the question about a mean over rows, from its two sums of steps."""
    scaled = Fraction(train * settings.rows, train_rows)
    return QueryValues(holdout, scaled, Fraction(1, settings.steps))


def number_question(
    settings: AlgorithmSettings, holdout: Fraction, train: Fraction, sensitivity: Fraction
) -> QueryValues:
    """Return the question about a number that one row moves by at most `sensitivity`.

    Its unit is slightly more than sensitivity/2^bits, so that after rounding to the grid one row
    still moves it by at most 2^bits steps; threshold and noise are then in units of n·sensitivity.
    """
    unit = sensitivity / ((1 << settings.bits) - 1)
    half = Fraction(1, 2)
    return QueryValues(
        (holdout / unit + half).__floor__(),
        Fraction((train / unit + half).__floor__()),
        unit,
        sensitivity,
    )
