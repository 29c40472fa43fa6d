"""Tables of disjoint counts: one geometric draw per cell, intervals, totals and consistency.

Every row is counted in at most one cell. Replacing one person's row then moves two cells by 1,
adding or removing a row moves one; a person with several rows moves that many times as much. The
table states its adjacency, and how the number of rows per person is known. Cost: one draw per cell.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from quiltwork import files
from quiltwork.arguments import choice, flag, instance, listed
from quiltwork.budget.judging import Usefulness, judge
from quiltwork.budget.payment import as_payer, pay_and_store
from quiltwork.counts.contributors import LimitedCounts, belief_digest, number_of_people
from quiltwork.counts.count_table_level import Adjacency, Cell, project, sum_quantile, table_level
from quiltwork.errors import InvalidInputError
from quiltwork.exact import (
    Number,
    float_up,
    integer,
    parse_stored_fraction,
    private_integer,
    shortened,
    to_fraction,
)
from quiltwork.noise import TwoSidedGeometric
from quiltwork.report import (
    Estimate,
    IntervalChart,
    bullets,
    facts,
    figure,
    folded,
    note,
    page,
    section,
    table,
)
from quiltwork.results import ChartedResult, Interval, plain

_FEW_CELLS = 256
_MOST_PEOPLE = 10**300  # larger totals overflow floats
_MOST_BARS = 60
_MOST_ROWS = 12

Limit: TypeAlias = Literal["kept", "declared", "assumed"]

_MEANING = {"replace": "replacing", "add-remove": "adding or removing"}


@dataclass(frozen=True)
class CountTable(ChartedResult):
    """A released table of counts.

    Attributes:
        cells: the labels, in the given order.
        values: consistent counts: integers ≥ 0 that add up to `total` if that is public.
        noisy: the counts as drawn, unbounded; intervals are computed from these.
        alphas: each cell's noise ratio.
        epsilon: the privacy loss of the whole table, rounded up.
        dp_epsilon: the level for replacing one person's rows, whatever the adjacency and beliefs;
            it is what accountants charge.
        adjacency: "replace" or "add-remove".
        total: the declared public total that the values add up to, if there is one.
        people: the number of people the beliefs are about, if there are beliefs; no count exceeds
            it.
        dimensions: the names of the columns that make up a label.
        at_most: the number of rows per person that `epsilon` covers.
        limit: how that number is known: "kept" by leaving out further rows, "declared", or
            "assumed".
        subject: the column that identifies people, if rows were left out by it.
    """

    schema = ("count-table", 1)

    cells: tuple[Cell, ...]
    values: tuple[int, ...]
    noisy: tuple[int, ...]
    alphas: tuple[Fraction, ...]
    epsilon: float
    dp_epsilon: Fraction
    adjacency: Adjacency
    total: int | None = None
    dimensions: tuple[str, ...] = ()
    at_most: int = 1
    limit: Limit = "assumed"
    subject: str | None = None
    people: int | None = None

    def __getitem__(self, cell: Cell) -> int:
        return self.values[self._index(cell)]

    def interval(self, cell: Cell, confidence: Number = 0.95) -> Interval:
        """Return a confidence interval for this cell's true count."""
        index = self._index(cell)
        return self._around(index, _reach(self.alphas[index], confidence, 1))

    def intervals(
        self, confidence: Number = 0.95, simultaneous: bool = False
    ) -> dict[Cell, Interval]:
        """Return all cells' intervals; `simultaneous`: with joint confidence for all cells."""
        family_size = len(self.cells) if flag(simultaneous, "simultaneous") else 1
        reach = {alpha: _reach(alpha, confidence, family_size) for alpha in set(self.alphas)}
        return {
            cell: self._around(index, reach[self.alphas[index]])
            for index, cell in enumerate(self.cells)
        }

    def margin(self, dimension: str) -> dict[Any, int]:
        """Return the totals by one column, summed over every other column."""
        if not isinstance(dimension, str) or dimension not in self.dimensions:
            columns = ", ".join(self.dimensions) or "none: name them with dimensions=[…]"
            raise InvalidInputError(
                f"The table has no column {shortened(dimension)}; it has {columns}."
            )
        axis = self.dimensions.index(dimension)
        sums: dict[Any, int] = {}
        for cell, value in zip(self.cells, self.values, strict=True):
            label = cell[axis] if isinstance(cell, tuple) else cell
            sums[label] = sums.get(label, 0) + value
        return sums

    def sum_interval(
        self, cells: Sequence[Cell] | None = None, confidence: Number = 0.95
    ) -> Interval:
        """Return a confidence interval for the sum of some cells, by default all."""
        chosen = self.cells if cells is None else listed(cells, "cells")
        indices = [self._index(cell) for cell in chosen]
        if not indices or len(set(indices)) < len(indices):
            raise InvalidInputError("A sum needs at least one cell, each given once.")
        centre = sum(self.noisy[index] for index in indices)
        reach = sum_quantile([self.alphas[index] for index in indices], confidence)
        return self._clip(centre - reach, centre + reach)

    def explain(self) -> str:
        """Return what the table protects, in a few sentences."""
        rows = "row" if self.at_most == 1 and self.limit != "kept" else "rows"
        changed = f"{_MEANING[self.adjacency]} one person's {rows}"
        if self.adjacency == "replace" and float_up(self.dp_epsilon) < self.epsilon:
            level = f"epsilon = {self.epsilon:.6g} for each person under the beliefs given; for"
            changed = f"{changed} alone it is {float_up(self.dp_epsilon):.6g}"
        else:
            level = f"epsilon = {self.epsilon:.6g} for"
        total = "" if self.total is None else f" The total {self.total} is public."
        return f"{level} {changed} ({self._moved()}). {self._one_person()}{total}"

    def _moved(self) -> str:
        """Return the sensitivity to one person in words."""
        if len(self.cells) == 1:
            return f"the count moves by {_up_to(self.at_most)}"
        if self.at_most == 1:
            return "two cells move by 1" if self.adjacency == "replace" else "one cell moves by 1"
        times = 2 if self.adjacency == "replace" else 1
        return f"cells move by {_up_to(times * self.at_most)} together"

    def _one_person(self) -> str:
        """Return in words how many rows one person has, and how that is known."""
        if self.limit == "assumed":
            return "Each row is assumed to be a different person: not checked."
        if self.limit == "declared":
            rows = "one row" if self.at_most == 1 else f"{self.at_most} rows"
            return f"Each person has at most {rows}: declared, not checked."
        who = "Each person" if self.subject is None else f"Each {self.subject!r}"
        if self.at_most > 1:
            counts = f"at most {self.at_most} times, by the first of their rows"
        elif len(self.cells) == 1:
            counts = "at most once, by the first of their rows"
        else:
            counts = f"in at most one of {len(self.cells)} cells, by the first of their rows"
        return f"{who} counts {counts}; other rows are left out, and no interval covers them."

    @property
    def usefulness(self) -> Usefulness:
        """Whether the counts are useless, rough or useful, judged from the release alone."""
        return usefulness_of(self)

    def chart(self, confidence: Number = 0.95) -> IntervalChart:
        """Return the counts with their intervals, as a chart."""
        return table_chart(self, confidence)

    def report(self, path: str | Path, confidence: Number = 0.95) -> None:
        """Write a self-contained page to forward: counts, a chart, what they protect."""
        files.write(files.as_path(path), table_page(self, confidence))

    def records(self) -> list[dict[str, Any]]:
        """Return a row per cell: its label, its count and its 0.95 interval."""
        cells = zip(self.cells, self.values, self.intervals().values(), strict=True)
        return [{"cell": cell, "value": value, **ends._asdict()} for cell, value, ends in cells]

    def body(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        body = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        return {**body, "cells": [_json_cell(cell) for cell in self.cells]}

    @classmethod
    def from_json(cls, text: str | bytes) -> CountTable:
        """Read a table back from `to_json`."""
        body = files.load(text, "count-table", (1,))
        values = {field.name: body[field.name] for field in fields(cls) if field.name in body}
        return cls(
            **values
            | {name: tuple(body[name]) for name in ("values", "noisy", "dimensions")}
            | {
                "cells": tuple(
                    tuple(cell) if isinstance(cell, list) else cell for cell in body["cells"]
                ),
                "alphas": tuple(parse_stored_fraction(alpha, "alpha") for alpha in body["alphas"]),
                "dp_epsilon": parse_stored_fraction(body["dp_epsilon"], "dp_epsilon"),
            }
        )

    def _index(self, cell: Cell) -> int:
        try:
            return self._positions[cell]
        except (KeyError, TypeError):  # TypeError: lists and arrays are not hashable
            raise InvalidInputError(f"The table has no cell {shortened(cell)}.") from None

    @cached_property
    def _positions(self) -> dict[Cell, int]:
        return {cell: position for position, cell in enumerate(self.cells)}

    def _around(self, index: int, reach: int) -> Interval:
        return self._clip(self.noisy[index] - reach, self.noisy[index] + reach)

    def _clip(self, low: int, high: int) -> Interval:
        most = self.total if self.people is None else self.people * self.at_most
        top = high if most is None else min(high, most)
        return Interval(max(0, min(low, top)), max(0, top))


def release_table(
    counts: Mapping[Any, int],
    epsilon: Number | None = None,
    alpha: Number | None = None,
    adjacency: Adjacency = "replace",
    total: int | None = None,
    dimensions: Sequence[str] = (),
    beliefs: Any = None,
    where: Sequence[str] = (),
    people: int | None = None,
    at_most: int | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    key: str | None = None,
    analyst: str | None = None,
) -> CountTable:
    """Release disjoint counts together.

    Args:
        counts: from cells to integers ≥ 0; those of `limited_counts` carry their own limit of rows
            per person.
        epsilon: the privacy loss of the whole table.
        alpha: instead, each cell's noise ratio.
        adjacency: "replace" one person's row, or "add-remove" one.
        total: the number of people, if it is public and every person is in some cell. It is not
            verified, because an error would leak the sum without a debit.
        dimensions: the names of the columns that make up a label.
        beliefs: for people who depend on each other; needs adjacency "replace".
        where: describes which rows were counted, so that an idempotency key is bound to them.
        people: the number of people the beliefs are about, if not all are in a cell.
        at_most: the number of rows that one person may have; without it each row is assumed to be a
            different person.
        ledger: debited the table's `dp_epsilon` before anything is drawn.
        dataset: the ledger's name of the data.
        key: the idempotency key of the release.
        analyst: for whom it is.

    Raises:
        InvalidInputError: if counts are not integers ≥ 0, there is no level, `total` is not an
            integer ≥ 0 or goes with several rows per person, or beliefs are about fewer people than
            were counted.
        NotPrivateError: at α = 0.

    >>> table = release_table({"f": 520, "m": 480}, epsilon=1, total=1000)
    >>> sum(table.values)
    1000
    >>> table.adjacency
    'replace'

    Theorem: docs/theory/geometric-mechanism.md
    """
    if not isinstance(counts, Mapping):
        raise InvalidInputError(
            f"counts must be a mapping from cells to integers, not {type(counts).__name__}."
        )
    true_counts = {cell: private_integer(n, f"count of {cell!r}") for cell, n in counts.items()}
    total = None if total is None else integer(total, "total", 0)
    rows_each, limit, subject = _limit(counts, at_most)
    _check(true_counts, adjacency, total, rows_each)
    dimensions = _names(dimensions, "dimensions")
    where = _names(where, "where")
    _check_dimensions(true_counts, dimensions)
    if (
        ledger is not None
    ):  # the ledger stores the table as JSON, after the debit: check that it can
        for cell in true_counts:
            _json_cell(cell)
    declared_people = total if people is None else integer(people, "people", 1)
    if total not in (None, declared_people):
        raise InvalidInputError(
            f"total is {total} and people {declared_people}, but with a total everybody is in some "
            "cell; give the same number."
        )
    level = table_level(
        tuple(true_counts), epsilon, alpha, adjacency, beliefs, declared_people, rows_each
    )
    people_believed = None if beliefs is None else declared_people or number_of_people(beliefs)
    law = TwoSidedGeometric.from_alpha(level.alphas[0])

    def draw() -> CountTable:
        noisy = _draw(list(true_counts.values()), law)
        values = project(noisy, total)  # post-processing: costs no privacy
        if people_believed is not None:
            values = tuple(min(value, rows_each * people_believed) for value in values)
        return CountTable(
            cells=tuple(true_counts),
            values=values,
            noisy=noisy,
            alphas=level.alphas,
            epsilon=float_up(level.epsilon),
            dp_epsilon=level.dp_epsilon,
            adjacency=adjacency,
            total=total,
            dimensions=tuple(dimensions),
            at_most=rows_each,
            limit=limit,
            subject=subject,
            people=people_believed,
        )

    def record() -> dict[str, Any]:
        return {
            "mechanism": "geometric table",
            "cells": _digest(tuple(true_counts)),
            "dimensions": list(dimensions),
            "belief_digest": None if beliefs is None else belief_digest(beliefs),
            **({} if people_believed is None else {"length": people_believed}),
            "alphas": sorted({str(ratio) for ratio in level.alphas}),
            "adjacency": adjacency,
            "dp_epsilon": str(level.dp_epsilon),
            **({"where": list(where)} if where else {}),
            **({"total": total} if total is not None else {}),
            **(
                {"at_most": rows_each, "limit": limit, "subject": subject}
                if limit != "assumed"
                else {}
            ),
        }

    payer = as_payer(ledger, dataset, key, analyst)
    if people_believed is not None:
        if payer is not None:
            payer.check(record())  # before the counts influence any error
        if sum(true_counts.values()) > rows_each * people_believed:
            raise InvalidInputError(
                "The table counts more people than the beliefs are about. Give the public number "
                "of people as people=…."
            )
    return pay_and_store(payer, record, draw, CountTable.to_json, CountTable.from_json)


def _limit(counts: Mapping[Any, int], at_most: int | None) -> tuple[int, Limit, str | None]:
    """Return the largest number of rows per person, how it is known, and by which column."""
    if isinstance(counts, LimitedCounts):
        if at_most is not None:
            raise InvalidInputError(
                f"These counts are already limited to {counts.at_most} rows per person; leave out "
                "at_most."
            )
        return counts.at_most, "kept", counts.subject
    if at_most is None:
        return 1, "assumed", None
    return integer(at_most, "at_most", 1), "declared", None


def _up_to(rows: int) -> str:
    return "1" if rows == 1 else f"at most {rows}"


def _digest(values: tuple[Any, ...]) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()


def _reach(alpha: Fraction, confidence: Number, together: int) -> int:
    return TwoSidedGeometric.from_alpha(alpha).simultaneous_quantile(confidence, together)


def _check(true_counts: Mapping[Any, int], adjacency: str, total: int | None, at_most: int) -> None:
    if not true_counts:
        raise InvalidInputError("The table has no cells; give at least one count.")
    choice(adjacency, tuple(_MEANING), "adjacency")
    if max(*true_counts.values(), total or 0, 0) > _MOST_PEOPLE:
        raise InvalidInputError(
            "A count or total has more than 300 digits, which is not supported."
        )
    if total is None:
        return
    if at_most > 1:
        raise InvalidInputError(
            "A total is the number of people, each counted once; leave it out if a person may have "
            "several rows."
        )
    if adjacency == "add-remove":
        raise InvalidInputError(
            "Under add-remove the number of people is protected itself: leave out total, or use "
            "adjacency='replace'."
        )


def _names(texts: Any, name: str) -> tuple[str, ...]:
    return tuple(instance(text, str, f"Each of {name}") for text in listed(texts, name))


def _check_dimensions(cells: Iterable[Any], dimensions: Sequence[str]) -> None:
    """Refuse dimensions that do not match the cells' labels."""
    if len(set(dimensions)) < len(dimensions):
        raise InvalidInputError(
            f"dimensions must name each column once, not {', '.join(dimensions)}."
        )
    for cell in cells if dimensions else ():
        labels = len(cell) if isinstance(cell, tuple) else 1
        if labels != len(dimensions):
            raise InvalidInputError(
                f"Cell {cell!r} has {labels} labels and there are {len(dimensions)} dimensions: "
                f"{', '.join(dimensions)}."
            )


def _json_cell(cell: Cell) -> Any:
    """Return a cell as JSON: one label, or a list of labels."""
    if isinstance(cell, tuple):
        return [_json_label(label, cell) for label in cell]
    return _json_label(cell, cell)


def _json_label(label: Any, cell: Cell) -> Any:
    if type(label).__module__ == "numpy" and getattr(label, "ndim", 1) == 0:
        label = label.item()
    if label is None or isinstance(label, (str, int)):
        return label
    if isinstance(label, float) and math.isfinite(label):
        return label
    raise InvalidInputError(
        f"Cell {cell!r} has the label {label!r}, which cannot be written to a file or a ledger; "
        "use text or numbers as labels."
    )


def _draw(counts: list[int], law: TwoSidedGeometric) -> tuple[int, ...]:
    """Add one draw of noise to each count.

    Many are drawn in one call; a few one by one, so that a small table does not import NumPy.
    """
    many = len(counts) > _FEW_CELLS
    drawn = law.draw(len(counts)).tolist() if many else [law.draw_one() for _ in counts]
    return tuple(count + noise for count, noise in zip(counts, drawn, strict=True))


def usefulness_of(counts: CountTable) -> Usefulness:
    """Judge a table's usefulness from its released numbers alone."""
    error = max(
        TwoSidedGeometric.from_alpha(alpha).expected_absolute for alpha in set(counts.alphas)
    )
    largest = max(counts.values)
    usefulness = judge(error, largest, f"the largest count, {largest:,}")
    near_zero = sum(ends.low == 0 for ends in counts.intervals(simultaneous=True).values())
    return usefulness.with_lost_cells(near_zero, len(counts.cells), "count")


def table_chart(counts: CountTable, confidence: Number = 0.95) -> IntervalChart:
    """Return every count with its interval; for very many cells, the largest only."""
    ends = counts.intervals(confidence)
    cells = list(zip(counts.cells, counts.values, strict=True))
    if len(cells) > _MOST_BARS:
        cells = sorted(cells, key=lambda pair: -pair[1])[:_MOST_BARS]
    share = 100 * float(to_fraction(confidence, "confidence"))
    selection = "" if len(cells) == len(counts.cells) else f", the {_MOST_BARS} largest"
    return IntervalChart(
        f"{title_of(counts)}{selection} (ε = {counts.epsilon:g}, {share:g} % intervals)",
        f"Released counts; the true one lies within each interval with {share:g} % confidence.",
        "rows counted",
        tuple(Estimate(cell_name(cell), value, *ends[cell]) for cell, value in cells),
    )


def table_page(counts: CountTable, confidence: Number = 0.95) -> str:
    """Return a self-contained HTML page about a table of counts."""
    usefulness, share = usefulness_of(counts), 100 * float(to_fraction(confidence, "confidence"))
    each, all_at_once = (counts.intervals(confidence, simultaneous=flag) for flag in (False, True))
    rows = [
        (cell_name(cell), value, *each[cell], *all_at_once[cell])
        for cell, value in zip(counts.cells, counts.values, strict=True)
    ]
    header = [", ".join(counts.dimensions), "count", f"{share:g} % from", "to"]
    numbers = table(
        f"Released counts, with {share:g} % intervals", [*header, "all at once from", "to"], rows
    )
    change = "added or removed" if counts.adjacency == "add-remove" else "replaced"
    summary = {
        "privacy level": f"ε = {counts.epsilon:g}",
        "protected": f"each person: all rows {change}",
        "rows of one person": f"at most {counts.at_most} ({counts.limit})",
        "cells": f"{len(counts.cells):,}",
    }
    parts = [
        note(
            f"{usefulness.verdict.capitalize()}.",
            usefulness.reason[:1].upper() + usefulness.reason[1:],
        ),
        figure(table_chart(counts, confidence)),
        numbers if len(rows) <= _MOST_ROWS else folded(f"All {len(rows):,} counts", numbers),
        facts(summary),
    ]
    sentences = [f"{flag.strip().rstrip('.')}." for flag in counts.explain().split(". ")]
    return page(
        title_of(counts),
        "Private counts, with noise that hides each person.",
        [
            section("The counts", *parts, anchor="counts"),
            section("What they protect", bullets(sentences), anchor="protects"),
        ],
    )


def title_of(counts: CountTable) -> str:
    """Return the title: what was counted."""
    return f"Counts by {', '.join(counts.dimensions)}" if counts.dimensions else "Counts"


def cell_name(cell: Any) -> str:
    """Return the label of a cell as text; a cell without labels holds all rows."""
    return (", ".join(map(str, cell)) or "all") if isinstance(cell, tuple) else str(cell)
