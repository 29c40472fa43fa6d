"""Collaborative tables: rows of several providers, published once, so that none can undo it.

Every provider uploads its own rows and sees nobody else's. The owner says which columns identify
people and which are sensitive, and k, l and m, and never sees a row. Publishing is a job: the rows
are pooled in the worker's memory, anonymized and verified, and only the published table, what it
reveals as a whole and each provider's own check leave it. A table is published once: a second
publication of nearly the same rows could be intersected with the first.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.errors import InvalidInputError, QuiltworkError
from quiltwork.service import jobs
from quiltwork.service.storage import Schema, Transaction

if TYPE_CHECKING:
    from quiltwork.service.routes import Service
    from quiltwork.service.uploads import Upload
    from quiltwork.tables import Constraint, Table
    from quiltwork.tables.publication import Publication

SMALL = 5_000
"""Rows up to which a table is published at once, without the queue."""
SCHEMA = Schema(
    "tables",
    (
        (
            """CREATE TABLE curator_tables (
                name TEXT NOT NULL PRIMARY KEY,
                owner TEXT NOT NULL,
                body TEXT NOT NULL,
                job TEXT NOT NULL,
                publication TEXT NOT NULL,
                report TEXT NOT NULL,
                created BIGINT NOT NULL
            )""",
            """CREATE TABLE curator_table_parts (
                name TEXT NOT NULL,
                provider TEXT NOT NULL,
                file TEXT NOT NULL,
                suffix TEXT NOT NULL,
                row_count BIGINT NOT NULL,
                created BIGINT NOT NULL,
                PRIMARY KEY (name, provider)
            )""",
        ),
    ),
)


@dataclass(frozen=True)
class Rules:
    """What every published group must satisfy, and for which columns.

    Attributes:
        quasi_identifiers: the columns by which a person could be recognised.
        sensitive: the column that must not be inferred.
        k: records of a group, at least.
        l: sensitive values of a group, at least.
        m: providers that may collude.
    """

    quasi_identifiers: tuple[str, ...]
    sensitive: str
    k: int
    l: int  # noqa: E741  (the literature's own name)
    m: int

    @property
    def constraint(self) -> Constraint:
        """The constraint on a group."""
        from quiltwork.tables import KAnonymity, LDiversity

        found = KAnonymity(self.k)
        return found & LDiversity(self.l) if self.l > 1 else found

    def table(self, path: str | Path) -> Table:
        """Read a file as a table of one provider."""
        from quiltwork.tables import Table

        return Table(str(path), None, self.quasi_identifiers, self.sensitive)


@dataclass(frozen=True)
class Stored:
    """A table: `publication` names the published file, "" before; `report` says what it reveals."""

    name: str
    owner: str
    rules: Rules
    job: str
    publication: str
    report: Mapping[str, Any]
    created: int


@dataclass(frozen=True)
class Part:
    """The rows of one provider, at rest."""

    provider: str
    file: str
    suffix: str
    rows: int


def create(transaction: Transaction, name: str, owner: str, rules: Rules) -> None:
    """Make a table without rows.

    Raises:
        InvalidInputError: if there is one of this name.
    """
    if find(transaction, name) is not None:
        raise InvalidInputError(f"There is a table {name!r} already; choose another name.")
    transaction.rows(
        "INSERT INTO curator_tables (name, owner, body, job, publication, report, created) "
        "VALUES (?, ?, ?, '', '', '{}', ?)",
        *(name, owner, _written(rules), jobs.now()),
    )
    transaction.note("act", f"made table {name}", owner)


def set_rules(transaction: Transaction, table: Stored, rules: Rules) -> None:
    """Change what is asked of a table that has no rows yet.

    Providers gave theirs for the rules that they saw: under others the same rows could be published
    as they are.

    Raises:
        InvalidInputError: once a provider has given rows, or it is published.
    """
    _refuse_published(transaction, table)
    if parts_of(transaction, table.name):
        raise InvalidInputError(
            f"Providers have given rows to table {table.name!r} under its present rules. Make "
            "another table, or let every provider delete its rows first."
        )
    transaction.rows(
        "UPDATE curator_tables SET body = ? WHERE name = ?", _written(rules), table.name
    )
    transaction.note("act", f"set the rules of table {table.name}", table.owner)


def put_rows(service: Service, table: Stored, provider: str, upload: Upload) -> int:
    """Keep a provider's rows, in the place of those it gave before; return how many there are.

    Raises:
        InvalidInputError: for a file that cannot be a part of the table; its rows are not kept.
    """
    with upload.table() as path:
        with told_without(path):
            count = table.rules.table(path).encoded.rows
        file = service.vault.write([path.read_bytes()])

    def work(transaction: Transaction) -> str | None:
        now = current(transaction, table.name)
        _refuse_published(transaction, now)
        if now.rules != table.rules:
            raise InvalidInputError("The rules were changed just now; read them, and send again.")
        old = part_of(transaction, table.name, provider)
        transaction.rows(
            "INSERT INTO curator_table_parts (name, provider, file, suffix, row_count, created) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name, provider) DO UPDATE SET "
            "file = excluded.file, suffix = excluded.suffix, row_count = excluded.row_count, "
            "created = excluded.created",
            *(table.name, provider, file, upload.suffix, count, jobs.now()),
        )
        transaction.note("act", f"gave {count} rows to table {table.name}", provider)
        return None if old is None or old.file == file else old.file

    try:
        replaced = service.storage.write(work)
    except BaseException:
        service.vault.delete(file)
        raise
    if replaced is not None:
        service.vault.delete(replaced)
    return count


def drop_rows(service: Service, table: Stored, provider: str) -> None:
    """Delete a provider's rows; a publication that holds them stays published."""

    def work(transaction: Transaction) -> str | None:
        if _open_job(transaction, current(transaction, table.name)):
            raise InvalidInputError("The table is being published; wait, or cancel the job.")
        old = part_of(transaction, table.name, provider)
        transaction.rows(
            "DELETE FROM curator_table_parts WHERE name = ? AND provider = ?", table.name, provider
        )
        transaction.note("act", f"deleted its rows of table {table.name}", provider)
        return None if old is None else old.file

    file = service.storage.write(work)
    if file is not None:
        service.vault.delete(file)


def submit(service: Service, table: Stored) -> str:
    """Queue the publication of a table, or find the job that is at it; return the job's id.

    Raises:
        InvalidInputError: with fewer than two providers, or once it is published.
    """
    identity = jobs.new_id()

    def work(transaction: Transaction) -> str:
        now = current(transaction, table.name)
        if _open_job(transaction, now) or now.publication:
            return now.job
        if len(parts_of(transaction, table.name)) < 2:
            raise InvalidInputError("A collaborative table needs the rows of two providers.")
        mark = f"publish {table.name} after {now.job or 'nothing'}"
        found = jobs.submit(transaction, "publish", table.owner, table.name, {}, mark, identity)
        transaction.rows("UPDATE curator_tables SET job = ? WHERE name = ?", found, table.name)
        transaction.note("act", f"publishes table {table.name}", table.owner)
        return found

    return service.storage.write(work)


def publish(service: Service, lease: jobs.Job, progress: jobs.Progress) -> jobs.Outcome:
    """Anonymize, verify and describe a table; the work of a job of kind "publish"."""
    from quiltwork.tables import Table, anonymize

    table, parts = service.storage.read(
        lambda t: (current(t, lease.subject), parts_of(t, lease.subject))
    )
    rules = table.rules
    with ExitStack() as stack:
        paths = {
            part.provider: str(stack.enter_context(service.vault.plain(part.file, part.suffix)))
            for part in parts
        }
        with told_without(*map(Path, paths.values())):
            pooled = Table.concat(paths, rules.quasi_identifiers, rules.sensitive)
            made = anonymize(pooled, rules.constraint, rules.m, progress=progress)
    progress(progress.total, progress.total)
    report = _described(made, rules)
    file = service.vault.write([_csv(service, made)])

    def store(transaction: Transaction) -> None:
        transaction.rows(
            "UPDATE curator_tables SET publication = ?, report = ? WHERE name = ?",
            *(file, json.dumps(report), table.name),
        )
        transaction.note("act", f"published table {table.name}", table.owner)

    return jobs.Outcome({"table": table.name, "groups": report["groups"]}, store)


def _described(made: Publication, rules: Rules) -> dict[str, Any]:
    """What a publication reveals as a whole, without a single record: for its owner."""
    from quiltwork.tables import max_m

    safe = max_m(made.table, rules.constraint)
    breach = safe.breach
    report = made.report().body()
    return {
        **made.summary(),
        "constraint": made.constraint,
        "m": made.m,
        "risk": {name: report[name] for name in ("models", "reidentification", "warnings")},
        "query_error": report["query_error"],
        "sizes": report["reidentification"]["sizes"],
        "withstands": int(safe),
        "weakest": None
        if breach is None
        else {
            "coalition": [str(one) for one in breach.coalition],
            "group": [str(one) for one in breach.group],
            "breaks": breach.broken,
            "left": breach.left_size,
        },
    }


def _csv(service: Service, made: Publication) -> bytes:
    with tempfile.TemporaryDirectory(dir=service.settings.data) as folder:
        return made.write(Path(folder) / "published.csv").read_bytes()


def published(service: Service, table: Stored) -> bytes:
    """Return the published table as CSV.

    Raises:
        InvalidInputError: if it is not published.
    """
    if not table.publication:
        raise InvalidInputError(f"Table {table.name!r} is not published yet.")
    return b"".join(service.vault.read(table.publication))


def self_check(service: Service, table: Stored, provider: str) -> dict[str, Any]:
    """Say what a provider can learn from the published table with its own rows.

    Raises:
        InvalidInputError: if it is not published, or the provider has no rows there.
    """
    from quiltwork.tables import own_view

    published(service, table)
    part = service.storage.read(lambda t: part_of(t, table.name, provider))
    if part is None:
        raise InvalidInputError(f"You have no rows in table {table.name!r}.")
    with (
        service.vault.plain(table.publication, ".csv") as shown,
        service.vault.plain(part.file, part.suffix) as own,
        told_without(shown, own),
    ):
        rules = table.rules
        view = own_view(rules.table(shown), rules.table(own), rules.constraint)
    found: dict[str, Any] = json.loads(view.to_json())
    return {**found, "explanation": view.explain()}


def current(transaction: Transaction, name: str) -> Stored:
    """Return a table that is there."""
    found = find(transaction, name)
    if found is None:
        raise InvalidInputError(f"There is no table {name!r}.")
    return found


def find(transaction: Transaction, name: str) -> Stored | None:
    """Return a table."""
    row = transaction.row(f"{_TABLE} WHERE name = ?", name)
    return None if row is None else _stored(row)


def parts_of(transaction: Transaction, name: str) -> list[Part]:
    """Return the rows that every provider gave, as names of files."""
    rows = transaction.rows(f"{_PART} WHERE name = ? ORDER BY provider", name)
    return [Part(*row) for row in rows]


def part_of(transaction: Transaction, name: str, provider: str) -> Part | None:
    """Return the rows that one provider gave."""
    row = transaction.row(f"{_PART} WHERE name = ? AND provider = ?", name, provider)
    return None if row is None else Part(*row)


def files(transaction: Transaction) -> list[str]:
    """Return the files of the vault that tables need."""
    parts = transaction.rows("SELECT file FROM curator_table_parts")
    made = transaction.rows("SELECT publication FROM curator_tables WHERE publication <> ''")
    return [str(name) for (name,) in (*parts, *made)]


_TABLE = "SELECT name, owner, body, job, publication, report, created FROM curator_tables"
_PART = "SELECT provider, file, suffix, row_count FROM curator_table_parts"


def _stored(row: Any) -> Stored:
    name, owner, body, job, publication, report, created = row
    rules = json.loads(body)
    read = Rules(**{**rules, "quasi_identifiers": tuple(rules["quasi_identifiers"])})
    return Stored(name, owner, read, job, publication, json.loads(report), created)


def _written(rules: Rules) -> str:
    return json.dumps({**vars(rules), "quasi_identifiers": list(rules.quasi_identifiers)})


def _open_job(transaction: Transaction, table: Stored) -> bool:
    job = jobs.find(transaction, table.job)
    return job is not None and job.state in ("queued", "running")


def _refuse_published(transaction: Transaction, table: Stored) -> None:
    if table.publication or _open_job(transaction, table):
        raise InvalidInputError(
            f"Table {table.name!r} is published, or about to be, and a second publication of "
            "nearly the same rows could be intersected with it; make a new table."
        )


@contextmanager
def told_without(*paths: Path) -> Iterator[None]:
    """Say of errors in files what is wrong, and not where the curator keeps them."""
    try:
        yield
    except QuiltworkError as error:
        text = str(error)
        for path in paths:
            text = text.replace(repr(str(path)), "the file").replace(str(path), "the file")
        raise type(error)(text) from None
