"""Datasets: their description, their budget in the ledger, and the members with access.

A dataset is a *series* of states under a belief, or *counts* of people in public categories. It is
registered without rows, which `dataset_rows.py` adds. Its budget is set once, in the ledger.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from quiltwork.beliefs import Belief, beliefs_from_json
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.budget import PEOPLE, Status
from quiltwork.budget.ledger.entries import now
from quiltwork.client.records import Dataset, MemberShare
from quiltwork.errors import InvalidInputError
from quiltwork.service.members import member_of
from quiltwork.service.problems import Problem
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import (
    Document,
    Name,
    Number,
    Page,
    PageQuery,
    Text,
    copy_fields,
    exact_number,
)

Kind: TypeAlias = Literal["series", "counts"]
Column: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]


@dataclass(frozen=True)
class Registered:
    """A dataset as it is stored; `about` holds its text, description and `arrived` points."""

    name: str
    kind: Kind
    owner: str
    created: str
    about: dict[str, Any]
    deleted: str | None = None

    @property
    def text(self) -> str:
        """The dataset in a sentence, for its users."""
        return str(self.about["text"])

    @property
    def arrived(self) -> int | None:
        """How many time points of a series have rows, a public number; None if unknown."""
        return None if self.kind == "counts" else self.about.get("arrived")

    @cached_property
    def description(self) -> SeriesOf | CountsOf:
        """The description, as a struct."""
        kind: type[SeriesOf | CountsOf] = SeriesOf if self.kind == "series" else CountsOf
        return msgspec.convert(self.about["about"], kind)


@dataclass(frozen=True)
class StoredAccess:
    """A member's access to a dataset of another."""

    dataset: str
    member: str
    given: str


DATASETS = TableOf("curator_datasets", Registered, "name")
_ACCESSES = TableOf("curator_access", StoredAccess, "dataset, member")
FEATURE = Feature(
    Schema(
        "datasets",
        (DATASETS, _ACCESSES),
        ("CREATE INDEX curator_access_of ON curator_access (member)",),
    )
)
_OF_DATASET = "/v1/datasets/{dataset}"
_ACCESS = f"{_OF_DATASET}/access/{{member}}"


class SeriesOf(Document, frozen=True):
    """A series of states for each subject: the belief, and how files are read."""

    belief: dict[str, Any]
    value: Column
    length: Annotated[int, Meta(ge=1, le=10**12)] | None = None
    episode: Annotated[int, Meta(ge=1, le=10**12)] = 1
    time: Column | None = None
    subject: Column | None = None
    every: Column | None = None
    timezone: Column | None = None
    missing: Literal["error", "state", "public"] = "error"
    missing_state: Column = "missing"
    na_values: Annotated[list[Text], Meta(max_length=50)] = msgspec.field(default_factory=list)


class CountsOf(Document, frozen=True):
    """People in public categories; the column `subject` identifies people with several rows.

    `people`, given only if their number is public, lets previews judge errors against it.
    """

    columns: Annotated[
        dict[Column, Annotated[list[Text], Meta(min_length=1, max_length=10_000)]],
        Meta(min_length=1, max_length=50),
    ]
    subject: Column | None = None
    at_most: Annotated[int, Meta(ge=1, le=10**6)] = 1
    people: Annotated[int, Meta(ge=1, le=10**12)] | None = None


class NewDataset(Document, frozen=True):
    """A dataset to register: a `series` or `counts`.

    With `delta` a series is answered with Gaussian noise.
    """

    name: Name
    budget: Number
    series: SeriesOf | None = None
    counts: CountsOf | None = None
    text: Text = ""
    delta: Number | None = None


class Reason(Document, frozen=True):
    """The reason for retiring a dataset."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)] = "no longer used"


class NewShare(Document, frozen=True):
    """A member's share of a budget: at most `cap`, and `reserved` against others' use.

    What is left out stays as it was; null lifts it.
    """

    cap: Number | msgspec.UnsetType | None = msgspec.UNSET
    reserved: Number | msgspec.UnsetType | None = msgspec.UNSET


def beliefs_of(about: SeriesOf) -> tuple[Belief, ...]:
    """Return the beliefs; they must name their states, so that rows are checked when added."""
    beliefs = beliefs_from_json(json.dumps(about.belief))
    if any(belief.states is None for belief in beliefs):
        raise InvalidInputError(
            "The belief about a curator's series must name its states, as a chain, a box or a "
            "cyclic chain does."
        )
    return beliefs


def dataset_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether the caller registered a dataset or has access to it; None if there is none."""
    row = service.read(
        lambda t: t.row(
            "SELECT d.owner, a.member FROM curator_datasets d LEFT JOIN curator_access a "
            "ON a.dataset = d.name AND a.member = ? WHERE d.name = ?",
            *(caller.member, name),
        )
    )
    return None if row is None else caller.member in row


FEATURE.ownership["dataset"] = dataset_is_own


def registered(service: Service, name: str) -> Registered:
    """Return a dataset by name; 404 if there is none."""
    return service.read(lambda t: DATASETS.get(t, name=name))


@FEATURE.at("POST", "/v1/datasets", "dataset.create", request=NewDataset, status=201)
def _register_dataset(call: Call) -> Dataset:
    """Register a dataset: its description, and its budget, set once."""
    service, new = call.service, call.body
    about: SeriesOf | CountsOf
    kind: Kind
    if new.name.startswith("holdout."):
        raise InvalidInputError(
            "Names that begin with 'holdout.' are reserved for the budgets of holdouts."
        )
    if new.series is not None and new.counts is None:
        about, kind = new.series, "series"
        beliefs = beliefs_of(new.series)
        length, episode = new.series.length or new.series.episode, new.series.episode
    elif new.counts is not None and new.series is None:
        about, kind = new.counts, "counts"
        beliefs, length, episode = (PEOPLE,), None, 1
        for column, labels in new.counts.columns.items():
            if len(set(labels)) < len(labels):
                raise InvalidInputError(f"The categories of {column!r} repeat a value.")
        if new.counts.subject in new.counts.columns:
            raise InvalidInputError(
                "The column that identifies people cannot have public categories."
            )
    else:
        raise InvalidInputError("Describe the dataset by either series or counts.")
    taken = Problem(
        409,
        "conflict",
        f"The name {new.name!r} is or was a dataset's; names are never reused. Choose another.",
    )
    if service.read(lambda t: DATASETS.find(t, name=new.name)) is not None:
        raise taken
    budget = exact_number(new.budget, "budget")
    delta = Fraction(0) if new.delta is None else exact_number(new.delta, "delta")
    if delta and kind == "counts":
        raise InvalidInputError("Counts are accounted for in pure epsilon; leave out delta.")
    try:
        service.ledger.create(new.name, beliefs, length, budget, episode, delta)
    except InvalidInputError:
        if new.name not in {status.dataset for status in service.ledger.datasets()}:
            raise
        # A crash between the two databases' commits leaves a ledger entry without a dataset:
        # an identical request may then complete the registration.
        old = service.ledger.status(new.name)
        existing = (old.beliefs, old.exact_budget, old.episode, old.debits, old.exact_delta)
        if existing != (beliefs, budget, episode, 0, delta):
            raise taken from None
    document = {"about": msgspec.to_builtins(about), "text": new.text, "arrived": 0}
    dataset = Registered(new.name, kind, call.member, now(), document)

    def work(t: Transaction) -> None:
        if DATASETS.find(t, name=dataset.name) is None:
            DATASETS.add(t, dataset)
            t.note("act", f"registered {kind} {dataset.name}", dataset.owner, dataset.name)

    service.write(work)
    return dataset_record(service, registered(service, dataset.name), call.caller)


def dataset_record(service: Service, dataset: Registered, caller: Caller) -> Dataset:
    """Return a dataset's record as a caller may see it."""
    status = service.ledger.status(dataset.name)
    description = dataset.description
    counts = description if isinstance(description, CountsOf) else None
    sees_all = caller.role == "auditor" or caller.member == dataset.owner
    own = _share(status, caller.member) if caller.role in ("owner", "analyst") else None
    members = sorted({*status.shares, *status.charged})
    states = status.beliefs[0].states if counts is None else None
    return copy_fields(
        Dataset,
        dataset,
        budget=status.budget,
        spent=status.used if status.delta else status.total,
        remaining=status.remaining,
        delta=status.delta,
        releases=status.debits,
        length=status.length if counts is None else None,
        episode=status.episode,
        beliefs=[belief.summary() for belief in status.beliefs] if counts is None else [],
        states=None if states is None else labels_to_json(states),
        columns=None if counts is None else dict(counts.columns),
        retired=status.retired,
        share=own,
        shares=[_share(status, name) for name in members] if sees_all else None,
    )


def _share(status: Status, member: str) -> MemberShare:
    share = status.shares.get(member)
    return MemberShare(
        member=member,
        charged=float(status.charged.get(member, 0)),
        cap=None if share is None or share.cap is None else float(share.cap),
        reserved=0.0 if share is None else float(share.reserved),
    )


@FEATURE.at("GET", "/v1/datasets", "dataset.list", query=PageQuery)
def _list_datasets(call: Call, t: Transaction) -> Page[Dataset]:
    """List the datasets that you may use."""
    caller, only = call.caller, call.caller.datasets
    shared = "SELECT dataset FROM curator_access WHERE member = ?"
    where = f"(? = 'auditor' OR owner = ? OR name IN ({shared}))"
    if only is not None:
        where += f" AND name IN ({', '.join('?' * len(only))})"
    parameters = (caller.role, caller.member, caller.member, *(only or ()))
    page = DATASETS.page(t, call.query, "name", where, *parameters)
    return page.map(lambda dataset: dataset_record(call.service, dataset, caller))


@FEATURE.at("GET", _OF_DATASET, "dataset.read")
def _show_dataset(call: Call) -> Dataset:
    """Show one dataset with its budget."""
    dataset = registered(call.service, call.path["dataset"])
    return dataset_record(call.service, dataset, call.caller)


@FEATURE.at("POST", f"{_OF_DATASET}/retirement", "dataset.retire", request=Reason)
def _retire_dataset(call: Call) -> Dataset:
    """Retire a dataset: nothing more is ever released from it."""
    retire(call.service, call.path["dataset"], call.body.reason, call.member)
    return _show_dataset(call)


def retire(service: Service, dataset: str, reason: str, by: str) -> None:
    """Retire a dataset, unless it is retired already."""
    if service.ledger.status(dataset).retired is None:
        service.ledger.retire(dataset, reason)
        service.ledger.note("act", "retired it", dataset, by)


@FEATURE.at("PUT", _ACCESS, "dataset.share", request=NewShare)
def _share_dataset(call: Call) -> Dataset:
    """Give a member access; an analyst may get a cap or a reserved share."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]
    invited = member_of(service, member)
    if invited is None or invited.role not in ("analyst", "provider"):
        raise InvalidInputError("Only analysts and providers can be given access.")
    owner = registered(service, dataset).owner
    if invited.role == "analyst":
        if owner not in service.ledger.status(dataset).shares:
            service.ledger.allot(dataset, owner)
        limits = {"cap": call.body.cap, "reserved": call.body.reserved}
        exact = {
            name: None if value is None else exact_number(value, name)
            for name, value in limits.items()
            if value is not msgspec.UNSET
        }
        service.ledger.allot(dataset, member, **exact)

    def work(t: Transaction) -> None:
        _ACCESSES.add(t, StoredAccess(dataset, member, now()))
        t.note("act", f"gave {member} access", call.member, dataset)

    service.write(work)
    return dataset_record(service, registered(service, dataset), call.caller)


@FEATURE.at("DELETE", _ACCESS, "dataset.share", status=204)
def _unshare_dataset(call: Call) -> None:
    """Withdraw a member's access."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]

    def work(t: Transaction) -> None:
        _ACCESSES.delete(t, dataset=dataset, member=member)
        t.note("act", f"took access from {member}", call.member, dataset)

    service.write(work)
    status = service.ledger.status(dataset)
    if member in status.shares and status.retired is None and status.shares[member].reserved:
        service.ledger.allot(dataset, member, reserved=None)
