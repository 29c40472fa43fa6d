"""Holdouts: predictions by row id, answered at once, within rounds that the ledger pays for."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
from sklearn import metrics as peers

import quiltwork as qw
from quiltwork.holdout.metrics import CLIP, NAMES
from quiltwork.service import holdouts
from quiltwork.service.features import open_service
from quiltwork.service.routes import Service

CANARY = "canary-5d1e"
CSV = {"Content-Type": "text/csv"}
RULES = {
    "name": "board",
    "id_column": "id",
    "target": "label",
    "threshold": 0.1,
    "noise": 0.002,
    "budget": 3,
    "metrics": {"accuracy": None, "neg_mean_absolute_error": [0, 1]},
}
LABELS = {f"{side}{n}": n % 2 for side in "th" for n in range(400)}


def table(side):
    lines = [
        f"{name},{label},{CANARY}{name}\n" for name, label in LABELS.items() if name[0] == side
    ]
    return "id,label,remark\n" + "".join(lines)


def give(team, side, text):
    path = f"/v1/holdouts/board/tables/{side}"
    return team.ask("olga", "PUT", path, content=text.encode(), headers=CSV)


@pytest.fixture
def board(team):
    """A holdout of 400 rows beside as many training rows, open to anna."""
    team.told("olga", "POST", "/v1/holdouts", json=RULES)
    for side, letter in (("train", "t"), ("holdout", "h")):
        assert give(team, side, table(letter)).json()["rows"] == 400
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    team.told("olga", "PUT", "/v1/holdouts/board/access/anna")
    return team


def predictions(right_on_train=1.0, right_on_holdout=1.0, seed=0):
    """The truth, wrong on a share of each side."""
    draw = np.random.default_rng(seed)
    share = {"t": right_on_train, "h": right_on_holdout}
    return {
        name: str(label if draw.random() < share[name[0]] else 1 - label)
        for name, label in LABELS.items()
    }


def score(team, said, key, member="anna", metric="accuracy"):
    body = {"predictions": said, "metric": metric}
    return team.ask(member, "POST", "/v1/holdouts/board/questions", key, json=body)


def test_answers_are_those_of_the_training_rows_until_a_question_overfits(board):
    said = predictions(0.9, 0.9)
    share = np.mean([said[name] == str(label) for name, label in LABELS.items() if name[0] == "t"])
    found = score(board, said, "a").json()
    assert (found["value"], found["overfit"], found["remaining"]) == (share, False, 3)
    overfit = score(board, predictions(1.0, 0.5), "b").json()
    assert overfit["overfit"]
    assert overfit["remaining"] == 2
    assert abs(overfit["value"] - 0.5) < 0.2
    error = score(board, predictions(0.9, 0.9), "c", metric="neg_mean_absolute_error").json()
    assert error["value"] == pytest.approx(share - 1)


def test_rounds_are_debited_and_end(board):
    answers = [score(board, predictions(1.0, 0.5, n), f"k{n}") for n in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 409]
    status = board.service.ledger.status("holdout.board")
    assert status.debits == 3
    # independent rows: each round costs the level of one, 9/(4 sigma n) in all for B = 1
    assert status.total == pytest.approx(3 * 9 / (4 * 0.002 * 400), rel=0.05)
    assert status.total <= status.budget
    board.service.ledger.verify()


def test_a_key_is_answered_once_also_after_a_crash_before_it_was_kept(board, settings):
    said = predictions(1.0, 0.5)
    first = score(board, said, "a").json()
    assert score(board, said, "a").json() == first
    changed = score(board, predictions(0.4, 0.5), "a")
    assert changed.status_code == 422
    other = open_service(settings)  # a new process goes on where this one was
    stored = other.storage.read(lambda t: holdouts.HOLDOUTS.current(t, "board"))
    assert len(holdouts.transcript_of(other, stored).entries) == 1
    other.ledger.close()


def test_ids_that_do_not_match_are_counted_and_nothing_is_spent(board):
    said = predictions()
    for name in ("t0", "h0", "h1"):
        del said[name]
    said["nobody"] = "1"
    refused = score(board, said, "a")
    assert refused.status_code == 422
    assert "3 of 800 rows have no prediction, and 1 of 798" in refused.json()["detail"]
    assert score(board, {**predictions(), "t0": "maybe"}, "b").status_code == 422
    assert score(board, predictions(), "c", metric="neg_brier_score").status_code == 422
    assert board.told("anna", "GET", "/v1/holdouts/board")["asked"] == 0
    assert board.service.ledger.status("holdout.board").debits == 0


def test_predictions_may_come_as_a_file_and_standings_show_the_best_of_each(board):
    board.join("ben", "analyst")
    board.told("olga", "PUT", "/v1/holdouts/board/access/ben")
    text = "id,prediction\n" + "".join(f"{k},{v}\n" for k, v in predictions(0.8, 0.8).items())
    path = "/v1/holdouts/board/questions?metric=accuracy"
    sent = board.ask("ben", "PUT", path, "k", content=text.encode(), headers=CSV)
    assert sent.status_code == 200
    for key, share in (("a", 0.7), ("b", 0.9), ("c", 0.75)):
        score(board, predictions(share, share), key)
    items = board.told("ben", "GET", "/v1/holdouts/board/standings")["items"]
    assert [one["member"] for one in items] == ["anna", "ben"]
    assert items[0]["value"] > items[1]["value"] == sent.json()["value"]


def test_an_open_holdout_never_changes_and_others_do_not_see_it(board):
    assert give(board, "train", table("t")).status_code == 422
    board.join("carl", "analyst")
    for path in ("", "/standings"):
        assert board.ask("carl", "GET", f"/v1/holdouts/board{path}").status_code == 404
    assert score(board, predictions(), "a", member="carl").status_code == 404
    assert score(board, predictions(), "a", member="udo").status_code == 403


def test_a_holdout_opens_only_with_tables_that_go_together(team):
    team.told("olga", "POST", "/v1/holdouts", json=RULES)
    opening = "/v1/holdouts/board/opening"
    assert "first" in team.ask("olga", "POST", opening).json()["detail"]
    give(team, "train", table("t"))
    give(team, "holdout", table("t"))
    refused = team.ask("olga", "POST", opening)
    assert refused.status_code == 422
    assert "occurs twice" in refused.json()["detail"]
    give(team, "holdout", table("h"))
    assert team.told("olga", "POST", opening)["state"] == "open"


def test_no_answer_or_error_holds_what_only_a_row_holds(board, monkeypatch):
    seen = []
    real = board.client.request

    def watched(*args, **rest):
        answer = real(*args, **rest)
        seen.append(answer.text)
        return answer

    monkeypatch.setattr(board.client, "request", watched)
    for n, said in enumerate(
        ({"t0": "1"}, {"x": CANARY[:3]}, predictions(), predictions(1.0, 0.5))
    ):
        score(board, said, f"k{n}")
    give(board, "train", f"id\n{CANARY},{CANARY}\n")
    give(board, "nowhere", table("t"))
    for member in board.secrets:
        for path in ("", "/board", "/board/standings"):
            board.ask(member, "GET", f"/v1/holdouts{path}")
        board.ask(member, "GET", "/v1/log")
    assert seen
    assert not [text for text in seen if CANARY in text]


@pytest.fixture
def ladder(team):
    """A competition on labels alone, open to anna and ben, with three attempts each."""
    asked = {"name": "board", "id_column": "id", "target": "label", "budget": 5, "mode": "ladder"}
    unsaid = team.ask("olga", "POST", "/v1/holdouts", json=asked)
    assert (unsaid.status_code, "give the public list" in unsaid.json()["detail"]) == (422, True)
    asked |= {"attempts": 3, "classes": ["0", "1"]}
    assert team.told("olga", "POST", "/v1/holdouts", json=asked)["classes"] == ["0", "1"]
    assert give(team, "train", table("t")).status_code == 422
    give(team, "holdout", table("h"))
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    team.join("ben", "analyst")
    for member in ("anna", "ben"):
        team.told("olga", "PUT", f"/v1/holdouts/board/access/{member}")
    return team


def of_holdout(share, seed=0):
    return {name: one for name, one in predictions(1, share, seed).items() if name[0] == "h"}


def test_a_ladder_tells_what_beats_the_best_and_everybody_has_attempts(ladder):
    first = score(ladder, of_holdout(0.6), "a").json()
    right = np.mean([of_holdout(0.6)[f"h{n}"] == str(n % 2) for n in range(400)])
    shown = ladder.told("anna", "GET", "/v1/holdouts/board")
    assert abs(first["value"] - right) <= shown["promise"]["tolerance"]
    assert (shown["attempts_left"], shown["remaining"], shown["mode"]) == (2, 4, "ladder")
    assert score(ladder, of_holdout(0.6), "a").json() == first
    assert score(ladder, of_holdout(0.5, 1), "b").json()["value"] is None
    best = score(ladder, of_holdout(1.0), "a", member="ben").json()
    assert best["value"] > first["value"]
    standing = ladder.told("anna", "GET", "/v1/holdouts/board/standings")["items"]
    assert [one["member"] for one in standing] == ["ben", "anna"]
    assert score(ladder, of_holdout(0.7), "c").status_code == 200
    refused = score(ladder, of_holdout(0.7, 2), "d")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "You have used all of your 3 attempts.",
    )
    assert score(ladder, of_holdout(0.7), "b", member="ben").status_code == 200
    spent = score(ladder, of_holdout(0.7, 3), "c", member="ben").json()["detail"]
    assert "All 5 submissions" in spent
    assert "holdout.board" not in {one.dataset for one in ladder.service.ledger.datasets()}


def test_everybody_gets_her_own_answers_and_the_owner_all_as_csv_too(ladder):
    for member, share in (("anna", 0.6), ("ben", 0.9), ("anna", 0.5)):
        score(ladder, of_holdout(share), f"{share}", member=member)
    own = ladder.told("anna", "GET", "/v1/holdouts/board/scores")["items"]
    assert [(one["number"], one["member"]) for one in own] == [(1, "anna"), (3, "anna")]
    lines = ladder.told("olga", "GET", "/v1/holdouts/board/scores/file")["content"].splitlines()
    assert lines[0] == "number,member,metric,value,overfit,at"
    assert [line.split(",")[1] for line in lines[1:]] == ["anna", "ben", "anna"]
    assert lines[3].split(",")[3] == ""  # no better than the best, and nothing more is told
    assert ladder.ask("udo", "GET", "/v1/holdouts/board/scores").status_code == 403


@pytest.mark.parametrize("kind", ["ladder", "board"])
def test_a_label_outside_the_classes_is_refused_and_not_counted(request, kind):
    team = request.getfixturevalue(kind)
    whole = of_holdout(1.0) if kind == "ladder" else predictions()
    for wrong in ("YES", "nan", "2", "-1"):
        refused = score(team, {**whole, "h7": wrong}, f"key-{wrong}")
        assert (refused.status_code, "for id 'h7'" in refused.json()["detail"]) == (422, True)
    assert team.told("anna", "GET", "/v1/holdouts/board")["asked"] == 0
    assert score(team, whole, "right").status_code == 200


def test_a_ladder_is_answered_once_for_each_key_also_after_a_crash(ladder, monkeypatch):
    first = score(ladder, of_holdout(0.6), "a").json()
    assert score(ladder, of_holdout(0.6), "a").json() == first
    assert score(ladder, of_holdout(0.6), "another").json() == first  # word for word the same
    refused = score(ladder, {"1": "0", "1.0": "1"}, "b")
    assert (refused.status_code, "repeat an id" in refused.json()["detail"]) == (422, True)
    with monkeypatch.context() as patch:  # killed while it is scored: counted, and scored anew
        patch.setattr(qw.Ladder, "_place", lambda *_: 1 / 0)
        assert score(ladder, of_holdout(0.9), "b").status_code == 500
    assert score(ladder, of_holdout(0.9), "b").json()["value"] > first["value"]
    assert ladder.told("anna", "GET", "/v1/holdouts/board")["attempts_left"] == 0
    other = score(ladder, of_holdout(0.7), "a")  # not the answer to what the key asked before
    assert (other.status_code, "another request" in other.json()["detail"]) == (422, True)
    other = score(ladder, of_holdout(0.7), "c")
    assert (other.status_code, "all of your 3 attempts" in other.json()["detail"]) == (409, True)


def test_processes_that_answer_at_once_give_nobody_more_than_her_attempts(ladder, monkeypatch):
    # Locks are not what other processes share.
    monkeypatch.setattr(Service, "lock_for", lambda *_: Lock())

    def answered(n):
        return score(ladder, of_holdout(n / 12), f"{n // 2}", member=("anna", "ben")[n % 2])

    with ThreadPoolExecutor(6) as pool:
        told = [one.json() for one in pool.map(answered, [*range(12)] * 2)]
    numbers = {one["number"]: one["member"] for one in told if "number" in one}
    assert sorted(numbers) == [1, 2, 3, 4, 5]
    assert max(list(numbers.values()).count(name) for name in ("anna", "ben")) <= 3


def on_disk(team, text):
    files = [path for path in team.service.settings.data.parent.rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes()]


@pytest.mark.parametrize("mode", ["rounds", "ladder"])
def test_deleted_tables_are_gone_and_answers_stay(team, mode):
    rules = {**RULES, "metrics": {"accuracy": None}, "mode": mode}
    if mode == "ladder":
        del rules["threshold"], rules["noise"]
        rules["classes"] = ["0", "1"]
    team.told("olga", "POST", "/v1/holdouts", json=rules)
    sides = ("train", "holdout") if mode == "rounds" else ("holdout",)
    said = {f"{CANARY}{side}{n}": str(n % 2) for side in sides for n in range(50)}
    for side in sides:
        lines = [f"{name},{one}\n" for name, one in said.items() if side in name]
        assert give(team, side, "id,label\n" + "".join(lines)).status_code == 200
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    team.told("olga", "PUT", "/v1/holdouts/board/access/anna")
    first = score(team, said, "a").json()
    (secret,) = (team.service.settings.data / "holdouts").glob("*.secret")
    key = json.loads(secret.read_text())["key"]
    assert on_disk(team, CANARY)
    assert on_disk(team, key)
    assert team.ask("anna", "DELETE", "/v1/holdouts/board/tables").status_code == 403
    for _ in range(2):  # once more changes nothing
        team.told("olga", "DELETE", "/v1/holdouts/board/tables")
    assert on_disk(team, CANARY) == on_disk(team, key) == []
    assert not team.service.vault.names()
    assert score(team, said, "a").json() == first
    (standing,) = team.told("anna", "GET", "/v1/holdouts/board/standings")["items"]
    assert {**standing, "low": None, "high": None} == first
    assert standing["low"] < first["value"] <= standing["high"]
    shown = team.told("olga", "GET", "/v1/holdouts/board")
    assert (shown["state"], shown["asked"], shown["remaining"]) == ("deleted", 1, 0)
    other = {**said, next(iter(said)): "1"}
    refused = score(team, other, "b"), give(team, "holdout", table("h"))
    again = team.ask("olga", "POST", "/v1/holdouts/board/opening")
    assert {one.json()["kind"] for one in (*refused, again)} == {"budget-exceeded"}
    assert team.ask("olga", "POST", "/v1/holdouts", json=rules).status_code == 409
    if mode == "rounds":
        assert team.service.ledger.status("holdout.board").retired == "its rows were deleted"
    assert team.told("udo", "POST", "/v1/log/verification")["intact"]


CHANCES = dict(
    zip(
        LABELS,
        np.clip(
            0.3 + 0.4 * (np.arange(800) % 2) + np.random.default_rng(2).normal(0, 0.3, 800), 0, 1
        ),
        strict=True,
    )
)
"""Probabilities of the label 1, informative ones."""
PEERS = {
    "accuracy": lambda true, said: peers.accuracy_score(true, said > 0.5),
    "neg_brier_score": lambda true, said: -peers.brier_score_loss(true, said),
    "neg_log_loss": lambda true, said: -peers.log_loss(true, np.clip(said, CLIP, 1 - CLIP)),
    "neg_mean_absolute_error": lambda true, said: -peers.mean_absolute_error(true, said),
    "neg_mean_squared_error": lambda true, said: -peers.mean_squared_error(true, said),
    "neg_root_mean_squared_error": lambda true, said: -peers.root_mean_squared_error(true, said),
    "r2": peers.r2_score,
    "f1": lambda true, said: peers.f1_score(true, said > 0.5),
    "roc_auc": peers.roc_auc_score,
}
SEVERAL = ("f1", "precision", "recall", "balanced_accuracy", "roc_auc")


def asked_for(name, side):
    """What is said about one side for a metric, and scikit-learn's value of it."""
    rows = [row for row in LABELS if row[0] == side]
    true, said = (np.array([one[row] for row in rows]) for one in (LABELS, CHANCES))
    if name == "roc_auc":  # of secret pairs, so only an order without a fault has a certain value
        said = said * 0.1 + true * 0.5
    given = (said > 0.5).astype(int) if name in ("accuracy", "f1") else said
    return dict(zip(rows, map(str, given.tolist()), strict=True)), PEERS[name](true, said)


def test_rounds_answer_every_metric_of_one_mean_as_scikit_learn_does(team):
    ends = {name: [0, 1] if "error" in name or name == "r2" else None for name in NAMES}
    one_mean = {name: limits for name, limits in ends.items() if name not in SEVERAL}
    rules = {**RULES, "metrics": one_mean, "variance": 0.25}  # of 0 and 1 by turns
    team.told("olga", "POST", "/v1/holdouts", json=rules)
    for side in ("train", "holdout"):
        give(team, side, table(side[0]))
    promise = team.told("olga", "POST", "/v1/holdouts/board/opening")["promise"]
    stored = team.service.read(lambda t: holdouts.HOLDOUTS.current(t, "board"))
    width = holdouts.transcript_of(team.service, stored).promise().tolerance
    assert promise["tolerance"] == pytest.approx(width / 0.25)  # R² moves by four times its mean
    for name in one_mean:
        (trained, value), (held, _) = asked_for(name, "t"), asked_for(name, "h")
        told = score(team, {**trained, **held}, name, member="olga", metric=name).json()
        assert not told["overfit"]
        assert told["value"] == pytest.approx(value), name
    for name in SEVERAL:
        asked = {**rules, "name": "other", "metrics": {name: None}}
        refused = team.ask("olga", "POST", "/v1/holdouts", json={**asked, "floor": 0.3})
        assert "several means" in refused.json()["detail"]
        assert (
            "needs a floor" in team.ask("olga", "POST", "/v1/holdouts", json=asked).json()["detail"]
        )


@pytest.mark.parametrize("name", ["f1", "roc_auc"])
def test_a_ladder_takes_metrics_of_several_means_and_of_pairs(team, name):
    told = {"floor": 0.4, "classes": ["0", "1"]}
    asked = {"name": "board", "id_column": "id", "target": "label", "budget": 5, "mode": "ladder"}
    team.told("olga", "POST", "/v1/holdouts", json={**asked, "metrics": {name: None}, **told})
    give(team, "holdout", table("h"))
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    said, value = asked_for(name, "h")
    told = score(team, said, "a", member="olga", metric=name).json()
    assert abs(told["value"] - value) < 1 / 32  # rounded to steps of 1/16 or less
    holdouts.forget_rows()  # as in another process: the same pairs
    assert score(team, said, "b", member="olga", metric=name).json() == told  # from the log
    assert score(team, said, "c", member="anna", metric=name).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "ladder"},
        {"noise": None},
        {"mode": "ladder", "threshold": None, "noise": None},
        {"attempts": 0},
    ],
)
def test_what_makes_no_competition_is_refused(team, change):
    assert team.ask("olga", "POST", "/v1/holdouts", json={**RULES, **change}).status_code in (
        400,
        422,
    )


ENDING = {
    "name": "board",
    "id_column": "id",
    "target": "label",
    "budget": 20,
    "classes": ["0", "1"],
    "final": "1/2",
}


@pytest.fixture(params=["ladder", "one bit", "rounds"])
def ending(request, team):
    """A competition that keeps half of its rows for the end, open to anna and ben."""
    rounds = request.param == "rounds"
    asked = {**ENDING, "mode": request.param} | (
        {"threshold": 0.3, "noise": 0.02, "budget": 5} if rounds else {"announcements": 4}
    )
    team.told("olga", "POST", "/v1/holdouts", json=asked)
    for side, letter in (("train", "t"), ("holdout", "h")):
        if rounds or side == "holdout":
            assert give(team, side, table(letter)).status_code == 200
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    team.join("ben", "analyst")
    for member in ("anna", "ben"):
        team.told("olga", "PUT", f"/v1/holdouts/board/access/{member}")
    return team, (predictions if rounds else lambda _, share, seed: of_holdout(share, seed))


def test_a_competition_ends_with_a_ranking_in_a_curator_too(ending):
    team, said = ending
    shown = team.told("anna", "GET", "/v1/holdouts/board")
    assert (shown["rows"], shown["final_rows"], shown["chosen"]) == (200, 200, None)
    for member, share, seed in (("anna", 0.7, 1), ("ben", 0.97, 2), ("anna", 0.5, 3)):
        told = score(team, said(share, share, seed), f"{member}{seed}", member=member)
        assert told.status_code == 200, told.text
    where = "/v1/holdouts/board"
    early = team.ask("anna", "GET", f"{where}/ranking")
    assert (early.status_code, "until the competition has ended" in early.json()["detail"]) == (
        422,
        True,
    )
    for number, code in ((2, 422), (9, 422), (0, 422), (1, 200)):
        named = team.ask("anna", "PUT", f"{where}/choice", json={"number": number})
        assert named.status_code == code, named.text
    assert named.json()["chosen"] == 1
    assert team.ask("anna", "POST", f"{where}/end").status_code == 403
    for _ in range(2):  # once more changes nothing
        assert team.told("olga", "POST", f"{where}/end")["state"] == "ended"
    ranking = team.told("ben", "GET", f"{where}/ranking")
    assert [(one["team"], one["number"]) for one in ranking["scores"]] == [("ben", 2), ("anna", 1)]
    assert [one["group"] for one in ranking["scores"]] == [1, 2]
    assert ranking["rows"] == 200
    lines = team.told("ben", "GET", f"{where}/ranking/file")["content"].splitlines()
    assert lines[0] == "rank,team,submission,value,low,high,ranks,group"
    assert len(lines) == 3
    late = score(team, said(0.9, 0.9, 9), "late")
    assert (late.status_code, "has ended" in late.json()["detail"]) == (409, True)
    assert score(team, said(0.97, 0.97, 2), "ben2", member="ben").status_code == 200  # from the log
    assert team.told("udo", "POST", "/v1/log/verification")["intact"]


def test_a_curator_reads_no_kept_label_before_the_end(ending, monkeypatch):
    """The kept labels are turned round in what is read: nothing differs, and the end notices."""
    team, said = ending
    stored = team.service.read(lambda t: holdouts.HOLDOUTS.current(t, "board"))
    board = holdouts.board_of(team.service, stored)
    kept = set(np.asarray(board._labels.ids)[board._parts[1]].tolist())
    first = score(team, said(0.8, 0.8, 1), "a").json()
    real = holdouts.VaultFiles.table

    def turned(self, side):
        header, rows = real(self, side)
        rows = rows.copy()
        for row in rows:
            if row[0] in kept:
                row[1] = str(1 - int(row[1]))
        return header, rows

    monkeypatch.setattr(holdouts.VaultFiles, "table", turned)
    assert score(team, said(0.8, 0.8, 1), "a").json() == first
    assert score(team, said(0.9, 0.9, 2), "b").status_code == 200
    assert team.ask("olga", "POST", "/v1/holdouts/board/end").status_code == 503
    monkeypatch.undo()
    assert team.told("olga", "POST", "/v1/holdouts/board/end")["state"] == "ended"


def test_what_was_predicted_is_sealed_at_rest_and_deleted_with_the_tables(ending):
    team, said = ending
    assert score(team, said(0.8, 0.8, 1), "a").status_code == 200
    kept = team.service.read(lambda t: holdouts.PREDICTIONS.select(t, "1 = 1"))
    assert [one.number for one in kept] == [1]
    assert kept[0].file in team.service.vault.names()
    team.told("olga", "DELETE", "/v1/holdouts/board/tables")
    assert not team.service.vault.names()
    assert team.ask("olga", "POST", "/v1/holdouts/board/end").status_code == 409


def test_a_holdout_that_was_never_opened_is_taken_back_and_its_name_is_free(team):
    team.told("olga", "POST", "/v1/holdouts", json=RULES)
    give(team, "train", table("t"))
    assert team.ask("anna", "DELETE", "/v1/holdouts/board").status_code in (403, 404)
    assert team.ask("olga", "DELETE", "/v1/holdouts/board").status_code == 204
    assert team.ask("olga", "GET", "/v1/holdouts/board").status_code == 404
    assert not team.service.vault.names()
    team.told("olga", "POST", "/v1/holdouts", json={**RULES, "budget": 9})
    for side, letter in (("train", "t"), ("holdout", "h")):
        give(team, side, table(letter))
    team.told("olga", "POST", "/v1/holdouts/board/opening")
    refused = team.ask("olga", "DELETE", "/v1/holdouts/board")
    assert (refused.status_code, "cannot be withdrawn" in refused.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    "wrong", [{"final": 1}, {"final": 0}, {"final": "x"}, {"announcements": 0}]
)
def test_an_end_that_makes_no_sense_is_refused(team, wrong):
    asked = {**ENDING, "mode": "ladder", **wrong}
    assert team.ask("olga", "POST", "/v1/holdouts", json=asked).status_code in (400, 422)
    rounds = {**RULES, "announcements": 3}
    assert (
        "Leave out announcements"
        in team.ask("olga", "POST", "/v1/holdouts", json=rounds).json()["detail"]
    )
