"""The ledger that pays for an answer; it is debited before noise is drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import option
from quiltwork.cli.output import note
from quiltwork.exact import format_up

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Spending, Status
    from quiltwork.cli.planned import StoredRelease
    from quiltwork.series import Release


@dataclass(frozen=True)
class TypedLedger:
    """The options of the ledger that pays, as they were typed."""

    ledger: str | None = option("Debit here first: sqlite:///budget.db", "URL")
    dataset: str | None = option("With --ledger: whose budget.", "NAME")
    key: str | None = option(
        "With --ledger: an idempotency key. Repeating it returns the stored answer.", "TEXT"
    )
    analyst: str | None = option("With --ledger: out of whose share.", "NAME")

    def open(self) -> dict[str, Any]:
        """Return the ledger's arguments of a release; empty without a ledger."""
        if self.ledger is None:
            if self.dataset or self.key or self.analyst:
                raise click.UsageError("--dataset, --key and --analyst go with --ledger")
            return {}
        if self.dataset is None:
            raise click.UsageError("Give --dataset with --ledger: whose budget is to be debited?")
        from quiltwork.budget import Ledger

        return {**vars(self), "ledger": Ledger.open(self.ledger)}


def tell_quote(debit: dict[str, Any], described: Release) -> None:
    """Print what a release would cost its ledger, without making it."""
    ledger, dataset, who = debit["ledger"], debit["dataset"], debit["analyst"]
    if debit["key"] is not None and ledger.answer(dataset, debit["key"], who) is not None:
        note(f"An answer is stored under the key {debit['key']!r}: repeating it costs nothing.")
        return
    quote = ledger.preview(dataset, described.spending, who)
    note(quote.explain())


@contextmanager
def telling_what_is_left(
    debit: dict[str, Any], planned: StoredRelease | None = None
) -> Iterator[Callable[[], str | None]]:
    """Print after an answer what is left of the budget, or that the answer was stored before.

    Yields a function that returns this sentence once the answer is paid for; None without a ledger.
    """
    if not debit:
        yield lambda: None
        return
    ledger, dataset, key = debit["ledger"], debit["dataset"], debit["key"]
    stored = key is not None and ledger.answer(dataset, key, debit["analyst"]) is not None
    before = ledger.checkpoint().count

    @cache
    def sentence() -> str:
        status, debits = ledger.status(dataset), ledger.history(dataset, before)
        text = spent_so_far(status)
        if len(debits) == 1:
            text = f"{text}; {_more(ledger, status, debits[0].spending)}"
        text = f"{text}."
        if stored:
            text = f"The answer was stored under the key {key!r} and cost nothing. {text}"
        return text if planned is None else f"{text} {planned.left(ledger, dataset)}"

    yield sentence
    note(sentence())


def spent_so_far(status: Status) -> str:
    """Return how much of a budget is spent."""
    if not status.delta:
        return f"The total of dataset {status.dataset} is {status.total:.6g} of {status.budget:.6g}"
    return (
        f"{format_up(100 * status.used, 6)} % of what ε = {status.budget:.6g} and δ = "
        f"{status.delta:g} allow is used of {status.dataset!r}"
    )


def _more(ledger: Ledger, status: Status, spending: Spending) -> str:
    """Return how many more releases like this one fit."""
    more = 0 if status.retired else ledger.accountant(status.dataset).how_many_more(spending)
    if more == 0:
        return "no other like this fits on the same time points"
    if more == math.inf:
        return "any number like this fits on the same time points"
    return f"{more:,} more like this {'fits' if more == 1 else 'fit'} on the same time points"
