"""One dataset as a value: what its entries amount to, and what it grants.

A state is never changed. A request computes the next one, which is written in the transaction of
its entry (`totals.py`), so that a refused or failed request leaves no trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from quiltwork.beliefs import Belief
from quiltwork.budget import Accountant, Spending
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.growth import (
    check_growth,
    grown,
    growth_fits,
    longest_length,
    refusal,
)
from quiltwork.budget.accounting.worst_point import FoundTotal, Secrets
from quiltwork.budget.ledger.account_rows import NOTHING_KEPT, Kept
from quiltwork.budget.ledger.ahead import Ahead, can_wait, everything, highest
from quiltwork.budget.ledger.entries import Entry, Head, damaged, reading
from quiltwork.budget.ledger.records import Share, Status, read_beliefs, read_share
from quiltwork.budget.ledger.shares import refuse_above_cap, refuse_reserved, unused_by_others
from quiltwork.errors import BudgetExceeded, QuiltworkError, StorageError
from quiltwork.exact import float_down, float_up, integer, written_fraction
from quiltwork.lazy import cached_property

_ROUNDING = Fraction(1, 10**9)
_ROUNDING_OF_TOTALS = Fraction(1, 2**26)
_ABOVE = (
    "Nothing more is granted from it. Earlier versions let series grow without pricing what was "
    "released from their beginning, and a bound that was corrected since can be higher."
)
"""Why an honest ledger may be above a budget."""
_HALVINGS = 40
"""How far below the largest level of noise a safe one is looked for, where it is not safe."""


@dataclass(frozen=True)
class Analyst:
    """One analyst of a dataset: her share, what she was charged, and her own releases alone.

    Where entries were added up, `held_to` is the cap that her last debit was granted under.
    """

    share: Share | None = None
    charged: Fraction = Fraction(0)
    kept: Kept = NOTHING_KEPT
    held_to: Fraction | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Grant:
    """A debit that fits, and the account with it.

    `charge` is by how much it raises the total; None where nobody asked, because finding out takes
    longer than finding out that it fits; then nobody may have needed the `account` either. It is
    for the dataset as it was `given`; `safe` is the level that is known to be safe, and no time
    point is charged more than `peak`.
    """

    spending: Spending
    account: Account | None
    analyst: str | None
    charge: Fraction | None
    given: DatasetState
    safe: Fraction | None
    peak: Fraction


@dataclass(frozen=True, eq=False)
class DatasetState:
    """A dataset with everything up to its entry `last`.

    `created` is the number of its first entry. `base` has the releases that are in the rows of
    levels, which `kept` binds, and `ahead` those after them; `digest` binds the rows of analysts.
    What spends at most the `safe` level on every time point fits the budget; None if nobody has
    looked for it yet. If it is known what is `found` in all debits, and where `earlier` ones can
    be read, so it is of the `account`.
    """

    name: str
    created: int
    last: Head
    budget: Fraction
    episode: int
    base: Account
    ahead: Ahead
    kept: Kept = NOTHING_KEPT
    analysts: Mapping[str, Analyst] = field(default_factory=dict)
    digest: int = 0
    retired: str | None = None
    safe: Fraction | None = None
    found: FoundTotal | None = None
    earlier: Callable[[], tuple[Spending, ...]] | None = None

    @cached_property
    def account(self) -> Account:
        """The account of all releases."""
        spendings = [debit.spending for debit in self.ahead.debits]
        account = self.base.plus(spendings) if spendings else replace(self.base)
        if self.earlier is not None:
            account = account.kept(self.earlier)
        return account.knowing(self.found or (None if spendings else self.base.known))

    def with_account(self, account: Account) -> DatasetState:
        """This state, of which the account is known from elsewhere."""
        self.__dict__["account"] = account
        return self

    @property
    def accountant(self) -> Accountant:
        """An accountant of all releases, with the dataset's beliefs, length and budget."""
        return Accountant.of(self.account, self.budget, self.episode)

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """What an adversary may believe."""
        return tuple(bound.belief for bound in self.base.secrets.bounds)

    @property
    def by_levels(self) -> bool:
        """Whether the levels of time points are all that counts, under each belief."""
        return all(one.by_levels for one in self.base.secrets.bounds)

    @property
    def tells(self) -> bool:
        """Whether levels are all that counts for another debit, and the dataset is open."""
        levels = self.base.latest in (None, "levels") and not self.base.by_theorem_3_6
        return self.retired is None and levels and self.by_levels

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.base.secrets.length

    @property
    def shares(self) -> dict[str, Share]:
        """Caps and reserved shares of those who were given any."""
        found = ((name, analyst.share) for name, analyst in self.analysts.items())
        return {name: share for name, share in found if share is not None}

    @property
    def charged(self) -> dict[str, Fraction]:
        """By how much the debits of each analyst raised the total."""
        waiting = {debit.analyst for debit in self.ahead.debits}
        found = self.analysts.items()
        return {name: one.charged for name, one in found if one.kept.count or name in waiting}

    @property
    def status(self) -> Status:
        """The dataset at a glance."""
        return Status(
            dataset=self.name,
            beliefs=self.beliefs,
            length=self.length,
            exact_budget=self.budget,
            exact_total=self.account.total,
            debits=self.account.count,
            shares=self.shares,
            charged=self.charged,
            retired=self.retired,
            episode=self.episode,
        )

    def longer(self, length: int) -> Account:
        """The account in a series of another length."""
        return grown(self.account, length, self.episode)

    def check_growth(self, length: int, alone: Callable[[str], Account]) -> Account:
        """Check that all debits still fit in a longer series; return the account in it.

        They are priced as one debit is: against the budget less what is reserved and not yet used,
        and those of each analyst, whom `alone` finds, against her cap.

        Raises:
            BudgetExceeded: if they do not fit; it names the longest length that does.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows.
        """
        check_growth(self.beliefs, self.length, length)
        found: dict[int, Account] = {self.length: self.account}

        def after(points: int) -> Account:
            return found.setdefault(points, self.longer(points))

        def fits(points: int) -> bool:
            return self._growth_limit(after(points), alone) is None

        limit = None if length == self.length else self._growth_limit(after(length), alone)
        if limit is not None:
            longest = longest_length(fits, self.length, length - 1)
            raise BudgetExceeded(
                refusal(
                    f" from {self.name!r}",
                    float_up(self.account.total),
                    float_up(after(length).total),
                    limit,
                    (self.length, length, longest),
                )
            )
        return after(length)

    def _growth_limit(self, after: Account, alone: Callable[[str], Account]) -> str | None:
        """The limit that this longer series would exceed; None if it exceeds none."""
        kept = unused_by_others(self.shares, self.charged, None)
        if not growth_fits(self.account, after, self.budget - kept):
            reserved = f", of which {float_up(kept):.9g} is reserved" if kept else ""
            return f"the budget of {float_down(self.budget):.9g}{reserved}"
        for name, share in self.shares.items():
            if share.cap is not None and not after.fits(share.cap):
                own = alone(name)
                longer = grown(own, after.secrets.length, self.episode)
                if not growth_fits(own, longer, share.cap):
                    return f"the cap of {name!r}, {float_down(share.cap):.9g}"
        return None

    def check(self, spendings: Sequence[Spending], account: Account | None = None) -> Account:
        """Check that debits fit the budget together; return the account with them.

        It may be given, if it is known already.

        Raises:
            BudgetExceeded: if they do not, or the dataset is retired.
            InvalidInputError: for a window outside the series.
            UnsupportedError: if no theorem combines them with what was released before.
        """
        if self.retired is not None:
            raise BudgetExceeded(
                f"Dataset {self.name!r} is retired ({self.retired}): nothing more is released "
                "from it."
            )
        account = self.account.plus(spendings) if account is None else account
        if not account.fits(self.budget):
            raise self._exceeded(account)
        return account

    def granted_at_once(self, spending: Spending, *, checked: bool) -> Grant | None:
        """Grant a debit that fits whatever its time points are, without adding it to the account.

        If everything charged is within the budget, or no time point is charged more than is safe,
        or it was `checked` with others. None if that does not say, or there are analysts; then
        `grant` does.
        """
        if not self._bounds([spending]):
            return None
        peak = self.ahead.peak_with(self.base, spending)
        total = self.ahead.total + everything(spending)
        if not checked and total > self.budget and peak > (self.safe or 0):
            return None
        return Grant(spending, None, None, None, self, self.safe, peak)

    def _bounds(self, spendings: Sequence[Spending]) -> bool:
        """Whether debits are such as the bounds of the dataset's own row are about."""
        inside = all(one.stop <= self.length and can_wait(one) for one in spendings)
        return inside and not self.analysts and self.tells

    def are_clear(self, spendings: Sequence[Spending]) -> bool:
        """Whether debits fit by what the dataset's own row bounds, wherever their windows are."""
        total = self.ahead.total + sum(map(everything, spendings))
        peak = self.ahead.peak + sum(map(highest, spendings))
        return self._bounds(spendings) and (total <= self.budget or peak <= (self.safe or 0))

    def grant(
        self,
        spending: Spending,
        analyst: str | None,
        alone: Callable[[], Account] | None,
        *,
        checked: bool = False,
        account: Account | None = None,
    ) -> Grant:
        """Price a debit and check that it fits; `alone` finds the account of its analyst.

        It fits the budget if it was `checked` together with others: fewer releases tell no more.
        The `account` with it may be given, if it is known already.

        Raises:
            BudgetExceeded: if it exceeds the budget, a cap or what is reserved, or the dataset is
                retired.
            InvalidInputError: for a window outside the series.
            UnsupportedError: if no theorem combines it with what was released before.
        """
        if account is None:
            account = self.account.plus([spending])
        if not checked:
            self.check([spending], account)
        kept = unused_by_others(self.shares, self.charged, analyst)
        charge, safe = None, self.safe
        peak = max(self.ahead.peak, account.usage.highest(spending.start, spending.stop))
        if kept or analyst is not None:
            total = min(account.total, self.budget)
            charge = max(Fraction(0), total - self.account.total)
            refuse_reserved(self.name, kept, total, self.budget)
        elif account.known is not None:
            safe = self._looked_for()
        known = Analyst() if analyst is None else self.analysts.get(analyst, Analyst())
        cap = None if known.share is None else known.share.cap
        if analyst is not None and alone is not None and cap is not None:
            charged = known.charged + (charge or 0)
            if charged > cap or account.total > cap:
                # otherwise hers tell no more: they are among all
                own = alone().plus([spending])
                if charged > cap or not own.fits(cap):
                    refuse_above_cap(analyst, cap, charged, own.total)
        return Grant(spending, account, analyst, charge, self, safe, peak)

    def _looked_for(self) -> Fraction | None:
        """The highest level that is safe; looked for once, where it is swept.

        It saves the next debits looking for the worst time point, and costs about as much as
        finding the noise of a release.
        """
        secrets = self.base.secrets
        if self.safe is not None or not all(one.swept for one in secrets.bounds):
            return self.safe
        most = self.budget
        for one in secrets.bounds:
            highest = one.largest_level(secrets.nodes, self.episode, float_down(self.budget))
            if highest is not None and math.isfinite(highest):
                most = min(most, Fraction(highest))
        level = Fraction(float_down(most * (1 - 2 * _ROUNDING_OF_TOTALS)))
        for _ in range(_HALVINGS):
            if self.is_safe_level(level):
                return level
            level /= 2
        return Fraction(0)

    def is_safe_level(self, level: Fraction) -> bool:
        """Whether the budget is kept by whatever spends at most this on any time point.

        Theorem: docs/theory/ledger.md
        """
        flat = Account(self.base.secrets).plus([Spending.dp(level, 1, self.length)])
        return flat.total <= self.budget * (1 - _ROUNDING_OF_TOTALS)

    def price(self, spending: Spending) -> Fraction | None:
        """Return the total with a debit, whether it fits or not; None if no theorem says."""
        try:
            return self.account.plus([spending]).total
        except QuiltworkError:
            return None

    def check_budget(self) -> None:
        """Check that what was granted fits the budget.

        Raises:
            StorageError: if it does not, by more than rounding can explain.
        """
        total = self.account.total
        if total > self.budget * (1 + _ROUNDING) and not self.account.fits(self.budget):
            raise StorageError(
                f"The debits of {self.name!r} cost {float_up(total):.9g} together, above the "
                f"budget of {float_down(self.budget):.9g}, as this version of quiltwork prices "
                f"them. {_ABOVE}"
            )

    def _exceeded(self, account: Account) -> BudgetExceeded:
        before = self.account.total
        if before > self.budget * (1 + _ROUNDING):
            return BudgetExceeded(
                f"What was released from {self.name!r} costs {float_up(before):.9g} as this "
                f"version of quiltwork prices it, above the budget of "
                f"{float_down(self.budget):.9g}. {_ABOVE}"
            )
        return BudgetExceeded(
            f"This would raise the total of {self.name!r} from {float_up(before):.9g} to "
            f"{float_up(account.total):.9g}, above the budget of {float_down(self.budget):.9g}; "
            f"{max(0.0, float_down(self.budget - before)):.9g} is left. Nothing was recorded. Ask "
            "for more noise or a shorter window."
        )


def replayed(name: str, entries: Iterable[Entry]) -> tuple[DatasetState, dict[str, Account]]:
    """Add up a dataset's entries, in order; never refuses what was granted.

    Returns its state and the account of each analyst's releases alone. Cost: all entries.

    Raises:
        StorageError: if an entry is damaged.
    """
    found: _Replay | None = None
    for entry in entries:
        if entry.kind == "create" and found is None:
            with reading(entry):
                found = _Replay(entry, entry.content)
        elif found is None:
            raise damaged(entry, "it is from before its dataset was created")
        else:
            with reading(entry):
                found.take_in(entry, entry.content)
    if found is None:
        raise StorageError(f"The ledger has no entries of dataset {name!r}.")
    return found.dataset(name)


class _Replay:
    """What has been read of a dataset's entries."""

    def __init__(self, entry: Entry, body: Mapping[str, Any]) -> None:
        self.created = self.last = self.sized = entry
        self.budget = written_fraction(body["budget"], "budget")
        self.episode = body.get("episode", 1)
        self.secrets = Secrets.read(read_beliefs(body), body["length"], self.episode)
        self.length = self.secrets.length
        self.retired: str | None = None
        self.analysts: dict[str, Analyst] = {}
        self.spendings: dict[str | None, list[Spending]] = {None: []}

    def take_in(self, entry: Entry, body: Mapping[str, Any]) -> None:
        """Follow one entry after the first."""
        self.last = entry
        match entry.kind:
            case "extend":
                check_growth(self.beliefs, self.length, integer(body["length"], "length", 1))
                self.length, self.sized = body["length"], entry
            case "allot":
                name = _analyst(body["analyst"])
                known = self.analysts.get(name, Analyst())
                self.analysts[name] = replace(known, share=read_share(body))
            case "debit":
                self._debit(Spending.from_body(body["spending"]), body)
            case "retire":
                self.retired = str(body["reason"])

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        return tuple(bound.belief for bound in self.secrets.bounds)

    def _debit(self, spending: Spending, body: Mapping[str, Any]) -> None:
        self.spendings[None].append(spending)
        if body["analyst"] is not None:
            name = _analyst(body["analyst"])
            known = self.analysts.get(name, Analyst())
            charged = known.charged + written_fraction(body["charge"], "charge")
            cap = None if known.share is None else known.share.cap
            self.analysts[name] = replace(known, charged=charged, held_to=cap)
            self.spendings.setdefault(name, []).append(spending)

    def dataset(self, name: str) -> tuple[DatasetState, dict[str, Account]]:
        """Add everything up at once, in the series as long as it is in the end."""
        with reading(self.sized):
            secrets = Secrets.read(self.beliefs, self.length, self.episode)
        with reading(self.last):
            accounts = {who: Account(secrets).plus(own) for who, own in self.spendings.items()}
        alone = {who: account for who, account in accounts.items() if who is not None}
        kept = {who: Kept.of(account)[0] for who, account in accounts.items()}
        analysts = {
            who: replace(one, kept=kept.get(who, NOTHING_KEPT))
            for who, one in self.analysts.items()
        }
        found = DatasetState(
            name=name,
            created=self.created.seq,
            last=Head(self.last.seq, self.last.hash),
            budget=self.budget,
            episode=self.episode,
            base=accounts[None],
            ahead=Ahead(self.last.seq, accounts[None].usage.total, kept[None].peak),
            kept=kept[None],
            analysts=analysts,
            retired=self.retired,
        )
        return found, alone


def _analyst(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError("an analyst without a name")
    return name
