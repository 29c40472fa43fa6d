"""From tables to publications: private by brute force, covering, complete, in no telling order."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.mondrian_reference import groups_withstand
from evidence.random_tables import random_frame, random_table
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    Table,
    TCloseness,
    anonymize,
    own_view,
    verify_m_privacy,
)
from quiltwork.tables.generalization.published_texts import fitting_groups, label_of
from quiltwork.tables.partitioning import recipe
from tests.sizes import sample

QUASI, GRADES = ["age", "weight", "town", "grade"], ["low", "middle", "high"]
NAMES = {
    "P1": "Alice Bob Emily",
    "P2": "Dorothy Mark John",
    "P3": "Sara Cecilia",
    "P4": "Olga Frank",
}
TABLE_I = {  # T1..T4 of the paper
    "P1": [(24, 98745, "Cancer"), (35, 12367, "Asthma"), (22, 98712, "Asthma")],
    "P2": [(38, 98701, "Cancer"), (37, 12389, "Flu"), (31, 12399, "Flu")],
    "P3": [(20, 12300, "Epilepsy"), (39, 98708, "Flu")],
    "P4": [(32, 12337, "Cancer"), (33, 12388, "Asthma")],
}


def table_i() -> Table:
    frames = {
        who: pandas.DataFrame(rows, columns=["age", "zip", "disease"])
        for who, rows in TABLE_I.items()
    }
    return Table.concat(frames, quasi_identifiers=["age", "zip"], sensitive="disease")


def covers(text: str, value: object, kind: str) -> bool:
    label = label_of(text)
    if value is None or value != value:
        return label.missing
    if label.form == "set" or kind == "categorical":
        return str(value) in label.values
    if kind == "ordinal":
        low, high = (GRADES.index(v) for v in label.values)
        return low <= GRADES.index(value) <= high
    low, high = map(float, label.values)
    return low <= float(value) <= high


def check(table: Table, publication, k: int, l: int, m: int) -> None:  # noqa: E741
    """Check everything that any publication without suppression must fulfil."""
    source, inner, outer = table.frame, publication.table.frame, publication.frame
    assert list(outer.columns) == [*table.quasi_identifiers, *table.sensitive]
    assert len(inner) == len(outer) == len(source)
    texts = [tuple(map(str, row)) for row in inner[list(table.quasi_identifiers)].to_numpy()]
    values = [tuple(row) for row in source[list(table.sensitive)].to_numpy()]
    assert groups_withstand(texts, source[table.provider], values, k, l, m)
    kinds = {"age": "numeric", "weight": "numeric", "town": "categorical", "grade": "ordinal"}
    for name in table.quasi_identifiers:
        pairs = zip(inner[name], source[name], strict=True)
        assert all(covers(text, value, kinds[name]) for text, value in pairs)
    assert sorted(zip(texts, values, strict=True)) == sorted(
        zip(
            [tuple(map(str, row)) for row in outer[list(table.quasi_identifiers)].to_numpy()],
            [tuple(row) for row in outer[list(table.sensitive)].to_numpy()],
            strict=True,
        )
    )


@settings(max_examples=sample(12, full=25))
@given(
    seed=st.integers(0, 10**6),
    method=st.sampled_from(["provider-aware", "baseline", "separate"]),
    split=st.sampled_from(["range", "loss", "fitness"]),
    relaxed=st.booleans(),
    m=st.integers(0, 3),
)
def test_every_publication_is_private_covering_and_complete(seed, method, split, relaxed, m):
    table = random_table(seed)
    publication = anonymize(
        table,
        KAnonymity(3) & LDiversity(2),
        m,
        method,
        split=split,
        relaxed=relaxed,
    )
    check(table, publication, 3, 2, m)


def test_the_hospitals_of_table_i_get_a_1_private_table():
    table = table_i()
    constraint = KAnonymity(3) & LDiversity(2)
    for method in ("provider-aware", "baseline"):
        publication = anonymize(table, constraint, m=1, method=method)
        assert verify_m_privacy(publication.table, constraint, m=1, method="direct").private
        assert len(publication.groups) >= 2
    fine = anonymize(table, KAnonymity(2) & LDiversity(2), m=1)
    assert len(fine.groups) >= 2


def test_order_of_rows_and_of_providers_leaves_no_trace():
    frame = random_frame(4)
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    renamed = shuffled.assign(owner=shuffled["owner"].map({f"P{i}": f"P{9 - i}" for i in range(4)}))
    options = {"quasi_identifiers": QUASI, "ordinal": {"grade": GRADES}, "provider": "owner"}
    for sensitive in ("ill", ["ill", "paid"]):
        one, two, three = (
            anonymize(Table(f, sensitive=sensitive, **options), KAnonymity(3), 1, "baseline").frame
            for f in (frame, shuffled, renamed)
        )
        pandas.testing.assert_frame_equal(one, two)
        pandas.testing.assert_frame_equal(one, three)


OPTIONS = [
    {"relaxed": True},
    {"split": "loss", "relaxed": True, "suppression": 0.1},
    {"split": "loss"},
    {"split": "fitness"},
    {"suppression": 0.1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("method", ["provider-aware", "baseline", "separate"])
@pytest.mark.parametrize("subject", [None, "person"])
def test_no_choice_lets_the_order_of_rows_show(options, method, subject):
    frame = random_frame(3).head(60 if subject else 200)
    frame["age"] = frame["age"] // 20  # many records look alike
    frame["person"] = np.arange(len(frame)) // 2
    shuffled = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    one, two = (
        anonymize(
            Table(f, "owner", ["age", "town"], "ill", subject=subject),
            KAnonymity(3),
            0,
            method,
            **options,
        )
        for f in (frame, shuffled)
    )
    pandas.testing.assert_frame_equal(one.frame, two.frame)
    assert one.table.frame["ill"].tolist() == frame["ill"].iloc[one.rows].tolist()
    assert one.table.frame["owner"].tolist() == frame["owner"].iloc[one.rows].tolist()


def test_reversed_rows_that_look_alike_give_one_frame():
    frame = pandas.DataFrame({"p": [*"AB"] * 4, "q": [1] * 6 + [2] * 2, "s": [*"aabbccdd"]})
    for options in ({"split": "loss"}, {"relaxed": True}):
        one, two = (
            anonymize(Table(f, "p", ["q"], "s"), KAnonymity(3), 0, "baseline", **options).frame
            for f in (frame, frame[::-1].reset_index(drop=True))
        )
        pandas.testing.assert_frame_equal(one, two)


def test_the_same_input_gives_the_same_output():
    for options in ({}, {"split": "fitness"}, {"relaxed": True}):
        one, two = (anonymize(random_table(8), KAnonymity(3), 1, **options).frame for _ in range(2))
        pandas.testing.assert_frame_equal(one, two)


def test_several_sensitive_columns_count_as_their_combinations():
    table = Table(random_frame(5), "owner", ("age", "town"), ("ill", "paid"))
    publication = anonymize(table, LDiversity(5), m=1)
    check(table, publication, 1, 5, 1)


def test_missing_values_are_a_declared_choice():
    frame = random_frame(6)
    frame.loc[::7, "age"] = np.nan
    frame.loc[::5, "town"] = None
    with pytest.raises(InvalidInputError, match="missing values"):
        anonymize(Table(frame, "owner", ("age", "town"), "ill"), KAnonymity(3), m=1)
    table = Table(frame, "owner", ("age", "town"), "ill", missing="value")
    publication = anonymize(table, KAnonymity(3) & LDiversity(2), m=1)
    check(table, publication, 3, 2, 1)
    assert any("missing" in text for text in publication.frame["age"])


def test_hierarchies_are_published_as_their_labels(tmp_path):
    path = tmp_path / "zip.csv"
    zips = sorted({z for rows in TABLE_I.values() for _, z, _ in rows})
    lines = [f"{z};{str(z)[:3]}**;{str(z)[:1]}****;*" for z in zips]
    path.write_text("\n".join(lines), encoding="utf-8")
    frames = {
        who: pandas.DataFrame(rows, columns=["age", "zip", "disease"])
        for who, rows in TABLE_I.items()
    }
    table = Table.concat(
        frames, quasi_identifiers=["zip"], sensitive="disease", hierarchies={"zip": path}
    )
    publication = anonymize(table, KAnonymity(3), m=0)
    assert set(publication.frame["zip"]) == {"123**", "987**"}
    labels = {str(z): (str(z), f"{str(z)[:3]}**", f"{str(z)[:1]}****", "*") for z in zips}
    for text, value in zip(publication.table.frame["zip"], table.frame["zip"], strict=True):
        assert text in labels[str(value)]


def test_one_provider_and_columns_without_variation():
    frame = random_frame(7).assign(age=30, town="Zürich")
    table = Table(frame, None, ("age", "town"), "ill")
    publication = anonymize(table, KAnonymity(3), m=2)
    assert publication.frame["age"].tolist() == ["30"] * len(frame)
    assert len(publication.groups) == 1


def test_empty_tables_and_impossible_wishes_are_refused():
    frame = random_frame(1)
    with pytest.raises(InvalidInputError, match="no rows"):
        anonymize(Table(frame.head(0), "owner", ("age",), "ill"), KAnonymity(2), m=1)
    table = Table(frame, "owner", ("age",), "ill")
    with pytest.raises(NotPrivateError, match="one group of all 80 rows"):
        anonymize(table, KAnonymity(79), m=1)
    for wrong in ({"method": "magic"}, {"split": "best"}, {"backend": "abacus"}, {"m": -1}):
        with pytest.raises(InvalidInputError):
            anonymize(table, KAnonymity(2), **{"m": 1, **wrong})
    for share in (1, -0.1, "lots", float("nan")):
        with pytest.raises(InvalidInputError):
            anonymize(table, KAnonymity(2), m=1, suppression=share)


def test_separate_refuses_small_providers_or_leaves_them_out():
    frame = random_frame(2)
    frame.loc[:1, "owner"] = "tiny"
    table = Table(frame, "owner", ("age", "town"), "ill")
    with pytest.raises(NotPrivateError, match="Provider 'tiny' alone"):
        anonymize(table, KAnonymity(3), m=1, method="separate")
    publication = anonymize(table, KAnonymity(3), m=1, method="separate", suppression=0.1)
    assert "tiny" not in set(publication.table.frame["owner"])
    assert 2 <= publication.suppressed <= 8


def test_suppression_stays_within_its_budget_and_narrows_boxes():
    table = random_table(11, rows=300)
    table.frame.loc[:9, "weight"] = np.linspace(300, 900, 10)  # a few that stand apart
    constraint = KAnonymity(5) & LDiversity(2)
    plain = anonymize(table, constraint, m=1)
    assert plain.suppressed == 0
    for share in (0.02, 0.1, 0.3):
        publication = anonymize(table, constraint, m=1, suppression=share)
        assert publication.suppressed <= share * 300
        assert len(publication.frame) == 300 - publication.suppressed
        assert verify_m_privacy(publication.table, constraint, 1, method="direct").private
    assert publication.suppressed > 0
    assert _mean_width(publication) < _mean_width(plain)


def _mean_width(publication) -> float:
    return float((publication.boxes.widths.sum(axis=1) * publication.sizes).sum()) / len(
        publication.rows
    )


@pytest.mark.parametrize(
    "constraint",
    [
        KAnonymity(4) & EntropyLDiversity(1.5),
        KAnonymity(4) & TCloseness(0.6),
        lambda counts: sum(counts.values()) >= 4 and len(counts) >= 2,
    ],
    ids=["entropy", "t-closeness", "callable"],
)
def test_other_constraints_take_the_general_path(constraint):
    table = random_table(3, rows=60, providers=3)
    m = 0 if callable(constraint) else 1
    publication = anonymize(table, constraint, m=m)
    assert verify_m_privacy(publication.table, constraint, m=m).private
    assert len(publication.groups) > 1


def test_people_with_several_records_count_once():
    frame = random_frame(9, rows=120)
    frame["person"] = np.arange(120) // 2
    table = Table(frame, "owner", ("age", "town"), "ill", subject="person")
    constraint = KAnonymity(4) & LDiversity(2)
    publication = anonymize(table, constraint, m=1)
    people = publication.table.frame.groupby(["age", "town"], observed=True)["person"].nunique()
    assert people.min() >= 4
    assert verify_m_privacy(publication.table, constraint, m=1).private
    assert "person" not in publication.frame


def test_a_table_that_fails_its_last_check_is_withheld(monkeypatch):
    one_group_each = lambda records, *_: np.arange(records.count)  # noqa: E731
    monkeypatch.setattr(recipe, "mondrian", one_group_each)
    with pytest.raises(
        NotPrivateError, match="in one of its groups anyone would breach"
    ) as refused:
        anonymize(random_table(1), KAnonymity(2), m=1, method="baseline")
    assert not [ill for ill in random_frame(1)["ill"] if f"{ill}:" in str(refused.value)]


def test_progress_reaches_the_end():
    seen: list[tuple[int, int]] = []
    anonymize(random_table(1), KAnonymity(3), 1, progress=lambda *step: seen.append(step))
    assert seen
    assert seen[-1] == (80, 80)


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_frames_come_back_as_the_kind_they_were(kind):
    import polars
    import pyarrow

    frame = random_frame(2)
    given_frame = polars.from_pandas(frame) if kind == "polars" else pyarrow.table(dict(frame))
    table = Table(given_frame, "owner", ("age", "town"), "ill")
    publication = anonymize(table, KAnonymity(3), m=1)
    expected = anonymize(Table(frame, "owner", ("age", "town"), "ill"), KAnonymity(3), m=1)
    assert isinstance(publication.frame, type(given_frame))
    texts = (
        publication.frame["age"].to_list()
        if kind == "polars"
        else (publication.frame["age"].to_pylist())
    )
    assert texts == expected.frame["age"].tolist()


def alike_and_apart(seed: int) -> Table:
    """Few places, each with records of one provider beside records of the others."""
    rng = np.random.default_rng(seed)
    rows = 240
    owner = rng.choice(["A", "B", "C"], rows)
    skewed = rng.choice(["flu", "cold", "asthma"], rows, p=[0.7, 0.2, 0.1])
    even = rng.choice(["flu", "cold", "asthma"], rows)
    frame = pandas.DataFrame(
        {
            "owner": owner,
            "age": rng.choice([20, 30, 40, 50], rows),
            "town": rng.choice(["x", "y", "z"], rows),
            "ill": np.where(owner == "A", skewed, even),
        }
    )
    return Table(frame, "owner", ["age", "town"], "ill")


@settings(max_examples=sample(12, full=25))
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 2),
    constraint=st.sampled_from([EntropyLDiversity(1.8), TCloseness(0.35)]),
)
def test_groups_of_providers_that_look_alike_are_private_as_one(seed, m, constraint):
    table = alike_and_apart(seed)
    asked = KAnonymity(4) & constraint
    try:
        anonymize(table, asked, m, "baseline")
    except NotPrivateError:
        return
    publication = anonymize(table, asked, m)
    assert verify_m_privacy(publication.table, asked, m).private


def test_a_table_is_made_again_where_providers_cannot_be_parted(monkeypatch):
    made = []
    usual = recipe.provider_aware
    monkeypatch.setattr(
        recipe,
        "provider_aware",
        lambda records, guard, rules, *more: (
            made.append(rules.provider_splits) or usual(records, guard, rules, *more)
        ),
    )
    for seed in range(10):
        anonymize(alike_and_apart(seed), KAnonymity(4) & EntropyLDiversity(1.8), 1)
    assert made.count(True) == 10
    assert False in made


@settings(max_examples=sample(20, full=40))
@given(seed=st.integers(0, 10**6), m=st.integers(0, 1), t=st.sampled_from([0.2, 0.3, 0.4]))
def test_what_is_left_is_as_close_to_itself_as_a_reader_finds(seed, m, t):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(10, 24))
    frame = pandas.DataFrame(
        {
            "owner": rng.choice(["A", "B"], rows),
            "age": [*rng.integers(0, 10, rows - 1), 1000],
            "grade": [*rng.integers(1, 4, rows - 1), 9],
        }
    )
    asked = TCloseness(t, distance="ordered")
    try:
        published = anonymize(Table(frame, "owner", ["age"], "grade"), asked, m, suppression=0.3)
    except NotPrivateError:
        return
    again = Table(published.table.frame, "owner", ["age"], "grade")
    assert verify_m_privacy(again, asked, m).private
    assert verify_m_privacy(published.table, asked, m).private


@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("asked", [TCloseness(0.3), TCloseness(0.2) & KAnonymity(2)])
def test_a_budget_of_suppression_never_makes_a_feasible_wish_fail(asked, m):
    """What is left out moves the distribution that all groups are compared with."""
    left_out = []
    for seed in range(sample(20, full=60)):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(10, 40))
        frame = pandas.DataFrame(
            {
                "owner": rng.choice(["A", "B"], rows),
                "age": [*rng.integers(0, 10, rows - 2), 500, 1000],
                "ill": rng.choice(["x", "y", "z"], rows, p=[0.6, 0.3, 0.1]),
            }
        )
        table = Table(frame, "owner", ["age"], "ill")
        try:
            anonymize(table, asked, m)
        except NotPrivateError:
            continue
        published = anonymize(table, asked, m, suppression=0.3)
        assert published.suppressed <= 0.3 * rows
        again = Table(published.table.frame, "owner", ["age"], "ill")
        assert verify_m_privacy(again, asked, m).private
        left_out.append(published.suppressed)
    assert max(left_out) > min(left_out) == 0


def test_values_are_published_as_they_were_compared():
    large = 2**53
    numbers = pandas.array([large, large + 1, large, None], dtype="Int64")
    frame = pandas.DataFrame({"age": [1, 1, 1, 1], "number": numbers})
    table = Table(frame, None, ["age"], "number", missing="value", count_missing=True)
    published = anonymize(table, LDiversity(3), 0).frame["number"]
    assert published.dropna().tolist() == [large, large, large + 1]
    zeros = pandas.DataFrame({"age": [1] * 3, "number": [0.0, -0.0, 1.0]})
    written = anonymize(Table(zeros, None, ["age"], "number"), KAnonymity(3), 0).frame
    assert list(map(str, written["number"])) == ["0.0", "0.0", "1.0"]


@pytest.mark.parametrize("m", [1, 2])
def test_of_disjoint_boxes_every_row_fits_one_and_the_own_check_needs_no_row_groups(m):
    frame = random_frame(4)
    frame["age"] += 5 * pandas.factorize(frame["owner"])[0]  # providers differ
    roles = (["age", "town"], "ill")
    table = Table(frame, "owner", *roles)
    made = {
        boxes: anonymize(table, KAnonymity(3), m, boxes=boxes)
        for boxes in ("overlapping", "disjoint")
    }
    fits = {}
    for boxes, one in made.items():
        shown, own = Table(one.frame, None, *roles), Table(frame, None, *roles)
        fits[boxes] = np.bincount(fitting_groups(shown, own, np.arange(len(frame)))[0])
        assert verify_m_privacy(one.table, KAnonymity(3), m).private
    assert (fits["disjoint"] == 1).all()
    assert (fits["overlapping"] > 1).any()
    shown = Table(made["disjoint"].frame, None, *roles)
    for _, part in frame.groupby("owner"):
        assert own_view(shown, Table(part, None, *roles), KAnonymity(3)).verdict == "holds"
    with pytest.raises(InvalidInputError, match="cannot be combined with"):
        anonymize(table, KAnonymity(3), m, boxes="disjoint", relaxed=True)
