"""Arguments of another kind than meant: each of these once ended in an exception of Python's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest

import quiltwork as qw
from quiltwork import budget, counts, series
from quiltwork.arguments import choice, flag, instance, listed
from quiltwork.errors import InvalidInputError, QuiltworkError

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
USER = qw.Consumer("uniform")
G = qw.GeometricMechanism(3, alpha=0.5)
TOLD = counts.release_table({"a": 3, "b": 4}, epsilon=1)
DAY = [0, 1, 1, 0]
ANSWER = qw.release(DAY, qw.queries.histogram(), CHAIN, epsilon=1)
CUSTOM = qw.queries.custom(len, lipschitz=1)

SPENDING = qw.Spending.dp(0.1, 1, 4)
ACCOUNT = qw.Accountant(CHAIN, 4, budget=1)
CELLS = [[1], {"b": 1}, {1}, (1, [2])]


def people(cell):
    return pd.DataFrame({"a": [0, 1], "who": ["x", cell]})


CALLS = [
    lambda: G.matrix(exact=np.zeros(2)),
    lambda: G.release(1, unbounded=np.zeros(2)),
    lambda: G.remap({}),
    lambda: qw.optimal_mechanism("nan", 3, 0.5),
    lambda: counts.constraint_matrix(np.array(5), 0.5),
    lambda: counts.constraint_matrix(G.matrix(exact=True), 0.5, tolerance=2**63),
    lambda: USER.fractions([]),
    lambda: USER.probabilities(10**400),
    lambda: qw.Consumer(np.array(5)),
    lambda: counts.ChainCounts(pd.Series([1]), 0),
    lambda: counts.ChainCounts(CHAIN, 0).probabilities(0.5),
    lambda: counts.release_levels(1, 3, epsilons=pd.NA),
    lambda: counts.release_table({"a": 1}, epsilon=1, dimensions=1.5),
    lambda: counts.release_table({"a": 1}, epsilon=1, where=1),
    lambda: counts.release_table({"a": 1}, epsilon=1, adjacency=np.zeros(2)),
    lambda: TOLD.sum_interval(cells=0.5),
    lambda: TOLD.margin(np.zeros(2)),
    lambda: TOLD.intervals(simultaneous=np.zeros(2)),
    lambda: TOLD[pd.Series(["a"])],
    lambda: G.remap(USER)([[1, 2], [3]]),
    lambda: qw.queries.count(0).window((2, 1)),
    lambda: qw.queries.count(0).on(1, 10**400),
    lambda: qw.queries.frequencies(states=np.ma.masked),
    lambda: qw.queries.to_document("count"),
    lambda: qw.queries.check_lipschitz(CUSTOM, ["a", "b"], 4, seed="1"),
    lambda: qw.queries.check_lipschitz(CUSTOM, ["a", "b"], 4, trials=2**64),
    lambda: qw.queries.check_lipschitz(CUSTOM, ["a", "b"], 10**9),
    lambda: ANSWER.interval(simultaneous=np.zeros(2)),
    lambda: qw.series.normalize(pd.NaT),
    lambda: qw.series.consistent(5),
    lambda: qw.series.clip(ANSWER, low=1e308),
    lambda: qw.Release.from_json(0.5),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), "a", states=1j),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), "a", states=[[]]),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), "a", edges=5),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), "a", edges=[10**400]),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), np.zeros(2)),
    lambda: series.read_series(pd.DataFrame({"a": DAY}), "a", rule=np.zeros(2)),
    lambda: series.read_states(5),
    lambda: qw.MarkovChain([[10**400, 1], [0, 1]]),
    lambda: qw.ChainBox.from_counts([[10**400, 1], [0, 1]], [[1, 1], [1, 1]]),
    lambda: qw.Spending.of_query(qw.queries.count(0), scale=2, length=2**63),
    *(lambda cell=cell: series.read_series(pd.DataFrame({"a": [0, cell]}), "a") for cell in CELLS),
    *(lambda cell=cell: series.read_series(people(cell), "a", subject="who") for cell in CELLS),
    lambda: series.read_series(pd.DataFrame({"a": [1, 10**400]}), "a", edges=[2]),
    lambda: series.read_series(pyarrow.table({"a": [[1, 2], [3, 4]]}), "a"),
    lambda: series.read_states(pd.DataFrame({"a": [0, [1]]}), "a"),
    lambda: ACCOUNT.add_all(-1),
    lambda: ACCOUNT.largest_factor(0.5),
    lambda: ACCOUNT.smallest_scale(7),
    lambda: SPENDING.cost(np.zeros(2), 3),
    lambda: ACCOUNT.add(b""),
    lambda: qw.Spending(1, 5, composes_by=np.zeros(2)),
    lambda: qw.compose.sequential([1], mqm=np.zeros(2)),
    lambda: qw.plan(CHAIN, length=9, budget=1, queries=-1),
    lambda: qw.plan(CHAIN, length=9, budget=1, queries=[qw.queries.count(0)], spent=-0.0),
    lambda: budget.repeated("x", 1, 9),
    lambda: budget.repeated(qw.queries.count(0), 1, 10**13),
    lambda: budget.calendar(10**400, 1),
    lambda: qw.audit.leakage(CHAIN, 9, [(qw.queries.count(0), 1)], noise=np.zeros(2)),
    lambda: qw.audit.odds(CHAIN, 3, [(qw.queries.count(0), 1)], True),
    lambda: qw.bayesian_dp(CHAIN, 1, length=9, bound=np.zeros(2)),
    lambda: qw.influence_curve(CHAIN, 9, method=np.zeros(2)),
    lambda: qw.Network.from_bif("/dev/zero"),
    lambda: qw.Ladder(np.zeros(9), submissions=3, path=Path()),
    lambda: qw.calibrate(CHAIN, np.array(5), 1),
    lambda: qw.calibrate(CHAIN, Counter({5: 0.5}), 1),
]


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_what_is_of_another_kind_gets_a_sentence(call):
    with pytest.raises(QuiltworkError):
        call()


def test_a_state_beyond_all_floats_is_a_state(tmp_path):
    (tmp_path / "states.csv").write_text("state\n1\n")
    assert series.read_states(tmp_path / "states.csv", states=[1, 10**400]).tolist() == [1]


@pytest.mark.parametrize("value", [True, False, np.True_, np.bool_(False)])
def test_flags_are_pythons_and_numpys(value):
    assert flag(value, "exact") is bool(value)


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda: flag(np.array([True]), "exact"), "exact must be True or False"),
        (lambda: choice("x", ("a", "b", "c"), "rule"), "rule must be 'a', 'b' or 'c', not 'x'"),
        (lambda: instance(5, str, "A column"), "A column must be text, not 5"),
        (lambda: listed("abc", "cells"), "cells must be a list, not 'abc'"),
        (lambda: listed({"a": 1}, "cells"), "cells must be a list"),
        (lambda: listed(np.array(5), "cells"), "cells must be a list"),
    ],
)
def test_sentences_name_the_argument(read, words):
    with pytest.raises(InvalidInputError, match=words):
        read()
