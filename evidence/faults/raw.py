"""Hands on the tables behind a ledger's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg


@contextmanager
def raw(url: str) -> Iterator[Any]:
    """A connection of one's own, without the triggers that protect the log from accidents."""
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        for trigger in ("quiltwork_no_update", "quiltwork_no_delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    else:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute("DROP TRIGGER IF EXISTS quiltwork_no_change ON quiltwork_entries")
    try:
        yield connection
    finally:
        connection.close()
