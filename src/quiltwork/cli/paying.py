"""Who pays for an answer: a ledger that is debited before anything is drawn, or a curator's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import option
from quiltwork.cli.output import note
from quiltwork.cli.series import read_query
from quiltwork.exact import written_down

if TYPE_CHECKING:
    from quiltwork.client import AnswerPreview, Curator
    from quiltwork.counts import CountTable
    from quiltwork.queries import Query
    from quiltwork.series import Release


@dataclass(frozen=True)
class TypedLedger:
    """The ledger that pays, as it was typed."""

    ledger: str | None = option("Debit here first: sqlite:///budget.db", "URL")
    dataset: str | None = option("With --ledger: whose budget.", "NAME")
    key: str | None = option(
        "With --ledger: asking again under one key returns the answer.", "TEXT"
    )
    analyst: str | None = option("With --ledger: out of whose share.", "NAME")

    def open(self) -> dict[str, Any]:
        """Return the arguments of a release that it pays; nothing without a ledger."""
        if self.ledger is None:
            if self.dataset or self.key or self.analyst:
                raise click.UsageError("--dataset, --key and --analyst go with --ledger")
            return {}
        if self.dataset is None:
            raise click.UsageError("Give --dataset with --ledger: whose budget is to be debited?")
        from quiltwork.budget import Ledger

        return {**vars(self), "ledger": Ledger.open(self.ledger)}


def tell_quote(debit: dict[str, Any], asked: Release) -> None:
    """Say what a release that was not made would do to its ledger."""
    ledger, dataset, who = debit["ledger"], debit["dataset"], debit["analyst"]
    if debit["key"] is not None and ledger.answer(dataset, debit["key"], who) is not None:
        note(f"An answer is stored under the key {debit['key']!r}: asking again costs nothing.")
        return
    quote = ledger.preview(dataset, asked.spending, who)
    if quote.fits:
        note(
            f"The total of {dataset!r} would rise from {quote.before:.6g} to {quote.after:.6g}, of "
            f"a budget of {quote.budget:.6g}."
        )
    else:
        note(f"It would be refused. {quote.refusal}")


@contextmanager
def telling_what_is_left(debit: dict[str, Any]) -> Iterator[None]:
    """Say after an answer what its ledger has left, or that the answer was stored before."""
    if not debit:
        yield
        return
    ledger, dataset, key = debit["ledger"], debit["dataset"], debit["key"]
    stored = key is not None and ledger.answer(dataset, key, debit["analyst"]) is not None
    yield
    status = ledger.status(dataset)
    said = (
        f"{written_down(status.remaining, 6)} of {status.budget:.6g} is left of {dataset!r} where "
        "most was spent; elsewhere more may fit."
    )
    if stored:
        said = f"The answer was stored under the key {key!r} and cost nothing. {said}"
    note(said)


TOKEN = "QUILTWORK_TOKEN"  # noqa: S105  (the name of a variable)
"""The environment variable with the token; on a command line others could read it."""


def curator_option(taken: str) -> Any:
    """Make a parameter `--curator`; `taken` are the options that say what is asked."""
    return option(
        f"Ask a curator about its dataset FILE, with the token in {TOKEN}; only {taken} and what "
        "becomes of the answer go with it.",
        "URL",
    )


_ALWAYS = {"json", "debug", "config", "no_config", "save_config"}


def open_curator(url: str) -> Curator:
    """Return the curator at a URL, for the token in the environment."""
    from quiltwork.client import Curator

    token = os.environ.get(TOKEN, "")
    if not token:
        raise click.UsageError(f"Put your token into the environment variable {TOKEN}")
    return Curator(url, token)


def refuse_with_curator(*taken: str) -> None:
    """Refuse what is typed about a file; `taken` are options that say what is asked."""
    context, typed = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    known = {*taken, "file", "curator", "key", "confidence", "output", "plot", "report"}
    for one in context.command.params:
        name = str(one.name)
        if name not in known | _ALWAYS and context.get_parameter_source(name) == typed:
            raise click.UsageError(f"{one.opts[0]} does not go with --curator, which has its own")


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
