"""What was released, listed with error bars and read as one consumer should; its
ledger; and the audit log, the ledger's chain.

What members do is noted by those who do it (`Transaction.note`); granted debits are entries of
their own. Answers are left out: an auditor sees who asked what, not what was released by it.
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
from quiltwork.counts.remaps.remap import optimal_remap
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.series.releases.record import Release
from quiltwork.service.problems import not_found
from quiltwork.service.routes import Call, Feature
from quiltwork.service.structs import Document, Number, Page, exact_number, paged, shown_as

_MOST_RUNS = 2000
_LONGEST = 2**63 - 1


_OF_DATASET = "/v1/datasets/{dataset}"
_RELEASE = f"{_OF_DATASET}/releases/{{release}}"
FEATURE = Feature()


class LogQuery(Document, frozen=True):
    """Which entries: those after a number, at most so many."""

    after: Annotated[int, Meta(ge=0, le=_LONGEST)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class DebitOf(Document, frozen=True):
    """One debit of a dataset's ledger: what was spent, for whom; never an answer."""

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


class ToldRun(Document, frozen=True):
    """Time points first..last, about each of which at most `epsilon` was told.

    With δ that is the whole claim from the first release on; `used` is the share of what each of
    them may spend.
    """

    first: int
    last: int
    epsilon: float
    used: float | None = None


class LeakageByPoint(Document, frozen=True):
    """What all releases together tell about each time point."""

    dataset: str
    budget: float
    runs: list[ToldRun]
    delta: float = 0.0


class Reader(Document, frozen=True):
    """Who reads counts: what she believes about each, and what a wrong answer costs her."""

    people: Annotated[int, Meta(ge=1, le=100_000)]
    prior: Literal["uniform", "binomial", "poisson"] = "uniform"
    parameter: Number | None = None
    loss: Annotated[str, Meta(max_length=100)] = "absolute"


class RemappedCounts(Document, frozen=True):
    """Released counts as one consumer should read them; it costs nothing."""

    cells: list[Any]
    released: list[int]
    read: list[int]
    intervals: list[list[int]]
    expected_loss: float
    text: str


def shown_debit(debit: Debit, answer: str) -> Released:
    """Write a debit and its stored answer for readers."""
    counts = json.loads(answer)["schema"] == "quiltwork/count-table"
    found = (CountTable if counts else Release).from_json(answer)
    return shown_release(debit, debit.analyst, debit.request.get("where"), answer, found)


def shown_release(
    debit: Debit | Receipt,
    analyst: str | None,
    where: list[str] | None,
    answer: str,
    found: Release | CountTable,
) -> Released:
    """Write an answer for readers: as it was stored, and as it was `found`, which says the same."""
    document = json.loads(answer)
    intervals: list[list[float]] | None
    if isinstance(found, CountTable):
        kind, protects = "table", "person"
        query = {"kind": kind, "by": list(found.dimensions), "where": where}
        cells, values = document["cells"], list(found.values)
        intervals = [[float(a), float(b)] for a, b in found.intervals().values()]
    else:
        kind, protects, query = found.query.kind, str(found.protects), document["query"]
        cells, values, intervals = columns(found, document.get("intervals"))
    return shown_as(
        Released,
        debit,
        analyst=analyst,
        kind=kind,
        query=query,
        epsilon=found.epsilon,
        protects=protects,
        cells=cells,
        values=values,
        intervals=intervals,
        confidence=0.95,
        text=found.explain(),
        document=document,
    )


def columns(
    found: Release, intervals: list[list[float]] | None
) -> tuple[list[Any], list[Any], list[list[float]] | None]:
    """Return cells, values and intervals as lists of JSON values."""
    cells = labels_to_json(found.cells)
    if found.mechanism == "exponential":
        return cells, labels_to_json([found.value]), None
    return cells, np.ravel(found.value).tolist(), intervals


@FEATURE.at("GET", f"{_OF_DATASET}/releases", "release.read", query=LogQuery)
def _list_releases(call: Call) -> Page[Released]:
    """List what was released, with error bars."""
    found = call.service.ledger.released(
        call.path["dataset"], call.query.after, call.query.limit + 1
    )
    page = found[: call.query.limit]
    items = [shown_debit(debit, answer) for debit, answer in page if answer is not None]
    more = len(found) > len(page)
    return Page[Released](items=items, next=str(page[-1][0].number) if more else None)


def _found(call: Call) -> tuple[Debit, str]:
    text = call.path["release"]
    if not text.isdecimal() or len(text) > 18 or int(text) < 1:
        raise not_found()
    found = call.service.ledger.released(call.path["dataset"], int(text) - 1, 1)
    if not found or found[0][0].number != int(text) or found[0][1] is None:
        raise not_found()
    return found[0][0], found[0][1]


@FEATURE.at("GET", _RELEASE, "release.read", free=("release",))
def _show_release(call: Call) -> Released:
    """Show one release."""
    return shown_debit(*_found(call))


@FEATURE.at("POST", f"{_RELEASE}/remap", "release.remap", request=Reader, free=("release",))
def _remap(call: Call) -> RemappedCounts:
    """Read released counts by one consumer's prior and loss; it costs nothing."""
    _, answer = _found(call)
    if json.loads(answer)["schema"] != "quiltwork/count-table":
        raise InvalidInputError("Only counts are read by a prior and a loss.")
    table, reader = CountTable.from_json(answer), call.body
    mechanism = GeometricMechanism(reader.people, alpha=table.alphas[0])
    prior: Any = reader.prior
    if prior != "uniform":
        if reader.parameter is None:
            raise InvalidInputError(
                "parameter is missing: the mean, or the probability, of the prior."
            )
        parameter = exact_number(reader.parameter, "parameter")
        prior = prior_of_kind(prior, parameter, reader.people)
    remap = optimal_remap(mechanism, Consumer(prior, reader.loss))
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
    """List what was debited, for whom and by which theorem it adds up."""
    found = call.service.ledger.history(
        call.path["dataset"], call.query.after, call.query.limit + 1
    )
    items = [
        shown_as(
            DebitOf,
            one,
            start=one.spending.start,
            stop=one.spending.stop,
            charge=None if one.charge is None else float(one.charge),
        )
        for one in found
    ]
    return paged(items, call.query.limit, lambda one: one.number)


@FEATURE.at("GET", f"{_OF_DATASET}/leakage", "dataset.read")
def _show_leakage(call: Call) -> LeakageByPoint:
    """Say what all releases together tell about each time point."""
    name = call.path["dataset"]
    profile = call.service.ledger.ask(name, lambda accountant: accountant.profile())
    if isinstance(profile, SquaresUsed):
        shares = zip(profile.runs, profile.shares(), strict=True)
        runs = [ToldRun(one.first, one.last, profile.epsilon, used) for one, used in shares]
    else:
        runs = [ToldRun(run.first, run.last, run.epsilon) for run in profile]
    while len(runs) > _MOST_RUNS:
        pairs = (runs[i : i + 2] for i in range(0, len(runs), 2))
        runs = [_joined(pair) for pair in pairs]
    status = call.service.ledger.status(name)
    return LeakageByPoint(name, status.budget, runs, status.delta)


def _joined(runs: list[ToldRun]) -> ToldRun:
    told, used = (
        max(one.epsilon for one in runs),
        [one.used for one in runs if one.used is not None],
    )
    return ToldRun(runs[0].first, runs[-1].last, told, max(used, default=None))


class LogEntry(Document, frozen=True):
    """One entry of the chain; `content` is what was written, without answers."""

    number: int
    kind: str
    dataset: str
    content: dict[str, Any]
    hash: str


@FEATURE.at("GET", "/v1/log", "log.read", query=LogQuery)
def _read_log(call: Call) -> Page[LogEntry]:
    """Read who did what, without answers."""
    found = call.service.ledger.log(call.query.after, call.query.limit + 1)
    items = [
        shown_as(
            LogEntry,
            entry,
            number=entry.seq,
            content={k: v for k, v in entry.content.items() if k != "answer"},
        )
        for entry in found
    ]
    return paged(items, call.query.limit, lambda one: one.number)


@FEATURE.at("POST", "/v1/log/verification", "log.verify")
def _verify_log(call: Call) -> Verification:
    """Check the chain of hashes and every total."""
    try:
        end = call.service.ledger.verify()
    except StorageError as error:
        return Verification(intact=False, detail=str(error))
    return Verification(
        intact=True,
        detail="Every entry is as it was written, and every total is that of its entries.",
        ledger=end.ledger_id,
        entries=end.count,
        hash=end.hash,
    )
