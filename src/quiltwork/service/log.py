"""The audit log and its verification: the ledger's chain, as an auditor reads it.

What members do is noted by those who do it (`Transaction.note`); granted debits are entries of
their own. Answers are left out: an auditor sees who asked what, not what was released by it.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quiltwork.client.records import Verification
from quiltwork.errors import StorageError
from quiltwork.service.routes import Call, Feature, Routes
from quiltwork.service.structs import Document, Page, paged, shown_as

_LONGEST = 2**63 - 1


_routes = Routes()


class LogQuery(Document, frozen=True):
    """Which entries: those after a number, at most so many."""

    after: Annotated[int, Meta(ge=0, le=_LONGEST)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class LogEntry(Document, frozen=True):
    """One entry of the chain; `content` is what was written, without answers."""

    number: int
    kind: str
    dataset: str
    content: dict[str, Any]
    hash: str


@_routes.at("GET", "/v1/log", "log.read", query=LogQuery)
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


@_routes.at("POST", "/v1/log/verification", "log.verify")
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


FEATURE = Feature(routes=tuple(_routes))
