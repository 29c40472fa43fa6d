"""Leaderboards over a folder: what they tell, what they refuse for free, what survives."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas
import pytest

import quiltwork as qw
from quiltwork.holdout import folders
from quiltwork.holdout.board_certificates import certify
from quiltwork.holdout.folders import board_of, create_board
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.prediction_tables import read_predictions
from quiltwork.holdout.sealed_log import SealedLog, chain_line, secret_path
from quiltwork.holdout.transcript import Columns

ROWS = 3000
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, 2, 2 * ROWS)
COLUMNS = Columns("id", "label")
PLAIN = Scoring(classes=("0", "1"))
MODES = pytest.mark.parametrize("mode", ["ladder", "one bit"])


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    """Labels of the holdout, with rows in pairs, and training labels."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("train.csv", ROWS), ("labels.csv", 0)):
        rows = [f"{i},{LABELS[i]},{i // 2}" for i in range(first, first + ROWS)]
        (tmp_path / name).write_text("\n".join(["id,label,home", *rows]) + "\n")


def make(scoring=None, columns=COLUMNS, submissions=20, **options):
    given = (columns, scoring or PLAIN, options.pop("mode", "ladder"))
    made = create_board("race", "labels.csv", *given, submissions=submissions, **options)
    return made.standings()


def submit(folder, team, predictions, **options):
    return board_of(folder).submit(team, predictions, **options)


def leaderboard(folder):
    return board_of(folder).standings()


def end(folder):
    return board_of(folder).finish()


def said(right, seed=0):
    """Predictions that are right in a share of the rows."""
    wrong = np.random.default_rng(seed).random(ROWS) >= right
    return {str(i): str(LABELS[i] ^ wrong[i]) for i in range(ROWS)}


@MODES
def test_a_race_from_start_to_end(mode):
    asked = make(mode=mode)
    assert (asked.mode, asked.left, asked.identity, asked.metric) == (mode, 20, "id", "accuracy")
    first = submit("race", "ada", said(0.6))
    second = submit("race", "bob", said(0.95))
    third = submit("race", "eve", said(0.6))
    if mode == "one bit":
        assert (second.value, leaderboard("race").places[0].value) == (None, None)
        end("race")
    found = leaderboard("race")
    assert [one.number for one in (first, second, third)] == [1, 2, 3]
    assert (third.left, found.left, found.submitted) == (17, 17 * (mode == "ladder"), 3)
    assert (found.places[0].team, found.places[0].number) == ("bob", 2)
    assert found.places[0].low <= 0.95 <= found.places[0].high
    assert found.places[0].value == pytest.approx(0.95, abs=0.03)
    assert [one.better for one in (first, second, third)] == [True, True, False]
    assert third.value is None


def test_ids_that_do_not_match_are_refused_with_counts_and_cost_nothing():
    make()
    whole = said(0.9)
    short = dict(list(whole.items())[3:]) | {"x": "1"}
    with pytest.raises(qw.InvalidInputError, match=r"3 of 3,000 rows have no prediction, and 1 of"):
        submit("race", "ada", short)
    with pytest.raises(qw.InvalidInputError, match="1 prediction cannot be scored"):
        submit("race", "ada", {**whole, "7": " "})
    with pytest.raises(qw.InvalidInputError, match="the classes are '0', '1'"):
        submit("race", "ada", dict.fromkeys(whole, "yes"))
    with pytest.raises(qw.InvalidInputError, match="are probabilities, but accuracy compares"):
        submit("race", "ada", {row: f"{0.1 + 0.8 * int(one)}" for row, one in whole.items()})
    with pytest.raises(qw.InvalidInputError, match="name is empty"):
        submit("race", " ", whole)
    for team in ("\x1b[2Jada", "ada\nbob", "=cmd|' /C calc'!A0", "ada\u202e"):
        with pytest.raises(qw.InvalidInputError, match="for a command"):
            submit("race", team, whole)
    assert leaderboard("race").submitted == 0


@pytest.mark.parametrize("wrong", ["YES", "1", "0", "nan", "yes ", "maybe"])
@MODES
def test_a_label_outside_the_classes_is_refused_and_not_counted(tmp_path, wrong, mode):
    rows = [f"{i},{('no', 'yes')[LABELS[i]]}" for i in range(ROWS)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    make(Scoring(classes=("no", "yes")), mode=mode)
    right = {str(i): ("no", "yes")[LABELS[i]] for i in range(ROWS)}
    with pytest.raises(qw.InvalidInputError, match=r"1 prediction .* '7': the classes are 'no'"):
        submit("race", "ada", {**right, "7": wrong})
    assert leaderboard("race").submitted == 0
    assert submit("race", "ada", right).better


def test_classes_are_not_read_from_the_labels(tmp_path):
    """A class that no row has may be predicted; any text may where it was said at the start."""
    make(Scoring(classes=("0", "1", "2")))
    assert submit("race", "ada", dict.fromkeys(said(1.0), "2")).better
    make_again(scoring=Scoring(classes=("*",)))
    assert submit("race", "ada", dict.fromkeys(said(1.0), "anything")).better
    with pytest.raises(qw.InvalidInputError, match="needs labels here"):
        submit("race", "ada", dict.fromkeys(said(1.0), " "))


def test_groups_become_the_belief_and_pairs_of_groups_that_of_auc():
    plain = make()
    grouped = make_again(columns=Columns("id", "label", "home"))
    assert grouped.width > 1.2 * plain.width  # rows in pairs count half
    auc = make_again(scoring=Scoring("roc_auc", floor=0.4), columns=Columns("id", "label", "home"))
    assert auc.rows == ROWS
    chances = {str(i): str(0.9 if LABELS[i] else 0.2) for i in range(ROWS)}
    assert submit("race", "ada", chances).value > 0.9


def test_auc_of_a_file_in_order_of_classes_is_true_and_its_pairs_stay(tmp_path):
    classes = LABELS[np.arange(ROWS) // 2]
    order = np.argsort(classes, kind="stable")
    rows = [f"{i},{classes[i]},{classes[i]}-{i // 2}" for i in order]  # groups tell classes
    (tmp_path / "labels.csv").write_text("\n".join(["id,label,home", *rows]) + "\n")
    make(Scoring("roc_auc", floor=0.4), Columns("id", "label", "home"), submissions=3)
    submit("race", "ada", {str(i): str(LABELS[i // 2]) for i in range(ROWS)})
    first = leaderboard("race").places[0]
    assert first.value > 0.95
    assert first.high == 1


def make_again(**options):
    shutil.rmtree("race")
    return make(**options)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "best"}, "rule must be"),
        ({"scoring": Scoring("f1", classes=("0", "1"))}, "floor="),
        ({"scoring": Scoring()}, "give the public list"),
        ({"scoring": Scoring(classes=("0",))}, "at least two classes"),
        (
            {"scoring": Scoring(classes=("no", "yes"))},
            r"3,000 targets .* the first in row 1; the cl",
        ),
        (
            {"scoring": Scoring("f1", classes=("0", "2"), floor=0.3)},
            "positive class '1' is not among",
        ),
        ({"scoring": Scoring("neg_brier_score", classes=("0", "1"))}, "has no classes"),
        ({"scoring": Scoring("neg_brier_score"), "columns": Columns("id", "home")}, "0 or 1"),
        ({"columns": Columns("label", "id")}, "occurs twice"),
        ({"columns": Columns("id")}, "needs a target"),
    ],
)
def test_boards_that_could_not_keep_a_promise_are_refused(change, words):
    with pytest.raises(qw.InvalidInputError, match=words):
        make(**change)


def test_labels_that_would_be_taken_for_probabilities_make_no_board(tmp_path):
    rows = [f"{i},{LABELS[i] / 2}" for i in range(ROWS)]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    with pytest.raises(qw.InvalidInputError, match="Use words as labels"):
        make(Scoring(classes=("*",)))
    stars = [f"{i},{(i % 4 + 1) / 2}" for i in range(ROWS)]  # 0.5 to 2
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *stars]) + "\n")
    make(Scoring(classes=("0.5", "1", "1.5", "2")))
    assert submit("race", "ada", {str(i): str((i % 4 + 1) / 2) for i in range(ROWS)}).better
    make_again(scoring=Scoring("neg_mean_absolute_error", limits=(0, 2)))
    assert submit("race", "ada", dict.fromkeys(map(str, range(ROWS)), "0.5")).better


def test_metrics_of_several_means_are_scored():
    make(Scoring("f1", floor=0.5, classes=("0", "1")), submissions=4)
    found = submit("race", "ada", said(0.8))
    assert (found.value, found.left) == (pytest.approx(0.8, abs=0.05), 3)


def test_a_told_score_ends_a_board_of_one_bit_and_no_other():
    make(mode="one-bit", submissions=2)
    with pytest.raises(qw.InvalidInputError, match="There are no submissions"):
        end("race")
    submit("race", "ada", said(0.8))
    assert "No score was published" in certify("race", "key.pem").statement
    assert end("race").places[0].value == pytest.approx(0.8, abs=0.03)
    with pytest.raises(qw.BudgetExceeded, match="has ended"):
        submit("race", "ada", said(0.9))
    assert end("race") == leaderboard("race")
    make_again()
    with pytest.raises(qw.InvalidInputError, match="no final ranking"):
        end("race")


def test_the_last_score_spells_out_no_label():
    told = set()
    for flipped in range(4):  # the digits of a mean of squares would be labels
        chances = {str(i): str(0.5 - (2.0 ** -(i + 2) if i < 18 else 0)) for i in range(ROWS)}
        chances |= {str(flipped): "0.5"}
        shutil.rmtree("race", ignore_errors=True)
        make(Scoring("neg_brier_score"), mode="one bit", steps=16)
        submit("race", "ada", chances)
        told.add(end("race").places[0].value)
    assert told == {-0.25}


def test_a_lift_that_was_interrupted_stays_with_its_team(monkeypatch):
    make(mode="one bit")
    submit("race", "ada", said(0.6))
    real = SealedLog.append

    def killed(self, bodies, secret):
        if "outcome" in bodies[0]:
            raise OSError("killed")
        return real(self, bodies, secret)

    with monkeypatch.context() as patch, suppress(OSError):
        patch.setattr(SealedLog, "append", killed)
        submit("race", "bob", said(0.95))
    assert submit("race", "eve", said(0.9)).better is False
    found = end("race")
    assert [(one.team, one.number) for one in found.places] == [("bob", 2), ("ada", 1)]
    assert found.places[0].low <= 0.95 <= found.places[0].high


def test_six_who_submit_at_once_wait_for_each_other_and_the_budget_holds():
    make(submissions=5)
    program = (
        "import sys; from quiltwork.holdout.folders import board_of\n"
        "from quiltwork.errors import BudgetExceeded\n"
        "said = dict(line.split(',') for line in open('p.csv').read().split())\n"
        "try: print(board_of('race').submit(sys.argv[1], said).number)\n"
        "except BudgetExceeded: print('spent')\n"
    )
    with open("p.csv", "w") as file:
        file.writelines(f"{row},{one}\n" for row, one in said(0.7).items())
    run = [
        subprocess.Popen([sys.executable, "-c", program, f"t{i}"], stdout=-1, text=True)
        for i in range(6)
    ]
    told = sorted(one.communicate()[0].strip() for one in run)
    assert told == ["1", "2", "3", "4", "5", "spent"]


def test_forty_threads_never_get_more_than_the_budget():
    board = qw.Ladder(LABELS, submissions=25)

    def once(number):
        try:
            board.submit(f"t{number}", lambda rows: rows == 1)
        except qw.BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(40) as pool:
        assert sum(pool.map(once, range(40))) == 25


@MODES
def test_a_process_killed_at_any_write_regains_nothing(mode, monkeypatch):
    """Every write of one submission fails in turn; the count never falls, the bar never sinks."""
    make(mode=mode, submissions=40)
    submit("race", "ada", said(0.6))
    real, counted = os.fsync, 1
    for fail_at in range(1, 12):
        calls = 0

        def fails(descriptor, at=fail_at):
            nonlocal calls
            calls += 1
            if calls == at:
                raise OSError("killed")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fails)
        with suppress(qw.StorageError):
            submit("race", "bob", said(0.9))
        monkeypatch.setattr(os, "fsync", real)
        now = leaderboard("race")
        assert now.submitted >= counted
        counted = now.submitted
    moves = [one.number for one in now.places]
    assert len(moves) <= 2, "one lift, however often it was interrupted"


def test_lines_chained_anew_cut_or_added_are_neither_shown_nor_certified(tmp_path):
    make()
    submit("race", "ada", said(0.6))
    submit("race", "bob", said(0.9))
    path = folders.board_path("race")
    lines = path.read_text().splitlines()
    edited = [line.replace("ada", "eve") for line in lines]
    for at in range(1, len(edited)):
        body = {k: v for k, v in json.loads(edited[at]).items() if k != "previous"}
        edited[at] = chain_line(body, edited[at - 1])
    for wrong in (edited, lines[:-1]):
        path.write_text("\n".join(wrong) + "\n")
        for read in (leaderboard, lambda folder: certify(folder, "key.pem")):
            with pytest.raises(qw.StorageError, match="cut, edited or replaced"):
                read("race")
    added = chain_line({"number": 3, "label": "eve", "code": "é"}, lines[-1])
    path.write_text("\n".join([*lines, added]) + "\n")
    assert leaderboard("race").submitted == 2
    with pytest.raises(qw.StorageError, match="added without the secret"):
        submit("race", "fay", said(0.6))
    assert "eve" not in {place.team for place in leaderboard("race").places}
    path.write_text("".join(line + "\n" for line in lines))
    assert submit("race", "fay", said(0.6)).number == 3


@MODES
def test_an_old_secret_beside_new_lines_is_refused(mode, monkeypatch):
    """Every secret there ever was, put back: the bar sinks for none, and lifts stay with teams."""
    make(mode=mode)
    submit("race", "ada", said(0.5))
    path, older = secret_path(folders.board_path("race")), []
    real = SealedLog.keep

    def keeps(self, secret):
        older.append(path.read_text())
        real(self, secret)

    with monkeypatch.context() as patch:
        patch.setattr(SealedLog, "keep", keeps)
        submit("race", "bob", said(0.9))
    for secret in older[:-1]:  # the last lacks one line, as after an interruption
        path.write_text(secret)
        with pytest.raises(qw.StorageError, match=r"older (copy|than its transcript)"):
            submit("race", "eve", said(0.7))
    path.write_text(older[0])
    for read in (leaderboard, lambda folder: certify(folder, "key.pem")):
        with pytest.raises(qw.StorageError, match="older copy"):
            read("race")  # it would tell of fewer submissions than there were
    path.write_text(older[-1])
    assert submit("race", "eve", said(0.7)).better is False
    assert leaderboard("race").places[0].team == "bob"


def test_a_folder_takes_one_board():
    make()
    before = [(path, path.read_bytes()) for path in sorted(Path("race").iterdir())]
    with pytest.raises(qw.StorageError, match="Choose another one"):
        make()
    assert before == [(path, path.read_bytes()) for path in sorted(Path("race").iterdir())]


def test_nothing_that_anybody_may_see_holds_a_label():
    canary = "zyxw-canary"
    with open("labels.csv", "w") as file:
        file.write("id,label\n" + "".join(f"{i},{canary if i % 2 else 'no'}\n" for i in range(400)))
    make(Scoring(classes=("no", canary)))
    submit("race", "ada", {str(i): "no" for i in range(400)})
    shown = [path.read_text() for path in folders.board_path("race").parent.iterdir()]
    shown = [text.replace(f'"{canary}"', "", 1) for text in shown]  # a class is public, once
    shown.append(leaderboard("race").to_json())
    with pytest.raises(qw.InvalidInputError) as refused:
        submit("race", "ada", {"1": "no"})
    assert canary not in "".join([*shown, str(refused.value)])


def test_predictions_are_read_from_csv_parquet_and_json(tmp_path):
    pandas.DataFrame({"id": [1, 2], "prediction": [0.5, 1.0]}).to_parquet("p.parquet")
    (tmp_path / "p.csv").write_text("id,prediction\n1,0.5\n2,1.0\n")
    (tmp_path / "p.json").write_text('{"1": 0.5, "2": 1.0}')
    (tmp_path / "q.json").write_text('[{"id": 1, "prediction": 0.5}, {"id": 2, "prediction": 1.0}]')
    for name in ("p.csv", "p.parquet", "p.json", "q.json"):
        found = read_predictions(name, "id")
        assert {row: float(one) for row, one in found.items()} == {"1": 0.5, "2": 1.0}
    for text in ("5", "[1]", '{"1": null}', '{"1": 1, "1.0": 2}'):
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(qw.InvalidInputError):
            read_predictions("wrong.json", "id")
