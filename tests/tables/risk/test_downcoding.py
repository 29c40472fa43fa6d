"""What can be undone of a generalization, against the records counted by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize
from quiltwork.tables.risk import assess, downcoding, downcoding_of_texts

QUASI = ["age", "pay", "town"]


def people(seed: int, rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pay = [None if rng.random() < 0.1 else int(rng.integers(0, 6)) for _ in range(rows)]
    return pd.DataFrame(
        {
            "age": rng.integers(0, 30, rows),
            "pay": pd.array(pay, dtype="Int64"),
            "town": rng.choice(
                ["Rome", "Nice", "a, b", "{x", "Bonn"], rows, p=[0.5, 0.3, 0.1, 0.05, 0.05]
            ),
            "ill": rng.choice(["x", "y", "z"], rows, p=[0.85, 0.1, 0.05]),
            "who": rng.choice([*"abc"], rows),
        }
    )


def by_hand(made, frame: pd.DataFrame) -> tuple[int, int]:
    """Cells generalized and told, from the records of each group."""
    generalized = told = 0
    for group in range(made.boxes.count):
        part = frame.iloc[made.rows[made.labels == group]]
        for name in QUASI:
            values = Counter(None if pd.isna(v) else v for v in part[name])
            if len(values) == 1:
                continue
            generalized += len(part)
            if name == "town":
                told += len(values)
            else:
                ends = {
                    min(v for v in values if v is not None),
                    max(v for v in values if v is not None),
                }
                told += len(ends) + (None in values)
    return generalized, told


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("asked", [KAnonymity(4), KAnonymity(3) & LDiversity(2)])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_records(seed, asked, m):
    frame = people(seed)
    table = Table(frame, "who", QUASI, "ill", missing="value")
    made = anonymize(table, asked, m, suppression=0.05)
    found = downcoding(made)
    expected = by_hand(made, frame)
    assert (found.generalized, found.told, found.certain) == (*expected, True)
    assert found.cells == 3 * len(made.rows)
    assert 0 < found.told < found.generalized
    texts = downcoding_of_texts(Table(made.frame, None, QUASI, "ill"))
    assert (texts.cells, texts.generalized, texts.told) == (found.cells, *expected)
    assert not texts.certain


def test_labels_of_hierarchies_do_not_tell_which_values_occur():
    towns = [("Rome", "south", "*"), ("Nice", "south", "*"), ("Bonn", "north", "*")]
    frame = pd.DataFrame({"town": ["Rome"] * 5 + ["Nice"] + ["Bonn"] * 3, "ill": [*"abcabcabc"]})
    table = Table(frame, None, ["town"], "ill", hierarchies={"town": towns})
    made = anonymize(table, KAnonymity(3), 0)
    assert set(made.frame["town"]) == {"south", "Bonn"}
    found = downcoding(made)
    assert (found.generalized, found.told) == (6, 0)


def test_sets_with_more_members_than_records_were_not_made_by_this_rule():
    frame = pd.DataFrame({"town": ["{Rome, Nice, Bonn}"] * 2, "age": ["1..2"] * 2, "ill": [*"ab"]})
    found = downcoding_of_texts(Table(frame, None, ["town", "age"], "ill"))
    assert (found.cells, found.generalized, found.told) == (4, 4, 2)
    stars = downcoding_of_texts(
        Table(frame.assign(town="98***", age="*"), None, ["town", "age"], "ill")
    )
    assert (stars.generalized, stars.told) == (4, 0)


def test_the_warning_has_the_numbers():
    frame = pd.DataFrame({"age": [20, 25, 30, 30, 30, 31], "ill": [*"abcabc"]})
    made = anonymize(Table(frame, None, ["age"], "ill"), KAnonymity(2), m=0)
    told = {one.attack: one.message for one in made.report().assessment.attacks}["downcoding"]
    assert "100 % of all cells" in told
    assert "66.7 % of these cells are revealed" in told
    assert made.report().body()["downcoded"]["told"] == 4
    alone = assess(Table(made.frame, None, ["age"], "ill")).attacks[2].message
    assert "as this library's do" in alone
    exact = assess(Table(frame, None, ["age"], "ill")).attacks[2].message
    assert "nothing to undo" in exact


def test_something_else_is_refused():
    with pytest.raises(InvalidInputError, match="Pass the result of anonymize"):
        downcoding("table")
    with pytest.raises(InvalidInputError, match="Pass a Table"):
        downcoding_of_texts("table")
