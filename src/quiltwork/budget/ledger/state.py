"""One dataset as a value: what its entries amount to, and what it grants.

`folded` adds entries to a state; there is no other way to one. A state is never changed and is
known by its last entry, whose hash covers all before it, so whoever remembers one can tell from the
log whether it still holds. Cost: exact additions, some microseconds for each debit; a debit is
priced when it is granted, not when it is read.

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
from quiltwork.budget.accounting.growth import (
    check_growth,
    grown,
    growth_fits,
    longest_length,
    refusal,
)
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.ledger.bounds import RecordedBound, dearer, is_above
from quiltwork.budget.ledger.claims import AnyAccount, AnyAccountant, Claim
from quiltwork.budget.ledger.entries import Entry, Head, damaged, reading
from quiltwork.budget.ledger.records import Share, Status, read_beliefs, read_share, share_body
from quiltwork.budget.ledger.shares import (
    check_named,
    refuse_above_cap,
    refuse_reserved,
    unused_by_others,
)
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from quiltwork.exact import integer, parse_stored_fraction


@dataclass(frozen=True)
class Analyst:
    """One analyst of a dataset: her share, what she was charged, and her own releases alone.

    `held_to` is the cap that her last debit was granted under.
    """

    account: AnyAccount
    share: Share | None = None
    charged: Fraction = Fraction(0)
    held_to: Fraction | None = None

    @property
    def cap(self) -> Fraction | None:
        """The most that may be debited for her."""
        return None if self.share is None else self.share.cap


@dataclass(frozen=True)
class Grant:
    """Debits that fit together: by how much each raises the total, and the account with all.

    A charge is None where nobody has a share, and so nobody asked. The bound told that they fit.
    """

    charges: tuple[Fraction | None, ...]
    account: AnyAccount
    bound: RecordedBound


@dataclass(frozen=True, eq=False)
class DatasetState:
    """A dataset with everything up to its entry `head`, the last but for answers and notes.

    Attributes:
        name: of the dataset.
        created: the number of its first entry.
        head: number and hash of the last.
        steps: how many entries there are.
        claim: what is promised, and so what all releases together may spend.
        episode: how many time points in a row are one secret.
        account: of all releases.
        analysts: by name, everybody who has a share or was debited for.
        retired: why it is closed; None while it is open.
        mark: of the data that were registered last.
        oldest: the oldest version of bounds that granted something.
        kept: how many entries its snapshot has.
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
    oldest: int | None = None
    kept: int = 0

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """What an adversary may believe."""
        return tuple(bound.belief for bound in self.account.secrets.bounds)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.account.secrets.length

    @property
    def shares(self) -> dict[str, Share]:
        """Caps and reserved shares of those who were given any."""
        found = ((name, analyst.share) for name, analyst in self.analysts.items())
        return {name: share for name, share in found if share is not None}

    @property
    def charged(self) -> dict[str, Fraction]:
        """By how much the debits of each analyst raised what is spent."""
        return {who: one.charged for who, one in self.analysts.items() if one.account.count}

    @property
    def status(self) -> Status:
        """The dataset at a glance."""
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

    @property
    def limit(self) -> Fraction:
        """What all releases together may spend: of ε, or of the caps of (ε, δ)."""
        return self.claim.limit

    def accountant(self, earlier: Callable[[], tuple[Spending, ...]]) -> AnyAccountant:
        """An accountant of all releases, which are found by a function when they are asked for."""
        return self.claim.accountant(self.account.kept(earlier), self.episode)

    def analyst(self, name: str) -> Analyst:
        """What is known of an analyst; nothing yet, if she is new."""
        return self.analysts.get(name) or Analyst(self.account.nothing())

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

        Cost: one pricing, which levels may save; where there are analysts one for each debit.

        Raises:
            BudgetExceeded: if they exceed the budget, a cap or what is reserved, or the dataset is
                retired.
            InvalidInputError: for a window outside the series.
            NotAllottedError: if others have caps and this analyst has no share.
            UnsupportedError: if no theorem combines them with what was released before.
        """
        check_named(self.name, self.shares, analyst)
        if self.retired is not None:
            raise BudgetExceeded(
                f"Dataset {self.name!r} is retired ({self.retired}): nothing more is released "
                "from it."
            )
        after = self.account.plus(spendings)
        try:
            return self._priced(spendings, analyst, after)
        except BudgetExceeded as refusal:
            if is_above(self.account, self.limit):
                raise BudgetExceeded(self._dearer()) from None
            end = partial(self._what_fits, spendings, analyst)
            raise BudgetExceeded(refusal.reason, end) from None

    def _priced(
        self, spendings: Sequence[Spending], analyst: str | None, after: AnyAccount
    ) -> Grant:
        """Check that debits fit together, with which the account is `after`."""
        if not after.fits(self.limit):
            raise self._exceeded(after)
        reserved = unused_by_others(self.shares, self.charged, analyst)
        charges: tuple[Fraction | None, ...] = (None,) * len(spendings)
        if reserved or analyst is not None:
            refuse_reserved(self.name, reserved, min(after.spent, self.limit), self.claim)
            charges = self._charges(spendings, after)
        if analyst is not None:
            self._check_cap(self.analyst(analyst), analyst, spendings, charges, after)
        return Grant(charges, after, RecordedBound.of(after, self.limit))

    def _charges(self, spendings: Sequence[Spending], after: AnyAccount) -> tuple[Fraction, ...]:
        """By how much each debit raises what is spent; `after` is the account with all."""
        account, totals = self.account, [self.account.spent]
        for one in spendings[:-1]:
            account = account.plus([one])
            totals.append(account.spent)
        totals.append(after.spent)
        within = (min(total, self.limit) for total in totals)
        return tuple(max(Fraction(0), b - a) for a, b in pairwise(within))

    def _check_cap(
        self,
        known: Analyst,
        name: str,
        spendings: Sequence[Spending],
        charges: Sequence[Fraction | None],
        after: AnyAccount,
    ) -> None:
        """Refuse debits that take an analyst above her cap, by charge or by her own answers."""
        cap = known.cap
        if cap is None:
            return
        charged = known.charged + sum((one or Fraction(0) for one in charges), Fraction(0))
        if charged <= cap and after.spent <= cap:
            return  # hers are among all, and tell no more
        own = known.account.plus(spendings)
        if charged > cap or not own.fits(cap):
            refuse_above_cap(name, cap, max(charged, own.spent), self.claim)

    def check_growth(self, length: int) -> AnyAccount:
        """Check that all debits still fit in a longer series; return the account in it.

        They are priced as one debit is: against the budget less what is reserved and not yet used,
        and those of each analyst against her cap.

        Raises:
            BudgetExceeded: if they do not fit; it names the longest length that does.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows.
        """
        check_growth(self.beliefs, self.length, length)
        found: dict[int, AnyAccount] = {self.length: self.account}

        def after(points: int) -> AnyAccount:
            if points not in found:
                longer = grown(self.account.secrets, points, self.episode)
                found[points] = self.account.seen_by(longer)
            return found[points]

        def fits(points: int) -> bool:
            return self._growth_limit(after(points)) is None

        limit = None if length == self.length else self._growth_limit(after(length))
        if limit is not None:
            longest = longest_length(fits, self.length, length - 1)
            raise BudgetExceeded(
                refusal(
                    f" from {self.name!r}",
                    (self.claim.shown(self.account.spent), self.claim.shown(after(length).spent)),
                    limit,
                    (self.length, length, longest),
                )
            )
        return after(length)

    def _growth_limit(self, after: AnyAccount) -> str | None:
        """The limit that this longer series would exceed; None if it exceeds none.

        What is above a share already, because that was lowered or reserved since, may stay.
        """
        kept = unused_by_others(self.shares, self.charged, None)
        free = max(self.limit - kept, min(self.account.spent, self.limit))
        if not growth_fits(self.account, after, free):
            reserved = f", of which {self.claim.shown(kept)} is reserved" if kept else ""
            return f"{self.claim.whole}{reserved}"
        for name, known in self.analysts.items():
            if known.cap is not None and not after.fits(known.cap):
                longer = known.account.seen_by(after.secrets)
                if not growth_fits(known.account, longer, max(known.cap, known.account.spent)):
                    return f"the cap of {name!r}, {self.claim.shown(known.cap, up=False)}"
        return None

    def check_budget(self) -> None:
        """Check that what was granted fits the budget.

        Raises:
            StorageError: if it does not, by more than rounding can explain.
        """
        if is_above(self.account, self.limit):
            raise StorageError(self._dearer())

    def _dearer(self) -> str:
        return dearer(self.name, self.account.spent, self.claim, self.oldest or 0)

    def _exceeded(self, account: AnyAccount) -> BudgetExceeded:
        shown, before = self.claim.shown, self.account.spent
        return BudgetExceeded(
            f"This would raise the total of {self.name!r} from {shown(before)} to "
            f"{shown(account.spent)}, above {self.claim.whole}; "
            f"{shown(self.limit - before, up=False)} is left. Nothing was recorded."
        )

    def _what_fits(self, refused: Sequence[Spending], analyst: str | None) -> str:
        def grants(spendings: Sequence[Spending]) -> bool:
            try:
                self._priced(spendings, analyst, self.account.plus(spendings))
            except BudgetExceeded:
                return False
            return True

        return self.claim.what_fits(self.account, refused, grants)

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values, but for what its first entry says."""
        analysts = {
            who: {
                "share": None if one.share is None else share_body(who, one.share),
                "charged": str(one.charged),
                "held_to": None if one.held_to is None else str(one.held_to),
                "account": one.account.to_body(),
            }
            for who, one in self.analysts.items()
        }
        return {
            "created": self.created,
            "head": [self.head.count, self.head.hash],
            "steps": self.steps,
            "length": self.length,
            "retired": self.retired,
            "mark": self.mark,
            "oldest": self.oldest,
            "account": self.account.to_body(),
            "analysts": analysts,
        }

    def with_body(self, body: Mapping[str, Any]) -> DatasetState:
        """Read what `to_body` wrote, of the dataset that begins as this one.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: if it is something else.
        """
        secrets = self.account.secrets
        if body["length"] != secrets.length:
            secrets = grown(secrets, body["length"], self.episode)
        read = self.account.nothing().with_body
        analysts = {
            who: Analyst(
                read(one["account"], secrets),
                None if one["share"] is None else read_share(one["share"]),
                parse_stored_fraction(one["charged"], "charged"),
                None
                if one["held_to"] is None
                else parse_stored_fraction(one["held_to"], "held_to"),
            )
            for who, one in body["analysts"].items()
        }
        number, digest = body["head"]
        return replace(
            self,
            head=Head(int(number), str(digest)),
            steps=int(body["steps"]),
            account=read(body["account"], secrets),
            analysts=analysts,
            retired=body["retired"],
            mark=body["mark"],
            oldest=body["oldest"],
            kept=int(body["steps"]),
        )


def begun(entry: Entry) -> DatasetState:
    """The state of a dataset after its first entry.

    Raises:
        StorageError: if the entry is no beginning, or damaged.
    """
    if entry.kind != "create":
        raise damaged(entry, "it is from before its dataset was created")
    body = entry.content
    with reading(entry):
        claim, episode = Claim.from_body(body), body.get("episode", 1)
        pairs = pairs_from_json(body.get("pairs"))
        subjects = Secrets.read(read_beliefs(body), body["length"], episode, pairs)
        account = claim.account(subjects)
        head = Head(entry.seq, entry.hash)
        return DatasetState(entry.dataset, entry.seq, head, 1, claim, episode, account)


def folded(
    state: DatasetState, entries: Iterable[Entry], account: AnyAccount | None = None
) -> DatasetState:
    """Add a dataset's next entries to its state; never refuses what was granted. O(entries).

    The `account` with them may be given, if it is known already.

    Raises:
        StorageError: if an entry is damaged, or one between them is missing.
    """
    fold = _Fold(state)
    for entry in entries:
        with reading(entry):
            fold.take(entry, entry.content)
    return fold.state(account)


class _Fold:
    """Entries being added up: debits together, because one addition for many is much quicker."""

    def __init__(self, state: DatasetState) -> None:
        self._before = state
        self._last = self._sized = Entry(state.head.count, "", state.name, "", "", state.head.hash)
        self._steps, self._length = state.steps, state.length
        self._retired, self._mark, self._oldest = state.retired, state.mark, state.oldest
        self._analysts = dict(state.analysts)
        self._spent: dict[str | None, list[Spending]] = {}

    def take(self, entry: Entry, body: Mapping[str, Any]) -> None:
        """Follow one entry; every kind that changes what is granted is named here."""
        if body["after"] != self._last.seq:
            raise damaged(entry, f"it follows entry {body['after']} of its dataset, not that")
        match entry.kind:
            case "debit":
                self._debit(Spending.from_body(body["spending"]), body)
            case "extend":
                length = integer(body["length"], "length", 1)
                check_growth(self._before.beliefs, self._length, length)
                self._length, self._sized = length, entry
                self._granted(RecordedBound.from_body(body["bound"]))
            case "allot":
                name = _analyst(body["analyst"])
                self._analysts[name] = replace(self._known(name), share=read_share(body))
            case "register":
                self._mark = str(body["mark"])
            case "retire":
                self._retired = str(body["reason"])
            case "reopen":
                self._retired = None
            case _:
                raise damaged(entry, f"nothing of kind {entry.kind!r} is ever written")
        self._last, self._steps = entry, self._steps + 1

    def _known(self, name: str) -> Analyst:
        return self._analysts.get(name) or self._before.analyst(name)

    def _debit(self, spending: Spending, body: Mapping[str, Any]) -> None:
        self._granted(RecordedBound.from_body(body["bound"]))
        self._spent.setdefault(None, []).append(spending)
        if body["analyst"] is not None:
            name = _analyst(body["analyst"])
            known, charge = self._known(name), parse_stored_fraction(body["charge"], "charge")
            self._analysts[name] = replace(known, charged=known.charged + charge, held_to=known.cap)
            self._spent.setdefault(name, []).append(spending)

    def _granted(self, bound: RecordedBound) -> None:
        self._oldest = bound.version if self._oldest is None else min(self._oldest, bound.version)

    def state(self, account: AnyAccount | None) -> DatasetState:
        """The state after what was taken, in the series as long as it is in the end."""
        before = self._before
        secrets = (account or before.account).secrets
        if self._length != secrets.length:
            with reading(self._sized):
                secrets = grown(secrets, self._length, before.episode)

        def added(account: AnyAccount, spent: Sequence[Spending]) -> AnyAccount:
            seen = account if account.secrets is secrets else account.seen_by(secrets)
            return seen.plus(spent).kept(None) if spent else seen

        with reading(self._last):
            if account is None:
                account = added(before.account, self._spent.get(None, []))
            analysts = {
                who: one
                if one.account.secrets is secrets and who not in self._spent  # nothing changed
                else replace(one, account=added(one.account, self._spent.get(who, [])))
                for who, one in self._analysts.items()
            }
        return replace(
            before,
            head=Head(self._last.seq, self._last.hash),
            steps=self._steps,
            account=account.kept(None),
            analysts=analysts,
            retired=self._retired,
            mark=self._mark,
            oldest=self._oldest,
        )


def _analyst(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError("an analyst without a name")
    return name
