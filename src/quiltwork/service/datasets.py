"""Datasets: what they are about, their budget in the ledger, and who may use them.

A dataset is a *series* of states under a belief, or *counts* of people in public categories. It is
registered without rows (`dataset_rows.py` adds those). Its budget is the ledger's, set once.
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
from quiltwork.budget.ledger.log import now
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
    exact_number,
    shown_as,
)

Kind: TypeAlias = Literal["series", "counts"]
Column: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]


@dataclass(frozen=True)
class Registered:
    """A dataset; `about` has its text, what it `holds` as plain values, and how many `arrived`."""

    name: str
    kind: Kind
    owner: str
    created: str
    about: dict[str, Any]
    deleted: str | None = None

    @property
    def text(self) -> str:
        """What it is about, in a sentence."""
        return str(self.about["text"])

    @property
    def arrived(self) -> int | None:
        """How many time points of a series have rows, None if that was not noted; it is public."""
        return None if self.kind == "counts" else self.about.get("arrived")

    @cached_property
    def holds(self) -> SeriesOf | CountsOf:
        """What it is about."""
        read: type[SeriesOf | CountsOf] = SeriesOf if self.kind == "series" else CountsOf
        return msgspec.convert(self.about["about"], read)


@dataclass(frozen=True)
class StoredAccess:
    """Who may use a dataset beside its owner, and since when."""

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
    """A series of states, one for each subject: how files are read, and what is believed."""

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
    """People in public categories; who has several rows is told by `subject`.

    How many people there are is told only if it is public; previews judge errors by it.
    """

    columns: Annotated[
        dict[Column, Annotated[list[Text], Meta(min_length=1, max_length=10_000)]],
        Meta(min_length=1, max_length=50),
    ]
    subject: Column | None = None
    at_most: Annotated[int, Meta(ge=1, le=10**6)] = 1
    people: Annotated[int, Meta(ge=1, le=10**12)] | None = None


class NewDataset(Document, frozen=True):
    """What to register: one of `series` and `counts`; with `delta` a series answers with Gaussian
    noise.
    """

    name: Name
    budget: Number
    series: SeriesOf | None = None
    counts: CountsOf | None = None
    text: Text = ""
    delta: Number | None = None


class Reason(Document, frozen=True):
    """Why nothing more is to be released."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)] = "no longer used"


class NewShare(Document, frozen=True):
    """What a member may use: at most `cap`, and `reserved` whatever others do."""

    cap: Number | None = None
    reserved: Number | None = None


def beliefs_of(about: SeriesOf) -> tuple[Belief, ...]:
    """Read the beliefs; they must name every state, so that rows can be checked once for all."""
    found = beliefs_from_json(json.dumps(about.belief))
    if any(belief.states is None for belief in found):
        raise InvalidInputError(
            "A belief about a curator's series names its states: a chain, a box or a cyclic chain."
        )
    return found


def dataset_is_own(service: Service, caller: Caller, name: str) -> bool | None:
    """Whether a dataset was registered by the caller, or she was given access."""
    found = service.read(
        lambda t: t.row(
            "SELECT d.owner, a.member FROM curator_datasets d LEFT JOIN curator_access a "
            "ON a.dataset = d.name AND a.member = ? WHERE d.name = ?",
            *(caller.member, name),
        )
    )
    return None if found is None else caller.member in found


FEATURE.belongs["dataset"] = dataset_is_own


def registered(service: Service, name: str) -> Registered:
    """Return a dataset as it was registered; 404 if there is none."""
    return service.read(lambda t: DATASETS.named(t, name=name))


@FEATURE.at("POST", "/v1/datasets", "dataset.create", request=NewDataset, status=201)
def _register_dataset(call: Call) -> Dataset:
    """Register a dataset: what it is about, and its budget, set once."""
    service, asked = call.service, call.body
    about: SeriesOf | CountsOf
    kind: Kind
    if asked.name.startswith("holdout."):
        raise InvalidInputError("Names that begin with 'holdout.' are those of holdouts' budgets.")
    if asked.series is not None and asked.counts is None:
        about, kind = asked.series, "series"
        believed = beliefs_of(asked.series)
        length, episode = asked.series.length or asked.series.episode, asked.series.episode
    elif asked.counts is not None and asked.series is None:
        about, kind = asked.counts, "counts"
        believed, length, episode = (PEOPLE,), None, 1
        for column, labels in asked.counts.columns.items():
            if len(set(labels)) < len(labels):
                raise InvalidInputError(f"The categories of {column!r} name one of them twice.")
        if asked.counts.subject in asked.counts.columns:
            raise InvalidInputError("The column that tells people apart has no public categories.")
    else:
        raise InvalidInputError("Give one of series and counts: what the dataset is about.")
    taken = Problem(409, "conflict", f"There is, or was, a dataset {asked.name!r}; names stay.")
    if service.read(lambda t: DATASETS.one(t, name=asked.name)) is not None:
        raise taken
    budget = exact_number(asked.budget, "budget")
    delta = Fraction(0) if asked.delta is None else exact_number(asked.delta, "delta")
    if delta and kind == "counts":
        raise InvalidInputError("Counts are accounted for in a pure epsilon: leave delta out.")
    try:
        service.ledger.create(asked.name, believed, length, budget, episode, delta)
    except InvalidInputError:
        if asked.name not in {status.dataset for status in service.ledger.datasets()}:
            raise
        old = service.ledger.status(asked.name)  # perhaps created just before a crash
        found = (old.beliefs, old.exact_budget, old.episode, old.debits, old.exact_delta)
        if found != (believed, budget, episode, 0, delta):
            raise taken from None
    document = {"about": msgspec.to_builtins(about), "text": asked.text, "arrived": 0}
    made = Registered(asked.name, kind, call.who, now(), document)

    def work(t: Transaction) -> None:
        if DATASETS.one(t, name=made.name) is None:
            DATASETS.add(t, made)
            t.note("act", f"registered {kind} {made.name}", made.owner, made.name)

    service.write(work)
    return shown(service, registered(service, made.name), call.caller)


def shown(service: Service, found: Registered, caller: Caller) -> Dataset:
    """Return a dataset as a caller may see it."""
    status = service.ledger.status(found.name)
    counts = found.holds if isinstance(found.holds, CountsOf) else None
    sees_all = caller.role == "auditor" or caller.member == found.owner
    own = _share(status, caller.member) if caller.role in ("owner", "analyst") else None
    named = sorted({*status.shares, *status.charged})
    states = status.beliefs[0].states if counts is None else None
    return shown_as(
        Dataset,
        found,
        budget=status.budget,
        spent=status.used if status.delta else status.total,
        remaining=status.remaining,
        delta=status.delta,
        releases=status.debits,
        length=status.length if counts is None else None,
        episode=status.episode,
        beliefs=[repr(belief) for belief in status.beliefs] if counts is None else [],
        states=None if states is None else labels_to_json(states),
        columns=None if counts is None else dict(counts.columns),
        retired=status.retired,
        share=own,
        shares=[_share(status, name) for name in named] if sees_all else None,
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
    given = "SELECT dataset FROM curator_access WHERE member = ?"
    where = f"(? = 'auditor' OR owner = ? OR name IN ({given}))"
    if only is not None:
        where += f" AND name IN ({', '.join('?' * len(only))})"
    who = (caller.role, caller.member, caller.member, *(only or ()))
    found = DATASETS.page(t, call.query, "name", where, *who)
    return found.shown(lambda one: shown(call.service, one, caller))


@FEATURE.at("GET", _OF_DATASET, "dataset.read")
def _show_dataset(call: Call) -> Dataset:
    """Show one dataset with its budget."""
    return shown(call.service, registered(call.service, call.path["dataset"]), call.caller)


@FEATURE.at("POST", f"{_OF_DATASET}/retirement", "dataset.retire", request=Reason)
def _retire_dataset(call: Call) -> Dataset:
    """Release nothing more from a dataset, for good."""
    retire(call.service, call.path["dataset"], call.body.reason, call.who)
    return _show_dataset(call)


def retire(service: Service, dataset: str, reason: str, by: str) -> None:
    """Retire a dataset, unless it is retired already."""
    if service.ledger.status(dataset).retired is None:
        service.ledger.retire(dataset, reason)
        service.ledger.note("act", "retired it", dataset, by)


@FEATURE.at("PUT", _ACCESS, "dataset.share", request=NewShare)
def _share_dataset(call: Call) -> Dataset:
    """Let somebody use a dataset, an analyst with a cap or a reserved share."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]
    invited = member_of(service, member)
    if invited is None or invited.role not in ("analyst", "provider"):
        raise InvalidInputError("Access is given to analysts and providers.")
    owner = registered(service, dataset).owner
    if invited.role == "analyst":
        if owner not in service.ledger.status(dataset).shares:
            service.ledger.allot(dataset, owner)
        limits = {"cap": call.body.cap, "reserved": call.body.reserved}
        given = {
            name: exact_number(part, name) for name, part in limits.items() if part is not None
        }
        service.ledger.allot(dataset, member, **given)

    def work(t: Transaction) -> None:
        _ACCESSES.add(t, StoredAccess(dataset, member, now()))
        t.note("act", f"gave {member} access", call.who, dataset)

    service.write(work)
    return shown(service, registered(service, dataset), call.caller)


@FEATURE.at("DELETE", _ACCESS, "dataset.share", status=204)
def _unshare_dataset(call: Call) -> None:
    """Take access back."""
    service, dataset, member = call.service, call.path["dataset"], call.path["member"]

    def work(t: Transaction) -> None:
        _ACCESSES.delete(t, dataset=dataset, member=member)
        t.note("act", f"took access from {member}", call.who, dataset)

    service.write(work)
    status = service.ledger.status(dataset)
    if member in status.shares and status.retired is None and status.shares[member].reserved:
        service.ledger.allot(dataset, member, status.shares[member].cap)
