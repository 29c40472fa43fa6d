"""The end of a competition, in every door: named before it is scored, scored once, read by nothing
before.
"""

from __future__ import annotations

import csv
import json
import shutil
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.cli.boundary import run
from quiltwork.cli.mcp import board_tools
from quiltwork.holdout import board as boards
from quiltwork.holdout.board import Board
from quiltwork.holdout.folders import board_of, create_board
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.prediction_tables import plain_label
from quiltwork.holdout.sealed_log import SealedLog, Secret
from quiltwork.holdout.transcript import Columns

ROWS = 2400
TRUTH = np.random.default_rng(11).integers(0, 2, ROWS)
PLAIN = Scoring(classes=("0", "1"))
RULES = {
    "ladder": {"submissions": 12},
    "one bit": {"submissions": 12},
    "rounds": {"threshold": 0.1, "noise": 0.01, "budget": 6},
}
EACH_RULE = pytest.mark.parametrize("rule", list(RULES))


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("labels.csv", {f"h{i}": TRUTH[i] for i in range(ROWS)})
    write("train.csv", {f"t{i}": i % 2 for i in range(400)})


def write(path, labels):
    lines = [f"{row},{one},g{int(row[1:]) // 2}\n" for row, one in labels.items()]
    Path(path).write_text("id,label,home\n" + "".join(lines))
    Path(path).chmod(0o600)


def make(rule="ladder", folder="race", columns=None, scoring=PLAIN, final=0.5, **options):
    train = "train.csv" if rule == "rounds" else None
    given = {**RULES[rule], **options}
    columns = columns or Columns("id", "label")
    return create_board(
        folder, "labels.csv", columns, scoring, rule, final=final, train=train, **given
    )


def said(right, seed=0, rule="ladder"):
    wrong = np.random.default_rng(seed).random(ROWS) >= right
    told = {f"h{i}": str(TRUTH[i] ^ wrong[i]) for i in range(ROWS)}
    return told | ({f"t{i}": str(i % 2) for i in range(400)} if rule == "rounds" else {})


def kept_rows(board):
    return np.asarray(board._labels.ids)[board._parts[1]]


def compete(board, rule):
    """A competition of three, up to its end; what everybody was told."""
    told = []
    for team, right, seed in (("ada", 0.7, 1), ("bob", 0.9, 2), ("cyd", 0.91, 3), ("ada", 0.6, 4)):
        told.append(board.submit(team, said(right, seed, rule), key=f"{team}{seed}").body())
    board.choose("ada", 4)
    board.choose("ada", 1)
    return told, board.standings().body(), board.promise()


class Frozen(datetime):
    @classmethod
    def now(cls, zone=None):
        return datetime(2026, 1, 1, tzinfo=zone)


@EACH_RULE
def test_nothing_reads_the_kept_labels_before_the_end(rule, monkeypatch):
    """With every one of them changed a competition runs the same, to the byte, up to its end."""
    monkeypatch.setattr(boards, "datetime", Frozen)
    # The noise of rounds is the operating system's: here there is none, but rounding.
    made = make(rule, noise=0, values=50) if rule == "rounds" else make(rule)
    kept = set(kept_rows(made))
    assert 0.45 * ROWS < len(kept) < 0.55 * ROWS
    shutil.copytree("race", "other")
    first = compete(board_of("race"), rule)
    changed = {f"h{i}": TRUTH[i] ^ (f"h{i}" in kept) for i in range(ROWS)}
    good = Path("labels.csv").read_text()
    write("labels.csv", changed)
    assert compete(board_of("other"), rule) == first
    logs = [Path(folder, "board.jsonl").read_bytes() for folder in ("race", "other")]
    assert logs[0] == logs[1]
    with pytest.raises(qw.StorageError, match="not those of the board's creation"):
        board_of("other").finish()
    write("labels.csv", {row: (one if row in kept else 1 - one) for row, one in changed.items()})
    with pytest.raises(qw.StorageError, match="other data"):
        board_of("race").finish()
    Path("labels.csv").write_text(good)
    ended = board_of("race").finish()
    assert {one.team for one in ended.ranking.scores} == {"ada", "bob", "cyd"}


@EACH_RULE
def test_the_scores_of_the_end_are_those_of_what_was_named(rule, monkeypatch):
    # Some splits tell .90 from .91 by chance.
    monkeypatch.setattr("quiltwork.holdout.board.new_secret", lambda: Secret(f"{1:064x}"))
    board = make(rule)
    _, before, _ = compete(board, rule)
    assert before["named"] == {"ada": 1}
    assert (before["final_rows"], before["ranking"]) == (len(kept_rows(board)), None)
    ended = board.finish()
    kept = [int(row[1:]) for row in kept_rows(board)]
    named = {"ada": (1, 0.7, 1), "bob": (2, 0.9, 2), "cyd": (3, 0.91, 3)}
    for one in ended.ranking.scores:
        number, right, seed = named[one.team]
        own = said(right, seed)
        exact = np.mean([own[f"h{i}"] == str(TRUTH[i]) for i in kept])
        assert (one.number, one.value) == (number, pytest.approx(exact))
        assert one.low < exact < one.high
    assert [one.group for one in ended.ranking.scores] == [1, 1, 2]
    assert (ended.ended, ended.left, ended.ranking.rows) == (True, 0, len(kept))
    assert board.finish() == board_of("race").standings() == ended
    with pytest.raises(qw.BudgetExceeded, match="has ended"):
        board.submit("eve", said(0.8, 9, rule))
    again = board.submit("bob", said(0.9, 2, rule))  # what was answered stays answered
    assert (again.repeated, again.number) == (True, 2)
    with pytest.raises(qw.BudgetExceeded, match="has ended"):
        board.choose("bob", 2)


def test_without_a_word_the_last_that_moved_the_board_is_scored_or_the_latest():
    board = make(submissions=20)
    for team, right, seed in (("ada", 0.6, 1), ("bob", 0.5, 2), ("ada", 0.95, 3), ("ada", 0.5, 4)):
        board.submit(team, said(right, seed))
    board.submit("bob", said(0.5, 5))
    board.finish()
    assert dict(board.transcript.chosen) == {"ada": 3, "bob": 5}


def test_only_what_is_there_can_be_named_or_ended():
    board = make()
    with pytest.raises(qw.InvalidInputError, match="There are no submissions yet"):
        board.finish()
    board.submit("ada", said(0.8))
    for team, number in (("bob", 1), ("ada", 2), ("ada", 0), ("ada", True), ("ada", "1")):
        with pytest.raises(qw.InvalidInputError, match=r"has no submission|number must be"):
            board.choose(team, number)
    shutil.rmtree("race")
    bare = make(final=0)
    bare.submit("ada", said(0.8))
    for end in (bare.finish, lambda: bare.choose("ada", 1)):
        with pytest.raises(qw.InvalidInputError, match="no final ranking"):
            end()
    assert not Path("race/submissions").exists()


@pytest.mark.parametrize("share", [-0.1, 1, 2, "half", True, float("nan"), None])
def test_a_share_that_is_none_is_refused_and_nothing_is_made(share):
    with pytest.raises(qw.InvalidInputError, match="final"):
        make(final=share)
    assert not Path("race").exists()


def test_an_end_that_is_interrupted_at_any_write_is_the_same_afterwards(monkeypatch):
    whole = make()
    compete(whole, "ladder")
    shutil.copytree("race", "before")
    expected = whole.finish()
    real = SealedLog._write
    for fail_at in (1, 2, 3):
        shutil.rmtree("race")
        shutil.copytree("before", "race")
        calls = 0

        def fails(self, lines, at=fail_at):
            nonlocal calls
            calls += 1
            if calls == at:
                raise OSError("killed")
            real(self, lines)

        with monkeypatch.context() as patch:
            patch.setattr(SealedLog, "_write", fails)
            with suppress(qw.StorageError):
                board_of("race").finish()
        chosen = board_of("race").transcript.chosen
        assert chosen is None or dict(chosen) == {"ada": 1, "bob": 2, "cyd": 3}
        if chosen is not None:
            with pytest.raises(qw.BudgetExceeded, match="has ended"):
                board_of("race").submit("eve", said(0.99, 8))
        assert board_of("race").finish() == expected


def test_what_was_predicted_cannot_be_exchanged_before_the_end():
    board = make()
    board.submit("ada", said(0.6, 1))
    board.submit("bob", said(0.9, 2))
    mine, theirs = Path("race/submissions/000001"), Path("race/submissions/000002")
    good = mine.read_bytes()
    assert mine.stat().st_mode & 0o777 == 0o600
    for bad in (theirs.read_bytes(), b"", good[:-30], b"{}"):
        mine.write_bytes(bad)
        with pytest.raises(qw.StorageError, match="submission 1 were changed"):
            board.finish()
    mine.unlink()
    with pytest.raises(qw.StorageError, match="submission 1 were changed"):
        board.finish()
    mine.write_bytes(good)
    assert [one.team for one in board.finish().ranking.scores] == ["bob", "ada"]


def test_groups_are_whole_on_one_side_and_become_the_belief_of_the_end():
    board = make(columns=Columns("id", "label", "home"))
    kept = {int(row[1:]) // 2 for row in kept_rows(board)}
    asked = {int(row[1:]) // 2 for row in np.asarray(board._labels.ids)[board._parts[0]]}
    assert not kept & asked
    compete(board, "ladder")
    assert "bets" in board.finish().ranking.method


def test_a_series_keeps_a_block_and_its_belief():
    chain = qw.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    board = make(series=chain, final=0.4)
    at = np.flatnonzero(board._parts[1])
    assert at[-1] - at[0] == len(at) - 1 == round(0.4 * ROWS) - 1
    part = board.begun.about.final
    assert (part.gap > 0, 0 < part.mixing <= 0.05 / 50) == (True, True)
    assert board._parts[0].sum() <= ROWS - len(at) - part.gap
    compete(board, "ladder")
    ended = board_of("race").finish()
    assert "spectral" in ended.ranking.method
    assert ended.ranking.confidence == 0.95


def test_what_comes_after_the_last_announcement_is_kept_and_may_win():
    board = make(announcements=1)
    board.submit("ada", said(0.7, 1))
    late = board.submit("bob", said(0.95, 2))
    assert (late.outcome, late.value, late.better) == ("kept", None, False)
    assert "kept for the final ranking" in late.explain()
    assert board.standings().announcements_left == 0
    assert board.finish().ranking.scores[0].team == "bob"


def test_nobody_can_tell_from_what_is_shown_which_rows_are_kept():
    shown = []
    for folder in ("one", "two"):
        board = make(folder=folder)
        compete(board, "ladder")
        shown.append(set(kept_rows(board)))
        tools = board_tools(folder, "agent")
        texts = [Path(folder, "board.jsonl").read_text(), json.dumps(tools["task"]())]
        assert not [text for text in texts if '"h1"' in text]
        assert tools["ids"]()["ids"] == sorted(f"h{i}" for i in range(ROWS))
    assert len(shown[0] & shown[1]) < 0.9 * len(shown[0])


def test_the_command_line_ends_a_competition_with_a_page_and_a_table(capsys):
    def cli(line):
        return run(line.split()), capsys.readouterr()

    labels = "--labels labels.csv --id id --target label --class 0 --class 1 --submissions 9"
    assert cli(f"leaderboard create race {labels} --announcements 4")[0] == 0
    for team, right in (("ada", 0.7), ("bob", 0.9)):
        lines = [f"{row},{one}\n" for row, one in said(right).items()]
        for name, part in (("a.csv", lines[:1000]), ("b.csv", lines[1000:])):
            Path(name).write_text("id,prediction\n" + "".join(part))
        assert cli(f"leaderboard submit race a.csv b.csv --team {team} --key k")[0] == 0
    again = cli("leaderboard submit race a.csv b.csv --team bob")[1]
    assert "stored answer" in again.out
    code, told = cli("leaderboard submit race a.csv a.csv --team bob")
    assert (code, "also occur in an earlier file" in told.err) == (2, True)
    assert cli("leaderboard choose race 2 --team ada")[0] == 2
    assert cli("leaderboard choose race 1 --team ada")[0] == 0
    ended = cli("leaderboard finish race -o final.csv --report final.html --json")[1]
    ranking = json.loads(ended.out)["ranking"]
    assert [one["team"] for one in ranking["scores"]] == ["bob", "ada"]
    rows = list(csv.reader(Path("final.csv").read_text().splitlines()))
    assert rows[0] == ["rank", "team", "submission", "value", "low", "high", "ranks", "group"]
    assert [row[1] for row in rows[1:]] == ["bob", "ada"]
    page = Path("final.html").read_text()
    assert "Final ranking of race" in page
    assert "bob is significantly ahead of all others" in page
    assert cli("leaderboard export race")[1].out.splitlines()[0] == ",".join(rows[0])


def test_agents_submit_in_parts_name_one_and_see_how_it_ended():
    make()
    tools = board_tools("race", "agent")
    whole = said(0.8)
    parts = [dict(list(whole.items())[at::3]) for at in range(3)]
    assert tools["add"](parts[0])["missing"] == ROWS - len(parts[0])
    with pytest.raises(qw.InvalidInputError, match="have an unknown id"):
        tools["add"]({"nobody": "1"})
    with pytest.raises(qw.InvalidInputError, match="the classes are"):
        tools["add"]({"h1": "yes"})
    with pytest.raises(qw.InvalidInputError, match="have no prediction"):
        tools["submit"]({})
    assert tools["left"]()["submitted"] == 0
    tools["add"](parts[1])
    first = tools["submit"](parts[2])
    assert (first["number"], first["repeated"]) == (1, False)
    assert tools["submit"](whole)["repeated"] is True
    assert tools["submit"](said(0.6, 3))["number"] == 2
    assert tools["choose"](2) == {"named": {"agent": 2}}
    with pytest.raises(qw.InvalidInputError, match="You have no submission 7"):
        tools["choose"](7)
    assert tools["left"]()["ranking"] is None
    ended = board_of("race").finish()
    assert tools["left"]()["ranking"]["scores"][0]["value"] == ended.ranking.scores[0].value


@pytest.mark.parametrize("seed", range(4))
def test_a_climber_is_worth_at_the_end_what_it_is_in_truth(seed, monkeypatch):
    """Nothing predicts these labels. The climber keeps what moved the board, and gains there."""
    # The split comes from the seed: with any other, one family of intervals in twenty may miss.
    monkeypatch.setattr("quiltwork.holdout.board.new_secret", lambda: Secret(f"{seed:064x}"))
    board = make(submissions=80, steps=40)
    rng = np.random.default_rng(seed)
    ids, praised = [f"h{i}" for i in range(ROWS)], []
    for _ in range(60):
        votes = rng.integers(0, 2, ROWS)
        told = {row: str(one) for row, one in zip(ids, votes, strict=True)}
        if board.submit("climber", told).better:
            praised.append(votes)
    best = np.mean(praised, axis=0) > 0.5
    board.submit("climber", {row: str(int(one)) for row, one in zip(ids, best, strict=True)})
    board.submit("honest", said(0.6, seed))
    moved = [one for one in board.standings().places if one.team == "climber"]
    assert len(praised) > 1
    assert moved[0].low <= 0.5 <= moved[0].high
    scores = {one.team: one for one in board.finish().ranking.scores}
    assert scores["climber"].low <= 0.5 <= scores["climber"].high
    assert scores["climber"].high - scores["climber"].low < moved[0].high - moved[0].low
    assert scores["honest"].group == 1 < scores["climber"].group


def test_a_key_is_answered_once_and_never_for_other_predictions():
    board = make()
    first = board.submit("ada", said(0.8), key="k")
    assert board.submit("ada", said(0.8), key="k").number == first.number
    assert board.submit("ada", said(0.8), key="l").number == first.number
    with pytest.raises(qw.InvalidInputError, match="another request"):
        board.submit("ada", said(0.7), key="k")
    assert board.submit("bob", said(0.8), key="k").number == 2  # another team's key
    spelt = {plain_label(row): f"{one}.0" for row, one in said(0.8).items()}
    assert board.submit("eve", spelt).number == 3
    assert board.standings().submitted == 3
    assert isinstance(board, Board)
