"""Releases with their intervals, a dataset's ledger and leakage, and the audit log.

The audit log is the ledger's chain: granted debits are entries of their own, and handlers note what
members do (`Transaction.note`). It leaves out answers, so an auditor sees who asked what, but not
what was released.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from quiltwork.beliefs.documents import labels_to_json
from quiltwork.budget import Debit, Receipt, SquaresUsed
from quiltwork.client.records import Released, Verification
from quiltwork.counts import Consumer, CountTable, GeometricMechanism
from quiltwork.counts.consumers.consumer import prior_of_kind
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.series.releases.record import Release
from quiltwork.service.problems import not_found
from quiltwork.service.routes import Call, Feature
from quiltwork.service.structs import Document, Number, Page, copy_fields, exact_number, paged

_MAX_RUNS = 2000
_MAX_NUMBER = 2**63 - 1


_OF_DATASET = "/v1/datasets/{dataset}"
_RELEASE = f"{_OF_DATASET}/releases/{{release}}"
FEATURE = Feature()


class LogQuery(Document, frozen=True):
    """Query parameters of a list of entries: those after a number, up to a limit."""

    after: Annotated[int, Meta(ge=0, le=_MAX_NUMBER)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class DebitOf(Document, frozen=True):
    """One debit of a dataset's ledger: what was spent for whom, without the answer."""

    number: int
    at: str
    analyst: str | None
    state: Literal["debited", "released"]
    mechanism: str
    key: str | None
    start: int | None
    stop: int | None
    composes_by: str
    charge: float | None
    hash: str


class PointLeakage(Document, frozen=True):
    """Consecutive time points first..last, each of which leaked at most `epsilon`.

    With δ that is the claim for the whole account from the first release on; `used` is then the
    share of its allowance that each of these points has spent.
    """

    first: int
    last: int
    epsilon: float
    used: float | None = None


class LeakageByPoint(Document, frozen=True):
    """The leakage of all releases together, by time point."""

    dataset: str
    budget: float
    runs: list[PointLeakage]
    delta: float = 0.0


class Reader(Document, frozen=True):
    """A consumer of counts: her prior for each count, and her loss for a wrong one."""

    people: Annotated[int, Meta(ge=1, le=100_000)]
    prior: Literal["uniform", "binomial", "poisson"] = "uniform"
    parameter: Number | None = None
    loss: Annotated[str, Meta(max_length=100)] = "absolute"


class RemappedCounts(Document, frozen=True):
    """Released counts remapped for one consumer, at no cost in privacy."""

    cells: list[Any]
    released: list[int]
    read: list[int]
    intervals: list[list[int]]
    expected_loss: float
    text: str


def debit_record(debit: Debit, answer: str) -> Released:
    """Return the record of a debit with its stored answer."""
    counts = json.loads(answer)["schema"] == "quiltwork/count-table"
    parsed = (CountTable if counts else Release).from_json(answer)
    return release_record(debit, debit.analyst, debit.request.get("where"), answer, parsed)


def release_record(
    debit: Debit | Receipt,
    analyst: str | None,
    where: list[str] | None,
    answer: str,
    parsed: Release | CountTable,
) -> Released:
    """Return the record of an answer: the stored text, and the same answer parsed."""
    document = json.loads(answer)
    intervals: list[list[float]] | None
    if isinstance(parsed, CountTable):
        kind, protects = "table", "person"
        query = {"kind": kind, "by": list(parsed.dimensions), "where": where}
        cells, values = document["cells"], list(parsed.values)
        intervals = [[float(a), float(b)] for a, b in parsed.intervals().values()]
    else:
        kind, protects, query = parsed.query.kind, str(parsed.protects), document["query"]
        cells, values, intervals = columns(parsed, document.get("intervals"))
    return copy_fields(
        Released,
        debit,
        analyst=analyst,
        kind=kind,
        query=query,
        epsilon=parsed.epsilon,
        protects=protects,
        cells=cells,
        values=values,
        intervals=intervals,
        confidence=0.95,
        text=parsed.explain(),
        document=document,
    )


def columns(
    answer: Release, intervals: list[list[float]] | None
) -> tuple[list[Any], list[Any], list[list[float]] | None]:
    """Return an answer's cells, values and intervals as lists of JSON values."""
    cells = labels_to_json(answer.cells)
    if answer.mechanism == "exponential":
        return cells, labels_to_json([answer.value]), None
    return cells, np.ravel(answer.value).tolist(), intervals


@FEATURE.at("GET", f"{_OF_DATASET}/releases", "release.read", query=LogQuery)
def _list_releases(call: Call) -> Page[Released]:
    """List releases with their intervals."""
    released = call.service.ledger.debits_with_answers(
        call.path["dataset"], call.query.after, call.query.limit + 1
    )
    page = released[: call.query.limit]
    items = [debit_record(debit, answer) for debit, answer in page if answer is not None]
    more = len(released) > len(page)
    return Page[Released](items=items, next=str(page[-1][0].number) if more else None)


def _requested_release(call: Call) -> tuple[Debit, str]:
    """Return the debit and the stored answer that the path names; 404 if there is none."""
    text = call.path["release"]
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise not_found()
    for debit, answer in call.service.ledger.debits_with_answers(
        call.path["dataset"], int(text) - 1, 1
    ):
        if debit.number == int(text) and answer is not None:
            return debit, answer
    raise not_found()


@FEATURE.at("GET", _RELEASE, "release.read", free=("release",))
def _show_release(call: Call) -> Released:
    """Show one release."""
    return debit_record(*_requested_release(call))


@FEATURE.at("POST", f"{_RELEASE}/remap", "release.remap", request=Reader, free=("release",))
def _remap(call: Call) -> RemappedCounts:
    """Remap released counts for one consumer's prior and loss; it costs no budget."""
    _, answer = _requested_release(call)
    if json.loads(answer)["schema"] != "quiltwork/count-table":
        raise InvalidInputError("Only releases of counts can be remapped.")
    table, reader = CountTable.from_json(answer), call.body
    prior: Any = reader.prior
    if prior != "uniform":
        if reader.parameter is None:
            raise InvalidInputError(
                "Give `parameter`: the mean of a Poisson prior, or the probability of a "
                "binomial one."
            )
        parameter = exact_number(reader.parameter, "parameter")
        prior = prior_of_kind(prior, parameter, reader.people)
    mechanism = GeometricMechanism(reader.people, alpha=table.alphas[0])
    remap = mechanism.remap(Consumer(prior, reader.loss))
    counts = np.clip(np.array(table.noisy, dtype=np.int64), 0, reader.people)
    low, high = (np.ravel(end).tolist() for end in remap.interval(counts))
    return RemappedCounts(
        cells=table.body()["cells"],
        released=list(table.noisy),
        read=np.ravel(remap(counts)).tolist(),
        intervals=[[int(a), int(b)] for a, b in zip(low, high, strict=True)],
        expected_loss=float(remap.expected_loss),
        text=remap.explain(),
    )


@FEATURE.at("GET", f"{_OF_DATASET}/ledger", "ledger.read", query=LogQuery)
def _show_ledger(call: Call) -> Page[DebitOf]:
    """List debits: for whom, and by which theorem they compose."""
    debits = call.service.ledger.history(
        call.path["dataset"], call.query.after, call.query.limit + 1
    )
    items = [
        copy_fields(
            DebitOf,
            debit,
            start=debit.spending.start,
            stop=debit.spending.stop,
            charge=None if debit.charge is None else float(debit.charge),
        )
        for debit in debits
    ]
    return paged(items, call.query.limit, lambda item: item.number)


@FEATURE.at("GET", f"{_OF_DATASET}/leakage", "dataset.read")
def _show_leakage(call: Call) -> LeakageByPoint:
    """Show the leakage of all releases together, by time point."""
    name = call.path["dataset"]
    profile = call.service.ledger.ask(name, lambda accountant: accountant.profile())
    if isinstance(profile, SquaresUsed):
        shares = zip(profile.runs, profile.shares(), strict=True)
        runs = [PointLeakage(run.first, run.last, profile.epsilon, used) for run, used in shares]
    else:
        runs = [PointLeakage(run.first, run.last, run.epsilon) for run in profile]
    while len(runs) > _MAX_RUNS:  # halve the resolution; maxima keep every statement true
        pairs = (runs[i : i + 2] for i in range(0, len(runs), 2))
        runs = [_joined(pair) for pair in pairs]
    status = call.service.ledger.status(name)
    return LeakageByPoint(name, status.budget, runs, status.delta)


def _joined(runs: list[PointLeakage]) -> PointLeakage:
    epsilon = max(run.epsilon for run in runs)
    used = [run.used for run in runs if run.used is not None]
    return PointLeakage(runs[0].first, runs[-1].last, epsilon, max(used, default=None))


class LogEntry(Document, frozen=True):
    """One entry of the audit log; `content` leaves out answers."""

    number: int
    kind: str
    dataset: str
    content: dict[str, Any]
    hash: str


@FEATURE.at("GET", "/v1/log", "log.read", query=LogQuery)
def _read_log(call: Call) -> Page[LogEntry]:
    """Read the audit log: who did what, without answers."""
    entries = call.service.ledger.log(call.query.after, call.query.limit + 1)
    items = [
        copy_fields(
            LogEntry,
            entry,
            number=entry.seq,
            content={k: v for k, v in entry.content.items() if k != "answer"},
        )
        for entry in entries
    ]
    return paged(items, call.query.limit, lambda item: item.number)


@FEATURE.at("POST", "/v1/log/verification", "log.verify")
def _verify_log(call: Call) -> Verification:
    """Check the chain of hashes and every total."""
    try:
        end = call.service.ledger.verify()
    except StorageError as error:
        return Verification(intact=False, detail=str(error))
    return Verification(
        intact=True,
        detail="No entry was altered, and every total equals the sum of its entries.",
        ledger=end.ledger_id,
        entries=end.count,
        hash=end.hash,
    )
