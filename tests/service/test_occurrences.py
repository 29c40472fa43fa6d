"""Days of a time zone as windows of a series, through summer time and back."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.service.occurrences import DataClock, occurrences

BERLIN = "Europe/Berlin"


def found_for(first, runs, begins, every="day", at="02:30", step=600, **rest):
    clock = DataClock(datetime.fromisoformat(begins), step, **rest)
    return occurrences(every, at, BERLIN, first, runs, clock)


@pytest.mark.parametrize(("first", "hours"), [("2026-03-28", 23), ("2026-10-24", 25)])
def test_the_day_of_a_change_of_clocks_is_one_run_of_its_own_length(first, hours):
    found = found_for(first, 3, f"{first}T00:00+0{1 if hours == 23 else 2}:00")
    assert [one.stop - one.start + 1 for one in found] == [144, 6 * hours, 144]
    zone = ZoneInfo(BERLIN)
    for one, after in itertools.pairwise(found):
        assert after.start == one.stop + 1
        midnight = datetime.combine(one.day, datetime.min.time(), zone).astimezone(UTC)
        begins = found[0].due  # any instant of the same grid
        first_point = midnight - (one.start - 1) * timedelta(minutes=10)
        assert first_point == datetime.fromisoformat(f"{first}T00:00").replace(
            tzinfo=zone
        ).astimezone(UTC)
        assert (begins - first_point) % timedelta(minutes=10) == timedelta(0)


def test_a_time_that_the_clock_leaves_out_or_shows_twice_is_one_moment():
    spring = found_for("2026-03-28", 2, "2026-03-28T00:00+01:00")
    assert spring[0].due == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # shown as 03:30
    autumn = found_for("2026-10-24", 2, "2026-10-24T00:00+02:00")
    assert autumn[0].due == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # the first 02:30


def test_weeks_and_months_follow_the_calendar():
    weeks = found_for("2026-01-05", 2, "2026-01-01T00:00+01:00", "week", step=3600)
    assert [(one.start, one.stop) for one in weeks] == [(97, 264), (265, 432)]
    months = found_for("2026-01-01", 3, "2026-01-01T00:00+01:00", "month", step=86400)
    assert [one.stop - one.start + 1 for one in months] == [31, 28, 31]
    assert [one.day for one in months] == [date(2026, m, 1) for m in (1, 2, 3)]


def test_points_on_the_clock_of_a_place_have_days_of_one_length():
    found = found_for("2026-03-28", 3, "2026-03-28T00:00+00:00", local=True)
    assert [one.stop - one.start + 1 for one in found] == [144] * 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"first": "2025-12-31"}, "before the first time point"),
        ({"step": 200_000}, "shorter than their step"),
        ({"every": "month", "first": "2026-01-02"}, "first day of a month"),
        ({"at": "26:00"}, "a time of day"),
        ({"at": "02:00+01:00"}, "without an offset"),
        ({"first": "tomorrow"}, "a day such as"),
        ({"first": "9999-12-30", "runs": 9}, "beyond the calendar"),
    ],
)
def test_a_timing_that_makes_no_sense_is_refused_in_a_sentence(change, problem):
    asked = {"first": "2026-01-01", "runs": 2, "begins": "2026-01-01T00:00+01:00", **change}
    with pytest.raises(InvalidInputError, match=problem):
        found_for(**asked)


def test_an_unknown_zone_is_refused():
    clock = DataClock(datetime.now(UTC), 60)
    with pytest.raises(InvalidInputError, match="no time zone"):
        occurrences("day", "02:00", "../etc/passwd", "2026-01-01", 1, clock)
