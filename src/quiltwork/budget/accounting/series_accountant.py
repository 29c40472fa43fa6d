"""`SeriesAccountant`: the common base of `Accountant` (pure ε) and `GaussianAccountant` (ε, δ).

An accountant holds an immutable account, and replaces it by one with more releases if that stays
within its claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Generic, Protocol, Self, TypeVar

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, Label, beliefs_from_json, beliefs_to_json
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import Number, float_up, parse_stored_fraction
from quiltwork.results import Charted


class AccountState(Protocol):
    """The interface of an account that an accountant uses."""

    @property
    def secrets(self) -> Secrets:
        """The beliefs and time points that it is about."""

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""

    @property
    def total(self) -> Fraction:
        """The proven ε."""

    def plus(self, spendings: Iterable[Spending]) -> Self:
        """Return the account with more releases."""


A = TypeVar("A", bound=AccountState)


class SeriesAccountant(Charted, Generic[A]):
    """The account of one series under one kind of claim."""

    _account: A
    _episode: int

    def _allows(self, account: A) -> bool:
        """Whether an account is within the claim."""
        raise NotImplementedError

    def _refusal(self, after: A, added: list[Spending]) -> BudgetExceeded:
        """Return the error for releases after which the account would be `after`."""
        raise NotImplementedError

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """The beliefs under which the claim holds."""
        return tuple(bound.belief for bound in self.secrets.bounds)

    @property
    def secrets(self) -> Secrets:
        """The beliefs, the time points, and how many in a row are one secret."""
        return self._account.secrets

    @property
    def episode(self) -> int:
        """How many time points in a row are one secret; a shorter series is one as a whole."""
        return self._episode

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states of the beliefs; None where they are about rows of any kind."""
        return next((b.states for b in self.beliefs if b.states is not None), None)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.secrets.length

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases recorded, in order."""
        return self._account.spendings

    @property
    def exact_epsilon(self) -> Fraction:
        """The proven ε as a fraction, at or above the bound."""
        return self._account.total

    def epsilon(self) -> float:
        """Return the best proven bound on what all releases together reveal about a time point.

        Holds for every time point of the series, inside and outside the windows; rounded up. For
        (ε, δ) with a budget it is all of ε from the first release on; without a budget, the ε of a
        plan fixed beforehand.

        Theorem: docs/theory/sweep.md, docs/theory/f-sweep.md (no filter on what was reached)
        """
        return float_up(self.exact_epsilon)

    def level_kept(self) -> float:
        """Return the proven ε under the beliefs of this account."""
        return self.epsilon()

    def for_audit(self) -> None:
        """Return None: the exact audit needs queries, and an account keeps only levels."""

    def spend(
        self,
        dp_epsilon: Number | None = None,
        start: int = 1,
        stop: int | None = None,
        label: str = "",
        *,
        rho: Number | None = None,
        gdp: Number | None = None,
    ) -> Spending:
        """Record a release by its level for substituting one time point of a window.

        Args:
            dp_epsilon: the level of a pure mechanism; twice the level of a library that adds or
                removes records. In an account with delta it is charged to the share for pure
                levels, or without one as the least Gaussian level that hides as much.
            start: the first time point used.
            stop: the last; None for the end of the series.
            label: a name for people.
            rho: ρ = μ²/2 of Gaussian noise, in an account with delta.
            gdp: μ of Gaussian noise, or of any mechanism that Gaussian noise of this level hides.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad level or window, and for more levels than one.
            UnsupportedError: if no theorem combines it with the releases before.
        """
        last = self.length if stop is None else stop
        return self.add(
            spending_of_level(start, last, label, dp_epsilon=dp_epsilon, rho=rho, gdp=gdp)
        )

    def add(self, release: HasSpending | Spending) -> Spending:
        """Record a release made by `qw.release`, or a spending; return the recorded spending.

        Cost: pricing all releases, milliseconds after 10⁵ others under a chain of few states.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad window.
            UnsupportedError: if no theorem combines it with the releases before.
        """
        spending = as_spending(release)
        self.add_all([spending])
        return spending

    def add_all(self, releases: Iterable[HasSpending | Spending]) -> None:
        """Record several releases together, or none of them if they do not fit."""
        added = [as_spending(release) for release in listed(releases, "releases")]
        after = self.after(*added)
        if not self._allows(after):
            raise self._refusal(after, added)
        self._account = after

    def cost_after(self, *releases: HasSpending | Spending) -> float:
        """Return the total after these releases, rounded up; records nothing."""
        return float_up(self.after(*releases).total)

    def fits(self, *releases: HasSpending | Spending) -> bool:
        """Whether these releases together would fit; records nothing."""
        return self._allows(self.after(*releases))

    def after(self, *releases: HasSpending | Spending) -> A:
        """Return the state with these releases, whatever the budget; records nothing.

        A state is an immutable sum of releases. What still fits is answered by an accountant:
        record the releases on a copy of this one and ask that.
        """
        return self._account.plus(as_spending(release) for release in releases)

    def record(self, *releases: HasSpending | Spending) -> None:
        """Record releases that were granted elsewhere, whatever the budget."""
        self._account = self.after(*releases)

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values; `from_body` computes its total again."""
        return {
            "beliefs": json.loads(beliefs_to_json(self.beliefs)),
            "length": self.length,
            "episode": self.episode,
            "spendings": [spending.to_body() for spending in self.spendings],
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Read what `to_body` wrote.

        Raises:
            InvalidInputError: if a field is missing or damaged.
        """
        try:
            return cls._read(body, beliefs_from_json(json.dumps(body["beliefs"])))
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"Not an account: {error}.") from None

    @classmethod
    def _read(cls, body: Mapping[str, Any], beliefs: tuple[Belief, ...]) -> Self:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as `to_body`; the copy keeps its own account, so share budgets with a `Ledger`."""
        return type(self).from_body, (self.to_body(),)


def read_budget(body: Mapping[str, Any]) -> Fraction | None:
    """Return the budget in the body of an account; None without one."""
    return None if body["budget"] is None else parse_stored_fraction(body["budget"], "budget")


def spending_of_level(
    start: int,
    stop: int,
    label: str,
    *,
    dp_epsilon: Number | None = None,
    rho: Number | None = None,
    gdp: Number | None = None,
) -> Spending:
    """Return the spending of a release from exactly one of its three kinds of level.

    Raises:
        InvalidInputError: for no level or several, and for a bad level or window.
    """
    if sum(level is not None for level in (dp_epsilon, rho, gdp)) != 1:
        raise InvalidInputError("Give one of dp_epsilon=, rho= and gdp=.")
    if dp_epsilon is not None:
        return Spending.dp(dp_epsilon, start, stop, label)
    return Spending.gaussian(start, stop, rho=rho, gdp=gdp, label=label)
