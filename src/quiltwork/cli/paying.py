"""The options of commands that debit a ledger before they draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from quiltwork.cli.command import option, with_options

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
