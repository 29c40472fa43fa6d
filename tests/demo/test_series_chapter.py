from __future__ import annotations

import warnings
from collections import Counter

import click
import pytest

from quiltwork.cli.commands import COMMANDS
from quiltwork.cli.root_command import app
from quiltwork.demo import series_chapter
from quiltwork.errors import QuiltworkWarning


@pytest.fixture(scope="module")
def told():
    return series_chapter.chapter()


def test_nothing_is_fitted_on_the_person_who_is_protected():
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuiltworkWarning)
        series_chapter.chapter()


def test_the_truth_is_a_count_of_the_simulated_states(told):
    from quiltwork.beliefs import MarkovChain

    person = MarkovChain(series_chapter.TRANSITION, states=series_chapter.STATES).sample(
        series_chapter.LENGTH, series_chapter.SEED
    )
    assert told.data["truth"] == dict(Counter(person.tolist()))


def test_the_noise_is_between_that_of_one_moment_and_that_of_all(told):
    scales = told.data["scales"]
    assert 2 < scales["sweep"] < scales["exact"] <= scales["approx"] < scales["group"]
    assert scales["group"] == pytest.approx(2 * series_chapter.LENGTH)
    assert told.data["level_if_dependence_is_ignored"] > 1


def test_the_noise_it_speaks_of_is_the_noise_it_adds(told):
    from fractions import Fraction

    released = Fraction(told.data["release"]["noise_scale"])
    assert released >= Fraction(told.data["scales"]["sweep"]) * (1 - Fraction(1, 10**9))
    assert released <= Fraction(told.data["scales"]["sweep"]) * (1 + Fraction(1, 10**3))


def test_the_intervals_shown_hold_the_truth_as_often_as_they_say():
    """40 runs of 3 cells at 95 %: fewer than 80 % happens less than once in 10⁷."""
    shown = [one for _ in range(40) for one in series_chapter.released()[2]]
    assert len(shown) == 120
    assert sum(one.low <= one.truth <= one.high for one in shown) / len(shown) >= 0.8


@pytest.mark.skipif(
    "release" not in COMMANDS.get("Time series", {}), reason="the command is still to come"
)
def test_the_commands_on_the_page_exist_with_their_options(told):
    text = " ".join(part.text for part in told.parts).replace("\\\n", " ")
    for name in ("fit", "release"):
        line = text.split(f"quiltwork {name} ")[1].split("\n")[0]
        command = app.get_command(click.Context(app), name)
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in line.split() if word.startswith("-")} <= known
