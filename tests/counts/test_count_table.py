from __future__ import annotations

import math
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.budget import Ledger
from quiltwork.counts import CountTable, release_table
from quiltwork.errors import BudgetExceeded, InvalidInputError, NotPrivateError

COUNTS = {("f", "young"): 40, ("f", "old"): 25, ("m", "young"): 30, ("m", "old"): 5}


def test_a_public_total_is_kept_and_nothing_is_negative():
    for _ in range(50):
        table = release_table(COUNTS, epsilon=0.2, total=100, dimensions=("sex", "age"))
        assert sum(table.values) == 100
        assert min(table.values) >= 0
        assert sum(table.margin("sex").values()) == 100
        assert table.margin("age")["old"] == table["f", "old"] + table["m", "old"]


def test_without_a_public_total_cells_are_only_clipped():
    table = release_table(COUNTS, epsilon=0.5, adjacency="add-remove")
    assert table.values == tuple(max(0, value) for value in table.noisy)


def test_intervals_hold_the_truth_at_least_as_often_as_they_say():
    trials, hits, all_hits = 400, 0, 0
    for _ in range(trials):
        table = release_table(COUNTS, epsilon=1, total=100)
        each = table.intervals(0.8)
        together = table.intervals(0.8, simultaneous=True)
        hits += each["f", "old"][0] <= 25 <= each["f", "old"][1]
        all_hits += all(low <= COUNTS[c] <= high for c, (low, high) in together.items())
    assert hits > 0.8 * trials - 4 * math.sqrt(trials * 0.16)
    assert all_hits > 0.8 * trials - 4 * math.sqrt(trials * 0.16)
    assert table.interval(("f", "old"), 0.8) == each["f", "old"]


def test_sums_of_cells_have_intervals():
    table = release_table(COUNTS, epsilon=2, total=100, dimensions=("sex", "age"))
    low, high = table.sum_interval([("f", "young"), ("f", "old")])
    assert 0 <= low <= high <= 100


def test_a_table_survives_its_file():
    table = release_table(COUNTS, epsilon=1, total=100, dimensions=("sex", "age"))
    assert CountTable.from_json(table.to_json()) == table
    assert "replacing one person" in table.explain()


def test_sums_that_repeat_a_cell_are_refused():
    """Its noise counts twice, so the interval of independent noises would be too narrow."""
    table = release_table({"a": 1, "b": 2}, epsilon=1)
    for cells in ([], ["a", "a"], ["a", "b", "a"]):
        with pytest.raises(InvalidInputError, match="each given once"):
            table.sum_interval(cells)


@pytest.mark.parametrize(
    ("counts", "arguments", "words"),
    [
        (
            {"a": 5},
            {},
            "epsilon = 1 for replacing one person's row (the count moves by 1). Each row is "
            "assumed to be a different person: not checked.",
        ),
        (
            {"a": 5},
            {"adjacency": "add-remove", "at_most": 1},
            "epsilon = 1 for adding or removing one person's row (the count moves by 1). Each "
            "person has at most one row: declared, not checked.",
        ),
        (
            {"a": 5, "b": 3},
            {"adjacency": "add-remove"},
            "epsilon = 1 for adding or removing one person's row (one cell moves by 1). Each row "
            "is assumed to be a different person: not checked.",
        ),
        (
            {"a": 5, "b": 3},
            {"epsilon": None, "alpha": Fraction(1, 2)},
            "epsilon = 1.38629 for replacing one person's row (two cells move by 1). Each row is "
            "assumed to be a different person: not checked.",
        ),
        (
            {"a": 2, "b": 1},
            {"beliefs": qw.Clusters([1, 1, 2]), "total": 3},
            "epsilon = 1 for each person under the beliefs given; for replacing one person's row "
            "alone it is 0.5 (two cells move by 1). Each row is assumed to be a different person: "
            "not checked. The total 3 is public.",
        ),
    ],
)
def test_a_table_says_what_it_protects(counts, arguments, words):
    assert release_table(counts, **({"epsilon": 1} | arguments)).explain() == words


def test_households_share_one_level():
    labels = ["a", "a", "a", "b", "c"]
    table = release_table({"yes": 2, "no": 3}, epsilon=1, total=5, beliefs=qw.Clusters(labels))
    assert table.epsilon == 1
    assert table.dp_epsilon <= Fraction(1, 3)
    assert -math.log(table.alphas[0]) == pytest.approx(1 / 6, rel=1e-9)
    alone = release_table({"yes": 2}, epsilon=1, beliefs=qw.Clusters(labels))
    assert -math.log(alone.alphas[0]) == pytest.approx(1 / 3, rel=1e-9)
    assert alone.total is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"counts": {}}, "no cells"),
        ({"counts": [1, 2]}, "mapping"),
        ({"alpha": 1, "epsilon": None}, "alpha < 1"),
        ({"beliefs": qw.Clusters([1, 1, 2]), "total": 4}, "about 3 people, but n is 4"),
        ({"counts": {"a": -1}}, "at least 0"),
        ({"counts": {"a": 1.5}}, "integer"),
        ({"epsilon": None}, "once"),
        ({"alpha": 0.5}, "once"),
        ({"epsilon": {"a": 1, "b": 1}}, "must be a number"),
        ({"adjacency": "swap"}, "adjacency"),
        ({"total": -1}, "at least 0"),
        ({"where": "x=1"}, "where must be a list"),
        ({"total": 3, "adjacency": "add-remove"}, "protected"),
        ({"beliefs": qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])}, "total"),
        ({"beliefs": qw.Clusters([1, 1, 2]), "adjacency": "add-remove"}, "use adjacency replace"),
        ({"beliefs": qw.Clusters([1, 1, 2]), "epsilon": None, "alpha": 0.5}, "whole table"),
        ({"dataset": "d"}, "ledger"),
    ],
)
def test_what_makes_no_sense_is_refused_before_drawing(arguments, words):
    given_ = {"counts": {"a": 1, "b": 2}, "epsilon": 1} | arguments
    with pytest.raises(InvalidInputError, match=words):
        release_table(**given_)


def test_a_table_is_paid_once_and_its_key_repeats_it(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 1)
    arguments = {"epsilon": 0.5, "total": 100, "ledger": ledger, "dataset": "d"}
    table = release_table(COUNTS, **arguments, key="k")
    assert release_table(COUNTS, **arguments, key="k") == table
    assert ledger.accountant("d").epsilon() == 0.5
    with pytest.raises(InvalidInputError, match="another request"):
        release_table({"yes": 60, "no": 40}, **arguments, key="k")
    release_table(COUNTS, **arguments)
    with pytest.raises(BudgetExceeded):
        release_table(COUNTS, **arguments)


def test_add_remove_tables_are_paid_for_replaced_rows(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 1)
    release_table(COUNTS, epsilon=0.5, adjacency="add-remove", ledger=ledger, dataset="d")
    assert ledger.accountant("d").epsilon() == 1.0


def test_alpha_zero_is_refused():
    with pytest.raises(NotPrivateError, match="publish"):
        release_table({"a": 1, "b": 2}, alpha=0)


def test_unknown_cells_and_columns_are_named():
    table = release_table({"a": 1, "b": 2}, epsilon=1)
    with pytest.raises(InvalidInputError, match="'c'"):
        table["c"]
    with pytest.raises(InvalidInputError, match="'sex'; it has none"):
        table.margin("sex")


def test_a_declared_total_is_not_compared_with_the_counts():
    for total in (0, 99, 100, 101):
        table = release_table(COUNTS, epsilon=1, total=total)
        assert sum(table.values) == table.total == total


def test_a_url_is_no_ledger_and_says_what_is():
    for mechanism in (
        lambda **pay: release_table(COUNTS, epsilon=1, **pay),
        lambda **pay: qw.GeometricMechanism(9, epsilon=1).release(3, **pay),
    ):
        with pytest.raises(InvalidInputError, match=r"not a URL; write .*Ledger\.open"):
            mechanism(ledger="sqlite:///a.db", dataset="d")


@pytest.mark.parametrize(
    ("counts", "dimensions", "words"),
    [
        (COUNTS, ("sex",), "has 2 labels and there are 1 dimensions"),
        ({"f": 1, "m": 2}, ("sex", "age"), "has 1 labels and there are 2 dimensions"),
        (COUNTS, "sex", "dimensions must be a list"),
        (COUNTS, ("sex", "sex"), "each column once"),
        ({date(2026, 5, 1): 3}, (), "cannot be written"),
        ({("f", math.nan): 3}, (), "cannot be written"),
        ({"f": 1}, [object()], "Each of dimensions must be text"),
        ({"f": 10**400}, (), "300 digits"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(tmp_path, counts, dimensions, words):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 1)
    with pytest.raises(InvalidInputError, match=words):
        release_table(counts, epsilon=0.5, dimensions=dimensions, ledger=ledger, dataset="d")
    assert ledger.history("d") == ()


def test_labels_from_numpy_are_kept_as_plain_numbers(tmp_path):
    counts = {(np.int64(2026), np.str_("f")): 4, (np.int64(2027), np.str_("f")): 5}
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 1)
    table = release_table(counts, epsilon=0.5, ledger=ledger, dataset="d", key="k")
    again = release_table(counts, epsilon=0.5, ledger=ledger, dataset="d", key="k")
    assert again[2026, "f"] == table[2026, "f"]
    assert CountTable.from_json(table.to_json()) == table == again


def test_a_key_belongs_to_one_total_and_one_level(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(100)), None, 10)
    paid = {"ledger": ledger, "dataset": "d", "key": "k"}
    table = release_table(COUNTS, epsilon=1, total=100, **paid)
    assert release_table(COUNTS, epsilon=1, total=100, **paid) == table
    for total in (None, 90):
        with pytest.raises(InvalidInputError, match="key"):
            release_table(COUNTS, epsilon=1, total=total, **paid)
    with pytest.raises(InvalidInputError, match="key"):
        release_table(COUNTS, epsilon=2, total=100, **paid)


def test_beliefs_are_about_no_fewer_people_than_are_counted():
    """Else the noise would be that of fewer people who could betray each other."""
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    for arguments in ({"people": 99}, {"total": 99}, {"beliefs": qw.Clusters(range(99))}):
        with pytest.raises(InvalidInputError, match="more people than the beliefs"):
            release_table(COUNTS, epsilon=1, **{"beliefs": chain, **arguments})
    with pytest.raises(InvalidInputError, match="total is 100 and people 101"):
        release_table(COUNTS, epsilon=1, beliefs=chain, total=100, people=101)
    some = release_table({"yes": 3}, epsilon=1, beliefs=chain, people=40)
    assert some.total is None
    assert float(some.dp_epsilon) == qw.influence_curve(chain, 40).dp_epsilon(1)
    for _ in range(20):  # half of the noise is far above 40
        wide = release_table({"yes": 3}, epsilon=0.001, beliefs=chain, people=40)
        assert wide["yes"] <= 40
        assert wide.interval("yes").high <= 40
        assert CountTable.from_json(wide.to_json()) == wide
