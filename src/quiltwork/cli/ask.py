"""The command `quiltwork ask`: a question to a curator, previewed or answered."""

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
from quiltwork.exact import counted

if TYPE_CHECKING:
    from quiltwork.client import AnswerPreview, Curator, Dataset

TOKEN, ADDRESS = "QUILTWORK_TOKEN", "QUILTWORK_CURATOR"
"""Environment variables with the token and the URL; a token on the command line is visible."""


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
    window: str | None = option("For a series: only these time points.", "START:STOP"),
    by: tuple[str, ...] = option(
        "For counts: the columns to count by; repeatable, or a,b for several.", "COLUMN"
    ),
    where: tuple[str, ...] = option(
        "For counts: only people with this value; once for each column.",
        "COLUMN=VALUE",
    ),
    epsilon: Fraction = option("The privacy level.", kind=level_number),
    key: str | None = option(
        "An idempotency key: a retry with the same key returns the stored answer.", "TEXT"
    ),
    preview: bool = option("Show the cost and the expected error; nothing is spent."),
    polish: bool = option(
        "Round an answer about a series to the nearest possible values, at no cost."
    ),
    confidence: Fraction = confidence_option("The confidence of the intervals."),
    to: Targets = option_group(Targets),
) -> None:
    """Ask a curator about its DATASET.

    The token is read from the environment variable QUILTWORK_TOKEN. The curator debits the budget
    first and stores the answer, so retries with the same key cost nothing.
    """
    client = _connect(curator)
    described = client.dataset(dataset)
    query: Any
    if described.kind == "series":
        if by or where:
            raise click.UsageError(
                "--by and --where are for counts of people, but this dataset is a series"
            )
        query = _series_query(described, question, window)
        check_delivery(query, to, polish)
    else:
        if window or polish or question != "histogram":
            raise click.UsageError(
                "--query, --window and --polish are for series, but this dataset has counts"
            )
        query = _table_query(by, where)
        to.check()
    if preview:
        estimate = client.preview(dataset, query, epsilon)
        to.deliver(files.dump("curator-preview", 1, asdict(estimate)), preview_lines(estimate))
        return
    answer = client.ask(dataset, query, epsilon, key).result
    if described.kind == "series":
        from quiltwork.series import possible

        released = possible(answer) if polish else answer
        to.deliver(released.to_json(), released_lines(released, confidence), released, confidence)
    else:
        show_table(answer, where, confidence, to)


def _connect(url: str) -> Curator:
    from quiltwork.client import Curator

    token = os.environ.get(TOKEN, "")
    if not token:
        raise click.UsageError(f"Set the environment variable {TOKEN} to your token")
    return Curator(url, token)


def _series_query(dataset: Dataset, text: str, window: str | None) -> Any:
    """Return the query of the options about a series, in the series' own states."""
    from quiltwork.beliefs.documents import labels_from_json

    states = None if dataset.states is None else labels_from_json(dataset.states)
    return read_query(text, states, window)


def _table_query(by: tuple[str, ...], where: tuple[str, ...]) -> dict[str, Any]:
    """Return the table document of the options about counts."""
    conditions = dict(text.split("=", 1) for text in where if "=" in text and text[0] != "=")
    if len(conditions) < len(where) or any(name[-1] in "!<>" for name in conditions):
        raise click.UsageError("A curator takes --where COLUMN=VALUE only, once for each column")
    columns = [column for text in by for column in split_list(text)]
    return {"kind": "table", "by": columns, "where": {name: [v] for name, v in conditions.items()}}


def preview_lines(preview: AnswerPreview) -> Iterator[str]:
    """Yield the cost and the expected error of an answer as lines of text."""
    after = "an unknown total" if preview.spent_after is None else f"{preview.spent_after:.6g}"
    spent = f"from {preview.spent_before:.6g} to {after}"
    yield f"Cost: raises the spent level {spent}, of a budget of {preview.budget:.6g}."
    cells = counted(preview.cells, "cell")
    yield f"Expected error of each of {cells}: {preview.expected_error:.6g}."
    yield f"{100 * preview.confidence:g} % intervals: ±{preview.half_width:.6g} for each cell."
    if preview.reason:
        yield f"{preview.reason[0].upper()}{preview.reason[1:]}"
    if not preview.granted:
        yield f"It would be refused: {preview.refusal}"
