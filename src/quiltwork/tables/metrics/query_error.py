"""Query error: how far counts from a published table are from the truth.

As in the m-privacy paper's evaluation (Section V.C): random range queries on quasi-identifiers,
answered from the published boxes as if records were spread evenly within them. Where the paper is
silent: ranges are drawn on each column's sorted values; a query whose true count is 0 is drawn
again; errors are relative to the true count, but at least to 0.1 % of the rows, so that a miss of a
few records in a tiny count does not outweigh everything else. Published are the boxes of a
`PublishedRecords`, or the texts of any frame (`20..25`, `{flu, asthma}`, labels of declared
hierarchies). Cost: O(queries · (rows + groups)).
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
from quiltwork.tables.constraints.constraint import MOST
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
from quiltwork.tables.table import Table, read_table

_TRIES = 1000  # draws per query before giving up on finding one that is not empty


def coverage_of_texts(original: Table, published: Table) -> Coverage:
    """Return the coverage of a frame of published texts over an original table's columns."""
    groups = published.groups
    covers, labels = [], []
    for column in original.encoded.quasi:
        shown = next((c for c in published.encoded.quasi if c.name == column.name), None)
        if shown is None:
            raise InvalidInputError(
                f"The published table has no quasi-identifier {column.name!r}; give it the "
                "original's quasi-identifiers."
            )
        covers.append(covered(column, shown.values))
        labels.append(shown.codes[groups.first].astype(np.int64))
    sizes = np.bincount(groups.labels, minlength=groups.count)
    return Coverage(tuple(covers), sizes, np.stack(labels, axis=1))


def covered(column: Column, texts: Sequence[Any]) -> Covers:
    """Return what published texts cover of a column's values.

    >>> ages = Column("age", "numeric", (20, 25, 31), np.zeros(0, dtype=np.int32))
    >>> covered(ages, ["20..30", "31", 25]).members.sizes.tolist()
    [2, 1, 1]
    """
    reader = LabelReader(column)
    found = [reader.codes(text) for text in texts]
    nothing = sum(not len(codes) for codes in found)
    if nothing:
        raise InvalidInputError(
            f"{nothing:,} of {len(texts):,} published texts of column {column.name!r} cover no "
            "value of the original table; declare its hierarchy or order on the original table."
        )
    start = np.cumsum([0, *map(len, found)])
    ends = np.zeros(len(found), dtype=np.int64)
    sets = NumberSets(start, np.concatenate(found))
    return Covers(len(column.values), ends, ends, ends > 0, sets)


def query_error(
    table: Table, publication: Publication | Table, queries: int = 2500, seed: int = 0
) -> float:
    """Return the mean relative error of random range queries answered from a publication.

    Args:
        table: the original.
        publication: what `anonymize` returned, or a Table of published texts.
        queries: how many to ask.
        seed: of the draw; the same seed asks the same questions of every publication.

    Raises:
        InvalidInputError: if `queries` is no positive whole number, `seed` none from 0 on, or the
            publication is none or of another table.

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
    """Return the error of each query, for comparisons that ask the same of two publications."""
    queries = integer(queries, "queries", 1, MOST)
    integer(seed, "seed", 0)
    cover = coverage(read_table(table), publication)
    codes = small_codes(table.encoded.quasi)
    asked = list(draw_queries(codes, [len(c.values) for c in table.encoded.quasi], queries, seed))
    truth = np.array([count for _, count in asked], dtype=np.float64)
    told = answers(cover, [query for query, _ in asked])[0]
    scale = np.maximum(truth, LEAST_SHARE * table.encoded.rows)
    return np.asarray(np.abs(told - truth) / scale, dtype=np.float64)


def coverage(table: Table, publication: Publication | Table) -> Coverage:
    """Return what a publication, or a Table of published texts, covers of a table's columns."""
    if isinstance(publication, Table):
        return coverage_of_texts(table, publication)
    made = require_local(publication)
    rows, asked = table.encoded.rows, made.source.encoded.rows
    if rows != asked or made.source.quasi_identifiers != table.quasi_identifiers:
        raise InvalidInputError(
            f"The publication was made from {asked:,} rows and other columns or rows than the "
            f"table's {rows:,}; give the table that it was made from."
        )
    return Coverage(made.boxes.columns, made.sizes)


def draw_queries(
    codes: list[NDArray[Any]], domains: list[int], queries: int, seed: int
) -> Iterator[tuple[RangeQuery, int]]:
    """Draw random queries that are not empty, each with its true count."""
    found = 0
    for query in islice(random_queries(domains, seed), _TRIES * queries):
        count = true_count(codes, query)
        if count:
            found += 1
            yield query, count
            if found == queries:
                return
    raise InvalidInputError(
        f"Of {_TRIES * queries:,} random queries only {found} were not empty; the "
        "quasi-identifiers are too scattered for this measure."
    )
