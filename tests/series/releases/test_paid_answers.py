"""A ledger is debited before the data are used, and a repeated key returns the stored answer."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from quiltwork import BudgetExceeded, InvalidInputError, MarkovChain, queries
from quiltwork.series import read_series

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
DATA = [0, 1, 1, 0]


class Watched(qw.Ledger):
    """A ledger that notes what it is asked for."""

    def __init__(self, store):
        super().__init__(store)
        self.events, self.requests = [], []

    def check(self, dataset, spending):
        self.events.append("check")
        super().check(dataset, spending)

    def debit(self, dataset, spending, key=None, analyst=None, mark=None, certificate=None):
        receipt = super().debit(dataset, spending, key, analyst, mark, certificate)
        self.events.append("debit")
        self.requests.append(spending)
        return receipt

    def complete(self, receipt, answer):
        super().complete(receipt, answer)
        self.events.append("complete")


TURNS = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    ledger = Watched.open(f"sqlite:///{tmp_path_factory.mktemp('paid')}/budget.db")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a budget that nobody would mean
        ledger.create("d", CHAIN, 4, 10**6)
    ledger.create("poor", CHAIN, 4, 0.01)
    ledger.create("turns", TURNS, 4, 1)
    return ledger


@pytest.fixture
def ledger(opened):
    opened.events.clear()
    opened.requests.clear()
    return opened


@pytest.fixture(scope="module")
def rows(opened):
    """Creates a dataset of so many rows, when it is first asked for, and names it."""
    known = set()

    def named(count):
        name = f"{count} rows"
        if name not in known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a budget that nobody would mean
                opened.create(name, qw.Clusters(range(count)), None, 10**6)
            known.add(name)
        return name

    return named


def watched(ledger):
    return queries.custom(lambda x: ledger.events.append("evaluate") or 0, lipschitz=1, name="w")


def test_debit_comes_before_the_data_and_the_answer_is_stored_before_it_is_shown(ledger):
    qw.release(DATA, watched(ledger), CHAIN, ledger=ledger, dataset="d")
    assert ledger.events == ["evaluate", "check", "debit", "evaluate", "complete"]  # rehearsed


def test_the_debit_says_what_an_accountant_needs_and_nothing_else(ledger):
    answer = qw.release(DATA, queries.transitions().on(1, 3), CHAIN, ledger=ledger, dataset="d")
    (request,) = ledger.requests
    assert request.spending == answer.spending
    debit = ledger.history("d")[-1]
    assert debit.spending == answer.spending
    assert "value" not in debit.request
    assert "noisy" not in debit.request
    assert debit.request["noise_scale"] == str(answer.noise_scale)
    assert debit.request["dp_epsilon"] == str(answer.exact_dp_epsilon)
    assert debit.request["query"] == {"kind": "transitions", "window": [1, 3]}
    assert debit.request["belief_digest"] == answer.belief_digest


def test_a_refused_debit_releases_nothing(ledger):
    with pytest.raises(BudgetExceeded):
        qw.release(DATA, watched(ledger), CHAIN, ledger=ledger, dataset="poor")
    assert ledger.events == ["evaluate", "check"]  # the rehearsal, on public input


@pytest.mark.parametrize(
    "fail",
    [
        lambda x: 1 / (x.sum() == 0),
        lambda x: sys.exit() if x.sum() else 0,
        lambda x: {0: 0}[x.sum()],
        lambda x: float("nan") if x.sum() else 0,
    ],
)
def test_where_a_ledger_pays_a_function_that_fails_on_the_data_answers_0(ledger, fail):
    """Neither an error nor a warning: either would tell what was not paid for."""
    query = queries.custom(fail, lipschitz=1, name="fragile")
    answer = qw.release(DATA, query, CHAIN, epsilon=99, ledger=ledger, dataset="d")
    assert abs(answer.value) < 1
    assert ledger.events == ["check", "debit", "complete"]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, 1e308), "beyond"),
        ((-1e307, 1e307), "beyond"),
        ((0, 10**400), "beyond"),
        ((-(10**400), 0), "beyond"),
        ((0, 1e-320), "apart"),
    ],
)
@pytest.mark.parametrize("query", [queries.sum, queries.mean])
def test_bounds_that_floats_cannot_follow_are_no_bounds(query, bounds, words):
    with pytest.raises(InvalidInputError, match=words):
        query(*bounds, clip=True)


def test_an_answer_that_may_not_fit_a_float_is_refused_before_the_debit(ledger):
    steep = queries.custom(lambda x: 1e300, lipschitz=1e299)
    with pytest.raises(InvalidInputError, match="too large for a float"):
        qw.release(DATA, steep, CHAIN, epsilon=1e-6, ledger=ledger, dataset="d")
    assert ledger.events == []


@pytest.mark.parametrize("unit", [1e150, 1e-150])
@pytest.mark.parametrize("query", [queries.sum, queries.mean])
def test_extreme_bounds_are_answered(query, unit):
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0.0, unit])
    for _ in range(5):
        answer = qw.release([0.0, unit] * 50, query(0, unit, clip=True), chain, epsilon=0.01)
        assert abs(answer.value) < 1e5 * unit
        low, high = answer.interval(0.999999)
        assert low < answer.value < high
        assert answer.scale > unit


@pytest.mark.parametrize(("ledger", "words"), [("sqlite:///a.db", "a URL"), (7, "a int")])
def test_what_is_no_ledger_is_refused_with_the_way_to_open_one(ledger, words):
    with pytest.raises(InvalidInputError, match=rf"not {words}; write ledger=qw.Ledger.open"):
        qw.release(DATA, queries.histogram(), CHAIN, ledger=ledger, dataset="d")


@pytest.mark.parametrize("epsilon", [1e-320, 1e-100, 10**400])
def test_a_level_that_no_noise_can_follow_is_refused_before_the_debit(ledger, epsilon):
    for query in (queries.count(1), queries.mean(0, 1), queries.most_common()):
        with pytest.raises(InvalidInputError):
            qw.release(DATA, query, CHAIN, epsilon=epsilon, ledger=ledger, dataset="d")
    assert ledger.events == []


def test_data_that_contradict_beliefs_without_noise_are_refused():
    turns = MarkovChain([[0, 1], [1, 0]], initial=[1, 0])
    others = MarkovChain([[0, 1], [1, 0]], initial=[0, 1])
    with pytest.raises(InvalidInputError, match="contradict every belief") as refused:
        qw.release([0, 0, 1, 1], queries.histogram(), turns)
    with pytest.raises(InvalidInputError, match="contradict every belief") as another:
        qw.release([[0, 1], [1, 0]], queries.count(1), [turns, others])
    assert str(refused.value) == str(another.value)
    exact = qw.release([1, 0, 1, 0], queries.histogram(), [turns, others])
    assert exact.value.tolist() == [2, 2]
    assert exact.scale == 0


@pytest.mark.parametrize("data", [[0, 1, 0, 1], [0, 0, 1, 1]])
def test_with_a_ledger_no_noise_is_refused_before_the_debit_whatever_the_data(ledger, data):
    with pytest.raises(qw.UnsupportedError, match="adds no noise"):
        qw.release(data, queries.histogram(), TURNS, ledger=ledger, dataset="turns")
    assert ledger.events == []


def test_data_that_contradict_a_belief_with_noise_are_released_with_it():
    """Noise protects whatever is there, and a refusal would tell more than the answer."""
    never = MarkovChain([[0.5, 0.5, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]], initial=[0.5, 0.5, 0])
    assert qw.release([0, 2, 2, 1], queries.count(1), never).scale > 0


class Wild:
    """What fails however it is looked at."""

    def __hash__(self):
        raise RuntimeError("private")

    def __eq__(self, other):
        raise RuntimeError("private")


NO_NUMBERS = [
    None,
    float("nan"),
    "x",
    "\ud800",
    (1, 2),
    object(),
    {"a": 1},
    b"a",
    1j,
    Wild(),
    pd.NaT,
]
ASKED = [
    (queries.sum(-2, 3), lambda row: min(max(row, -2), 3), -2),
    (queries.mean(-2, 3), lambda row: min(max(row, -2), 3) / 5, -2 / 5),
    (queries.count(2), lambda row: int(row == 2), 0),
    (queries.histogram(states=[2]), lambda row: int(row == 2), 0),
    (queries.frequencies(states=[2]), lambda row: int(row == 2) / 5, 0),
    (queries.custom(lambda x: sum(isinstance(v, int) for v in x.tolist()), lipschitz=1), bool, 0),
]


@pytest.mark.parametrize(("query", "value", "otherwise"), ASKED)
@pytest.mark.parametrize("cell", NO_NUMBERS, ids=range(len(NO_NUMBERS)))
@pytest.mark.parametrize("kind", [list, pd.Series])
def test_where_a_ledger_pays_no_row_of_clusters_is_refused(
    ledger, rows, kind, cell, query, value, otherwise
):
    """One without a value counts as the lower bound, or in no cell, and the others as ever."""
    data = np.empty(5, dtype=object)
    data[:] = [2, 7, 2, 1, cell]
    truth = sum(map(value, [2, 7, 2, 1])) + otherwise
    answer = qw.release(
        kind(data), query, qw.Clusters(range(5)), epsilon=99, ledger=ledger, dataset=rows(5)
    )
    assert ledger.events == ["check", "debit", "complete"]
    low, high = answer.interval(1 - 1e-9)
    assert (np.asarray(low) <= truth + 1e-9).all()
    assert (truth - 1e-9 <= np.asarray(high)).all()
    assert (np.asarray(high) - low < 2.5).all()


@pytest.mark.parametrize("cell", ["x", "07", "1e5", "1.5", "-", "2.50"])
def test_one_row_of_a_file_does_not_change_how_others_are_read(ledger, rows, tmp_path, cell):
    """Numbers that became text because of one row would move a count by all of them."""
    path = tmp_path / "rows.csv"
    path.write_text("value\n" + "2\n" * 40 + f"{cell}\n")
    people = qw.Clusters(range(41))
    for data in (path, read_series(path, "value", beliefs=people).data):
        assert qw.release(data, queries.count(2), people, epsilon=99).value == 40
    paid = {"ledger": ledger, "dataset": rows(41)}
    total = qw.release(path, queries.sum(0, 3), people, epsilon=99, **paid)
    assert abs(total.value - 80) < 4


READ = {
    "path": lambda path, **how: path,
    "series": lambda path, **how: read_series(path, "v", beliefs=qw.Clusters(range(5)), **how).data,
    "frame": lambda path, **how: (
        read_series(
            pd.DataFrame({"v": [2, 7, 2, 1, [3]]}), "v", beliefs=qw.Clusters(range(5)), **how
        ).data
    ),
    "state": lambda path, **how: READ["series"](path, missing="state", **how),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("cell", ["", "NA", "missing", "x", "inf"])
@pytest.mark.parametrize(("query", "value", "otherwise"), ASKED[:4])
def test_nor_is_a_row_of_a_file(ledger, rows, tmp_path, read, cell, query, value, otherwise):
    path = tmp_path / "rows.csv"
    path.write_text(f"v\n2\n7\n2\n1\n{cell}\n")
    truth = sum(map(value, [2, 7, 2, 1])) + otherwise
    people = qw.Clusters(range(5))
    answer = qw.release(read(path), query, people, epsilon=99, ledger=ledger, dataset=rows(5))
    assert ledger.events == ["check", "debit", "complete"]
    assert np.abs(np.asarray(answer.value) - truth).max() < 1
    if isinstance(query, type(ASKED[0][0])):
        with pytest.raises(InvalidInputError, match=r"(Row|Position) 5"):
            qw.release(read(path), query, people)


@pytest.mark.parametrize("cell", ["", "x", "1e999", "nan"])
def test_nor_is_one_between_edges(ledger, rows, tmp_path, cell):
    """It is in no bin, and may not be refused by how it is binned."""
    path = tmp_path / "rows.csv"
    path.write_text(f"v\n2\n7\n2\n1\n{cell}\n")
    query = queries.histogram(states=["<3", ">=3"])
    paid = {"ledger": ledger, "dataset": rows(5)}
    answer = qw.release(
        READ["series"](path, edges=[3]), query, qw.Clusters(range(5)), epsilon=99, **paid
    )
    assert answer.value.tolist() == [3, 1]


@pytest.mark.parametrize("whole", [True, False])
def test_rows_of_clusters_have_no_public_gaps_whatever_they_hold(tmp_path, whole):
    path = tmp_path / "rows.csv"
    path.write_text("v\n2\n7\n2\n1\n" + ("5\n" if whole else "\n"))
    with pytest.raises(InvalidInputError, match="not about a series of states"):
        READ["series"](path, missing="public")


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("cell", [[3], [], np.array([3]), pd.Series([3])], ids=str)
@pytest.mark.parametrize("count", [1, 5])
def test_rows_that_are_collections_are_rows(ledger, rows, kind, cell, count):
    """Be it one of them or all."""
    people = qw.Clusters(range(5))
    data, query = kind([2] * (5 - count) + [cell] * count), queries.sum(0, 3)
    answer = qw.release(data, query, people, epsilon=99, ledger=ledger, dataset=rows(5))
    assert ledger.events == ["check", "debit", "complete"]
    assert abs(answer.value - 2 * (5 - count)) < 1
    with pytest.raises(InvalidInputError, match="cannot be a label"):
        qw.release(data, query, people)


@pytest.fixture
def shared(tmp_path):
    """A ledger in which ben may use less than any release here takes."""
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", qw.Clusters(range(4)), None, 5)
    ledger.allot("d", "ben", cap=0.1)
    ledger.allot("d", "ana")
    return ledger


PEOPLE = qw.Clusters(range(4))
PAID = {
    "release": lambda **pay: qw.release([1, 0, 1, 1], queries.sum(0, 1), PEOPLE, **pay),
    "geometric": lambda **pay: qw.GeometricMechanism(4, epsilon=1).release(2, **pay),
    "table": lambda **pay: qw.counts.release_table({"a": 1, "b": 3}, epsilon=1, **pay),
    "levels": lambda **pay: qw.counts.release_levels(2, 4, epsilons=[1], **pay),
    "optimal": lambda **pay: OPTIMAL.release(2, **pay),
}
OPTIMAL = qw.optimal_mechanism(qw.Consumer("uniform"), 4, 0.5)


@pytest.mark.parametrize("ask", PAID.values(), ids=PAID)
def test_the_share_of_an_analyst_is_debited(ask, shared):
    with pytest.raises(BudgetExceeded, match="cap"):
        ask(ledger=shared, dataset="d", analyst="ben")
    ask(ledger=shared, dataset="d", analyst="ana")
    assert [debit.analyst for debit in shared.history("d")] == ["ana"]
    with pytest.raises(InvalidInputError, match="belong to a ledger"):
        ask(analyst="ana")


def test_where_a_ledger_pays_no_count_is_refused_for_its_size(shared):
    """An error would tell about the count for free; without one it is refused, never shown."""
    assert 0 <= OPTIMAL.release(987, ledger=shared, dataset="d", analyst="ana") <= 4
    with pytest.raises(InvalidInputError) as refused:
        OPTIMAL.release(987)
    assert "987" not in str(refused.value)


def test_a_key_is_no_key_to_another_version_of_the_function(shared):
    def ask(version):
        query = queries.custom(lambda x: (x == 1).sum(), lipschitz=3, name="s", version=version)
        data = [1, 0, 1, 1]
        paid = {"ledger": shared, "dataset": "d", "key": "k", "analyst": "ana"}
        return qw.release(data, query, PEOPLE, **paid).value

    assert ask("1") == ask("1")
    with pytest.raises(InvalidInputError, match="another request"):
        ask("2")
