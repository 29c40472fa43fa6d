"""A look at one's own series: what is odd is named by subject and row."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from quiltwork.cli.boundary import run
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.series_check import check_series


@pytest.fixture
def meters(tmp_path):
    """Two meters by quarters of an hour across the end of summer time, with odd rows."""
    times = pd.date_range("2026-10-24", periods=4 * 48, freq="15min", tz="Europe/Berlin")
    rows = [f"{t:%d.%m.%Y %H:%M};{n % 7 / 4:.2f};{who}".replace(".2", ".2") for who in ("a", "b")
            for n, t in enumerate(times)]  # fmt: skip
    del rows[20:23]
    rows.insert(50, rows[49])
    rows.insert(250, rows[249].replace(";0.", ";9.").replace(";1.", ";8."))
    rows[100] = rows[100].split(";")[0] + ";offline;a"
    path = tmp_path / "meters.csv"
    path.write_text("Zeit;kW;wer\n" + "\n".join(rows).replace(".00", ".10") + "\n")
    return path, rows


def test_doubles_and_holes_are_those_that_pandas_finds(meters):
    path, rows = meters
    seen = check_series(str(path), "kW", time="Zeit", subject="wer")
    table = pd.DataFrame([row.split(";") for row in rows], columns=["t", "v", "who"])
    table["t"] = pd.to_datetime(table.t, format="%d.%m.%Y %H:%M")
    doubled = table.duplicated(["t", "who"])
    assert seen.rows == len(table)
    assert seen.step == 900
    # without a zone the hour that comes twice looks doubled, too
    assert sorted(one.row for one in seen.doubles) == (np.flatnonzero(doubled) + 1).tolist()
    zoned = check_series(str(path), "kW", time="Zeit", subject="wer", timezone="Europe/Berlin")
    assert [(one.subject, one.row, one.earlier, one.equal) for one in zoned.doubles] == [
        ("a", 51, 50, True), ("b", 251, 250, False)
    ]  # fmt: skip
    assert [(one.subject, one.row, one.steps) for one in zoned.holes] == [("a", 20, 3)]
    first, second = zoned.subjects
    assert (first.rows, first.doubles, first.missing_steps) == (190, 1, 3)
    assert second.first == "2026-10-24T00:00+02:00"
    assert second.last == "2026-10-25T22:45+01:00"


def test_words_among_numbers_are_named_and_states_are_counted(meters, tmp_path):
    path, _ = meters
    seen = check_series(str(path), "kW", time="Zeit", subject="wer")
    assert seen.numbers is None  # few different numbers are states
    assert ("offline", 1, 101) in [(one.text, one.count, one.row) for one in seen.words]
    many = tmp_path / "many.csv"
    many.write_text("s\n" + "\n".join(map(str, range(100))) + "\nn.d.\n\nNA\n")
    seen = check_series(str(many), "s", dialect=DialectOptions(na_values=["x"]))
    assert seen.numbers == (100, 0.0, 49.0, 99.0)
    assert [(one.text, one.row) for one in seen.words] == [("n.d.", 101)]
    assert seen.missing == 2
    assert "na_values=['n.d.']" in seen.explain()


def test_doubles_in_the_hour_that_comes_twice_are_named(meters):
    path, rows = meters
    place = next(n for n, row in enumerate(rows) if row.startswith("25.10.2026 02:30"))
    rows = [*rows[:place], rows[place], rows[place], *rows[place:]]
    path.write_text("Zeit;kW;wer\n" + "\n".join(rows) + "\n")
    seen = check_series(str(path), "kW", time="Zeit", subject="wer", timezone="Europe/Berlin")
    assert seen.unread is None
    assert [(one.row, one.earlier) for one in seen.doubles[1:3]] == [
        (place + 2, place + 1),
        (place + 3, place + 2),
    ]
    assert "--duplicates" not in seen.explain()
    assert "duplicates='first' keeps the first of such rows" in seen.explain()


def test_times_that_a_zone_cannot_have_are_named_and_shown_without_it(meters):
    path, rows = meters
    place = next(n for n, row in enumerate(rows) if row.startswith("25.10.2026 02:30"))
    rows[place : place + 4] = rows[place : place + 4][::-1]
    path.write_text("Zeit;kW;wer\n" + "\n".join(rows) + "\n")
    seen = check_series(str(path), "kW", time="Zeit", subject="wer", timezone="Europe/Berlin")
    assert "in the hour that comes twice" in seen.unread
    assert "Times cannot be read in Europe/Berlin: Row" in seen.explain()
    assert len(seen.doubles) > 4


def test_one_subject_is_looked_at_alone_with_its_rows_of_the_file(meters):
    path, _ = meters
    asked = {"time": "Zeit", "subject": "wer", "timezone": "Europe/Berlin"}
    seen = check_series(str(path), "kW", **asked, only="b")
    assert [one.name for one in seen.subjects] == ["b"]
    assert [(one.row, one.earlier) for one in seen.doubles] == [(251, 250)]
    with pytest.raises(InvalidInputError, match="There is no subject 'c' among the 2 of the data"):
        check_series(str(path), "kW", **asked, only="c")


def test_the_command_shows_it_in_its_own_words(meters, capsys):
    path, _ = meters
    asked = ["check", str(path), "--time", "Zeit", "--value", "kW", "--subject", "wer"]
    assert run(asked) == 0
    said = capsys.readouterr().out
    assert "To read them so: --every 15min." in said
    assert "row 51: a at 24.10" not in said
    assert "row 51: a at 2026-10-24T" in said
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "quiltwork/check-series"
    assert run(["check", str(path), "--subject", "wer"]) == 2
    capsys.readouterr()
    assert run(["check", str(path)]) == 0  # as a table, with a word about series
    assert f"quiltwork check {path} --time Zeit --value kW" in capsys.readouterr().err


def test_a_time_that_clocks_skip_in_spring_is_named(tmp_path):
    path = tmp_path / "spring.csv"
    asked = {"time": "t", "timezone": "Europe/Berlin"}
    for day, skipped in ((29, "2026-03-29 02:00"), (28, None)):
        hours = [
            f"2026-03-{day} {hour:02}:{minute},1" for hour in range(5) for minute in ("00", 30)
        ]
        path.write_text("t,v\n" + "\n".join(hours) + "\n")
        seen = check_series(str(path), "v", **asked)
        assert seen.skipped == skipped
        assert ("does not exist in Europe/Berlin" in seen.explain()) == bool(skipped)
    path.write_text("t,v\n2026-03-29T01:30+01:00,1\n2026-03-29T03:30+02:00,1\n")
    assert check_series(str(path), "v", **asked).skipped is None
