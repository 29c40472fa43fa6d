"""Calls of public functions: ordinary arguments, one or two of them exchanged for hostile ones.

An argument is ordinary by its name, which means the same everywhere in the package; what a few
functions understand differently is listed under their own name.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import quiltwork as qw
from evidence.fuzzing.values import HOSTILE, Theirs
from evidence.fuzzing.workspace import CHAIN, DAY
from papers.examples.hospitals import hospitals, table_a
from quiltwork import budget, counts, series, tables
from quiltwork.budget import Checkpoint
from quiltwork.errors import QuiltworkError
from quiltwork.tables import risk

HIDDEN = {
    *("allows", "check_codes", "encode", "joint", "relevant", "take", "record", "to_body"),
    *("from_body", "processed", "by_error", "table", "exact", "bind", "fitness", "holds", "emd"),
    *("count", "index", "of"),
}
"""Methods that rooms of the package call on each other, and those of tuples."""

QUESTIONS = {"on", "window"}
"""What a user asks of a query; all else is between rooms."""

RELEASE = qw.release(DAY, qw.queries.histogram(), CHAIN, epsilon=1)
QUILTED = qw.calibrate(CHAIN, len(DAY), 1, method="exact")
NUMBERED = qw.MarkovChain(CHAIN.transition)
BOX = qw.ChainBox([[0.8, 0.0], [0.3, 0.5]], [[1.0, 0.2], [0.5, 0.7]], CHAIN.states)
HOMES = qw.Clusters([1, 1, 2, 3, 3, 4])
ROWS = np.linspace(0, 1, 60)
COUNT = qw.queries.count("walk")
TOLD = counts.release_table({("f",): 4, ("m",): 2}, epsilon=1, dimensions=["sex"])
USER = qw.Consumer([0.25] * 4)
MECHANISM = qw.GeometricMechanism(3, alpha=0.5)
SEQUENCES = [DAY, DAY[::-1]]
FRAME = pd.DataFrame({"state": DAY, "who": 1, "age": 3, "ill": ["a", "b"] * 10, "home": DAY})
SPENDING = qw.Spending.dp(0.1, 1, 5)


def _network() -> Any:
    return qw.Network(nx.DiGraph([("a", "b")]), {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]})


def _published() -> Any:
    return qw.anonymize(hospitals(), qw.KAnonymity(2), 1)


def _ledger() -> Any:
    folder = tempfile.mkdtemp(dir=".")
    ledger = qw.Ledger.open(f"sqlite:///{folder}/budget.db")
    ledger.create("d", CHAIN, len(DAY), 99)
    ledger.debit("d", SPENDING, "k")
    return ledger


def _holdout() -> Any:
    return qw.ReusableHoldout(ROWS[::-1] / 2, ROWS, threshold=0.2, noise=0.01, budget=3)


def _accountant() -> Any:
    accountant = qw.Accountant(CHAIN, len(DAY), budget=99)
    accountant.spend(0.1, 1, 5)
    return accountant


def _certificate() -> str:
    return qw.influence.certificate(qw.calibrate(CHAIN, 9, 1))


ORDINARY: dict[str, Callable[[], Any]] = {
    "session": lambda: None,
    "checkpoint": lambda: Checkpoint("0" * 32, 0, "0" * 64),
    "kind": lambda: "read",
    "alpha": lambda: Fraction(1, 2),
    "analyst": lambda: "ana",
    "among": lambda: ["a", "b"],
    "assessment": lambda: risk.assess(hospitals()),
    "answer": lambda: "7",
    "base": lambda: "uniform",
    "belief": lambda: CHAIN,
    "beta": lambda: 0.05,
    "beliefs": lambda: CHAIN,
    "budget": lambda: 5,
    "c": lambda: 2,
    "candidates": lambda: {"k=2": _published()},
    "cell": lambda: ("f",),
    "cells": lambda: None,
    "chain": lambda: CHAIN,
    "claimed": lambda: 1,
    "codes": lambda: np.array([0, 1]),
    "column": lambda: "state",
    "confidence": lambda: 0.9,
    "constraint": lambda: qw.KAnonymity(2),
    "consumer": lambda: USER,
    "count": lambda: 2,
    "counts": lambda: {"a": 3, "b": 4},
    "d": lambda: 2,
    "data": lambda: DAY,
    "dataset": lambda: "d",
    "largest": lambda: 1,
    "moment": lambda: 0,
    "others": lambda: CHAIN,
    "scorings": qw.holdout.Scoring,
    "records": lambda: ["flu", "flu", "cold"],
    "ledger": _ledger,
    "mark": lambda: "0:0",
    "dimension": lambda: "sex",
    "distance": lambda: "equal",
    "divergence": lambda: 0.1,
    "document": lambda: qw.queries.to_document(COUNT),
    "dp_epsilon": lambda: 0.5,
    "earlier": table_a,
    **dict.fromkeys(("eps_a", "eps_b", "epsilon"), lambda: 1),
    "epsilons": lambda: [1, 0.5],
    "every": lambda: 5,
    "estimator": lambda: lambda rows: rows,
    "factors": lambda: {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]},
    "first": lambda: 1,
    "derivable": lambda: False,
    "detail": lambda: "column 2",
    "folder": lambda: "race",
    "frame": lambda: FRAME,
    "frames": lambda: {"A": FRAME, "B": FRAME},
    "function": lambda: lambda x: float(len(x)),
    "graph": lambda: nx.DiGraph([("a", "b")]),
    "group": lambda: 0,
    "hi": lambda: 1,
    "highest": lambda: [[60, 5], [5, 60]],
    "holdout": lambda: ROWS,
    "identity": lambda: "id",
    "influence_ab": lambda: 0.1,
    "influence_ba": lambda: 0.1,
    "joint": lambda: [[0.25, 0.25], [0.25, 0.25]],
    "k": lambda: 2,
    "key": lambda: None,
    "l": lambda: 2,
    "label": lambda: "x",
    "labels": lambda: [1, 1, 2],
    "last": lambda: 3,
    "later": table_a,
    "length": lambda: len(DAY),
    "levels": lambda: [0.1, 0.2],
    "lipschitz": lambda: 1,
    "lo": lambda: 0,
    "loss": lambda: "absolute",
    "lower": lambda: [[0.8, 0.0], [0.3, 0.5]],
    "lowest": lambda: [[40, 1], [1, 40]],
    "m": lambda: 1,
    "made": lambda: qw.calibrate(CHAIN, len(DAY), 1),
    "matrices": lambda: [CHAIN.transition, CHAIN.transition],
    "matrix": lambda: MECHANISM.matrix(exact=True),
    "mechanism": lambda: MECHANISM,
    "n": lambda: 3,
    "name": lambda: "x",
    "node": lambda: 3,
    "noise": lambda: 0.01,
    "number": lambda: 2,
    "original": hospitals,
    "originals": hospitals,
    "output": lambda: [2],
    "own": hospitals,
    "path": lambda: "out.csv",
    "points_per_day": lambda: 24,
    "other": lambda: CHAIN,
    "period": lambda: 2,
    "phase": lambda: 1,
    "plan": lambda: qw.plan_holdout(None, queries=9, overfits=2, samples=900),
    "prior": lambda: "uniform",
    "provider": lambda: "home",
    "publication": _published,
    "published": table_a,
    "quasi_identifiers": lambda: ["age"],
    "queries": lambda: [COUNT],
    "query": lambda: COUNT,
    "query_a": lambda: COUNT.on(1, 3),
    "query_b": lambda: COUNT.on(9, 12),
    "question": lambda: lambda accountant: accountant.epsilon(),
    "quilt": lambda: (1, 6),
    "quilts": lambda: [((1, 5),), ((1, 5),)],
    "receipt": lambda: None,
    "release": lambda: RELEASE,
    "released": lambda: 2,
    "releases": lambda: [(COUNT, 2)],
    "response": lambda: 1,
    "rows": lambda: 9,
    **dict.fromkeys(("scale", "scale_a", "scale_b"), lambda: 2),
    "said": lambda: {"1": "yes"},
    "scoring": qw.holdout.Scoring,
    "sensitive": lambda: "ill",
    "shows": lambda: ["a", "b"],
    "sequence": lambda: DAY,
    "sequences": lambda: SEQUENCES,
    "source": lambda: FRAME,
    "spending": lambda: SPENDING,
    "spendings": lambda: [SPENDING],
    "standing": lambda: 0.5,
    "start": lambda: 1,
    "state": lambda: "walk",
    "states": lambda: None,
    "statistic": lambda: lambda rows: rows,
    "evaluate": lambda: lambda power, rows: rows[:, 0] ** power,
    "statistics": lambda: [lambda rows: rows],
    "stop": lambda: 5,
    "subjects": lambda: [1, 1],
    "submissions": lambda: 3,
    "t": lambda: 0.3,
    "table": hospitals,
    "team": lambda: "us",
    "text": CHAIN.to_json,
    "threshold": lambda: 0.2,
    "trials": lambda: 20,
    "tolerance": lambda: None,
    "train": lambda: ROWS[::-1] / 2,
    "transition": lambda: CHAIN.transition,
    "upper": lambda: [[1.0, 0.2], [0.5, 0.7]],
    "url": lambda: "sqlite:///new.db",
    "user": lambda: qw.Consumer("uniform"),
    "value": lambda: "state",
    "values": lambda: {"a": 0, "b": 1},
    "which": lambda: "eg",
    "window_a": lambda: (1, 3),
    "window_b": lambda: (9, 12),
    "X": lambda: ROWS.reshape(-1, 1),
    "year": lambda: 2025,
    "y": lambda: (ROWS > 0.5).astype(int),
}


def _cyclic() -> Any:
    return qw.CyclicChain([CHAIN.transition, CHAIN.transition], CHAIN.states)


def _hidden() -> Any:
    return qw.HiddenChain(CHAIN.transition, CHAIN.states)


OWN: dict[tuple[str, str], Callable[[], Any]] = {
    ("tables.risk.assess", "released"): hospitals,
    ("counts.limited_counts", "cells"): lambda: ["a", "b"],
    ("counts.release_levels", "epsilons"): lambda: [2, 1],
    ("counts.CountTable.from_json", "text"): TOLD.to_json,
    ("tables.compare", "queries"): lambda: 9,
    ("plan_holdout", "queries"): lambda: 9,
    ("compose.distant", "beliefs"): lambda: qw.MarkovChain([[0.65, 0.35], [0.4, 0.6]]),
    ("compose.distant", "window_a"): lambda: (1, 30),
    ("compose.distant", "window_b"): lambda: (61, 90),
    ("compose.distant", "length"): lambda: 90,
    ("compose.distant", "eps_a"): lambda: 2,
    ("compose.distant", "eps_b"): lambda: 3,
    ("compose.count_divergence", "first"): lambda: (qw.queries.count("rest").on(1, 3), 5.0),
    ("compose.count_divergence", "second"): lambda: (qw.queries.count("walk").on(2, 5), 5.0),
    ("counts.Derivation", "remap"): lambda: ((Fraction(1),),),
    ("budget.least_gdp", "profile"): lambda: lambda epsilon: max(0.0, 0.2 - epsilon),
    ("budget.deployment", "name"): lambda: "google_mobility",
    ("audit.check_certificate", "text"): lambda: qw.influence.certificate(
        qw.calibrate(CHAIN, 9, 1)
    ),
    ("monitor", "levels"): lambda: [0.1, 0.2],
    ("misspecification", "release"): lambda: RELEASE,
    ("audit.misspecification", "release"): lambda: RELEASE,
    ("Ledger.debit_with_answer", "key"): lambda: "k",
    ("plan_holdout", "overfits"): lambda: 2,
    ("plan_holdout", "tolerance"): lambda: 0.2,
    ("plan_holdout", "beliefs"): lambda: None,
    ("ReusableHoldout", "beliefs"): lambda: None,
    ("ReusableHoldout", "budget"): lambda: 3,
    ("ReusableHoldout", "noise"): lambda: 0.01,
    ("Ladder", "beliefs"): lambda: None,
    ("sklearn.HoldoutScorer", "holdout"): _holdout,
    ("guard", "holdout"): _holdout,
    ("holdout.OneBit", "beliefs"): lambda: None,
    ("holdout.create_board", "columns"): lambda: qw.holdout.Columns("id", "label"),
    ("holdout.certify", "key"): lambda: "key.pem",
    ("query_error", "queries"): lambda: 5,
    ("queries.check_lipschitz", "query"): lambda: qw.queries.custom(len, lipschitz=1),
    ("queries.check_lipschitz", "states"): lambda: ["a", "b"],
    ("queries.check_lipschitz", "length"): lambda: 4,
    ("Release.from_json", "text"): RELEASE.to_json,
    ("Clusters.from_json", "text"): HOMES.to_json,
    ("ChainBox.from_json", "text"): BOX.to_json,
    ("Network.from_json", "text"): lambda: _network().to_json(),
    ("Network.marginal", "name"): lambda: "a",
    ("Network.node", "name"): lambda: "a",
    ("Network.blanket", "name"): lambda: "a",
    ("optimal_for_chain", "length"): lambda: 4,
    ("audit.odds", "length"): lambda: 6,
    ("series.clip", "release"): lambda: RELEASE,
    ("Accountant", "length"): lambda: 20,
    ("Spending.gaussian", "rho"): lambda: 0.01,
    ("Accountant.spend", "dp_epsilon"): lambda: 0.1,
    ("Accountant.add", "release"): lambda: SPENDING,
    ("Accountant.add_all", "releases"): lambda: [SPENDING],
    ("Accountant.largest_factor", "releases"): lambda: [SPENDING],
    ("bayesian_dp", "length"): lambda: 20,
    ("dp_for_bayesian_dp", "length"): lambda: 20,
    ("max_influence", "length"): lambda: 20,
    ("plan", "length"): lambda: 20,
    ("preview", "length"): lambda: 20,
    ("compose.sequential", "releases"): lambda: [QUILTED, QUILTED],
    ("compose.same_quilts", "releases"): lambda: [QUILTED, QUILTED],
    ("GeometricMechanism", "epsilon"): lambda: 1,
    ("counts.release_table", "epsilon"): lambda: 1,
    ("MarkovChain.marginal", "t"): lambda: 3,
    ("MarkovChain.support", "t"): lambda: 3,
    ("GaussianRows", "correlation"): lambda: [[1, 0.2], [0.2, 1]],
    ("GaussianSeries", "ar"): lambda: [0.5],
    ("HiddenChain.from_emissions", "emissions"): lambda: [[0.9, 0.1], [0.2, 0.8]],
    ("CyclicChain.marginal", "t"): lambda: 3,
    ("CyclicChain.support", "t"): lambda: 3,
    ("CyclicChain.from_json", "text"): lambda: _cyclic().to_json(),
    ("HiddenChain.marginal", "t"): lambda: 3,
    ("HiddenChain.support", "t"): lambda: 3,
    ("HiddenChain.from_json", "text"): lambda: _hidden().to_json(),
    ("Ledger.answer", "key"): lambda: "k",
    ("Ledger.kept", "key"): lambda: "k",
    ("Ledger.create", "dataset"): lambda: "new",
    ("Ladder.resume", "text"): lambda: qw.Ladder(ROWS, submissions=3).to_json(),
    ("series.read_states", "source"): lambda: "states.csv",
}

OBJECTS: dict[str, Callable[[], Any]] = {
    "MarkovChain": lambda: CHAIN,
    "ChainBox": lambda: BOX,
    "CyclicChain": lambda: _cyclic(),
    "HiddenChain": lambda: _hidden(),
    "Clusters": lambda: HOMES,
    "Network": _network,
    "Accountant": _accountant,
    "Spending": lambda: SPENDING,
    "Release": lambda: RELEASE,
    "Ledger": _ledger,
    "GeometricMechanism": lambda: MECHANISM,
    "Consumer": lambda: USER,
    "ReusableHoldout": _holdout,
    "Ladder": lambda: qw.Ladder(ROWS, submissions=3),
    "Table": hospitals,
    "counts.CountTable": lambda: TOLD,
    "counts.Remap": lambda: MECHANISM.remap(USER),
    "counts.OptimalMechanism": lambda: qw.optimal_mechanism(USER, 3, 0.5),
    "counts.ChainCounts": lambda: counts.ChainCounts(CHAIN, "walk"),
    "Publication": _published,
    "Calibration": lambda: qw.calibrate(CHAIN, len(DAY), 1),
    "InfluenceCurve": lambda: qw.influence_curve(CHAIN, len(DAY)),
    "Query": lambda: COUNT,
    "Mean": lambda: qw.queries.mean(0, 1),
    "HoldoutPlan": lambda: qw.plan_holdout(None, queries=9, overfits=2, tolerance=0.2),
    "Verdict": lambda: qw.verify_m_privacy(hospitals(), qw.KAnonymity(2), 1),
}
"""What functions return or classes make, whose methods a user calls."""

MADE_BY_US = {
    *("Release", "Ledger", "CountTable", "OptimalMechanism", "Remap", "Spending"),
    *("ChainCertificate", "ChainMechanism"),
}
"""Results and handles: nobody calls these classes themselves."""

MODULES: dict[str, ModuleType] = {
    "": qw,
    "compose.": qw.compose,
    "queries.": qw.queries,
    "audit.": qw.audit,
    "sklearn.": qw.sklearn,
    "budget.": budget,
    "counts.": counts,
    "tables.": tables,
    "tables.risk.": risk,
    "series.": series,
    "holdout.": qw.holdout,
}


def callables() -> dict[str, Callable[[], Callable[..., Any]]]:
    """Every public function, class and method by name, with a maker of what to call."""
    found: dict[str, Callable[[], Callable[..., Any]]] = {}
    known: set[int] = set()
    for prefix, module in MODULES.items():
        for name, value in _public(module):
            if id(value) not in known:
                known.add(id(value))
                found[prefix + name] = partial(getattr, module, name)
    for name, make in OBJECTS.items():
        for method in _methods(make()):
            found[f"{name}.{method}"] = partial(_bound, make, method)
    return found


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name)
        ours = str(getattr(value, "__module__", "")).startswith("quiltwork")
        plain = inspect.isfunction(value) or (inspect.isclass(value) and _made(value, module))
        if ours and plain and not name.startswith("_"):
            yield name, value


def _made(kind: type, module: ModuleType) -> bool:
    """Whether users call a class themselves, rather than get its objects from a function."""
    ours = kind.__name__ in MADE_BY_US or issubclass(kind, BaseException)
    if ours or inspect.isabstract(kind) or getattr(kind, "_is_protocol", False):
        return False
    return module in (qw, counts, qw.sklearn) or issubclass(kind, tables.Constraint)


def _methods(thing: Any) -> list[str]:
    kind = type(thing)
    names = [n for n, m in inspect.getmembers(kind) if callable(m) and _ours(kind, n)]
    kept = QUESTIONS if isinstance(thing, qw.queries.Query) else set(names) - HIDDEN
    return [name for name in names if name in kept]


def _ours(kind: type, name: str) -> bool:
    if name.startswith("_") and name not in ("__call__", "__getitem__"):
        return False
    home = next((base for base in kind.__mro__ if name in vars(base)), object)
    return home.__module__.startswith("quiltwork")


def _bound(make: Callable[[], Any], method: str) -> Callable[..., Any]:
    bound: Callable[..., Any] = getattr(make(), method)
    return bound


def arguments(
    name: str, function: Callable[..., Any], rng: np.random.Generator | None
) -> tuple[list[Any], dict[str, Any]]:
    """Ordinary arguments of a function; with a generator, one or two of them hostile."""
    parameters = list(inspect.signature(function).parameters.values())
    hostile: set[str] = set()
    if rng is not None and parameters:
        chosen = rng.permutation(len(parameters))[: int(rng.integers(1, 3))]
        hostile = {parameters[int(at)].name for at in chosen}
    given: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        needed = parameter.default is parameter.empty
        if rng is not None and parameter.name in hostile:
            value = HOSTILE[int(rng.integers(len(HOSTILE)))]()
        elif (name, parameter.name) in OWN:
            value = OWN[name, parameter.name]()
        elif needed:
            value = ORDINARY[_singular(parameter)]()
        else:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            given.append(value)
        else:
            named[parameter.name] = value
    return given, named


def _singular(parameter: inspect.Parameter) -> str:
    return "spending" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name


def trouble(name: str, maker: Callable[[], Any], rng: np.random.Generator) -> str:
    """Call a function with hostile arguments; "" if it answers, or refuses in our words."""
    function = maker()
    given, named = arguments(name, function, rng)
    try:
        function(*given, **named)
    except (QuiltworkError, Theirs):
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
