"""The schema of a ledger: its tables in both SQL dialects.

`quiltwork_ledger` has one row: the schema's version and the ledger's identity. `quiltwork_entries`
is the log. Its columns `key` and `debit` repeat what the hashed body contains, so that unique
indexes limit a key to one debit and a debit to one answer. `quiltwork_snapshots` has at most one
row per dataset, a cache of its state (`snapshots.py`) that may be emptied at any time.
"""

from __future__ import annotations

import secrets

from quiltwork.budget.ledger.databases import Connection, Database
from quiltwork.budget.ledger.entries import now
from quiltwork.errors import StorageError

VERSION = 10
"""The schema version of the first release; earlier checkouts wrote 1 to 9."""

_NOTED = "'refusal', 'read', 'act'"
CHANGES_STATE = f"kind NOT IN ('answer', {_NOTED})"
"""Condition for entries that change what a dataset grants; an index has the same condition."""
IS_NOTE = f"kind IN ({_NOTED})"
IS_CREATE = "kind = 'create'"

_TABLES = (
    """CREATE TABLE quiltwork_ledger (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        version INTEGER NOT NULL,
        id TEXT NOT NULL,
        created TEXT NOT NULL
    )""",
    """CREATE TABLE quiltwork_entries (
        seq BIGINT NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        dataset TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT,
        body TEXT NOT NULL,
        hash TEXT NOT NULL,
        debit BIGINT
    )""",
    f"CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) WHERE {CHANGES_STATE}",
    f"CREATE INDEX quiltwork_notes ON quiltwork_entries (seq) WHERE {IS_NOTE}",
    f"CREATE INDEX quiltwork_datasets ON quiltwork_entries (seq) WHERE {IS_CREATE}",
    "CREATE UNIQUE INDEX quiltwork_one_debit_per_key ON quiltwork_entries (dataset, key) "
    "WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX quiltwork_one_answer_per_debit ON quiltwork_entries (debit) "
    "WHERE debit IS NOT NULL",
    """CREATE TABLE quiltwork_snapshots (
        dataset TEXT NOT NULL PRIMARY KEY,
        body TEXT NOT NULL,
        digest TEXT NOT NULL
    )""",
)
_REFUSAL = "entries of the ledger are final"

SQLITE_TABLES: tuple[str, ...] = (
    *(statement.replace("BIGINT", "INTEGER") for statement in _TABLES),
    *(
        f"CREATE TRIGGER quiltwork_no_{change} BEFORE {change} ON quiltwork_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        for change in ("update", "delete")
    ),
)
"""Statements that make the tables."""

POSTGRES_TABLES: tuple[str, ...] = (
    *_TABLES,
    "CREATE FUNCTION quiltwork_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER quiltwork_no_change BEFORE UPDATE OR DELETE OR TRUNCATE "
    "ON quiltwork_entries FOR EACH STATEMENT EXECUTE FUNCTION quiltwork_refuse()",
)


def check_version(version: int | None) -> None:
    """Refuse the tables of another schema version.

    Raises:
        StorageError: if there are none, or they are of another version.
    """
    if version is None:
        raise StorageError("The ledger has lost the row that identifies it. Restore a backup.")
    if version > VERSION:
        raise StorageError(
            f"The ledger has schema version {version}, written by a newer quiltwork; this release "
            f"reads version {VERSION}. Upgrade quiltwork."
        )
    if version < VERSION:
        raise StorageError(
            f"The ledger has schema version {version}, of a checkout from before the first "
            f"release, which begins with {VERSION} and reads no other. Finish with that checkout, "
            "and create a new ledger for new data."
        )


def make_tables(database: Database, connection: Connection, ledger_id: str | None = None) -> None:
    """Create the tables in the open transaction, unless another process has."""
    database.lock_schema(connection)
    if has_tables(database, connection):
        return
    database.check_encoding(connection)
    for statement in database.tables:
        connection.execute(statement)
    connection.execute(
        database.sql(
            "INSERT INTO quiltwork_ledger (one, version, id, created) VALUES (1, ?, ?, ?)"
        ),
        (VERSION, ledger_id or secrets.token_hex(16), now()),
    )


def has_tables(database: Database, connection: Connection) -> bool:
    """Whether the tables exist.

    Raises:
        StorageError: if they are of another version.
    """
    if not database.has_ledger(connection):
        return False
    rows = database.rows(connection, "SELECT version FROM quiltwork_ledger")
    check_version(int(rows[0][0]) if rows else None)
    return True
