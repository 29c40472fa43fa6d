"""The tables, version by version, in both dialects.

`quiltwork_ledger` has one row: the schema's version and the ledger's identity. `quiltwork_entries`
is the log. Its columns `key` and `debit` repeat what the hashed body says, so that the database
itself keeps a key to one debit and a debit to one answer. `quiltwork_totals` and
`quiltwork_levels` hold what the entries of each dataset amount to (`totals.py`); they can be
computed from the log at any time.

- Version 6: the first that is still read.
- Version 7: a dataset's own row no longer repeats its latest debits; totals are added up anew.
- Version 8: the levels of an account are one row; totals are added up anew.
- Version 9: an index of the few entries that begin, share out and close datasets.
"""

from __future__ import annotations

FIRST, VERSION = 6, 9
"""The first version that can be brought to the present one, and that."""

_NOTED = "'refusal', 'read', 'act'"
IS_STEP = f"kind NOT IN ('answer', {_NOTED})"
"""Entries that change what a dataset grants, by which its total is told; indexed as it is here."""
IS_NOTE = f"kind IN ({_NOTED})"
IS_RARE = "kind IN ('create', 'allot', 'retire')"
"""Entries that are few beside the debits, and looked for by their kind."""

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
    "CREATE UNIQUE INDEX quiltwork_one_debit_per_key ON quiltwork_entries (dataset, key) "
    "WHERE key IS NOT NULL",
    "CREATE UNIQUE INDEX quiltwork_one_answer_per_debit ON quiltwork_entries (debit) "
    "WHERE debit IS NOT NULL",
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
)
_RARE = (
    f"CREATE INDEX IF NOT EXISTS quiltwork_rare ON quiltwork_entries (kind, seq) WHERE {IS_RARE}",
)
_NO_TOTALS = ("DELETE FROM quiltwork_totals", "DELETE FROM quiltwork_levels")
_REFUSAL = "entries of the ledger are final"


SQLITE_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        *(statement.replace("BIGINT", "INTEGER") for statement in _TABLES),
        *(
            f"CREATE TRIGGER quiltwork_no_{change} BEFORE {change} ON quiltwork_entries "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
            for change in ("update", "delete")
        ),
    ),
    _NO_TOTALS,
    _NO_TOTALS,
    _RARE,
)
"""Statements from nothing to the first version, from that to the next, and so on."""

POSTGRES_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        *_TABLES,
        "CREATE FUNCTION quiltwork_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
        "CREATE TRIGGER quiltwork_no_change BEFORE UPDATE OR DELETE OR TRUNCATE "
        "ON quiltwork_entries FOR EACH STATEMENT EXECUTE FUNCTION quiltwork_refuse()",
    ),
    _NO_TOTALS,
    _NO_TOTALS,
    _RARE,
)
