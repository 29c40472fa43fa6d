"""What can be undone of a generalization, against the records counted by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize
from quiltwork.tables.risk import assess, downcoding, downcoding_of

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


def by_hand(made, frame: pd.DataFrame, needed: int) -> tuple[int, int, int, int]:
    """Cells generalized and told, conclusions and right ones, from the records of each group."""
    generalized = told = shared = right = 0
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
            if len(part) >= 2 * needed:
                shared += 1
                right += values.most_common(1)[0][1] >= len(part) - 2 * (needed - 1)
    return generalized, told, shared, right


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("asked", [KAnonymity(4), KAnonymity(3) & LDiversity(2)])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_records(seed, asked, m):
    frame = people(seed)
    table = Table(frame, "who", QUASI, "ill", missing="value")
    made = anonymize(table, asked, m, suppression=0.05)
    found = downcoding(made, asked)
    needed = 4 if asked == KAnonymity(4) else 3
    expected = by_hand(made, frame, needed)
    assert (found.generalized, found.told, found.shared, found.shared_right) == expected
    assert found.cells == 3 * len(made.rows)
    assert 0 < found.told < found.generalized
    texts = downcoding_of(Table(made.frame, None, QUASI, "ill"))
    assert (texts.cells, texts.generalized, texts.told) == (found.cells, *expected[:2])
    assert texts.shared is None
    assert downcoding(made).shared is None


@pytest.mark.parametrize("seed", range(5))
def test_where_sizes_alone_decide_a_reader_is_always_right(seed):
    """Along every column of a whole group each cut leaves too few on one side."""
    frame = people(seed, 400).assign(age=lambda f: f["age"] // 6)
    table = Table(frame, None, QUASI, "ill", missing="value")
    made = anonymize(table, KAnonymity(8), 0, method="baseline")
    found = downcoding(made, KAnonymity(8))
    assert found.shared == found.shared_right > 0


def test_labels_of_hierarchies_tell_what_they_are_made_of_and_not_which_values_occur():
    towns = [("Rome", "south", "*"), ("Nice", "south", "*"), ("Bonn", "north", "*")]
    frame = pd.DataFrame({"town": ["Rome"] * 7 + ["Nice"] + ["Bonn"] * 3, "ill": [*"abcabcabcab"]})
    table = Table(frame, None, ["town"], "ill", hierarchies={"town": towns})
    made = anonymize(table, KAnonymity(3), 0)
    assert set(made.frame["town"]) == {"south", "Bonn"}
    found = downcoding(made, KAnonymity(3))  # 8 in the south: at least 4 in one town
    assert (found.generalized, found.told, found.shared, found.shared_right) == (8, 0, 1, 1)


def test_sets_with_more_members_than_records_were_not_made_by_this_rule():
    frame = pd.DataFrame({"town": ["{Rome, Nice, Bonn}"] * 2, "age": ["1..2"] * 2, "ill": [*"ab"]})
    found = downcoding_of(Table(frame, None, ["town", "age"], "ill"))
    assert (found.cells, found.generalized, found.told) == (4, 4, 2)
    stars = downcoding_of(Table(frame.assign(town="98***", age="*"), None, ["town", "age"], "ill"))
    assert (stars.generalized, stars.told) == (4, 0)


def test_the_warning_has_the_numbers():
    frame = pd.DataFrame({"age": [20, 25, 30, 30, 30, 31], "ill": [*"abcabc"]})
    made = anonymize(Table(frame, None, ["age"], "ill"), KAnonymity(2), m=0)
    told = {one.attack: one.message for one in made.report().assessment.warnings}["downcoding"]
    assert "100.0% of all cells" in told
    assert "tells 66.7% of these cells" in told
    assert "concludes once" in told
    assert made.report().as_dict()["downcoded"]["told"] == 4
    alone = assess(Table(made.frame, None, ["age"], "ill")).warnings[2].message
    assert "as this library's do" in alone
    assert "concludes" not in alone
    exact = assess(Table(frame, None, ["age"], "ill")).warnings[2].message
    assert "nothing to undo" in exact


def test_something_else_is_refused():
    with pytest.raises(InvalidInputError, match="Give what anonymize returned"):
        downcoding("table")
    with pytest.raises(InvalidInputError, match="Give a Table"):
        downcoding_of("table")
