"""The largest release that fits a ledger's budget, and debits for releases of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork.budget.persons import PEOPLE
from quiltwork.errors import BudgetExceeded
from quiltwork.exact import float_down, format_down, format_up, positive_fraction

if TYPE_CHECKING:
    from quiltwork.budget import Ledger, Receipt, Spending, Status
    from quiltwork.queries import Query

_UP = 1 + 2.0**-40
_NOTHING = 1e-6
"""A share of the budget below which no release is useful."""


@dataclass(frozen=True)
class LargestRelease:
    """The largest release that still fits the budget on some time points.

    Attributes:
        dataset: the dataset of the budget.
        window: the time points.
        level: the level for substituting one of them; μ of Gaussian noise if the dataset has a δ.
        epsilon: the epsilon of a release at that level; with a δ, the query's at this δ, or None.
        query: the query, if one was given.
        scale: the smallest noise scale for the query.
        error: the expected error of one cell with that noise.
        delta: the dataset's δ.
    """

    dataset: str
    window: tuple[int, int]
    level: float
    epsilon: float | None
    query: Query | None = None
    scale: float | None = None
    error: float | None = None
    delta: float = 0.0


def largest_release(
    ledger: Ledger,
    status: Status,
    window: tuple[int, int],
    query: Query | None,
    analyst: str | None,
) -> LargestRelease:
    """Return the largest release within the budget, its reserves and the analyst's cap."""
    from quiltwork.budget import Spending
    from quiltwork.budget.accounting.expected_errors import (
        expected_error,
        expected_gaussian_error,
    )
    from quiltwork.budget.accounting.headroom import (
        epsilon_alone,
        largest_granted,
        planned_spending,
    )
    from quiltwork.budget.accounting.stored_plan import PlannedLine
    from quiltwork.budget.accounting.worst_point import Secrets

    account, length = ledger.accountant(status.dataset, analyst), status.length or 1
    gaussian = bool(status.delta)

    def fits(spendings: Any) -> bool:
        (one,) = spendings
        return ledger.preview(status.dataset, one, analyst).fits

    def largest(unit: Spending) -> float:
        if status.retired is not None:
            return 0.0
        most = largest_granted(account.largest_factor([unit]), [unit], fits)
        return most if most > _NOTHING * status.budget else 0.0

    unit = Spending.gaussian(*window, gdp=1) if gaussian else Spending.dp(1, *window)
    factor = largest(unit)
    level, epsilon = (factor**0.5, None) if gaussian else (factor, 0.0)
    if not gaussian and factor:
        secrets = Secrets.read(status.beliefs, status.length, status.episode, status.pairs)
        epsilon = float_down(epsilon_alone(secrets, unit.times(factor)))
    found = LargestRelease(status.dataset, window, level, epsilon, delta=status.delta)
    if query is None:
        return found
    if gaussian:
        most = largest(planned_spending(query, 1, length, gaussian=True))
    else:
        most = largest(Spending.of_query(query, 1, length))
    if not most:
        return found
    scale = (most**-0.5 if gaussian else 1 / most) * _UP
    states = status.beliefs[0].states
    if not gaussian:
        error = expected_error(query, scale, length, states)
        return replace(found, query=query, scale=scale, error=error)
    line = PlannedLine(status.dataset, query, Fraction(scale), status.exact_delta)
    asked = float_down(line.epsilon(status.beliefs, length, status.episode))
    error = expected_gaussian_error(query, scale, length)
    return replace(found, query=query, scale=scale, error=error, epsilon=asked)


def largest_document(found: LargestRelease) -> dict[str, Any]:
    """Return it as JSON values."""
    from quiltwork.queries.document import to_document

    body = {**vars(found), "window": list(found.window)}
    return {**body, "query": None if found.query is None else to_document(found.query)}


def largest_lines(found: LargestRelease) -> Iterator[str]:
    """Yield it as lines of text."""
    where = "{:,}..{:,}".format(*found.window)
    if not found.level:
        yield f"No further release fits on time points {where} of {found.dataset!r}."
        return
    level = format_down(found.level)
    if found.delta:
        yield f"On time points {where} of {found.dataset!r} Gaussian noise of level μ = {level}"
        yield "still fits."
        if found.epsilon:
            epsilon = format_down(found.epsilon)
            yield f"This query asked with epsilon {epsilon} and delta {found.delta:g} has it."
    else:
        epsilon = format_down(found.epsilon or 0)
        yield f"On time points {where} of {found.dataset!r} a dp_epsilon of {level} still fits:"
        yield f"a release with epsilon {epsilon} has it."
    if found.scale is not None and found.query is not None:
        error = "" if found.error is None else f", an expected error of {found.error:.4g}"
        yield f"For a {found.query.kind} that is noise of scale {format_up(found.scale)}{error}."


def spend(
    ledger: Ledger,
    dataset: str,
    level: tuple[Fraction | None, Fraction | None, bool],
    window: tuple[int, int],
    what: str,
    key: str | None,
    analyst: str | None,
) -> Receipt:
    """Debit a release of another program by its level per time point."""
    from quiltwork.budget import Spending

    epsilon, rho, adds = level
    if epsilon is not None:
        positive_fraction(epsilon, "epsilon")
        spending = Spending.dp(2 * epsilon if adds else epsilon, *window, what)
    else:
        if adds:
            raise click.UsageError(
                "--rho is for substituting a time point; of a mechanism that adds or removes "
                "records give four times its own, with --neighbours substitute"
            )
        spending = Spending.gaussian(*window, rho=rho, label=what)
    try:
        receipt = ledger.debit(dataset, spending, key, analyst)
    except BudgetExceeded as refusal:
        status = ledger.status(dataset)
        if epsilon is None or status.beliefs == (PEOPLE,):
            raise
        fitting = largest_release(ledger, status, window, None, analyst).level
        if not fitting:
            raise
        typed = format_down(fitting / 2 if adds else fitting)
        neighbours = "add-remove" if adds else "substitute"
        raise BudgetExceeded(
            f"{refusal.reason} On this window --epsilon {typed} --neighbours {neighbours} fits."
        ) from None
    if key is not None and receipt.stored is None:
        receipt.complete(what)  # the answer is elsewhere, and a retry debits nothing
    return receipt
