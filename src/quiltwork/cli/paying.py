"""Who pays for an answer: a ledger that is debited before anything is drawn, or a curator's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quiltwork.cli.command import option, with_options
from quiltwork.cli.series import read_query

if TYPE_CHECKING:
    from quiltwork.client import AnswerPreview, Curator
    from quiltwork.counts import CountTable
    from quiltwork.queries import Query

Function = TypeVar("Function", bound=Callable[..., Any])


def ledger_options(function: Function) -> Function:
    """Add --ledger, --dataset, --key and --analyst; `open_ledger` takes what they give."""
    options = (
        option("--ledger URL", "Debit here first: sqlite:///budget.db", into="ledger_url"),
        option("--dataset NAME", "With --ledger: whose budget."),
        option("--key TEXT", "With --ledger: asking again under one key returns the answer."),
        option("--analyst NAME", "With --ledger: out of whose share."),
    )
    return with_options(function, options)


def open_ledger(
    url: str | None, dataset: str | None, key: str | None, analyst: str | None
) -> dict[str, Any]:
    """Return the arguments of a release that a ledger pays; nothing without a URL."""
    if url is None:
        if dataset or key or analyst:
            raise click.UsageError("--dataset, --key and --analyst go with --ledger")
        return {}
    if dataset is None:
        raise click.UsageError("Give --dataset with --ledger: whose budget is to be debited?")
    from quiltwork.budget import Ledger

    return {"ledger": Ledger.open(url), "dataset": dataset, "key": key, "analyst": analyst}


TOKEN = "QUILTWORK_TOKEN"  # noqa: S105  (the name of a variable)
"""The environment variable with the token; on a command line others could read it."""


def curator_option(taken: str) -> Callable[[Any], Any]:
    """Add `--curator`; `taken` are the options that say what is asked."""
    return option(
        "--curator URL",
        f"Ask a curator about its dataset FILE, with the token in {TOKEN}; only {taken} and "
        "what becomes of the answer go with it.",
    )


def open_curator(url: str) -> Curator:
    """Return the curator at a URL, for the token in the environment."""
    from quiltwork.client import Curator

    token = os.environ.get(TOKEN, "")
    if not token:
        raise click.UsageError(f"Put your token into the environment variable {TOKEN}")
    return Curator(url, token)


def refuse_with_curator(given: dict[str, Any]) -> None:
    """Refuse options that are about a file; `given` are those with a value."""
    wrong = [name for name, value in given.items() if value]
    if wrong:
        option = wrong[0].removesuffix("_url").replace("_", "-")
        raise click.UsageError(f"--{option} does not go with --curator, which has its own")


def read_question(curator: Curator, dataset: str, text: str, window: str | None) -> Query:
    """Read a query about a dataset of a curator, in its states."""
    from quiltwork.beliefs.documents import labels_from_json

    states = curator.dataset(dataset).states
    return read_query(text, None if states is None else labels_from_json(states), window)


def asked_counts(
    url: str,
    dataset: str,
    by: tuple[str, ...],
    where: tuple[str, ...],
    epsilon: Fraction | None,
    key: str | None,
) -> CountTable:
    """Ask for counts of people by some columns, among those whose columns have some values."""
    if epsilon is None:
        raise click.UsageError("Give the privacy level with --epsilon, for example --epsilon 1")
    among = dict(text.split("=", 1) for text in where if "=" in text and text[0] != "=")
    if len(among) < len(where) or any(name[-1] in "!<>" for name in among):
        raise click.UsageError("A curator takes --where COLUMN=VALUE, once for a column")
    asked = {"kind": "table", "by": list(by), "where": {n: [v] for n, v in among.items()}}
    found: CountTable = open_curator(url).ask(dataset, asked, epsilon, key).result
    return found


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
