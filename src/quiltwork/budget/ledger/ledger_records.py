"""Records that a ledger returns (debits, receipts, statuses, quotes, notes), and their JSON bodies.

Exact numbers are stored as text such as "1/10". `docs/reference/ledger.md` describes the schema.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from quiltwork.beliefs import Belief, as_beliefs, beliefs_from_json, beliefs_to_json
from quiltwork.beliefs.secrets import SecretPairs, pairs_to_json
from quiltwork.budget import Spending
from quiltwork.budget.ledger.entries import Entry, reading
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_down, float_up, parse_stored_fraction
from quiltwork.results import ResultBase, plain
from quiltwork.wording import either

State: TypeAlias = Literal["debited", "released"]
NOTES = ("refusal", "read", "act")
"""Kinds of entries that change nothing: they note what somebody did."""


@dataclass(frozen=True)
class Share:
    """One analyst's share of a dataset's budget.

    Attributes:
        cap: the most that may be debited for this analyst; None for no limit but the budget.
        reserved: what others must leave for this analyst.

    >>> Share(cap=Fraction(1, 2)).reserved
    Fraction(0, 1)
    """

    cap: Fraction | None = None
    reserved: Fraction = Fraction(0)


@dataclass(frozen=True)
class Debit(ResultBase):
    """One granted debit.

    Attributes:
        number: of the entry in the log.
        dataset: whose budget was debited.
        at: when, in UTC.
        spending: what was debited; `composes_by` names the theorem that combines it with others.
        state: "debited", or "released" once its answer is stored.
        mechanism: how the answer is made.
        analyst: for whom; None if no analyst was named.
        charge: by how much it raised the total, exactly; recorded where analysts have shares.
        key: the request's idempotency key, if any.
        request: the query, as the release described it.
        hash: of the entry, which covers all before it.
        certificate: the SHA-256 of the certificate stored with it (`Ledger.certificate`), if any.
    """

    number: int
    dataset: str
    at: str
    spending: Spending
    state: State
    mechanism: str
    analyst: str | None = None
    charge: Fraction | None = None
    key: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""
    certificate: str | None = None

    @property
    def composes_by(self) -> str:
        """The theorem that combines it with other releases."""
        return self.spending.composes_by


@dataclass(frozen=True)
class Status(ResultBase):
    """A summary of one dataset.

    Attributes:
        dataset: its name.
        beliefs: what an adversary may believe about it.
        length: its number of time points; None where the belief fixes it.
        exact_budget: the most that all releases together may cost: ε.
        exact_total: what they cost so far; for (ε, δ) all of ε from the first debit on.
        debits: how many were granted.
        shares: caps and reserved shares by analyst, of ε or for (ε, δ) of the caps.
        charged: by how much each named analyst raised the total.
        retired: why no more is granted; None while it is open.
        episode: how many time points in a row are one secret.
        exact_delta: the probability δ left for exceeding ε; 0 for a pure ε.
        exact_used: the share of the budget that is spent, or for (ε, δ) of the caps.
        pairs: the pairs of values of a time point that are kept apart; None for all.
    """

    dataset: str
    beliefs: tuple[Belief, ...]
    length: int | None
    exact_budget: Fraction
    exact_total: Fraction
    debits: int
    shares: Mapping[str, Share]
    charged: Mapping[str, Fraction]
    retired: str | None
    episode: int = 1
    exact_delta: Fraction = Fraction(0)
    exact_used: Fraction = Fraction(0)
    pairs: SecretPairs | None = None

    def body(self) -> dict[str, Any]:
        """Return the status as JSON values."""
        names = ("dataset", "length", "budget", "total", "remaining", "debits", "shares", "charged")
        body = {name: plain(getattr(self, name)) for name in (*names, "retired", "episode")}
        if self.delta:
            body |= {"delta": self.delta, "used": self.used}
        if self.pairs is not None:
            body["pairs"] = pairs_to_json(self.pairs)
        return {**body, "beliefs": [belief.summary() for belief in self.beliefs]}

    @property
    def budget(self) -> float:
        """The budget, rounded down."""
        return float_down(self.exact_budget)

    @property
    def total(self) -> float:
        """The total, rounded up."""
        return float_up(self.exact_total)

    @property
    def remaining(self) -> float:
        """What is left of the budget, or for (ε, δ) the share of the caps; 0 once retired."""
        if self.retired is not None:
            return 0.0
        left = 1 - self.exact_used if self.exact_delta else self.exact_budget - self.exact_total
        return max(0.0, float_down(left))

    @property
    def delta(self) -> float:
        """The probability δ left for exceeding ε; 0 for a pure ε."""
        return float(self.exact_delta)

    @property
    def used(self) -> float:
        """The share of the budget, or of the caps, that is spent; rounded up."""
        return float_up(self.exact_used)


@dataclass(frozen=True)
class Receipt:
    """A granted debit.

    Attributes:
        dataset: whose budget was debited.
        number: of the entry in the log.
        spending: what was debited.
        stored: the answer stored under the same key earlier, byte for byte; None for a new debit.
        hash: of the entry, which covers all before it; "" if made by hand.
        at: when it was granted, in UTC; "" if made by hand.
    """

    dataset: str
    number: int
    spending: Spending
    stored: str | None = None
    hash: str = ""
    at: str = ""
    _store: Callable[[Receipt, str], None] | None = field(default=None, repr=False, compare=False)

    def complete(self, answer: str) -> None:
        """Store the answer, once; it may be shown only afterwards.

        Raises:
            StorageError: if it could not be stored; then do not show it.
        """
        if self._store is not None:
            self._store(self, answer)


@dataclass(frozen=True)
class Quote(ResultBase):
    """What a debit would cost, and whether it would be granted.

    Attributes:
        dataset: whose budget it would be.
        before: the total now, rounded up; for (ε, δ) the share of the caps that is used.
        after: the same with it; None where no theorem prices it.
        budget: the dataset's ε, rounded down.
        refusal: why it would be refused, in a sentence; None if it would be granted.
        composes_by: the theorem that combines it with the releases before.
        delta: the dataset's δ; 0 for a pure ε.
    """

    dataset: str
    before: float
    after: float | None
    budget: float
    refusal: str | None
    composes_by: str
    delta: float = 0.0

    def explain(self) -> str:
        """Return one sentence: the total before and after, or the refusal."""
        if self.refusal is not None:
            return f"It would be refused. {self.refusal}"
        before, after = self.before, self.after or self.before
        if not self.delta:
            return (
                f"The total of {self.dataset!r} would rise from {before:.6g} to {after:.6g}, of a "
                f"budget of {self.budget:.6g}."
            )
        return (
            f"What is used of {self.dataset!r} would rise from {100 * before:.6g} % to "
            f"{100 * after:.6g} % of what ε = {self.budget:.6g} and δ = {self.delta:g} allow."
        )

    @property
    def fits(self) -> bool:
        """Whether it would be granted."""
        return self.refusal is None


@dataclass(frozen=True)
class Note(ResultBase):
    """A note: something that was done and changed no total.

    Attributes:
        number: of the entry in the log.
        at: when, in UTC.
        kind: "refusal" for a debit that was refused, "read", or "act" for anything else.
        dataset: of which dataset; "" for none.
        who: by whom; "" if no name was given.
        text: what was done, or why it was refused.
    """

    number: int
    at: str
    kind: str
    dataset: str
    who: str
    text: str


def read_note(entry: Entry) -> Note:
    """Read a note from its entry.

    Raises:
        StorageError: if the entry is damaged.
    """
    body = entry.content
    with reading(entry):
        fields = (body["at"], entry.kind, entry.dataset, body["who"], body["text"])
    return Note(entry.seq, *fields)


def create_body(
    beliefs: Belief | Sequence[Belief],
    length: int | None,
    claim: Mapping[str, Any],
    episode: int = 1,
    pairs: SecretPairs | None = None,
) -> dict[str, Any]:
    """Write the body of a `create` entry; `claim` is the privacy claim as JSON values."""
    document = json.loads(beliefs_to_json(as_beliefs(beliefs)))
    body = {"beliefs": document, "length": length, **claim}
    body |= {} if episode == 1 else {"episode": episode}
    return body if pairs is None else {**body, "pairs": pairs_to_json(pairs)}


def read_beliefs(body: Mapping[str, Any]) -> tuple[Belief, ...]:
    """Read the beliefs of a `create` body."""
    return beliefs_from_json(json.dumps(body["beliefs"]))


def share_body(analyst: str, share: Share) -> dict[str, Any]:
    """Write an analyst's share as JSON values."""
    cap = None if share.cap is None else str(share.cap)
    return {"analyst": analyst, "cap": cap, "reserved": str(share.reserved)}


def read_share(body: Mapping[str, Any]) -> Share:
    """Read what `share_body` wrote."""
    cap = None if body["cap"] is None else parse_stored_fraction(body["cap"], "cap")
    return Share(cap, parse_stored_fraction(body["reserved"], "reserved"))


def read_debit(entry: Entry, *, released: bool) -> Debit:
    """Read a granted debit from its entry.

    Raises:
        StorageError: if the entry is damaged.
    """
    body = entry.content
    with reading(entry):
        charge = body["charge"]
        return Debit(
            number=entry.seq,
            dataset=entry.dataset,
            at=body["at"],
            spending=Spending.from_body(body["spending"]),
            state="released" if released else "debited",
            mechanism=body["mechanism"],
            analyst=body["analyst"],
            charge=None if charge is None else parse_stored_fraction(charge, "charge"),
            key=body["key"],
            request=body["request"],
            hash=entry.hash,
            certificate=certificate_digest(body.get("certificate")),
        )


def certificate_digest(text: str | None) -> str | None:
    """Return the SHA-256 of a certificate's text; None without one."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def unknown_dataset(dataset: str, existing: list[str]) -> InvalidInputError:
    """Return the error for a dataset that a ledger does not have."""
    names = ", ".join(map(repr, existing[:5])) + (", …" if len(existing) > 5 else "")
    datasets = f"there are {names}" if existing else "there are none yet"
    return InvalidInputError(
        f"The ledger has no dataset {dataset!r}; {datasets}. Create one with "
        + either("create(dataset, beliefs, length, budget).", "`quiltwork ledger create`.")
    )
