"""The tables, version by version, in both dialects.

`quiltwork_ledger` has one row: the schema's version and the ledger's identity. `quiltwork_entries`
is the log. Its columns `key` and `debit` repeat what the hashed body says, so that the database
itself keeps a key to one debit and a debit to one answer. `quiltwork_totals` and
`quiltwork_levels` hold what the entries of each dataset amount to (`totals.py`); they can be
computed from the log at any time.

- Version 1: the log, and at most one debit per key.
- Version 2: at most one answer per debit, and triggers that refuse to change or remove entries.
- Version 3: the totals of every dataset, and an index of its entries without answers.
- Version 4: debits compose by `levels`, which was called `joint-quilt`; totals are added up anew.
- Version 5: every analyst has keys of her own, and refusals and reads are noted among the entries.
- Version 6: a row of levels has all changes within a stretch of time, so totals are added up anew;
  what a curator's members do is noted too.
- Version 7: a dataset's own row no longer repeats its latest debits; totals are added up anew.
"""

from __future__ import annotations

VERSION = 7

_NOTED = "'refusal', 'read', 'act'"
IS_STEP = f"kind NOT IN ('answer', {_NOTED})"
"""Entries that change what a dataset grants, by which its total is told; indexed as it is here."""
IS_NOTE = f"kind IN ({_NOTED})"

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
        hash TEXT NOT NULL
    )""",
    "CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq)",
    "CREATE UNIQUE INDEX quiltwork_one_debit_per_key ON quiltwork_entries (dataset, key) "
    "WHERE key IS NOT NULL",
)
_ONE_ANSWER = (
    "CREATE UNIQUE INDEX quiltwork_one_answer_per_debit ON quiltwork_entries (debit) "
    "WHERE debit IS NOT NULL"
)
_TOTALS = (
    """CREATE TABLE quiltwork_totals (
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        body TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (dataset, analyst)
    )""",
    """CREATE TABLE quiltwork_levels (
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        time BIGINT NOT NULL,
        change TEXT NOT NULL,
        PRIMARY KEY (dataset, analyst, time)
    )""",
    "DROP INDEX quiltwork_by_dataset",
    "CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) WHERE kind <> 'answer'",
)
_NO_TOTALS = ("DELETE FROM quiltwork_totals", "DELETE FROM quiltwork_levels")
_NOTES = (
    "DROP INDEX quiltwork_by_dataset",
    "CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) "
    "WHERE kind NOT IN ('answer', 'refusal', 'read')",
    "CREATE INDEX quiltwork_notes ON quiltwork_entries (seq) WHERE kind IN ('refusal', 'read')",
)
_ACTS = (
    "DROP INDEX quiltwork_by_dataset",
    "DROP INDEX quiltwork_notes",
    f"CREATE INDEX quiltwork_by_dataset ON quiltwork_entries (dataset, seq) WHERE {IS_STEP}",
    f"CREATE INDEX quiltwork_notes ON quiltwork_entries (seq) WHERE {IS_NOTE}",
)
_REFUSAL = "entries of the ledger are final"


def _sqlite(statements: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(statement.replace("BIGINT", "INTEGER") for statement in statements)


SQLITE_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _sqlite(_TABLES),
    (
        "ALTER TABLE quiltwork_entries ADD COLUMN debit INTEGER",
        "UPDATE quiltwork_entries SET debit = json_extract(body, '$.debit') WHERE kind = 'answer'",
        _ONE_ANSWER,
        "CREATE TRIGGER quiltwork_no_update BEFORE UPDATE ON quiltwork_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
        "CREATE TRIGGER quiltwork_no_delete BEFORE DELETE ON quiltwork_entries "
        f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    ),
    _sqlite(_TOTALS),
    _NO_TOTALS,
    _NOTES,
    (*_NO_TOTALS, *_ACTS),
    _NO_TOTALS,
)

POSTGRES_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _TABLES,
    (
        "ALTER TABLE quiltwork_entries ADD COLUMN debit BIGINT",
        "UPDATE quiltwork_entries SET debit = (body::json->>'debit')::bigint WHERE kind = 'answer'",
        _ONE_ANSWER,
        "CREATE FUNCTION quiltwork_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
        "CREATE TRIGGER quiltwork_no_change BEFORE UPDATE OR DELETE OR TRUNCATE "
        "ON quiltwork_entries FOR EACH STATEMENT EXECUTE FUNCTION quiltwork_refuse()",
    ),
    _TOTALS,
    _NO_TOTALS,
    _NOTES,
    (*_NO_TOTALS, *_ACTS),
    _NO_TOTALS,
)
