"""`quiltwork remap`: read released counts with a consumer's prior and loss."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import argument, command, confidence_option, option
from quiltwork.cli.output import as_json, check_targets, emit, progress, text_table
from quiltwork.cli.tabulate import header_of
from quiltwork.delimited import column_position, csv_text, rows_of_width, with_csv
from quiltwork.errors import InvalidInputError, QuiltworkWarning
from quiltwork.exact import integer, parse_fraction, parse_stored_fraction

if TYPE_CHECKING:
    from quiltwork.counts.consumers.gains import Gain
    from quiltwork.counts.remaps.remap import Remap

_PRIORS = "uniform, binomial:P, poisson:MEAN, earlier:VALUE:EPSILON, chain:FILE:STATE or a file"


def parse_prior(text: str, n: int) -> Any:
    """Parse a prior: `binomial:0.1`, `chain:belief.json:walk`, a file name, …"""
    kind, _, rest = text.partition(":")
    if text == "uniform":
        return text
    if kind in ("binomial", "poisson"):
        from quiltwork.counts.consumers.consumer import prior_of_kind

        return prior_of_kind(kind, _number(rest, text), n)
    if kind == "earlier":
        return _earlier(rest, text)
    if kind == "chain":
        return _chain(rest, text)
    return [cell for row in _numbers(text, _PRIORS) for cell in row]


def parse_loss_option(text: str) -> Any:
    """Parse a loss: its name, or a file with a matrix."""
    from quiltwork.counts.consumers.loss_functions import parse_loss

    if text.partition(":")[0] in ("absolute", "squared", "binary", "power", "asymmetric"):
        return parse_loss(text)
    return parse_loss(
        _numbers(text, "absolute, squared, binary, power:Q, asymmetric:UNDER:OVER or a file")
    )


def _earlier(rest: str, text: str) -> Any:
    from quiltwork.counts.alpha_levels import alpha_for_epsilon
    from quiltwork.counts.consumers.consumer import EarlierRelease

    value, _, epsilon = rest.partition(":")
    released = _number(value, text)
    if released.denominator != 1:
        raise InvalidInputError(
            f"{value!r} in {text!r} is not a released count, which must be an integer."
        )
    return EarlierRelease(int(released), alpha_for_epsilon(_number(epsilon, text)))


def _chain(rest: str, text: str) -> Any:
    from quiltwork.beliefs import MarkovChain
    from quiltwork.counts.consumers.consumer import ChainCounts

    path, _, state = rest.rpartition(":")
    if not path:
        raise InvalidInputError(f"Cannot read the prior {text!r}; write chain:FILE:STATE.")
    chain = MarkovChain.from_json(files.read_text(path))
    named = {str(label): label for label in chain.states}
    if state not in named:
        raise InvalidInputError(f"The chain has no state {state!r}; it has {', '.join(named)}.")
    return ChainCounts(chain, named[state])


def _numbers(path: str, alternatives: str) -> list[list[Fraction]]:
    """Read a file of numbers: JSON lists, or comma-separated lines with an optional header."""
    if not Path(path).exists():
        raise InvalidInputError(f"{path!r} is neither a file nor one of: {alternatives}.")
    text = files.read_text(path)
    rows = _json_rows(text, path) if text.lstrip()[:1] in ("[", "{") else _csv_rows(text)
    numbers = [[_number(cell, path) for cell in row] for row in rows]
    if not any(numbers):
        raise InvalidInputError(f"{path!r} contains no numbers.")
    return numbers


def _json_rows(text: str, path: str) -> list[list[str]]:
    try:
        document = files.parse(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path!r}: {error}") from None
    rows = (
        document
        if isinstance(document, list) and any(isinstance(row, list) for row in document)
        else [document]
    )
    if not all(isinstance(row, list) for row in rows):
        raise InvalidInputError(
            f"{path!r} must contain a JSON list of numbers, or a list of such lists."
        )
    return [[str(cell) for cell in row] for row in rows]


def _csv_rows(text: str) -> list[list[str]]:
    """Split lines at commas; a first line without any number is a header and is skipped."""
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    if rows and all(parse_fraction(cell) is None for cell in rows[0]):
        rows = rows[1:]
    return rows


def _number(text: str, where: str) -> Fraction:
    number = parse_fraction(text)
    if number is None:
        raise InvalidInputError(f"{text!r} in {where!r} is not a number such as 1, 0.5 or 1/3.")
    return number


_MOST_SHOWN = 40


@command(
    example="""
    quiltwork remap --n 100 --epsilon 0.5 --prior binomial:0.1 --value 14 --value 0
    quiltwork remap --n 5 --alpha 1/2 --prior prior.csv --loss power:3/2 --plot heat.png
    quiltwork remap released.csv --column count --n 1000 --epsilon 1 \\
        --prior poisson:30 --loss asymmetric:3:1 --output read.csv
    quiltwork remap counts.json --n 1000 --prior poisson:30
    """
)
def remap(
    file: str | None = argument(),
    column: str | None = option("The column of released counts in a CSV file.", "NAME"),
    values: tuple[int, ...] = option("A released count; repeatable.", names="--value"),
    n: int | None = option("The number of people: counts lie in 0..n."),
    epsilon: Fraction | None = option("The privacy level of one count."),
    alpha: Fraction | None = option("Instead of --epsilon: the level as alpha = e^-epsilon."),
    prior: str = option(
        "uniform, binomial:P, poisson:MEAN, earlier:VALUE:EPSILON (an earlier release of the same "
        "count), chain:FILE:STATE (visits of a belief's chain), or a file with n + 1 "
        "probabilities.",
        "PRIOR",
        default="uniform",
    ),
    loss: str = option(
        "absolute, squared, binary, power:Q, asymmetric:UNDER:OVER, or a file with a matrix.",
        "LOSS",
        default="absolute",
    ),
    confidence: Fraction = confidence_option(
        "The confidence of the intervals, which depend on the prior."
    ),
    output: str | None = option(
        "With FILE: write its rows with the remapped counts.", "FILE", names="-o --output"
    ),
    plot: str | None = option("Draw the mechanism before and after the remap.", "FILE"),
) -> None:
    """Read released counts as one consumer should.

    The same release serves everybody; each consumer reads it with its own prior and loss, which
    costs no privacy. For monotone losses no other mechanism of the same level is better for this
    consumer. FILE is the output of `quiltwork count -o`, which states its level, or CSV with a
    header and --column (.gz is read too, - is standard input).
    """
    if file is None and column is not None:
        raise click.UsageError(
            "--column names a column of FILE: give the file that contains the counts"
        )
    if output is not None and file is None:
        raise click.UsageError("--output writes the rows of FILE: give FILE")
    from quiltwork.counts import Consumer, GeometricMechanism
    from quiltwork.counts.consumers.gains import consumer_gain
    from quiltwork.report.figures import write_figure

    check_targets(output, None, plot, [] if file is None else [file])
    table = None
    if file is not None:
        table = _written_counts(file) if column is None else _released(file, column)
    if table is not None and table.alpha is not None:
        if not epsilon is alpha is None:
            raise click.UsageError(
                "FILE states the noise of its counts: leave out --epsilon and --alpha"
            )
        n, alpha = table.people if n is None else n, table.alpha
    if n is None:
        raise click.UsageError("Give the number of people with --n, the largest possible count")
    mechanism = GeometricMechanism(n, alpha=alpha, epsilon=epsilon)
    consumer = Consumer(parse_prior(prior, n), parse_loss_option(loss))
    new_columns = [] if output is None or table is None else _names(table.header, column or "count")
    with progress(1, "Remapping") as bar:
        gain = consumer_gain(mechanism, consumer)
        bar.update(1)
    counts = [] if table is None else table.counts
    readings = _readings(gain.remap, [*values, *counts], confidence)
    charts = () if plot is None else gain.remap.charts()  # refuses before anything is written
    if output is not None and table is not None:
        pairs = zip(table.rows, readings[len(values) :], strict=True)
        lines = [[*row, *reading[1:]] for row, reading in pairs]
        files.write(output, csv_text([[*table.header, *new_columns], *lines]))
    if plot is not None:
        write_figure(plot, *charts)
    document = _document(gain, readings, confidence) if as_json() else ""
    emit(document, _lines(gain, readings, confidence, plot, output, table))


def _readings(
    remap: Remap, released: list[int], confidence: Fraction
) -> list[tuple[int, int, int, int]]:
    """Return (released, remapped, low, high) for every count."""
    if not released:
        return []
    import numpy as np

    counts = np.array(released)
    remapped = remap(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuiltworkWarning)  # the readings have warned already
        low, high = remap.interval(counts, confidence)
    columns = (released, remapped.tolist(), low.tolist(), high.tolist())
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class ReleasedColumn:
    """A file with a column of released counts: its header, its rows, and the counts.

    The output of `quiltwork count` also has the noise ratio of each count, and the number of people
    if it is known.
    """

    header: list[str]
    rows: list[list[str]]
    counts: list[int]
    alpha: Fraction | None = None
    people: int | None = None


def _written_counts(path: str) -> ReleasedColumn:
    """Read the output of `quiltwork count -o`: the noisy counts, before post-processing."""
    from quiltwork.counts import CountTable

    text = files.read_bytes(path)
    if not text.lstrip().startswith(b"{"):
        raise click.UsageError("Name the column of FILE that holds the counts, with --column")
    try:
        if files.parse(text).get("schema") == "quiltwork/count":
            body = files.load(text, "count", (1,))
            counts, people = [integer(body["value"], "value", 0)], integer(body["n"], "n", 1)
            alpha = parse_stored_fraction(body["alpha"], "alpha")
            return ReleasedColumn(["count"], [[str(counts[0])]], counts, alpha, people)
        table = CountTable.from_json(json.dumps(files.load(text, "counts", (1,))["table"]))
        counts = [integer(cell, "A count", -(2**62), 2**62) for cell in table.noisy]
        (alpha,) = set(table.alphas)
        cells = [cell if isinstance(cell, tuple) else (cell,) for cell in table.cells]
        header = [*map(str, table.dimensions or ("cell",) * len(cells[0])), "count"]
        rows = [[*map(str, labels), str(n)] for labels, n in zip(cells, counts, strict=True)]
        if any(len(row) != len(header) for row in rows):
            raise ValueError
    except (LookupError, TypeError, ValueError):
        raise InvalidInputError(
            f"{path!r} is not the output of `quiltwork count -o`; for a CSV file, name the column "
            "with --column."
        ) from None
    return ReleasedColumn(header, rows, counts, alpha, table.people or table.total)


def _released(path: str, column: str) -> ReleasedColumn:
    def read(reader: Iterator[list[str]]) -> ReleasedColumn:
        header = header_of(reader, path)
        position = column_position(header, column, path)
        released = ReleasedColumn(header, [], [])
        for row in rows_of_width(reader, len(header), path):
            count = _count(row[position])
            if count is None:
                raise InvalidInputError(
                    f"Row {len(released.rows) + 1} of column {column!r} in {path!r} is not a "
                    "released count, which must be an integer."
                )
            released.counts.append(count)
            released.rows.append(row)
        return released

    return with_csv(path, read)


def _count(text: str) -> int | None:
    """Parse an integer; None for other text, and for Python's underscores."""
    try:
        return None if "_" in text else int(text)
    except ValueError:
        return None


def _names(header: list[str], column: str) -> list[str]:
    """Return the names of the columns to add."""
    names = [f"{column}_{part}" for part in ("remapped", "low", "high")]
    taken = [name for name in names if name in header]
    if taken:
        raise InvalidInputError(
            f"The file already has a column {taken[0]!r}, which the output would overwrite; rename "
            "it first."
        )
    return names


def _document(gain: Gain, readings: list[tuple[int, int, int, int]], confidence: Fraction) -> str:
    best = gain.made_for_it
    body: dict[str, Any] = {
        "remap": json.loads(gain.remap.to_json()),
        "prior_loss": gain.prior_loss,
        "saved": gain.saved,
        "equivalent_epsilon": gain.equivalent_epsilon,
        "made_for_it": best
        and {"expected_loss": float(best.expected_loss), "gap": float(best.gap)},
        "confidence": str(confidence),
        "readings": [
            {"released": r, "remapped": m, "low": low, "high": high} for r, m, low, high in readings
        ],
    }
    return files.dump("remapped", 1, body)


def _lines(
    gain: Gain,
    readings: list[tuple[int, int, int, int]],
    confidence: Fraction,
    plot: str | None,
    output: str | None,
    table: ReleasedColumn | None,
) -> Iterator[str]:
    header, rows = ["released", "remapped"], _runs(gain.remap)
    if readings:
        header.append(f"{float(100 * confidence):g} % interval")
        rows = [(r, m, f"[{low}, {high}]") for r, m, low, high in readings]
    if table is not None and table.alpha is not None:
        names = [row[:-1] for row in table.rows]
        names = [[""] * len(names[0])] * (len(rows) - len(names)) + names
        header = [*table.header[:-1], *header]
        rows = [(*name, *row) for name, row in zip(names, rows, strict=True)]
    yield from text_table(header, rows[:_MOST_SHOWN])
    if len(rows) > _MOST_SHOWN:
        yield f"… {len(rows) - _MOST_SHOWN} more"
    yield ""
    yield from gain.explain().splitlines()
    yield from (f"wrote {Path(path)}" for path in (output, plot) if path is not None)


def _runs(remap: Remap) -> list[tuple[object, ...]]:
    """Return the mapping as runs of answers with the same reading."""
    runs: list[tuple[object, ...]] = []
    for answer, group in groupby(enumerate(remap.mapping), key=lambda pair: pair[1]):
        members = [released for released, _ in group]
        span = str(members[0]) if len(members) == 1 else f"{members[0]}..{members[-1]}"
        runs.append((span, "unknown" if answer is None else answer))
    return runs
