"""What a person wrote in a CSV file is what is published; only numbers are read as numbers."""

from __future__ import annotations

import gzip
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.tables import KAnonymity, Table, anonymize
from quiltwork.tables.input.csv_files import infer_types, read_texts


def read(cells):
    """One column of a table of texts, with its type."""
    return infer_types([pa.table({"a": pa.array(cells, pa.string())})])[0].column("a")


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["31", " 7 ", None], [" 7 ", "31"]),
        (["1.5", "2", "1e-05", ".5", "-0.25"], ["-0.25", "1e-05", ".5", "1.5", "2"]),
        (["10.0", "9.25"], ["9.25", "10.0"]),
        (["1.1", "1.10", "1.05"], ["1.05", "1.1", "1.10"]),
        (["9007199254740993", "9007199254740992.5"], ["9007199254740992.5", "9007199254740993"]),
        ([str(2**63), "9"], ["9", str(2**63)]),
        (["2020-02-29", "0999-01-01"], ["0999-01-01", "2020-02-29"]),
        (["2020-02-29T10:00", "2020-02-29"], ["2020-02-29", "2020-02-29T10:00"]),
        (
            ["2020-02-29T10:00Z", "2020-02-29 11:30+02"],
            ["2020-02-29 11:30+02", "2020-02-29T10:00Z"],
        ),
        (["9:30", "23:59:59", "10:00"], ["9:30", "10:00", "23:59:59"]),
    ],
)
def test_other_numbers_dates_and_times_have_their_order_and_their_spelling(cells, order):
    column = read(cells).combine_chunks()
    assert column.to_pylist() == cells
    assert column.type.ordered
    assert column.dictionary.to_pylist() == order


@pytest.mark.parametrize(
    "cells",
    [
        ["02410", "98745"],
        ["+5"],
        ["-0"],
        ["0x10"],
        ["1e5", "12E4"],
        ["nan"],
        ["n/a", "?", "1"],
        ["inf"],
        ["1_000"],
        ["1,000"],
        ["50%"],
        ["true", "False"],
        ["2020-02-30"],
        ["2020-02-29", "10:00"],
        ["1", "one"],
    ],
)
def test_everything_else_is_text(cells):
    assert read(cells).type == pa.string()
    assert read(cells).to_pylist() == cells


@given(
    st.lists(
        st.text("0123456789.+-eE ", min_size=1, max_size=6).filter(str.strip),
        min_size=1,
        max_size=4,
    )
)
def test_cells_are_never_changed(cells):
    """An independent reading: Python's own numbers."""
    column = read(cells).combine_chunks()
    assert list(map(str, column.to_pylist())) == cells
    if pa.types.is_dictionary(column.type):
        numbers = [Fraction(text.strip()) for text in column.dictionary.to_pylist()]
        assert numbers == sorted(numbers)


def test_leading_zeros_reach_what_is_published(tmp_path):
    zips = ["02410", "02411", "98745", "98746"]
    path = tmp_path / "people.csv"
    pd.DataFrame({"zip": zips, "ill": [*"abab"]}).to_csv(path, index=False)
    tree = [(z, f"{z[:2]}***", "*") for z in zips]
    table = Table(path, None, ["zip"], "ill", hierarchies={"zip": tree})
    assert set(anonymize(table, KAnonymity(2), 0).frame["zip"]) == {"02***", "98***"}
    plain = anonymize(Table(path, None, ["zip"], "ill"), KAnonymity(2), 0)
    written = pd.read_csv(plain.write(tmp_path / "out.csv"), dtype=str)
    assert set(written["zip"]) == {"{02410, 02411}", "{98745, 98746}"}
    secret = anonymize(Table(path, None, ["ill"], "zip"), KAnonymity(2), 0)
    assert sorted(pd.read_csv(secret.write(tmp_path / "s.csv"), dtype=str)["zip"]) == zips


def test_columns_that_are_named_are_text(tmp_path):
    frame = pd.DataFrame({"zip": [12345, 12346], "ill": [*"ab"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        assert Table(tmp_path / name, None, ["zip"], "ill").encoded.quasi[0].kind == "numeric"
        table = Table(tmp_path / name, None, ["zip"], "ill", text="zip")
        assert table.encoded.quasi[0].kind == "categorical"
        assert table.encoded.quasi[0].values == ("12345", "12346")
    absent = "Column 'PLZ', to be read as text, is not there in the file, whose columns are: zip, i"
    with pytest.raises(InvalidInputError, match=absent):
        Table(tmp_path / "t.csv", None, ["PLZ"], "ill", text=["PLZ"])
    with pytest.raises(
        InvalidInputError, match=r"'PLZ'.* in none of the files; see the first, whos"
    ):
        Table.concat(
            {"a": tmp_path / "t.csv", "b": tmp_path / "t.parquet"}, ["PLZ"], "ill", text=["PLZ"]
        )
    # The first line may be a row.
    with pytest.raises(InvalidInputError, match="which has 2 columns, none of them asked for"):
        Table(tmp_path / "t.csv", None, ["PLZ"], "dx", text=["PLZ"])
    with pytest.raises(InvalidInputError, match="In a frame, convert the column to text yourself"):
        Table(frame, None, ["zip"], "ill", text=["zip"])
    with pytest.raises(InvalidInputError, match="text must be a list"):
        Table(tmp_path / "t.csv", None, ["zip"], "ill", text=5)


def test_a_column_is_text_in_all_files_if_it_is_in_one(tmp_path):
    (tmp_path / "a.csv").write_text("zip,age,ill\n12345,31,x\n")
    (tmp_path / "b.csv").write_text("zip,age,ill\n02410,32.5,y\n")
    files = {name: tmp_path / f"{name}.csv" for name in "ab"}
    table = Table.concat(files, ["zip", "age"], "ill")
    assert [column.values for column in table.encoded.quasi] == [
        ("02410", "12345"),
        ("31", "32.5"),
    ]
    assert [column.kind for column in table.encoded.quasi] == ["categorical", "numeric"]
    as_text = Table.concat(files, ["zip", "age"], "ill", text=["age"])
    assert as_text.encoded.quasi[1].values == ("31", "32.5")


@pytest.mark.parametrize("begin", ["\n\nage,ill\n", '"age",ill\n'])
def test_a_header_is_read_as_everywhere_else(tmp_path, begin):
    path = tmp_path / "t.csv"
    path.write_text(begin + "31,flu\n")
    assert Table(path, None, ["age"], "ill").frame.columns.tolist() == ["age", "ill"]


def test_no_message_shows_a_row(tmp_path):
    """Arrow's own words show the whole row, or the value that it could not convert."""
    path = tmp_path / "t.csv"
    for content, message in (
        ("age,ill\n31,flu\n32,CANARY,9\n", "Row 2 of .* has 3 columns and the header 2"),
        ("", "begins with a line of column names"),
        ("\n\n", "begins with a line of column names"),
        ("age,ill\n31,flu\n\x00CANARY", "Row 2 of .* has 1 columns"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidInputError, match=message) as refused:
            Table(path, None, ["age"], "ill")
        assert "CANARY" not in str(refused.value)
    path.write_bytes(b"age,ill\n" + b"31,flu\n" * 10_000 + b"31,CANARY\xff\n")
    with pytest.warns(QuiltworkWarning, match="encoding cp1252") as said:  # found far behind
        Table(path, None, ["age"], "ill")
    assert "CANARY" not in str(said[0].message)


def test_a_folder_is_one_table_if_its_files_have_one_header(tmp_path):
    for name, ill in (("a", "flu"), ("b", "cold")):
        (tmp_path / f"{name}.csv").write_text(f"age,ill\n0{len(ill)},{ill}\n31,{ill}\n")
    assert "4 rows" in repr(Table(tmp_path, None, ["age"], "ill"))
    (tmp_path / "c.csv").write_text("ill,age\nflu,1\n")
    with pytest.raises(InvalidInputError, match=r"c\.csv' and .*a\.csv' have different columns"):
        Table(tmp_path, None, ["age"], "ill")


def test_an_encoding_is_found_and_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("alter,ort\n31,Köln\n".encode("latin-1"))
    with pytest.warns(QuiltworkWarning, match="read with encoding cp1252"):
        assert read_texts(path)["ort"].to_pylist() == ["Köln"]
    assert read_texts(path, DialectOptions(encoding="latin-1"))["ort"].to_pylist() == ["Köln"]


def test_a_file_with_semicolons_is_a_table_too(tmp_path):
    (tmp_path / "a.csv").write_bytes("\ufeffage;zip\n31;02410\n9;12399\n".encode())
    (tmp_path / "b.csv").write_text("age,zip\n31,02410\n9,12399\n")
    a, b = read_texts(tmp_path / "a.csv"), read_texts(tmp_path / "b.csv")
    assert a.to_pylist() == b.to_pylist()


@pytest.mark.parametrize(
    ("cells", "read_as"),
    [
        (["31", "n/a", "45"], [31, None, 45]),
        (["1.5", " NA ", None, "?", "2"], ["1.5", None, None, None, "2"]),
        (["2020-01-02", "none"], ["2020-01-02", None]),
        (["nan", "1"], [None, 1]),
        (["45", "  "], [45, None]),
    ],
)
def test_a_few_words_for_missing_values_leave_a_column_its_order_and_are_said(cells, read_as):
    with pytest.warns(QuiltworkWarning, match="is read as .* as missing"):
        column = read(cells)
    assert column.to_pylist() == read_as
    assert read([cell for cell in cells if cell in read_as or cell in ("31", "45", "1")]).type != (
        pa.string()
    )


def test_words_of_your_own_are_missing_in_every_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,ill\n31,flu\n-9,cold\n45, -9 \n50,flu\n")
    table = Table(path, None, ["age"], "ill", missing="value", na_values=["-9"])
    assert table.encoded.quasi[0].values == (31, 45, 50, None)
    assert table.encoded.sensitive_values == ("cold", "flu", None)
    with pytest.raises(InvalidInputError, match="1 missing value"):
        Table(path, None, ["age"], "ill", na_values=["-9"]).encoded  # noqa: B018


def test_a_declared_type_refuses_other_cells_and_says_none_of_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("age,ill\n31,flu\nCANARY,cold\n")
    assert Table(path, None, ["age"], "ill").encoded.quasi[0].kind == "categorical"
    with pytest.raises(InvalidInputError, match="declared as numbers") as told:
        Table(path, None, ["age"], "ill", types={"age": "number"})
    assert "CANARY" not in str(told.value)
    path.write_text("age,ill\n31,flu\n2020-01-01,cold\n")
    assert Table(path, None, ["ill"], "age", types={"age": "text"}).encoded.rows == 2
    with pytest.raises(InvalidInputError, match="A type must be 'number'"):
        Table(path, None, ["age"], "ill", types={"age": "float"})
