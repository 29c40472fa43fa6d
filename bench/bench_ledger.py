"""A durable debit: in SQLite beside a bare commit of SQLite, and how requests grow with the log.

The disk decides most of it, so the bare commit is timed in the same run: a write-ahead log with
full sync, one row of the same size. `python -m bench.bench_ledger 100 10000` measures the growth
alone, after so many debits: opening, the first debit of a process, later ones, `extend` and
`verify`, each in a process that has only imported the package; and a year of `extend` and debit
every day. `python -m bench.bench_ledger --together` lets eight processes debit one dataset, beside
as many that only commit a row to the bare database, in SQLite and in PostgreSQL.
"""

from __future__ import annotations

import csv
import itertools
import json
import multiprocessing
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.harness import RESULTS, compare
from evidence.faults.server import new_database, running_server
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Ledger, Spending

LENGTH = 52_560
DAY = 144
CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
HISTORIES = (100, 10_000, 100_000)
REQUESTS = ("open", "first debit", "warm debit", "refusal", "extend", "verify")
LEVEL = Fraction(1, 10**8)


def daily(level: Fraction = LEVEL) -> itertools.cycle[Spending]:
    days = range(1, LENGTH - DAY, DAY)
    return itertools.cycle([Spending.dp(level, start, start + DAY - 1) for start in days])


def debiting(folder: Path, history: int) -> Callable[[], object]:
    ledger = Ledger.open(f"sqlite:///{folder / f'after{history}.db'}")
    ledger.create("d", CHAIN, LENGTH, 99)
    spendings = daily()
    if history:
        ledger.debit_all("d", itertools.islice(spendings, history))
        ledger.debit("d", next(spendings))
    return lambda: ledger.debit("d", next(spendings))


def bare_commit(folder: Path) -> Callable[[], object]:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (body TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 500,))
        connection.execute("COMMIT")

    return commit


def timed(request: Callable[[], object]) -> float:
    start = time.perf_counter()
    try:
        request()
    except Exception as error:  # a refusal is an answer
        if type(error).__name__ != "BudgetExceeded":
            raise
    return time.perf_counter() - start


def requests(url: str) -> dict[str, float]:
    """Seconds of every request, in this process, which has not touched the ledger."""
    spendings = daily()
    opened = timed(lambda: Ledger.open(url).status("d"))
    ledger = Ledger.open(url)
    first = timed(lambda: ledger.debit("d", next(spendings)))
    warm = statistics.median(timed(lambda: ledger.debit("d", next(spendings))) for _ in range(50))
    large = Spending.dp(100, 1, LENGTH)
    refused = statistics.median(timed(lambda: ledger.debit("d", large)) for _ in range(9))
    length = ledger.status("d").length or 0
    grown = timed(lambda: ledger.extend("d", length + DAY))
    return dict(
        zip(REQUESTS, (opened, first, warm, refused, grown, timed(ledger.verify)), strict=True)
    )


def of_new_process(url: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.bench_ledger", "--requests", url]
    found: dict[str, float] = json.loads(subprocess.check_output(command, text=True))
    return found


def year(folder: Path) -> dict[str, float]:
    """A year in which every day is one `extend` and one debit, then the same requests."""
    url = f"sqlite:///{folder / 'year.db'}"
    ledger = Ledger.open(url)
    ledger.create("d", CHAIN, DAY, 1)
    for day in range(365):
        if day:
            ledger.extend("d", (day + 1) * DAY)
        ledger.debit("d", Spending.dp(LEVEL, day * DAY + 1, (day + 1) * DAY))
    ledger.close()
    return of_new_process(url)


def growth(histories: tuple[int, ...]) -> None:
    """Print and write seconds per request, by the number of debits before it."""
    rows: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        for history in histories:
            url = f"sqlite:///{folder}/{history}.db"
            with Ledger.open(url) as ledger:
                ledger.create("d", CHAIN, LENGTH, 1)
                ledger.debit_all("d", itertools.islice(daily(), history))
            rows[f"{history:,} debits"] = of_new_process(url)
        rows["a year of days"] = year(Path(folder))
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "ledger_growth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for row in (("after", *REQUESTS), *((name, *s.values()) for name, s in rows.items())):
            writer.writerow(row)
            print(*(f"{c:>16.5f}" if isinstance(c, float) else f"{c:>16}" for c in row))


def committing(url: str) -> Callable[[], object]:
    """A bare commit of one row, which waits for others as the database itself does."""
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(
            url.removeprefix("sqlite:///"), isolation_level=None, timeout=60
        )
        connection.execute("PRAGMA synchronous=FULL")
        begin, insert = "BEGIN IMMEDIATE", "INSERT INTO bare VALUES (?)"
    else:
        import psycopg

        connection = psycopg.connect(url, autocommit=True)
        begin, insert = "BEGIN; SELECT * FROM turn FOR UPDATE", "INSERT INTO bare VALUES (%s)"

    def commit() -> None:
        connection.execute(begin)
        connection.execute(insert, ("x" * 500,))
        connection.execute("COMMIT")

    return commit


def debits(url: str) -> Callable[[], object]:
    ledger, spendings = Ledger.open(url), daily()
    for _ in range(os.getpid() % 300):
        next(spendings)
    return lambda: ledger.debit("d", next(spendings))


def asking(
    make: Callable[[str], Callable[[], object]], url: str, number: int, times: Any, ready: Any
) -> None:
    ask = make(url)
    ask()
    ready.wait()
    start = time.perf_counter()
    seconds = [timed(ask) for _ in range(number)]
    times.put((start, time.perf_counter(), seconds))


def rate(
    make: Callable[[str], Callable[[], object]], url: str, processes: int, number: int
) -> tuple[float, float, float]:
    """Requests per second of all processes together, and the median and p99 of one, in ms."""
    context = multiprocessing.get_context("fork")
    times, ready = context.Queue(), context.Barrier(processes)
    workers = [
        context.Process(target=asking, args=(make, url, number, times, ready))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = [times.get() for _ in workers]
    for worker in workers:
        worker.join()
    wall = max(end for _, end, _ in found) - min(start for start, _, _ in found)
    seconds = sorted(one for *_, own in found for one in own)
    p99 = seconds[int(0.99 * len(seconds))]
    return processes * number / wall, 1000 * statistics.median(seconds), 1000 * p99


def together(number: int = 1600) -> None:
    """Print and write how many requests per second one process and eight get."""
    rows = []
    with TemporaryDirectory() as folder, running_server() as server:
        for name, url in (
            ("SQLite", f"sqlite:///{folder}/together.db"),
            ("PostgreSQL", new_database(server, "together")),
        ):
            Ledger.open(url).create("d", CHAIN, LENGTH, 1)
            bare = f"sqlite:///{folder}/bare.db" if name == "SQLite" else url
            _prepare_bare(bare)
            for processes in (1, 8):
                for what, make, place in (
                    ("ledger", debits, url),
                    ("bare", committing, bare),
                ):
                    measured = rate(make, place, processes, number // processes)
                    rows.append((f"{name}, {what}", processes, *measured))
                    print(
                        f"{name:>10} {what:>6} {processes} processes: {measured[0]:7.0f}/s, "
                        f"median {measured[1]:.2f} ms, p99 {measured[2]:.1f} ms",
                        flush=True,
                    )
            Ledger.open(url).verify()
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "ledger_together.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("who", "processes", "per second", "median ms", "p99 ms"), *rows]
        )


def _prepare_bare(url: str) -> None:
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE bare (body TEXT)")
        connection.commit()
    else:
        import psycopg

        connection = psycopg.connect(url, autocommit=True)
        connection.execute("CREATE TABLE bare (body TEXT)")
        connection.execute("CREATE TABLE turn (one INTEGER)")
        connection.execute("INSERT INTO turn VALUES (1)")
    connection.close()


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--together"]:
        together()
        return
    if arguments[:1] == ["--requests"]:
        print(json.dumps(requests(arguments[1])))
        return
    if arguments:
        growth(tuple(map(int, arguments)))
        return
    with TemporaryDirectory() as folder:
        contestants = {
            "quiltwork, first debits": debiting(Path(folder), 0),
            "quiltwork, after 5,000 debits": debiting(Path(folder), 5_000),
            "SQLite, bare commit": bare_commit(Path(folder)),
        }
        compare("Durable debit", contestants, repeats=9, number=100)
    growth(HISTORIES)
    together()


if __name__ == "__main__":
    main(sys.argv[1:])
