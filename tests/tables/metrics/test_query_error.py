"""Query error against a second computation that goes through records and values one by one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import InvalidInputError
from quiltwork.tables.generalization.boxes import boxes_of
from quiltwork.tables.metrics.query_error import draw_queries, query_error
from quiltwork.tables.publication import LocalPublication
from quiltwork.tables.table import Table


def people(rows: int = 300, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 60, rows),
            "zip": rng.choice(["N", "S", "E", "W"], rows),
            "size": rng.choice(["small", "medium", "large"], rows),
            "pay": rng.choice([10, 12, 15, 40, 90], rows),
            "ill": rng.choice(["flu", "cold"], rows),
        }
    )


def table_of(frame: pd.DataFrame, **more) -> Table:
    order = {"size": ["small", "medium", "large"]}
    return Table(frame, None, ["age", "zip", "size", "pay"], "ill", ordinal=order, **more)


def publication_of(table: Table, labels: np.ndarray) -> LocalPublication:
    """Boxes around given groups: what query_error needs of a publication. −1 is unpublished."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    boxes = boxes_of(table.encoded.quasi, order, starts)
    rows = np.flatnonzero(labels >= 0)
    groups = np.unique(labels[rows], return_inverse=True)[1]
    return LocalPublication(table, None, boxes, groups, rows)


def naive_error(table: Table, labels: np.ndarray, queries: int, seed: int) -> float:
    """Each record becomes one value drawn evenly from its box: sums over the values themselves.

    A box with numbers and gaps covers its numbers and the gap only.
    """
    encoded = table.encoded
    codes = [c.codes.astype(np.uint8) for c in encoded.quasi]
    gap = {c: len(col.values) - 1 for c, col in enumerate(encoded.quasi) if col.values[-1] is None}
    domains = [len(c.values) for c in encoded.quasi]
    errors = []
    for query, count in draw_queries(codes, domains, queries, seed):
        rows = range(encoded.rows)
        truth = sum(all(a <= codes[c][r] <= b for c, a, b in query.ranges) for r in rows)
        assert truth == count > 0
        expected = 0.0
        for group in range(labels.max() + 1):
            members = np.flatnonzero(labels == group)
            share = 1.0
            for c, a, b in query.ranges:
                held = set(codes[c][members].tolist())
                if encoded.quasi[c].kind != "categorical":
                    known = held - {gap.get(c)}
                    held = set(range(min(known), max(known) + 1)) | (held & {gap.get(c)})
                share *= len([v for v in held if a <= v <= b]) / len(held)
            expected += share * len(members)
        errors.append(abs(expected - truth) / max(truth, 0.001 * encoded.rows))
    return float(np.mean(errors))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_error_is_that_of_the_naive_computation(seed):
    table = table_of(people())
    labels = np.random.default_rng(seed).integers(0, 12, 300)
    found = query_error(table, publication_of(table, labels), queries=60, seed=seed)
    assert found == pytest.approx(naive_error(table, labels, 60, seed), rel=1e-12)
    assert found > 0.01


def test_texts_say_what_boxes_say():
    table = table_of(people())
    labels = np.random.default_rng(4).integers(0, 9, 300)
    publication = publication_of(table, labels)
    boxes = publication.boxes
    frame = table.frame.copy()
    for place, name in enumerate(table.quasi_identifiers):
        texts = np.array(boxes.texts[place], dtype=object)
        frame[name] = texts[boxes.text_of[labels, place]]
    shown = Table(frame, None, table.quasi_identifiers, "ill")
    assert query_error(table, shown, 80) == pytest.approx(query_error(table, publication, 80))


def test_hierarchy_labels_are_read_back():
    frame = people()
    tree = {"zip": [("N", "NS", "*"), ("S", "NS", "*"), ("E", "EW", "*"), ("W", "EW", "*")]}
    table = table_of(frame, hierarchies=tree)
    shown = frame.assign(zip=frame.zip.map({"N": "NS", "S": "NS", "E": "EW", "W": "EW"}))
    coarse = frame.assign(zip="*")
    errors = [
        query_error(table, Table(f, None, table.quasi_identifiers, "ill", ordinal=table.ordinal))
        for f in (frame, shown, coarse)
    ]
    assert errors[0] == 0
    assert 0 < errors[1] < errors[2]


def test_suppressed_records_are_missed():
    table = table_of(people())
    labels = table.groups.labels.copy()
    labels[::2] = -1
    labels = np.unique(labels, return_inverse=True)[1] - 1
    assert query_error(table, publication_of(table, labels), 200) == pytest.approx(0.5, abs=0.15)


def test_queries_have_two_to_half_of_the_columns_and_are_never_empty():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 30, 500).astype(np.uint8) for _ in range(8)]
    asked = list(draw_queries(codes, [30] * 8, 2000, seed=9))
    sizes = [len(query.ranges) for query, _ in asked]
    assert set(sizes) == {2, 3, 4}
    assert all(len({c for c, _, _ in query.ranges}) == len(query.ranges) for query, _ in asked)
    assert min(count for _, count in asked) > 0
    assert [q for q, _ in asked] == [q for q, _ in draw_queries(codes, [30] * 8, 2000, seed=9)]


def test_missing_values_are_the_last_value_of_a_range():
    frame = people()
    frame["pay"] = frame["pay"].astype(float)
    frame.loc[::3, "pay"] = np.nan
    table = table_of(frame, missing="value")
    labels = np.random.default_rng(8).integers(0, 5, 300)
    publication = publication_of(table, labels)
    assert any(column.missing.any() for column in publication.boxes.columns)
    assert query_error(table, publication, 40) == pytest.approx(
        naive_error(table, labels, 40, 0), rel=1e-12
    )


@pytest.mark.parametrize("queries", [0, -1, 2.5, True])
def test_a_strange_number_of_queries_is_refused(queries):
    table = table_of(people())
    with pytest.raises(InvalidInputError, match="queries must be"):
        query_error(table, table, queries)


def test_a_publication_of_another_table_is_refused():
    table = table_of(people())
    other = publication_of(table, table.groups.labels)
    with pytest.raises(InvalidInputError, match="made from"):
        query_error(table_of(people(rows=10)), other)
    strange = Table(people().assign(zip="Q"), None, table.quasi_identifiers, "ill")
    with pytest.raises(InvalidInputError, match="cover no value"):
        query_error(table, strange)
