from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from papers.examples.hospitals import PATIENTS, table_a, table_b
from quiltwork.errors import InvalidInputError
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.codes.encoding import Column, encode_column
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.generalization.published_texts import LabelReader
from quiltwork.tables.input.frames import ArrowFrame
from quiltwork.tables.providers.own_view import own_view
from quiltwork.tables.table import Table


def covers(text, column, order=()):
    """Tell for each value of a column whether a published text covers it."""
    return np.isin(np.arange(len(column.values)), LabelReader(column, order).codes(text))


ROLES = {"provider": None, "quasi_identifiers": ["age", "zip"], "sensitive": "disease"}


def published(table):
    return Table(table.frame.drop_columns("hospital"), **ROLES)


def rows_of(*hospitals):
    rows = [patient for patient in PATIENTS if patient[0] in hospitals]
    frame = pd.DataFrame(rows, columns=["hospital", "name", "age", "zip", "disease"])
    return Table(frame.drop(columns=["hospital", "name"]), **ROLES)


def test_p1_finds_sara():
    view = own_view(published(table_a()), rows_of("P1"), KAnonymity(3))
    assert view.smallest.group == ("20..30", "*****")
    assert view.smallest.left == {"Epilepsy": 1}
    assert [group.group for group in view.disclosed] == [("20..30", "*****")]
    assert [group.group for group in view.broken] == [("20..30", "*****")]
    assert (view.own_rows, view.unmatched, view.ambiguous) == (3, 0, 0)


def test_it_sees_no_more_than_a_removal_of_its_rows():
    """In T_a groups are disjoint, so the view is what the verification with all data leaves."""
    whole = table_a().frame.to_pandas()
    for hospitals in (("P1",), ("P2",), ("P1", "P2"), ("P2", "P3", "P4")):
        view = own_view(published(table_a()), rows_of(*hospitals))
        rest = whole[~whole["hospital"].isin(hospitals)]
        touched = whole[whole["hospital"].isin(hospitals)].groupby("age").size().index
        sizes = rest[rest["age"].isin(touched)].groupby("age").size()
        assert view.smallest.left_size == sizes.min()
        assert view.groups == len(sizes)


def test_overlapping_boxes_never_overstate_what_is_left():
    """Ages overlap in T_b: a row of P1 may be in two groups and counts in both."""
    view = own_view(published(table_b()), rows_of("P1"), KAnonymity(2))
    assert view.ambiguous > 0
    assert view.smallest.left_size <= 2


BOXES = [(0, 4), (3, 7), (2, 9)]


@pytest.mark.parametrize(
    ("asked", "method"),
    [
        (KAnonymity(3) & LDiversity(2), "provider-aware"),
        (KAnonymity(3) & LDiversity(2), "separate"),
        (KAnonymity(3) & EntropyLDiversity(1.5), "provider-aware"),
        (RecursiveLDiversity(4, 2), "provider-aware"),
        (KAnonymity(3) & TCloseness(0.5), "separate"),
    ],
)
def test_no_provider_of_a_private_table_is_alarmed(asked, method):
    """Boxes of groups that were cut between providers overlap; that is no breach."""
    rng = np.random.default_rng(3)
    rows = 120
    frame = pd.DataFrame(
        {
            "who": rng.choice(list("abcd"), rows),
            "age": rng.integers(20, 60, rows),
            "sex": rng.choice(["f", "m"], rows),
            "ill": rng.choice(["flu", "cold", "gout"], rows),
        }
    )
    roles = {"quasi_identifiers": ["age", "sex"], "sensitive": "ill"}
    made = anonymize(Table(frame, "who", **roles), asked, m=2, method=method)
    shown = Table(made.frame, None, **roles)
    for name in "abcd":
        mine = Table(frame[frame["who"] == name], None, **roles)
        view = own_view(shown, mine, asked)
        assert (view.broken, view.unmatched) == ((), 0)
        assert view.verdict in ("holds", "cannot tell")


CONSTRAINTS = [
    KAnonymity(2),
    KAnonymity(2) & LDiversity(2),
    LDiversity(3),
    EntropyLDiversity(1.8),
    RecursiveLDiversity(1, 2),
    RecursiveLDiversity(2.5, 2) & KAnonymity(3),
    TCloseness(0.25),
    TCloseness(0.25, "ordered"),
]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=5),
    st.sampled_from(CONSTRAINTS),
)
@settings(max_examples=120)
def test_the_answer_is_that_of_all_ways_to_place_the_own_rows(records, mine, asked):
    """All ways are tried, and in each every set between what is left of a group and all of it."""
    shown = pd.DataFrame([(f"{BOXES[g][0]}..{BOXES[g][1]}", v) for g, v in records])
    tables = [
        Table(frame.set_axis(["age", "ill"], axis=1), None, ["age"], "ill")
        for frame in (shown, pd.DataFrame(mine))
    ]
    view = own_view(*tables, asked)
    whole = Counter((f"{BOXES[g][0]}..{BOXES[g][1]}", v) for g, v in records)
    boxes = {f"{low}..{high}": (low, high) for low, high in BOXES}
    places = [
        [(n, v) for n, (low, high) in boxes.items() if low <= age <= high and whole[n, v]]
        for age, v in mine
    ]
    placed = [place for place in places if place]
    ways = [Counter(way) for way in product(*placed) if not Counter(way) - whole]
    least = min((len(placed) - n for n in _most_placed(placed, whole)), default=0)
    assert view.unmatched == len(mine) - len(placed) + least
    bound = asked.bind(tables[0].encoded)
    codes = {value: code for code, value in enumerate(tables[0].encoded.sensitive_values)}

    def holds(counts):
        return bound.holds(SecretCounts.from_counts(counts))

    def breaks(way, name, between):
        rest, full = (
            {codes[v]: n for (where, v), n in counts.items() if where == name}
            for counts in (whole - way, whole)
        )
        if not rest:
            return not holds(full)  # outsiders look, too
        steps = [
            range(rest.get(v, 0), n + 1) if between else [rest.get(v, 0)] for v, n in full.items()
        ]
        return not all(holds(dict(zip(full, some, strict=True))) for some in product(*steps))

    def broken(way, between):
        return {name for name in {n for n, _ in whole} if breaks(way, name, between)}

    if view.unmatched:
        assert view.verdict == ("breached" if broken(Counter(), False) else "cannot tell")
        return
    strict = [broken(way, True) for way in ways]
    if view.verdict == "holds":
        assert not any(strict)
    if view.verdict == "breached":
        assert set.intersection(*strict)
    if view.verdict == "cannot tell" and asked.eg_monotonic:
        assert any(strict)
    for group in view.broken:
        assert all(group.group[0] in names for names in strict)
    if asked.eg_monotonic and not broken(Counter(), False):
        unsure = {group.group[0] for group in (*view.broken, *view.unsure)}
        assert set().union(*strict) <= unsure
    if view.smallest is not None:
        left = [whole - way for way in ways]
        sizes = [sum(n for (g, _), n in w.items() if g == view.smallest.group[0]) for w in left]
        assert view.smallest.left_size == min(sizes)
        assert max(sizes) <= sum(view.smallest.left_most.values())


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=9),
    st.sets(st.integers(0, 8)),
    st.sampled_from(CONSTRAINTS),
)
def test_whoever_is_told_where_its_rows_are_gets_an_exact_answer(records, own, asked):
    """The publisher says it; then the answer is that of the definition, for this coalition."""
    frame = pd.DataFrame([(f"{BOXES[g][0]}..{BOXES[g][1]}", v) for g, v in records])
    frame.columns = ["age", "ill"]
    is_own = [row in own for row in range(len(frame))]
    assume(any(is_own))
    ages = pd.DataFrame({"age": [BOXES[g][1] for g, _ in records], "ill": frame["ill"]})
    roles = {"provider": None, "quasi_identifiers": ["age"], "sensitive": "ill"}
    view = own_view(
        Table(frame, **roles),
        Table(ages[is_own], **roles),
        asked,
        row_groups=Table(frame[is_own], **roles),
    )
    bound = asked.bind(Table(frame, **roles).encoded)
    codes = {v: c for c, v in enumerate(sorted(set(frame["ill"])))}
    fine = True
    for _, group in frame.assign(own=is_own).groupby("age"):
        full = group["ill"].map(codes).value_counts().to_dict()
        rest = group.loc[~group["own"], "ill"].map(codes).value_counts().to_dict()
        steps = [range(rest.get(v, 0), n + 1) for v, n in full.items()]
        sets = [dict(zip(full, some, strict=True)) for some in product(*steps)]
        looked = sets if rest else [full]  # all own: only outsiders look
        fine &= all(bound.holds(SecretCounts.from_counts(one)) for one in looked)
    assert view.verdict == ("holds" if fine else "breached")


def test_rows_that_the_publisher_left_out_need_not_be_found():
    shown = Table(pd.DataFrame({"age": ["20..30"] * 4, "ill": [*"abab"]}), None, ["age"], "ill")
    mine = Table(pd.DataFrame({"age": [22, 50], "ill": [*"ab"]}), None, ["age"], "ill")
    for k, left_out, verdict in (
        (3, 0, "cannot tell"),
        (3, 1, "holds"),
        (4, 1, "cannot tell"),  # the row that fits may be the one that was left out
        (5, 1, "breached"),  # for everybody
    ):
        assert own_view(shown, mine, KAnonymity(k), left_out).verdict == verdict


@pytest.mark.parametrize("texts", [["20..30"] * 2, ["20..31"], ["40..50"]])
def test_placed_rows_that_cannot_be_mine_are_refused(texts):
    shown = pd.DataFrame({"age": ["20..30"] * 4 + ["40..50"] * 4, "ill": [*"abab"] * 2})
    mine = Table(pd.DataFrame({"age": [22, 45], "ill": [*"ab"]}), None, ["age"], "ill")
    placed = pd.DataFrame({"age": texts, "ill": "a"})
    with pytest.raises(InvalidInputError, match="row groups are"):
        own_view(
            Table(shown, None, ["age"], "ill"),
            mine,
            KAnonymity(2),
            row_groups=Table(placed, None, ["age"], "ill"),
        )


def _most_placed(places, whole):
    """Give how many rows each way of placing some of them places."""
    for way in product(*([None, *place] for place in places)):
        taken = Counter(filter(None, way))
        if not taken - whole:
            yield sum(taken.values())


def test_constraints_that_added_records_can_break_are_left_open_where_rows_are_ambiguous():
    """Two x and two y are entropy 2-diverse without the row and with it counted twice, not once."""
    shown = pd.DataFrame({"age": ["0..5"] * 4 + ["3..9"] * 4, "ill": [*"xxyyxxyy"]})
    mine = pd.DataFrame({"age": [4, 4], "ill": ["x", "y"]})
    tables = [Table(frame, None, ["age"], "ill") for frame in (shown, mine)]
    view = own_view(*tables, EntropyLDiversity(2))
    assert view.broken == ()
    assert len(view.unsure) == 2
    sure = own_view(
        tables[0], Table(mine.assign(age=1), None, ["age"], "ill"), EntropyLDiversity(2)
    )
    assert (len(sure.broken), sure.verdict) == (1, "breached")  # by taking one of the two


def test_rows_that_were_not_published():
    mine = Table(
        pd.DataFrame({"age": [99, 24], "zip": [1, 98745], "disease": ["Flu", "Plague"]}), **ROLES
    )
    view = own_view(published(table_a()), mine)
    assert (view.unmatched, view.groups, view.smallest) == (2, 0, None)
    assert view.explain().startswith(
        "2 of 2 rows are not in the table. No published group has both these rows"
    )
    with pytest.raises(InvalidInputError, match="same quasi-identifiers"):
        own_view(published(table_a()), Table(mine.frame, None, ["age"], "disease"))
    with pytest.raises(InvalidInputError, match="same sensitive columns"):
        own_view(published(table_a()), Table(mine.frame.assign(ill=1), None, ["age", "zip"], "ill"))
    with pytest.raises(InvalidInputError, match="Pass a Table"):
        own_view(published(table_a()).frame, mine)


def test_the_words():
    text = own_view(published(table_b()), rows_of("P1", "P2"), KAnonymity(3)).explain()
    assert text.startswith(
        "Breached: without these rows, too few records are left: 1 to 2 of 3, in ("
    )
    text = own_view(published(table_b()), rows_of("P1"), KAnonymity(2)).explain()
    assert text.startswith("Cannot tell alone. 1 of 3 rows fits several groups")
    assert "the fewest left are" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20..30", [True, True, False, False]),
        (25, [False, True, False, False]),
        ("25", [False, True, False, False]),
        ("{20..30, missing}", [True, True, False, True]),
        ("missing", [False, False, False, True]),
        (None, [False, False, False, True]),
        ("*", [True, True, True, False]),
        ("low", [False, False, False, False]),
    ],
)
def test_what_texts_cover_of_numbers(text, expected):
    ages = Column("age", "numeric", (20, 25, 31, None), np.zeros(0, dtype=np.int32))
    assert covers(text, ages).tolist() == expected


def test_what_texts_cover_of_other_columns():
    frame = pd.DataFrame({"d": ["a", "c"], "born": [date(2020, 1, 1), date(2021, 6, 1)]})
    order = ["a", "b", "c"]
    degrees = encode_column(ArrowFrame.of(frame), "d", order=order)
    assert covers("a..b", degrees, order).tolist() == [True, False]
    assert covers("b..c", degrees, order).tolist() == [False, True]
    born = encode_column(ArrowFrame.of(frame), "born")
    assert covers("2020-12-31..2021-12-31", born).tolist() == [False, True]
    longer = pd.DataFrame({"stay": [timedelta(hours=3), timedelta(hours=10), timedelta(days=2)]})
    stays = encode_column(ArrowFrame.of(longer), "stay")
    assert covers("2:00:00..12:00:00", stays).tolist() == [True, True, False]
    assert covers("10:00:00..3 days, 0:00:00", stays).tolist() == [False, True, True]
    assert covers("long", stays).tolist() == [False, False, False]
    names = encode_column(ArrowFrame.of(frame), "d")
    assert covers("{a, b}", names).tolist() == [True, False]
    assert covers("c", names).tolist() == [False, True]


QUOTED = ['"x', "{}", "a..b", " s ", "{a, b}", "missing", "*", "x, y"]
NAMES = ["North, upper", '"South"', "East..West", "{more}"]
TREE = [(value, NAMES[place // 2], "all") for place, value in enumerate(QUOTED)]
COLUMNS = {
    "quoted": (QUOTED, {}),
    "quoted hierarchy": (QUOTED, {"hierarchies": {"q": TREE}}),
    "missing under a hierarchy": ([*QUOTED[:6], None, None], {"hierarchies": {"q": TREE}}),
    "quoted order": (QUOTED, {"ordinal": {"q": QUOTED}}),
    "categories in order": (pd.Categorical([*"wxyzwxyz"], [*"zyvxw"], ordered=True), {}),
    "categories": (pd.Categorical([*"wxyzwxyz"]), {}),
    "missing categories": (pd.Categorical([*"wxy", None] * 2, [*"yxw"], ordered=True), {}),
    "missing text": (["a", None] * 4, {}),
    "missing numbers": ([1, None, 2.5, None, 3, 4, 5, 6], {}),
    "yes or no": ([True, False] * 4, {}),
    "codes": (["01", "1", "+1", "1.0", "007", "7", "07", "1e3"], {}),
    "dates": ([date(2020, 1, day) for day in range(1, 9)], {}),
    "moments": (pd.date_range("2020-01-01", periods=8, freq="90min", tz="UTC"), {}),
    "durations": ([timedelta(hours=9 * n) for n in range(8)], {}),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_own_rows_are_found_under_whatever_labels_are_published(kind, tmp_path):
    values, declared = COLUMNS[kind]
    frame = pd.DataFrame({"q": values, "r": [*"aaaabbbb"], "s": [*"xyzwxyzw"]})
    roles = {"quasi_identifiers": ["q", "r"], "sensitive": "s", "missing": "value"}
    table = Table(frame, None, **roles, **declared)
    made = anonymize(table, KAnonymity(2), 0)
    for sources in (made.frame, made.write(tmp_path / "o.csv"), made.write(tmp_path / "o.parquet")):
        view = own_view(Table(sources, None, **roles), table, KAnonymity(2))
        assert (view.unmatched, view.groups) == (0, 0)  # every record is an own one
    # Others own one of two records: each group must be met, with one record left.
    own = Table(frame.iloc[::2], None, **roles, **declared)
    view = own_view(Table(made.frame, None, **roles), own, KAnonymity(1))
    assert view.unmatched == 0


@pytest.mark.parametrize(
    ("shown", "own"),
    [
        ([1.0, 0.0, 0.0], "1"),
        (["1", "0", "02"], 1),
        ([Decimal("1.0"), Decimal("2.5"), Decimal("0.0")], 1.0),
        ([True, False, False], "true"),
        (["TRUE", "no", "no"], True),
    ],
)
def test_sensitive_values_are_compared_as_they_are_written(shown, own):
    """One file has them as numbers or yes and no, another as text."""
    published_frame = pd.DataFrame({"age": ["20..30"] * 3, "ill": shown})
    mine = pd.DataFrame({"age": [24], "ill": [own]})
    view = own_view(*(Table(f, None, ["age"], "ill") for f in (published_frame, mine)))
    assert (view.unmatched, view.smallest.left_size) == (0, 2)


def test_more_own_rows_than_are_published_are_not_in_the_table():
    shown = pd.DataFrame({"age": ["0..4", "0..4", "3..7"], "ill": [*"xyx"]})
    mine = pd.DataFrame({"age": [3, 3, 4], "ill": [*"xxx"]})
    view = own_view(*(Table(frame, None, ["age"], "ill") for frame in (shown, mine)), KAnonymity(1))
    assert (view.unmatched, view.ambiguous, view.own_rows) == (1, 3, 3)


def test_hierarchies_of_the_own_table_are_read():
    paths = [("12367", "123**", "*"), ("98745", "987**", "*")]
    frame = pd.DataFrame({"zip": ["12367", "98745"], "ill": ["x", "x"]})
    mine = Table(frame, None, ["zip"], "ill", hierarchies={"zip": paths})
    shown = pd.DataFrame({"zip": ["123**"] * 3, "ill": ["x", "y", "y"]})
    view = own_view(Table(shown, None, ["zip"], "ill"), mine)
    assert view.smallest.left == {"y": 2}
    assert view.unmatched == 1


def test_a_group_that_is_broken_may_be_disclosed_as_well():
    """The row fits both groups; without it the first leaves flu alone."""
    shown = pd.DataFrame({"age": ["1..3"] * 2 + ["2..5"] * 3, "ill": [*"fccgf"]})
    mine = pd.DataFrame({"age": [2], "ill": ["c"]})
    tables = [Table(frame, None, ["age"], "ill") for frame in (shown, mine)]
    for k, broken in ((1, []), (3, [("1..3",)])):
        view = own_view(*tables, KAnonymity(k))
        assert [group.group for group in view.broken] == broken
        assert ("1..3",) in [group.group for group in view.unsure]


@pytest.mark.parametrize(
    ("texts", "values", "unmatched"),
    [
        (["30s", "31"], [31], 1),  # is 31 one of the 30s?
        (["20..30", "north", "*"], ["x"], 1),  # north may be a label that x is under
        (["small..large", "x"], ["x"], 1),  # an order that is not known
        (["north", "x"], ["x"], 0),  # north may be a value that others have
        (["{north, south}", "31"], [31], 0),  # so are words next to sets
        (["1**", "31"], [31], 0),
        (["missing", "{31..40, missing}"], [31], 0),
    ],
)
def test_rows_that_may_be_under_a_label_that_is_not_understood_are_not_found(
    texts, values, unmatched
):
    shown = pd.DataFrame({"place": np.repeat(texts, 2), "ill": [*"ab"] * len(texts)})
    mine = pd.DataFrame({"place": values, "ill": ["a"] * len(values)})
    view = own_view(
        *(Table(frame, None, ["place"], "ill") for frame in (shown, mine)), KAnonymity(1)
    )
    assert view.unmatched == unmatched
