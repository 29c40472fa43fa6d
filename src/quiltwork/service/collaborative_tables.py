"""Collaborative tables: rows of several providers, anonymized and published once.

Every provider uploads its own rows and sees nobody else's; columns that the rules do not name are
not stored. The owner sets the roles of columns and k, l and m, and never sees a row. Publishing is
a job: a separate process pools the rows in memory, anonymizes and verifies them, and outputs only
the published table, a report without records, and each provider's own check. A table is published
only once, as a second publication of nearly the same rows could be intersected with the first.
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
from quiltwork.service.objects import ObjectKind, StoredObject
from quiltwork.service.rights import Caller
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document, Name, Page, PageQuery, copy_fields

if TYPE_CHECKING:
    from quiltwork.tables import Constraint, Table
    from quiltwork.tables.publishing.published_records import Publication

_ALL, _ONE = "/v1/tables", "/v1/tables/{table}"
_Small = Annotated[int, Meta(ge=1, le=10**6)]


class TableRules(Document, frozen=True):
    """The roles of columns, how cells are read, and the guarantee for every published group.

    Missing values are refused, or with `missing="value"` are a value of their own, which counts
    towards l in the sensitive column only with `count_missing`. `text` lists columns read as text;
    `types` fixes the type of others and `na_values` the words for a missing value, so that no
    provider's cells change how another's are read. `hierarchies` holds the rows of a tree for each
    column, leaf to root; that of the sensitive column needs a level in `levels`, at which values
    are counted. `split`, `blind`, `boxes` and `suppression` are options of `anonymize`.
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
    levels: dict[Column, Annotated[int, Meta(ge=1)]] = msgspec.field(default_factory=dict)
    count_missing: bool = False
    method: Literal["provider-aware", "baseline", "separate"] = "provider-aware"
    split: Literal["loss", "range", "fitness"] | None = None
    blind: bool = False
    boxes: Literal["overlapping", "disjoint"] = "overlapping"
    suppression: Annotated[float, Meta(ge=0, lt=1)] = 0

    @property
    def constraint(self) -> Constraint:
        """The constraint that every group must meet."""
        from quiltwork.tables import KAnonymity, LDiversity

        k_anonymity = KAnonymity(self.k)
        return k_anonymity & LDiversity(self.l) if self.l > 1 else k_anonymity

    @property
    def columns(self) -> list[str]:
        """The columns of a file that are stored."""
        return [*self.quasi_identifiers, self.sensitive]

    def check(self) -> None:
        """Refuse contradictory rules.

        Raises:
            InvalidInputError: for a column with two roles, a malformed hierarchy, a level that it
                does not have, and options that cannot be combined.
        """
        from quiltwork.tables.anonymization import parse_recipe
        from quiltwork.tables.codes.hierarchies import Hierarchy
        from quiltwork.tables.input.frames import arrow
        from quiltwork.tables.table import hierarchy_with_level

        if len(set(self.columns)) < len(self.columns):
            raise InvalidInputError(
                "Each column is listed once: as a quasi-identifier or as sensitive."
            )
        declared = {*self.text, *self.types, *self.hierarchies, *self.levels}
        if unused := sorted(declared - set(self.columns)):
            raise InvalidInputError(
                f"The rules say how column {unused[0]!r} is read, but give it no role."
            )
        for name, rows in self.hierarchies.items():
            Hierarchy.read(rows, name)
        # A table without rows is refused for what would refuse every provider's, or the job.
        empty = self._declared(arrow().table({name: [] for name in self.columns}))
        for name in self.levels:
            hierarchy_with_level(empty, name)
        parse_recipe(empty, self.constraint, self.m, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The options of `anonymize` besides the constraint and m."""
        names = ("method", "split", "blind", "boxes", "suppression")
        return {name: getattr(self, name) for name in names}

    @property
    def _declarations(self) -> dict[str, Any]:
        """What a `Table` declares besides the reading of files."""
        roles = ("quasi_identifiers", "sensitive")
        names = (*roles, "hierarchies", "missing", "levels", "count_missing")
        return {name: getattr(self, name) for name in names}

    @property
    def _reading(self) -> dict[str, Any]:
        """How the cells of files are read."""
        return {"text": self.text, "types": self.types, "na_values": self.na_values}

    def _declared(self, frame: Any, **reading: Any) -> Table:
        from quiltwork.tables import Table

        return Table(frame, provider=None, **self._declarations, **reading)

    def table(self, path: Path) -> Table:
        """Read one provider's file as a table."""
        return self._declared(str(path), **self._reading)

    def published(self, path: Path) -> Table:
        """Read a published file: quasi-identifiers are labels, sensitive values are as given."""
        trees = {name: rows for name, rows in self.hierarchies.items() if name == self.sensitive}
        return replace(self, hierarchies=trees, types={}).table(path)

    def pooled(self, paths: Mapping[str, str]) -> Table:
        """Read the files of all providers as one table."""
        from quiltwork.tables import Table

        return Table.concat(paths, **self._declarations, **self._reading)


State: TypeAlias = Literal["collecting", "publishing", "published"]


@dataclass(frozen=True)
class TableRecord(StoredObject):
    """A table as it is stored; its state has the `job` that publishes it.

    Once published it also has the file `publication`, the `report`, and the rows `given`.
    """

    spec: TableRules


TABLES = ObjectKind("table", TableRecord)


@dataclass(frozen=True)
class GivenRows:
    """The stored rows of one provider."""

    name: str
    provider: str
    file: str
    suffix: str
    row_count: int


_PARTS = TableOf("curator_parts", GivenRows, "name, provider")


def _files(t: Transaction) -> list[str]:
    """Return the vault files that tables reference."""
    groups: list[Any] = TABLES.files(t, "row_groups")
    return [
        *(part.file for part in _PARTS.select(t, "1 = 1")),
        *TABLES.files(t, "publication"),
        *(file for by_provider in groups for file in by_provider.values()),
    ]


FEATURE = Feature(Schema("parts", (_PARTS,)), {"table": TABLES.is_own}, _files)


class NewTable(Document, frozen=True):
    """A table to create."""

    name: Name
    rules: TableRules


class Published(Document, frozen=True):
    """A published file."""

    name: str
    media_type: str
    content: str


class Weakest(Document, frozen=True):
    """The smallest coalition of providers that breaks the constraint, and in which group.

    `left` is the number of records that remain there without the coalition's own.
    """

    coalition: list[str]
    group: list[str]
    breaks: str
    left: int


class PublishedReport(Document, frozen=True):
    """Risk and utility of a published table as a whole, without records.

    `withstands` is the largest number of colluding providers that cannot break the constraint,
    `sizes` the number of groups of each size, `groups_of_one` the number of groups with rows of a
    single provider; `providers` lists each provider's rows and how many of them are published.
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
    """What a provider can infer from the published table and its own rows."""

    name: str
    explanation: str
    found: dict[str, Any]


def _table_record(t: Transaction, stored: TableRecord, caller: Caller) -> CollaborativeTable:
    sees_all = caller.role == "auditor" or caller.member == stored.owner
    job = jobs.JOBS.find(t, id=stored.state.get("job", "")) if sees_all else None
    return copy_fields(
        CollaborativeTable,
        stored,
        created=jobs.as_iso(stored.created),
        rules=msgspec.to_builtins(stored.spec),
        state=_state(t, stored),
        parts=[part for part in _given(t, stored) if sees_all or part.provider == caller.member]
        if sees_all or caller.role == "provider"
        else None,
        admitted=TABLES.admitted(t, stored, caller),
        job=None if job is None else jobs.job_record(t, job),
    )


@FEATURE.at("GET", _ONE, "table.read")
def _show_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Show a table, its rules and the state of its publication."""
    return _table_record(t, TABLES.current(t, call.path["table"]), call.caller)


@FEATURE.at("GET", _ALL, "table.list", query=PageQuery)
def _list_tables(call: Call, t: Transaction) -> Page[CollaborativeTable]:
    """List the tables that you may use."""
    return TABLES.listed(call, t).map(lambda stored: _table_record(t, stored, call.caller))


@FEATURE.at("POST", _ALL, "table.create", request=NewTable, status=201)
def _make_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Create a table for which providers upload rows."""
    call.body.rules.check()
    TABLES.create(t, call.body.name, call.member, call.body.rules)
    return _table_record(t, TABLES.current(t, call.body.name), call.caller)


@FEATURE.at("PUT", f"{_ONE}/rules", "table.rules", request=TableRules)
def _set_table_rules(call: Call, t: Transaction) -> CollaborativeTable:
    """Change the rules, until the first rows are uploaded."""
    call.body.check()
    table = TABLES.current(t, call.path["table"])
    _refuse_published(t, table)
    # Providers agreed to the rules under which they uploaded, which may protect them better.
    if _parts_of(t, table.name):
        raise InvalidInputError(
            f"Providers have uploaded rows to table {table.name!r} under its current rules. Create "
            "another table, or let every provider delete its rows first."
        )
    TABLES.write(t, table.name, call.body, table.state)
    t.note("act", f"set the rules of table {table.name}", table.owner)
    return _show_table(call, t)


@FEATURE.at("PUT", f"{_ONE}/access/{{member}}", "table.admit")
def _admit_to_table(call: Call, t: Transaction) -> CollaborativeTable:
    """Give a provider access to upload rows, or an analyst access to the published table."""
    TABLES.admit(call, t)
    return _show_table(call, t)


@FEATURE.at("DELETE", f"{_ONE}/access/{{member}}", "table.admit", status=204)
def _dismiss_from_table(call: Call) -> None:
    """Withdraw a member's access; a provider's rows are deleted with it."""
    _drop_rows(call, call.path["member"], dismissed=True)


@FEATURE.at("PUT", f"{_ONE}/rows", "table.give", upload=True)
def _give_rows(call: Call) -> GivenPart:
    """Upload your rows; they replace your earlier ones."""
    table, provider = TABLES.requested(call), call.member
    rules = table.spec
    with call.file.table() as path:
        count = rules.table(path).encoded.rows
        content = call.file.with_columns(path, rules.columns)

    def work(t: Transaction, file: str) -> list[str]:
        now = TABLES.current(t, table.name)
        _refuse_published(t, now)
        if now.spec != rules:
            raise InvalidInputError("The rules were changed meanwhile. Read them, then send again.")
        replaced = _remove_parts(t, table.name, provider)
        _PARTS.add(t, GivenRows(table.name, provider, file, call.file.suffix, count))
        t.note("act", f"gave {count} rows to table {table.name}", provider)
        return replaced

    call.service.store_file(content, work)
    return GivenPart(provider, count)


@FEATURE.at("DELETE", f"{_ONE}/rows", "table.give", status=204)
def _delete_own_rows(call: Call) -> None:
    """Delete your rows."""
    _drop_rows(call, call.member)


def _drop_rows(call: Call, provider: str, *, dismissed: bool = False) -> None:
    """Delete a provider's rows, and its access if `dismissed`; a publication stays as it is."""

    def work(t: Transaction) -> list[str]:
        now = TABLES.current(t, call.path["table"])
        if _open_job(t, now):
            raise InvalidInputError("The table is being published. Wait, or cancel the job first.")
        files = _remove_parts(t, now.name, provider)
        groups = dict(now.state.get("row_groups", {}))
        if provider in groups:
            files.append(groups.pop(provider))
            TABLES.update(t, now, row_groups=groups)
        if dismissed:
            TABLES.dismiss(call, t)
        if files:
            t.note("act", f"deleted the rows of {provider} in table {now.name}", call.member)
        return files

    call.service.delete_files(work)


def _remove_parts(t: Transaction, name: str, provider: str) -> list[str]:
    """Remove one provider's rows from a table; return the files that are no longer referenced."""
    files = [part.file for part in _parts_of(t, name) if part.provider == provider]
    _PARTS.delete(t, name=name, provider=provider)
    return files


@FEATURE.at("POST", f"{_ONE}/publication", "table.publish")
def _publish_table(call: Call) -> Job:
    """Publish a table, once: a job is queued, and a separate process runs it."""
    service, new = call.service, jobs.new_id()

    def work(t: Transaction) -> Job:
        """Queue the publication, or return the job that exists already."""
        now = TABLES.current(t, call.path["table"])
        if not _open_job(t, now) and "publication" not in now.state:
            if len(_parts_of(t, now.name)) < 2:
                raise InvalidInputError("Publishing needs rows of at least two providers.")
            jobs.submit(t, now.owner, now.name, new)
            TABLES.update(t, now, job=new)
            t.note("act", f"publishes table {now.name}", now.owner)
        state = TABLES.current(t, now.name).state
        return jobs.job_record(t, jobs.JOBS.get(t, id=state["job"]))

    job = service.write(work)
    service.publication_queued.set()
    return job


def published_from(
    service: Service, name: str, folder: Path, progress: Callable[[int, int], None]
) -> Callable[[Transaction], None]:
    """Anonymize, verify and describe a table; return the function that stores it in a transaction.

    Intermediate files go to `folder`, which is private and deleted afterwards.
    """
    from quiltwork.tables import anonymize, write_row_groups

    table, parts = service.read(lambda t: (TABLES.current(t, name), _parts_of(t, name)))
    rules = table.spec
    with ExitStack() as stack:
        paths = {
            part.provider: str(stack.enter_context(service.vault.plain(part.file, part.suffix)))
            for part in parts
        }
        pooled = rules.pooled(paths)
        publication = anonymize(
            pooled, rules.constraint, rules.m, progress=progress, **rules.options
        )
    report = _report(publication)
    # "escape" keeps a provider's cell such as =HYPERLINK(1) from becoming a formula.
    content = publication.write(folder / "published.csv", "escape").read_bytes()
    paths_of_groups = write_row_groups(publication, folder / "own", "escape")
    file = service.vault.write([content])
    groups = {
        path.stem: service.vault.write([path.read_bytes()]) for path in sorted(paths_of_groups)
    }

    def store(t: Transaction) -> None:
        given = {part.provider: part.row_count for part in parts}
        state = {"publication": file, "row_groups": groups, "report": report, "given": given}
        TABLES.update(t, TABLES.current(t, table.name), **state)
        t.note("act", f"published table {table.name}", table.owner)

    return store


def _report(publication: Publication) -> dict[str, Any]:
    """Return the fields of `PublishedReport`, which hold no record."""
    report = publication.report().body()
    return {
        **publication.summary(),
        "constraint": publication.constraint,
        "m": publication.m,
        "risk": {
            **{name: report[name] for name in ("models", "reidentification")},
            "warnings": [
                {name: attack[name] for name in ("attack", "message")}
                for attack in report["attacks"]
            ],
        },
        "query_error": report["query_error"],
        "sizes": report["reidentification"]["sizes"],
    }


@FEATURE.at("GET", f"{_ONE}/publication", "table.published")
def _show_publication(call: Call) -> Published:
    """Return the published table as CSV text in a JSON document."""
    stored, file = _publication_file(call)
    content = b"".join(call.service.vault.read(file)).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@FEATURE.at("GET", f"{_ONE}/row-groups", "table.check")
def _show_row_groups(call: Call) -> Published:
    """Return your own rows as published, which shows their groups, as CSV text in JSON."""
    stored, _ = _publication_file(call)
    file = stored.state["row_groups"].get(call.member)
    if file is None:
        raise InvalidInputError(f"You have no rows in table {stored.name!r}.")
    content = b"".join(call.service.vault.read(file)).decode("utf-8")
    return Published(name=stored.name, media_type="text/csv", content=content)


@FEATURE.at("GET", f"{_ONE}/report", "table.report")
def _show_table_report(call: Call) -> PublishedReport:
    """Report the risk of the published table, and the coalitions that could break it."""
    stored, _ = _publication_file(call)
    return msgspec.convert({"name": stored.name, **stored.state["report"]}, PublishedReport)


@FEATURE.at("GET", f"{_ONE}/check", "table.check")
def _check_own_rows(call: Call) -> SelfCheck:
    """Report what you can infer from the published table and your own rows."""
    from quiltwork.tables import own_view

    (stored, file), vault = _publication_file(call), call.service.vault
    part = call.service.read(lambda t: _PARTS.find(t, name=stored.name, provider=call.member))
    if part is None:
        raise InvalidInputError(f"You have no rows in table {stored.name!r}.")
    rules, groups_file = stored.spec, stored.state["row_groups"][call.member]
    with (
        vault.plain(file, ".csv") as published,
        vault.plain(part.file, part.suffix) as own,
        vault.plain(groups_file, ".csv") as groups,
    ):
        view = own_view(
            rules.published(published),
            rules.table(own),
            rules.constraint,
            row_groups=rules.published(groups),
        )
    document = json.loads(view.to_json())
    return SelfCheck(name=stored.name, explanation=view.explain(), found=document)


def _publication_file(call: Call) -> tuple[TableRecord, str]:
    """Return the requested table and the vault file of its publication."""
    stored = TABLES.requested(call)
    if "publication" not in stored.state:
        raise InvalidInputError(f"Table {stored.name!r} has not been published yet.")
    return stored, stored.state["publication"]


def _parts_of(t: Transaction, name: str) -> list[GivenRows]:
    """Return each provider's stored rows."""
    return _PARTS.select(t, "name = ? ORDER BY provider", name)


def _given(t: Transaction, table: TableRecord) -> list[GivenPart]:
    """Return each provider's number of rows; for a published table, as they were at publication."""
    stored = {part.provider: part.row_count for part in _parts_of(t, table.name)}
    given = table.state.get("given", stored)
    return [GivenPart(name, rows, name in stored) for name, rows in given.items()]


def _state(t: Transaction, table: TableRecord) -> State:
    """Return the state that members see."""
    if "publication" in table.state:
        return "published"
    return "publishing" if _open_job(t, table) else "collecting"


def _open_job(t: Transaction, table: TableRecord) -> bool:
    job = jobs.JOBS.find(t, id=table.state.get("job", ""))
    return job is not None and job.state in ("queued", "running")


def _refuse_published(t: Transaction, table: TableRecord) -> None:
    if _state(t, table) != "collecting":
        raise InvalidInputError(
            f"Table {table.name!r} is published or being published. A second publication of nearly "
            "the same rows could be intersected with it, so create a new table."
        )
