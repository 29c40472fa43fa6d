"""The state of one dataset: what its log entries add up to, and which debits it grants.

A state is made by one fold over all entries of the dataset (`initial_state`, then `fold`). It is
immutable and identified by the hash of its last entry, which covers every entry before it, so
anybody who cached a state can check against the log that it is current. Cost: exact additions, some
microseconds per debit; a debit is priced when it is granted, not when it is read.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from quiltwork.beliefs import Belief
from quiltwork.beliefs.secrets import pairs_from_json
from quiltwork.budget import Spending
from quiltwork.budget.accounting.growth import check_length, extended, fits_when_longer, of_length
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.claims import (
    AnyAccount,
    AnyAccountant,
    Claim,
    RecordedBound,
    exceeds_limit,
    over_budget_message,
)
from quiltwork.budget.ledger.entries import Entry, Head, damaged, reading
from quiltwork.budget.ledger.ledger_records import (
    Share,
    Status,
    read_beliefs,
    read_share,
    share_body,
)
from quiltwork.budget.ledger.shares import (
    check_named,
    refuse_above_cap,
    refuse_reserved,
    reserved_for_others,
)
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from quiltwork.exact import integer, parse_stored_fraction


@dataclass(frozen=True)
class Analyst:
    """One analyst of a dataset.

    Attributes:
        account: of this analyst's releases alone.
        share: cap and reserved part; None if none was allotted.
        charged: by how much this analyst's debits raised the joint total.
        granted_under: the cap at the time of the last debit.
    """

    account: AnyAccount
    share: Share | None = None
    charged: Fraction = Fraction(0)
    granted_under: Fraction | None = None

    @property
    def cap(self) -> Fraction | None:
        """The most that may be debited for this analyst; None for no cap."""
        return None if self.share is None else self.share.cap


@dataclass(frozen=True)
class Grant:
    """Debits that fit together.

    Attributes:
        charges: by how much each raises the total; None where no share makes that necessary.
        account: with all of them.
        bound: that shows that they fit.
    """

    charges: tuple[Fraction | None, ...]
    account: AnyAccount
    bound: RecordedBound


@dataclass(frozen=True, eq=False)
class DatasetState:
    """A dataset after its entry `head`, the last one that is neither an answer nor a note.

    Attributes:
        name: of the dataset.
        created: number of its first entry.
        head: number and hash of its last entry.
        steps: number of its entries.
        claim: the privacy claim, hence what all releases together may spend.
        episode: how many time points in a row are one secret.
        account: of all releases.
        analysts: by name, everyone with a share or a debit.
        retired: why the dataset is closed; None while it is open.
        mark: of the data that were registered last.
        oldest_version: the oldest version of bounds that granted a debit.
        snapshot_steps: how many entries its snapshot covers.
    """

    name: str
    created: int
    head: Head
    steps: int
    claim: Claim
    episode: int
    account: AnyAccount
    analysts: Mapping[str, Analyst] = field(default_factory=dict)
    retired: str | None = None
    mark: str | None = None
    oldest_version: int | None = None
    snapshot_steps: int = 0

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """What an adversary may believe."""
        return tuple(bound.belief for bound in self.account.secrets.bounds)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.account.secrets.length

    @property
    def limit(self) -> Fraction:
        """The most that all releases may spend: of ε, or for (ε, δ) of the caps."""
        return self.claim.limit

    @property
    def shares(self) -> dict[str, Share]:
        """Caps and reserved parts by analyst, of those who were allotted any."""
        allotted = ((name, analyst.share) for name, analyst in self.analysts.items())
        return {name: share for name, share in allotted if share is not None}

    @property
    def charged(self) -> dict[str, Fraction]:
        """By how much the debits of each analyst raised the total."""
        return {
            name: analyst.charged
            for name, analyst in self.analysts.items()
            if analyst.account.count
        }

    @property
    def status(self) -> Status:
        """A summary of the dataset for users."""
        return Status(
            dataset=self.name,
            beliefs=self.beliefs,
            length=self.length,
            exact_budget=self.claim.budget,
            exact_total=self.account.total,
            exact_delta=self.claim.delta,
            exact_used=self.account.spent / self.limit,
            debits=self.account.count,
            shares=self.shares,
            charged=self.charged,
            retired=self.retired,
            episode=self.episode,
            pairs=self.account.secrets.pairs,
        )

    def accountant(self, read_history: Callable[[], tuple[Spending, ...]]) -> AnyAccountant:
        """Return an accountant of all releases, which `read_history` loads when they are needed."""
        return self.claim.accountant(self.account.with_history(read_history), self.episode)

    def analyst(self, name: str) -> Analyst:
        """Return an analyst's record, an empty one for a new analyst."""
        return self.analysts.get(name) or Analyst(self.account.emptied())

    def refuse_closed(self) -> None:
        """Refuse to change a retired dataset.

        Raises:
            InvalidInputError: if it is retired.
        """
        if self.retired is not None:
            raise InvalidInputError(
                f"Dataset {self.name!r} is retired ({self.retired}), and nothing more is granted "
                "from it: there is nothing to extend or to share out."
            )

    def grant(self, spendings: Sequence[Spending], analyst: str | None) -> Grant:
        """Price debits and check that they fit together.

        Cost: one pricing, which a bound by levels may save; with analysts, one for each debit.

        Raises:
            BudgetExceeded: if they exceed the budget, a cap or what is reserved, or the dataset is
                retired.
            InvalidInputError: for a window outside the series.
            NotAllottedError: if others have caps and this analyst has no share.
            UnsupportedError: if no theorem combines them with the releases before.
        """
        check_named(self.name, self.shares, analyst)
        if self.retired is not None:
            raise BudgetExceeded(
                f"Dataset {self.name!r} is retired ({self.retired}): nothing more is released "
                "from it."
            )
        after = self.account.plus(spendings)
        try:
            return self._granted(spendings, analyst, after)
        except BudgetExceeded as refusal:
            if exceeds_limit(self.account, self.limit):
                raise BudgetExceeded(self._over_budget()) from None
            # Searching for what would fit takes many pricings, so it waits until it is shown.
            advice = partial(self._what_fits, spendings, analyst)
            raise BudgetExceeded(refusal.reason, advice) from None

    def _granted(
        self, spendings: Sequence[Spending], analyst: str | None, after: AnyAccount
    ) -> Grant:
        """Check that debits fit, given the account `after` them."""
        if not after.fits(self.limit):
            raise self._exceeded(after)
        reserved = reserved_for_others(self.shares, self.charged, analyst)
        charges: tuple[Fraction | None, ...] = (None,) * len(spendings)
        if reserved or analyst is not None:
            refuse_reserved(self.name, reserved, min(after.spent, self.limit), self.claim)
            charges = self._charges(spendings, after)
        if analyst is not None:
            self._check_cap(analyst, spendings, charges, after)
        return Grant(charges, after, RecordedBound.of(after, self.limit))

    def _charges(self, spendings: Sequence[Spending], after: AnyAccount) -> tuple[Fraction, ...]:
        """Return by how much each debit raises the total, given the account `after` all."""
        account, totals = self.account, [self.account.spent]
        for spending in spendings[:-1]:
            account = account.plus([spending])
            totals.append(account.spent)
        totals.append(after.spent)
        within = (min(total, self.limit) for total in totals)
        return tuple(max(Fraction(0), later - earlier) for earlier, later in pairwise(within))

    def _check_cap(
        self,
        name: str,
        spendings: Sequence[Spending],
        charges: Sequence[Fraction | None],
        after: AnyAccount,
    ) -> None:
        """Refuse debits that take an analyst above the cap, by charges or by own releases alone."""
        analyst = self.analyst(name)
        cap = analyst.cap
        if cap is None:
            return
        charged = analyst.charged + sum((charge or Fraction(0) for charge in charges), Fraction(0))
        if charged <= cap and after.spent <= cap:
            return  # own releases are a part of all, and cost no more than all
        own = analyst.account.plus(spendings)
        if charged > cap or not own.fits(cap):
            refuse_above_cap(name, cap, max(charged, own.spent), self.claim)

    def account_if_extended(self, length: int) -> AnyAccount:
        """Return the account for a longer series, if all debits still fit there.

        They are priced as one debit is: against the budget less what is reserved and unused, and
        those of each analyst against the cap.

        Raises:
            BudgetExceeded: if they do not fit; the message names the longest length that does.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows.
        """
        return extended(
            self.account,
            length,
            self.episode,
            self._limit_exceeded_when_longer,
            lambda account: self.claim.format_amount(account.spent),
            f" from {self.name!r}",
        )

    def _limit_exceeded_when_longer(self, longer: AnyAccount) -> str | None:
        """Name the limit that the account of a longer series exceeds; None if it exceeds none.

        A total that is above a share already, because that was lowered since, may stay there.
        """
        reserved = reserved_for_others(self.shares, self.charged, None)
        free = max(self.limit - reserved, min(self.account.spent, self.limit))
        if not fits_when_longer(self.account, longer, free):
            part = f", of which {self.claim.format_amount(reserved)} is reserved"
            return f"{self.claim.limit_text}{part if reserved else ''}"
        for name, analyst in self.analysts.items():
            if analyst.cap is not None and not longer.fits(analyst.cap):
                own = analyst.account.with_secrets(longer.secrets)
                if not fits_when_longer(
                    analyst.account, own, max(analyst.cap, analyst.account.spent)
                ):
                    return f"the cap of {name!r}, {self.claim.format_amount(analyst.cap, up=False)}"
        return None

    def check_budget(self) -> None:
        """Check that everything granted still fits the budget.

        Raises:
            StorageError: if it does not, by more than rounding can explain.
        """
        if exceeds_limit(self.account, self.limit):
            raise StorageError(self._over_budget())

    def _over_budget(self) -> str:
        version = self.oldest_version or 0
        return over_budget_message(self.name, self.account.spent, self.claim, version)

    def _exceeded(self, after: AnyAccount) -> BudgetExceeded:
        text, before = self.claim.format_amount, self.account.spent
        return BudgetExceeded(
            f"This would raise the total of {self.name!r} from {text(before)} to "
            f"{text(after.spent)}, above {self.claim.limit_text}; "
            f"{text(self.limit - before, up=False)} is left. Nothing was recorded."
        )

    def _what_fits(self, refused: Sequence[Spending], analyst: str | None) -> str:
        def grants(spendings: Sequence[Spending]) -> bool:
            try:
                self._granted(spendings, analyst, self.account.plus(spendings))
            except BudgetExceeded:
                return False
            return True

        return self.claim.what_fits(self.account, refused, grants)

    def to_body(self) -> dict[str, Any]:
        """Write the state as JSON values, except for what the first entry contains."""
        analysts = {
            name: {
                "share": None if analyst.share is None else share_body(name, analyst.share),
                "charged": str(analyst.charged),
                "held_to": None if analyst.granted_under is None else str(analyst.granted_under),
                "account": analyst.account.to_body(),
            }
            for name, analyst in self.analysts.items()
        }
        return {
            "created": self.created,
            "head": [self.head.count, self.head.hash],
            "steps": self.steps,
            "length": self.length,
            "retired": self.retired,
            "mark": self.mark,
            "oldest": self.oldest_version,
            "account": self.account.to_body(),
            "analysts": analysts,
        }

    def restored(self, body: Mapping[str, Any]) -> DatasetState:
        """Read what `to_body` wrote, for the dataset whose initial state this is.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: for anything else.
        """
        secrets = self.account.secrets
        if body["length"] != secrets.length:
            secrets = of_length(secrets, body["length"], self.episode)
        read_account = self.account.emptied().restored
        analysts = {
            name: Analyst(
                read_account(row["account"], secrets),
                None if row["share"] is None else read_share(row["share"]),
                parse_stored_fraction(row["charged"], "charged"),
                None
                if row["held_to"] is None
                else parse_stored_fraction(row["held_to"], "held_to"),
            )
            for name, row in body["analysts"].items()
        }
        number, digest = body["head"]
        return replace(
            self,
            head=Head(int(number), str(digest)),
            steps=int(body["steps"]),
            account=read_account(body["account"], secrets),
            analysts=analysts,
            retired=body["retired"],
            mark=body["mark"],
            oldest_version=body["oldest"],
            snapshot_steps=int(body["steps"]),
        )


def initial_state(entry: Entry) -> DatasetState:
    """Return the state of a dataset after its first entry.

    Raises:
        StorageError: if the entry creates no dataset, or is damaged.
    """
    if entry.kind != "create":
        raise damaged(entry, "it is from before its dataset was created")
    body = entry.content
    with reading(entry):
        claim, episode = Claim.from_body(body), body.get("episode", 1)
        pairs = pairs_from_json(body.get("pairs"))
        secrets = Secrets.read(read_beliefs(body), body["length"], episode, pairs)
        account = claim.account(secrets)
        head = Head(entry.seq, entry.hash)
        return DatasetState(entry.dataset, entry.seq, head, 1, claim, episode, account)


def fold(
    state: DatasetState, entries: Iterable[Entry], account: AnyAccount | None = None
) -> DatasetState:
    """Add a dataset's next entries to its state. O(entries); refuses nothing that was granted.

    The resulting `account` may be given, if it is known already.

    Raises:
        StorageError: if an entry is damaged, or one between them is missing.
    """
    folding = _Fold(state)
    for entry in entries:
        with reading(entry):
            folding.take(entry, entry.content)
    return folding.state(account)


class _Fold:
    """A fold in progress; collects debits, since one addition of many is much quicker."""

    def __init__(self, state: DatasetState) -> None:
        self._before = state
        self._last = self._resized = Entry(
            state.head.count, "", state.name, "", "", state.head.hash
        )
        self._steps, self._length = state.steps, state.length
        self._retired, self._mark = state.retired, state.mark
        self._oldest_version = state.oldest_version
        self._analysts = dict(state.analysts)
        self._spendings: dict[str | None, list[Spending]] = {}  # under None those of everybody

    def take(self, entry: Entry, body: Mapping[str, Any]) -> None:
        """Process one entry; this is the list of all kinds that change what is granted."""
        if body["after"] != self._last.seq:
            raise damaged(entry, f"it follows entry {body['after']} of its dataset, not that")
        match entry.kind:
            case "debit":
                self._debit(Spending.from_body(body["spending"]), body)
            case "extend":
                length = integer(body["length"], "length", 1)
                check_length(self._before.beliefs, self._length, length)
                self._length, self._resized = length, entry
                self._note_version(RecordedBound.from_body(body["bound"]))
            case "allot":
                name = _analyst_name(body["analyst"])
                self._analysts[name] = replace(self._analyst(name), share=read_share(body))
            case "register":
                self._mark = str(body["mark"])
            case "retire":
                self._retired = str(body["reason"])
            case "reopen":
                self._retired = None
            case _:
                raise damaged(entry, f"nothing of kind {entry.kind!r} is ever written")
        self._last, self._steps = entry, self._steps + 1

    def _analyst(self, name: str) -> Analyst:
        return self._analysts.get(name) or self._before.analyst(name)

    def _debit(self, spending: Spending, body: Mapping[str, Any]) -> None:
        self._note_version(RecordedBound.from_body(body["bound"]))
        self._spendings.setdefault(None, []).append(spending)
        if body["analyst"] is not None:
            name = _analyst_name(body["analyst"])
            analyst, charge = self._analyst(name), parse_stored_fraction(body["charge"], "charge")
            self._analysts[name] = replace(
                analyst, charged=analyst.charged + charge, granted_under=analyst.cap
            )
            self._spendings.setdefault(name, []).append(spending)

    def _note_version(self, bound: RecordedBound) -> None:
        oldest = self._oldest_version
        self._oldest_version = bound.version if oldest is None else min(oldest, bound.version)

    def state(self, account: AnyAccount | None) -> DatasetState:
        """Return the state after the entries, with all releases priced for the final length."""
        before = self._before
        secrets = (account or before.account).secrets
        if self._length != secrets.length:
            with reading(self._resized):
                secrets = of_length(secrets, self._length, before.episode)

        def added(account: AnyAccount, spendings: Sequence[Spending]) -> AnyAccount:
            same = account.secrets is secrets
            account = account if same else account.with_secrets(secrets)
            # The log keeps the releases; an account that kept them too would hold all in memory.
            return account.plus(spendings).with_history(None) if spendings else account

        with reading(self._last):
            if account is None:
                account = added(before.account, self._spendings.get(None, []))
            analysts = {
                name: analyst
                if analyst.account.secrets is secrets and name not in self._spendings
                else replace(analyst, account=added(analyst.account, self._spendings.get(name, [])))
                for name, analyst in self._analysts.items()
            }
        return replace(
            before,
            head=Head(self._last.seq, self._last.hash),
            steps=self._steps,
            account=account.with_history(None),
            analysts=analysts,
            retired=self._retired,
            mark=self._mark,
            oldest_version=self._oldest_version,
        )


def _analyst_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError("an analyst without a name")
    return name
