"""The running state of one dataset: what its entries, replayed in order, amount to.

A state is kept warm in the process and only ever changed by replaying committed entries, so that a
refused or failed request leaves no trace in it. Cost of a debit: pricing it once, plus replaying
what others have written since the last look.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.accounting import Accountant, Spending
from quiltwork.accounting.account import Account
from quiltwork.errors import BudgetExceeded, QuiltworkError, StorageError
from quiltwork.exact import float_down, float_up, written_fraction
from quiltwork.ledger.entries import Entry, reading
from quiltwork.ledger.records import Share, Status, read_beliefs, read_share
from quiltwork.ledger.shares import refuse_above_cap, refuse_reserved, unused_by_others
from quiltwork.ledger.tables import Tables

_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True)
class Grant:
    """A debit that fits, and the account with it.

    `charge` is by how much it raises the total; None where nobody asked, because finding out takes
    longer than finding out that it fits.
    """

    account: Account
    spending: Spending
    charge: Fraction | None


class Dataset:
    """One dataset, replayed up to the entry numbered `seen`."""

    def __init__(self, name: str) -> None:
        """Know nothing but the name."""
        self.name = name
        self.seen = 0
        self._looked = 0
        self.debits = 0
        self.retired: str | None = None
        self.shares: dict[str, Share] = {}
        self.charged: dict[str, Fraction] = {}
        self._accountant: Accountant | None = None
        self._by_analyst: dict[str, list[Spending]] = {}
        self._alone: dict[str, Accountant] = {}
        self._granted: Grant | None = None

    @property
    def accountant(self) -> Accountant:
        """The account of all releases, with the dataset's beliefs, length and budget."""
        if self._accountant is None:
            raise StorageError(
                f"The ledger is damaged: dataset {self.name!r} has entries from before it was "
                "created. Run verify()."
            )
        return self._accountant

    @property
    def budget(self) -> Fraction:
        """The most that all releases together may cost."""
        return self.accountant.budget or Fraction(0)

    @property
    def status(self) -> Status:
        """The dataset at a glance."""
        return Status(
            dataset=self.name,
            beliefs=self.accountant.beliefs,
            length=self.accountant.length,
            exact_budget=self.budget,
            exact_total=self.accountant.exact_epsilon,
            debits=self.debits,
            shares=dict(self.shares),
            charged=dict(self.charged),
            retired=self.retired,
            episode=self.accountant.episode,
        )

    def catch_up(self, tables: Tables) -> None:
        """Replay what was committed since the last look. Cost: the new entries."""
        if tables.head.count > self._looked:
            self.replay(tables.of_dataset(self.name, self.seen))
            self._looked = tables.head.count

    def replay(self, entries: list[Entry]) -> None:
        """Take in committed entries, in order; never refuses what was granted."""
        granted: list[Spending] = []
        for entry in entries:
            if entry.kind == "extend":
                self._record(granted)
                granted, self._granted = [], None
                self._alone.clear()
            with reading(entry):
                self._take_in(entry, granted)
            self.seen = entry.seq
        self._record(granted)

    def _take_in(self, entry: Entry, granted: list[Spending]) -> None:
        body = entry.content
        match entry.kind:
            case "create":
                budget = written_fraction(body["budget"], "budget")
                self._accountant = Accountant.reopened(
                    read_beliefs(body), body["length"], budget, body.get("episode", 1)
                )
            case "extend":
                self.accountant.extend(body["length"])
            case "allot":
                self.shares[body["analyst"]] = read_share(body)
            case "debit":
                granted.append(self._charge(body))
            case "retire":
                self.retired = str(body["reason"])

    def grant(self, spending: Spending, analyst: str | None) -> Grant:
        """Price a debit and check that it fits; changes nothing.

        Raises:
            BudgetExceeded: if it exceeds the budget, a cap or what is reserved, or the dataset is
                retired.
            InvalidInputError: for a window outside the series.
            UnsupportedError: if no theorem combines it with what was released before.
        """
        if self.retired is not None:
            raise BudgetExceeded(
                f"Dataset {self.name!r} is retired ({self.retired}): nothing more is released "
                "from it."
            )
        account = self.accountant.after(spending)
        if not account.fits(self.budget):
            raise self._exceeded(account)
        kept = unused_by_others(self.shares, self.charged, analyst)
        charge = None
        if kept or analyst is not None:
            total = min(account.total, self.budget)
            charge = max(Fraction(0), total - self.accountant.exact_epsilon)
            refuse_reserved(self.name, kept, total, self.budget)
        if analyst is not None and charge is not None:
            self._check_cap(spending, analyst, charge)
        self._granted = Grant(account, spending, charge)
        return self._granted

    def price(self, spending: Spending) -> Fraction | None:
        """Return the total with a debit, whether it fits or not; None if no theorem says."""
        try:
            return self.accountant.after(spending).total
        except QuiltworkError:
            return None

    def check_budget(self) -> None:
        """Check that what was granted fits the budget.

        Raises:
            StorageError: if it does not, by more than rounding can explain.
        """
        total = self.accountant.exact_epsilon
        if total > self.budget * (1 + _ROUNDING) and not self.accountant.after().fits(self.budget):
            raise StorageError(
                f"The debits of {self.name!r} cost {float_up(total):.9g} together, above the "
                f"budget of {float_down(self.budget):.9g}: entries were put in or their beliefs "
                "were changed. Retire the dataset."
            )

    def _exceeded(self, account: Account) -> BudgetExceeded:
        before = self.accountant.exact_epsilon
        return BudgetExceeded(
            f"This would raise the total of {self.name!r} from {float_up(before):.9g} to "
            f"{float_up(account.total):.9g}, above the budget of {float_down(self.budget):.9g}; "
            f"{max(0.0, float_down(self.budget - before)):.9g} is left. Nothing was recorded. Ask "
            "for more noise or a shorter window."
        )

    def _check_cap(self, spending: Spending, analyst: str, charge: Fraction) -> None:
        cap = self.shares.get(analyst, Share()).cap
        if cap is not None:
            alone = self._accountant_of(analyst).after(spending).total
            charged = self.charged.get(analyst, Fraction(0)) + charge
            refuse_above_cap(analyst, cap, charged, alone)

    def _accountant_of(self, analyst: str) -> Accountant:
        """The account of one analyst's releases alone."""
        if analyst not in self._alone:
            whole = self.accountant
            account = Accountant(whole.beliefs, whole.length, episode=whole.episode)
            account.record(*self._by_analyst.get(analyst, []))
            self._alone[analyst] = account
        return self._alone[analyst]

    def _record(self, spendings: list[Spending]) -> None:
        """Record granted debits; the pricing just done for a single one is used again."""
        priced, self._granted = self._granted, None
        if priced is not None and spendings == [priced.spending]:
            self.accountant.take(priced.account)
        elif spendings:
            self.accountant.record(*spendings)
        else:
            self._granted = priced

    def _charge(self, body: dict[str, Any]) -> Spending:
        """Count a debit and charge its analyst."""
        spending, analyst = Spending.from_body(body["spending"]), body["analyst"]
        self.debits += 1
        if analyst is not None:
            charge = written_fraction(body["charge"], "charge")
            self.charged[analyst] = self.charged.get(analyst, Fraction(0)) + charge
            self._by_analyst.setdefault(analyst, []).append(spending)
            if analyst in self._alone:
                self._alone[analyst].record(spending)
        return spending
