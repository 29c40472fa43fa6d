"""Published CSV files, as a spreadsheet would open them."""

from __future__ import annotations

import csv

import pandas as pd
import pytest

from quiltwork.delimited import escape_formula
from quiltwork.errors import InvalidInputError
from quiltwork.tables import KAnonymity, Table, anonymize, own_view

FORMULAS = ["=1+1", "+5", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "－1"]


def computed(cell: str) -> bool:
    """Whether a spreadsheet may compute a text: all signs but that of a number or range of ours."""
    numbers = cell.lstrip("-").replace("..-", "..").split("..")
    return cell[:1] in [*"=+-@\t\r\n－"] and not all(n.replace(".", "").isdigit() for n in numbers)


@pytest.fixture(name="made")
def published_formulas():
    frame = pd.DataFrame(
        {
            "=age": [-5.5, -3, 1, 2, 3, 4, 5, 6],
            "town": FORMULAS,
            "pay": [-1, -2] * 4,
            "ill": FORMULAS[::-1],
        }
    )
    return anonymize(Table(frame, None, ["=age", "town", "pay"], "ill"), KAnonymity(2), 0)


def cells(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_texts_are_written_as_they_are_or_escaped(made, tmp_path):
    plain = cells(made.write(tmp_path / "plain.csv"))
    safe = cells(made.write(tmp_path / "safe.csv", formulas="escape"))
    assert any(computed(cell) for row in plain for cell in row)
    assert not any(computed(cell) for row in safe for cell in row)
    assert [[cell.removeprefix("'") for cell in row] for row in safe] == plain
    assert "-5.5..1" in {row[0] for row in safe}  # a range stays one


@pytest.mark.parametrize("text", ["flu", "-5", "-5..3", "-0.5..-1e-05", "1-2", "{=1, -x}", ""])
def test_what_no_spreadsheet_computes_stays(text):
    assert escape_formula(text) == text


def test_what_cannot_be_escaped_is_refused_before_anything_is_written(made, tmp_path):
    with pytest.raises(InvalidInputError, match="Formulas are escaped in CSV files only"):
        made.write(tmp_path / "o.parquet", formulas="escape")
    with pytest.raises(InvalidInputError, match="formulas must be 'keep' or 'escape'"):
        made.write(tmp_path / "o.csv", formulas=True)
    assert not list(tmp_path.iterdir())


def test_rows_are_found_again_in_an_escaped_table(made, tmp_path):
    """The apostrophe is the spreadsheet's, not a part of the value."""
    roles = (None, ["=age", "town", "pay"], "ill")
    path = made.write(tmp_path / "safe.csv", formulas="escape")
    path.write_text(path.read_text(encoding="utf-8").replace("'=age", "=age"), encoding="utf-8")
    view = own_view(Table(str(path), *roles), Table(made.source.frame, *roles), KAnonymity(2))
    assert view.unmatched == 0
    assert view.own_rows == 8
