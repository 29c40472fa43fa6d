from __future__ import annotations

import gzip
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.tables.codes.encoding import group_rows
from quiltwork.tables.table import Table

ROWS = {
    "hospital": ["B", "A", "A"],
    "age": [31, 22, 31],
    "zip": ["123", "987", "123"],
    "disease": ["flu", "flu", "asthma"],
}
ROLES = {"provider": "hospital", "quasi_identifiers": ["age", "zip"], "sensitive": "disease"}


def makes():
    return {
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.LazyFrame(ROWS),
        "arrow": pa.table(ROWS),
        "categorical": pd.DataFrame(ROWS).astype("category"),
        "objects": pd.DataFrame(ROWS, dtype=object),
    }


@pytest.mark.parametrize("make", makes())
def test_every_make_of_frame_gives_the_same_codes(make):
    encoded = Table(makes()[make], **ROLES).encoded
    assert encoded.providers == ("A", "B")
    assert encoded.provider.tolist() == [1, 0, 0]
    assert encoded.sensitive_values == ("asthma", "flu")
    assert encoded.sensitive.tolist() == [1, 1, 0]
    assert [column.values for column in encoded.quasi] == [(22, 31), ("123", "987")]
    assert [column.codes.tolist() for column in encoded.quasi] == [[1, 0, 1], [0, 1, 0]]
    assert encoded.quasi[0].kind == "numeric"
    assert encoded.quasi[0].codes.dtype == np.int8


@pytest.mark.parametrize("values", [2, 126, 127, 128, 129, 40_000])
@pytest.mark.parametrize("lost", [False, True])
def test_codes_take_as_few_bytes_as_hold_them(values, lost):
    numbers = [*range(values), *range(values), *([None] if lost else [])]
    frame = pa.table({"age": numbers, "ill": ["a"] * len(numbers)})
    column = Table(frame, None, ["age"], "ill", missing="value").encoded.quasi[0]
    assert [column.values[code] for code in column.codes] == numbers
    assert column.codes.min() == 0
    assert column.codes.dtype.itemsize == (1 if values < 128 else 2 if values < 2**15 else 4)


def test_files_give_the_same_codes(tmp_path):
    frame = pd.DataFrame({**ROWS, "zip": ["a", "b", "a"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        table = Table(tmp_path / name, **ROLES)
        assert isinstance(table.frame, pd.DataFrame)
        assert table.groups.labels.tolist() == [0, 1, 0]
        assert table.group_values(1) == (22, "b")
    assert Table(str(tmp_path / "t.csv"), **ROLES).encoded.rows == 3


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.parquet"])
def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch, name):
    rows, who = 1000, "a" * 17_000
    text = "p,age,ill\n" + f"{who},1,x\n" * rows
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(text.encode()))
    columns = {"p": [who] * rows, "age": [1] * rows, "ill": ["x"] * rows}
    parquet.write_table(
        pa.table(columns), tmp_path / "bomb.parquet", use_dictionary=False, compression="zstd"
    )
    roles = {"provider": "p", "quasi_identifiers": ["age"], "sensitive": "ill"}
    with pytest.raises(InvalidInputError, match=r"unpacks to more than .* set QUILTWORK_UNPACKED"):
        Table(tmp_path / name, **roles)
    monkeypatch.setenv("QUILTWORK_UNPACKED_MB", "18")
    assert len(Table(tmp_path / name, **roles).frame) == rows


def test_the_frame_stays_the_users_own():
    frame = pl.DataFrame(ROWS)
    assert Table(frame, **ROLES).frame is frame


def test_concat_makes_one_provider_of_each_frame(tmp_path):
    pd.DataFrame({"age": [1, 2], "ill": ["x", "y"]}).to_csv(tmp_path / "b.csv", index=False)
    table = Table.concat(
        {"A": pl.DataFrame({"age": [2.5], "ill": ["x"], "more": [0]}), "B": tmp_path / "b.csv"},
        quasi_identifiers=["age"],
        sensitive="ill",
    )
    assert table.kind == "polars"
    assert table.encoded.providers == ("A", "B")
    assert table.encoded.provider.tolist() == [0, 1, 1]
    assert table.encoded.quasi[0].values == (1.0, 2.0, 2.5)


def test_concat_drops_no_provider_whose_name_reads_like_another():
    part = pd.DataFrame({"age": [31], "ill": ["flu"]})
    with pytest.raises(InvalidInputError, match="Two providers have the name '1'"):
        Table.concat({1: part, "1": part}, ["age"], "ill")
    with pytest.raises(InvalidInputError, match="takes a dict"):
        Table.concat([part, part], ["age"], "ill")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quasi_identifiers": None}, "quasi_identifiers must be a list, not None"),
        ({"sensitive": None}, "sensitive must be a list, not None"),
        ({"ordinal": 5}, "ordinal must be a dict"),
        ({"ordinal": {"age": 5}}, "must be a list"),
        ({"ordinal": {"age": {30, 31}}}, "must be a list of its values"),
        ({"ordinal": {"age": "31"}}, "must be a list"),
        ({"hierarchies": ["age"]}, "hierarchies must be a dict"),
    ],
)
def test_declarations_of_a_wrong_type_are_refused(change, message):
    frame = pd.DataFrame({"age": [31], "ill": ["flu"]})
    with pytest.raises(InvalidInputError, match=message):
        Table(frame, None, **{"quasi_identifiers": ["age"], "sensitive": "ill", **change})


def test_several_sensitive_columns_are_their_combinations():
    frame = pd.DataFrame({"p": [1, 1, 2], "q": [0, 0, 0], "s": ["b", "a", "b"], "u": [1, 1, 1]})
    encoded = Table(frame, "p", ["q"], ["s", "u"]).encoded
    assert encoded.sensitive_values == (("a", 1), ("b", 1))
    assert encoded.sensitive.tolist() == [1, 0, 1]


def test_orders_dates_and_booleans():
    frame = pd.DataFrame(
        {
            "p": ["A"] * 3,
            "degree": ["high", "low", "middle"],
            "born": [date(1990, 1, 2), date(1980, 5, 1), date(1990, 1, 2)],
            "smokes": [True, False, True],
            "grade": pd.Categorical(["good", "bad", "good"], ["good", "bad"], ordered=True),
            "ill": [1, 2, 3],
        }
    )
    quasi = ["degree", "born", "smokes", "grade"]
    table = Table(frame, "p", quasi, "ill", ordinal={"degree": ["none", "low", "middle", "high"]})
    degree, born, smokes, grade = table.encoded.quasi
    assert (degree.kind, degree.values) == ("ordinal", ("low", "middle", "high"))
    assert degree.codes.tolist() == [2, 0, 1]
    assert (born.kind, born.codes.tolist()) == ("ordinal", [1, 0, 1])
    assert (smokes.kind, smokes.values) == ("categorical", (False, True))
    assert (grade.kind, grade.values) == ("ordinal", ("good", "bad"))


def test_an_order_may_be_declared_as_values_are_written():
    """On the command line there are only texts."""
    frame = pd.DataFrame(
        {
            "age": [31, 22, 40],
            "born": [date(1990, 1, 2), date(1980, 5, 1), date(1990, 1, 3)],
            "smokes": [True, False, True],
            "ill": ["x", "y", "z"],
        }
    )
    orders = {
        "age": ["40", "31", "22"],
        "born": ["1990-01-02", "1980-05-01", "1990-01-03"],
        "smokes": ["True", "False"],
    }
    age, born, smokes = Table(frame, None, list(orders), "ill", ordinal=orders).encoded.quasi
    assert (age.kind, age.values, age.codes.tolist()) == ("ordinal", (40, 31, 22), [1, 2, 0])
    assert born.codes.tolist() == [0, 1, 2]
    assert smokes.values == (True, False)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_values_are_a_declared_choice(missing):
    frame = pl.DataFrame({"p": ["A", "B"], "age": [missing, 3.0], "ill": ["x", "y"]}, strict=False)
    with pytest.raises(InvalidInputError, match=r"'age' has 1 missing value, the first in row 1"):
        _ = Table(frame, "p", ["age"], "ill").encoded
    column = Table(frame, "p", ["age"], "ill", missing="value").encoded.quasi[0]
    assert column.values == (3.0, None)
    assert column.codes.tolist() == [1, 0]
    assert np.isnan(column.numbers[1])


def test_providers_and_subjects_are_never_missing():
    frame = pd.DataFrame({"p": ["A", None], "age": [1, 2], "ill": ["x", "y"]})
    with pytest.raises(InvalidInputError, match="'p' has 1 missing") as refused:
        _ = Table(frame, "p", ["age"], "ill", missing="value").encoded
    assert "first in row 2; every record needs a provider" in str(refused.value)
    assert "missing='value'" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="needs a subject"):
        _ = Table(frame, None, ["age"], "ill", subject="p").encoded


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e308, -1e301])
def test_numbers_without_a_width_are_refused(value):
    frame = pd.DataFrame({"age": [1.0, value, 3.0], "ill": ["x", "y", "z"]})
    with pytest.raises(InvalidInputError, match=r"in row 2, so that ranges have no finite width"):
        _ = Table(frame, None, ["age"], "ill").encoded
    _ = Table(frame.assign(age=[1.0, 1e299, -1e299]), None, ["age"], "ill").encoded


def test_whole_numbers_beyond_64_bits_are_refused():
    frame = pd.DataFrame({"age": [2**64, 2**64 + 1], "ill": ["x", "y"]})
    with pytest.raises(InvalidInputError, match="more than 64 bits"):
        _ = Table(frame, None, ["age"], "ill").encoded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"provider": "clinic"}, "Column 'clinic' is not there in the table"),
        ({"sensitive": []}, "sensitive is empty"),
        ({"sensitive": "age"}, "Column 'age' has two roles"),
        ({"missing": "drop"}, "'error' or 'value', not 'drop'"),
        ({"ordinal": {"name": [1]}}, "ordinal declares 'name'"),
        ({"ordinal": {"age": [22]}}, "has a value in row 1 that is not in its declared order"),
        ({"ordinal": {"age": [22, 31, 22]}}, "names a value twice"),
        (
            {"ordinal": {"age": [22, 31]}, "hierarchies": {"age": [(22, "*"), (31, "*")]}},
            "'age' has both an order and a hierarchy",
        ),
    ],
)
def test_what_is_wrong_is_said(change, message):
    with pytest.raises(InvalidInputError, match=message):
        _ = Table(pd.DataFrame(ROWS), **{**ROLES, **change}).encoded


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Cannot read a table from a list"):
        Table([1], **ROLES)
    with pytest.raises(InvalidInputError, match="There is no file"):
        Table(tmp_path / "none.csv", **ROLES)
    (tmp_path / "bad.parquet").write_text("not parquet")
    with pytest.raises(InvalidInputError, match="as Parquet"):
        Table(tmp_path / "bad.parquet", **ROLES)
    with pytest.raises(InvalidInputError, match="is a device"):
        Table("/dev/zero", **ROLES)
    with pytest.raises(InvalidInputError, match="no rows"):
        _ = Table(pd.DataFrame(ROWS).head(0), **ROLES).encoded
    mixed = pd.DataFrame({**ROWS, "zip": ["a", 1, 2.5]})
    with pytest.raises(InvalidInputError, match="several types"):
        _ = Table(mixed, **ROLES).encoded
    lists = pl.DataFrame({**ROWS, "zip": [[1], [2], [1]]})
    with pytest.raises(InvalidInputError, match="'zip'"):
        _ = Table(lists, **ROLES).encoded
    with pytest.raises(InvalidInputError, match="no frame"):
        Table.concat({}, ["age"], "ill")
    with pytest.raises(InvalidInputError, match="already has a column 'provider'"):
        Table.concat(
            {"A": pd.DataFrame({"age": [1], "ill": [1], "provider": ["x"]})}, ["age"], "ill"
        )
    frame = pd.DataFrame({"age": [1], "ill": [1]})
    with pytest.raises(InvalidInputError, match="of provider 'B'"):
        Table.concat({"A": frame, "B": frame[["age"]]}, ["age"], "ill")
    with pytest.raises(InvalidInputError, match="different types"):
        Table.concat({"A": frame, "B": frame.assign(age="x")}, ["age"], "ill")


def test_a_spark_frame_is_recognised_and_never_collected():
    spark = type("DataFrame", (), {"__module__": "pyspark.sql", "columns": list(ROWS)})()
    table = Table(spark, **ROLES)
    assert table.kind == "spark"
    with pytest.raises(UnsupportedError, match="backend='spark'"):
        _ = table.encoded
    with pytest.raises(UnsupportedError, match="use union in Spark"):
        Table.concat({"A": spark}, ["age"], "disease")


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30),
    st.sampled_from([4, 2**30]),
)
@settings(max_examples=60)
def test_groups_are_numbered_by_their_first_row(rows, size):
    columns = [np.array(column) * (size // 4) for column in zip(*rows, strict=True)]
    index = group_rows(columns, [size] * 3)
    order = list(dict.fromkeys(rows))
    assert index.labels.tolist() == [order.index(row) for row in rows]
    assert index.first.tolist() == [rows.index(row) for row in order]


ONE_INSTANT = [pd.Timestamp("2020-01-01T12:00+02:00"), pd.Timestamp("2020-01-01T10:00Z")]
WRITTEN_APART = [
    [0.0, -0.0],
    [31, 31.0],
    [1.0, True],
    [Decimal("1.0"), Decimal("1.00")],
    [b"a", "a"],
    [date(2020, 1, 1), datetime(2020, 1, 1, 5)],
    ONE_INSTANT,
]


@pytest.mark.parametrize("cells", WRITTEN_APART)
def test_equal_cells_that_are_written_apart_are_refused(cells):
    """The written file has two groups where one would be counted."""
    frame = pd.DataFrame({"a": pd.Series([None, *cells], dtype=object), "d": "x"})
    assert len(set(frame.to_csv(index=False).splitlines()[2:])) == 2
    frame["e"] = "y"
    for table in (
        Table(frame, None, ["a"], "d", missing="value"),
        Table(frame[1:], "a", ["e"], "d"),
        Table(frame[1:], None, ["e"], "d", subject="a"),
    ):
        with pytest.raises(InvalidInputError, match=r"'a' has equal .* in row [23]\."):
            _ = table.encoded
    assert len(Table(frame, None, ["d"], "a", missing="value").encoded.sensitive_values) == 2


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda rows: pd.DataFrame(rows, dtype="float32")]
)
def test_zeros_with_and_without_a_sign_are_refused_in_every_frame(make):
    with pytest.raises(InvalidInputError, match=r"different ways, .* in row 3"):
        _ = Table(make({"a": [1.0, 0.0, -0.0], "b": [0.0] * 3}), None, ["a"], "b").encoded
    assert Table(make({"a": [1.0, -0.0, -0.0], "b": [0.0] * 3}), None, ["a"], "b").groups.count == 2


@pytest.mark.parametrize(
    "cells", [[1, 2.5, None, np.nan], [date(2020, 1, 1)] * 4, [b"a", b"b"] * 2]
)
def test_objects_that_are_written_alike_where_equal_are_taken(cells):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object), "d": "x"})
    assert Table(frame, None, ["a"], "d", missing="value").groups.count == len(
        set(frame.to_csv(index=False).splitlines()[1:])
    )
