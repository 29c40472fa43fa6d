"""From a messy file of one household to a year's plan carried out, as the README has it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.budget import calendar
from quiltwork.cli.boundary import run

BERLIN = ZoneInfo("Europe/Berlin")
CHAIN = qw.MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=["low", "high"])


def readings(seed):
    """Half-hourly readings of 2026 as clocks in Berlin show them."""
    begin = datetime(2026, 1, 1, tzinfo=BERLIN).astimezone(UTC)
    states = CHAIN.sample(17_520, seed=seed)
    for number, state in enumerate(states):
        shown = (begin + timedelta(minutes=30 * number)).astimezone(BERLIN)
        yield shown, (0.3 if state == "low" else 1.2) + number % 50 / 100 * 0.5


@pytest.fixture
def household(tmp_path):
    """Decimal commas, rows that are missing, a word for it, and doubled rows, one in autumn."""
    draw = np.random.default_rng(3)
    rows = []
    for number, (shown, kw) in enumerate(readings(1)):
        if draw.random() < 0.002 or 9000 < number < 9040:
            continue
        cell = "n.d." if draw.random() < 0.001 else f"{kw:.3f}".replace(".", ",")
        rows.append(f"{shown:%d.%m.%Y %H:%M};{cell}")
        autumn = (shown.month, shown.day, shown.hour, shown.minute) == (10, 25, 2, 30)
        if draw.random() < 0.001 or autumn:
            rows.append(rows[-1])
    path = tmp_path / "own.csv"
    path.write_text("Zeit;Leistung kW\n" + "\n".join(rows) + "\n")
    pilot = tmp_path / "pilot.csv"
    pilot.write_text(
        "time,kw\n" + "".join(f"{shown:%Y-%m-%d %H:%M},{kw}\n" for shown, kw in readings(2))
    )
    return path, pilot


def test_a_year_is_planned_and_carried_out_from_a_messy_file(household, tmp_path, capsys):
    own, pilot = map(str, household)
    url, plan = f"sqlite:///{tmp_path}/b.db", str(tmp_path / "plan.json")
    belief, page = str(tmp_path / "belief.json"), tmp_path / "page.html"

    def call(*words):
        code = run(list(words))
        said = capsys.readouterr()
        assert code == 0, said.err
        return said.out + said.err

    assert "--time Zeit --value 'Leistung kW'" in call("check", own)
    zone = ("--timezone", "Europe/Berlin")
    looked = call("check", own, "--time", "Zeit", "--value", "Leistung kW", *zone)
    assert "--every 30min" in looked
    assert "--na n.d." in looked
    look = ("check", own, "--time", "Zeit", "--value", "Leistung kW", *zone, "--json")
    doubles = [one["time"] for one in json.loads(call(*look))["doubles"]]
    assert {"2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00"} <= {*doubles}  # in each pass
    fit = ("--time", "time", "--value", "kw", "--edges", "0.7", "--labels", "low,high")
    call("fit", pilot, *fit, *zone, "--every", "30min", "--single", "-o", belief)
    call("ledger", "create", url, "home", "--belief", belief, "--length", "17520", "--budget", "2")
    read = ("--time", "Zeit", "--value", "Leistung kW", *zone, "--na", "n.d.")
    call(
        "ledger",
        "register",
        url,
        "home",
        own,
        *read,
        "--missing",
        "public",
        "--duplicates",
        "first",
    )
    planned = ("ledger", "plan", url, "home", "--year", "2026", "--monthly", "histogram")
    call(*planned, "-o", plan, "--report", str(page))
    assert "March 2026" in page.read_text(encoding="utf-8")
    for month in range(1, 13):
        released = ("release", own, "--plan", plan, "--ledger", url, "--report", str(page))
        said = call(*released, "--month", f"2026-{month:02}")
        left = 12 - month
        assert "All releases of the plan" in said if not left else f"{left} of the 12" in said
    shown = page.read_text(encoding="utf-8")
    for words in (
        "Histogram of home: December 2026",
        "12 of 12 releases",
        "a chance of 50 % becomes at most 88.1 %",
        "All releases of the plan are made.",
        ", started in its long-run distribution",
        "have no record",
    ):
        assert words.lower() in shown.lower()
    for python in ("MarkovChain", "X_", "array(", "&#x27;stationary", "--missing"):
        assert python not in shown
    with qw.Ledger.open(url) as ledger:
        assert len(ledger.history("home")) == 12
        assert ledger.status("home").total <= 2
        ledger.verify()


def test_a_registered_file_is_read_as_it_was_registered_without_saying_so(
    household, tmp_path, capsys
):
    own, _ = map(str, household)
    url = f"sqlite:///{tmp_path}/b.db"
    grid = qw.Grid(step="30min", edges=[0.7], labels=["low", "high"])
    with qw.Ledger.open(url) as ledger:
        ledger.create("home", qw.MarkovChain(CHAIN.transition, states=CHAIN.states, grid=grid),
                      17_520, budget=9)  # fmt: skip
    read = ("--time", "Zeit", "--value", "Leistung kW", "--na", "n.d.", "--missing", "state")
    options = ("--timezone", "Europe/Berlin", "--duplicates", "mean")
    assert run(["ledger", "register", url, "home", own, *read, *options]) == 2  # no such state
    public = ("--missing", "public")
    assert run(["ledger", "register", url, "home", own, *read, *options, *public]) == 0
    ask = ["release", own, "--ledger", url, "--dataset", "home", "--epsilon", "1"]
    capsys.readouterr()
    assert run(ask) == 0
    assert "As the data were registered: --duplicates mean, --missing public" in (
        capsys.readouterr().err
    )
    assert run([*ask, "--timezone", "Europe/London"]) == 2
    said = capsys.readouterr().err
    assert "were registered with --timezone Europe/Berlin, and are now to be read with" in said


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
def test_months_of_a_zone_are_those_that_its_clocks_show(zone):
    begin = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    shown = [(begin + timedelta(hours=hour)).astimezone(ZoneInfo(zone)) for hour in range(8760)]
    query = qw.queries.histogram()
    planned = calendar(2026, 24, daily=query, monthly=query, timezone=zone)
    months = [one.query for one in planned if one.kind == "monthly"]
    for number, month in enumerate(months, start=1):
        inside = [place for place, moment in enumerate(shown, 1) if moment.month == number]
        assert (month.start, month.stop) == (inside[0], inside[-1])
    days = [one.query for one in planned if one.kind == "daily"]
    assert {day.stop - day.start + 1 for day in days} <= {23, 24, 25}
    assert days[-1].stop == 8760


def test_beliefs_about_the_day_are_turned_to_when_the_series_begins(household, tmp_path, capsys):
    own, pilot = map(str, household)
    url, belief = f"sqlite:///{tmp_path}/b.db", str(tmp_path / "day.json")
    fit = ("--time", "time", "--value", "kw", "--edges", "0.7", "--every", "30min")
    zone = ("--timezone", "Europe/Berlin")
    assert run(["fit", pilot, *fit, *zone, "--period", "day", "-o", belief]) == 0
    create = ("--belief", belief, "--length", "17520", "--budget", "2")
    read = ("--time", "Zeit", "--value", "Leistung kW", *zone, "--na", "n.d.")
    gaps = ("--missing", "public", "--duplicates", "first")
    capsys.readouterr()
    assert run(["ledger", "create", url, "undated", *create]) == 0
    assert "follow the clock of Europe/Berlin" in capsys.readouterr().err
    assert run(["ledger", "register", url, "undated", own, *read, *gaps]) == 2
    assert "ledger create --begins" in capsys.readouterr().err  # not after a plan was made
    assert run(["ledger", "create", url, "home", *create, "--begins", "2026-01-01T00:00"]) == 0
    assert "follow the clock" not in capsys.readouterr().err
    assert run(["ledger", "register", url, "home", own, *read, *gaps]) == 0
    with qw.Ledger.open(url) as ledger:
        (dated,) = ledger.status("home").beliefs
        assert isinstance(dated, qw.beliefs.DatedChain)
        assert ledger.registered("undated") is None
