"""Collaborative tables: rows of several providers, published once, so that none can undo it.

Every provider uploads its own rows and sees nobody else's; columns that the rules do not name are
not kept. The owner says which columns identify people and which are sensitive, and k, l and m, and
never sees a row. Publishing is a job: the rows are pooled in the worker's memory, anonymized and
verified, and only the published table, what it reveals as a whole and each provider's own check
leave it. A table is published once: a second publication of nearly the same rows could be
intersected with the first.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from quiltwork.errors import InvalidInputError
from quiltwork.service import jobs
from quiltwork.service.objects import Kind, StoredObject
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document

if TYPE_CHECKING:
    from quiltwork.service.routes import Call, Service
    from quiltwork.service.uploads import Upload
    from quiltwork.tables import Constraint, Table
    from quiltwork.tables.publication import Publication

_Column = Annotated[str, Meta(min_length=1, max_length=200)]
_Small = Annotated[int, Meta(ge=1, le=10**6)]


class TableRules(Document, frozen=True):
    """Which columns are what, and what every group of the published table must withstand."""

    quasi_identifiers: Annotated[list[_Column], Meta(min_length=1, max_length=50)]
    sensitive: _Column
    k: _Small
    l: _Small = 1  # noqa: E741  (the literature's own name)
    m: Annotated[int, Meta(ge=0, le=100)] = 1

    @property
    def constraint(self) -> Constraint:
        """The constraint on a group."""
        from quiltwork.tables import KAnonymity, LDiversity

        found = KAnonymity(self.k)
        return found & LDiversity(self.l) if self.l > 1 else found

    def table(self, path: Path) -> Table:
        """Read a file as a table of one provider."""
        from quiltwork.tables import Table

        return Table(str(path), None, self.quasi_identifiers, self.sensitive)


State: TypeAlias = Literal["collecting", "publishing", "published"]
Collected: TypeAlias = StoredObject[TableRules]
"""A table; `made` has its `job`, and once it is published a file, its `publication`, and `report`.
"""
TABLES = Kind("table", TableRules)


@dataclass(frozen=True)
class GivenRows:
    """The rows of one provider of a table, at rest."""

    name: str
    provider: str
    file: str
    suffix: str
    row_count: int


_PARTS = TableOf("curator_parts", GivenRows, "name, provider")
SCHEMA = Schema("parts", (_PARTS,))


def set_rules(t: Transaction, table: Collected, rules: TableRules) -> None:
    """Change what is asked of a table that has no rows yet.

    Providers gave theirs for the rules that they saw: under others the same rows could be published
    as they are.
    """
    _refuse_published(t, table)
    if parts_of(t, table.name):
        raise InvalidInputError(
            f"Providers have given rows to table {table.name!r} under its present rules. Make "
            "another table, or let every provider delete its rows first."
        )
    TABLES.write(t, table.name, rules, table.made)
    t.note("act", f"set the rules of table {table.name}", table.owner)


def put_rows(service: Service, table: Collected, provider: str, upload: Upload) -> int:
    """Keep a provider's rows, in the place of those it gave before; return how many there are."""
    rules = table.asked
    with upload.table() as path:
        count = rules.table(path).encoded.rows
        kept = upload.only(path, [*rules.quasi_identifiers, rules.sensitive])

    def work(t: Transaction, file: str) -> list[str]:
        now = TABLES.current(t, table.name)
        _refuse_published(t, now)
        if now.asked != rules:
            raise InvalidInputError("The rules were changed just now; read them, and send again.")
        old = _forgotten(t, table.name, provider)
        _PARTS.add(t, GivenRows(table.name, provider, file, upload.suffix, count))
        t.note("act", f"gave {count} rows to table {table.name}", provider)
        return old

    service.keep(kept, work)
    return count


def drop_rows(
    service: Service, table: Collected, provider: str, dismissed: Call | None = None
) -> None:
    """Delete a provider's rows, perhaps with its access; a publication that has them stays."""

    def work(t: Transaction) -> list[str]:
        now = TABLES.current(t, table.name)
        if _open_job(t, now):
            raise InvalidInputError("The table is being published; wait, or cancel the job.")
        who, files = provider, _forgotten(t, table.name, provider)
        if dismissed is not None:
            TABLES.dismiss(t, dismissed)
            who = dismissed.caller.member
        if files:
            t.note("act", f"deleted the rows of {provider} in table {table.name}", who)
        return files

    service.forget(work)


def _forgotten(t: Transaction, name: str, provider: str) -> list[str]:
    """Forget the rows of one provider; return the files that held them."""
    files = [part.file for part in parts_of(t, name) if part.provider == provider]
    t.delete("curator_parts", name=name, provider=provider)
    return files


def submit(service: Service, table: Collected) -> str:
    """Queue the publication of a table, or find the job that is at it; return the job's id."""
    identity = jobs.new_id()

    def work(t: Transaction) -> str:
        now = TABLES.current(t, table.name)
        before = str(now.made.get("job", ""))
        if _open_job(t, now) or "publication" in now.made:
            return before
        if len(parts_of(t, table.name)) < 2:
            raise InvalidInputError("A collaborative table needs the rows of two providers.")
        mark = f"publish {table.name} after {before or 'nothing'}"
        found = jobs.submit(t, "publish", table.owner, table.name, {}, mark, identity)
        TABLES.update(t, now, job=found)
        t.note("act", f"publishes table {table.name}", table.owner)
        return found

    return service.storage.write(work)


def publish(service: Service, lease: jobs.StoredJob, progress: jobs.Progress) -> jobs.Outcome:
    """Anonymize, verify and describe a table; the work of a job of kind "publish"."""
    from quiltwork.tables import Table, anonymize

    table, parts = service.storage.read(
        lambda t: (TABLES.current(t, lease.subject), parts_of(t, lease.subject))
    )
    rules = table.asked
    with ExitStack() as stack:
        paths = {
            part.provider: str(stack.enter_context(service.vault.plain(part.file, part.suffix)))
            for part in parts
        }
        pooled = Table.concat(paths, rules.quasi_identifiers, rules.sensitive)
        made = anonymize(pooled, rules.constraint, rules.m, progress=progress)
    progress(progress.total, progress.total)
    report = _described(made)
    file = service.vault.write([_csv(service, made)])

    def store(t: Transaction) -> None:
        TABLES.update(t, TABLES.current(t, table.name), publication=file, report=report)
        t.note("act", f"published table {table.name}", table.owner)

    return jobs.Outcome({"table": table.name, "groups": report["groups"]}, store)


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


def _csv(service: Service, made: Publication) -> bytes:
    with tempfile.TemporaryDirectory(dir=service.settings.data) as folder:
        return made.write(Path(folder) / "published.csv").read_bytes()


def published(service: Service, table: Collected) -> bytes:
    """Return the published table as CSV."""
    if "publication" not in table.made:
        raise InvalidInputError(f"Table {table.name!r} is not published yet.")
    return b"".join(service.vault.read(table.made["publication"]))


def self_check(service: Service, table: Collected, provider: str) -> dict[str, Any]:
    """Say what a provider can learn from the published table with its own rows."""
    from quiltwork.tables import own_view

    published(service, table)
    parts = service.storage.read(lambda t: parts_of(t, table.name))
    part = next((one for one in parts if one.provider == provider), None)
    if part is None:
        raise InvalidInputError(f"You have no rows in table {table.name!r}.")
    with (
        service.vault.plain(table.made["publication"], ".csv") as shown,
        service.vault.plain(part.file, part.suffix) as own,
    ):
        rules = table.asked
        view = own_view(rules.table(shown), rules.table(own), rules.constraint)
    found: dict[str, Any] = json.loads(view.to_json())
    return {**found, "explanation": view.explain()}


def parts_of(t: Transaction, name: str) -> list[GivenRows]:
    """Return the rows that every provider gave, as names of files."""
    return _PARTS.all(t, "name = ? ORDER BY provider", name)


def files(t: Transaction) -> list[str]:
    """Return the files of the vault that tables need."""
    parts = [str(name) for (name,) in t.rows("SELECT file FROM curator_parts")]
    made = t.rows("SELECT made FROM curator_objects WHERE kind = 'table'")
    return [*parts, *filter(None, (json.loads(text).get("publication") for (text,) in made))]


def state(t: Transaction, table: Collected) -> State:
    """Say where a table is."""
    if "publication" in table.made:
        return "published"
    return "publishing" if _open_job(t, table) else "collecting"


def _open_job(t: Transaction, table: Collected) -> bool:
    job = jobs.find(t, table.made.get("job", ""))
    return job is not None and job.state in ("queued", "running")


def _refuse_published(t: Transaction, table: Collected) -> None:
    if state(t, table) != "collecting":
        raise InvalidInputError(
            f"Table {table.name!r} is published, or about to be, and a second publication of "
            "nearly the same rows could be intersected with it; make a new table."
        )
