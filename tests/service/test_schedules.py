"""Schedules: paid for as a whole, run once each, whoever dies and whoever else spends."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import date, timedelta

import pytest

from evidence.faults.server import new_database
from quiltwork import queries
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.service import jobs, schedules, worker
from quiltwork.service.features import open_service
from quiltwork.service.settings import Settings

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
DAY = "rest\nwalk\nrest\nrest\n"  # a time point every six hours
ASKED = {
    "question": {"kind": "histogram"},
    "epsilon": 0.5,
    "every": "day",
    "at": "02:00",
    "zone": "UTC",
    "first": "2026-01-01",
    "runs": 5,
    "begins": "2026-01-01T00:00Z",
    "step": 21600,
}
PATH = "/v1/datasets/steps/schedules"
PACE = worker.Pace(lease=30, beat=5, look=0.01)


@pytest.fixture
def settings(request, tmp_path):
    """A curator on SQLite, or on the database that a test names."""
    url = f"sqlite:///{tmp_path / 'curator.db'}"
    if getattr(request, "param", "sqlite") == "postgres":
        url = new_database(request.getfixturevalue("postgres"), f"t{uuid.uuid4().hex}")
    return Settings(url, tmp_path / "data")


@pytest.fixture
def steps(team):
    """A series of olga's, three days of which have arrived."""
    team.told(
        *("olga", "POST", "/v1/datasets"),
        json={
            "name": "steps",
            "budget": 1,
            "series": {"belief": json.loads(CHAIN.to_json()), "value": "activity"},
        },
    )
    team.told("olga", "PUT", "/v1/datasets/steps/access/anna", json={})
    team.send("olga", "steps", "activity\n" + DAY * 3)
    return team


def made(team, key="k", **change):
    return team.told("anna", "POST", PATH, key, json={**ASKED, **change})


def states(team, name):
    return [run["state"] for run in team.told("anna", "GET", f"/v1/schedules/{name}")["runs"]]


def spendings(scale, runs=5):
    histogram = queries.histogram()
    windows = [(4 * day + 1, 4 * day + 4) for day in range(runs)]
    return [Spending.of_query(histogram.on(*one), scale, 20) for one in windows]


def test_the_price_that_is_shown_is_the_accounts_and_is_what_is_debited(steps):
    forecast = steps.told("anna", "POST", f"{PATH}/preview", json=ASKED)
    alone = Accountant(CHAIN, 20)
    assert alone.cost_after(*spendings(forecast["noise"])) == pytest.approx(0.5, rel=1e-9)
    assert alone.cost_after(*spendings(0.95 * forecast["noise"])) > 0.5 * 1.02
    assert steps.service.ledger.history("steps") == ()
    steps.told("anna", "POST", "/v1/datasets/steps/releases", "q", json=question(0.2))
    forecast = steps.told("anna", "POST", f"{PATH}/preview", json=ASKED)
    schedule = made(steps)
    status = steps.service.ledger.status("steps")
    assert status.total == forecast["after"] == forecast["by"][-1]["total"]
    assert forecast["before"] < forecast["after"] <= 1
    assert forecast["fits"]
    assert schedule["noise"] == forecast["noise"]
    assert len(steps.service.ledger.history("steps")) == 6


def question(epsilon):
    return {"query": {"kind": "histogram"}, "epsilon": epsilon}


def test_a_schedule_says_what_it_will_have_cost_by_a_day(steps):
    schedule = made(steps)
    for runs in range(6):
        day = date(2026, 1, 1) + timedelta(days=runs)
        path = f"/v1/schedules/{schedule['id']}/cost?by={day}"
        expected = Accountant(CHAIN, 20).cost_after(*spendings(schedule["noise"], runs))
        assert steps.told("udo", "GET", path)["total"] == pytest.approx(expected, rel=1e-12)


def test_a_schedule_is_refused_as_a_whole_and_nothing_is_debited(steps):
    answer = steps.ask("anna", "POST", PATH, "k", json={**ASKED, "epsilon": 1.5})
    assert (answer.status_code, answer.json()["kind"]) == (409, "budget-exceeded")
    assert steps.service.ledger.history("steps") == ()
    assert steps.told("anna", "GET", PATH)["items"][0]["state"] == "refused"


def test_the_forecast_knows_caps_and_reserves(steps):
    steps.told("olga", "PUT", "/v1/datasets/steps/access/anna", json={"cap": "0.4"})
    capped = steps.told("anna", "POST", f"{PATH}/preview", json=ASKED)
    assert (capped["fits"], "cap" in capped["refusal"]) == (False, True)
    assert steps.ask("anna", "POST", PATH, "k", json=ASKED).status_code == 409
    steps.told("olga", "PUT", "/v1/datasets/steps/access/anna", json={"reserved": "0.6"})
    kept = steps.told("olga", "POST", f"{PATH}/preview", json=ASKED)
    assert (kept["fits"], "reserved" in kept["refusal"]) == (False, True)
    assert steps.ask("olga", "POST", PATH, "k", json=ASKED).status_code == 409
    assert steps.told("anna", "POST", f"{PATH}/preview", json=ASKED)["refusal"] is None
    assert made(steps)["state"] == "active"


def test_a_run_waits_half_a_period_for_who_is_behind(steps, monkeypatch):
    steps.told("olga", "PUT", "/v1/datasets/steps/access/pia", json={})
    steps.send("pia", "steps", "activity\nrest\n")
    schedule = made(steps)
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["waiting"] * 5
    later = jobs.now() + 12 * 3_600_000 + 1
    monkeypatch.setattr(schedules.jobs, "now", lambda: later)
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["done"] * 3 + ["waiting"] * 2
    run = steps.told("anna", "GET", f"/v1/schedules/{schedule['id']}/runs/2")
    assert run["release"]["subjects"] == 1


def test_a_schedule_that_was_accepted_runs_to_its_end_though_others_spend_the_rest(steps):
    schedule = made(steps)
    steps.told("olga", "POST", "/v1/datasets/steps/preview", json=question(0.3))
    steps.told("olga", "POST", "/v1/datasets/steps/releases", "q", json=question(0.3))
    for n in range(9):
        steps.ask("olga", "POST", "/v1/datasets/steps/releases", f"q{n}", json=question(0.3))
    refused = steps.ask("olga", "POST", "/v1/datasets/steps/releases", "more", json=question(0.3))
    assert refused.status_code == 409
    total = steps.service.ledger.status("steps").total
    steps.send("olga", "steps", "activity\n" + DAY * 2)
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["done"] * 5
    assert steps.service.ledger.status("steps").total == total
    steps.service.ledger.verify()


def test_the_same_key_makes_and_charges_one_schedule(steps):
    assert made(steps) == made(steps)
    assert len(steps.service.ledger.history("steps")) == 5
    other = steps.ask("anna", "POST", PATH, "k", json={**ASKED, "runs": 4})
    assert other.status_code == 422
    assert "another schedule" in other.json()["detail"]


@pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)
def test_runs_are_made_once_by_two_workers_and_across_a_restart(steps, settings):
    schedule = made(steps)
    stop = threading.Event()
    second = open_service(settings)
    threads = [
        threading.Thread(target=worker.work, args=(one, PACE, stop))
        for one in (steps.service, second)
    ]
    for one in threads:
        one.start()
    for _ in range(3000):
        if states(steps, schedule["id"])[2] == "done":
            break
        stop.wait(0.02)
    stop.set()
    for one in threads:
        one.join()
    second.ledger.close()
    answers = [answer(steps, schedule["id"], run) for run in (1, 2, 3)]
    again = open_service(settings)
    worker.finish_waiting(again, PACE)
    again.ledger.close()
    assert states(steps, schedule["id"]) == ["done"] * 3 + ["waiting"] * 2
    assert [answer(steps, schedule["id"], run) for run in (1, 2, 3)] == answers
    assert all(one["release"]["noisy"] for one in answers)
    steps.send("olga", "steps", "activity\n" + DAY * 2)
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["done"] * 5
    ran = [note.text for note in steps.service.ledger.notes() if note.text.startswith("ran ")]
    assert sorted(ran) == [f"ran {n} of {schedule['id']}" for n in range(1, 6)]
    assert len(steps.service.ledger.history("steps")) == 5


def answer(team, name, run):
    return team.told("anna", "GET", f"/v1/schedules/{name}/runs/{run}")


def test_a_run_whose_worker_died_while_drawing_is_lost_and_not_drawn_again(steps):
    schedule = made(steps)
    schedules.submit_due(steps.service)
    storage = steps.service.storage
    lease = jobs.claim(storage, "gone", 0.0)
    storage.write(
        lambda t: t.rows(
            "UPDATE curator_runs SET state = 'drawing' WHERE schedule = ? AND number = 1",
            schedule["id"],
        )
    )
    assert lease.body["run"] == 1
    worker.finish_waiting(steps.service, PACE)
    runs = steps.told("anna", "GET", f"/v1/schedules/{schedule['id']}")["runs"]
    assert [run["state"] for run in runs[:3]] == ["lost", "done", "done"]
    assert "stays paid for" in runs[0]["error"]
    assert steps.ask("anna", "GET", f"/v1/schedules/{schedule['id']}/runs/1").status_code == 404


def test_a_schedule_whose_server_ended_while_it_was_made_is_finished_by_the_worker(steps):
    service = steps.service
    schedule = made(steps)
    service.storage.write(
        lambda t: (
            t.rows("UPDATE curator_schedules SET state = 'making', created = 0"),
            t.rows("UPDATE curator_runs SET state = 'unpaid', debit = 0"),
        )
    )
    schedules.submit_due(service)
    assert len(service.ledger.history("steps")) == 5
    worker.finish_waiting(service, PACE)
    assert states(steps, schedule["id"])[:3] == ["done"] * 3


def test_missed_runs_are_skipped_where_that_was_asked_for(steps):
    schedule = made(steps, missed="skip")
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["skipped"] * 4 + ["waiting"]


def test_an_ended_schedule_runs_no_more_and_gives_nothing_back(steps):
    schedule = made(steps)
    total = steps.service.ledger.status("steps").total
    assert steps.ask("udo", "POST", f"/v1/schedules/{schedule['id']}/end").status_code == 403
    steps.told("anna", "POST", f"/v1/schedules/{schedule['id']}/end")
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["ended"] * 5
    assert steps.service.ledger.status("steps").total == total


def test_nothing_is_released_from_a_dataset_that_is_retired(steps):
    schedule = made(steps)
    schedules.submit_due(steps.service)
    steps.told("olga", "POST", "/v1/datasets/steps/retirement", json={})
    worker.finish_waiting(steps.service, PACE)
    assert states(steps, schedule["id"]) == ["failed"] * 3 + ["ended"] * 2
    assert not [one for one in steps.service.ledger.history("steps") if one.state == "released"]


def test_rows_with_times_tell_which_day_is_which(steps):
    steps.told(
        *("olga", "POST", "/v1/datasets"),
        json={
            "name": "dated",
            "budget": 1,
            "series": {
                "belief": json.loads(CHAIN.to_json()),
                "value": "activity",
                "time": "when",
                "every": "6h",
            },
        },
    )
    hours = [
        f"2026-01-0{1 + n // 4}T{6 * (n % 4):02}:00,{'rest' if n % 3 else 'walk'}" for n in range(8)
    ]
    steps.send("olga", "dated", "when,activity\n" + "\n".join(hours) + "\n")
    asked = {name: value for name, value in ASKED.items() if name not in ("begins", "step")}
    asked["first"] = "2026-01-02"
    path = "/v1/datasets/dated/schedules"
    schedule = steps.told("olga", "POST", path, "k", json={**asked, "zone": "Europe/Berlin"})
    assert schedule["runs"][0]["window"] == [5, 8]
    assert schedule["runs"][0]["due"] == "2026-01-03T01:00:00+00:00"
    refused = steps.ask("olga", "POST", path, "l", json={**asked, "step": 60})
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"question": {"kind": "histogram", "window": [1, 2]}}, "leave it out"),
        ({"question": {"kind": "mean", "lo": "0", "hi": "1"}}, "cannot be planned ahead"),
        ({"zone": "Mars"}, "no time zone"),
        ({"begins": None}, "give begins"),
        ({"begins": "2026-01-01T00:00"}, "offset"),
        ({"runs": 401}, "400"),
        ({"first": "9990-01-01"}, "within ten years"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_in_a_sentence(steps, change, problem):
    refused = steps.ask("anna", "POST", f"{PATH}/preview", json={**ASKED, **change})
    assert refused.status_code == 422
    assert problem in refused.json()["detail"]
