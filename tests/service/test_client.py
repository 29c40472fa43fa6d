"""The client and the command: a curator of its own process, asked as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction

import pytest

import quiltwork as qw
from evidence.checks.curator_api import check as fuzzed
from evidence.checks.curator_load import check as loaded
from evidence.curators import running, with_steps
from quiltwork.client import Curator
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError, UnsupportedError

HISTOGRAM = qw.queries.histogram()


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with running(tmp_path_factory.mktemp("curator")) as found:
        with_steps(found, budget=1)
        for member, role in (("anna", "analyst"), ("udo", "auditor")):
            found.join(member, role)
        yield found


def test_a_team_works_through_the_client(curator, tmp_path):
    olga, anna, udo = (curator.as_(member) for member in ("olga", "anna", "udo"))
    assert olga.me()["role"] == "owner"
    assert anna.datasets() == []
    assert olga.share("steps", "anna", cap=Fraction(1, 2)).shares is not None
    foreseen = anna.preview("steps", HISTOGRAM, 0.1)
    answer = anna.ask("steps", HISTOGRAM, 0.1, key="k")
    assert anna.ask("steps", HISTOGRAM, 0.1, key="k") == answer
    assert answer.result.value.tolist() == answer.values
    assert anna.dataset("steps").spent == pytest.approx(foreseen.spent_after)
    assert list(anna.releases("steps")) == [answer]
    with pytest.raises(BudgetExceeded, match="cap"):
        anna.ask("steps", HISTOGRAM, 0.9)
    with pytest.raises(InvalidInputError, match="another question"):
        anna.ask("steps", HISTOGRAM, 0.2, key="k")
    assert anna.plan("steps", [{"query": HISTOGRAM, "every": 10}])["items"]
    assert [one["analyst"] for one in udo.ledger("steps")] == ["anna"]
    assert udo.verify().intact
    assert "act" in {one["kind"] for one in udo.log()}
    people = olga.register_counts("people", {"sex": ["f", "m"]}, 1)
    assert people.columns == {"sex": ["f", "m"]}
    rows = tmp_path / "people.csv"
    rows.write_text("sex\nf\nm\n")
    assert olga.add_rows("people", rows)["rows"] == 2
    table = olga.ask("people", {"kind": "table", "by": ["sex"]}, 0.5)
    assert table.result.values == tuple(table.values)
    with pytest.raises(UnsupportedError):
        olga.plan("people", [{"query": HISTOGRAM}])
    olga.delete_rows("people")
    with pytest.raises(BudgetExceeded):
        olga.ask("people", {"kind": "table"}, 0.5)
    (token,) = (one for one in [olga.make_token("anna", days=1)] if one)
    Curator(curator.address, token).me()
    olga.revoke_token("anna", Curator(curator.address, token).me()["token"])
    with pytest.raises(InvalidInputError, match="token"):
        Curator(curator.address, token).me()


def test_the_command_asks_a_curator(curator, monkeypatch, capsys, tmp_path):
    from quiltwork.cli.boundary import run

    line = ["release", "steps", "--curator", curator.address, "--epsilon", "0.01"]
    assert run(line) == 2
    assert "QUILTWORK_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("QUILTWORK_TOKEN", curator.tokens["olga"])
    assert run([*line, "--query", "count:walk", "--preview"]) == 0
    assert "intervals are" in capsys.readouterr().out
    path = tmp_path / "answer.json"
    assert run([*line, "--window", "1:10", "--key", "c", "-o", str(path)]) == 0
    assert qw.Release.from_json(path.read_text()).length == 100
    for wrong in (["--belief", "b.json"], ["--value", "x"], ["--apart"]):
        assert run([*line, *wrong]) == 2


def test_a_token_goes_over_no_open_wire():
    with pytest.raises(InvalidInputError, match="https"):
        Curator("http://curator.example.org", "t")
    for wrong in ("ftp://x", "curator", "http://user@localhost", ""):
        with pytest.raises(InvalidInputError):
            Curator(wrong, "t")
    assert "t0ken" not in repr(Curator("http://localhost:1", "t0ken"))


def test_a_curator_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr("quiltwork.client._PAUSES", (0.0,))
    with pytest.raises(StorageError, match="cannot be reached"):
        Curator("http://127.0.0.1:1", "t").me()


def test_the_first_start_shows_a_token_and_later_ones_do_not(curator):
    data = curator.folder / "data"
    assert data.stat().st_mode & 0o777 == 0o700
    assert not (curator.folder / "stderr").read_text()
    command = [sys.executable, "-m", "quiltwork", "serve", "--data", str(data), "--json"]
    command += ["--database", curator.database]
    environment = {**os.environ, "QUILTWORK_KEY": "00" * 32}

    def told(*more):
        return subprocess.run([*command, *more], capture_output=True, text=True, env=environment)

    made = told("--new-token", "udo")
    assert Curator(curator.address, json.loads(made.stdout)["token"]).me()["member"] == "udo"
    assert told("--new-token", "nobody").returncode == 2
    taken = told("--port", str(curator.port))
    assert (taken.returncode, taken.stdout) == (3, "")
    assert "another --port" in taken.stderr


def test_kill_9_under_load_loses_nothing_and_spends_nothing_twice():
    found = loaded(6, 8, 40, kills=2, pause=0.7)
    assert found["answered"] + found["debited and lost in a kill"] == 40


def test_the_api_is_what_its_description_says():
    fuzzed(1, members=("anna",))
