"""Query error: how far counts answered from a published table are from the true counts.

As in the m-privacy paper's evaluation (Section V.C): random range queries on quasi-identifiers are
answered from the published boxes as if records were spread evenly within them. Where the paper says
nothing: ranges are drawn on each column's sorted values; a query whose true count is 0 is drawn
again; errors are relative to the true count, but to at least 0.1 % of the rows, so that an error of
a few records in a tiny count does not dominate. The published table is a `PublishedRecords`, or any
frame of texts (`20..25`, `{flu, asthma}`, labels of declared hierarchies). Cost: O(queries · (rows
+ groups)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.tables.codes.distinct import NumberSets
from quiltwork.tables.codes.encoding import Column
from quiltwork.tables.constraints.constraint import MAX_COUNT
from quiltwork.tables.generalization.published_texts import LabelReader
from quiltwork.tables.generalization.range_queries import (
    LEAST_SHARE,
    Coverage,
    Covers,
    RangeQuery,
    answers,
    random_queries,
    small_codes,
    true_count,
)
from quiltwork.tables.publishing.published_records import Publication, require_local
from quiltwork.tables.table import Table, as_table

_TRIES = 1000  # draws per query before giving up on finding a non-empty one


def coverage_of_texts(original: Table, published: Table) -> Coverage:
    """Return the coverage of an original table's columns by a frame of published texts."""
    groups = published.groups
    covers, labels = [], []
    for column in original.encoded.quasi:
        published_column = next((c for c in published.encoded.quasi if c.name == column.name), None)
        if published_column is None:
            raise InvalidInputError(
                f"The published table has no quasi-identifier {column.name!r}. Both tables must "
                "have the same quasi-identifiers."
            )
        covers.append(covered(column, published_column.values))
        labels.append(published_column.codes[groups.first].astype(np.int64))
    sizes = np.bincount(groups.labels, minlength=groups.count)
    return Coverage(tuple(covers), sizes, np.stack(labels, axis=1))


def covered(column: Column, texts: Sequence[Any]) -> Covers:
    """Return the values of a column that published texts cover.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> covered(ages, ["20..30", "31", 25]).members.sizes.tolist()
    [2, 1, 1]
    """
    reader = LabelReader(column)
    codes_of = [reader.codes(text) for text in texts]
    empty = sum(not len(codes) for codes in codes_of)
    if empty:
        raise InvalidInputError(
            f"{empty:,} of {len(texts):,} published texts of column {column.name!r} cover no "
            "value of the original table. Declare the column's hierarchy or order there."
        )
    start = np.cumsum([0, *map(len, codes_of)])
    ends = np.zeros(len(codes_of), dtype=np.int64)
    sets = NumberSets(start, np.concatenate(codes_of))
    return Covers(len(column.values), ends, ends, ends > 0, sets)


def query_error(
    table: Table, publication: Publication | Table, queries: int = 2500, seed: int = 0
) -> float:
    """Return the mean relative error of random range queries answered from a publication.

    Args:
        table: the original.
        publication: the result of `anonymize`, or a Table of published texts.
        queries: the number of queries.
        seed: the seed of the draw; the same seed asks every publication the same queries.

    Raises:
        InvalidInputError: if `queries` is not a positive integer or `seed` not an integer from 0
            on, or if the publication is of another table.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [20, 21, 30, 31], "zip": [1, 1, 2, 2], "ill": [*"abab"]})
    >>> table = Table(frame, None, ["age", "zip"], "ill")
    >>> query_error(table, table, queries=50)
    0.0
    """
    return float(np.mean(errors_of_queries(table, publication, queries, seed)))


def errors_of_queries(
    table: Table, publication: Publication | Table, queries: int, seed: int
) -> NDArray[np.float64]:
    """Return the error of each query, to compare two publications by the same queries."""
    queries = integer(queries, "queries", 1, MAX_COUNT)
    integer(seed, "seed", 0)
    cover = coverage(as_table(table), publication)
    codes = small_codes(table.encoded.quasi)
    drawn = list(draw_queries(codes, [len(c.values) for c in table.encoded.quasi], queries, seed))
    truth = np.array([count for _, count in drawn], dtype=np.float64)
    answered = answers(cover, [query for query, _ in drawn])[0]
    # The same floor as in range_queries, so that both use one definition of error.
    scale = np.maximum(truth, LEAST_SHARE * table.encoded.rows)
    return np.asarray(np.abs(answered - truth) / scale, dtype=np.float64)


def coverage(table: Table, publication: Publication | Table) -> Coverage:
    """Return what a publication, or a Table of published texts, covers of a table's columns."""
    if isinstance(publication, Table):
        return coverage_of_texts(table, publication)
    published = require_local(publication)
    rows, source_rows = table.encoded.rows, published.source.encoded.rows
    if rows != source_rows or published.source.quasi_identifiers != table.quasi_identifiers:
        raise InvalidInputError(
            f"The publication was made from another table, with {source_rows:,} rows or other "
            f"columns; this one has {rows:,} rows. Pass the table that it was made from."
        )
    return Coverage(published.boxes.columns, published.sizes)


def draw_queries(
    codes: list[NDArray[Any]], domains: list[int], queries: int, seed: int
) -> Iterator[tuple[RangeQuery, int]]:
    """Draw random queries that are not empty, each with its true count."""
    accepted = 0
    # Bounded, since on very sparse columns nearly all queries are empty.
    for query in islice(random_queries(domains, seed), _TRIES * queries):
        count = true_count(codes, query)
        if count:
            accepted += 1
            yield query, count
            if accepted == queries:
                return
    raise InvalidInputError(
        f"Of {_TRIES * queries:,} random queries only {accepted} were not empty: the "
        "quasi-identifiers are too sparse for this measure. Use fewer of them, or fewer queries."
    )
