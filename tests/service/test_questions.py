"""Questions: answered once for each key, whoever asks at the same time, and never by a row."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from quiltwork.budget.ledger.store import Store
from quiltwork.service.dataset_rows import _files, _read_uploads, _store
from quiltwork.service.datasets import registered
from quiltwork.service.problems import Problem
from quiltwork.service.questions import NewQuestion, digest_of
from quiltwork.service.vault import Vault

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


def test_an_answer_takes_three_transactions(team, steps, monkeypatch):
    """Who asks and what of; the debit; the answer, which is not read back."""
    asked(team, "warm")
    begun, real = [], Store._transact

    def counted(self, *arguments, **rest):
        begun.append(rest)
        return real(self, *arguments, **rest)

    monkeypatch.setattr(Store, "_transact", counted)
    first = asked(team, "counted")
    assert len(begun) == 3, begun
    assert asked(team, "counted").text == first.text
    assert len(begun) == 4  # asking again only reads
    listed = team.told("anna", "GET", "/v1/datasets/steps/releases")["items"]
    assert listed[-1] == first.json()


def test_the_question_is_recorded_with_its_debit_as_it_was_asked(team, steps):
    answer = asked(team, "k").json()
    (debit,) = team.service.ledger.history("steps")
    assert debit.request["asked"] == digest_of(NewQuestion(**SMALL))
    other = {**SMALL, "epsilon": "1/50"}
    assert asked(team, "k", other).status_code == 422
    assert asked(team, "k").json() == answer


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


def test_questions_and_rows_that_come_at_the_same_time_are_all_taken(team, steps, monkeypatch):
    """The ledger grows before rows do, also where a crash comes between the two."""
    more = "activity\n" + "rest\n" * 3
    with ThreadPoolExecutor(3) as pool:
        sent = [pool.submit(team.send, "pia", "steps", more) for _ in range(8)]
        answers = list(pool.map(lambda n: asked(team, f"k{n}"), range(24)))
    assert [one.result()["rows"] for one in sent] == [3] * 8
    assert {answer.status_code for answer in answers} == {201}, answers[-1].text

    def crash(*_):
        raise RuntimeError

    monkeypatch.setattr(Vault, "write", crash)
    with pytest.raises(RuntimeError):
        _store(team.service, registered(team.service, "steps"), _piece(team), "pia")
    assert team.service.ledger.status("steps").length == 127
    assert asked(team, "after").status_code == 201


def _piece(team):
    (file, _), *_ = team.service.storage.read(lambda t: _files(t, "steps"))[1:]
    return _read_uploads(team.service, [(file, "pia")])[0][0]


def test_who_has_sent_little_holds_up_no_question_about_what_others_have_sent(team, steps):
    team.join("petra", "provider")
    team.told("olga", "PUT", "/v1/datasets/steps/access/petra", json={})
    team.send("petra", "steps", "activity\nwalk\n")
    for number, (window, subjects) in enumerate((([1, 50], 1), ([51, None], 1), ([1, 1], 2))):
        body = {"query": {"kind": "histogram", "window": window}, "epsilon": "1/100"}
        team.told("anna", "POST", "/v1/datasets/steps/preview", json=body)
        assert asked(team, f"w{number}", body).json()["document"]["subjects"] == subjects
    beyond = {"query": {"kind": "histogram", "window": [1, 101]}, "epsilon": "1/100"}
    assert asked(team, "beyond", beyond).status_code == 422


def test_a_plan_of_many_repeated_questions_is_refused_before_it_takes_memory(team, steps):
    many = [{"query": {"kind": "histogram"}, "every": 1}] * 1000
    refused = team.ask("anna", "POST", "/v1/datasets/steps/plan", json={"questions": many})
    assert refused.status_code == 422
    assert "at most 20,000" in refused.json()["detail"]


def test_the_budget_of_a_holdout_is_nobodys_dataset(team):
    body = {"name": "holdout.board", "budget": 1, "counts": {"columns": {"sex": ["f"]}}}
    refused = team.ask("olga", "POST", "/v1/datasets", json=body)
    assert (refused.status_code, "holdout." in refused.text) == (422, True)


def test_rows_that_are_still_being_read_when_all_are_deleted_are_not_kept(team, survey):
    found = registered(team.service, survey)
    before = team.service.storage.read(lambda t: _files(t, survey))
    ((piece, _),) = _read_uploads(team.service, before)
    team.told("olga", "DELETE", "/v1/datasets/survey/rows")
    with pytest.raises(Problem, match="takes no more rows"):
        _store(team.service, found, piece, "olga")
    assert team.service.vault.names() == set()
