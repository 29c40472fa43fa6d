"""Plans by dates: months of a series that begins in March, by the clocks of Berlin."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import quiltwork as qw
from quiltwork.cli.boundary import run

BERLIN = ZoneInfo("Europe/Berlin")
BEGINS = datetime(2026, 3, 1, tzinfo=BERLIN).astimezone(UTC)
CHAIN = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=["low", "high"], grid=qw.Grid(step="1h"))
HOURS = 24 * 92 - 1  # March to May, of which March has 743


@pytest.fixture
def fleet(tmp_path, capsys):
    """A ledger, an unregistered file of its dataset, and a function that runs a command."""
    data, belief = tmp_path / "own.csv", tmp_path / "belief.json"
    times = [(BEGINS + timedelta(hours=hour)).astimezone(BERLIN) for hour in range(HOURS)]
    rows = zip(times, CHAIN.sample(HOURS, seed=1), strict=True)
    data.write_text("time,state\n" + "".join(f"{time.isoformat()},{row}\n" for time, row in rows))
    belief.write_text(CHAIN.to_json())
    url = f"sqlite:///{tmp_path}/b.db"

    def call(*words, code=0):
        assert run(list(words)) == code
        captured = capsys.readouterr()
        return captured.out + captured.err

    create = ("ledger", "create", url, "fleet", "--belief", str(belief))
    call(*create, "--length", str(HOURS), "--budget", "1")
    return url, str(data), call


@pytest.fixture
def registered(fleet):
    url, data, call = fleet
    reading = ("--value", "state", "--time", "time", "--timezone", "Europe/Berlin")
    call("ledger", "register", url, "fleet", data, *reading)
    return fleet


def windows(path):
    plan = json.loads(path.read_text())
    return {line["name"]: line["window"] for line in plan["releases"]}


MONTHS = {"monthly 3": [1, 743], "monthly 4": [744, 1463], "monthly 5": [1464, 2207]}


def test_a_year_is_planned_from_the_registered_beginning(registered, tmp_path):
    url, data, call = registered
    plan, page = tmp_path / "plan.json", tmp_path / "plan.html"
    year = ("ledger", "plan", url, "fleet", "--year", "2026", "--monthly", "histogram")
    told = call(*year, "-o", str(plan), "--report", str(page))
    assert "3 of the 12 months of 2026 are wholly in the series, which is from 2026-03-01" in told
    assert windows(plan) == MONTHS
    shown = page.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:January|February|March|April|May|June) 2026", shown)) == {
        "March 2026",
        "April 2026",
        "May 2026",
    }
    made = call("release", data, "--plan", str(plan), "--month", "2026-03", "--ledger", url)
    assert "From 2026-03-01T00:00+01:00 to 2026-04-01T00:00+02:00." in made
    assert "leave out --begins" in call(*year, "--begins", "2026-01-01", code=2)


def test_a_year_is_planned_from_a_typed_beginning_and_refused_without_one(fleet, tmp_path):
    url, _, call = fleet
    plan = tmp_path / "plan.json"
    year = ("ledger", "plan", url, "fleet", "--year", "2026", "--monthly", "histogram")
    assert "give --begins" in call(*year, code=2)
    begins = ("--begins", "2026-03-01T00:00", "--timezone", "Europe/Berlin")
    call(*year, *begins, "-o", str(plan))
    assert windows(plan) == MONTHS


def test_a_year_is_planned_from_the_beginning_of_the_beliefs(fleet, tmp_path):
    url, _, call = fleet
    day = qw.CyclicChain(
        [CHAIN.transition] * 24, states=CHAIN.states, grid=qw.Grid(step="1h"), anchor=0
    )
    belief, plan = tmp_path / "day.json", tmp_path / "plan.json"
    belief.write_text(day.to_json())
    turned = str(tmp_path / "turned.json")
    begins = ("--begins", "2026-03-01T00:00", "--timezone", "Europe/Berlin")
    call("belief", "turn", str(belief), *begins, "-o", turned)
    create = ("ledger", "create", url, "day", "--belief", turned)
    call(*create, "--length", str(HOURS), "--budget", "1")
    call("ledger", "plan", url, "day", "--year", "2026", "--monthly", "histogram", "-o", str(plan))
    assert windows(plan) == MONTHS


def test_dates_in_a_question_and_the_rest_of_a_year(registered, tmp_path):
    url, _, call = registered
    plan = tmp_path / "plan.json"
    begin = ("ledger", "plan", url, "fleet", "-o", str(plan))
    call(*begin, "--ask", "histogram@2026-04", "--ask", "count:low@2026-05-01:2026-05-02")
    assert [*windows(plan).values()] == [[744, 1463], [1464, 1511]]
    call(*begin, "--year", "2026", "--monthly", "histogram", "--from", "2026-04")
    assert windows(plan) == {name: MONTHS[name] for name in ("monthly 4", "monthly 5")}
    call(*begin, "--ask", "histogram@743", "--from", "2026-04")
    assert windows(plan) == {"histogram@743 2": [744, 1486]}


def test_no_plan_is_written_that_has_only_useless_releases(registered, tmp_path):
    url, data, call = registered
    plan = tmp_path / "plan.json"
    year = ("ledger", "plan", url, "fleet", "--year", "2026", "--monthly", "histogram")
    call(*year, "-o", str(plan))
    before = plan.read_bytes()
    call("release", data, "--plan", str(plan), "--month", "2026-03", "--ledger", url)
    for month in ("2026-04", "2026-05"):
        call("release", data, "--plan", str(plan), "--month", month, "--ledger", url)
    assert "Nothing was written" in call(*year, "-o", str(plan), code=1)
    assert plan.read_bytes() == before


def test_releases_of_the_second_year_of_a_series_have_keys_of_their_own():
    query = qw.queries.histogram()
    begins = datetime(2026, 11, 15)
    planned = qw.budget.calendar(2027, 24, monthly=query, begins=begins, length=24 * 100)
    assert [(item.label, item.query.window(24 * 100)) for item in planned] == [
        ("monthly 2027-1", (24 * 47 + 1, 24 * 78))
    ]
    weeks = qw.budget.calendar(2026, 24, weekly=query, begins=begins)
    assert [item.query.start for item in weeks] == [24 * day + 1 for day in range(0, 42, 7)]
    with pytest.raises(qw.InvalidInputError, match="No whole day, week or month"):
        qw.budget.calendar(2028, 24, monthly=query, begins=begins, length=24 * 100)


def test_a_release_with_other_noise_does_not_carry_out_a_line(registered, tmp_path):
    url, data, call = registered
    plan = tmp_path / "plan.json"
    year = ("ledger", "plan", url, "fleet", "--year", "2026", "--monthly", "histogram")
    call(*year, "-o", str(plan))
    pays = ("release", data, "--ledger", url)
    extra = ("--dataset", "fleet", "--query", "histogram", "--window", "2026-04")
    call(*pays, *extra, "--epsilon", "0.2")
    ran = call(*pays, "--plan", str(plan), "--month", "2026-03")
    assert "2 of the 3 releases of the plan remain; 'monthly 4' does not fit any more" in ran
    assert "and the others fit" in ran
    ran = call(*pays, "--plan", str(plan), "--month", "2026-05")
    assert "1 of the 3 releases of the plan remains; 'monthly 4' does not fit any more." in ran
    refused = call(*pays, "--plan", str(plan), "--month", "2026-04", code=1)
    assert "above the budget" in refused


def test_a_line_under_a_key_of_its_own_is_known_by_its_noise(registered, tmp_path):
    url, data, call = registered
    plan = tmp_path / "plan.json"
    year = ("ledger", "plan", url, "fleet", "--year", "2026", "--monthly", "histogram")
    call(*year, "-o", str(plan))
    ran = call(
        *("release", data, "--ledger", url, "--plan", str(plan)),
        *("--month", "2026-04", "--key", "mine"),
    )
    assert "2 of the 3 releases of the plan remain, and fit." in ran


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_a_refused_level_is_answered_with_one_that_can_be_typed(fleet, neighbours):
    url, _, call = fleet
    spend = ("ledger", "spend", url, "fleet", "--neighbours", neighbours, "--epsilon")
    refused = call(*spend, "5", code=1)
    fitting = re.search(rf"--epsilon (\S+) --neighbours {neighbours} fits", refused)
    call(*spend, str(1.01 * float(fitting[1])), code=1)
    call(*spend, fitting[1])
    assert "greater than 0, not -1" in call(*spend[:-1], "--epsilon=-1", code=2)


def test_the_largest_release_of_a_month(registered):
    url, _, call = registered
    assert "On time points 744..1,463" in call(
        "ledger", "largest", url, "fleet", "--window", "2026-04"
    )


def test_gaussian_noise_is_refused_at_once_under_beliefs_that_follow_a_clock(fleet, tmp_path):
    url, _, call = fleet
    zone = qw.beliefs.calendars.Calendar.of("Europe/Berlin", 1767225600, 1767225600)
    day = qw.CyclicChain(
        [CHAIN.transition] * 24,
        states=CHAIN.states,
        grid=qw.Grid(step="1h"),
        anchor=0,
        calendar=zone,
    )
    belief = tmp_path / "day.json"
    belief.write_text(day.to_json())
    create = ("ledger", "create", url, "day", "--belief", str(belief), "--length", "99")
    gaussian = ("--budget", "1", "--delta", "1e-6")
    refused = call(*create, *gaussian, "--begins", "2026-03-01T00:00", code=2)
    assert "Leave out --delta" in refused
    assert "--begins" not in call(*create, *gaussian)
