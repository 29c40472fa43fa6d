"""Series from files and frames, with pandas as the independent reader."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork import ChainBox, MarkovChain
from quiltwork.beliefs import Grid
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.series import read_series, read_states


@pytest.fixture
def meters():
    """Two meters with irregular times, one gap of two steps and one missing value."""
    return pd.DataFrame(
        {
            "meter": ["b", "a", "a", "b", "a", "a"],
            "time": pd.to_datetime(
                [
                    "2026-01-01 00:03",
                    "2026-01-01 00:12",
                    "2026-01-01 00:01",
                    "2026-01-01 00:31",
                    "2026-01-01 00:14",
                    "2026-01-01 00:20",
                ]
            ),
            "kw": [0.1, 2.0, 0.4, 3.0, 4.0, np.nan],
        }
    )


def test_sorts_by_subject_and_time_and_bins_by_public_edges(meters):
    series = read_series(
        meters.dropna(),
        "kw",
        time="time",
        subject="meter",
        edges=[0.5, 2.5],
        labels=["low", "mid", "high"],
    )
    assert {key: list(value) for key, value in series.data.items()} == {
        "b": ["low", "high"],
        "a": ["low", "mid", "high"],
    }
    assert series.states == ("low", "mid", "high")
    assert series.declared
    assert series.lengths == (2, 3)


def test_a_grid_gathers_records_and_shows_gaps(meters):
    series = read_series(
        meters, "kw", time="time", subject="meter", edges=[0.5, 2.5], every="10min", missing="state"
    )
    assert {key: list(value) for key, value in series.data.items()} == {
        "b": ["<0.5", "missing", "missing", ">=2.5"],
        "a": ["<0.5", ">=2.5", "missing"],
    }
    assert (series.points, series.missing) == (7, 3)


def test_public_gaps_keep_their_place(meters):
    series = read_series(
        *(meters, "kw"), time="time", subject="meter", edges=[0.5, 2.5], every="10min",
        missing="public",
    )  # fmt: skip
    assert {key: list(value) for key, value in series.data.items()} == {
        "b": ["<0.5", None, None, ">=2.5"],
        "a": ["<0.5", ">=2.5", None],
    }
    assert series.states == ("<0.5", "0.5..2.5", ">=2.5")
    assert (series.points, series.missing) == (7, 3)


def test_a_gap_is_an_error_by_default(meters):
    with pytest.raises(InvalidInputError, match=r"Time point 2 of subject 1 .*2 more"):
        read_series(meters, "kw", time="time", subject="meter", edges=[1], every="10min")


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(0, 5000), st.floats(-5, 5)),
        min_size=1,
        max_size=60,
    ),
    st.sampled_from(["mean", "min", "max", "sum", "first", "last"]),
)
def test_resampling_agrees_with_pandas(records, rule):
    frame = pd.DataFrame(records, columns=["who", "second", "value"])
    series = read_series(
        frame,
        "value",
        time="second",
        subject="who",
        edges=[-1, 0, 1],
        every="10min",
        rule=rule,
        missing="state",
    )
    ordered = frame.sort_values(["who", "second"], kind="stable")
    for who, rows in ordered.groupby("who"):
        steps = rows.groupby(rows["second"] // 600)["value"].agg(rule)
        steps = steps.reindex(range(steps.index.min(), steps.index.max() + 1))
        cut = pd.cut(
            steps, [-np.inf, -1, 0, 1, np.inf], right=False, labels=["<-1", "-1..0", "0..1", ">=1"]
        )
        near_edge = np.isclose(steps % 1, 0) | np.isclose(steps % 1, 1)
        expected = cut.astype(object).where(cut.notna(), "missing").to_numpy()
        keep = ~near_edge
        assert series.data[who][keep].tolist() == expected[keep].tolist()


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet", "pandas", "polars", "arrow"])
def test_every_container_reads_alike(kind, meters, tmp_path):
    text = meters.assign(time=meters["time"].dt.strftime("%Y-%m-%dT%H:%M")).to_csv(index=False)
    arrow = pa.Table.from_pandas(meters, preserve_index=False)
    sources = {
        "csv": tmp_path / "m.csv",
        "gz": tmp_path / "m.csv.gz",
        "parquet": tmp_path / "m.parquet",
        "pandas": meters,
        "polars": pl.from_arrow(arrow),
        "arrow": arrow,
    }
    (tmp_path / "m.csv").write_text(text)
    (tmp_path / "m.csv.gz").write_bytes(gzip.compress(text.encode()))
    pq.write_table(arrow, tmp_path / "m.parquet")
    options = {"time": "time", "subject": "meter", "edges": [0.5], "missing": "state"}
    series = read_series(sources[kind], "kw", **options)
    expected = read_series(meters, "kw", **options)
    assert list(series.data) == list(expected.data)
    for key in series.data:
        assert series.data[key].tolist() == expected.data[key].tolist()


def test_a_parquet_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    rows = 2_100_000
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"s": np.zeros(rows, dtype=np.int8)}), path)
    with pytest.raises(InvalidInputError, match="unpacks to more than 16 MB"):
        read_series(path, "s")
    monkeypatch.setenv("QUILTWORK_UNPACKED_MB", "17")
    assert read_series(path, "s").points == rows


def test_labels_from_csv_are_read_as_the_declared_states(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("state\n0\n1\n1\n")
    assert read_states(path).tolist() == [0, 1, 1]
    assert read_states(path, states=("0", "1")).tolist() == ["0", "1", "1"]
    assert read_states(path, "state", states=(0.0, 1.0)).tolist() == [0.0, 1.0, 1.0]
    assert read_series(path, "state").states == (0, 1)
    assert not read_series(path, "state").declared


def test_labels_and_subjects_are_told_apart_as_they_are_written(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("who,zone\n7,01\n07,1\n7,10\n07,01\n")
    found = read_series(path, "zone", subject="who")
    assert {who: labels.tolist() for who, labels in found.data.items()} == {
        "7": ["01", "10"],
        "07": ["1", "01"],
    }
    path.write_text("zone\n1.5\n1.50\n2\n")
    assert read_series(path, "zone").states == ("1.5", "1.50", "2")
    path.write_text("zone\n1.5\n2\n")
    assert read_series(path, "zone").states == (1.5, 2.0)


def test_unicode_labels_and_names(tmp_path):
    path = tmp_path / "schlaf.csv"
    path.write_text("Zustand\nläuft\nruht\nläuft\n", encoding="utf-8")
    assert read_states(path).tolist() == ["läuft", "ruht", "läuft"]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ("t,v\n1,a\n1,b\n", {"time": "t"}, "Row 2 repeats the time of an earlier row"),
        ("t,v\nsoon,a\n", {"time": "t"}, "holds no time"),
        ("t,v\n1,a\nsoon,a\n", {"time": "t"}, "Row 2 .* is not a whole number"),
        ("t,v\n2026-01-01,1\n2026-01-02T00:00Z,2\n", {"time": "t"}, "mixes times"),
        ("t,v\n1,x\n", {"edges": [1]}, "no row of column 'v' holds a number"),
        ("t,v\n1,inf\n", {"edges": [1]}, "infinite"),
        ("t,v\n1,\n2,a\n", {}, "Time point 1 is missing"),
        ("t,v\n1,\n", {"missing": "public"}, "Every time point is missing"),
        ("t,v\n", {}, "no rows"),
        ("t,v\n1\n", {}, "1 columns and the header 2"),
        ("v\n1\n1,5\n", {"edges": [1]}, "Row 2 .* 2 columns and the header 1"),
        ("t,v\n1,2\n", {"every": "1h"}, "needs the name of the time column"),
        ("t,v\n1,2\n", {"every": "1 fortnight", "time": "t"}, "Cannot read the duration"),
        ("t,v\n1,2\n", {"edges": [2, 1]}, "increasing"),
        ("t,v\n1,2\n", {"edges": [float("nan")]}, "finite"),
        ("t,v\n1,2\n", {"edges": [1], "labels": ["a"]}, "make 2 states"),
        ("t,v\n1,2\n", {"labels": ["a"]}, "give edges"),
        ("t,v\n1,2\n", {"missing": "drop"}, "'error', 'state' or 'public'"),
        ("t,v\n1,2\n", {"rule": "median"}, "rule must be"),
        ("t,v\n1,missing\n2,\n", {"missing": "state"}, "is a state already"),
        ("t,v\n1,a\n", {"time": "t", "every": "1h", "rule": "max"}, "needs numbers"),
    ],
)
def test_bad_input_gets_a_sentence(tmp_path, rows, options, message):
    path = tmp_path / "bad.csv"
    path.write_text(rows)
    with pytest.raises(InvalidInputError, match=message):
        read_series(path, "v", **options)


def test_bad_files_get_a_sentence(tmp_path):
    with pytest.raises(InvalidInputError, match="Cannot read"):
        read_states(tmp_path / "absent.csv", "x")
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="say which one"):
        read_states(tmp_path / "two.csv")
    with pytest.raises(InvalidInputError, match="'c' is not there"):
        read_series(tmp_path / "two.csv", "c")
    (tmp_path / "bin.csv").write_bytes(b"v\n\xff\xfe\n")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        read_series(tmp_path / "bin.csv", "v", encoding="utf-8")
    (tmp_path / "not.parquet").write_bytes(b"no")
    with pytest.raises(InvalidInputError, match="Parquet"):
        read_series(tmp_path / "not.parquet", "v")
    (tmp_path / "not.csv.gz").write_bytes(b"no")
    with pytest.raises(InvalidInputError, match="gzip"):
        read_series(tmp_path / "not.csv.gz", "v")
    with pytest.raises(InvalidInputError, match="Cannot find columns"):
        read_series(object(), "v")


def test_real_power_readings_have_ten_gaps(shared_file):
    series = read_series(
        shared_file("data/power_household_10min.csv.gz"),
        "active_power_kw",
        edges=[0.3, 1, 2.5],
        missing="state",
    )
    assert (series.points, series.missing) == (52_704, 10)


def test_real_activity_has_five_people_of_a_week(shared_file):
    series = read_series(
        shared_file("data/activity_nhanes.csv.gz"),
        "state4",
        time="minute_of_record",
        subject="seqn",
    )
    assert series.states == (0, 1, 2, 3)
    assert series.lengths == (10_080,) * 5


def test_a_blank_line_of_a_single_column_is_a_missing_value(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("s\n0\n1\n\n1\n")
    for read in (lambda: read_series(path, "s"), lambda: read_states(path)):
        with pytest.raises(InvalidInputError, match="Time point 3 is missing"):
            read()
    series = read_series(path, "s", missing="state")
    assert [str(state) for state in series.data[None]] == ["0", "1", "missing", "1"]
    assert (series.points, series.missing) == (4, 1)
    assert read_series(path, "s", missing="public").data[None].tolist() == [0, 1, None, 1]


def test_a_blank_line_among_several_columns_is_no_row(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("t,s\n1,0\n\n2,1\n\n")
    assert read_series(path, "s").data[None].tolist() == [0, 1]


BEGIN = 1_767_225_600  # 2026
SERIES = f"time,kw\n{BEGIN},0.1\n{BEGIN + 900},3\n{BEGIN + 1800},0.2\n{BEGIN + 3600},1\n"
LABELS = ("low", "middle", "high")
CHAIN = MarkovChain(
    np.full((3, 3), 1 / 3),
    states=LABELS,
    grid=Grid(step="30min", edges=(0.5, 2), labels=LABELS, rule="max"),
)


@pytest.fixture
def kw(tmp_path):
    path = tmp_path / "kw.csv"
    path.write_text(SERIES)
    return path


def test_what_is_not_given_is_taken_from_the_belief(kw):
    read = read_series(kw, "kw", time="time", beliefs=CHAIN)
    assert read.data[None].tolist() == ["high", "low", "middle"]
    assert read.grid == CHAIN.grid
    assert read.declared
    given = {"every": "30min", "edges": [0.5, 2], "labels": LABELS, "rule": "max"}
    assert read_series(kw, "kw", time="time", **given).grid == CHAIN.grid
    for name in given:
        some = {key: value for key, value in given.items() if key != name}
        again = read_series(kw, "kw", time="time", beliefs=[CHAIN], **some)
        assert again.data[None].tolist() == ["high", "low", "middle"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": "15min"}, "made for steps of 30min, and steps of 15min were asked for"),
        ({"edges": [0.5, 1]}, "made for the edges 0.5, 2.0, and the edges 0.5, 1.0"),
        ({"edges": [0.5]}, "made for the edges"),
        ({"labels": LABELS[::-1]}, "made for the states 'low', 'middle', 'high'"),
        ({"states": ["a", "b"]}, "made for the states"),
        ({"rule": "mean"}, "made for the max of each step"),
        ({"time": None}, "about steps of 30min, and without times"),
    ],
)
def test_what_differs_from_the_belief_is_refused_before_anything_is_read(tmp_path, options, words):
    with pytest.raises(InvalidInputError, match=words):
        read_series(tmp_path / "absent.csv", "kw", **{"time": "time", "beliefs": CHAIN, **options})


def test_a_belief_fitted_on_a_series_keeps_its_grid(kw):
    options = {"time": "time", "edges": [0.5, 2], "labels": LABELS, "every": "30min"}
    read = read_series(kw, "kw", **options)
    for kind in (MarkovChain, ChainBox):
        for data in (read.data, list(read.data.values()), read.data[None], read.data[None][:2]):
            belief = kind.fit(data)
            assert belief.grid == read.grid == Grid("30min", (0.5, 2), LABELS, "mean")
            assert belief.states == LABELS  # in their order, also what did not occur
            assert read_series(kw, "kw", time="time", beliefs=belief).grid == read.grid
    quarter = read_series(kw, "kw", **options | {"every": "15min", "missing": "state"})
    assert MarkovChain.fit(quarter.data).states == (*LABELS, "missing")
    with pytest.raises(InvalidInputError, match="Some sequences are on steps of 30min, others on"):
        MarkovChain.fit([read.data[None], quarter.data[None]])
    with pytest.raises(InvalidInputError, match="one grid"):
        MarkovChain.fit(read.data, grid=Grid("1h"))
    assert MarkovChain.fit(read.data[None].copy()).grid is None
    assert MarkovChain.fit(read.data[None].copy(), grid=read.grid).grid == read.grid


def test_missing_values_as_a_state_survive_the_way_through_a_belief(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("s,t\na,0\n,60\nb,120\n")
    for options in ({}, {"states": ["a", "b"]}):
        read = read_series(path, "s", missing="state", **options)
        belief = MarkovChain.fit(read.data)
        assert belief.states == ("a", "b", "missing")
        again = read_series(path, "s", missing="state", beliefs=belief)
        assert again.data[None].tolist() == ["a", "missing", "b"]


def test_a_step_that_nobody_named_is_that_of_the_times(kw):
    with pytest.warns(QuiltworkWarning, match="15min apart, and some are missing"):
        belief = MarkovChain.fit(read_series(kw, "kw", time="time", edges=[0.5]).data)
    assert belief.grid == Grid("15min", (0.5,), ("<0.5", ">=0.5"))
    with pytest.raises(InvalidInputError, match="for steps of 15min, and steps of 1h"):
        read_series(kw, "kw", time="time", every="1h", beliefs=belief)
    untimed = MarkovChain.fit(read_series(kw, "kw", edges=[0.5]).data)
    assert untimed.grid == Grid(edges=(0.5,), labels=("<0.5", ">=0.5"))
    assert read_series(kw, "kw", time="time", every="1h", beliefs=untimed).grid.step == 3600


def test_whole_numbers_of_thousands_of_digits_stay_text(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text(f"code\n{'9' * 5000}\n7\n")
    assert read_series(path, "code").data[None].tolist() == ["9" * 5000, "7"]
