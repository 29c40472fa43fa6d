"""A durable debit: in SQLite beside a bare commit of SQLite, and what a warm history costs.

The disk decides most of it, so the bare commit is timed in the same run: a write-ahead log with
full sync, one row of the same size.
"""

from __future__ import annotations

import itertools
import sqlite3
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness import compare
from quiltwork.accounting import Spending
from quiltwork.beliefs import MarkovChain
from quiltwork.ledger import Ledger

LENGTH = 52_560
DAY = 144


def debiting(folder: Path, history: int) -> object:
    ledger = Ledger.open(f"sqlite:///{folder / f'after{history}.db'}")
    chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    ledger.create("d", chain, LENGTH, 99)
    days = itertools.cycle(range(1, LENGTH - DAY, DAY))

    def spending() -> Spending:
        start = next(days)
        return Spending.dp(Fraction(1, 10**6), start, start + DAY - 1)

    if history:
        ledger.debit_all("d", [spending() for _ in range(history)])
        ledger.debit("d", spending())
    return lambda: ledger.debit("d", spending())


def bare_commit(folder: Path) -> object:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (body TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 500,))
        connection.execute("COMMIT")

    return commit


def main() -> None:
    with TemporaryDirectory() as folder:
        contestants = {
            "quiltwork, first debits": debiting(Path(folder), 0),
            "quiltwork, after 5,000 debits": debiting(Path(folder), 5_000),
            "SQLite, bare commit": bare_commit(Path(folder)),
        }
        compare("Durable debit", contestants, repeats=9, number=100)


if __name__ == "__main__":
    main()
