"""Algorithm 1's privacy by enumerating transcripts, and its noise against its laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.holdout.algorithm import (
    AlgorithmSettings,
    QueryValues,
    answer,
    mean_question,
    number_question,
)

REACH = 40


def small(noise_steps: int, budget: int, threshold: int = 1) -> AlgorithmSettings:
    """One row, one step: σ is `noise_steps` steps and replacing the row moves a sum by one."""
    return AlgorithmSettings(1, Fraction(threshold), Fraction(noise_steps), budget, 0)


@cache
def over_probability(
    settings: AlgorithmSettings, distance: Fraction, threshold_noise: int
) -> float:
    """P(over | δ), summing the comparison noise where the shipped comparison says so."""
    law = settings.comparison_law
    first = math.floor(settings.threshold * settings.steps + threshold_noise - distance) + 1
    assert settings.exceeds(distance, first, threshold_noise)
    assert not settings.exceeds(distance, first - 1, threshold_noise)
    if first > 0:
        return law.alpha**first / (1 + law.alpha)
    return 1 - law.alpha ** (1 - first) / (1 + law.alpha)


def transcript_probability(settings: AlgorithmSettings, holdout, train, transcript) -> float:
    """P(transcript): None for an answer from the training set, a step for one from the holdout."""
    total, start = 1.0, 0
    ends = [i for i, said in enumerate(transcript) if said is not None]
    for end in [*ends, len(transcript)]:
        part = range(start, min(end + 1, len(transcript)))
        if part:
            total *= sum(
                settings.threshold_law.probability(delta)
                * math.prod(
                    _one(settings, holdout[i], train[i], transcript[i], delta) for i in part
                )
                for delta in range(-REACH, REACH + 1)
            )
        start = end + 1
    return total


def _one(settings, inside, outside, said, delta) -> float:
    over = over_probability(settings, abs(Fraction(inside) - outside), delta)
    if said is None:
        return 1 - over
    return over * settings.answer_law.probability(said - inside)


@pytest.mark.parametrize("budget", [1, 2])
def test_no_transcript_tells_more_than_the_level(budget):
    settings = small(3, budget)
    questions = 3
    train = [Fraction(0)] * questions
    worst = 0.0
    for before in itertools.product([1, 2], repeat=questions):
        for sign in (1, -1):
            after = [value + sign * (1 if i % 2 else -1) for i, value in enumerate(before)]
            for ends in itertools.combinations(range(questions), budget):
                if ends[-1] != questions - 1:
                    continue
                for far in (-9, 9):
                    said = [far if i in ends else None for i in range(questions)]
                    one = transcript_probability(settings, before, train, said)
                    other = transcript_probability(settings, after, train, said)
                    worst = max(worst, abs(math.log(one / other)))
    assert worst <= float(settings.epsilon) * (1 + 1e-9)
    assert worst > 0.3 * float(settings.epsilon)


def test_the_level_is_nearly_reached_so_five_percent_less_would_be_wrong():
    """A great many questions stay below the threshold and move up, the last one moves down.

    The threshold's noise must then exceed the largest of many comparison noises, and the whole
    9Δ/(4σ) is paid: 1/σ by the threshold, 2/(2σ) by the last comparison, 1/(4σ) by the answer.
    """
    settings, many = AlgorithmSettings(1, Fraction(0), Fraction(2), 1, 0), 10**6

    def log_probability(quiet, loud):
        terms = [
            settings.threshold_law.probability(delta)
            * math.exp(many * math.log1p(-over_probability(settings, Fraction(quiet), delta)))
            * over_probability(settings, Fraction(loud), delta)
            for delta in range(150)
        ]
        return math.log(math.fsum(terms)) + math.log(settings.answer_law.probability(100 - loud))

    ratio = log_probability(0, 1) - log_probability(1, 0)
    assert 0.95 * float(settings.epsilon) < ratio <= float(settings.epsilon) * (1 + 1e-9)


def test_the_level_is_nine_quarters_of_budget_over_noise_and_rows():
    settings = AlgorithmSettings.choose(1000, Fraction(1, 25), Fraction(1, 100), 7)
    assert settings.epsilon == Fraction(9 * 7, 4 * 10)
    assert settings.round_epsilon * 7 == settings.epsilon


def test_noise_has_the_scales_of_the_paper():
    settings = AlgorithmSettings.choose(1000, Fraction(1, 25), Fraction(1, 100), 7)
    steps = settings.steps
    assert settings.threshold_law.scale == Fraction(1, 100) * steps
    assert settings.comparison_law.scale == 2 * Fraction(1, 100) * steps
    assert settings.answer_law.scale == 4 * Fraction(1, 100) * steps


def test_an_answer_is_the_training_value_or_the_holdouts_with_noise():
    settings = AlgorithmSettings.choose(100, Fraction(1, 10), Fraction(1, 1000), 1)
    near = mean_question(settings, 50 << settings.bits, 52 << settings.bits, 100)
    assert answer(settings, near, 0, 0) == (Fraction(52, 100), False)
    far = mean_question(settings, 50 << settings.bits, 90 << settings.bits, 100)
    value, overfit = answer(settings, far, 0, 0)
    assert overfit
    assert abs(float(value) - 0.5) < 4 * 0.001 * 25  # e^-25


def test_the_comparison_is_strict_and_uses_both_noises():
    settings = AlgorithmSettings(10, Fraction(1, 10), Fraction(1), 1, 20)
    edge = settings.threshold * settings.steps
    assert not settings.exceeds(edge, 0, 0)
    assert settings.exceeds(edge, 1, 0)
    assert not settings.exceeds(edge, 1, 1)


def test_training_sets_of_another_size_are_compared_as_means():
    settings = AlgorithmSettings.choose(100, Fraction(1, 10), Fraction(1, 100), 1)
    question = mean_question(settings, 50 << settings.bits, 25 << settings.bits, 50)
    assert question.holdout == question.train


@pytest.mark.parametrize("sensitivity", [Fraction(1, 7), Fraction(3)])
def test_a_number_moves_by_no_more_steps_than_a_mean_even_at_the_worst_rounding(sensitivity):
    settings = AlgorithmSettings.choose(50, Fraction(1, 10), Fraction(1, 10), 1)
    for offset in range(40):
        base = Fraction(offset, 97)
        one = number_question(settings, base, Fraction(0), sensitivity)
        other = number_question(settings, base + sensitivity, Fraction(0), sensitivity)
        assert abs(one.holdout - other.holdout) <= 1 << settings.bits
        assert abs(one.holdout - other.holdout) > 0.99 * (1 << settings.bits)


def test_what_is_secret_does_not_show():
    assert "77" not in repr(QueryValues(77, Fraction(1), Fraction(1)))


def test_noise_out_of_range_is_refused_in_a_sentence():
    with pytest.raises(InvalidInputError, match="out of range"):
        AlgorithmSettings.choose(10, Fraction(1, 10), Fraction(1, 10**9), 1)
    with pytest.raises(InvalidInputError, match="out of range"):
        AlgorithmSettings.choose(10**6, Fraction(1, 10), Fraction(10**6), 1)
