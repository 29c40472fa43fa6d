"""Collaborative tables: rows of several providers, published once, so that none can undo it.

Every provider uploads its own rows and sees nobody else's; columns that the rules do not name are
not kept. The owner says which columns identify people and which are sensitive, and k, l and m, and
never sees a row. Publishing is a job: the rows are pooled in the memory of a process of its own,
anonymized and verified, and only the published table, what it reveals as a whole and each
provider's own check leave it. A table is published once: a second publication of nearly the same
rows could be intersected with the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from quiltwork.client.records import CollaborativeTable, GivenPart, Job
from quiltwork.errors import InvalidInputError
from quiltwork.service import jobs
from quiltwork.service.datasets import Column
from quiltwork.service.objects import Kind, StoredObject
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, shown_as

if TYPE_CHECKING:
    from quiltwork.tables import Constraint, Table
    from quiltwork.tables.publishing.published_records import Publication

_ALL, _ONE = "/v1/tables", "/v1/tables/{table}"
_Small = Annotated[int, Meta(ge=1, le=10**6)]


class TableRules(Document, frozen=True):
    """Which columns are what, and what every group of the published table must withstand.

    A missing value is refused, or with `missing` as "value" is one of its own; the sensitive one
    counts as no value for l then. Columns of `text` are read as text; `types` says of others what
    all cells are, and `na_values` which words stand for a missing one, so that no provider's cell
    changes how everybody's are read.
    `hierarchies` has the rows of a tree by column, each from leaf to root.
    """

    quasi_identifiers: Annotated[list[Column], Meta(min_length=1, max_length=50)]
    sensitive: Column
    k: _Small
    l: _Small = 1  # noqa: E741  (the literature's own name)
    m: Annotated[int, Meta(ge=0, le=100)] = 1
    missing: Literal["error", "value"] = "error"
    text: Annotated[list[Column], Meta(max_length=200)] = msgspec.field(default_factory=list)
    types: dict[Column, Literal["number", "date", "time", "text"]] = msgspec.field(
        default_factory=dict
    )
    na_values: Annotated[list[str], Meta(max_length=50)] = msgspec.field(default_factory=list)
    hierarchies: dict[Column, list[list[str]]] = msgspec.field(default_factory=dict)
    method: Literal["provider-aware", "baseline", "separate"] = "provider-aware"

    @property
    def constraint(self) -> Constraint:
        """The constraint on a group."""
        from quiltwork.tables import KAnonymity, LDiversity

        found = KAnonymity(self.k)
        return found & LDiversity(self.l) if self.l > 1 else found

    @property
    def columns(self) -> list[str]:
        """The columns that are kept of a file."""
        return [*self.quasi_identifiers, self.sensitive]

    def check(self) -> None:
        """Refuse rules that no file could fit.

        Raises:
            InvalidInputError: for a column of two roles, and a hierarchy that is none.
        """
        from quiltwork.tables.codes.hierarchies import Hierarchy

        if len(set(self.columns)) < len(self.columns):
            raise InvalidInputError("A column is either a quasi-identifier or sensitive, once.")
        if strange := sorted({*self.text, *self.types, *self.hierarchies} - set(self.columns)):
            raise InvalidInputError(
                f"The rules say how {strange[0]!r} is read, and use it nowhere."
            )
        if self.sensitive in self.hierarchies:
            raise InvalidInputError(
                "A hierarchy generalizes a quasi-identifier, not what is sensitive."
            )
        for name, rows in self.hierarchies.items():
            Hierarchy.read(rows, name)

    def table(self, path: Path) -> Table:
        """Read a file as a table of one provider."""
        from quiltwork.tables import Table

        return Table(
            *(str(path), None, self.quasi_identifiers, self.sensitive),
            hierarchies=self.hierarchies,
            missing=self.missing,
            text=self.text,
            types=self.types,
            na_values=self.na_values,
        )

    def published(self, path: Path) -> Table:
        """Read a published file; its labels are texts, which nothing generalizes further."""
        return replace(self, hierarchies={}, types={}).table(path)

    def pooled(self, paths: Mapping[str, str]) -> Table:
        """Read the files of all providers as one table."""
        from quiltwork.tables import Table

        return Table.concat(
            *(paths, self.quasi_identifiers, self.sensitive),
            text=self.text,
            types=self.types,
            na_values=self.na_values,
            hierarchies=self.hierarchies,
            missing=self.missing,
        )


State: TypeAlias = Literal["collecting", "publishing", "published"]


@dataclass(frozen=True)
class Collected(StoredObject):
    """A table; `made` has its `job`.

    Once published it has `publication`, a file, its `report`, and how many rows were `given`.
    """

    asked: TableRules


TABLES = Kind("table", Collected)


@dataclass(frozen=True)
class GivenRows:
    """The rows of one provider of a table, at rest."""

    name: str
    provider: str
    file: str
    suffix: str
    row_count: int


_PARTS = TableOf("curator_parts", GivenRows, "name, provider")


def _files(t: Transaction) -> list[str]:
    """Return the files of the vault that tables need."""
    groups: list[Any] = TABLES.files(t, "row_groups")
    return [
        *(one.file for one in _PARTS.all(t, "1 = 1")),
        *TABLES.files(t, "publication"),
        *(file for of_table in groups for file in of_table.values()),
    ]


FEATURE = Feature(Schema("parts", (_PARTS,)), {"table": TABLES.is_own}, _files)


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


def _shown(t: Transaction, stored: Collected, caller: Caller) -> CollaborativeTable:
    everything = caller.role == "auditor" or caller.member == stored.owner
    job = jobs.JOBS.one(t, id=stored.made.get("job", "")) if everything else None
    return shown_as(
        CollaborativeTable,
        stored,
        created=jobs.written(stored.created),
        rules=msgspec.to_builtins(stored.asked),
        state=_state(t, stored),
        parts=[one for one in _given(t, stored) if everything or one.provider == caller.member]
        if everything or caller.role == "provider"
        else None,
        admitted=TABLES.admitted(t, stored, caller),
        job=None if job is None else jobs.shown(t, job),
    )


@FEATURE.at("GET", _ONE, "table.read")
def _show_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Show a table, its rules and where its publication is."""
    return _shown(t, TABLES.current(t, call.path["table"]), call.caller)


@FEATURE.at("GET", _ALL, "table.list", query=PageQuery)
def _list_tables(call: Call, t: Transaction) -> Page[CollaborativeTable]:
    """List the tables that you may use."""
    return TABLES.listed(call, t).shown(lambda one: _shown(t, one, call.caller))


@FEATURE.at("POST", _ALL, "table.create", request=NewTable, status=201)
def _make_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Make a table that providers give rows to."""
    call.body.rules.check()
    TABLES.create(t, call.body.name, call.who, call.body.rules)
    return _shown(t, TABLES.current(t, call.body.name), call.caller)


@FEATURE.at("PUT", f"{_ONE}/rules", "table.rules", request=TableRules)
def _set_table_rules(call: Call, t: Transaction) -> CollaborativeTable:
    """Set columns, k, l and m, until rows are given."""
    call.body.check()
    table = TABLES.current(t, call.path["table"])
    _refuse_published(t, table)
    if _parts_of(t, table.name):  # given for rules under which they may be protected better
        raise InvalidInputError(
            f"Providers have given rows to table {table.name!r} under its present rules. Make "
            "another table, or let every provider delete its rows first."
        )
    TABLES.write(t, table.name, call.body, table.made)
    t.note("act", f"set the rules of table {table.name}", table.owner)
    return _show_table(call, t)


@FEATURE.at("PUT", f"{_ONE}/access/{{member}}", "table.admit")
def _admit_to_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Let a provider give rows, or an analyst read what is published."""
    TABLES.admit(call, t)
    return _show_table(call, t)


@FEATURE.at("DELETE", f"{_ONE}/access/{{member}}", "table.admit", status=204)
def _dismiss_from_table(call: Call) -> None:
    """Take access back; a provider's rows are deleted with it."""
    _drop_rows(call, call.path["member"], dismissed=True)


@FEATURE.at("PUT", f"{_ONE}/rows", "table.give", upload=True)
def _give_rows(call: Call) -> GivenPart:
    """Give your rows, in the place of those that you gave before."""
    table, provider = TABLES.named(call), call.who
    rules = table.asked
    with call.sent.table() as path:
        count = rules.table(path).encoded.rows
        kept = call.sent.only(path, rules.columns)

    def work(t: Transaction, file: str) -> list[str]:
        now = TABLES.current(t, table.name)
        _refuse_published(t, now)
        if now.asked != rules:
            raise InvalidInputError("The rules were changed just now; read them, and send again.")
        old = _forgotten(t, table.name, provider)
        _PARTS.add(t, GivenRows(table.name, provider, file, call.sent.suffix, count))
        t.note("act", f"gave {count} rows to table {table.name}", provider)
        return old

    call.service.keep(kept, work)
    return GivenPart(provider, count)


@FEATURE.at("DELETE", f"{_ONE}/rows", "table.give", status=204)
def _delete_own_rows(call: Call) -> None:
    """Delete your rows."""
    _drop_rows(call, call.who)


def _drop_rows(call: Call, provider: str, *, dismissed: bool = False) -> None:
    """Delete a provider's rows, perhaps with its access; a publication that has them stays."""

    def work(t: Transaction) -> list[str]:
        now = TABLES.current(t, call.path["table"])
        if _open_job(t, now):
            raise InvalidInputError("The table is being published; wait, or cancel the job.")
        files = _forgotten(t, now.name, provider)
        groups = dict(now.made.get("row_groups", {}))
        if provider in groups:
            files.append(groups.pop(provider))
            TABLES.update(t, now, row_groups=groups)
        if dismissed:
            TABLES.dismiss(call, t)
        if files:
            t.note("act", f"deleted the rows of {provider} in table {now.name}", call.who)
        return files

    call.service.forget(work)


def _forgotten(t: Transaction, name: str, provider: str) -> list[str]:
    """Forget the rows of one provider; return the files that held them."""
    files = [part.file for part in _parts_of(t, name) if part.provider == provider]
    _PARTS.delete(t, name=name, provider=provider)
    return files


@FEATURE.at("POST", f"{_ONE}/publication", "table.publish")
def _publish_table(call: Call) -> Job:
    """Publish a table, once: it is queued, and made by a process of its own."""
    service, new = call.service, jobs.new_id()

    def work(t: Transaction) -> Job:
        """Queue the publication, or find the job that is at it."""
        now = TABLES.current(t, call.path["table"])
        if not _open_job(t, now) and "publication" not in now.made:
            if len(_parts_of(t, now.name)) < 2:
                raise InvalidInputError("A collaborative table needs the rows of two providers.")
            jobs.submit(t, now.owner, now.name, new)
            TABLES.update(t, now, job=new)
            t.note("act", f"publishes table {now.name}", now.owner)
        made = TABLES.current(t, now.name).made
        return jobs.shown(t, jobs.JOBS.named(t, id=made["job"]))

    found = service.write(work)
    service.queued.set()
    return found


def published_from(
    service: Service, name: str, folder: Path, progress: Callable[[int, int], None]
) -> Callable[[Transaction], None]:
    """Anonymize, verify and describe a table; return what stores it in a transaction.

    What is written on the way is in `folder`, which is private and deleted afterwards.
    """
    from quiltwork.tables import anonymize, write_row_groups

    table, parts = service.read(lambda t: (TABLES.current(t, name), _parts_of(t, name)))
    rules = table.asked
    with ExitStack() as stack:
        paths = {
            part.provider: str(stack.enter_context(service.vault.plain(part.file, part.suffix)))
            for part in parts
        }
        pooled = rules.pooled(paths)
        made = anonymize(pooled, rules.constraint, rules.m, rules.method, progress=progress)
    report = _described(made)
    content = made.write(folder / "published.csv", "escape").read_bytes()
    own = {one.stem: one.read_bytes() for one in write_row_groups(made, folder / "own", "escape")}
    file = service.vault.write([content])
    groups = {provider: service.vault.write([own[provider]]) for provider in sorted(own)}

    def store(t: Transaction) -> None:
        given = {part.provider: part.row_count for part in parts}
        made = {"publication": file, "row_groups": groups, "report": report, "given": given}
        TABLES.update(t, TABLES.current(t, table.name), **made)
        t.note("act", f"published table {table.name}", table.owner)

    return store


def _described(made: Publication) -> dict[str, Any]:
    """What a publication reveals as a whole, without a single record: for its owner."""
    report = made.report().body()
    return {
        **made.summary(),
        "constraint": made.constraint,
        "m": made.m,
        "risk": {
            **{name: report[name] for name in ("models", "reidentification")},
            "warnings": [
                {name: one[name] for name in ("attack", "message")} for one in report["attacks"]
            ],
        },
        "query_error": report["query_error"],
        "sizes": report["reidentification"]["sizes"],
    }


@FEATURE.at("GET", f"{_ONE}/publication", "table.published")
def _show_publication(call: Call) -> Published:
    """Get the published table."""
    stored, file = _published(call)
    content = b"".join(call.service.vault.read(file)).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@FEATURE.at("GET", f"{_ONE}/row-groups", "table.check")
def _show_row_groups(call: Call) -> Published:
    """Get your own rows as they were published, which says in which groups they are."""
    stored, _ = _published(call)
    file = stored.made["row_groups"].get(call.who)
    if file is None:
        raise InvalidInputError(f"You have no rows in table {stored.name!r}.")
    content = b"".join(call.service.vault.read(file)).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@FEATURE.at("GET", f"{_ONE}/report", "table.report")
def _show_table_report(call: Call) -> PublishedReport:
    """Say what the published table reveals, and who could break what."""
    stored, _ = _published(call)
    return msgspec.convert({"name": stored.name, **stored.made["report"]}, PublishedReport)


@FEATURE.at("GET", f"{_ONE}/check", "table.check")
def _check_own_rows(call: Call) -> SelfCheck:
    """Say what you learn from the published table with your own rows."""
    from quiltwork.tables import own_view

    (stored, file), vault = _published(call), call.service.vault
    part = call.service.read(lambda t: _PARTS.one(t, name=stored.name, provider=call.who))
    if part is None:
        raise InvalidInputError(f"You have no rows in table {stored.name!r}.")
    rules, placed = stored.asked, stored.made["row_groups"][call.who]
    with (
        vault.plain(file, ".csv") as shown,
        vault.plain(part.file, part.suffix) as own,
        vault.plain(placed, ".csv") as groups,
    ):
        view = own_view(
            rules.published(shown),
            rules.table(own),
            rules.constraint,
            row_groups=rules.published(groups),
        )
    found = json.loads(view.to_json())
    return SelfCheck(name=stored.name, explanation=view.explain(), found=found)


def _published(call: Call) -> tuple[Collected, str]:
    """Return a table that is published, and the file that it is in."""
    stored = TABLES.named(call)
    if "publication" not in stored.made:
        raise InvalidInputError(f"Table {stored.name!r} is not published yet.")
    return stored, stored.made["publication"]


def _parts_of(t: Transaction, name: str) -> list[GivenRows]:
    """Return the rows that every provider gave, as names of files."""
    return _PARTS.all(t, "name = ? ORDER BY provider", name)


def _given(t: Transaction, table: Collected) -> list[GivenPart]:
    """Return how many rows every provider gave; of a published table, what it was made of."""
    kept = {part.provider: part.row_count for part in _parts_of(t, table.name)}
    given = table.made.get("given", kept)
    return [GivenPart(name, rows, name in kept) for name, rows in given.items()]


def _state(t: Transaction, table: Collected) -> State:
    """Say where a table is."""
    if "publication" in table.made:
        return "published"
    return "publishing" if _open_job(t, table) else "collecting"


def _open_job(t: Transaction, table: Collected) -> bool:
    job = jobs.JOBS.one(t, id=table.made.get("job", ""))
    return job is not None and job.state in ("queued", "running")


def _refuse_published(t: Transaction, table: Collected) -> None:
    if _state(t, table) != "collecting":
        raise InvalidInputError(
            f"Table {table.name!r} is published, or about to be, and a second publication of "
            "nearly the same rows could be intersected with it; make a new table."
        )
