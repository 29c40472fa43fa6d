"""Debits that are refused without looking at what was spent before: cheaper than most grants.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.ahead import can_wait
from quiltwork.budget.spending import Spending
from quiltwork.errors import BudgetExceeded
from quiltwork.exact import float_down
from quiltwork.influence.calibration_arguments import AnyOutlook
from quiltwork.influence.sweep import Sweep
from quiltwork.influence.sweep_outlook import SweptOutlook

_ROUNDING = Fraction(1, 10**9)


class _Sized(Protocol):
    """What is known of a dataset at a glance."""

    @property
    def name(self) -> str: ...

    @property
    def created(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def budget(self) -> Fraction: ...


@dataclass(frozen=True)
class Exceeding:
    """A debit that would have raised the total of a dataset of this length to `total`."""

    spending: Spending
    created: int
    length: int
    total: float

    def refuse(self, state: _Sized, spending: Spending) -> None:
        """Refuse another that asks for as much; since then no less is spent.

        Raises:
            BudgetExceeded: if it does.
        """
        same = (self.created, self.length) == (state.created, state.length)
        if same and _asks_as_much(spending, self.spending):
            raise _exceeding(state, self.total)


def refuse_alone(state: _Sized, secrets: Secrets, spending: Spending) -> None:
    """Refuse what tells more than the budget by itself, where every time point is a secret.

    Cost: none. Whatever else was released, a sweep finds no less than what is spent on one point.

    Raises:
        BudgetExceeded: if it does.
    """
    level = spending.dp_epsilon
    if level is None or level <= state.budget * (1 + _ROUNDING) or spending.stop > state.length:
        return
    if any(_hides_all(one, secrets.episode) for one in secrets.outlooks):
        raise _exceeding(state, float_down(level))


def _hides_all(outlook: AnyOutlook, episode: int) -> bool:
    """Whether a belief is a chain in which every time point may be any of several states."""
    sweep = outlook.sweep(episode) if isinstance(outlook, SweptOutlook) else None
    return isinstance(sweep, Sweep) and sweep.walk.all_secret


def _exceeding(state: _Sized, least: float) -> BudgetExceeded:
    """The refusal of a debit with which the total is at `least` this."""
    return BudgetExceeded(
        f"This would raise the total of {state.name!r} to {least:.9g} or more, above the budget of "
        f"{float_down(state.budget):.9g}. Nothing was recorded. Ask for more noise or a shorter "
        "window."
    )


def _asks_as_much(spending: Spending, other: Spending) -> bool:
    """Whether a release charges at least what another one does, whatever changes."""
    return (
        can_wait(spending)
        and can_wait(other)
        and spending.start <= other.start
        and spending.stop >= other.stop
        and spending.per_point >= other.per_point
        and spending.per_pair >= other.per_pair
        and spending.once >= other.once
    )
