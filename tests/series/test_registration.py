"""Registered data: rows are checked once, and no refusal tells about them later."""

from __future__ import annotations

import os

import pytest

import quiltwork as qw
from quiltwork.cli.boundary import run
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series import read_registered, register_series
from quiltwork.series.registration import registered_reading

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])


@pytest.fixture
def cli_run(capsys):
    def call(*words):
        code = run(list(words))
        return code, capsys.readouterr().err

    return call


def _file(path, rows):
    path.write_text("\n".join(["state", *rows]) + "\n")
    return str(path)


@pytest.fixture
def ledger(tmp_path):
    with qw.Ledger.open(f"sqlite:///{tmp_path / 'budget.db'}") as opened:
        opened.create("home", CHAIN, 40, budget=10)
        yield opened


def test_what_is_wrong_with_a_row_is_told_when_data_are_registered(tmp_path, ledger):
    wrong = _file(tmp_path / "a.csv", ["rest", "jump"] * 20)
    with pytest.raises(InvalidInputError, match="Position 2"):
        register_series(ledger, "home", wrong, "state")
    assert ledger.registered("home") is None
    with pytest.raises(InvalidInputError, match="has 50 time points, dataset 'home' has 40"):
        register_series(ledger, "home", _file(tmp_path / "b.csv", ["rest"] * 50), "state")


def test_registered_files_are_read_and_others_refused_by_one_sentence(tmp_path, ledger):
    right = _file(tmp_path / "right.csv", ["rest", "walk"] * 20)
    assert read_registered(ledger, "home", right, "state").points == 40  # nothing registered yet
    register_series(ledger, "home", right, "state")
    read = read_registered(ledger, "home", right, "state", beliefs=CHAIN)
    answer = qw.release(read.data, qw.queries.histogram(), CHAIN, ledger=ledger, dataset="home")
    assert answer.cells == ("rest", "walk")
    told = set()
    for rows in (["rest", "walk"] * 20, ["jump"] * 40, ["rest"] * 3):
        other = _file(tmp_path / "other.csv", rows)
        with pytest.raises(InvalidInputError, match="not the files registered") as refused:
            read_registered(ledger, "home", other, "state")
        told.add(str(refused.value))
    assert len(told) == 1
    with pytest.raises(InvalidInputError) as refused:
        read_registered(ledger, "home", right, "state", decimal=",")
    assert "registered with no decimal, and are now to be read with decimal=','" in str(
        refused.value
    )
    assert registered_reading(ledger, "home") == {"value": "state"}


def test_a_file_that_changed_is_registered_again(tmp_path, ledger):
    path = _file(tmp_path / "own.csv", ["rest", "walk"] * 20)
    register_series(ledger, "home", path, "state")
    _file(tmp_path / "own.csv", ["walk", "rest"] * 20)
    os.utime(path, ns=(1, 1))  # of the same size, changed at another time
    with pytest.raises(InvalidInputError, match="registers them again"):
        read_registered(ledger, "home", path, "state")
    register_series(ledger, "home", path, "state")
    assert read_registered(ledger, "home", path, "state").points == 40
    ledger.verify()


def test_an_edit_that_hides_its_time_is_noticed_without_a_look_at_rows(
    tmp_path, ledger, monkeypatch
):
    path = _file(tmp_path / "own.csv", ["rest", "walk"] * 20)
    stamp = os.stat(path)
    register_series(ledger, "home", path, "state")
    with open(path, "r+b") as handle:  # in place, of the same size
        handle.write(b"state\nwalk\nrest\n")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    monkeypatch.setattr("builtins.open", None)  # the mark says nothing of what is in a file
    with pytest.raises(InvalidInputError, match="registers them again"):
        read_registered(ledger, "home", path, "state")


def test_only_files_of_datasets_with_states_are_registered(ledger):
    with pytest.raises(UnsupportedError, match="Only files"):
        register_series(ledger, "home", ["rest", "walk"] * 20, "state")
    ledger.create("rows", qw.GaussianSeries(ar=[0.5]), 40, budget=1)
    with pytest.raises(UnsupportedError, match="never refused"):
        register_series(ledger, "rows", __file__, "state")


def test_people_are_registered_with_their_states_or_as_rows(tmp_path, cli_run):
    walks = tmp_path / "walks.csv"
    walks.write_text("who,minute,state\na,1,rest\na,2,walk\nb,1,rest\nb,2,jump\n")
    url = f"sqlite:///{tmp_path / 'people.db'}"
    assert cli_run("ledger", "create", url, "study", "--people", "--budget", "9")[0] == 0
    read = (str(walks), "--value", "state", "--subject", "who", "--time", "minute")
    paid = ("--epsilon", "1", "--ledger", url, "--dataset", "study")
    code, told = cli_run("ledger", "register", url, "study", *read, "--states", "rest,walk")
    assert (code, "Position 2 holds none" in told) == (2, True)
    every = ("--states", "rest,walk,jump")
    assert cli_run("ledger", "register", url, "study", *read, *every)[0] == 0
    ask = ("release", *read, "--protect", "person", *paid)
    assert cli_run(*ask, *every)[0] == 0
    for wrong in (
        (*ask, "--states", "rest,walk"),  # would tell that somebody jumps
        (*ask, "--states", "rest,walk", "--preview"),
        ("count", str(walks), "--by", "state", "--categories", "rest", *paid),
    ):
        code, told = cli_run(*wrong)
        assert code == 2
        assert "are now to be read with" in told or "not the files registered" in told
    assert cli_run("ledger", "register", url, "study", str(walks), "--rows")[0] == 0
    assert cli_run("count", str(walks), "--by", "state", "--categories", "rest", *paid)[0] == 0
    walks.write_text("who,minute,state\na,1\n")
    code, told = cli_run("count", str(walks), "--by", "state", "--categories", "rest", *paid)
    assert "not the files registered" in told
    assert cli_run("ledger", "register", url, "study", str(walks), "--rows")[0] == 2
