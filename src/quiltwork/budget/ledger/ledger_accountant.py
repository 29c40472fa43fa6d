"""`LedgerAccountant`: an accountant whose releases are durable debits in a ledger.

It has the methods of `Accountant`, each evaluated on everything committed to the ledger at that
moment, by any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from quiltwork.budget import Accountant, Spending
from quiltwork.budget.accounting.gaussian_accountant import GaussianAccountant
from quiltwork.budget.accounting.series_accountant import spending_of_level
from quiltwork.budget.ledger.claims import AnyAccountant
from quiltwork.budget.ledger.requests import parse_amount
from quiltwork.exact import Number

if TYPE_CHECKING:
    from quiltwork.budget.accounting.gaussian_accountant import SquaresUsed
    from quiltwork.budget.accounting.theorems import Explanation
    from quiltwork.budget.ledger.ledger_records import Receipt, Status

Result = TypeVar("Result")

_DELEGATED = frozenset(
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


class DebitedLedger(Protocol):
    """The methods of a `Ledger` that an accountant uses."""

    def ask(self, dataset: str, question: Callable[[Any], Result]) -> Result:
        """Call a function with the dataset's accountant."""

    def debit(
        self, dataset: str, spending: Any, key: str | None = None, analyst: str | None = None
    ) -> Receipt:
        """Debit a release, durably."""

    def debit_all(
        self, dataset: str, spendings: Iterable[Any], analyst: str | None = None
    ) -> tuple[Receipt, ...]:
        """Debit several releases together, or none."""

    def extend(self, dataset: str, length: int) -> Status:
        """Let a dataset grow."""

    def status(self, dataset: str) -> Status:
        """Return a summary of the dataset."""


class LedgerAccountant:
    """The account of one dataset in a ledger, shared by all users of the ledger.

    Costs and limits are those of all analysts together; `analyst` is for whom it debits. Methods
    that are not written out here, such as `largest_next`, `how_many_more`, `profile` or `plot`, are
    those of `Accountant`.

    >>> from tempfile import TemporaryDirectory
    >>> import quiltwork as qw
    >>> folder = TemporaryDirectory()
    >>> ledger = qw.Ledger.open(f"sqlite:///{folder.name}/budget.db")
    >>> _ = ledger.create("coins", qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 100, budget=1)
    >>> account = ledger.accountant("coins")
    >>> _ = account.spend(dp_epsilon=0.1, start=1, stop=10)
    >>> account.epsilon(), round(account.remaining, 6), account.how_many_more(account.spendings[0])
    (0.1, 0.9, 9)
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(self, ledger: DebitedLedger, dataset: str, analyst: str | None = None) -> None:
        """Account for one dataset; `Ledger.accountant` makes it."""
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

        A dataset with δ also takes Gaussian noise by its ρ, or by its μ as `gdp`.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad level or window.
            UnsupportedError: if no theorem combines it with the releases before.
            StorageError: if it could not be stored.
        """
        last = self.length if stop is None else stop
        levels = {"dp_epsilon": dp_epsilon, "rho": rho, "gdp": gdp}
        exact = {
            name: None if level is None else parse_amount(level, name)
            for name, level in levels.items()
        }
        return self.add(spending_of_level(start, last, label, **exact))

    def add(self, release: Any) -> Spending:
        """Debit a release made by `qw.release`, or a spending; return the recorded spending."""
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
        """Return every applicable bound with its theorem and scope; for (ε, δ) the caps."""
        return self._ask(lambda accountant: accountant.explain())

    def _ask(self, question: Callable[[AnyAccountant], Result]) -> Result:
        return self.ledger.ask(self.dataset, question)

    def __getattr__(self, name: str) -> Any:
        """Delegate to an accountant of the debits committed so far."""
        if name not in _DELEGATED:
            raise AttributeError(f"The accountant of a ledger has no {name!r}.")
        kind = Accountant if hasattr(Accountant, name) else GaussianAccountant
        if not callable(getattr(kind, name)):
            return self._ask(lambda accountant: getattr(accountant, name))

        def method(*arguments: Any, **named: Any) -> Any:
            return self._ask(lambda accountant: getattr(accountant, name)(*arguments, **named))

        return method
