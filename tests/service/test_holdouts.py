"""Holdouts: predictions by row id, answered at once, within rounds that the ledger pays for."""

from __future__ import annotations

import numpy as np
import pytest

from quiltwork.service import holdouts
from quiltwork.service.app import open_service

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
    board.service.storage.write(lambda t: t.rows("DELETE FROM curator_standings"))
    again = score(board, said, "a").json()
    assert {**again, "at": first["at"]} == first
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
    assert "Of 800 rows 3 have no prediction, and 1 of the 798" in refused.json()["detail"]
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
