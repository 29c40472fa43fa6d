"""CSV files that can be read are, and the others say why not."""

import gzip
import io
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from pyarrow import parquet as pq

from quiltwork.delimited import DialectOptions, column_position, rows_of_width, split_line, with_csv
from quiltwork.errors import InvalidInputError

TEXT = 'näme,town\nA,"Ghent, old"\nB,Bruges\n'
ROWS = [["näme", "town"], ["A", "Ghent, old"], ["B", "Bruges"]]


def test_plain_compressed_and_piped_files_give_the_same_rows(tmp_path, monkeypatch):
    plain, packed = tmp_path / "rows.csv", tmp_path / "rows.csv.gz"
    plain.write_text("\ufeff" + TEXT, encoding="utf-8")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT))
    assert [with_csv(str(path), list) for path in (plain, packed, "-")] == [ROWS] * 3


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.csv", b"a,b\n1\n", "Row 2 .* 1 columns"),
        ("rows.csv", b"a,b\n" + 5000 * b"1,2\n" + b"\n1,2,3\n", "Row 5002 .* 3 columns"),
        ("rows.csv", b'a,b\n1,"2"x\n', "not CSV"),
        ("rows.csv.gz", b"not gzip", "whole gzip"),
        ("rows.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-12], "whole gzip"),
        ("rows.csv.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 60, "whole gzip"),
        ("missing.csv", None, "Cannot read .*No such file"),
    ],
    ids=["short", "long", "quotes", "no gzip", "cut gzip", "bad gzip", "missing"],
)
def test_damaged_files_say_so(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        with_csv(str(path), lambda rows: list(rows_of_width(rows, 2, str(path))))


LONG = b"1" * 99_999 + b"\n"  # few rows are many bytes


def test_a_small_file_that_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"s\n" + LONG * 178, mtime=0))
    assert 50 * bomb.stat().st_size < 16 * 10**6
    with pytest.raises(InvalidInputError, match=r"more than 16 MB.* set QUILTWORK_UNPACKED_MB"):
        with_csv(str(bomb), list)
    assert with_csv(str(bomb), next) == ["s"]
    monkeypatch.setenv("QUILTWORK_UNPACKED_MB", "18")
    assert len(with_csv(str(bomb), list)) == 179
    monkeypatch.setenv("QUILTWORK_UNPACKED_MB", "18 MB")
    with pytest.raises(InvalidInputError, match="whole number of megabytes, not '18 MB'"):
        with_csv(str(bomb), list)


def test_a_file_that_is_large_itself_may_unpack_to_much(tmp_path):
    noise = np.random.default_rng(0).integers(0, 10**9, 80_000)
    text = b"s\n" + LONG * 170 + b"".join(b"%d\n" % number for number in noise)
    large = tmp_path / "large.csv.gz"
    large.write_bytes(gzip.compress(text, 1))
    assert 16 * 10**6 < len(text) < 50 * large.stat().st_size
    assert len(with_csv(str(large), list)) == 80_171


def test_standard_input_is_read_as_a_file_is(monkeypatch):
    given = io.TextIOWrapper(io.BytesIO(b"a\n\xff\n"), encoding="ascii", errors="replace")
    monkeypatch.setattr(sys, "stdin", given)
    assert with_csv("-", list) == [["a"], ["ÿ"]]


def test_what_excel_writes_is_read_or_told(tmp_path):
    path = tmp_path / "rows.csv"
    for begin in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(begin + b"sep=;\r\na;b\r\n1,5;2\r\n")
        assert with_csv(str(path), list) == [["a", "b"], ["1,5", "2"]]
    path.write_bytes(b"PK\x03\x04\x14\x00")
    with pytest.raises(InvalidInputError, match="Excel workbook; save it as CSV"):
        with_csv(str(path), list)


@pytest.mark.parametrize("begin", [b"\n\n", b"\r\n", b"\xef\xbb\xbf\n", b"\nsep=;\n"])
def test_empty_lines_before_the_header_are_no_header(tmp_path, begin):
    path = tmp_path / "rows.csv"
    path.write_bytes(begin + b"at;kw\n1;2,5\n")
    assert with_csv(str(path), list) == [["at", "kw"], ["1", "2,5"]]


def test_a_row_has_no_say_in_how_the_letters_of_others_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a\nKäse\n".encode() + "Käse €\n".encode("cp1252") + b"\x81\n")
    assert with_csv(str(path), list) == [["a"], ["Käse"], ["Käse €"], ["\x81"]]
    with pytest.raises(InvalidInputError, match="not UTF-8 text near line 1"):
        with_csv(str(path), list, DialectOptions(encoding="utf-8"))
    with pytest.raises(InvalidInputError, match=r"neither UTF-8 nor .*encoding='shift_jis'"):
        with_csv(str(path), list, DialectOptions())
    path.write_bytes("ü\nKäse\n".encode() + b"K\xe4se\n")
    assert with_csv(str(path), list, DialectOptions()) == [["ü"], ["Käse"], ["Käse"]]
    for encoding in ("utf-16-le", "utf-16-be"):  # without a mark
        path.write_bytes("a;ü\n1,5;x\n".encode(encoding))
        assert with_csv(str(path), list) == [["a", "ü"], ["1,5", "x"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("c", "is not there.*which has 3 columns, none of them asked for"),
        ("a", "more than once.*whose columns are: a, b , a"),
        ("b", "spaces around 'b '"),
    ],
)
def test_a_column_must_be_there_once(name, words):
    with pytest.raises(InvalidInputError, match=words):
        column_position(["a", "b ", "a"], name, "rows.csv")
    with pytest.raises(InvalidInputError, match=r"whose columns are: a, b , a\."):
        column_position(["a", "b ", "a"], "c", "rows.csv", ["a"])


def test_a_line_is_split_as_csv_and_several_are_refused():
    assert split_line('a, b,"c,d"') == ["a", " b", "c,d"]
    with pytest.raises(InvalidInputError, match="no single line"):
        split_line("a\nb")


def test_files_of_every_kind_and_folders_have_rows(tmp_path):
    expected = [["näme", "town"], ["A", "1"], ["B", ""]]
    table = pa.table({"näme": ["A", "B"], "town": [1, None]})
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.arrow")
    (tmp_path / "t.csv").write_bytes("näme;town\nA;1\nB;\n".encode("utf-16"))
    for name in ("t.parquet", "t.arrow", "t.csv"):
        assert with_csv(str(tmp_path / name), list) == expected
    assert with_csv(str(tmp_path), list) == expected[:1] + expected[1:] * 3
    assert with_csv(str(tmp_path / "*.csv"), list) == expected
    (tmp_path / "u.csv").write_text("town\n1\n")
    with pytest.raises(InvalidInputError, match=r"u.csv' has other columns than"):
        with_csv(str(tmp_path), list)
