"""Series in a folder: Spark counts what one machine counts, and noise is drawn once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evidence.checks import meters_year
from quiltwork import MarkovChain, queries, release
from quiltwork.cli.boundary import run
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series import read_fleet, read_series

CHAIN = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["<1", ">=1"])
TIMED = {"time": "time", "date_format": "seconds"}
OPTIONS = {**TIMED, "subject": "filename", "edges": [1], "beliefs": CHAIN}


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    for meter in range(5):
        rows = [f"{3600 * hour},{kw:.3f}" for hour, kw in enumerate(generator.gamma(1, 1, 48))]
        (tmp_path / f"m{meter}.csv").write_text("\n".join(["time,kw", *rows]))
    return tmp_path


def test_counts_are_those_of_one_machine(spark, folder):
    here = read_series(folder, "kw", **OPTIONS)
    there = read_fleet(spark, folder, "kw", **OPTIONS)
    assert (there.points, there.lengths, there.grid) == (here.points, here.lengths, here.grid)
    assert there.window("1970-01-02") == here.window("1970-01-02") == (25, 48)
    states = CHAIN.states
    codes = [CHAIN.encode(one) for one in here.data.values()]
    for query in (queries.histogram(), queries.transitions().on(5, 20)):
        expected = sum(query.evaluate(one, states) for one in codes)
        assert there.data.total(query.evaluate, states).tolist() == expected.tolist()
    sharp = release(there.data, queries.count(">=1"), CHAIN, epsilon=60)
    assert sharp.value == sum(int((one == 1).sum()) for one in codes)
    assert sharp.subjects == 5
    assert sharp.period == ("1970-01-01T00:00", "1970-01-03T00:00")


def test_what_is_wrong_is_said_by_file_and_place(spark, folder):
    with pytest.raises(InvalidInputError, match="add 'filename'"):
        read_fleet(spark, folder, "kw", time="time", edges=[1])
    with pytest.raises(InvalidInputError, match="states must be known"):
        read_fleet(spark, folder, "kw", time="time", subject="filename")
    (folder / "m3.csv").write_text("time,kw\n0,secret1\n")
    with pytest.raises(InvalidInputError, match=r"m3.csv: Row 1 of column 'kw'") as refused:
        read_fleet(spark, folder, "kw", **OPTIONS)
    assert "secret" not in str(refused.value)
    (folder / "m3.csv").write_text("time,kw\n0,\n3600,2\n")
    with pytest.raises(InvalidInputError, match=r"m3.csv: Time points .*missing='public'"):
        read_fleet(spark, folder, "kw", **OPTIONS, missing="state")
    labels = folder / "labels"
    labels.mkdir()
    (labels / "m1.csv").write_text("state\n<1\nodd\n")
    odd = read_fleet(spark, labels, "state", subject="filename", beliefs=CHAIN)
    with pytest.raises(InvalidInputError, match=r"m1.csv: Position 2 holds none of the belief's"):
        release(odd.data, queries.histogram(), CHAIN)
    with pytest.raises(UnsupportedError, match="not brought here"):
        odd.data["m1"]


def test_the_command_line_counts_on_spark(spark, folder, capsys, tmp_path_factory):
    belief = tmp_path_factory.mktemp("belief") / "belief.json"
    belief.write_text(CHAIN.to_json())
    asked = [
        *("release", str(folder), "--value", "kw", "--time", "time", "--subject", "filename"),
        *("--edges", "1", "--belief", str(belief), "--epsilon", "60", "--json"),
    ]
    found = []
    for backend in ("spark", "local"):
        assert run([*asked, "--backend", backend]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["value"] == found[1]["value"]
    assert found[0]["points"] == found[1]["points"] == 240


def test_days_of_a_few_meters_are_counted_alike_here_and_on_spark(spark):
    found = meters_year.check(4, 8, spark)
    assert found["questions with equal answers"] == 3
