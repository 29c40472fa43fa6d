"""The how-to for every day: local days of 23 and 25 hours, a missed run, a repeated one."""

from __future__ import annotations

import importlib.util
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from evidence.curators import INDEPENDENT, running
from quiltwork.budget import Ledger

SCRIPT = Path(__file__).parents[2] / "deploy" / "publish_day.py"
FORWARD, BACK = date(2026, 3, 29), date(2026, 10, 25)


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("publish_day", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_time_point_of_a_year_is_in_one_local_day(script):
    moment, points = script.FIRST.astimezone(UTC), {}
    for number in range(1, 365 * 144 + 1):
        points.setdefault(moment.astimezone(script.ZONE).date(), []).append(number)
        moment += script.STEP
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(365)]
    assert [script.window(day) for day in days] == [
        [points[day][0], points[day][-1]] for day in days
    ]
    assert sorted({len(points[day]) for day in days}) == [138, 144, 150]
    assert (len(points[FORWARD]), len(points[BACK])) == (138, 150)


def test_a_missed_day_is_made_up_for_and_none_is_paid_twice(script, monkeypatch, tmp_path, capsys):
    class Clock(datetime):
        day = FORWARD

        @classmethod
        def now(cls, tz=None):
            return datetime(cls.day.year, cls.day.month, cls.day.day, 2, 30, tzinfo=tz)

    rows = tmp_path / "rows.csv"
    rows.write_text("activity\n" + "rest\nwalk\n" * (72 * 5))  # five days less an hour's
    monkeypatch.setattr(script, "FIRST", datetime(2026, 3, 27, tzinfo=script.ZONE))
    monkeypatch.setattr(script, "datetime", Clock)
    with running(tmp_path) as curator:
        olga = curator.as_("olga")
        olga.register_series("steps", INDEPENDENT, 1, "activity")
        olga.add_rows("steps", rows)
        monkeypatch.setenv("QUILTWORK_CURATOR", curator.address)
        monkeypatch.setenv("QUILTWORK_TOKEN", curator.tokens["olga"])
        assert script.main([]) == 0
        told = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in told] == ["2026-03-27", "2026-03-28"]
        Clock.day = date(2026, 3, 31)  # nobody ran it on the 30th
        assert script.main([]) == 0
        later = capsys.readouterr().out.splitlines()
        assert later[:2] == told  # the stored answers
        assert [line.split()[0] for line in later[2:]] == ["2026-03-29", "2026-03-30"]
        assert script.main(["2026-03-29"]) == 0
        assert capsys.readouterr().out.splitlines() == [later[2]]
        assert script.main(["2026-06-01"]) == 1  # there are no rows of that day yet
        assert "2026-06-01" in capsys.readouterr().err
        with Ledger.open(curator.database) as ledger:
            debits = ledger.history("steps")
        assert [one.key for one in debits] == [f"steps-2026-03-{day}" for day in range(27, 31)]
        windows = [(one.spending.start, one.spending.stop) for one in debits]
        assert [stop - start + 1 for start, stop in windows] == [144, 144, 138, 144]
