"""Dates in place of time points, against the clock of the machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import quiltwork as qw
from quiltwork.series.releases.belief_text import belief_words
from quiltwork.series.releases.period_text import node_words, period_words
from quiltwork.series.releases.release_text import odds_words

BERLIN = ZoneInfo("Europe/Berlin")
CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        ("2026-01-01T00:00+01:00", "2026-02-01T00:00+01:00", "January 2026"),
        ("2026-03-01T00:00+01:00", "2026-04-01T00:00+02:00", "March 2026"),
        ("2026-01-01T00:00", "2027-01-01T00:00", "2026"),
        ("2026-01-01T00:00", "2026-04-01T00:00", "January 2026 to March 2026"),
        ("2026-02-28T00:00", "2026-03-01T00:00", "28 February 2026"),
        ("2026-12-30T00:00", "2027-01-02T00:00", "30 December 2026 to 1 January 2027"),
        ("2026-03-17T18:20", "2026-03-17T18:30", "17 March 2026, 18:20 to 17 March 2026, 18:30"),
    ],
)
def test_whole_days_months_and_years_have_their_names(begin, end, words):
    assert period_words((begin, end)) == words


def test_a_time_point_is_named_by_when_it_begins():
    answer = qw.release(["rest", "walk"] * 72, qw.queries.histogram().on(5, 28), CHAIN)
    assert node_words(answer, 7) == "time point 7"
    begin = datetime(2026, 3, 17, 4, tzinfo=BERLIN)
    end = begin + timedelta(hours=24)
    dated = replace(answer, period=(begin.isoformat(), end.isoformat()))
    for node in (1, 5, 7, 40, 144):
        moment = begin + timedelta(hours=node - 5)
        words = f"{moment.day} March 2026, {moment:%H:%M}"
        assert node_words(dated, node) == words
    assert node_words(dated, 7, 9) == "17 March 2026, 06:00 to 17 March 2026, 08:00"
    days = replace(answer, period=("2026-03-20T00:00+01:00", "2026-04-13T00:00+02:00"))
    assert node_words(days, 15) == "30 March 2026"  # local days, over the change of clocks


def test_an_offset_is_shown_where_clocks_change_in_the_window():
    answer = qw.release(["rest", "walk"] * 72, qw.queries.histogram().on(1, 47), CHAIN)
    dated = replace(answer, period=("2026-03-28T00:00+01:00", "2026-03-30T00:00+02:00"))
    assert node_words(dated, 27) == "29 March 2026, 02:00 (+01:00)"  # shown as 03:00 there


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 9.0])
def test_odds_are_those_of_an_even_chance(epsilon):
    words = odds_words(epsilon)
    percent = float(words.split("becomes at most ")[1].split(" %")[0])
    factor = float(words.split("at most ")[1].split(":")[0].replace(",", ""))
    odds = (percent / 100) / (1 - percent / 100)
    assert factor == pytest.approx(2.718281828459045**epsilon, rel=1e-3)
    assert odds == pytest.approx(factor, rel=0.02)
    assert "protects nothing" in odds_words(1000)


@pytest.mark.parametrize(
    "belief",
    [
        CHAIN,
        qw.MarkovChain.fit([0, 1, 1, 0] * 50, order=2),
        qw.CyclicChain([CHAIN.transition] * 2),
        qw.ChainBox([[0.8, 0.05], [0.3, 0.5]], [[0.95, 0.2], [0.5, 0.7]]),
        qw.GaussianSeries(ar=[0.8]),
        qw.Clusters(["a", "a", "b"]),
    ],
)
def test_a_belief_stored_as_python_by_an_earlier_version_is_put_into_words(belief):
    assert belief_words(belief.summary()) == belief.summary()
    words = belief_words(repr(belief))
    assert type(belief).__name__ not in words
    assert "'" not in words
    assert "=" not in words
    assert "depend" in words or "vary" in words
