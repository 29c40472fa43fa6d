"""The options of commands that debit a ledger before they draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def ledger_options(function: Function) -> Function:
    """Add --ledger, --dataset and --key; `open_ledger` takes what they give."""
    options = (
        click.option(
            "--ledger", "ledger_url", metavar="URL", help="Debit here first: sqlite:///budget.db"
        ),
        click.option("--dataset", metavar="NAME", help="With --ledger: whose budget."),
        click.option(
            "--key",
            metavar="TEXT",
            help="With --ledger: asking again under one key returns the answer.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def open_ledger(url: str | None, dataset: str | None, key: str | None) -> dict[str, Any]:
    """Return the arguments `ledger`, `dataset` and `key` of a release; nothing without a URL."""
    if url is None:
        if dataset or key:
            raise click.UsageError("--dataset and --key go with --ledger")
        return {}
    if dataset is None:
        raise click.UsageError("Give --dataset with --ledger: whose budget is to be debited?")
    from quiltwork.ledger import Ledger

    return {"ledger": Ledger.open(url), "dataset": dataset, "key": key}
