"""An accountant whose releases are debits in a ledger.

It answers every question an `Accountant` answers, about everything committed to the ledger at that
moment by anyone, and records only by durable debits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from quiltwork.budget import Accountant, Spending
from quiltwork.budget.accounting.gaussian_accountant import GaussianAccountant
from quiltwork.budget.accounting.series_accountant import stated_spending
from quiltwork.budget.ledger.amounts import amount
from quiltwork.budget.ledger.claims import AnyAccountant
from quiltwork.exact import Number

if TYPE_CHECKING:
    from quiltwork.budget.accounting.gaussian_accountant import SquaresUsed
    from quiltwork.budget.accounting.theorems import Explanation
    from quiltwork.budget.ledger.records import Receipt, Status

Result = TypeVar("Result")

_QUESTIONS = frozenset(
    {
        "after",
        "beliefs",
        "budget",
        "chart",
        "cost_after",
        "delta",
        "exact_remaining",
        "fits",
        "for_audit",
        "how_many_more",
        "largest_factor",
        "largest_next",
        "leak_under",
        "leakage",
        "level_kept",
        "episode",
        "plot",
        "profile",
        "smallest_scale",
        "spendings",
        "states",
        "to_body",
        "used",
    }
)


class AskedLedger(Protocol):
    """What an accountant asks of the ledger that it speaks for."""

    def ask(self, dataset: str, question: Callable[[Any], Result]) -> Result:
        """Ask the accountant of a dataset."""

    def debit(
        self, dataset: str, spending: Any, key: str | None = None, analyst: str | None = None
    ) -> Receipt:
        """Debit, durably."""

    def debit_all(
        self, dataset: str, spendings: Iterable[Any], analyst: str | None = None
    ) -> tuple[Receipt, ...]:
        """Debit several together."""

    def extend(self, dataset: str, length: int) -> Status:
        """Let a dataset grow."""

    def status(self, dataset: str) -> Status:
        """What the dataset is."""


class LedgerAccountant:
    """The account of one dataset in a ledger, shared by all who use the ledger.

    What it says about costs and limits is for all analysts together; `analyst` is for whom it
    debits. Questions that are not written out here, such as `largest_next`, `how_many_more`,
    `profile` or `plot`, are those of `Accountant`.
    """

    def __init__(self, ledger: AskedLedger, dataset: str, analyst: str | None = None) -> None:
        """Speak for one dataset; `Ledger.accountant` makes it."""
        self.ledger = ledger
        self.dataset = dataset
        self.analyst = analyst

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
        """Debit a release that is dp_epsilon-DP for substituting one time point of a window.

        In a ledger with δ also Gaussian noise by its ρ, or by its μ as `gdp`.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad level or window.
            UnsupportedError: if no theorem combines it with what was released before.
            StorageError: if it could not be stored.
        """
        last = self.length if stop is None else stop
        stated = {"dp_epsilon": dp_epsilon, "rho": rho, "gdp": gdp}
        levels = {name: None if one is None else amount(one, name) for name, one in stated.items()}
        return self.add(stated_spending(start, last, label, **levels))

    def add(self, release: Any) -> Spending:
        """Debit a release made by `qw.release`, or a spending; return what was recorded."""
        return self.ledger.debit(self.dataset, release, analyst=self.analyst).spending

    def add_all(self, releases: Iterable[Any]) -> None:
        """Debit several releases together, or none of them if they do not fit."""
        self.ledger.debit_all(self.dataset, releases, analyst=self.analyst)

    def extend(self, length: int) -> None:
        """Let the dataset grow."""
        self.ledger.extend(self.dataset, length)

    def epsilon(self) -> float:
        """Return the best proven total of everything debited, for every time point."""
        return self._ask(lambda accountant: accountant.epsilon())

    @property
    def exact_epsilon(self) -> Fraction:
        """The total as a fraction."""
        return self._ask(lambda accountant: accountant.exact_epsilon)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self._ask(lambda accountant: accountant.length)

    @property
    def remaining(self) -> float:
        """Budget less total, rounded down; 0 once the dataset is retired."""
        return self.ledger.status(self.dataset).remaining

    def explain(self) -> Explanation | SquaresUsed:
        """Return every applicable bound with its theorem and its scope, or what caps allow."""
        return self._ask(lambda accountant: accountant.explain())

    def _ask(self, question: Callable[[AnyAccountant], Result]) -> Result:
        return self.ledger.ask(self.dataset, question)

    def __getattr__(self, name: str) -> Any:
        """Ask the accountant anything else it can answer, about the state at that moment."""
        if name not in _QUESTIONS:
            raise AttributeError(f"The accountant of a ledger has no {name!r}.")
        kinds = [kind for kind in (Accountant, GaussianAccountant) if hasattr(kind, name)]
        if not callable(getattr(kinds[0], name)):
            return self._ask(lambda accountant: getattr(accountant, name))

        def question(*arguments: Any, **named: Any) -> Any:
            return self._ask(lambda accountant: getattr(accountant, name)(*arguments, **named))

        return question
