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
from quiltwork.service.routes import Call, Part, Route
from quiltwork.service.storage import Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery
from quiltwork.service.worker import Pace, carry_out

_Column = Annotated[str, Meta(min_length=1, max_length=200)]
_Small = Annotated[int, Meta(ge=1, le=10**6)]


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


def _read(call: Call) -> Table:
    stored = _found(call)
    return call.service.storage.read(lambda t: _described(t, stored, call.caller))


def _list(call: Call) -> Tables:
    def read(t: Transaction) -> list[Table]:
        names = listed(t, "table", call.caller, call.query)
        return [_described(t, tables.current(t, name), call.caller) for name in names]

    items = call.service.storage.read(read)
    return Tables(**paged(items, call.query.limit, lambda one: one.name))


def _create(call: Call) -> Table:
    name, rules, who = call.body.name, _rules(call.body.rules), call.caller.member
    call.service.storage.write(lambda t: tables.create(t, name, who, rules))
    return call.service.storage.read(lambda t: _described(t, tables.current(t, name), call.caller))


def _set(call: Call) -> Table:
    name, rules = call.path["table"], _rules(call.body)
    call.service.storage.write(lambda t: tables.set_rules(t, tables.current(t, name), rules))
    return _read(call)


def _admit(call: Call) -> Table:
    stored, member = _found(call), call.path["member"]
    call.service.storage.write(lambda t: admit(t, "table", stored.name, member, stored.owner))
    return _read(call)


def _put_rows(call: Call) -> PartOfTable:
    count = tables.put_rows(call.service, _found(call), call.caller.member, call.sent)
    return PartOfTable(provider=call.caller.member, rows=count)


def _drop_rows(call: Call) -> None:
    tables.drop_rows(call.service, _found(call), call.caller.member)


def _publish(call: Call) -> Job:
    """Queue the publication; a small table is published within the request."""
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


def _publication(call: Call) -> Published:
    stored = _found(call)
    content = tables.published(call.service, stored).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


def _report(call: Call) -> TableReport:
    stored = _found(call)
    tables.published(call.service, stored)
    report = dict(stored.report)
    weakest = report.pop("weakest")
    return TableReport(
        name=stored.name, weakest=None if weakest is None else Weakest(**weakest), **report
    )


def _check(call: Call) -> SelfCheck:
    stored = _found(call)
    found = tables.self_check(call.service, stored, call.caller.member)
    return SelfCheck(name=stored.name, explanation=found.pop("explanation"), found=found)


_ALL, _ONE = "/v1/tables", "/v1/tables/{table}"

PART = Part(
    schema=tables.SCHEMA,
    belongs={"table": own("table")},
    files=tables.files,
    routes=(
        Route(
            *("make_table", "POST", _ALL, "table.create", _create),
            "Make a table that providers give rows to.",
            request=NewTable,
            response=Table,
            status=201,
        ),
        Route(
            *("list_tables", "GET", _ALL, "table.list", _list),
            "List the tables that you may use.",
            response=Tables,
            query=PageQuery,
        ),
        Route(
            *("show_table", "GET", _ONE, "table.read", _read),
            "Show a table, its rules and where its publication is.",
            response=Table,
        ),
        Route(
            *("set_table_rules", "PUT", f"{_ONE}/rules", "table.rules", _set),
            "Set columns, k, l and m, until it is published.",
            request=TableRules,
            response=Table,
        ),
        Route(
            *("admit_to_table", "PUT", f"{_ONE}/access/{{member}}", "table.admit", _admit),
            "Let a provider give rows, or an analyst read what is published.",
            response=Table,
        ),
        Route(
            *("give_rows", "PUT", f"{_ONE}/rows", "table.give", _put_rows),
            "Give your rows, in the place of those that you gave before.",
            response=PartOfTable,
            upload=True,
        ),
        Route(
            *("delete_own_rows", "DELETE", f"{_ONE}/rows", "table.give", _drop_rows),
            "Delete your rows.",
            status=204,
        ),
        Route(
            *("publish_table", "POST", f"{_ONE}/publication", "table.publish", _publish),
            "Publish a table, once; a large one in the background.",
            response=Job,
        ),
        Route(
            *("show_publication", "GET", f"{_ONE}/publication", "table.published", _publication),
            "Get the published table.",
            response=Published,
        ),
        Route(
            *("show_table_report", "GET", f"{_ONE}/report", "table.report", _report),
            "Say what the published table reveals, and who could break what.",
            response=TableReport,
        ),
        Route(
            *("check_own_rows", "GET", f"{_ONE}/check", "table.check", _check),
            "Say what you learn from the published table with your own rows.",
            response=SelfCheck,
        ),
    ),
)
