"""Questions: answered once for each key, whoever asks at the same time, and never by a row."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from quiltwork.service.app import open_service
from quiltwork.service.datasets import registered
from quiltwork.service.members import invite
from quiltwork.service.questions import Question, ask
from quiltwork.service.rows import mended

SMALL = {"query": {"kind": "count", "state": "walk"}, "epsilon": "1/100"}
CANARY = "zq7xcanary"


def asked(team, key, body=SMALL, dataset="steps", member="anna"):
    return team.ask(member, "POST", f"/v1/datasets/{dataset}/releases", key, json=body)


def test_one_key_at_the_same_time_is_one_debit_and_one_answer(team, steps):
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: asked(team, "same"), range(32)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert len(team.service.ledger.history("steps")) == 1


def test_many_keys_at_the_same_time_never_exceed_the_budget(team, steps):
    body = {"query": {"kind": "count", "state": "walk"}, "epsilon": "1/5"}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: asked(team, f"k{n}", body), range(24)))
    granted = [answer for answer in answers if answer.status_code == 201]
    assert {answer.status_code for answer in answers} == {201, 409}
    assert len(team.service.ledger.history("steps")) == len(granted)
    status = team.service.ledger.status("steps")
    assert status.exact_total <= status.exact_budget
    team.service.ledger.verify()


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "custom", "name": "f", "lipschitz": "1"},
        {"kind": "no such"},
        {},
        {"kind": "count", "state": "fly"},
        {"kind": "count", "state": "walk", "window": [1, 101]},
        {"kind": "count", "state": "walk", "window": [5, 2]},
        {"kind": "sum", "lo": "0", "hi": "1"},
        {"kind": "histogram", "more": 1},
    ],
    ids=str,
)
def test_what_is_no_question_is_refused_for_nothing(team, steps, query):
    for path in ("preview", "releases"):
        body = {"query": query, "epsilon": 1}
        answer = team.ask("anna", "POST", f"/v1/datasets/steps/{path}", "k", json=body)
        assert answer.status_code == 422, answer.text
    assert not team.service.ledger.history("steps")


@pytest.mark.parametrize("epsilon", [0, -1, "x", "1/0", 1e-320, 1e308, "1e400", "1e99999"])
def test_what_is_no_level_is_refused_for_nothing(team, steps, epsilon):
    answer = asked(team, "k", {"query": {"kind": "histogram"}, "epsilon": epsilon})
    assert answer.status_code in (409, 422), answer.text
    assert not team.service.ledger.history("steps")


def test_a_question_that_spends_needs_a_key(team, steps):
    for key in (None, "", " ", "a b", "x" * 201):
        assert asked(team, key).status_code == 400


def test_a_debit_whose_answer_was_lost_is_told_and_never_drawn_again(team, steps, monkeypatch):
    from quiltwork.budget import Receipt

    def lost(self, answer):
        raise SystemError(CANARY)

    monkeypatch.setattr(Receipt, "complete", lost)
    failed = asked(team, "k")
    assert failed.status_code == 500
    assert CANARY not in failed.text
    monkeypatch.undo()
    for _ in range(2):
        refused = asked(team, "k")
        assert (refused.status_code, refused.json()["kind"]) == (409, "not-private")
    assert len(team.service.ledger.history("steps")) == 1


def test_what_happens_while_rows_are_looked_at_is_told_to_nobody(team, survey, monkeypatch):
    from quiltwork.service import questions

    def broken(*_, **__):
        raise ValueError(CANARY)

    monkeypatch.setattr(questions, "limited_counts", broken)
    body = {"query": {"kind": "table", "by": ["sex"]}, "epsilon": 0.1}
    answer = asked(team, "k", body, "survey")
    assert answer.status_code == 500
    assert CANARY not in answer.text


def test_rows_are_in_no_answer_log_or_metric(team, caplog):
    rows = "who,sex\n" + "".join(f"{CANARY}{n},f\n" for n in range(20))
    about = {"columns": {"sex": ["f", "m"]}, "subject": "who"}
    team.told("olga", "POST", "/v1/datasets", json={"name": "s", "budget": 1, "counts": about})
    team.send("olga", "s", rows)
    body = {"query": {"kind": "table", "by": ["sex"]}, "epsilon": 0.1}
    seen = [asked(team, "k", body, "s", "olga").text]
    seen += [team.ask("olga", "GET", f"/v1/datasets/s{path}").text for path in ("", "/releases")]
    wrong = rows.encode()[:-5] + b",x,y\n"
    kind = {"Content-Type": "text/csv"}
    seen += [team.ask("olga", "POST", "/v1/datasets/s/rows", content=wrong, headers=kind).text]
    seen += [team.ask("udo", "GET", "/v1/log").text, team.client.get("/metrics").text]
    seen += [json.dumps([repr(one) for one in team.service.ledger.log()]), caplog.text]
    assert not [text for text in seen if CANARY in text]


def test_a_crash_between_rows_and_their_length_is_mended(team, steps, settings, monkeypatch):
    from quiltwork.service import rows

    monkeypatch.setattr(rows, "grow", lambda *_: None)
    team.send("pia", "steps", "activity\n" + "rest\n" * 10)
    assert team.service.ledger.status("steps").length == 100
    monkeypatch.undo()
    service = open_service(settings)
    assert service.ledger.status("steps").length == 110
    mended(service)
    invite(service, "zoe", "analyst", "olga")
    question = Question(query=SMALL["query"], epsilon="1/100")
    assert ask(service, registered(service, "steps"), question, "k", "anna").values
