"""Files as people have them, with pandas as the independent reader."""

import io
import sys
import warnings
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, feather

from quiltwork import Clusters, MarkovChain
from quiltwork.delimited import DialectOptions, detect_dialect
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.series import read_series
from quiltwork.series.reading import columns

GERMAN = (
    "Zähler;Zeit;Leistung kW\n"
    "007;01.03.2026 00:00;0,35\n"
    "007;01.03.2026 00:15;n.a.\n"
    "007;01.03.2026 00:45;2,50\n"
    "1007;01.03.2026 00:00;1,00\n"
    "1007;01.03.2026 00:15;\n"
    "1007;01.03.2026 00:30;12,75\n"
)


@pytest.fixture(params=["arrow", "standard library"])
def by(request, monkeypatch):
    """Both ways to read: with Arrow, and without."""
    if request.param != "arrow":
        monkeypatch.setattr(columns, "_has_arrow", lambda: False)
    return request.param


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_a_german_meter_file_is_read_as_pandas_reads_it(tmp_path, encoding, by):
    path = tmp_path / "meters.csv"
    path.write_bytes(GERMAN.encode(encoding))
    frame = pd.read_csv(
        path, sep=";", decimal=",", encoding=encoding, dtype={"Zähler": str}, na_values=["n.a."]
    )
    series = read_series(
        path,
        "Leistung kW",
        time="Zeit",
        subject="Zähler",
        edges=[1, 5],
        every="15min",
        missing="state",
        na_values=["n.a."],
    )
    frame["Zeit"] = pd.to_datetime(frame["Zeit"], format="%d.%m.%Y %H:%M")
    assert list(series.data) == ["007", "1007"]
    for who, rows in frame.groupby("Zähler"):
        steps = rows.set_index("Zeit")["Leistung kW"].resample("15min").mean()
        names = ["<1", "1..5", ">=5"]
        cut = pd.cut(steps, [-np.inf, 1, 5, np.inf], right=False, labels=names)
        expected = cut.astype(object).where(cut.notna(), "missing").tolist()
        assert series.data[who].tolist() == expected
    for words in ("delimiter ;", "decimal comma", "times %d.%m.%Y %H:%M", "missing n.a."):
        assert words in series.reading
    assert ("encoding" in series.reading) == (encoding not in ("utf-8", "utf-8-sig"))


def test_plain_files_have_nothing_to_say(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("time,s\n2026-01-01,a\n2026-01-02,b\n")
    assert read_series(path, "s", time="time").reading == ""


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        ("a\tb\n1\t2\n", {}, "delimiter tab"),
        ("a|b\n1|2,5\n", {}, "delimiter |"),
        ("a;b\n1;2.5\n2;3.5\n", {}, "delimiter ;"),
        ("a;b\n1;2.5\n2;3.5\n", {"by_rows": False}, "delimiter ;, decimal comma"),
        ("a;b\n1;2\n2;3\n", {"decimal": "."}, "delimiter ;"),
        ('"a;b",c\n1,2\n', {}, ""),
        ("a,b\n1,2\n", {"delimiter": "semicolon"}, "delimiter ;, decimal comma"),
        ("one\n1\n", {}, ""),
    ],
)
def test_how_a_file_is_written_is_found_or_given(text, given, words):
    assert detect_dialect(text.encode(), DialectOptions(**given)).words == words


@pytest.mark.parametrize(
    "given", [{"delimiter": ";;"}, {"decimal": "'"}, {"encoding": "klingon"}, {"delimiter": '"'}]
)
def test_what_no_file_has_is_refused(given):
    with pytest.raises(InvalidInputError):
        DialectOptions(**given)


def test_rows_of_beliefs_without_states_have_no_say_in_how_others_are_read(tmp_path):
    rows = Clusters(range(3))
    path = tmp_path / "rows.csv"
    path.write_bytes("v\nä\nb\nc\n".encode("latin-1"))
    assert read_series(path, "v", beliefs=rows).data[None].tolist() == ["ä", "b", "c"]
    path.write_bytes(b"v\n\xe4\n" + "ä\nc\n".encode())  # each letter is read on its own
    assert read_series(path, "v", beliefs=rows).data[None].tolist() == ["ä", "ä", "c"]
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        read_series(path, "v", beliefs=rows, encoding="utf-8")
    for first in ("1.5", "x"):
        path.write_text(f"v;w\n{first};1\n2,5;1\n3,5;1\n")
        read = read_series(path, "v", edges=[3], beliefs=rows)
        assert read.data[None].tolist() == [None, "<3", ">=3"]


def test_both_readers_agree_on_odd_cells(tmp_path, by):
    path = tmp_path / "odd.csv"
    path.write_text('t,"v, w",s\n1, 1.5 ,"a\nb"\n2, NA ,"say ""x"""\n3,+2e0,\n4,nan,02\n')
    numbers = read_series(path, "v, w", time="t", edges=[1, 1.75], missing="state")
    assert numbers.data[None].tolist() == ["1..1.75", "missing", ">=1.75", "missing"]
    labels = read_series(path, "s", time="t", missing="state")
    assert labels.data[None].tolist() == ["a\nb", 'say "x"', "missing", "02"]
    path.write_text("t,v\n1,1.5\n2,k.A.\n3,offline\n4,-\n")  # no digit, no number
    words = read_series(path, "v", time="t", edges=[1], missing="state")
    assert words.data[None].tolist() == [">=1", *["missing"] * 3]
    with pytest.raises(InvalidInputError, match="Time point 2 is missing, and 2 more"):
        read_series(path, "v", time="t", edges=[1])
    path.write_text("t,v\n1,1.5\n2,k.A.\n3,-\n")
    with pytest.raises(InvalidInputError, match="Time point 2 is missing, and 1 more is"):
        read_series(path, "v", time="t", edges=[1])
    path.write_text("t,v\n1,1.5\n2,k.A.\n")
    with pytest.raises(InvalidInputError, match="Time point 2 of 'odd' is missing; say"):
        read_series(tmp_path, "v", time="t", subject="filename", edges=[1])
    for begin in (1, 30_000):  # a letter of another program is seen at once, or far behind
        path.write_bytes("ä,b\n".encode() + "ü,1\n".encode() * begin + b"\xfc,1\n")
        letters = read_series(path, "ä")
        assert letters.states == ("ü",)
        if by == "arrow" or begin == 1:
            assert "read with encoding cp1252 where letters are not UTF-8" in letters.reading


@pytest.mark.parametrize(
    "written",
    ["%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S", "%d-%b-%Y %H:%M", "%Y-%m-%d %H:%M:%S UTC", "ms"],
)
def test_times_as_exports_write_them(tmp_path, by, written):
    days = [datetime(2026, 2, 27) + timedelta(days=i) for i in range(5)]
    path = tmp_path / "export.csv"
    texts = [
        str(86_400_000 * (20511 + i)) if written == "ms" else f"{days[i]:{written}}"
        for i in range(5)
    ]
    path.write_text("t,s\n" + "".join(f"{text},x\n" for text in texts))
    read = read_series(path, "s", time="t")
    assert (read.points, read.grid.step) == (5, 86400)
    assert read.window("2026-03-01") == (3, 3)
    assert ("times %" in read.reading) == (written[-1] in "dMS")


def test_more_rows_are_looked_at_where_the_first_leave_open_what_is_a_day(tmp_path, by):
    days = [datetime(2026, 5, 1) + timedelta(hours=i) for i in range(12 * 24)]
    path = tmp_path / "american.csv"
    path.write_text("t,v\n" + "".join(f"{day:%m/%d/%Y %H:%M},1\n" for day in days))
    with pytest.raises(InvalidInputError, match=r"fit both .* missing='public'"):
        read_series(path, "v", time="t")
    with path.open("a") as file:
        file.write("05/13/2026 00:00,1\n")
    assert read_series(path, "v", time="t").grid.step == 3600


def test_errors_name_rows_across_batches(tmp_path, by):
    """Arrow reads some 4 MB at a time, the standard library some 65,000 rows."""
    path, note = tmp_path / "long.csv", 55 * "x"
    rows = [f"{i},0.5,{note}" for i in range(70_000)]
    rows[69_321] = f"69321,0x5,{note}"
    path.write_text("t,v,note\n" + "\n".join(rows))
    with pytest.raises(InvalidInputError, match="Row 69322 of column 'v' holds no number"):
        read_series(path, "v", time="t", edges=[1])
    assert read_series(path, "v", time="t").states[-1] == "0x5"
    rows[69_321] = "69321"
    path.write_text("t,v,note\n" + "\n".join(rows))
    with pytest.raises(InvalidInputError, match=r"Row 69322 .* 1 columns"):
        read_series(path, "v", time="t", edges=[1])


def test_run_lengths_and_intervals_hold_for_as_long_as_they_say(tmp_path, by):
    path = tmp_path / "runs.csv"
    path.write_text("state,n\nsleep,3\nwalk,0\nrun,2\n")
    assert (
        read_series(path, "state", duration="n").data[None].tolist() == ["sleep"] * 3 + ["run"] * 2
    )
    path.write_text(
        "state,from,to,for\n"
        "sleep,2026-03-01 00:00,2026-03-01 01:30,01:30:00\n"
        "walk,2026-03-01 01:30,2026-03-01 01:45,15min\n"
        "run,2026-03-01 02:00,2026-03-01 02:20,1200\n"
    )
    minutes = ["sleep"] * 90 + ["walk"] * 15 + ["missing"] * 15 + ["run"] * 20
    for held in ({"duration": "for"}, {"end": "to"}):
        found = read_series(path, "state", time="from", every="1min", missing="state", **held)
        assert found.data[None].tolist() == minutes
        with pytest.raises(InvalidInputError, match="need a grid"):
            read_series(path, "state", time="from", **held)
    path.write_text("s,a,b\nx,2026-03-01 02:00,2026-03-01 01:00\n")
    with pytest.raises(InvalidInputError, match="Row 1 ends before it begins"):
        read_series(path, "s", time="a", end="b", every="1h")
    path.write_text("s,n\nx,2\ny,-1\n")
    with pytest.raises(InvalidInputError, match="Row 2 of column 'n' holds no duration"):
        read_series(path, "s", duration="n")


@pytest.mark.parametrize(
    ("name", "number", "word"),
    [
        *[(name, "1.5", "minutes") for name in ("minutes", "Dauer (min)", "duration_min")],
        ("hours", "0.025", "hours"),
        *[(name, "90", "seconds") for name in ("seconds", "for", "minimum", "breath")],
    ],
)
def test_numbers_of_a_duration_are_in_the_unit_that_its_name_says(tmp_path, name, number, word):
    path = tmp_path / "runs.csv"
    path.write_text(f"state,from,{name}\nsleep,0,{number}\nwalk,90,{number}\n")
    at = {"time": "from", "date_format": "seconds"}
    found = read_series(path, "state", **at, duration=name, every="30s")
    assert found.data[None].tolist() == ["sleep"] * 3 + ["walk"] * 3
    assert found.reading.endswith(f"Numbers of {name!r} are {word}.")


def test_subjects_of_several_columns_and_of_file_names(tmp_path, by):
    for house, kw in (("north", 1), ("south", 3)):
        text = "".join(f"{m},{t},{kw + t}\n" for m in ("01", "02") for t in range(3))
        (tmp_path / f"{house}.csv").write_text(f"meter,t,kw\n{text}")
    frame = pd.concat(
        pd.read_csv(one, dtype={"meter": str}).assign(house=one.stem)
        for one in sorted(tmp_path.glob("*.csv"))
    )
    for source in (tmp_path, f"{tmp_path}/*.csv"):
        series = read_series(source, "kw", time="t", subject=["filename", "meter"], edges=[3.5])
        assert len(series.data) == 4
        for who, rows in frame.groupby(["house", "meter"]):
            expected = [">=3.5" if kw >= 3.5 else "<3.5" for kw in rows["kw"]]
            assert series.data[who].tolist() == expected
    with pytest.raises(InvalidInputError, match="no file to read"):
        read_series(f"{tmp_path}/*.tsv", "kw")


def test_files_of_a_folder_have_one_list_of_states(tmp_path, by):
    (tmp_path / "a.csv").write_text("s\n1\n2\n")
    (tmp_path / "b.csv").write_text("s\n1\nx\n")
    read = read_series(tmp_path, "s", subject="filename")
    assert {who: states.tolist() for who, states in read.data.items()} == {
        "a": ["1", "2"],
        "b": ["1", "x"],
    }
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["2", "1"])
    believed = read_series(tmp_path, "s", subject="filename", beliefs=chain)
    assert believed.data["b"].tolist() == ["1", "x"]
    assert believed.data["a"].tolist() == ["1", "2"]
    (tmp_path / "a.txt").write_text("s\n1\n")
    with pytest.raises(InvalidInputError, match="A subject is in several files"):
        read_series(tmp_path, "s", subject="filename", beliefs=chain)
    (tmp_path / "a.txt").write_text("s\n")
    with pytest.raises(InvalidInputError, match=r"a.txt: Column 's' has no rows"):
        read_series(tmp_path, "s", subject="filename", beliefs=chain)


def test_holes_in_regular_times_are_told_or_refused_where_nobody_would_see_them(tmp_path, by):
    path = tmp_path / "holes.csv"
    hours = [hour for hour in range(24) if hour not in (7, 8)]
    path.write_text("t,s\n" + "".join(f"2026-03-01 {hour:02}:00,x\n" for hour in hours))
    with pytest.warns(QuiltworkWarning, match="goes on over the holes, unless every='1h'"):
        read_series(path, "s", time="t")
    for missing in ("public", "state"):
        with pytest.raises(InvalidInputError, match=f"every='1h' too, so that missing='{missing}'"):
            read_series(path, "s", time="t", missing=missing)
        assert read_series(path, "s", time="t", missing=missing, every="1h").missing == 2


WHOLE, LOST = range(0, 480 * 900, 900), [*range(0, 86400, 900), *range(172800, 432000, 900)]


@pytest.mark.parametrize(
    ("times", "starts"),
    [
        ([WHOLE, LOST], [0, None]),
        ([WHOLE, [0, 86400]], [0, None]),
        ([WHOLE, [0, 900, 86400], [7]], [0, None, 7]),
    ],
    ids=["a lost day", "two records", "three, and one"],
)
@pytest.mark.parametrize("edges", [None, [0.5]])  # files are read together, or one by one
def test_fleets_do_not_go_on_over_a_lost_day_in_silence(tmp_path, times, starts, edges):
    for name, seconds in zip("abc", times, strict=False):
        rows = "".join(f"{second + 10**9},{second % 7 % 2}\n" for second in seconds)
        (tmp_path / f"{name}.csv").write_text(f"t,kw\n{rows}")
    options = {"time": "t", "subject": "filename", "edges": edges}
    with pytest.warns(QuiltworkWarning, match="Times are 15min apart, and some are missing"):
        read = read_series(tmp_path, "kw", **options)
    begins = [one.start and one.start - 10**9 for one in read.data.coded.values()]
    assert (begins, read.grid.step) == (starts, 900)
    with pytest.raises(InvalidInputError, match="every='15min' too, so that missing='public'"):
        read_series(tmp_path, "kw", missing="public", **options)


def test_a_lost_day_of_times_that_are_about_regular_or_of_other_steps_is_told(tmp_path):
    random = np.random.default_rng(3)
    drifting = [second + int(random.integers(-20, 20)) for second in LOST]
    for seconds, other in ((drifting, drifting), (LOST, range(0, 480 * 1800, 1800))):
        frame = pd.DataFrame(
            {
                "t (s)": [*seconds, *other],
                "who": [*len(seconds) * "a", *len(other) * "b"],
                "s": "x",
            }
        )
        with pytest.warns(QuiltworkWarning, match=r"about \w+ apart, and once 1 day, .* as every="):
            read_series(frame, "s", time="t (s)", subject="who")
    events = pd.DataFrame({"t": random.exponential(900, 500).astype(int).cumsum(), "s": "x"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuiltworkWarning)
        read_series(events.drop_duplicates("t"), "s", time="t")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("x,1", "Row 2 of column 't' is not a whole"),
        ("5,1", r"Row 2.* repeats"),
        ("6", "Row 2 of '.*b.csv'"),
    ],
)
def test_a_wrong_row_is_named_with_its_file(tmp_path, by, wrong, words):
    for name, rows in (("a", "1,1\n2,2\n3,1\n"), ("b", f"5,1\n{wrong}\n"), ("c", "8,1\n9,1\n")):
        (tmp_path / f"{name}.csv").write_text("t,s\n" + rows)
    for subject in (None, "filename"):
        with pytest.raises(InvalidInputError, match=rf"(b\.csv: )?{words}") as refused:
            read_series(tmp_path, "s", time="t", subject=subject)
        assert "b.csv" in str(refused.value)


class Stream:
    """What any library that speaks Arrow hands over: nothing but a stream."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, schema=None):
        return self._table.__arrow_c_stream__(schema)


class Relation(Stream):
    """What a relation of DuckDB is: names of columns, and a stream of Arrow."""

    @property
    def columns(self):
        return self._table.column_names


def test_every_frame_is_read_alike(tmp_path):
    table = csv.read_csv(io.BytesIO(b"t,s,z\n1,a,01\n2,b,02\n3,,03\n"))
    table = table.set_column(1, "s", pa.array(["a", "b", None]))
    feather.write_feather(table, tmp_path / "t.arrow")
    frame = pl.from_arrow(table)
    sources = [
        table,
        table.to_batches()[0],
        frame,
        frame.lazy(),
        frame.lazy().filter(pl.col("t") > 0),
        table.to_pandas(),
        Relation(table),
        Stream(table),
        table.to_reader(),
        tmp_path / "t.arrow",
        str(tmp_path / "*.arrow"),
    ]
    for source in sources:
        read = read_series(source, "s", time="t", missing="state")
        assert read.data[None].tolist() == ["a", "b", "missing"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_moments_with_a_zone_are_moments_in_every_frame(zone):
    moments = pd.date_range("2026-03-29", periods=6, freq="h", tz=zone)
    frame = pd.DataFrame({"t": moments, "s": list("abcabc")})
    arrow = pa.Table.from_pandas(frame)
    for source in (frame, arrow, pl.from_arrow(arrow), frame.assign(t=frame["t"].astype(str))):
        read = read_series(source, "s", time="t", timezone="Europe/Berlin", every="1h")
        midnight = pd.Timestamp("2026-03-29", tz="Europe/Berlin")
        assert read.data.coded[None].start == int(midnight.timestamp())
        assert read.points == (6 if zone else 5)  # 02:00 is 03:00 on a day without the one


def test_what_is_missing_by_name_is_said_in_a_sentence(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t,s\n03/04/2026 10:00,a\n05/06/2026 10:00,b\n")
    with pytest.raises(InvalidInputError, match="fit both '%d/%m/%Y %H:%M' and '%m/%d/%Y %H:%M'"):
        read_series(path, "s", time="t")
    read = read_series(
        path, "s", time="t", date_format="%m/%d/%Y %H:%M", every="1h", missing="state"
    )
    assert read.points == 24 * 63 + 1  # from 4 March to 6 May
    path.write_text("t,s\n2026-01-01,a\nnever,b\n")
    with pytest.raises(InvalidInputError, match="Row 2 of column 't' holds no time"):
        read_series(path, "s", time="t")


def test_collections_are_refused_by_their_row_or_left_to_the_release(tmp_path):
    table = pa.table({"s": [["a"], ["b"]], "t": [1, 2]})
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"])
    for source in (table, table.to_pandas(), pl.from_arrow(table)):
        with pytest.raises(InvalidInputError, match="Row 1 of column 's' holds a list"):
            read_series(source, "s", time="t")
        assert read_series(source, "s", time="t", beliefs=chain).points == 2


def test_standard_input_may_be_read_twice(monkeypatch):
    text = "t;v\n1;0,5\n2;0x5\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(InvalidInputError, match="Row 2"):
        read_series("-", "v", time="t", edges=[1])


def test_a_time_point_takes_one_byte(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("s\n" + "longlabel\nother\n" * 1000)
    read = read_series(path, "s")
    (sequence,) = read.data.coded.values()
    assert sequence.codes.nbytes == 2000
    assert read.data[None].dtype == np.dtype("<U9")


def test_a_data_set_and_a_stream_of_arrow_are_read_by_batches(tmp_path):
    frame = pa.table({"v": ["a", "b", "a"], "w": [1, 2, 3]})
    csv.write_csv(frame, tmp_path / "part.csv")
    for source in (dataset.dataset(tmp_path, format="csv"), frame.to_reader(), frame):
        assert read_series(source, "v").data[None].tolist() == ["a", "b", "a"]
    with pytest.raises(InvalidInputError, match="Table is a table; give the column"):
        MarkovChain.fit(frame)
