"""What can be asked about collaborative tables, by their owner, providers and readers."""

from __future__ import annotations

from typing import Any

import msgspec

from quiltwork.client.records import CollaborativeTable, GivenPart, Job
from quiltwork.service import jobs, tables
from quiltwork.service.jobs import shown, shown_by_id
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Routes
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, paged, shown_as
from quiltwork.service.tables import TABLES, TableRules
from quiltwork.service.worker import Pace, carry_out

_ALL, _ONE = "/v1/tables", "/v1/tables/{table}"
_routes = Routes()


class NewTable(Document, frozen=True):
    """A table to collect rows for."""

    name: Name
    rules: TableRules


class Published(Document, frozen=True):
    """The published table."""

    name: str
    media_type: str
    content: str


class Weakest(Document, frozen=True):
    """The fewest providers who, colluding, break the constraint, and in which published group.

    `left` is how many records of others they would be left with there.
    """

    coalition: list[str]
    group: list[str]
    breaks: str
    left: int


class PublishedReport(Document, frozen=True):
    """What a published table reveals as a whole; there is no record in it.

    `withstands` is the largest number of colluding providers it withstands, `sizes` how many
    groups there are of each size, `groups_of_one` how many have the rows of one provider alone;
    `providers` has the rows of each, and how many of them are published.
    """

    name: str
    constraint: str
    m: int
    rows: int
    groups: int
    suppressed: int
    withstands: int
    weakest: Weakest | None
    sizes: dict[str, int]
    risk: dict[str, Any]
    loss: dict[str, Any]
    query_error: float
    providers: tuple[dict[str, str | int], ...] = ()
    groups_of_one: int = 0


class SelfCheck(Document, frozen=True):
    """What a provider learns from the published table with its own rows."""

    name: str
    explanation: str
    found: dict[str, Any]


def _described(t: Transaction, stored: tables.Collected, caller: Caller) -> CollaborativeTable:
    everything = caller.role == "auditor" or caller.member == stored.owner
    job = jobs.find(t, stored.made.get("job", "")) if everything else None
    return shown_as(
        CollaborativeTable,
        stored,
        rules=msgspec.to_builtins(stored.asked),
        state=tables.state(t, stored),
        parts=[
            GivenPart(part.provider, part.row_count)
            for part in tables.parts_of(t, stored.name)
            if everything or part.provider == caller.member
        ],
        admitted=TABLES.admitted(t, stored, caller),
        job=None if job is None else shown(t, job),
    )


@_routes.at("GET", _ONE, "table.read")
def _show_table(call: Call, name: str | None = None) -> CollaborativeTable:
    """Show a table, its rules and where its publication is."""
    found = name or call.path["table"]
    return call.service.storage.read(lambda t: _described(t, TABLES.current(t, found), call.caller))


@_routes.at("GET", _ALL, "table.list", query=PageQuery)
def _list_tables(call: Call) -> Page[CollaborativeTable]:
    """List the tables that you may use."""
    items = call.service.storage.read(
        lambda t: [
            _described(t, one, call.caller) for one in TABLES.listed(t, call.caller, call.query)
        ]
    )
    return paged(items, call.query.limit, lambda one: one.name)


@_routes.at("POST", _ALL, "table.create", request=NewTable, status=201)
def _make_table(call: Call) -> CollaborativeTable:
    """Make a table that providers give rows to."""
    name, rules, who = call.body.name, call.body.rules, call.caller.member
    call.service.storage.write(lambda t: TABLES.create(t, name, who, rules))
    return _show_table(call, name)


@_routes.at("PUT", f"{_ONE}/rules", "table.rules", request=TableRules)
def _set_table_rules(call: Call) -> CollaborativeTable:
    """Set columns, k, l and m, until rows are given."""
    name = call.path["table"]
    call.service.storage.write(lambda t: tables.set_rules(t, TABLES.current(t, name), call.body))
    return _show_table(call)


@_routes.at("PUT", f"{_ONE}/access/{{member}}", "table.admit")
def _admit_to_table(call: Call) -> CollaborativeTable:
    """Let a provider give rows, or an analyst read what is published."""
    TABLES.admit(call)
    return _show_table(call)


@_routes.at("DELETE", f"{_ONE}/access/{{member}}", "table.admit", status=204)
def _dismiss_from_table(call: Call) -> None:
    """Take access back; a provider's rows are deleted with it."""
    tables.drop_rows(call.service, TABLES.named(call), call.path["member"], call)


@_routes.at("PUT", f"{_ONE}/rows", "table.give", upload=True)
def _give_rows(call: Call) -> GivenPart:
    """Give your rows, in the place of those that you gave before."""
    count = tables.put_rows(call.service, TABLES.named(call), call.caller.member, call.sent)
    return GivenPart(call.caller.member, count)


@_routes.at("DELETE", f"{_ONE}/rows", "table.give", status=204)
def _delete_own_rows(call: Call) -> None:
    """Delete your rows."""
    tables.drop_rows(call.service, TABLES.named(call), call.caller.member)


@_routes.at("POST", f"{_ONE}/publication", "table.publish")
def _publish_table(call: Call) -> Job:
    """Publish a table, once; a large one in the background."""
    service, stored = call.service, TABLES.named(call)
    identity = tables.submit(service, stored)
    parts = service.storage.read(lambda t: tables.parts_of(t, stored.name))
    if sum(part.row_count for part in parts) <= service.settings.limits.at_once:
        pace = Pace()
        lease = jobs.claim(service.storage, "the server", pace.lease, only=identity)
        if lease is not None:
            carry_out(service, lease, pace)
    return shown_by_id(service, identity)


@_routes.at("GET", f"{_ONE}/publication", "table.published")
def _show_publication(call: Call) -> Published:
    """Get the published table."""
    stored = TABLES.named(call)
    content = tables.published(call.service, stored).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@_routes.at("GET", f"{_ONE}/report", "table.report")
def _show_table_report(call: Call) -> PublishedReport:
    """Say what the published table reveals, and who could break what."""
    stored = TABLES.named(call)
    tables.published(call.service, stored)
    return msgspec.convert({"name": stored.name, **stored.made["report"]}, PublishedReport)


@_routes.at("GET", f"{_ONE}/check", "table.check")
def _check_own_rows(call: Call) -> SelfCheck:
    """Say what you learn from the published table with your own rows."""
    stored = TABLES.named(call)
    found = tables.self_check(call.service, stored, call.caller.member)
    return SelfCheck(name=stored.name, explanation=found.pop("explanation"), found=found)


FEATURE = Feature(
    schema=tables.SCHEMA,
    belongs={"table": TABLES.is_own},
    files=tables.files,
    routes=tuple(_routes),
)
