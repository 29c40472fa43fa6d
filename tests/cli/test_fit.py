"""`quiltwork fit` on files as they are met: days with times, raw numbers, many states."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.beliefs import beliefs_from_json, candidates

NIGHT = [[0.95, 0.04, 0.01], [0.5, 0.4, 0.1], [0.4, 0.3, 0.3]]
DAY = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
ACTIVITY = qw.CyclicChain([NIGHT] * 7 + [DAY] * 15 + [NIGHT] * 2, states=["rest", "sit", "walk"])
READ = ("--value", "activity", "--time", "time")


def write(path, begins: str, data) -> None:
    """A file of hours from this moment on."""
    moments = np.datetime64(begins) + np.arange(len(data)) * np.timedelta64(1, "h")
    rows = [f"{moment},{state}" for moment, state in zip(moments, data, strict=True)]
    path.write_text("\n".join(["time,activity", *rows]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Ten weeks of one person from eight o'clock, a week of another from eleven."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "pilot.csv", "2026-01-05T08", ACTIVITY.starting(8).sample(1680, seed=1))
    write(tmp_path / "week.csv", "2026-03-02T11", ACTIVITY.starting(11).sample(168, seed=2))
    return tmp_path


def test_the_list_is_written_priced_and_released_from(cli, folder):
    ran = cli("fit", "pilot.csv", *READ, "-o", "list.json", "--json")
    assert ran.code == 0, ran.err
    found, price = ran.document["tried"], ran.document["price"]
    series = qw.series.read_series("pilot.csv", "activity", time="time")
    for one, expected in zip(found, candidates(series.data), strict=True):
        assert (one["name"], one["kept"]) == (expected.name, expected.plausible)
        assert one["per_step"] == pytest.approx(expected.per_step)
    assert found[0]["name"] == "time of day"
    written = beliefs_from_json((folder / "list.json").read_text())
    assert list(written) == qw.plausible(series.data)
    scale = qw.calibrate(list(written), 1680, 1, query=qw.queries.histogram()).scale
    assert price["scale"] == pytest.approx(scale)
    plain = qw.MarkovChain.fit(series.data)
    single = qw.calibrate(plain, 1680, 1, query=qw.queries.histogram()).scale
    assert price["single"] == pytest.approx(single)
    assert json.dumps(ran.document["belief"]) == json.dumps(
        json.loads((folder / "list.json").read_text())
    )
    ran = cli("release", "week.csv", *READ, "--belief", "list.json", "--epsilon", "1", "--json")
    assert ran.code == 0, ran.err  # it begins at another hour than the data of the fit
    assert ran.document["length"] == 168


def test_what_is_printed(cli, folder):
    out = cli("fit", "pilot.csv", *READ).out
    table = [line.split() for line in out.splitlines()]
    assert ["belief", "held", "out,", "nats", "per", "step", "plausible", "noise"] in table
    assert "time of day, which decides; one chain of order 1 takes" in out
    ran = cli("fit", "pilot.csv", *READ, "--single")
    assert "Warning: The data contradict order 1" in ran.err
    counts = (folder / "pilot.csv").read_text()
    assert f"rest ({counts.count('rest'):,} observed)" in ran.out


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("--single",), "MarkovChain"),
        (("--order", "2"), "HiddenChain"),
        (("--durations",), "HiddenChain"),
        (("--period", "day"), "CyclicChain"),
        (("--period", "12"), "CyclicChain"),
        (("--box",), "ChainBox"),
    ],
)
def test_one_belief_can_be_chosen(cli, folder, options, kind):
    ran = cli("fit", "pilot.csv", *READ, *options, "--json")
    (belief,) = beliefs_from_json(json.dumps(ran.document["belief"]))
    assert type(belief).__name__ == kind
    assert ran.document["price"]["scale"] > 0
    assert len([one for one in ran.document["tried"] if one["kept"]]) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--single", "--box"), "--single and --box exclude each other"),
        (("--order", "2", "--durations"), "exclude each other"),
        (("--initial", "empirical"), "add --single"),
        (("--period", "month"), "'day' or 'week'"),
        (("--order", "0"), "order"),
    ],
)
def test_choices_that_make_no_sense_are_refused(cli, folder, options, words):
    ran = cli("fit", "pilot.csv", *READ, *options, "-o", "no.json")
    assert ran.code == 2
    assert words in ran.err
    assert not (folder / "no.json").exists()


def test_raw_numbers_are_refused_with_the_remedy(cli, folder):
    raw = np.random.default_rng(3).gamma(2, 1, 2500)
    (folder / "power.csv").write_text("\n".join(["kw", *(f"{kw:.9f}" for kw in raw)]))
    ran = cli("fit", "power.csv", "-o", "power.json")
    assert ran.code == 2
    assert "2,500 different states" in ran.err
    assert "--edges" in ran.err
    assert cli("fit", "power.csv", "--edges", "1,2", "-o", "power.json").code == 0


def test_many_states_are_told_what_decides(cli, folder):
    rng = np.random.default_rng(4)
    matrix = 0.3 * rng.dirichlet([0.3] * 27, size=27) + 0.7 * np.eye(27)
    cells = [f"c{code}" for code in qw.MarkovChain(matrix).sample(1500, seed=1)]
    (folder / "cells.csv").write_text("\n".join(["cell", *cells]))
    ran = cli("fit", "cells.csv", "--json")
    assert ran.code == 0
    assert any("Smoothing decides the noise" in one for one in ran.document["warnings"])
    assert set(ran.document["price"]["states"]) <= set(cells)


@pytest.mark.parametrize(
    ("cells", "scale"), [(["a"] * 9, 0.0), (["a"], 0.0), (["a", "b"], None)], ids=str
)
def test_the_smallest_files_are_fitted(cli, folder, cells, scale):
    (folder / "small.csv").write_text("\n".join(["s", *cells]))
    ran = cli("fit", "small.csv", "--json")
    assert ran.code == 0, ran.err
    if scale is not None:
        assert ran.document["price"]["scale"] == scale
    assert cli("fit", "small.csv").code == 0


def test_subjects_that_begin_at_several_times_of_day_are_released_together(cli, folder):
    cli("fit", "pilot.csv", *READ, "--period", "day", "-o", "day.json")
    rows = [
        f"{who},{line}"
        for who, name in (("a", "pilot.csv"), ("b", "week.csv"))
        for line in (folder / name).read_text().splitlines()[1:]
    ]
    (folder / "both.csv").write_text("\n".join(["who,time,activity", *rows]))
    release = ("release", "both.csv", *READ, "--subject", "who", "--epsilon", "1", "--json")
    ran = cli(*release, "--belief", "day.json")
    assert ran.code == 0, ran.err
    assert [one.rpartition("from ")[2].partition(",")[0] for one in ran.document["beliefs"]] == [
        "08:00",
        "11:00",
    ]
    times = ("--begins", "08:00", "--begins", "11:00")
    turned = cli("belief", "turn", "day.json", *times, "-o", "turned.json")
    assert turned.code == 0, turned.err
    again = cli(*release, "--belief", "turned.json")
    assert again.document["belief_digest"] == ran.document["belief_digest"]
    wrong = cli("belief", "turn", "day.json", "--begins", "noon", "-o", "no.json")
    assert wrong.code == 2
    assert "such as 08:00" in wrong.err
    assert cli(*release, "--belief", "day.json", "--apart").code == 0
    url = f"sqlite:///{folder}/b.db"
    for name in ("day", "turned"):
        create = ("ledger", "create", url, name, "--belief", f"{name}.json")
        assert cli(*create, "--length", "1680", "--budget", "2").code == 0
    refused = cli(*release, "--belief", "day.json", "--ledger", url, "--dataset", "day")
    assert refused.code == 2
    assert "belief turn" in refused.err
    paid = cli(*release, "--belief", "turned.json", "--ledger", url, "--dataset", "turned")
    assert paid.code == 0, paid.err


@pytest.mark.parametrize("options", [(), ("--initial", "any"), ("--initial", "empirical")], ids=str)
def test_a_plain_chain_may_go_without_smoothing(cli, folder, options):
    cells = ["a", "b", "a", "c", "a", "b", "a", "a", "c", "a"] * 6  # b and c never meet
    (folder / "few.csv").write_text("\n".join(["s", *cells]))
    ran = cli("fit", "few.csv", "--single", "--smoothing", "0", *options, "--json")
    assert ran.code == 0, ran.err
    counts = np.zeros((3, 3))
    for one, other in itertools.pairwise(cells):
        counts["abc".index(one), "abc".index(other)] += 1
    expected = counts / counts.sum(axis=1, keepdims=True)
    assert np.allclose(ran.document["belief"]["transition"], expected)
