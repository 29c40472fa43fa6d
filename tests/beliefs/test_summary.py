"""A belief in words: every class says its states, numbers, start and grid, and no Python."""

from __future__ import annotations

import inspect

import networkx as nx
import pytest

import quiltwork as qw
from quiltwork import beliefs
from quiltwork.beliefs import Belief

MATRIX = [[0.9, 0.1], [0.4, 0.6]]
WALK = {"states": ["rest", "walk"]}
BERLIN = beliefs.Calendar.of("Europe/Berlin", 1767225600, 1767225600)

SUMMARIES = [
    (
        qw.MarkovChain(MATRIX, **WALK),
        "a Markov chain of 2 states (rest, walk), started in its long-run distribution",
    ),
    (
        qw.MarkovChain(MATRIX, "any", **WALK, grid=qw.Grid("1h", edges=(0.5,))),
        "a Markov chain of 2 states (rest, walk), started in any of them, every 1h, edges 0.5",
    ),
    (
        qw.MarkovChain([[1]], [1]),
        "a Markov chain of 1 state (0), started in a given distribution",
    ),
    (
        qw.MarkovChain([[1 / 6] * 6] * 6, "any"),
        "a Markov chain of 6 states (0, 1, 2, 3 and 2 more), started in any of them",
    ),
    (
        qw.HiddenChain([[0.5, 0.5, 0], [0, 0.5, 0.5], [1, 0, 0]], ["up", "down", "down"], "any"),
        "a chain of 2 states (up, down) with longer memory (3 inner states), started in any of "
        "them",
    ),
    (
        qw.CyclicChain([MATRIX] * 24, **WALK, grid=qw.Grid("1h")),
        "a chain of 2 states (rest, walk) whose transition probabilities follow the time of day "
        "(24 phases), started in its long-run distribution, every 1h",
    ),
    (
        qw.CyclicChain([MATRIX] * 3, initial="any"),
        "a chain of 2 states (0, 1) whose transition probabilities follow a cycle of 3 time "
        "points, started in any of them",
    ),
    (
        beliefs.DatedChain(
            [MATRIX] * 24, grid=qw.Grid("1h"), anchor=0, begins=1767225600, calendar=BERLIN
        ),
        "a chain of 2 states (0, 1) whose transition probabilities follow the time of day "
        "(24 phases) by the clock of Europe/Berlin, from 2026-01-01T01:00+01:00, started in any "
        "of them, every 1h",
    ),
    (
        qw.ChainBox([[0.8, 0.05], [0.3, 0.5]], [[0.95, 0.2], [0.5, 0.7]], **WALK),
        "any chain of 2 states (rest, walk) with transition probabilities between given bounds "
        "(at most 0.2 apart), which may change over time, and any start",
    ),
    (
        qw.Clusters(["a", "a", "b"]),
        "3 rows in 2 clusters of at most 2, each independent of the others",
    ),
    (
        qw.Network(
            nx.DiGraph([("rain", "wet")]),
            {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.2, 0.8]]},
        ),
        "a Bayesian network of 2 nodes (rain, wet), treewidth 1",
    ),
    (
        qw.GaussianSeries(ar=[0.8], within=20),
        "a Gaussian autoregression with coefficient 0.8, in which true differences of up to 20 "
        "are hidden",
    ),
    (
        qw.GaussianSeries(autocorrelation=[0.4, 0.1]),
        "a Gaussian series with autocorrelations 0.4, 0.1 and then 0",
    ),
    (
        qw.GaussianSeries(bounds=(0.1, 0.5)),
        "any Gaussian autoregression with one coefficient from 0.1 to 0.5",
    ),
    (
        qw.GaussianRows([[1, 0.5], [0.5, 1]]),
        "2 Gaussian rows with correlations of at most 0.5",
    ),
    (
        qw.GaussianRows(bounds=0.274, rows=3, families=300),
        "900 Gaussian rows in 300 independent families with any correlations up to 0.274",
    ),
]


@pytest.mark.parametrize(("belief", "words"), SUMMARIES, ids=lambda value: type(value).__name__)
def test_a_belief_in_words(belief, words):
    assert belief.summary() == words
    assert type(belief).__name__ not in words
    assert "'" not in words
    assert "=" not in words


def test_every_class_of_beliefs_has_a_summary():
    classes = {
        value
        for name in beliefs.__all__
        if inspect.isclass(value := getattr(beliefs, name)) and issubclass(value, Belief)
    }
    abstract = {cls for cls in classes if any(issubclass(c, cls) and c != cls for c in classes)}
    assert {type(belief) for belief, _ in SUMMARIES} == classes - abstract
