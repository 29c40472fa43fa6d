"""The log as tables: reading and appending entries, the same statements for both databases."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Any

from quiltwork.budget.ledger.account_rows import PLACE
from quiltwork.budget.ledger.databases import Connection, Database, Statement
from quiltwork.budget.ledger.entries import (
    Draft,
    Entry,
    Head,
    appended,
    follow,
    origin,
    scoped_key,
)
from quiltwork.budget.ledger.schema import FIRST, IS_NOTE, IS_RARE, IS_STEP, VERSION
from quiltwork.errors import StorageError

_ENTRY = "SELECT seq, id, dataset, kind, body, hash FROM quiltwork_entries"
_LINKED = (
    "SELECT e.seq, e.id, e.dataset, e.kind, e.body, e.hash, p.hash FROM quiltwork_entries e "
    "LEFT JOIN quiltwork_entries p ON p.seq = e.seq - 1"
)
_ENDS = (
    "SELECT seq, hash FROM quiltwork_entries "
    "WHERE seq IN (?, (SELECT MAX(seq) FROM quiltwork_entries)) ORDER BY seq"
)
_LAST_STEP = (
    f"SELECT seq, hash FROM quiltwork_entries WHERE dataset = ? AND {IS_STEP} "  # noqa: S608
    "ORDER BY seq DESC LIMIT 1"
)
_LAST_STEP_AND_TOTAL = (
    f"SELECT e.seq, e.hash, t.body, t.hash FROM ({_LAST_STEP}) e "  # noqa: S608
    "LEFT JOIN quiltwork_totals t ON t.dataset = ? AND t.analyst = ''"
)
_ANSWERED = (
    "SELECT a.debit FROM quiltwork_entries e JOIN quiltwork_entries a ON a.debit = e.seq "  # noqa: S608
    f"WHERE e.dataset = ? AND e.{IS_STEP} AND e.seq BETWEEN ? AND ?"
)
_PAGE = 1000


class Tables:
    """The log within one transaction."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        *,
        wait: float | None,
        again: bool = False,
        seen: Head | None = None,
        about: str | None = None,
    ) -> None:
        """Begin a transaction of `connection`: to read, or alone to write, after a `wait`.

        It is tried `again` after a connection was lost: then its entries may be there already. It
        will ask for `last_step_and_total` of a dataset that it is `about`.

        Raises:
            StorageError: if the log does not go on from the end that was `seen` before.
        """
        self._again = again
        self._database = database
        self._connection = connection
        self._unsent: list[Statement] = []
        self.writes = wait is not None
        self.pending: Any = None
        """A dataset's state after debits whose totals this transaction has not written yet."""
        count = 0 if seen is None else seen.count
        questions: list[Statement] = [(database.sql(_ENDS), (count,))]
        if about is not None:
            questions.append((database.sql(_LAST_STEP_AND_TOTAL), (about, about)))
        ledger, ends, *step = database.begin_with(connection, questions, wait=wait)
        check_version(ledger[0][0] if ledger else None)
        self.ledger_id = str(ledger[0][1])
        start = Head(0, origin(self.ledger_id))
        self.head = Head(*ends[-1]) if ends else start
        then = Head(*ends[0]) if ends else start
        self._asked = {about: step[0]} if step else {}
        if seen is not None and seen != (then if count else start):
            raise StorageError(
                f"The ledger {database.url!r} was replaced or cut while it was in use: its "
                f"entry {seen.count} is not the one seen before. Nothing was granted; find "
                "out who did it before anything else is released."
            )

    def commit(self) -> None:
        """End the transaction, so that others see what was written, and may write."""
        self._unsent.append((self._database.commit if self.writes else "COMMIT", ()))
        self._send()

    def append(self, draft: Draft, key: str | None = None, debit: int | None = None) -> Entry:
        """Add an entry after the last one."""
        entry = appended(self.head, draft)
        self._rows(
            "INSERT INTO quiltwork_entries (seq, id, dataset, kind, key, debit, body, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(entry.seq, entry.id, entry.dataset, entry.kind, key, debit, entry.body, entry.hash),
        )
        self.head = Head(entry.seq, entry.hash)
        self._asked = {}
        return entry

    def at(self, seq: int) -> Entry | None:
        """Return entry number `seq`."""
        return self._one(f"{_LINKED} WHERE e.seq = ?", seq)

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of entry number `seq`, None if there is none."""
        if seq == 0:
            return origin(self.ledger_id)
        if seq > self.head.count:
            return None
        rows = self._rows("SELECT hash FROM quiltwork_entries WHERE seq = ?", seq)
        return str(rows[0][0]) if rows else None

    def with_id(self, identity: str) -> Entry | None:
        """Return the entry with this identity, which an earlier attempt may have written."""
        return self._one(f"{_LINKED} WHERE e.id = ?", identity) if self._again else None

    def with_key(self, dataset: str, key: str, analyst: str | None) -> Entry | None:
        """Return the debit made under this key of an analyst."""
        return next(iter(self.all_with_key(dataset, key, analyst)), None)

    def all_with_key(self, dataset: str, key: str, analyst: str | None) -> list[Entry]:
        """Return the debits under a key of an analyst: one at most, unless somebody put one in."""
        found = self._entries(
            f"{_LINKED} WHERE e.dataset = ? AND e.key = ? ORDER BY e.seq",
            *(dataset, scoped_key(key, analyst)),
        )
        return [entry for entry in found if entry.content.get("analyst") == analyst]

    def answer_to(self, debit: int) -> Entry | None:
        """Return the answer stored for a debit."""
        return self._one(f"{_LINKED} WHERE e.debit = ?", debit)

    def steps(self, dataset: str, after: int = 0, page: int = _PAGE) -> Iterator[Entry]:
        """Yield a dataset's entries without answers, oldest first, a page at a time."""
        statement = (
            f"{_LINKED} WHERE e.dataset = ? AND e.{IS_STEP} AND e.seq > ? "
            f"ORDER BY e.seq LIMIT {page}"
        )
        last, found = after, self._entries(statement, dataset, after)
        while found:
            yield from found
            last = found[-1].seq
            found = self._entries(statement, dataset, last) if len(found) == page else []

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the entries of a rare kind, oldest first."""
        return self._entries(f"{_LINKED} WHERE e.{IS_RARE} AND e.kind = ? ORDER BY e.seq", kind)

    def last_step(self, dataset: str) -> Head | None:
        """Return number and hash of a dataset's last entry without answers; None without any."""
        rows = self._rows(_LAST_STEP, dataset)
        return Head(*rows[0]) if rows else None

    def last_of(self, dataset: str, kind: str) -> Entry | None:
        """Return a dataset's last entry of a kind. Cost: its entries since then."""
        return self._one(
            f"{_LINKED} WHERE e.dataset = ? AND e.{IS_STEP} AND e.kind = ? "
            "ORDER BY e.seq DESC LIMIT 1",
            *(dataset, kind),
        )

    def last_kind(self, dataset: str, until: int) -> str | None:
        """Return what last began, used or closed a dataset by number `until`; None if nothing."""
        rows = self._rows(
            f"SELECT kind FROM quiltwork_entries WHERE dataset = ? AND {IS_STEP} "  # noqa: S608
            "AND kind IN ('create', 'debit', 'retire') AND seq <= ? ORDER BY seq DESC LIMIT 1",
            *(dataset, until),
        )
        return str(rows[0][0]) if rows else None

    def last_step_and_total(self, dataset: str) -> tuple[Head, tuple[str, str] | None] | None:
        """Return `last_step` and `total`, by one statement."""
        rows = self._asked.pop(dataset, None)
        if rows is None:
            rows = self._rows(_LAST_STEP_AND_TOTAL, dataset, dataset)
        if not rows:
            return None
        number, found, body, seal = rows[0]
        return Head(number, found), None if body is None else (str(body), str(seal))

    def answered(self, dataset: str, first: int, last: int) -> set[int]:
        """Return the numbers of a dataset's debits from `first` to `last` that have their answer.

        Cost: those debits.
        """
        rows = self._rows(_ANSWERED, dataset, first, last)
        return {int(number) for (number,) in rows}

    def total(self, dataset: str) -> tuple[str, str] | None:
        """Return body and hash of a dataset's own row of totals."""
        rows = self._rows(
            "SELECT body, hash FROM quiltwork_totals WHERE dataset = ? AND analyst = ''", dataset
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def totals_of_analysts(self, dataset: str) -> dict[str, str]:
        """Return the bodies of the totals of a dataset's analysts."""
        rows = self._rows(
            "SELECT analyst, body FROM quiltwork_totals WHERE dataset = ? AND analyst <> ''",
            dataset,
        )
        return {str(analyst): str(body) for analyst, body in rows}

    def totals_of(self, dataset: str, analysts: Collection[str]) -> dict[str, str]:
        """Return the bodies of the totals of some analysts."""
        if not analysts:
            return {}
        places = ", ".join("?" * len(analysts))
        rows = self._rows(
            "SELECT analyst, body FROM quiltwork_totals "  # noqa: S608
            f"WHERE dataset = ? AND analyst IN ({places})",
            *(dataset, *analysts),
        )
        return {str(analyst): str(body) for analyst, body in rows}

    def levels(self, dataset: str, analyst: str) -> dict[int, str]:
        """Return the rows of levels of an account, one or none; all analysts together are ''."""
        rows = self._rows(
            "SELECT time, change FROM quiltwork_levels WHERE dataset = ? AND analyst = ?",
            dataset,
            analyst,
        )
        return {int(time): str(change) for time, change in rows}

    def put_total(self, dataset: str, analyst: str, body: str, digest: str) -> None:
        """Write a row of totals in the place of the one before."""
        self._rows(
            "INSERT INTO quiltwork_totals (dataset, analyst, body, hash) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (dataset, analyst) DO UPDATE SET body = excluded.body, "
            "hash = excluded.hash",
            *(dataset, analyst, body, digest),
        )

    def put_levels(self, dataset: str, analyst: str, row: str) -> None:
        """Write the row of levels of an account in the place of the one before; no text, no row."""
        if row:
            self._rows(
                "INSERT INTO quiltwork_levels (dataset, analyst, time, change) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (dataset, analyst, time) DO UPDATE SET change = excluded.change",
                *(dataset, analyst, PLACE, row),
            )

    def drop_totals(self, dataset: str) -> None:
        """Remove all totals and levels of a dataset, to write them anew."""
        self._rows("DELETE FROM quiltwork_totals WHERE dataset = ?", dataset)
        self._rows("DELETE FROM quiltwork_levels WHERE dataset = ?", dataset)

    def datasets(self) -> list[str]:
        """Return the names of all datasets, in the order of their creation."""
        created = (
            f"SELECT dataset FROM quiltwork_entries WHERE {IS_RARE} "  # noqa: S608
            "AND kind = 'create' ORDER BY seq"
        )
        return [str(name) for (name,) in self._rows(created)]

    def notes(self, after: int = 0) -> Iterator[Entry]:
        """Yield refusals and reads, oldest first, a page at a time."""
        last = after
        while page := self._entries(
            f"{_LINKED} WHERE e.{IS_NOTE} AND e.seq > ? ORDER BY e.seq LIMIT {_PAGE}", last
        ):
            yield from page
            last = page[-1].seq

    def all_entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield the whole log in order, a page at a time, unchecked."""
        last = after
        while page := self._rows(f"{_ENTRY} WHERE seq > ? ORDER BY seq LIMIT {_PAGE}", last):
            yield from (Entry(*row) for row in page)
            last = page[-1][0]

    def marks(self, after: int = 0) -> Iterator[tuple[int, str | None, int | None]]:
        """Yield (number, key column, debit column) of every entry that has one."""
        rows = self._rows(
            "SELECT seq, key, debit FROM quiltwork_entries "
            "WHERE (key IS NOT NULL OR debit IS NOT NULL) AND seq > ?",
            after,
        )
        yield from (tuple(row) for row in rows)

    def check_pages(self) -> None:
        """Let the database check itself."""
        self._database.check_pages(self._connection)

    def _one(self, statement: str, *parameters: object) -> Entry | None:
        return next(iter(self._entries(statement, *parameters)), None)

    def _entries(self, statement: str, *parameters: object) -> list[Entry]:
        """Return entries, each checked against its hash and the one before it."""
        rows = self._rows(statement, *parameters)
        return [self._checked(Entry(*fields), previous) for *fields, previous in rows]

    def _checked(self, entry: Entry, previous: str | None) -> Entry:
        before = origin(self.ledger_id) if entry.seq == 1 else previous
        return next(follow(Head(entry.seq - 1, before or ""), [entry]))

    def execute(self, statement: str, *parameters: object) -> list[Any]:
        """Run a statement on other tables of the database; return the rows of a SELECT."""
        return self._rows(statement, *parameters)

    def _rows(self, statement: str, *parameters: object) -> list[Any]:
        """Run a statement; what returns nothing waits for what is read, or the commit."""
        self._unsent.append((self._database.sql(statement), parameters))
        if not statement.startswith("SELECT"):
            return []
        asked, given = self._unsent.pop()
        self._send()
        return list(self._connection.execute(asked, given).fetchall())

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent:
            self._database.run(self._connection, unsent)


def check_version(found: int | None) -> None:
    """Refuse tables that this release cannot write.

    Raises:
        StorageError: if there are none, or they are of another version.
    """
    if found is None:
        raise StorageError("The ledger has lost the row that identifies it. Restore a backup.")
    if found > VERSION:
        raise StorageError(
            f"The ledger has schema version {found}, written by a newer quiltwork; this release "
            f"knows {VERSION}. Upgrade quiltwork."
        )
    if found < VERSION:
        raise StorageError(
            f"The ledger has schema version {found}, and was not migrated: this release brings "
            f"versions from {FIRST} on to {VERSION}."
        )


def prepare(database: Database, connection: Connection, ledger_id: str | None = None) -> None:
    """Create the tables or bring them to the present version, in the open transaction."""
    database.lock_schema(connection)
    version = schema_version(database, connection)
    if version == VERSION:
        return
    if version:
        connection.execute(database.locked_row).fetchall()
    else:
        database.check_fit(connection)
    for statements in database.migrations[version and version - FIRST + 1 :]:
        for statement in statements:
            connection.execute(statement)
    if version:
        connection.execute(database.sql("UPDATE quiltwork_ledger SET version = ?"), (VERSION,))
        return
    connection.execute(
        database.sql(
            "INSERT INTO quiltwork_ledger (one, version, id, created) VALUES (1, ?, ?, ?)"
        ),
        (VERSION, ledger_id or secrets.token_hex(16), now()),
    )


def schema_version(database: Database, connection: Connection) -> int:
    """Return the version of the tables; 0 if there are none.

    Raises:
        StorageError: if it is from the future, or too old.
    """
    if not database.has_ledger(connection):
        return 0
    rows = database.rows(connection, "SELECT version FROM quiltwork_ledger")
    found = int(rows[0][0]) if rows else None
    if found is None or not FIRST <= found < VERSION:
        check_version(found)
    return found or 0


def now() -> str:
    """Return the time for an entry, in UTC to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
