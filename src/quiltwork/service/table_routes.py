"""What can be asked about collaborative tables, by their owner, providers and readers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from quiltwork.service import jobs, tables
from quiltwork.service.admission import admit, listed, own
from quiltwork.service.job_routes import Job, shown
from quiltwork.service.jobs import written
from quiltwork.service.members import paged
from quiltwork.service.problems import not_found
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Part, Routes
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery
from quiltwork.service.worker import Pace, carry_out

_Column = Annotated[str, Meta(min_length=1, max_length=200)]
_Small = Annotated[int, Meta(ge=1, le=10**6)]


_ALL, _ONE = "/v1/tables", "/v1/tables/{table}"
_routes = Routes()


class TableRules(Document, frozen=True):
    """Which columns are what, and what every group of the published table must withstand."""

    quasi_identifiers: Annotated[list[_Column], Meta(min_length=1, max_length=50)]
    sensitive: _Column
    k: _Small
    l: _Small = 1  # noqa: E741  (the literature's own name)
    m: Annotated[int, Meta(ge=0, le=100)] = 1


class NewTable(Document, frozen=True):
    """A table to collect rows for."""

    name: Name
    rules: TableRules


class PartOfTable(Document, frozen=True):
    """How many rows a provider gave."""

    provider: str
    rows: int


class Table(Document, frozen=True):
    """A table; a provider sees its own part, the owner and auditors how many rows each gave."""

    name: str
    owner: str
    rules: TableRules
    state: Literal["collecting", "publishing", "published"]
    created: str
    parts: list[PartOfTable]
    job: Job | None


class Tables(Page, frozen=True, kw_only=True):
    """A page of tables."""

    items: list[Table]


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


class TableReport(Document, frozen=True):
    """What a published table reveals as a whole; there is no record in it.

    `withstands` is the largest number of colluding providers it withstands, `sizes` how many
    groups there are of each size.
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


class SelfCheck(Document, frozen=True):
    """What a provider learns from the published table with its own rows."""

    name: str
    explanation: str
    found: dict[str, Any]


def _found(call: Call) -> tables.Stored:
    found = call.service.storage.read(lambda t: tables.find(t, call.path["table"]))
    if found is None:
        raise not_found()
    return found


def _rules(asked: TableRules) -> tables.Rules:
    fields = {name: getattr(asked, name) for name in ("sensitive", "k", "l", "m")}
    return tables.Rules(quasi_identifiers=tuple(asked.quasi_identifiers), **fields)


def _described(t: Transaction, stored: tables.Stored, caller: Caller) -> Table:
    everything = caller.role == "auditor" or caller.member == stored.owner
    job = jobs.find(t, stored.job) if everything else None
    found = jobs.find(t, stored.job)
    busy = found is not None and found.state in ("queued", "running")
    rules = stored.rules
    return Table(
        name=stored.name,
        owner=stored.owner,
        rules=TableRules(**{**vars(rules), "quasi_identifiers": list(rules.quasi_identifiers)}),
        state="published" if stored.publication else "publishing" if busy else "collecting",
        created=written(stored.created),
        parts=[
            PartOfTable(provider=part.provider, rows=part.rows)
            for part in tables.parts_of(t, stored.name)
            if everything or part.provider == caller.member
        ],
        job=None if job is None else shown(t, job),
    )


@_routes.at("GET", _ONE, "table.read")
def _show_table(call: Call) -> Table:
    """Show a table, its rules and where its publication is."""
    stored = _found(call)
    return call.service.storage.read(lambda t: _described(t, stored, call.caller))


@_routes.at("GET", _ALL, "table.list", query=PageQuery)
def _list_tables(call: Call) -> Tables:
    """List the tables that you may use."""

    def read(t: Transaction) -> list[Table]:
        names = listed(t, "table", call.caller, call.query)
        return [_described(t, tables.current(t, name), call.caller) for name in names]

    items = call.service.storage.read(read)
    return Tables(**paged(items, call.query.limit, lambda one: one.name))


@_routes.at("POST", _ALL, "table.create", request=NewTable, status=201)
def _make_table(call: Call) -> Table:
    """Make a table that providers give rows to."""
    name, rules, who = call.body.name, _rules(call.body.rules), call.caller.member
    call.service.storage.write(lambda t: tables.create(t, name, who, rules))
    return call.service.storage.read(lambda t: _described(t, tables.current(t, name), call.caller))


@_routes.at("PUT", f"{_ONE}/rules", "table.rules", request=TableRules)
def _set_table_rules(call: Call) -> Table:
    """Set columns, k, l and m, until it is published."""
    name, rules = call.path["table"], _rules(call.body)
    call.service.storage.write(lambda t: tables.set_rules(t, tables.current(t, name), rules))
    return _show_table(call)


@_routes.at("PUT", f"{_ONE}/access/{{member}}", "table.admit")
def _admit_to_table(call: Call) -> Table:
    """Let a provider give rows, or an analyst read what is published."""
    stored, member = _found(call), call.path["member"]
    call.service.storage.write(lambda t: admit(t, "table", stored.name, member, stored.owner))
    return _show_table(call)


@_routes.at("PUT", f"{_ONE}/rows", "table.give", upload=True)
def _give_rows(call: Call) -> PartOfTable:
    """Give your rows, in the place of those that you gave before."""
    count = tables.put_rows(call.service, _found(call), call.caller.member, call.sent)
    return PartOfTable(provider=call.caller.member, rows=count)


@_routes.at("DELETE", f"{_ONE}/rows", "table.give", status=204)
def _delete_own_rows(call: Call) -> None:
    """Delete your rows."""
    tables.drop_rows(call.service, _found(call), call.caller.member)


@_routes.at("POST", f"{_ONE}/publication", "table.publish")
def _publish_table(call: Call) -> Job:
    """Publish a table, once; a large one in the background."""
    service, stored = call.service, _found(call)
    identity = tables.submit(service, stored)
    rows = sum(
        part.rows for part in service.storage.read(lambda t: tables.parts_of(t, stored.name))
    )
    if rows <= tables.SMALL:
        pace = Pace()
        lease = jobs.claim(service.storage, "the server", pace.lease, only=identity)
        if lease is not None:
            carry_out(service, lease, pace)

    def read(t: Transaction) -> Job:
        job = jobs.find(t, identity)
        if job is None:
            raise not_found()
        return shown(t, job)

    return service.storage.read(read)


@_routes.at("GET", f"{_ONE}/publication", "table.published")
def _show_publication(call: Call) -> Published:
    """Get the published table."""
    stored = _found(call)
    content = tables.published(call.service, stored).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@_routes.at("GET", f"{_ONE}/report", "table.report")
def _show_table_report(call: Call) -> TableReport:
    """Say what the published table reveals, and who could break what."""
    stored = _found(call)
    tables.published(call.service, stored)
    report = dict(stored.report)
    weakest = report.pop("weakest")
    return TableReport(
        name=stored.name, weakest=None if weakest is None else Weakest(**weakest), **report
    )


@_routes.at("GET", f"{_ONE}/check", "table.check")
def _check_own_rows(call: Call) -> SelfCheck:
    """Say what you learn from the published table with your own rows."""
    stored = _found(call)
    found = tables.self_check(call.service, stored, call.caller.member)
    return SelfCheck(name=stored.name, explanation=found.pop("explanation"), found=found)


PART = Part(
    schema=tables.SCHEMA, belongs={"table": own("table")}, files=tables.files, routes=tuple(_routes)
)
