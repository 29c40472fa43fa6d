"""A team's week: register, upload, share, preview, ask, run out, verify, delete."""

from __future__ import annotations

import pytest

from quiltwork.service.features import open_service
from quiltwork.service.vault import Vault
from tests.service.conftest import ROWS

HISTOGRAM = {"query": {"kind": "histogram"}, "epsilon": 0.5}


def test_an_analyst_previews_asks_and_is_refused_when_the_budget_is_spent(team, steps):
    before = team.told("anna", "POST", "/v1/datasets/steps/preview", json=HISTOGRAM)
    assert before["granted"]
    assert before["spent_before"] == 0
    assert len(before["example"]["intervals"]) == before["cells"] == 2
    answer = team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM)
    assert answer["cells"] == ["rest", "walk"]
    assert len(answer["values"]) == len(answer["intervals"]) == 2
    spent = team.told("anna", "GET", "/v1/datasets/steps")["spent"]
    assert spent == pytest.approx(before["spent_after"])
    again = team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM)
    assert again == answer
    other = {**HISTOGRAM, "epsilon": 0.25}
    assert (
        team.ask("anna", "POST", "/v1/datasets/steps/releases", "k1", json=other).status_code == 422
    )
    for number in range(2, 20):
        refused = team.ask(
            "anna", "POST", "/v1/datasets/steps/releases", f"k{number}", json=HISTOGRAM
        )
        if refused.status_code != 201:
            break
    assert (refused.status_code, refused.json()["kind"]) == (409, "budget-exceeded")
    listed = team.told("anna", "GET", "/v1/datasets/steps/releases")
    assert answer in listed["items"]
    assert team.told("udo", "POST", "/v1/log/verification")["intact"]
    entries = team.told("udo", "GET", "/v1/log")["items"]
    assert "refusal" in {one["kind"] for one in entries}
    assert team.told("udo", "GET", "/v1/datasets/steps/ledger")["items"][0]["analyst"] == "anna"
    assert team.told("anna", "GET", "/v1/datasets/steps/leakage")["runs"]


def test_a_series_grows_and_a_key_stays_answered(team, steps):
    answer = team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM)
    assert team.send("pia", "steps", ROWS) == {"dataset": "steps", "rows": 100, "length": 200}
    assert team.told("anna", "GET", "/v1/datasets/steps")["length"] == 200
    assert team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM) == answer
    small = {"query": {"kind": "count", "state": "walk", "window": [101, 200]}, "epsilon": "1/10"}
    assert (
        team.ask("anna", "POST", "/v1/datasets/steps/releases", "k2", json=small).status_code == 201
    )


def test_counts_are_released_within_a_cap_and_read_by_a_consumer(team, survey):
    asked = {
        "query": {"kind": "table", "by": ["sex"], "where": {"smoker": ["yes"]}},
        "epsilon": 0.4,
    }
    seen = team.told("anna", "POST", "/v1/datasets/survey/preview", json=asked)
    assert (seen["cells"], seen["verdict"]) == (2, "rough")
    answer = team.told("anna", "POST", "/v1/datasets/survey/releases", "k1", json=asked)
    assert answer["cells"] == [["f"], ["m"]]
    refused = team.ask("anna", "POST", "/v1/datasets/survey/releases", "k2", json=asked)
    assert "cap" in refused.json()["detail"]
    path = f"/v1/datasets/survey/releases/{answer['number']}"
    assert team.told("anna", "GET", path) == answer
    reader = {"people": 60, "prior": "binomial", "parameter": 0.3, "loss": "squared"}
    read = team.told("anna", "POST", f"{path}/remap", json=reader)
    assert all(0 <= count <= 60 for count in read["read"])


def test_a_plan_uses_the_budget_exactly(team, steps):
    asked = {"questions": [{"query": {"kind": "count", "state": "walk"}, "every": 10}]}
    made = team.told("anna", "POST", "/v1/datasets/steps/plan", json=asked)
    assert len(made["items"]) == 10
    assert made["total"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("killed", [False, True])
def test_deleted_rows_are_gone_and_the_ledger_stays(team, steps, killed, settings, monkeypatch):
    team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM)
    assert len(team.service.vault.names()) == 1
    if killed:  # once it is written that they are deleted, and before they are
        monkeypatch.setattr(Vault, "delete", lambda *_: None)
    team.told("olga", "DELETE", "/v1/datasets/steps/rows")
    if killed:
        open_service(settings).ledger.close()
    assert not team.service.vault.names()
    refused = team.ask("anna", "POST", "/v1/datasets/steps/releases", "k2", json=HISTOGRAM)
    assert refused.json()["kind"] == "budget-exceeded"
    assert team.told("anna", "POST", "/v1/datasets/steps/releases", "k1", json=HISTOGRAM)
    assert team.told("udo", "GET", "/v1/datasets/steps/ledger")["items"]
