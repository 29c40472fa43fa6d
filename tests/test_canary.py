"""A value of the data is in no message, nor in an error behind one, wherever data come in."""

from __future__ import annotations

import traceback
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import quiltwork as qw
from quiltwork import queries
from quiltwork.cli.boundary import run
from quiltwork.counts import release_levels, release_table
from quiltwork.series import read_series, read_states

CANARY, NUMBER, COUNT = "zq7xcanary", 48151623.42, 48151623
CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
LEVELS = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=[0.0, 1.0])
PAIR = qw.Clusters(["a", "b"])


def shown(error):
    """Everything that an error and the errors behind it may show."""
    parts = [str(error), repr(error), repr(error.args), repr(vars(error))]
    parts += traceback.format_exception(error)
    parts += [shown(one) for one in (error.__cause__, error.__context__) if one is not None]
    return "\n".join(parts)


def silent_about_the_data(call):
    """The error of a call, after a look at whatever it shows."""
    with pytest.raises(qw.QuiltworkError) as caught:
        call()
    text = shown(caught.value)
    for value in (CANARY, str(NUMBER), str(COUNT)):
        assert value not in text
    return str(caught.value)


def failing(labels):
    raise KeyError(f"{labels[0]}")


class Opaque:
    def __repr__(self):
        return CANARY


SEQUENCES = {
    "unknown state": ["rest", CANARY],
    "array": np.array(["rest", CANARY]),
    "objects": np.array(["rest", CANARY, 3], dtype=object),
    "pandas": pd.Series(["rest", CANARY]),
    "categorical": pd.Series(["rest", CANARY]).astype("category"),
    "polars": pl.Series(["rest", CANARY]),
    "arrow": pa.array(["rest", CANARY]),
    "tuple": ["rest", (CANARY, NUMBER)],
    "number": np.array([0.0, NUMBER]),
    "unhashable": ["rest", [CANARY], "walk"],
    "mapping": ["rest", {CANARY: 1}],
    "object": ["rest", Opaque()],
    "surrogate": ["rest", CANARY + "\ud800"],
    "bytes": ["rest", CANARY.encode()],
    "subjects": [["rest"], [CANARY]],
    "by name": {"ann": ["rest"], CANARY: ["rest", CANARY]},
    "mixed": [["rest"], CANARY],
    "text": CANARY.encode(),
    "scalar": np.array(CANARY),
    "missing": [CANARY, None],
    "table": np.array([[CANARY]]),
    "frame": pd.DataFrame({"a": [CANARY], "b": [CANARY]}),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_releases(name):
    silent_about_the_data(lambda: qw.release(SEQUENCES[name], queries.histogram(), CHAIN))


@pytest.mark.parametrize("fit", [qw.MarkovChain.fit, qw.ChainBox.fit])
@pytest.mark.parametrize("name", SEQUENCES)
def test_fits(name, fit):
    silent_about_the_data(lambda: fit(SEQUENCES[name], states=["rest", "walk"]))


@pytest.mark.parametrize(
    "data", [[CANARY, None], [CANARY, [CANARY]], [CANARY, Opaque()], ["a", CANARY], [[CANARY], 3]]
)
def test_fits_whose_states_are_found(data):
    silent_about_the_data(lambda: qw.MarkovChain.fit(data, smoothing=0))


@pytest.mark.parametrize("encode", [CHAIN.encode, qw.ChainBox(*[np.eye(2)] * 2).encode])
@pytest.mark.parametrize("name", SEQUENCES)
def test_encoding(name, encode):
    silent_about_the_data(lambda: encode(SEQUENCES[name]))


def test_clusters():
    for labels in ([CANARY, None], [CANARY, [CANARY]], [CANARY, Opaque()], CANARY):
        silent_about_the_data(lambda labels=labels: qw.Clusters(labels))


@pytest.mark.parametrize("query", [queries.mean(0, 1), queries.sum(0, 1)], ids=["mean", "sum"])
@pytest.mark.parametrize("rows", [[1, CANARY], [NUMBER, (CANARY,)], [NUMBER, None]], ids=str)
def test_rows_without_states(query, rows):
    silent_about_the_data(lambda: qw.release(rows, query, PAIR))


def test_rows_of_another_number():
    silent_about_the_data(lambda: qw.release([CANARY] * 3, queries.count("a"), PAIR))
    silent_about_the_data(lambda: qw.release([[CANARY], [CANARY]], queries.count("a"), PAIR))


def test_networks():
    import networkx as nx

    graph = nx.DiGraph([("a", "b")])
    tables = {"a": [0.5, 0.5], "b": [[0.9, 0.1], [0.2, 0.8]]}
    net = qw.Network(graph, tables, {"a": [0, CANARY], "b": [2, 3]})
    told = silent_about_the_data(lambda: qw.release([0, CANARY], queries.count(0), net))
    assert "Position 2 (node 'b')" in told


def test_data_that_contradict_beliefs_without_noise():
    turns = qw.MarkovChain([[0, 1], [1, 0]], initial=[1, 0], states=["a", CANARY])
    silent_about_the_data(lambda: qw.release([CANARY, "a"], queries.histogram(), turns))


def test_functions_that_fail_on_the_data():
    query = queries.custom(failing, lipschitz=1, name="mine")
    silent_about_the_data(lambda: qw.release([CANARY, CANARY], query, PAIR))


FILES = {
    "no number": (f"t,v\n1,2\n2,{CANARY}\n", {"edges": [1]}),
    "infinite": (f"t,v\n1,{NUMBER}\n2,inf\n", {"edges": [1]}),
    "no time": (f"t,v\n1,2\n{CANARY},3\n", {"time": "t"}),
    "times of two kinds": (f"t,v\n2026-01-01,{CANARY}\n2026-01-01T00:00Z,3\n", {"time": "t"}),
    "twice": (f"t,v\n1,{CANARY}\n1,{CANARY}\n", {"time": "t"}),
    "gap": (f"t,v\n{CANARY},1\n{CANARY},\n", {"subject": "t"}),
    "ragged": (f"t,v\n{CANARY},1,{CANARY}\n", {}),
    "quotes": (f't,v\n"{CANARY}"x,1\n', {}),
    "open quote": (f't,v\n"{CANARY},1\n', {}),
    "not UTF-8": (f"t,v\n{CANARY},".encode() + b"\xff\n", {"encoding": "utf-8"}),
    "grid too long": (f"t,v\n1,{CANARY}\n99999999999999,2\n", {"time": "t", "every": "1s"}),
}


@pytest.mark.parametrize("name", FILES)
def test_series(name, tmp_path):
    content, options = FILES[name]
    path = tmp_path / "series.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    silent_about_the_data(lambda: read_series(path, "v", **options))
    assert run(["fit", str(path), "--value", "v", *flags(options)]) == 2


def flags(options):
    return [
        part
        for name, value in options.items()
        for part in (f"--{name}", str(value[0] if isinstance(value, list) else value))
    ]


@pytest.mark.parametrize(
    "frame",
    [
        {"t": [1, 2], "v": [1.0, CANARY]},
        {"t": [1, 2], "v": [1.0, (CANARY,)]},
        {"t": [CANARY, 2], "v": [1.0, 2.0]},
        {"t": [datetime(2026, 1, 1), CANARY], "v": [1.0, 2.0]},
        {"t": [1, 1], "v": [NUMBER, NUMBER]},
        {"t": [1, 2], "v": [NUMBER, np.inf]},
    ],
    ids=str,
)
def test_frames(frame):
    table = pd.DataFrame(frame, dtype=object)
    silent_about_the_data(lambda: read_series(table, "v", time="t", edges=[1]))


def test_parquet(tmp_path):
    path = tmp_path / "series.parquet"
    parquet.write_table(pa.table({"v": ["1", CANARY]}), path)
    silent_about_the_data(lambda: read_series(path, "v", edges=[1]))
    path.write_bytes(path.read_bytes()[:60] + CANARY.encode())
    silent_about_the_data(lambda: read_series(path, "v"))


def test_counts():
    mechanism = qw.GeometricMechanism(5, epsilon=1)
    for count in (COUNT, -COUNT, NUMBER, CANARY, None, [CANARY], True):
        silent_about_the_data(lambda count=count: mechanism.release(count))
        silent_about_the_data(lambda count=count: release_levels(count, 5, epsilons=[1]))
        if count != COUNT:
            table = {"a": count, "b": 1}
            silent_about_the_data(lambda table=table: release_table(table, epsilon=1))
    large = {"a": COUNT, "b": 1}
    silent_about_the_data(lambda: release_table(large, epsilon=1, beliefs=PAIR))


def test_holdouts():
    rows = np.zeros((4, 1))
    for data in ([[CANARY], [CANARY, 1]], CANARY, (rows, [CANARY]), [], Opaque()):
        silent_about_the_data(
            lambda data=data: qw.ReusableHoldout(rows, data, threshold=0.1, noise=0.1, budget=1)
        )


COMMANDS = {
    "release": ["release", "{csv}", "--value", "v", "--belief", "{belief}", "--epsilon", "1"],
    "numbers": ["release", "{csv}", "--value", "v", "--edges", "1", "--belief", "{belief}"],
    "times": ["fit", "{csv}", "--value", "v", "--time", "v"],
    "no smoothing": ["fit", "{csv}", "--value", "v", "--smoothing", "0"],
    "count": ["count", "{csv}", "--by", "w", "--categories", "a", "--epsilon", "1"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name, tmp_path, capsys):
    """Refused or, like a count of declared categories, answered: the value is not shown."""
    csv, belief = tmp_path / "data.csv", tmp_path / "belief.json"
    csv.write_text(f"v,w\nrest,a\n{CANARY},{CANARY}\n")
    belief.write_text(CHAIN.to_json())
    arguments = [part.format(csv=csv, belief=belief) for part in COMMANDS[name]]
    if name == "numbers":
        arguments += ["--epsilon", "1"]
    assert run(arguments) == (0 if name == "count" else 2)
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err


def test_a_fault_shows_no_data_either(tmp_path, capsys, monkeypatch):
    csv = tmp_path / "data.csv"
    csv.write_text(f"v\n{CANARY}\n")

    def broken(*_, **__):
        raise KeyError(CANARY)

    monkeypatch.setattr("quiltwork.series.read_series", broken)
    assert run(["fit", str(csv)]) == 3
    captured = capsys.readouterr()
    assert CANARY not in captured.out + captured.err
    assert "--debug" in captured.err


def test_paths_are_no_data(tmp_path):
    """What a user types is shown; what is in the file is not."""
    with pytest.raises(qw.InvalidInputError, match=r"absent\.csv"):
        read_states(str(tmp_path / "absent.csv"))
