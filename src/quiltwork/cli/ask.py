"""`quiltwork ask`: a question to a curator, previewed or answered once for each key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    command,
    confidence_option,
    level_number,
    option,
    option_group,
    split_list,
)
from quiltwork.cli.count import show_table
from quiltwork.cli.output import Targets
from quiltwork.cli.release import check_delivery, released_lines
from quiltwork.cli.series_options import QUERY_HELP, read_query

if TYPE_CHECKING:
    from quiltwork.client import AnswerPreview, Curator, Dataset

TOKEN, ADDRESS = "QUILTWORK_TOKEN", "QUILTWORK_CURATOR"
"""Environment variables with the token, which others could read on a command line, and the URL."""


@command(
    example="""
    quiltwork ask steps --query histogram --epsilon 0.5 --preview
    quiltwork ask steps --query count:walk --window 1:1440 --epsilon 0.5 --key monday
    quiltwork ask survey --by sex --where smoker=yes --epsilon 0.5 -o table.json
    """
)
def ask(
    dataset: str = argument(),
    curator: str = option(f"The curator's address.  [default: {ADDRESS}]", "URL", envvar=ADDRESS),
    question: str = option(QUERY_HELP, "QUERY", names="--query", default="histogram"),
    window: str | None = option("Ask a series about these time points only.", "START:STOP"),
    by: tuple[str, ...] = option(
        "Of people: count by this column; repeatable, or a,b for several.", "COLUMN"
    ),
    where: tuple[str, ...] = option(
        "Of people: count only those whose column has this value; once for a column.",
        "COLUMN=VALUE",
    ),
    epsilon: Fraction = option("The privacy level.", kind=level_number),
    key: str | None = option("Asking again under one key returns the answer.", "TEXT"),
    preview: bool = option("Show the price and the error to expect; nothing is spent."),
    polish: bool = option("Make the numbers of a series possible ones, which costs nothing."),
    confidence: Fraction = confidence_option("Of the intervals."),
    to: Targets = option_group(Targets),
) -> None:
    """Ask a curator about its DATASET.

    The token is in QUILTWORK_TOKEN. The curator debits the dataset's budget first and stores its
    answer: under one key it is answered, and paid, once, whatever happens to the connection.
    """
    asked_of = _opened(curator)
    about = asked_of.dataset(dataset)
    query: Any
    if about.kind == "series":
        if by or where:
            raise click.UsageError(
                "--by and --where are for counts of people, and this is a series"
            )
        query = _series_query(about, question, window)
        check_delivery(query, to, polish)
    else:
        if window or polish or question != "histogram":
            raise click.UsageError(
                "--query, --window and --polish are for series, and these are counts of people"
            )
        query = _table_query(by, where)
        to.check()
    if preview:
        told = asked_of.preview(dataset, query, epsilon)
        to.deliver(files.dump("curator-preview", 1, asdict(told)), preview_lines(told))
        return
    answer = asked_of.ask(dataset, query, epsilon, key).result
    if about.kind == "series":
        from quiltwork.series import possible

        released = possible(answer) if polish else answer
        to.deliver(released.to_json(), released_lines(released, confidence), released, confidence)
    else:
        show_table(answer, where, confidence, to)


def _opened(url: str) -> Curator:
    from quiltwork.client import Curator

    token = os.environ.get(TOKEN, "")
    if not token:
        raise click.UsageError(f"Put your token into the environment variable {TOKEN}")
    return Curator(url, token)


def _series_query(about: Dataset, text: str, window: str | None) -> Any:
    """Read a query about a series in its states."""
    from quiltwork.beliefs.documents import labels_from_json

    states = None if about.states is None else labels_from_json(about.states)
    return read_query(text, states, window)


def _table_query(by: tuple[str, ...], where: tuple[str, ...]) -> dict[str, Any]:
    """Read which people are counted, by what."""
    among = dict(text.split("=", 1) for text in where if "=" in text and text[0] != "=")
    if len(among) < len(where) or any(name[-1] in "!<>" for name in among):
        raise click.UsageError("A curator takes --where COLUMN=VALUE, once for a column")
    columns = [column for text in by for column in split_list(text)]
    return {"kind": "table", "by": columns, "where": {name: [v] for name, v in among.items()}}


def preview_lines(found: AnswerPreview) -> Iterator[str]:
    """Say what an answer would cost and how far off it would be."""
    after = "an unknown total" if found.spent_after is None else f"{found.spent_after:.6g}"
    yield f"From {found.spent_before:.6g} to {after} of {found.budget:.6g}."
    yield f"A cell ({found.cells} in all) errs by {found.expected_error:.6g} on average."
    yield f"{100 * found.confidence:g} % intervals are ±{found.half_width:.6g} a cell."
    if found.reason:
        yield f"{found.reason[0].upper()}{found.reason[1:]}"
    if not found.granted:
        yield f"It would be refused: {found.refusal}"
