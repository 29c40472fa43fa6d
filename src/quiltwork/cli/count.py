"""`quiltwork count`: release private counts from a file, or of a number."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    command,
    confidence_option,
    delimiter_option,
    encoding_option,
    level_number,
    option,
    option_group,
    split_list,
)
from quiltwork.cli.output import Targets, interval_table
from quiltwork.cli.paying import (
    TypedLedger,
    telling_what_is_left,
)
from quiltwork.cli.series_options import read_beliefs
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.exact import float_up

if TYPE_CHECKING:
    from quiltwork.cli.tabulate import Condition, Contributor
    from quiltwork.counts import CountTable


@command(
    example="""
    quiltwork count people.csv --by sex --categories f,m --epsilon 1
    quiltwork count people.csv --by sex --by town --epsilon 1 \\
        --categories sex=f,m --categories town=@towns.txt
    quiltwork count people.csv --where "age>=65" --where town=Ghent --epsilon 0.5
    quiltwork count visits.csv --by ward --categories a,b --epsilon 1 \\
        --subject patient --max-rows 3
    quiltwork count people.csv --by sex --categories f,m --epsilon 1 --report page.html
    quiltwork count --value 42 --n 100 --epsilon 1
    quiltwork count people.csv --where vote=yes --epsilon 1 --adjacency replace \\
        --belief households.json
    quiltwork count people.csv --by sex --categories f,m --epsilon 1 \\
        --ledger sqlite:///budget.db --dataset survey --key 2026-05
    """
)
def count(
    file: str | None = argument(),
    by: tuple[str, ...] = option("Count by this column; repeatable, or a,b for several.", "COLUMN"),
    where: tuple[str, ...] = option(
        "Count only rows with column=value, column!=value, or column>=number (also >, <, <=); "
        "repeated conditions must all hold.",
        "CONDITION",
    ),
    categories: tuple[str, ...] = option(
        "The public categories of a --by column: a,b,c or @FILE with one per line; with several "
        "columns, COLUMN=a,b,c.",
        "LIST",
    ),
    categories_from_data: bool = option(
        "Take the categories that occur in the file. Not private: it publishes that a rare "
        "category occurs at all."
    ),
    subject: str | None = option(
        "The column that identifies people: of each, only the first --max-rows rows count (1 "
        "by default).",
        "COLUMN",
    ),
    at_most: int | None = option(
        "The largest number of rows counted per person; the noise grows with it. Without --subject "
        "you declare that nobody has more.",
        "NUMBER",
        click.IntRange(min=1),
        names="--max-rows",
    ),
    delimiter: str | None = delimiter_option,
    encoding: str | None = encoding_option,
    value: int | None = option("Release this count instead of counting rows of a file."),
    n: int | None = option("With --value: the public number of people."),
    epsilon: Fraction | None = option(
        "The privacy level, for example 1 or 0.1.", kind=level_number
    ),
    alpha: Fraction | None = option(
        "Instead of --epsilon: the level of every single count, as alpha = e^-epsilon."
    ),
    adjacency: Literal["add-remove", "replace"] = option(
        "What is hidden about one person: whether they are in the file (add-remove), or what their "
        "row says (replace), which doubles a table's noise.",
        kind=("add-remove", "replace"),
        default="add-remove",
    ),
    total: int | None = option(
        "The number of rows, if it is public and every row is in a cell: released counts are "
        "adjusted to add up to it. It is compared with the file only under --belief, where the "
        "people are known. Needs --adjacency replace."
    ),
    beliefs: tuple[str, ...] = option(
        "How people depend on each other, such as households: epsilon then bounds the leakage "
        "about each person under this belief. Needs --adjacency replace, or --value.",
        "FILE",
        names="--belief",
    ),
    preview: bool = option("Show the expected error; FILE is not opened and nothing is debited."),
    payer: TypedLedger = option_group(TypedLedger),
    confidence: Fraction = confidence_option("The confidence of the intervals."),
    to: Targets = option_group(Targets),
) -> None:
    """Release private counts with their intervals.

    FILE is CSV with a header (.gz is read too, - is standard input), Parquet, Arrow or a folder of
    such files. Every count gets exact two-sided geometric noise. The whole table costs epsilon for
    one person added or removed. Each row is assumed to be a different person; if people have
    several rows, name the column that identifies them with --subject. Rows with undeclared
    categories are not counted. With --ledger the cost is debited, durably, before any noise is
    drawn.
    """
    to.check()
    if value is not None:
        table_options = (
            file,
            by,
            where,
            categories,
            categories_from_data,
            subject,
            preview,
            at_most,
        )
        if any((*table_options, delimiter, encoding, to.report, to.plot)) or total is not None:
            raise click.UsageError(
                "--value releases a number: leave out FILE, --by and other options of tables"
            )
        _release_number(value, n, epsilon, alpha, beliefs, confidence, payer, to)
        return
    if file is None:
        raise click.UsageError("Give a CSV file, or a number with --value and --n")
    if epsilon is None and alpha is None:
        raise click.UsageError("Give the privacy level with --epsilon, for example --epsilon 1")
    if n is not None:
        raise click.UsageError("--n goes with --value")
    from quiltwork.cli.tabulate import Contributor, cells_of, read_categories, read_condition
    from quiltwork.counts import release_table
    from quiltwork.counts.contributors import LimitedCounts

    by = tuple(column for text in by for column in split_list(text))
    if len(set(by)) < len(by):
        raise click.UsageError("A column is named twice with --by: name each once")
    conditions = [read_condition(text) for text in where]
    limit = None if subject is None else Contributor(subject, at_most or 1)
    dialect = DialectOptions(delimiter, encoding=encoding, by_rows=False)
    released = partial(
        release_table,
        epsilon=epsilon,
        alpha=alpha,
        adjacency=adjacency,
        total=total,
        beliefs=read_beliefs(beliefs) if beliefs else None,
        at_most=at_most if limit is None else None,
        dimensions=by,
        where=where,
    )

    def limited(counts: dict[object, int]) -> Any:
        return counts if limit is None else LimitedCounts(counts, limit.at_most, limit.column)

    if preview:
        if categories_from_data or to.report or to.plot:
            raise click.UsageError("--preview goes with --categories, and makes no page or chart")
        # Drawn from zero counts: no row is read, so nothing is revealed.
        empty = dict.fromkeys(map(_cell, cells_of(read_categories(categories, by))), 0)
        _show_errors(released(limited(empty)), confidence, to)
        return
    if payment := payer.open():
        from quiltwork.series.registration import refuse_unregistered

        written = {"delimiter": delimiter, "encoding": encoding}
        refuse_unregistered(payment["ledger"], payment["dataset"], file, "", written)
    counts, people = _cells(file, by, conditions, categories, categories_from_data, limit, dialect)
    with telling_what_is_left(payment):
        table = released(limited(counts), people=people if beliefs else None, **payment)
        show_table(table, where, confidence, to)


def _show_errors(table: CountTable, confidence: Fraction, to: Targets) -> None:
    """Show the expected error of a table, drawn here from zero counts."""
    from quiltwork.noise import TwoSidedGeometric

    law = TwoSidedGeometric.from_alpha(table.alphas[0])
    half_width, half_width_all = (
        law.simultaneous_quantile(confidence, n) for n in (1, len(table.cells))
    )
    error = law.expected_absolute
    body = {
        "cells": len(table.cells),
        "epsilon": table.epsilon,
        "expected_error": error,
        "half_width": half_width,
        "simultaneous_half_width": half_width_all,
        "protects": table.explain(),
    }
    lines = [
        f"The mean absolute error of each of {len(table.cells):,} counts is {error:.4g}; "
        f"{float(100 * confidence):g} % intervals are ±{half_width}, simultaneous ones "
        f"±{half_width_all}.",
        f"Useful if the largest count is above {10 * error:.4g}, rough down to {error:.4g}, "
        f"useless below. Judged together, counts up to {half_width_all} cannot be distinguished "
        "from 0.",
        table.explain(),
    ]
    to.deliver(files.dump("counts-preview", 1, body), lines)


def _cells(
    file: str,
    by: tuple[str, ...],
    conditions: list[Condition],
    categories: tuple[str, ...],
    from_data: bool,
    limit: Contributor | None,
    given: DialectOptions,
) -> tuple[dict[object, int], int]:
    """Count the declared cells, text for one column and tuples for more, and all people."""
    from quiltwork.cli import tabulate

    if from_data and categories:
        raise click.UsageError("Give --categories or --categories-from-data, not both")
    if (from_data or categories) and not by:
        raise click.UsageError("Categories belong to a column: name it with --by")
    # Declared before the file is opened, so that rows cannot influence the cells.
    declared = None if from_data else tabulate.read_categories(categories, by)
    public_cells = None if declared is None else tabulate.cells_of(declared)
    tallied, people = tabulate.tally(file, by, conditions, limit, public_cells, given)
    if declared is None:
        declared = tabulate.observed_categories(tallied, len(by))
        if not all(declared):
            raise InvalidInputError("No row matches, so there are no categories to take from it.")
        warnings.warn(
            "The categories were taken from the data, so it is published without protection that a "
            "rare category occurs at all. Declare the public list with --categories.",
            QuiltworkWarning,
            stacklevel=1,
        )
    return {_cell(label): tallied[label] for label in tabulate.cells_of(declared)}, people


def _cell(label: tuple[str, ...]) -> object:
    """Return a public cell: text for one column, a tuple for more."""
    return label[0] if len(label) == 1 else label


def show_table(
    table: CountTable, where: tuple[str, ...], confidence: Fraction, to: Targets
) -> None:
    """Print a table with its intervals; `where` are the conditions, for a single cell."""
    intervals = list(table.intervals(confidence).values())
    simultaneous = list(table.intervals(confidence, simultaneous=True).values())
    body = {
        "table": json.loads(table.to_json()),
        "where": list(where),
        "confidence": str(confidence),
        "intervals": intervals,
        "simultaneous": simultaneous,
        "protects": table.explain(),
        **table.usefulness._asdict(),
    }

    def labels(cell: object) -> tuple[object, ...]:
        """Return a cell's labels, or the conditions if there is one cell for all rows."""
        label = cell if isinstance(cell, tuple) else (cell,)
        return label or (" and ".join(where) or "all",)

    header = [*(table.dimensions or ["rows"]), "count", f"{float(100 * confidence):g} % interval"]
    rows = [
        [*labels(cell), value, list(interval), list(joint)]
        for cell, value, interval, joint in zip(
            table.cells, table.values, intervals, simultaneous, strict=True
        )
    ]
    lines = interval_table(header, rows)
    notes = ["", table.explain(), str(table.usefulness)]
    to.deliver(files.dump("counts", 1, body), [*lines, *notes], table, confidence)


def _release_number(
    value: int,
    n: int | None,
    epsilon: Fraction | None,
    alpha: Fraction | None,
    beliefs: tuple[str, ...],
    confidence: Fraction,
    payer: TypedLedger,
    to: Targets,
) -> None:
    from quiltwork.counts import GeometricMechanism

    if n is None:
        raise click.UsageError("With --value, give the public number of people with --n")
    believed = read_beliefs(beliefs) if beliefs else None
    mechanism = GeometricMechanism(n, alpha=alpha, epsilon=epsilon, beliefs=believed)
    with telling_what_is_left(paid := payer.open()):
        released = mechanism.release(value, **paid)
    low, high = mechanism.interval(released, confidence)
    body = {
        "value": released,
        "n": n,
        "epsilon": str(mechanism.epsilon),
        "dp_epsilon": str(mechanism.dp_epsilon),
        "alpha": str(mechanism.alpha),
        "confidence": str(confidence),
        "interval": [low, high],
    }
    level, plain_level = (
        float_up(exact_level or Fraction(0))
        for exact_level in (mechanism.epsilon, mechanism.dp_epsilon)
    )
    protected = "one person added, removed or replaced"
    if beliefs:
        protected = (
            f"each person under the beliefs given; for {protected} alone it is {plain_level:.6g}"
        )
    assumption = "Each person is assumed to change the count by at most 1: not checked."
    lines = [
        f"count of {n}: {released}, {float(100 * confidence):g} % interval [{low}, {high}]",
        f"epsilon = {level:.6g} for {protected}. {assumption}",
    ]
    to.deliver(files.dump("count", 1, body), lines)
