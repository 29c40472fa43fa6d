"""Debits that are refused without looking at all that was spent before.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.ahead import can_wait, highest
from quiltwork.budget.ledger.datasets import DatasetState
from quiltwork.budget.spending import Spending
from quiltwork.errors import BudgetExceeded
from quiltwork.exact import float_down

_ROUNDING = Fraction(1, 10**9)
_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)
_AROUND = 128
"""So many time points on either side are enough to tell what most leaks about one."""
_MANY = 500
"""With fewer changes of levels looking at all costs as little, and says what is left."""


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

    @classmethod
    def of(cls, state: _Sized, spending: Spending, total: float) -> Exceeding:
        """A debit of a dataset as it is."""
        return cls(spending, state.created, state.length, total)

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
    if any(one.hides_all(secrets.episode) for one in secrets.bounds):
        raise _exceeding(state, float_down(level))


def exceeding_near(state: DatasetState, spending: Spending, many: int = _MANY) -> Exceeding | None:
    """Find that a debit tells too much already by what was spent around one time point.

    Fewer releases tell no more, so the rest is left out: all but the releases around the worst time
    point, or the one of the window on which most is spent. Cost: a sweep of some hundred time
    points, and the changes within the window if the worst time point is not in it. None also if it
    cannot be told so, levels change at fewer than `many` times, or a belief is not swept: then runs
    beyond those time points would be charged for windows that have ended before.
    """
    usage, known = state.account.usage, state.account.known
    plain = state.tells and can_wait(spending) and spending.stop <= state.length
    swept = all(one.swept for one in state.base.secrets.bounds)
    if not plain or not swept or len(usage.times) < many:
        return None
    node = None if known is None else known.worst.node
    if node is None or not spending.start <= node <= spending.stop:
        node = usage.busiest(spending.start, spending.stop)
    if not _may_exceed(state, node, spending):
        return None
    first, last = max(node - _AROUND, 1), min(node + _AROUND, state.length)
    start, stop = max(spending.start, first), min(spending.stop, last)
    is_whole = (start, stop) == (spending.start, spending.stop)
    once = spending.once if is_whole else Fraction(0)
    part = replace(spending, start=start, stop=stop, once=once)
    least = Account(state.base.secrets, usage.within(first, last)).plus([part]).total
    exceeds = least > state.budget * (1 + _ROUNDING_OF_SWEEPS)
    return Exceeding.of(state, spending, float_down(least)) if exceeds else None


def _may_exceed(state: DatasetState, node: int, spending: Spending) -> bool:
    """Whether it is worth looking, if a total grows as the level of its time point does."""
    known, usage = state.account.known, state.account.usage
    if known is None or known.worst.node is None:
        return True
    worst, here = (usage.highest(at, at) for at in (known.worst.node, node))
    return known.worst.exact * (here + highest(spending)) > state.budget * worst


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
