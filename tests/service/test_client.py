"""The client and the command: a curator of its own process, asked as a person would."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from evidence.checks.curator_api import check as fuzzed
from evidence.checks.curator_load import check as loaded
from evidence.curators import running, with_steps
from quiltwork.client import Curator
from quiltwork.client.connection import CuratorConnection
from quiltwork.errors import (
    BudgetExceeded,
    Forbidden,
    InvalidInputError,
    NotFound,
    StorageError,
    UnsupportedError,
)

HISTOGRAM = qw.queries.histogram()


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    with running(tmp_path_factory.mktemp("curator")) as found:
        with_steps(found, budget=1)
        for member, role in (("anna", "analyst"), ("udo", "auditor")):
            found.join(member, role)
        yield found
    assert not (found.folder / "stderr").read_text()  # nor when it is told to stop


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
    with pytest.raises(InvalidInputError, match="epsilon must be greater than 0, not -1"):
        anna.ask("steps", HISTOGRAM, -1)
    with pytest.raises(InvalidInputError, match="cap must be greater"):
        olga.share("steps", "anna", cap=0)
    shares = {share.member: share for share in olga.share("steps", "anna", reserved=0.1).shares}
    assert (shares["anna"].cap, shares["anna"].reserved) == (0.5, 0.1)
    with pytest.raises(InvalidInputError, match="above the budget of 1"):
        olga.share("steps", "anna", cap=2)
    shares = {share.member: share for share in olga.share("steps", "anna", reserved=None).shares}
    assert (shares["anna"].cap, shares["anna"].reserved) == (0.5, 0)
    with pytest.raises(Forbidden, match=r"does not allow ledger\.read"):
        list(anna.ledger("steps"))
    with pytest.raises(NotFound, match="No object of this name"):
        anna.dataset("elsewhere")
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
    with pytest.raises(InvalidInputError, match="did not accept the token"):
        Curator(curator.address, token).me()


def test_tables_holdouts_and_jobs_go_through_the_client(curator, tmp_path):
    olga, anna = curator.as_("olga"), curator.as_("anna")
    file = tmp_path / "rows.csv"
    file.write_text("age,ill\n" + "30,flu\n31,cold\n" * 4)
    made = olga.make_table("clinic", ["age"], "ill", k=4)
    for member in ("north", "south"):
        curator.join(member, "provider")
        olga.admit("table", "clinic", member)
        assert curator.as_(member).give_rows("clinic", file) == 8
    job = olga.publish("clinic")
    while (job := olga.job(job.id)).state in ("queued", "running"):
        time.sleep(0.1)
    assert (job.state, [one.id for one in olga.jobs()]) == ("done", [job.id])
    assert olga.job(job.id) == olga.cancel(job.id) == job  # it is over
    assert olga.table("clinic").state == "published" != made.state
    assert olga.published("clinic").count("\n") == 17
    assert olga.table_report("clinic")["withstands"] >= 1
    assert curator.as_("north").check_own_rows("clinic")["found"]["own_rows"] == 8
    olga.dismiss("table", "clinic", "south")
    assert [one.name for one in curator.as_("south").tables()] == []

    sides = {side: tmp_path / f"{side}.csv" for side in ("train", "holdout")}
    for side, path in sides.items():
        path.write_text("id,y\n" + "".join(f"{side}{n},{n % 2}\n" for n in range(50)))
    asked = {"id_column": "id", "target": "y", "threshold": 0.2, "noise": 0.01, "budget": 2}
    assert olga.register_holdout("board", **sides, **asked).state == "open"
    olga.admit("holdout", "board", "anna")
    with pytest.raises(InvalidInputError, match="Cannot read"):
        olga.register_holdout("late", sides["train"], tmp_path / "none.csv", **asked)
    with pytest.raises(NotFound):  # its name was not taken
        olga.holdout("late")
    with pytest.raises(InvalidInputError, match="occurs twice"):  # nor by tables that are refused
        olga.register_holdout("late", sides["train"], sides["train"], **asked)
    with pytest.raises(NotFound):
        olga.holdout("late")
    assert olga.register_holdout("late", **sides, **asked).state == "open"
    said = {f"{side}{n}": str(n % 2) for side in sides for n in range(50)}
    score = anna.score("board", said, key="s")
    (standing,) = anna.standings("board")
    assert anna.score("board", said, key="s") == score == replace(standing, low=None, high=None)
    for label in (int, np.int64, np.str_):
        typed = {one: label(text) for one, text in said.items()}
        assert anna.score("board", typed, key="s") == score
    for wrong in (tmp_path / "said.csv", "said.csv", [1, 0], None):
        with pytest.raises(InvalidInputError, match="must map every id"):
            anna.score("board", wrong)
    with pytest.raises(InvalidInputError, match="must be text or a number"):
        anna.score("board", {**said, "train0": None})
    with pytest.raises(InvalidInputError, match="An id occurs twice"):
        anna.score("board", {17: 0, "17": 1})
    assert anna.holdout("board").asked == 1 == len(anna.holdouts())
    olga.delete_tables("board")
    assert (anna.holdout("board").state, anna.scores("board")) == ("deleted", [score])

    olga.register_series("days", qw.MarkovChain([[0.5, 0.5]] * 2, states=["a", "b"]), 1, "v")
    assert olga.retire("days").retired == "no longer used"


def test_the_command_asks_a_curator(curator, monkeypatch, capsys, tmp_path):
    from quiltwork.cli.boundary import run

    line = ["ask", "steps", "--epsilon", "0.01"]
    assert run(line) == 2
    assert "--curator" in capsys.readouterr().err
    monkeypatch.setenv("QUILTWORK_CURATOR", curator.address)
    assert run(line) == 2
    assert "QUILTWORK_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("QUILTWORK_TOKEN", curator.tokens["olga"])
    assert run([*line, "--query", "count:walk", "--preview"]) == 0
    assert "% intervals: ±" in capsys.readouterr().out
    path = tmp_path / "answer.json"
    assert run([*line, "--window", "1:10", "--key", "c", "--polish", "-o", str(path)]) == 0
    assert qw.Release.from_json(path.read_text()).length == 100
    for wrong in (["--belief", "b.json"], ["--by", "x"], ["--where", "a=b"]):
        assert run([*line, *wrong]) == 2
    curator.as_("olga").register_counts("town", {"sex": ["f", "m"], "old": ["yes", "no"]}, 1)
    path.write_text("sex,old\nf,yes\nm,no\n")
    curator.as_("olga").add_rows("town", path)
    line = ["ask", "town", "--epsilon", "0.1", "--by", "sex"]
    assert run([*line, "--where", "old=yes"]) == 0
    assert "sex" in capsys.readouterr().out
    for wrong in (["--where", "old>1"], ["--where", "old"], ["--query", "count:walk"]):
        assert run([*line, *wrong]) == 2


def test_accepted_connections_send_at_once():
    """With Nagle's algorithm an answer on a kept connection waits 40 ms for an acknowledgement."""
    from quiltwork.cli.serve import _listener

    with (
        _listener("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.proto == socket.IPPROTO_TCP  # by which asyncio sets it, too
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_curator_does_not_start_with_another_key(curator):
    data = curator.folder / "data"
    command = [sys.executable, "-m", "quiltwork", "serve", "--data", str(data)]
    command += ["--database", curator.database, "--new-token", "olga"]
    before = {path.name for path in (data / "vault").iterdir()}
    for key, said in ((None, "is not set"), ("11" * 32, "another key")):
        given = {} if key is None else {"QUILTWORK_KEY": key}
        environment = {n: v for n, v in os.environ.items() if n != "QUILTWORK_KEY"} | given
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        assert (ran.returncode, ran.stdout) == (3, "")
        assert said in ran.stderr
    assert before == {path.name for path in (data / "vault").iterdir()}


def test_a_token_goes_over_no_open_wire():
    with pytest.raises(InvalidInputError, match="https"):
        Curator("http://curator.example.org", "t")
    for wrong in ("ftp://x", "curator", "http://user@localhost", ""):
        with pytest.raises(InvalidInputError):
            Curator(wrong, "t")
    assert "t0ken" not in repr(Curator("http://localhost:1", "t0ken"))


def test_a_curator_that_is_not_there_is_told():
    with pytest.raises(StorageError, match="cannot be reached"):
        CuratorConnection("http://127.0.0.1:1", "t", pauses=(0.0,)).request("GET", "/v1/me")


def test_the_first_start_shows_a_token_and_later_ones_do_not(curator, tmp_path):
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
    other = tmp_path / "other"
    command[4:] = ["--data", str(other)]
    taken = told("--port", str(curator.port))
    assert (taken.returncode, taken.stdout) == (3, "")
    assert "another --port" in taken.stderr


def test_kill_9_under_load_loses_nothing_and_spends_nothing_twice():
    found = loaded(6, 8, 40, kills=2, pause=0.7)
    assert found["answered"] + found["debited and lost in a kill"] == 40


def test_the_api_is_what_its_description_says():
    fuzzed(1, members=("anna",))
