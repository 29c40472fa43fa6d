"""One contract for all results: sentences, document, frame, notebook, figure."""

from __future__ import annotations

import ast
import dataclasses
import html
import importlib
import inspect
import json
import pkgutil
import re
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.audit.exact_leakage import worst_case
from quiltwork.counts.consumers.gains import consumer_gain
from quiltwork.holdout import Certificate, OneBit
from quiltwork.holdout.board import SubmissionVerdict, promise_of, status_of
from quiltwork.holdout.dobrushin import interdependence
from quiltwork.holdout.final_ranking import rank_teams
from quiltwork.holdout.guarantee import guarantee
from quiltwork.holdout.metrics import parse_metric
from quiltwork.influence.diagnostics import check_belief
from quiltwork.queries.lipschitz import Violation
from quiltwork.results import Charted, ChartedResult, Interval, ResultBase, plain
from quiltwork.series.reading.series_check import check_series
from quiltwork.tables.file_check import check_files
from quiltwork.tables.providers.joint_verification import JointVerdict

ROOT = Path(__file__).resolve().parent.parent
CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
OTHER = qw.MarkovChain([[0.8, 0.2], [0.4, 0.6]], initial=[0.8, 0.2])
COUNT = qw.queries.count(1)
ROWS = np.random.default_rng(0).integers(0, 2, 200)


def ladder(kind=qw.Ladder):
    board = kind(ROWS, submissions=10, steps=10)
    board.submit("<ada>", lambda rows: rows == 1)
    return board


def accountant():
    account = qw.Accountant(CHAIN, 20, budget=2)
    account.spend(dp_epsilon=0.1)
    return account


def look():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patients.csv"
        path.write_text("age\n30\n40\n50\n60\nforty\n")
        return check_files([str(path)])


def gaussian_account():
    account = qw.Accountant(CHAIN, 20, budget=2, delta=1e-6)
    account.spend(rho=0.001)
    return account


def answer():
    holdout = qw.ReusableHoldout(
        ROWS[:100] * 1.0, ROWS[100:] * 1.0, threshold=0.5, noise=0.01, budget=1
    )
    return holdout.ask(lambda rows: rows)


def table():
    import pandas

    frame = pandas.DataFrame(
        {
            "hospital": list("aabbccdd"),
            "age": [20, 21, 22, 23, 40, 41, 42, 43],
            "ill": ["flu", "cold"] * 4,
        }
    )
    return qw.Table(frame, "hospital", ["age"], "ill")


def ledger():
    opened = qw.Ledger.open(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
    opened.create("steps", CHAIN, 20, 2)
    return opened


def debit():
    opened = ledger()
    qw.release([0, 1] * 10, COUNT, CHAIN, epsilon=1, ledger=opened, dataset="steps")
    return opened.history("steps")[0]


def quote():
    return ledger().preview("steps", qw.release([0, 1] * 10, COUNT, CHAIN, epsilon=1))


def consumer():
    return qw.Consumer([0.25, 0.25, 0.5], "absolute")


def chain_mechanism():
    return qw.optimal_for_chain(CHAIN, 2, 1, consumer(), COUNT)


def series_check():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "meter.csv"
        path.write_text("time,kw\n0,low\n60,high\n60,low\n")
        return check_series(str(path), "kw", time="time")


def published():
    return qw.anonymize(table(), qw.KAnonymity(2), m=1)


MAKERS = {
    "Answer": answer,
    "Assessment": lambda: qw.tables.risk.assess(table()),
    "BoardStatus": lambda: status_of(ladder().transcript),
    "BoardPromise": lambda: promise_of(ladder().transcript),
    "FinalRanking": lambda: rank_teams(
        parse_metric("accuracy"), None, {"<ada>": (1, ROWS), "bob": (2, 1 - ROWS)}, 0.95
    ),
    "BeliefCheck": lambda: check_belief(CHAIN, [CHAIN.sample(200, seed=1)]),
    "Calibration": lambda: qw.calibrate(CHAIN, 20, 1),
    "ChainMechanism": chain_mechanism,
    "CountTable": lambda: qw.counts.release_table({"<ada>": 5, "bob": 7}, epsilon=1),
    "Debit": debit,
    "GaussianCalibration": lambda: qw.calibrate(CHAIN, 20, 1, noise="gaussian", delta=1e-6),
    "Gain": lambda: consumer_gain(qw.GeometricMechanism(2, alpha=0.5), consumer()),
    "Explanation": lambda: accountant().explain(),
    "DowncodingResult": lambda: qw.tables.risk.downcoding(published()),
    "Guarantee": lambda: guarantee(None, 10**6, 0.01, 0.0005, 5, 100),
    "HoldoutPlan": lambda: qw.plan_holdout(queries=100, overfits=5, tolerance=0.1),
    "InfluenceCurve": lambda: qw.influence_curve(CHAIN, 20),
    "Interdependence": lambda: interdependence(CHAIN, 20),
    "Intersection": lambda: qw.tables.risk.intersection(table(), table()),
    "Ladder": ladder,
    "OneBit": lambda: ladder(OneBit),
    "ColumnCheck": lambda: look().columns[0],
    "FileCheck": look,
    "StrayCell": lambda: look().columns[0].strays[0],
    "Certificate": lambda: Certificate(
        *("race", "2026-01-01", "<ada> leads.", "Within 0.1."), *("0" * 64, "0" * 64, "0" * 128)
    ),
    "LearnerScore": lambda: qw.tables.risk.definetti(published())[0],
    "Leakage": lambda: worst_case(CHAIN, 4, [(COUNT, 2)]),
    "LeakageProfile": lambda: accountant().profile(),
    "LevelledCount": lambda: qw.counts.release_levels(5, 9, [0.5, 0.8]),
    "ForProviders": lambda: published().for_providers,
    "JointVerdict": lambda: JointVerdict(False, 2, (("20..30",),), "2-anonymity", 1),
    "LocalPublication": published,
    "Misspecification": lambda: qw.audit.misspecification(qw.calibrate(CHAIN, 20, 1), OTHER),
    "Monitor": lambda: qw.monitor(CHAIN, 0.1, length=20),
    "GaussianMonitor": lambda: qw.monitor(CHAIN, rho=0.01, length=20, delta=1e-6),
    "Odds": lambda: qw.audit.odds(CHAIN, 4, [(COUNT, 2)], [3]),
    "OptimalCalibration": lambda: qw.calibrate(CHAIN, 8, 1, "optimal-scale", COUNT),
    "OptimalMechanism": lambda: qw.optimal_mechanism(consumer(), 2, 0.5),
    "OwnView": lambda: qw.tables.own_view(table(), table()),
    "Preview": lambda: qw.preview(COUNT, CHAIN, length=20, epsilon=1),
    "PublishedVerdict": lambda: qw.tables.verify_published(
        qw.Table(published().frame, None, ["age"], "ill"), table(), qw.KAnonymity(2), m=1
    ),
    "Quote": quote,
    "SeriesCheck": series_check,
    "Release": lambda: qw.release([0, 1] * 10, qw.queries.histogram(), CHAIN, epsilon=1),
    "ReleasePlan": lambda: qw.plan(CHAIN, length=20, budget=1, queries=[COUNT] * 2),
    "Remap": lambda: qw.GeometricMechanism(2, alpha=0.5).remap(consumer()),
    "Report": lambda: qw.audit.report(CHAIN, 4, [(COUNT, 2)], claimed=1),
    "SquaresUsed": lambda: gaussian_account().profile(),
    "SubmissionVerdict": lambda: SubmissionVerdict(
        3, "<ada>", "accuracy", True, 0.75, 2, "announced"
    ),
    "Status": lambda: ledger().status("steps"),
    "Violation": lambda: Violation((0, 0), (0, 1), 2, Fraction(3), Fraction(1)),
    "SubtractionResult": lambda: qw.tables.risk.subtraction(table()),
    "TableAttack": lambda: qw.tables.risk.assess(table()).attacks[0],
    "TableReport": lambda: published().report(),
    "TableComparison": lambda: qw.tables.compare(table(), {"k=2": published()}, queries=9),
    "Verdict": lambda: qw.verify_m_privacy(table(), qw.KAnonymity(1), m=1),
}


@pytest.fixture(scope="module", params=sorted(MAKERS))
def result(request):
    made = MAKERS[request.param]()
    assert type(made).__name__ == request.param
    return made


def test_it_explains_itself(result):
    assert isinstance(result, ResultBase)
    text = result.explain()
    assert isinstance(text, str)
    assert text.strip() == text
    assert text


def test_its_document_names_a_schema_and_is_stable(result):
    document = json.loads(result.to_json())
    assert document["schema"].startswith("quiltwork/")
    assert document["version"] >= 1
    assert result.to_json() == result.to_json()
    if document["schema"] == "quiltwork/result":
        assert document["kind"] == type(result).__name__


def test_its_frame_has_a_row_for_each_record(result):
    frame = result.to_frame()
    assert len(frame) == len(result.records())
    assert len(frame.columns) == len(set(frame.columns))
    assert len(frame.columns) > 0


def test_a_notebook_shows_the_explanation_and_no_markup_of_the_data(result):
    shown = result._repr_html_()
    if type(result).__name__ != "TableReport":  # which shows its page
        assert type(result).__name__ in shown
        assert html.escape(result.explain()) in shown
    assert "<ada>" not in shown


def test_what_draws_takes_axes_and_describes_its_chart_once(result):
    assert hasattr(result, "plot") == hasattr(result, "chart") == isinstance(result, ChartedResult)
    if isinstance(result, ChartedResult):
        assert type(result).plot is Charted.plot
        assert all(
            one.default is not one.empty
            for one in inspect.signature(result.chart).parameters.values()
        )
        chart = result.chart()
        assert chart.title
        assert chart.description
        assert ("<svg" in result._repr_html_()) == result.drawn_at_once


def test_it_is_frozen_and_read_back_as_it_was(result):
    kind = type(result)
    assert kind.__name__ in ("Ladder", "OneBit") or kind.__dataclass_params__.frozen
    if hasattr(kind, "from_json"):
        assert kind.from_json(result.to_json()) == result


def test_intervals_are_pairs_of_one_kind():
    mechanism = qw.GeometricMechanism(9, alpha=0.5)
    counts = MAKERS["CountTable"]()
    found = [
        MAKERS["Release"]().interval(confidence=0.9),
        mechanism.interval(4, confidence=0.9),
        MAKERS["Remap"]().interval(1, confidence=0.9),
        counts.interval("bob", confidence=0.9),
        counts.sum_interval(confidence=0.9),
    ]
    for ends in found:
        assert type(ends) is Interval
        assert np.all(np.asarray(ends.low) <= np.asarray(ends.high))


OTHERS = {
    "ReusableHoldout",  # a session, whose guarantee is a result
    "Accountant",  # its explanation is a result of its own
    "GaussianAccountant",  # as is that
    "LedgerAccountant",
    "MaxM",  # a whole number
}


def test_every_class_that_explains_itself_is_a_result():
    source = ROOT / "src"
    for path in sorted((source / "quiltwork").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search("def (explain|to_frame|_repr_html_)", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name not in OTHERS:
                names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                if names & {"explain", "to_frame", "_repr_html_"}:
                    module = ".".join(path.relative_to(source).with_suffix("").parts)
                    found = getattr(importlib.import_module(module), node.name)
                    assert issubclass(found, ResultBase), f"{node.name}: see reference/results.md"


def test_every_interval_is_of_one_kind_and_every_plot_inherited():
    for path in sorted((ROOT / "src" / "quiltwork").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for one in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(one, ast.FunctionDef):
                    where = f"{path.name}: {node.name}.{one.name}"
                    if one.name.split("_")[-1] == "interval" and not one.name.startswith("_"):
                        assert ast.unparse(one.returns) == "Interval", where
                    assert one.name != "plot" or node.name == "Charted", where


ELSEWHERE = {
    *("Cell", "DoubledTime", "Hole", "SubjectSummary"),  # parts of SeriesCheck
    "ChartedResult",  # what results with a chart are made from
    "ExactMechanism",  # what OptimalMechanism and ChainMechanism are made from
    "GroupView",  # a part of OwnView
    "Note",  # a line of a ledger's log, whose `kind` is its own
    "Publication",  # what both publications are made from
    "PublishedRecords",  # and this, what the one of this machine says of its records
    "ReleasedAnswer",  # what a Release is made from
    "SparkPublication",  # tests/tables/spark
}


def test_every_result_is_held_to_the_contract():
    modules = pkgutil.walk_packages(qw.__path__, "quiltwork.")
    for module in modules:
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    known = {one.__name__ for one in subclasses(ResultBase) if one.__module__.startswith("quilt")}
    assert known - ELSEWHERE == set(MAKERS)


def subclasses(of: type) -> Iterator[type]:
    for one in of.__subclasses__():
        yield one
        yield from subclasses(one)


def test_fractions_stay_exact_and_infinite_numbers_are_null():
    @dataclasses.dataclass(frozen=True)
    class Found(ResultBase):
        scale: Fraction
        levels: tuple[float, ...]
        hidden: int = dataclasses.field(default=1, repr=False)

    found = Found(Fraction(1, 3), (1.0, float("inf")))
    assert found.body() == {"scale": "1/3", "levels": [1.0, None]}
    assert json.loads(found.to_json())["scale"] == "1/3"
    assert plain(np.arange(2)) == [0, 1]
    assert Interval(1, 2) == (1, 2)
