"""Windows as people say them, against a look at the clock in every single minute."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise, zip_longest
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import quiltwork as qw
from quiltwork import MarkovChain, queries, release
from quiltwork.beliefs import CyclicChain, candidates
from quiltwork.beliefs.cyclic import align_to_starts
from quiltwork.beliefs.origins import local_start
from quiltwork.beliefs.zones import local_seconds, utc_seconds
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import fit_warnings
from quiltwork.series import read_series
from quiltwork.series.reading.clock import Clock, TimePoints
from quiltwork.series.reading.read import refuse_cutting

BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2026, 3, 26, 11, tzinfo=UTC)  # clocks go forward on the 29th
AUTUMN = datetime(2026, 10, 22, 11, tzinfo=UTC)  # and back on the 25th


def clocks(start, minutes, zone):
    """What the clock shows in every minute."""
    return [(start + timedelta(minutes=i)).astimezone(zone) for i in range(minutes)]


def runs(inside):
    """Runs of true, counted from 1, by going through them."""
    found, begin = [], None
    for place, is_in in enumerate([*inside, False], 1):
        if is_in and begin is None:
            begin = place
        elif not is_in and begin is not None:
            found.append((begin, place - 1))
            begin = None
    return found


ASKED = {
    "2026-03-28:2026-03-29": lambda t: t.strftime("%Y-%m-%d") in ("2026-03-28", "2026-03-29"),
    "2026-10-25": lambda t: t.strftime("%Y-%m-%d") == "2026-10-25",
    "2026-03": lambda t: t.strftime("%Y-%m") == "2026-03",
    "2025-10:2026-10": lambda t: t.strftime("%Y-%m") <= "2026-10",
    "2026": lambda t: t.year == 2026,
    "Sundays": lambda t: t.weekday() == 6,
    "Sundays 02:00-02:30": lambda t: t.weekday() == 6 and t.hour == 2 and t.minute < 30,
    "weekends 18:00-22:00": lambda t: t.weekday() > 4 and 18 <= t.hour < 22,
    "Fri, Sat 22:00-06:00": lambda t: (
        (t.hour >= 22 and t.weekday() in (4, 5)) or (t.hour < 6 and t.weekday() in (5, 6))
    ),
    "07:30–09:00": lambda t: (7, 30) <= (t.hour, t.minute) < (9, 0),
    "last 2 days": None,
}


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kathmandu"])
@pytest.mark.parametrize("text", ASKED)
def test_windows_are_what_the_clock_shows_minute_by_minute(start, zone, text):
    shown = clocks(start, 5 * 1440, ZoneInfo(zone))
    final = shown[-1].date()
    if text == "last 2 days":
        expected = runs([t.date() >= final - timedelta(days=1) for t in shown])
    else:
        expected = runs([ASKED[text](t) for t in shown])
    points = TimePoints(int(start.timestamp()), 60, len(shown), Clock(zone, False))
    if not expected:
        with pytest.raises(InvalidInputError, match="No time point is in"):
            points.windows(text)
    else:
        assert points.windows(text) == expected


@pytest.mark.parametrize("start", [SPRING, AUTUMN])
def test_local_times_find_back_to_their_moments(start):
    moments = np.array([int(start.timestamp()) + 60 * i for i in range(5 * 1440)])
    shown = local_seconds(moments, BERLIN)
    naive = [t.replace(tzinfo=UTC).timestamp() for t in clocks(start, 5 * 1440, BERLIN)]
    assert shown.tolist() == naive
    who = np.zeros(len(moments), dtype=int)
    assert utc_seconds(shown, who, BERLIN).tolist() == moments.tolist()
    twice = np.repeat(shown, 2), np.tile([0, 1], len(shown))
    assert utc_seconds(*twice, BERLIN).tolist() == np.repeat(moments, 2).tolist()
    by_time = np.argsort(shown, kind="stable")
    assert utc_seconds(shown[by_time], who, BERLIN).tolist() == moments[by_time].tolist()
    change = int(datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp())
    some = (moments < change - 1200) | (moments >= change)  # the first pass ends in a gap
    assert utc_seconds(shown[some], who[some], BERLIN).tolist() == moments[some].tolist()
    if start == AUTUMN:
        for rows in (np.s_[::-1], np.s_[::-60], np.random.default_rng(1).permutation(len(who))):
            with pytest.raises(InvalidInputError, match=r"twice on 2026-10-25 .* oldest first"):
                utc_seconds(shown[rows], who[rows], BERLIN)


def fleet_in_autumn(path, doubled):
    """Ten-minute rows of three meters across the autumn change, one after the other."""
    shown = [t.strftime("%Y-%m-%d %H:%M") for t in clocks(AUTUMN, 5 * 1440, BERLIN)[::10]]
    rows = [(meter, t, k % 2) for meter in ("a", "b", "c") for k, t in enumerate(shown)]
    if doubled is not None:
        rows.insert(doubled, rows[doubled])
    pd.DataFrame(rows, columns=["meter", "t", "on"]).to_csv(path, index=False)
    return rows


def test_a_doubled_row_in_the_hour_that_comes_twice_is_named_with_its_meter(tmp_path):
    path = tmp_path / "fleet.csv"
    rows = fleet_in_autumn(path, None)
    columns = {"value": "on", "time": "t", "subject": "meter", "timezone": "Europe/Berlin"}
    assert len(read_series(path, **columns).data) == 3
    first_pass = [
        place
        for place, (meter, t, _) in enumerate(rows)
        if meter == "b" and t[11:13] == "02" and t in [r[1] for r in rows[place + 1 :]]
    ]
    assert len(first_pass) > 3
    for place in (first_pass[1], first_pass[3]):
        fleet_in_autumn(path, place)
        with pytest.raises(
            InvalidInputError, match=rf"Row {place + 2} \(subject 'b'\) repeats the time of an"
        ):
            read_series(path, **columns)
    fleet_in_autumn(path, 5)  # in no hour that comes twice
    with pytest.raises(
        InvalidInputError,
        match=r"Row 7 \(subject 'a'\) repeats the time of an earlier row, row 6\.",
    ):
        read_series(path, **columns)


@pytest.mark.parametrize("alternate", [False, True])
def test_doubled_rows_are_dropped_wherever_they_are_also_in_the_hour_that_comes_twice(
    tmp_path, alternate
):
    path = tmp_path / "fleet.csv"
    columns = {"value": "on", "time": "t", "subject": "meter", "timezone": "Europe/Berlin"}
    fleet_in_autumn(path, None)
    clean = read_series(path, **columns)
    rows = fleet_in_autumn(path, None)
    for place in range(0, len(rows), 7):
        several = [rows[place]] * (1 + place % 3)
        doubled = [*rows[:place], *several, *rows[place:]]
        if alternate:
            own = [[row for row in doubled if row[0] == who] for who in "abc"]
            doubled = [row for turn in zip_longest(*own) for row in turn if row is not None]
        pd.DataFrame(doubled, columns=["meter", "t", "on"]).to_csv(path, index=False)
        read = read_series(path, **columns, duplicates="first")
        assert {k: v.tolist() for k, v in read.data.items()} == {
            k: v.tolist() for k, v in clean.data.items()
        }
        assert read.data.coded["a"].start == clean.data.coded["a"].start


def test_rows_an_hour_apart_keep_both_passes_where_duplicates_are_dropped(tmp_path):
    shown = clocks(AUTUMN, 3 * 1440, BERLIN)[::60]
    rows = [(t.strftime("%Y-%m-%d %H:%M"), k % 3) for k, t in enumerate(shown)]
    path = tmp_path / "hourly.csv"
    pd.DataFrame([*rows[:10], rows[9], *rows[10:]], columns=["t", "on"]).to_csv(path, index=False)
    read = read_series(path, "on", time="t", timezone="Europe/Berlin", duplicates="first")
    assert read.data[None].tolist() == [k for _, k in rows]


@pytest.mark.filterwarnings("ignore:Times are 10min apart")
@pytest.mark.parametrize("every", [None, "30min"])
def test_doubled_times_are_merged_as_pandas_merges_them(tmp_path, every):
    draw = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "who": draw.choice(["a", "b", "c"], 4000),
            "t": 600 * draw.integers(0, 900, 4000) + 1_700_000_000 // 600 * 600,
            "kw": draw.normal(1, 1, 4000).round(2),
        }
    )
    path = tmp_path / "meters.csv"
    frame.to_csv(path, index=False)
    columns = {"time": "t", "subject": "who", "edges": [0.5, 1.5], "every": every}
    columns |= {"missing": "public" if every else "error", "rule": "sum" if every else None}
    for duplicates, merge in (("first", "first"), ("mean", "mean")):
        read = read_series(path, "kw", **columns, duplicates=duplicates)
        once = frame.groupby(["who", "t"], as_index=False).kw.agg(merge)
        for who, own in once.groupby("who"):
            steps = own.kw if every is None else own.groupby(own.t // 1800).kw.sum()
            codes = np.searchsorted([0.5, 1.5], steps, side="right")
            names = np.array(["<0.5", "0.5..1.5", ">=1.5"], dtype=object)[codes]
            assert [one for one in read.data[who] if one is not None] == names.tolist()
    with pytest.raises(InvalidInputError, match=r"Row \d+ \(subject '.'\) repeats the time"):
        read_series(path, "kw", **columns, duplicates="error")


def test_duplicates_and_only_need_the_columns_they_are_about(tmp_path):
    path = tmp_path / "fleet.csv"
    fleet_in_autumn(path, None)
    with pytest.raises(InvalidInputError, match="needs the name of the time column"):
        read_series(path, "on", subject="meter", duplicates="first")
    with pytest.raises(InvalidInputError, match="averages numbers and needs edges"):
        read_series(path, "on", time="t", subject="meter", duplicates="mean")
    with pytest.raises(InvalidInputError, match="needs the column of subjects"):
        read_series(path, "on", time="t", only="a")


def test_one_meter_is_read_where_another_has_a_doubled_row(tmp_path):
    path = tmp_path / "fleet.csv"
    columns = {"value": "on", "time": "t", "subject": "meter", "timezone": "Europe/Berlin"}
    rows = fleet_in_autumn(path, None)
    clean = read_series(path, **columns).data["c"].tolist()
    fleet_in_autumn(path, 5)
    read = read_series(path, **columns, only="c")
    assert list(read.data) == ["c"]
    assert read.data["c"].tolist() == clean
    doubled = next(place for place, row in enumerate(rows) if row[0] == "c") + 3
    fleet_in_autumn(path, doubled)  # rows are counted in the file
    with pytest.raises(InvalidInputError, match=rf"Row {doubled + 2} \(subject 'c'\) repeats"):
        read_series(path, **columns, only="c")


def test_a_subject_may_begin_in_the_hour_that_comes_twice_after_another_has_ended():
    day = int(datetime(2026, 10, 25, tzinfo=UTC).timestamp())
    shown = day + np.array([2 * 3600, 3 * 3600, 2 * 3600 + 1800])
    moments = utc_seconds(shown, np.array([0, 0, 1]), BERLIN)
    assert (moments - day).tolist() == [0, 2 * 3600, 1800]


def quarters(start, days, path, **columns):
    """A file with local times as meters write them: no offset, an hour missing or twice."""
    shown = clocks(start, days * 1440, BERLIN)[::15]
    frame = pd.DataFrame({"zeit": [t.strftime("%d.%m.%Y %H:%M") for t in shown]})
    frame["kw"] = ["0,2" if t.hour < 18 else "3,5" for t in shown]
    frame.assign(**columns).to_csv(path, index=False, sep=";")
    return shown


@pytest.mark.parametrize(
    ("first", "hours"), [(datetime(2026, 3, 28, 23, tzinfo=UTC), 23), (None, 25)]
)
def test_a_local_day_has_as_many_points_as_the_clock_passes(tmp_path, first, hours):
    start = first or datetime(2026, 10, 24, 22, tzinfo=UTC)
    path = tmp_path / "meter.csv"
    shown = quarters(start, 3, path)
    series = read_series(
        path, "kw", time="zeit", edges=[1], every="15min", timezone="Europe/Berlin"
    )
    assert series.points == len(shown)
    day = shown[0].date().isoformat()
    assert series.window(day) == (1, 4 * hours)
    assert series.data[None].tolist() == ["<1" if t.hour < 18 else ">=1" for t in shown]
    assert series.windows("daily 18:00-22:00") == runs([18 <= t.hour < 22 for t in shown])
    daily = read_series(
        path, "kw", time="zeit", edges=[1.5], every="1d", timezone="Europe/Berlin", missing="state"
    )
    dates = {t.date(): [] for t in shown}
    for t in shown:
        dates[t.date()].append(0.2 if t.hour < 18 else 3.5)
    means = [np.mean(one) for one in dates.values()]
    assert daily.data[None].tolist() == [">=1.5" if mean >= 1.5 else "<1.5" for mean in means]
    assert daily.window(day) == (1, 1)


def test_a_release_carries_its_period(tmp_path):
    path = tmp_path / "meter.csv"
    quarters(datetime(2026, 3, 27, 23, tzinfo=UTC), 3, path)
    series = read_series(
        path, "kw", time="zeit", edges=[1], every="15min", timezone="Europe/Berlin"
    )
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=series.states)
    window = series.window("2026-03-29")
    answer = release(series.data, queries.histogram().on(*window), chain)
    assert answer.period == ("2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00")
    assert type(answer).from_json(answer.to_json()) == answer
    assert "(29 March 2026)" in answer.explain()
    assert release(["<1", ">=1"], queries.histogram(), chain).period is None


def test_subjects_are_put_on_the_same_days(tmp_path):
    path = tmp_path / "two.csv"
    path.write_text(
        "who,time,s\na,2026-03-01T00:00,x\na,2026-03-03T23:00,y\n"
        "b,2026-03-02T05:00,y\nb,2026-03-04T00:00,x\n"
    )
    options = {"time": "time", "subject": "who", "every": "1h", "missing": "state"}
    apart = read_series(path, "s", **options)
    with pytest.raises(InvalidInputError, match=r"begin at 2 different times.*days="):
        apart.window("2026-03-02")
    assert apart.window("2026-03-02", "a") == (25, 48)
    assert apart.window("2026-03-02", "b") == (1, 19)
    together = read_series(path, "s", **options, days="2026-03-01:2026-03-03")
    assert together.lengths == (72, 72)
    assert together.window("2026-03-02") == (25, 48)
    a, b = together.data["a"], together.data["b"]
    assert (a[0], a[71], b[29]) == ("x", "y", "y")
    assert (a != "missing").sum() == 2
    assert (b != "missing").sum() == 1


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "Mondays 25:00-26:00", "", "9", "Mondys"])
def test_words_that_mean_no_window_get_a_sentence(text):
    frame = pd.DataFrame(
        {"t": pd.date_range("2026-01-01", periods=72, freq="h").astype(str), "s": ["a", "b"] * 36}
    )
    series = read_series(frame, "s", time="t")
    with pytest.raises(InvalidInputError):
        series.window(text)
    with pytest.raises(InvalidInputError, match="is 3 windows, 19:22"):
        series.window("18:00-22:00")
    assert series.window("3:9") == (3, 9)
    assert series.window("2026-01-02 06:00..2026-01-02 09:00") == (31, 33)
    assert series.window("last 24 hours") == (49, 72)


def test_what_does_not_go_together_is_refused(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("t,s\n2026-01-01T00:00,a\n2026-01-01T01:00,b\n")
    with pytest.raises(InvalidInputError, match="no time zone 'Mars'"):
        read_series(path, "s", time="t", timezone="Mars")
    with pytest.raises(InvalidInputError, match="needs the name of the time column"):
        read_series(path, "s", timezone="UTC")
    with pytest.raises(InvalidInputError, match=r"need the time column, .* every="):
        read_series(path, "s", time="t", days="2026-01-01:2026-01-02")
    with pytest.raises(InvalidInputError, match="No record is on these days"):
        read_series(path, "s", time="t", every="1h", days="2025-01-01:2025-01-02")
    with pytest.raises(InvalidInputError, match="unknown or not regular"):
        read_series(path, "s").window("2026-01-01")
    daily = CyclicChain(np.full((24, 2, 2), 0.5), states=["a", "b"])
    berlin = {"time": "t", "timezone": "Europe/Berlin", "beliefs": daily}
    assert read_series(path, "s", **berlin).points == 2
    path.write_text("t,s\n2026-03-29T01:00,a\n2026-03-29T03:00,b\n2026-03-29T04:00,b\n")
    changed = read_series(path, "s", **berlin)
    for question in (qw.release, lambda data, *rest: align_to_starts([daily], [data])):
        with pytest.raises(InvalidInputError, match="needs the moment of phase 0"):
            question(changed.data.coded[None], qw.queries.histogram(), daily)


@pytest.mark.parametrize("days", [300, 40, 365])
def test_beliefs_about_the_day_follow_the_clock_where_it_changes(days):
    moments = pd.date_range("2026-01-01", periods=24 * days, freq="h", tz="Europe/Berlin")
    awake = (moments.hour > 7) & (moments.hour < 23)
    states = np.where(awake ^ (np.random.default_rng(1).random(len(moments)) < 0.1), "a", "b")
    frame = pd.DataFrame({"t": moments, "s": states})
    local = read_series(frame, "s", time="t", timezone="Europe/Berlin").data
    assert candidates(local)[0].name == "time of day"
    assert not any("Clocks" in line for line in fit_warnings(qw.plausible(local), local))
    fitted = CyclicChain.fit(local, "day")
    counts = np.zeros((24, 2, 2))
    for t, (a, b) in enumerate(pairwise(states == "b")):
        counts[moments[t].hour, int(a), int(b)] += 1
    grouped = counts + 0.5 * 2 * (counts.sum(0) + 0.5) / (counts.sum(0) + 0.5).sum(1)[:, None]
    if days > 40:  # enough for a matrix of its own for each phase
        assert np.allclose(fitted.matrices, grouped / grouped.sum(axis=2, keepdims=True))
    assert fitted.calendar.zone == "Europe/Berlin"


def test_what_leaves_a_belief_about_the_day_out_says_what_it_costs():
    moments = pd.date_range("2026-01-01", periods=12 * 120, freq="2h", tz="Europe/Berlin")
    awake = (moments.hour > 7) & (moments.hour < 23)
    states = np.where(awake ^ (np.random.default_rng(1).random(len(moments)) < 0.1), "a", "b")
    rows = pd.DataFrame({"t": moments, "s": states})
    local = read_series(rows, "s", time="t", every="2h", timezone="Europe/Berlin").data
    with pytest.raises(InvalidInputError, match="change by 1h in this series, and steps of 2h"):
        CyclicChain.fit(local, "day")
    left = qw.plausible(local)
    assert not any(isinstance(one, CyclicChain) for one in left)
    (said,) = (line for line in fit_warnings(left, local) if "Clocks change" in line)
    now, with_day = map(float, re.findall(r"noise of ([\d.]+)", said))
    assert with_day < now / 2
    assert "--timezone none" in said


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_phases_of_a_day_are_those_of_the_clock(tmp_path, zone):
    path = tmp_path / "s.csv"
    hours = [
        f"2026-01-0{day}T{hour:02d}:00,{'ab'[hour % 2]}" for day in (1, 2) for hour in range(24)
    ]
    path.write_text("\n".join(["t,s", *hours]))
    read = read_series(path, "s", time="t", timezone=zone)
    assert local_start(read.data[None]) == local_start(read.data.coded[None])
    assert local_start(read.data[None]) % 86400 == 0
    later = read_series(path, "s", time="t", timezone=zone).data[None][6:]
    assert local_start(later) % 86400 == 6 * 3600


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        ("2026-03-28:2026-03-29", "2026-03-28", "2026-03-30"),
        ("2026-03-28 07:00..2026-03-28 19:00", "2026-03-28 07:00", "2026-03-28 19:00"),
        ("last 2 days", "2026-03-30", "2026-04-01"),
    ],
)
def test_series_with_gaps_are_cut_to_a_window_as_pandas_cuts_them(zone, words, begin, end):
    times = pd.date_range("2026-03-26 07:15", "2026-03-31 23:45", freq="15min", tz=zone)
    random = np.random.default_rng(2)
    whole = pd.DataFrame({"t": times, "s": random.choice(["x", "y"], len(times))})
    rows = [
        whole.drop(range(gap, gap + 20)).loc[first:].assign(who=who)
        for who, first, gap in (("a", 0, 90), ("b", 150, 240), ("c", 300, 400))
    ]
    read = read_series(
        pd.concat(rows),
        "s",
        time="t",
        subject="who",
        every="15min",
        missing="public",
        timezone=zone,
    )
    cut = read.during(words)
    a, b = (pd.Timestamp(one, tz=zone) for one in (begin, end))
    for own in rows:
        inside = own[(own.t >= a) & (own.t < b)]
        pieces = [one for who, one in cut.data.items() if who == own.who.iloc[0]]
        labels = [label for piece in pieces for label in piece]
        assert [label for label in labels if label is not None] == inside.s.tolist()
    assert cut.points == sum(cut.lengths)
    assert cut.missing == sum(one.tolist().count(None) for one in cut.data.values())
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["x", "y"])
    period = release(cut.data, queries.histogram(), chain).period
    shown = pd.concat(rows).query("t >= @a and t < @b").t
    assert [pd.Timestamp(one) for one in period] == [shown.min(), shown.max() + times.freq]


def test_what_is_left_out_of_a_window_is_protected_as_what_stays():
    """The exact leakage of every moment of the whole series, by the noise for the part alone."""
    for stay in (0.6, 0.95):
        chain = MarkovChain([[stay, 1 - stay], [0.3, 0.7]])
        count = queries.count(1)
        part = qw.calibrate(chain, 2, 1.0, method="optimal-scale", query=count)
        told = qw.audit.leakage(chain, 2, [(count, part.scale)])
        whole = qw.audit.leakage(chain, 7, [(count.on(4, 5), part.scale)])
        assert 0.95 < told <= 1 + 1e-9
        assert whole <= told + 1e-9
    remembers = qw.MarkovChain.fit([chain.sample(500, seed=1)], order=2)
    started = MarkovChain(chain.transition, initial=[0.5, 0.5])
    refuse_cutting([chain, qw.ChainBox([[0.1, 0.1]] * 2, [[0.9, 0.9]] * 2)])
    turning = CyclicChain([chain.transition] * 2)  # phases by position, which a cut moves
    refuse_cutting([CyclicChain([chain.transition] * 2, grid=qw.Grid(step="1h"), anchor=0)])
    for belief in (remembers, started, turning):
        with pytest.raises(UnsupportedError, match=r"read it alone with days="):
            refuse_cutting([chain, belief])


def test_a_release_refuses_what_was_cut_under_beliefs_that_would_not_protect_the_rest(tmp_path):
    times = [*pd.date_range("2026-01-01 20:00", periods=8, freq="h")]
    rows = pd.DataFrame({"t": times, "s": [0, 1] * 4, "who": "a"})
    late = rows.assign(t=[one + timedelta(days=1) for one in times], who="b")
    rows = pd.concat([rows, late])
    read = read_series(rows, "s", time="t", subject="who", every="1h", timezone="UTC")
    cut, chain = read.during("2026-01-02"), MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    started = MarkovChain(chain.transition, initial=[0.99, 0.01])
    for given in (cut.data, dict(cut.data), list(cut.data.values())):
        assert release(given, queries.histogram(), chain).length == 4
        with pytest.raises(UnsupportedError, match="do not begin together"):
            release(given, queries.histogram(), started)
    release(read.data, queries.histogram(), started)
    release(read.during("2026-01").data, queries.histogram(), started)  # nothing was left out
    with qw.budget.Ledger.open(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.create("d", chain, 4, budget=9)
        with pytest.raises(UnsupportedError, match="one window of all"):
            release(cut.data, queries.histogram(), chain, ledger=ledger, dataset="d")
