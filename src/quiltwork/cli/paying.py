"""Who pays for an answer: a ledger, which is debited before anything is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import option
from quiltwork.cli.output import note
from quiltwork.exact import format_up

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Spending, Status
    from quiltwork.cli.planned import CarriedPlan
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
    note(quote.explain())


@contextmanager
def telling_what_is_left(
    debit: dict[str, Any], planned: CarriedPlan | None = None
) -> Iterator[None]:
    """Say after an answer how many more fit, or that the answer was stored before."""
    if not debit:
        yield
        return
    ledger, dataset, key = debit["ledger"], debit["dataset"], debit["key"]
    stored = key is not None and ledger.answer(dataset, key, debit["analyst"]) is not None
    before = ledger.checkpoint().count
    yield
    status, made = ledger.status(dataset), ledger.history(dataset, before)
    said = spent_so_far(status)
    if len(made) == 1:
        said = f"{said}; {_more(ledger, status, made[0].spending)}"
    said = f"{said}."
    if stored:
        said = f"The answer was stored under the key {key!r} and cost nothing. {said}"
    if planned is not None:
        said = f"{said} {planned.left(ledger, dataset)}"
    note(said)


def spent_so_far(status: Status) -> str:
    """How much of a budget is spent, as words."""
    if not status.delta:
        return f"The total of {status.dataset!r} is {status.total:.6g} of {status.budget:.6g}"
    return (
        f"{format_up(100 * status.used, 6)} % of what ε = {status.budget:.6g} and δ = "
        f"{status.delta:g} allow is used of {status.dataset!r}"
    )


def _more(ledger: Ledger, status: Status, spending: Spending) -> str:
    """How many more of a release fit, as words."""
    more = 0 if status.retired else ledger.accountant(status.dataset).how_many_more(spending)
    if more == 0:
        return "no other like this fits on the same time points"
    if more == math.inf:
        return "any number like this fits on the same time points"
    return f"{more:,} more like this {'fits' if more == 1 else 'fit'} on the same time points"
