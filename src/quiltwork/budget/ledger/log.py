"""`Log`: the entries of a ledger within one transaction, the same statements for both databases.

Entries are appended after the last one and read by number, identity, key or dataset. Every entry
read is checked against its hash and the entry before it. Cost of each call: the rows it returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from quiltwork.budget.ledger.schema import CHANGES_STATE, IS_CREATE, IS_NOTE, check_version
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
_ANSWERED = (
    "SELECT a.debit FROM quiltwork_entries e JOIN quiltwork_entries a ON a.debit = e.seq "  # noqa: S608
    f"WHERE e.dataset = ? AND e.{CHANGES_STATE} AND e.seq BETWEEN ? AND ?"
)
_PAGE = 1000


class Log:
    """The log within one transaction."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        *,
        wait: float | None,
        again: bool = False,
        seen: Head | None = None,
    ) -> None:
        """Begin a transaction of `connection`: to read, or with a `wait` for the lock to write.

        After a lost connection it is tried `again`; then its entries may have been committed.

        Raises:
            StorageError: if the log no longer contains the end that was `seen` before.
        """
        self._again = again
        self._database = database
        self._connection = connection
        self.writes = wait is not None
        count = 0 if seen is None else seen.count
        statement: Statement = (database.sql(_ENDS), (count,))
        ledger_rows, ends = database.begin_with(connection, statement, wait=wait)
        check_version(ledger_rows[0][0] if ledger_rows else None)
        self.ledger_id = str(ledger_rows[0][1])
        start = Head(0, origin(self.ledger_id))
        self.head = Head(*ends[-1]) if ends else start
        entry_seen = Head(*ends[0]) if ends else start
        if seen is not None and seen != (entry_seen if count else start):
            raise StorageError(
                f"The ledger {database.url!r} was replaced or cut while it was in use: its "
                f"entry {seen.count} is not the one seen before. Nothing was granted; find "
                "out who did it before anything else is released."
            )

    def commit(self) -> None:
        """Commit the transaction, durably, and release the write lock."""
        self._connection.execute("COMMIT")

    def append(self, draft: Draft, key: str | None = None, debit: int | None = None) -> Entry:
        """Append an entry after the last one."""
        entry = appended(self.head, draft)
        self.execute(
            "INSERT INTO quiltwork_entries (seq, id, dataset, kind, key, debit, body, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(entry.seq, entry.id, entry.dataset, entry.kind, key, debit, entry.body, entry.hash),
        )
        self.head = Head(entry.seq, entry.hash)
        return entry

    def append_all(self, drafts: list[tuple[Draft, str | None]]) -> list[Entry]:
        """Append entries with their keys, in few messages to the database."""
        entries, head = [], self.head
        for draft, _ in drafts:
            entries.append(appended(head, draft))
            head = Head(entries[-1].seq, entries[-1].hash)
        insert = self._database.sql(
            "INSERT INTO quiltwork_entries (seq, id, dataset, kind, key, debit, body, hash) "
            "VALUES (?, ?, ?, ?, ?, NULL, ?, ?)"
        )
        rows = [
            (entry.seq, entry.id, entry.dataset, entry.kind, key, entry.body, entry.hash)
            for entry, (_, key) in zip(entries, drafts, strict=True)
        ]
        self._database.run(self._connection, [(insert, row) for row in rows])
        self.head = head
        return entries

    def at(self, seq: int) -> Entry | None:
        """Return entry number `seq`."""
        return self._one(f"{_LINKED} WHERE e.seq = ?", seq)

    def hash_at(self, seq: int) -> str | None:
        """Return the hash of entry number `seq`; None if there is no such entry."""
        if seq == 0:
            return origin(self.ledger_id)
        if seq > self.head.count:
            return None
        rows = self.execute("SELECT hash FROM quiltwork_entries WHERE seq = ?", seq)
        return str(rows[0][0]) if rows else None

    def with_id(self, identity: str) -> Entry | None:
        """Return the entry that an earlier attempt of this transaction wrote; None otherwise."""
        return self._one(f"{_LINKED} WHERE e.id = ?", identity) if self._again else None

    def with_key(self, dataset: str, key: str, analyst: str | None) -> Entry | None:
        """Return the debit made under this analyst's key."""
        return next(iter(self.all_with_key(dataset, key, analyst)), None)

    def all_with_key(self, dataset: str, key: str, analyst: str | None) -> list[Entry]:
        """Return the debits under an analyst's key: at most one, unless the index was bypassed."""
        entries = self._entries(
            f"{_LINKED} WHERE e.dataset = ? AND e.key = ? ORDER BY e.seq",
            *(dataset, scoped_key(key, analyst)),
        )
        return [entry for entry in entries if entry.content.get("analyst") == analyst]

    def answer_to(self, debit: int) -> Entry | None:
        """Return the answer stored for a debit."""
        return self._one(f"{_LINKED} WHERE e.debit = ?", debit)

    def steps(self, dataset: str, after: int = 0) -> Iterator[Entry]:
        """Yield a dataset's entries except answers and notes, oldest first, a page at a time."""
        statement = (
            f"{_LINKED} WHERE e.dataset = ? AND e.{CHANGES_STATE} AND e.seq > ? "
            f"ORDER BY e.seq LIMIT {_PAGE}"
        )
        page = self._entries(statement, dataset, after)
        while page:
            yield from page
            full = len(page) == _PAGE
            page = self._entries(statement, dataset, page[-1].seq) if full else []

    def last_kind(self, dataset: str, until: int) -> str | None:
        """Return the kind of the last create, debit, retire or reopen entry until `until`."""
        rows = self.execute(
            f"SELECT kind FROM quiltwork_entries WHERE dataset = ? AND {CHANGES_STATE} "  # noqa: S608
            "AND kind IN ('create', 'debit', 'retire', 'reopen') AND seq <= ? "
            "ORDER BY seq DESC LIMIT 1",
            *(dataset, until),
        )
        return str(rows[0][0]) if rows else None

    def answered(self, dataset: str, first: int, last: int) -> set[int]:
        """Return the numbers of a dataset's debits in first..last that have an answer.

        Cost: those debits.
        """
        rows = self.execute(_ANSWERED, dataset, first, last)
        return {int(number) for (number,) in rows}

    def datasets(self) -> list[str]:
        """Return the names of all datasets, in the order of their creation."""
        created = f"SELECT dataset FROM quiltwork_entries WHERE {IS_CREATE} ORDER BY seq"  # noqa: S608
        return [str(name) for (name,) in self.execute(created)]

    def notes(self, after: int = 0) -> Iterator[Entry]:
        """Yield notes, oldest first, a page at a time."""
        last = after
        while page := self._entries(
            f"{_LINKED} WHERE e.{IS_NOTE} AND e.seq > ? ORDER BY e.seq LIMIT {_PAGE}", last
        ):
            yield from page
            last = page[-1].seq

    def all_entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield the whole log in order, a page at a time, unchecked."""
        last = after
        while page := self.execute(f"{_ENTRY} WHERE seq > ? ORDER BY seq LIMIT {_PAGE}", last):
            yield from (Entry(*row) for row in page)
            last = page[-1][0]

    def marks(self, after: int = 0) -> Iterator[tuple[int, str | None, int | None]]:
        """Yield number, `key` column and `debit` column of every entry that has either."""
        rows = self.execute(
            "SELECT seq, key, debit FROM quiltwork_entries "
            "WHERE (key IS NOT NULL OR debit IS NOT NULL) AND seq > ?",
            after,
        )
        yield from (tuple(row) for row in rows)

    def snapshot(self, dataset: str) -> tuple[str, str] | None:
        """Return body and digest of a dataset's snapshot."""
        rows = self.execute(
            "SELECT body, digest FROM quiltwork_snapshots WHERE dataset = ?", dataset
        )
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def put_snapshot(self, dataset: str, body: str, digest: str) -> None:
        """Replace a dataset's snapshot."""
        self.execute(
            "INSERT INTO quiltwork_snapshots (dataset, body, digest) VALUES (?, ?, ?) "
            "ON CONFLICT (dataset) DO UPDATE SET body = excluded.body, digest = excluded.digest",
            *(dataset, body, digest),
        )

    def check_pages(self) -> None:
        """Run the database's own integrity check."""
        self._database.check_pages(self._connection)

    def execute(self, statement: str, *parameters: object) -> list[Any]:
        """Run a statement, also on other tables of the database; return the rows of a SELECT."""
        cursor = self._connection.execute(self._database.sql(statement), parameters)
        return list(cursor.fetchall()) if statement.startswith("SELECT") else []

    def _one(self, statement: str, *parameters: object) -> Entry | None:
        return next(iter(self._entries(statement, *parameters)), None)

    def _entries(self, statement: str, *parameters: object) -> list[Entry]:
        """Return entries, each checked against its own hash and the hash before it."""
        rows = self.execute(statement, *parameters)
        return [self._checked(Entry(*fields), previous) for *fields, previous in rows]

    def _checked(self, entry: Entry, previous: str | None) -> Entry:
        before = origin(self.ledger_id) if entry.seq == 1 else previous
        return next(follow(Head(entry.seq - 1, before or ""), [entry]))
