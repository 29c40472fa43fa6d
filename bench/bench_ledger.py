"""A durable debit: in SQLite beside a bare commit of SQLite, and how requests grow with the log.

The disk decides most of it, so the bare commit is timed in the same run: a write-ahead log with
full sync, one row of the same size. `python -m bench.bench_ledger 100 10000` measures the growth
alone, in seconds of CPU, after so many debits of days, and of windows anywhere (or of one of them,
if `days` or `anywhere` follows): the first debit of a process that has only imported the package,
the least of five; later ones, the mean of 514; refusals,
opening and reading a status, `extend`, `verify` and pages of the history; a year of `extend` and
debit every day; and the first and later commits of bare SQLite. `python -m bench.bench_ledger
--together` lets processes and threads debit one dataset, beside as many that only commit a row to
the bare database, in SQLite and in PostgreSQL; also debits for an analyst, of which each is priced.
`--rates` lets debits of all kinds and bare commits take turns after 10,000 random windows.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.harness import RESULTS, compare
from evidence.faults.server import new_database, running_server
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, Ledger, Spending

LENGTH = 52_560
DAY = 144
CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
HISTORIES = (100, 10_000, 1_000_000)
REQUESTS = (
    *("first debit", "warm debit", "refusal", "refusal again", "open", "extend"),
    *("first page", "last page", "verify since", "verify"),
)
WARM = 514
MANY_STATES = 20
COMMAND = (sys.executable, "-m", "bench.bench_ledger")
BATCH = 10_000
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


def timed(request: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    try:
        request()
    except Exception as error:  # a refusal is an answer
        if type(error).__name__ != "BudgetExceeded":
            raise
    return clock() - start


def requests(url: str) -> dict[str, float]:
    """CPU seconds of every request, in this process, which has not touched the ledger."""
    cpu = partial(timed, clock=time.process_time)
    spendings = daily()
    ledger = Ledger.open(url)
    first = _of_five_processes("--first", url)
    ledger.debit("d", next(spendings))
    warm = statistics.mean(cpu(lambda: ledger.debit("d", next(spendings))) for _ in range(WARM))
    Accountant(CHAIN, LENGTH, 1).fits(Spending.dp(1, 1, DAY))
    opened = min(cpu(lambda: Ledger.open(url).status("d")) for _ in range(3))
    ledger.status("d")
    # within the budget by themselves, and none as large as the one before: each is priced
    refused = [Spending.dp(Fraction(900 - n, 1000), 1, LENGTH) for n in range(9)]
    new = statistics.median(cpu(partial(ledger.debit, "d", one)) for one in refused)
    again = statistics.median(cpu(partial(ledger.debit, "d", refused[0])) for _ in range(9))
    length = ledger.status("d").length or 0
    grown = cpu(lambda: ledger.extend("d", length + DAY))
    checkpoint = ledger.checkpoint()
    ledger.debit("d", next(spendings))
    after = max(0, checkpoint.count - 200)
    pages = [cpu(partial(ledger.history, "d", number, 100)) for number in (0, after)]
    since, all_of_it = cpu(lambda: ledger.verify_since(checkpoint)), cpu(ledger.verify)
    found = (first, warm, new, again, opened, grown, *pages, since, all_of_it)
    return dict(zip(REQUESTS, found, strict=True))


def _of_five_processes(option: str, url: str) -> float:
    command = [*COMMAND, option, url]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(5))


def bare_commits(folder: Path) -> dict[str, float]:
    """CPU seconds of the first commit of a process that has opened nothing, and of later ones."""
    url = f"sqlite:///{folder / 'bare.db'}"
    _prepare_bare(url)
    first, commit = _of_five_processes("--first-bare", url), committing(url)
    commit()
    warm = statistics.mean(timed(commit, time.process_time) for _ in range(WARM))
    return {"first debit": first, "warm debit": warm}


def first_debit(url: str) -> float:
    ledger, spendings = Ledger.open(url), daily()
    return timed(lambda: ledger.debit("d", next(spendings)), time.process_time)


def of_new_process(url: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(
        subprocess.check_output([*COMMAND, "--requests", url], text=True)
    )
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


def anywhere() -> Iterator[Spending]:
    """Windows of some hours at any time point."""
    draw = random.Random(1)  # noqa: S311  (no secret)
    while True:
        start = draw.randint(1, LENGTH - DAY)
        yield Spending.dp(LEVEL, start, start + draw.randint(1, DAY))


def filled(url: str, windows: Iterator[Spending], number: int) -> None:
    with Ledger.open(url) as ledger:
        ledger.create("d", CHAIN, LENGTH, 1)
        for begun in range(0, number, BATCH):
            ledger.debit_all("d", itertools.islice(windows, min(BATCH, number - begun)))


def growth(histories: tuple[int, ...], kinds: tuple[str, ...] = ()) -> None:
    """Print and write CPU seconds per request, by the number of debits before it.

    What is measured takes the place of the same in the file, and the rest of it stays.
    """
    file = RESULTS / "ledger-growth.md"
    rows: dict[str, list[str]] = {}
    if file.exists():
        lines = file.read_text().splitlines()[4:]
        rows = {name: found for name, *found in (line.strip("| ").split(" | ") for line in lines)}
    ways = {"days": daily, "anywhere": anywhere}
    for history, name in itertools.product(histories, kinds or ("days", "anywhere")):
        with TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/budget.db"
            filled(url, ways[name](), history)
            rows[f"{history:,} {name}"] = _milliseconds(of_new_process(url))
    if not kinds:
        with TemporaryDirectory() as folder:
            rows["a year of days"] = _milliseconds(year(Path(folder)))
            rows["bare SQLite"] = _milliseconds(bare_commits(Path(folder)))
    _write("ledger-growth", "CPU of one request, in ms", ("after", *REQUESTS), rows)


def _milliseconds(found: dict[str, float]) -> list[str]:
    return [f"{1000 * found[name]:.3g}" if name in found else "–" for name in REQUESTS]


def _write(name: str, title: str, head: tuple[str, ...], rows: dict[str, list[str]]) -> None:
    """Print a table, and keep it among the results."""
    lines = [head, ("---", *("---:" for _ in head[1:])), *((k, *row) for k, row in rows.items())]
    text = "\n".join([f"## {title}", "", *(f"| {' | '.join(line)} |" for line in lines)])
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"{text}\n")


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


def debits_of_an_analyst(url: str) -> Callable[[], object]:
    ledger, spendings = Ledger.open(url), daily(Fraction(1, 10**4))
    for _ in range(os.getpid() % 300):
        next(spendings)
    return lambda: ledger.debit("priced", next(spendings), analyst="ana")


def rate_of_threads(url: str, threads: int, number: int) -> tuple[float, float, float]:
    """As `rate`, for threads that share one ledger."""
    ask = debits(url)
    ask()
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        seconds = sorted(pool.map(lambda _: timed(ask), range(number)))
    wall = time.perf_counter() - start
    p99 = seconds[int(0.99 * len(seconds))]
    return number / wall, 1000 * statistics.median(seconds), 1000 * p99


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
    """Print and write how many requests per second one process, several, and threads get."""
    rows: dict[str, list[str]] = {}
    with TemporaryDirectory() as folder, running_server() as server:
        for name, url in (
            ("SQLite", f"sqlite:///{folder}/together.db"),
            ("PostgreSQL", new_database(server, "together")),
        ):
            Ledger.open(url).create("d", CHAIN, LENGTH, 1)
            Ledger.open(url).create("priced", CHAIN, LENGTH, 50)
            bare = f"sqlite:///{folder}/bare.db" if name == "SQLite" else url
            _prepare_bare(bare)
            measured: dict[tuple[str, str], tuple[float, float, float]] = {}
            for processes in (1, 8):
                for what, make, place in (
                    ("ledger", debits, url),
                    ("analyst", debits_of_an_analyst, url),
                    ("bare", committing, bare),
                ):
                    found = rate(make, place, processes, number // processes)
                    measured[what, f"{processes} processes"] = found
            for threads in (1, 8, 40):
                measured["ledger", f"{threads} threads"] = rate_of_threads(url, threads, number)
            for (what, who), (each, median, p99) in measured.items():
                rows[f"{name}, {what}, {who}"] = [f"{each:.0f}", f"{median:.2f}", f"{p99:.1f}"]
            Ledger.open(url).verify()
    head = ("who", "per second", "median ms", "p99 ms")
    _write("ledger-together", "Requests of many at once, beside a bare commit", head, rows)


ENTRIES = 100_000
"""Time points of the series that rates are measured on."""


def at_random(level: Fraction, seed: int = 1) -> Iterator[Spending]:
    """Windows of up to a day anywhere in a long series."""
    draw = random.Random(seed)  # noqa: S311  (no secret)
    while True:
        start = draw.randint(1, ENTRIES - DAY)
        yield Spending.dp(level, start, start + draw.randint(1, DAY))


def _filled(url: str, dataset: str, number: int, level: Fraction, budget: Fraction) -> None:
    with Ledger.open(url) as ledger:
        ledger.create(dataset, CHAIN, ENTRIES, budget)
        windows = at_random(level)
        for begun in range(0, number, BATCH):
            ledger.debit_all(dataset, itertools.islice(windows, min(BATCH, number - begun)))


def _near(number: int, level: Fraction) -> Fraction:
    """A budget that so many windows nearly use up."""
    account = Accountant(CHAIN, ENTRIES)
    account.add_all(list(itertools.islice(at_random(level), number)))
    return account.exact_epsilon * Fraction(101, 100)


def rates() -> None:
    """Print and write what a debit costs beside bare commits, and other requests beside debits."""
    rows: dict[str, list[str]] = {}
    budget = Fraction(f"{float(_near(10_000, _LARGER)):.6f}")
    with TemporaryDirectory() as folder, running_server() as server:
        sqlite, bare = f"sqlite:///{folder}/rates.db", f"sqlite:///{folder}/bare.db"
        postgres = new_database(server, "rates")
        rows |= _beside_bare("SQLite", sqlite, bare, budget)
        rows |= _beside_bare("PostgreSQL", postgres, postgres, budget)
        for entries in (10_000, 100_000):
            place = f"sqlite:///{folder}/first{entries}.db"
            _filled(place, "d", entries, LEVEL, Fraction(1))
            first = 1000 * _of_five_processes("--first-random", place)
            row = f"SQLite, first debit of a process, {entries:,} entries"
            rows[row] = [f"{first:.1f}", "–", "–", "–"]
    head = ("request, after 10,000 random windows", "median ms", "p99 ms", "CPU ms")
    _write(
        "ledger-rates",
        "Requests that take turns with bare commits",
        (*head, "per second, × bare commits"),
        rows,
    )


_LARGER = Fraction(1, 10**5)


def _beside_bare(
    name: str, url: str, bare: str, budget: Fraction, rounds: int = 300
) -> dict[str, list[str]]:
    _prepare_bare(bare)
    _filled(url, "levels", 10_000, LEVEL, Fraction(1))
    for dataset in ("near", "capped"):  # once somebody has a cap, debits need an analyst
        _filled(url, dataset, 10_000, _LARGER, budget)
    repeated, few, many, plain = (at_random(LEVEL, seed) for seed in (3, 2, 2, 4))
    kept, refused = next(repeated), Spending.dp(budget * 9 / 10, 1, ENTRIES)
    with Ledger.open(url) as ledger:
        ledger.allot("capped", "ana", cap=budget)
        ledger.debit("levels", kept, key="kept").complete("answer")
        asks: dict[str, Callable[[], object]] = {
            "bare commit": committing(bare),
            "debit, levels decide": lambda: ledger.debit("levels", next(few)),
            "repeated key": lambda: ledger.debit("levels", kept, key="kept"),
            "debit near the budget": lambda: ledger.debit("near", next(plain)),
            "capped debit near the budget": lambda: ledger.debit(
                "capped", next(many), analyst="ana"
            ),
            "refusal near the budget": lambda: ledger.debit("capped", refused, analyst="ana"),
        }
        for ask in asks.values():
            timed(ask)
        spent = dict.fromkeys(asks, 0.0)
        seconds: dict[str, list[float]] = {one: [] for one in asks}
        for _ in range(rounds):  # a busy machine is as busy for all
            for one, ask in asks.items():
                begun = time.process_time()
                seconds[one].append(timed(ask))
                spent[one] += time.process_time() - begun
    of = {one: statistics.median(found) for one, found in seconds.items()}
    return {
        f"{name}, {one}": [
            f"{1000 * of[one]:.2f}",
            f"{1000 * sorted(seconds[one])[int(0.99 * rounds)]:.1f}",
            f"{1000 * spent[one] / rounds:.2f}",
            f"{of['bare commit'] / of[one]:.3f}",
        ]
        for one in asks
    }


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
    if arguments[:1] == ["--rates"]:
        rates()
        return
    if arguments[:1] == ["--first-random"]:
        ledger, windows = Ledger.open(arguments[1]), at_random(LEVEL, 5)
        print(timed(lambda: ledger.debit("d", next(windows))))
        return
    if arguments[:1] == ["--requests"]:
        print(json.dumps(requests(arguments[1])))
        return
    if arguments[:1] == ["--first"]:
        print(first_debit(arguments[1]))
        return
    if arguments[:1] == ["--first-bare"]:
        print(timed(lambda: committing(arguments[1])(), time.process_time))
        return
    if arguments:
        numbers = tuple(int(one) for one in arguments if one.isdecimal())
        growth(numbers, tuple(one for one in arguments if not one.isdecimal()))
        return
    with TemporaryDirectory() as folder:
        contestants = {
            "quiltwork, first debits": debiting(Path(folder), 0),
            "quiltwork, after 5,000 debits": debiting(Path(folder), 5_000),
            "SQLite, bare commit": bare_commit(Path(folder)),
        }
        compare("Durable debit", contestants, repeats=9, number=100)
    growth(HISTORIES)
    rates()
    together()


if __name__ == "__main__":
    main(sys.argv[1:])
