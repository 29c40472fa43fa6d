"""The tables, in both dialects.

`quiltwork_ledger` has one row: the schema's version and the ledger's identity. `quiltwork_entries`
is the log. Its columns `key` and `debit` repeat what the hashed body says, so that the database
itself keeps a key to one debit and a debit to one answer. `quiltwork_snapshots` has at most one row
per dataset, a cache of what its entries amount to (`snapshots.py`): it may be emptied at any time.
"""

from __future__ import annotations

VERSION = 10
"""Of the first release; checkouts from before it wrote 1 to 9."""

_NOTED = "'refusal', 'read', 'act'"
IS_STEP = f"kind NOT IN ('answer', {_NOTED})"
"""Entries that change what a dataset grants; indexed as it is here."""
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
    f"CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) WHERE {IS_STEP}",
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
