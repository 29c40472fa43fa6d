"""A look at files says what the other commands make of them, and where it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.errors import InvalidInputError
from quiltwork.tables import Table
from quiltwork.tables.file_check import check_files

CELLS = st.sampled_from(["1", "2.5", "2020-01-01", "10:30", "n/a", "flu", " Flu", "FLU", "02410"])


def column(found, name):
    return next(one for one in found.columns if one.name == name)


@pytest.mark.filterwarnings("ignore:Column:quiltwork.errors.QuiltworkWarning")
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8))
def test_types_distinct_values_and_missing_cells_are_those_of_a_table(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("look") / "a.csv"
    pd.DataFrame(rows, columns=["a", "b"]).to_csv(path, index=False)
    found = check_files([str(path)])
    coded = Table(path, None, ["a"], "b", missing="value").encoded.quasi[0]
    seen = column(found, "a")
    assert seen.distinct == len([value for value in coded.values if value is not None])
    assert (seen.type == "text") == (coded.kind == "categorical")
    lost = np.count_nonzero(coded.codes == len(coded.values) - 1) if None in coded.values else 0
    assert seen.missing == lost
    assert found.repeated == len(rows) - len(set(rows))


def test_the_cells_that_made_a_column_text_are_shown_with_their_place(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("age,ill\n31,flu\n40,Flu\n")
    two.write_text("age,ill\n50,flu \n90+,cold\n90+,cold\n")
    found = check_files([str(one), str(two)])
    age = column(found, "age")
    assert (age.type, age.mostly) == ("text", "numbers")
    (stray,) = age.strays
    assert (stray.file, stray.row, stray.cell, stray.number) == (str(two), 2, "90+", 2)
    assert set(column(found, "ill").spellings[0]) == {"flu", "Flu", "flu "}
    assert found.repeated == 1
    assert "row 2 of" in found.explain()
    assert column(check_files([str(one)]), "age").ends == ("31", "40")


def test_columns_that_may_be_one_and_rows_of_several_files_are_named(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("birth year,ill\n1990,flu\n")
    two.write_text("Birth_Year,ill\n1990,flu\n")
    found = check_files([str(one), str(two)])
    assert found.alike == (("birth year", "Birth_Year"),)
    assert found.shared == 0
    two.write_text("ill,birth year\nflu,1990\ngout,1991\n")
    assert check_files([str(one), str(two)]).shared == 2
    one.write_text("a,b\n")
    with pytest.raises(InvalidInputError, match="no rows"):
        check_files([str(one)])


def test_parquet_columns_have_the_types_that_they_have(tmp_path):
    pd.DataFrame({"age": [1, 2, 2], "ill": ["a", None, "a "]}).to_parquet(tmp_path / "a.parquet")
    found = check_files([str(tmp_path / "a.parquet")])
    assert column(found, "age").type == "int64"
    assert column(found, "ill").missing == 1
    assert column(found, "ill").spellings == (("a", "a "),)


def test_a_file_without_a_header_is_named(tmp_path):
    for name, text in (("a.csv", "age,ill\n31,flu\n"), ("b.csv", "44,cold\n31,flu\n")):
        (tmp_path / name).write_text(text)
    found = check_files([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])
    assert [Path(one).name for one in found.headless] == ["b.csv"]
    assert "b.csv may have no header" in found.explain()


def test_words_for_missing_values_are_no_value_in_several_spellings(tmp_path):
    (tmp_path / "a.csv").write_text("age,ill\n31,none\n32,N/A\n33,flu\n34,Flu\n")
    (_, ill) = check_files([str(tmp_path / "a.csv")]).columns
    assert ill.spellings == (("flu", "Flu"),)


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("age\n31\n")
    with pytest.raises(InvalidInputError, match="is given twice"):
        check_files([str(tmp_path / "a.csv")] * 2)


def test_every_stray_cell_and_spelling_is_in_json_and_the_report_counts_the_rest(tmp_path):
    path = tmp_path / "a.csv"
    spellings = ["flu", "Flu", "FLU", "flU", "fLu", "FlU", "fLU"]
    rows = [f"{n},{ill}" for n, ill in enumerate(spellings * 3)]
    rows += [f"{n}x,{'a' * n} b" for n in range(8)]
    rows += [f"{n + 100},{'A' * n} b" for n in range(8)]
    path.write_text("\n".join(["age,ill", *rows]) + "\n")
    found = check_files([str(path)])
    age, ill = column(found, "age"), column(found, "ill")
    assert [(stray.cell, stray.row) for stray in age.strays] == [
        (f"{n}x", 22 + n) for n in range(8)
    ]
    assert sorted(map(len, ill.spellings)) == [2] * 7 + [7]
    assert sorted(found.body()["columns"][1]["spellings"][0]) == sorted(spellings)
    said = found.explain()
    assert "'4x' (row 26 of" in said
    assert "'5x'" not in said
    assert "… and 3 more (--json lists all)" in said
    assert "… and 2 more (--json lists all)" in said
    assert "… and 3 more in several spellings" in said


def test_the_share_of_missing_cells_is_of_the_files_that_have_the_column(tmp_path):
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("age,ill\n31,\n33,flu\n")
    two.write_text("age\n" + "40\n" * 6)
    found = check_files([str(one), str(two)])
    assert column(found, "ill").rows == 2
    assert "1 cell missing (50 %)" in found.explain().replace("\xa0", " ").replace("50.0", "50")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["5,5", "6,25", "7"], "decimal commas"),
        (["1.234,50", "-3,5", "n/a"], "decimal commas"),
        (["12.03.2024", "1.4.24"], "dates"),
        (["03/12/2024"], "dates"),
        (["5,5", "flu"], ""),
        (["12.03.2024", "flu"], ""),
        (["flu", "cold"], ""),
    ],
)
def test_a_column_of_numbers_or_dates_in_another_notation_is_named(tmp_path, cells, expected):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["age;ill", *(f"{cell};flu" for cell in cells)]) + "\n")
    found = check_files([str(path)])
    age = column(found, "age")
    assert (age.type, age.foreign) == ("text", expected)
    assert ("looks like" in found.explain()) == bool(expected)
