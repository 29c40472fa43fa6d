"""A series that a curator accounts for in (ε, δ): registered, shared out, planned and asked."""

from __future__ import annotations

import json
import math

import pytest

from tests.service.conftest import CHAIN, ROWS

QUESTION = {"query": {"kind": "count", "state": "walk"}, "epsilon": "1/5"}


@pytest.fixture
def series(team):
    made = team.told(
        *("olga", "POST", "/v1/datasets"),
        json={
            "name": "steps",
            "budget": 1,
            "delta": "1/1000000",
            "series": {"belief": json.loads(CHAIN.to_json()), "value": "activity"},
        },
    )
    assert (made["budget"], made["delta"], made["spent"], made["remaining"]) == (1, 1e-6, 0, 1)
    for member in ("pia", "anna"):
        team.told("olga", "PUT", f"/v1/datasets/steps/access/{member}", json={})
    team.send("pia", "steps", ROWS)
    return "steps"


def test_questions_are_answered_with_gaussian_noise_and_add_up_in_squares(team, series):
    seen = team.told("anna", "POST", "/v1/datasets/steps/preview", json=QUESTION)
    assert seen["granted"]
    share = seen["spent_after"]
    assert 0 < share < 0.2
    for number in range(3):
        told = team.ask("anna", "POST", "/v1/datasets/steps/releases", f"k{number}", json=QUESTION)
        assert told.status_code == 201
    shown = team.told("olga", "GET", "/v1/datasets/steps")
    assert shown["spent"] == pytest.approx(3 * share, rel=1e-9)
    assert shown["remaining"] == pytest.approx(1 - 3 * share, rel=1e-9)
    assert team.service.ledger.history("steps")[0].composes_by == "squares"
    told = team.told("udo", "GET", "/v1/datasets/steps/leakage")
    assert (told["delta"], told["runs"][0]["epsilon"]) == (1e-6, 1)
    assert told["runs"][0]["used"] == pytest.approx(3 * share, rel=1e-6)
    loud = {**QUESTION, "epsilon": 5}
    refused = team.ask("anna", "POST", "/v1/datasets/steps/releases", "loud", json=loud)
    assert refused.status_code == 409
    assert "above the squares that ε = 1 and δ = 1e-06 allow" in refused.json()["detail"]


def test_shares_are_shares_of_the_squares_and_plans_say_which_noise(team, series):
    asked = {"questions": [{"query": QUESTION["query"]}] * 20}
    plan = team.told("anna", "POST", "/v1/datasets/steps/plan", json=asked)
    assert "Take Gaussian noise" in plan["text"]
    team.told("olga", "PUT", "/v1/datasets/steps/access/anna", json={"cap": 0.01})
    refused = team.ask("anna", "POST", "/v1/datasets/steps/releases", "k", json=QUESTION)
    assert "above the cap of 1 % for this analyst" in refused.json()["detail"]
    assert math.isclose(team.told("olga", "GET", "/v1/datasets/steps")["remaining"], 1)


def test_counts_take_no_delta(team):
    told = team.ask(
        *("olga", "POST", "/v1/datasets"),
        json={"name": "c", "budget": 1, "delta": 1e-6, "counts": {"columns": {"sex": ["f", "m"]}}},
    )
    assert told.status_code == 422
    assert "leave out delta" in told.text
