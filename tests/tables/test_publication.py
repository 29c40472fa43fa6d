"""What a publication offers beside its frame."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from evidence.random_tables import random_frame, random_table
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.tables import KAnonymity, Table, anonymize, verify_m_privacy
from quiltwork.tables.generalization.published_texts import label_of


@pytest.fixture(name="publication")
def some_publication():
    return anonymize(random_table(12), KAnonymity(4), m=1)


def test_groups_say_what_the_rows_say(publication):
    frame = publication.frame
    names = ["age", "weight", "town", "grade"]
    counted = frame.groupby(names, observed=True).size()
    assert len(publication.groups) == len(counted)
    for group in publication.groups:
        assert counted[tuple(group.values[name] for name in names)] == group.size
        label = label_of(group.values["age"])
        assert tuple(map(int, label.values)) == (group.lower["age"], group.upper["age"])
        towns = label_of(group.values["town"])
        assert set(towns.values) == set(group.members["town"])


def test_groups_stand_in_the_order_of_the_frame(publication):
    seen = publication.frame.drop_duplicates(["age", "weight", "town", "grade"])
    texts = [tuple(group.values.values()) for group in publication.groups]
    assert [tuple(row) for row in seen.iloc[:, :4].to_numpy()] == texts


def test_bounds_and_midpoints_go_with_the_rows(publication):
    bounds = publication.bounds
    for text, low, high, middle in zip(
        publication.frame["age"],
        bounds["age_low"],
        bounds["age_high"],
        bounds["age_mid"],
        strict=True,
    ):
        assert tuple(map(float, label_of(text).values)) == (low, high)
        assert middle == (low + high) / 2
    sizes = [len(set(label_of(text).values)) for text in publication.frame["town"]]
    assert bounds["town_size"].tolist() == sizes
    assert set(bounds["grade_low"]) <= {"low", "middle", "high"}


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_what_is_written_is_the_frame_and_can_be_verified(publication, tmp_path, ending):
    path = publication.write(tmp_path / f"published{ending}")
    back = Table(path, None, ("age", "weight", "town", "grade"), "ill")
    assert back.frame.astype(str).equals(publication.frame.astype(str))
    assert verify_m_privacy(back, KAnonymity(4), m=0).private


def test_other_endings_and_folders_that_are_not_there_are_refused(publication, tmp_path):
    with pytest.raises(InvalidInputError, match=r"\.csv or \.parquet"):
        publication.write(tmp_path / "published.doc")
    with pytest.raises(StorageError, match="there is no folder"):
        publication.write(tmp_path / "nowhere" / "published.csv")
    full = tmp_path / "full.csv"
    full.symlink_to("/dev/full")
    with pytest.raises(InvalidInputError, match="a device"):
        publication.write(full)
    assert [path.name for path in tmp_path.iterdir()] == ["full.csv"]  # no partial file is left


def test_codes_prepared_for_the_table_are_those_in_its_texts(publication):
    prepared = publication.table
    fresh = Table(
        prepared.frame, "owner", prepared.quasi_identifiers, prepared.sensitive, missing="value"
    )
    assert (prepared.groups.labels == fresh.groups.labels).all()
    assert (prepared.groups.first == fresh.groups.first).all()
    for one, two in zip(prepared.encoded.quasi, fresh.encoded.quasi, strict=True):
        assert [one.values[c] for c in one.codes] == [two.values[c] for c in two.codes]


def test_the_frame_has_no_provider_and_says_what_it_is(publication):
    assert "owner" not in publication.frame
    assert repr(publication).startswith("Publication(80 rows in ")
    assert isinstance(publication.frame, pandas.DataFrame)


def test_categories_of_rows_that_are_left_out_are_not_published():
    frame = random_frame(2)
    frame.loc[:1, ["owner", "ill"]] = ["tiny", "rare disease"]
    frame["ill"] = frame["ill"].astype("category")
    table = Table(frame, "owner", ("age", "town"), "ill")
    publication = anonymize(table, KAnonymity(3), 1, "separate", suppression=0.1)
    assert "rare disease" not in publication.frame["ill"].cat.categories
    assert len(publication.frame) == 80 - publication.suppressed


def test_bounds_of_unsigned_numbers_beyond_63_bits():
    large = 2**63 + 2**40 * np.arange(6, dtype=np.uint64)
    frame = pandas.DataFrame({"number": large, "ill": ["a", "b"] * 3})
    publication = anonymize(Table(frame, None, ["number"], "ill"), KAnonymity(3), 0)
    assert publication.bounds["number_low"].tolist() == [2**63] * 3 + [2**63 + 3 * 2**40] * 3


def test_half_precision_is_published():
    frame = pandas.DataFrame({"age": range(8), "pay": np.array([1, -0.0] * 4, dtype=np.float16)})
    shown = anonymize(Table(frame, None, ["age"], "pay"), KAnonymity(4), 0).frame
    assert sorted(shown["pay"]) == [0] * 4 + [1] * 4
    assert not np.signbit(shown["pay"]).any()


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"method": "separate"}, "Every group has the rows of one provider alone"),
        ({"method": "baseline"}, ""),
    ],
)
def test_a_table_that_gains_nothing_from_pooling_says_so(choices, told):
    frame = pandas.DataFrame({"who": [*"ab"] * 8, "age": range(16), "ill": [*"xxyy"] * 4})
    made = anonymize(Table(frame, "who", ["age"], "ill"), KAnonymity(2), 1, **choices)
    assert made.pooled.startswith(told) if told else made.pooled == ""
    assert made.of_one_provider == (8 if told else 0)
    assert made.pooled in made.explain()
    assert made.pooled in made.report().lead
