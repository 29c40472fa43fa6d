"""200 analysts on one budget: a curator over HTTP beside the bare ledger, in the same run.

A request of the bare ledger is a debit and its answer, by as many threads in one process; one of
the curator is a whole question: HTTP, token, rights, debit, drawing, answer. Both on SQLite and on
PostgreSQL. Also how long a cold start takes to the first answer, and the memory of an idle curator.
`python -m bench.bench_curator 20 5` lets 20 analysts ask 5 questions each.
"""

from __future__ import annotations

import csv
import http.client
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness import RESULTS
from evidence.curators import INDEPENDENT, LENGTH, Running, running, with_steps
from evidence.faults.server import new_database, running_server
from quiltwork.budget import Ledger, Spending

ANALYSTS, QUESTIONS = 200, 5
LEVEL = Fraction(1, 10_000)
QUERY = {"kind": "count", "state": "walk"}
HEADER = ("database", "who", "requests per second", "median ms", "p99 ms", "p99 / bare")


def main(analysts: int = ANALYSTS, questions: int = QUESTIONS) -> None:
    """Measure, print and write the tables."""
    rows = []
    with TemporaryDirectory() as folder, running_server() as server:
        places = {
            "SQLite": (f"sqlite:///{folder}/bare.db", None),
            "PostgreSQL": (new_database(server, "bare"), new_database(server, "curator")),
        }
        for name, (bare, database) in places.items():
            with _ledger(bare) as ask:
                alone = _timed(ask, analysts, questions)
            with (
                TemporaryDirectory() as other,
                running(Path(other), database) as curator,
                _analysts(curator) as ask,
            ):
                asked = _timed(ask, analysts, questions)
            rows += [_row(name, "bare ledger", alone, alone), _row(name, "curator", asked, alone)]
    _write("Analysts on one budget", HEADER, rows)
    _write("A cold curator", ("what", "value"), _cold())


def _timed(ask: Callable[[str], None], analysts: int, questions: int) -> tuple[float, list[float]]:
    """Return seconds in all, and of each request."""
    ask("warm")

    def work(analyst: int) -> list[float]:
        found = []
        for question in range(questions):
            begun = time.perf_counter()
            ask(f"a{analyst}q{question}")
            found.append(time.perf_counter() - begun)
        return found

    begun = time.perf_counter()
    with ThreadPoolExecutor(analysts) as pool:
        each = [one for found in pool.map(work, range(analysts)) for one in found]
    return time.perf_counter() - begun, each


@contextmanager
def _ledger(url: str) -> Iterator[Callable[[str], None]]:
    with Ledger.open(url, timeout=3600) as ledger:
        ledger.create("steps", INDEPENDENT, LENGTH, 1)
        asked, answer = Spending.dp(LEVEL, 1, LENGTH), "x" * 1500
        yield lambda key: ledger.debit("steps", asked, key, "anna").complete(answer)


@contextmanager
def _analysts(curator: Running) -> Iterator[Callable[[str], None]]:
    with_steps(curator, budget=1)
    curator.join("anna", "analyst")
    curator.as_("olga").share("steps", "anna")
    own = threading.local()
    body = json.dumps({"query": QUERY, "epsilon": str(LEVEL)}).encode()
    headers = {"Authorization": f"Bearer {curator.tokens['anna']}"}
    headers["Content-Type"] = "application/json"

    def ask(key: str) -> None:
        if not hasattr(own, "connection"):
            own.connection = http.client.HTTPConnection("127.0.0.1", curator.port, timeout=300)
        path = "/v1/datasets/steps/releases"
        own.connection.request("POST", path, body, {**headers, "Idempotency-Key": key})
        answer = own.connection.getresponse()
        text = answer.read()
        if answer.status != 201:
            raise AssertionError(f"{answer.status}: {text[:300]!r}")

    yield ask


def _row(
    database: str, who: str, found: tuple[float, list[float]], bare: tuple[float, list[float]]
) -> tuple[str, ...]:
    seconds, each = found
    return (
        database,
        who,
        f"{len(each) / seconds:.0f}",
        f"{1000 * statistics.median(each):.0f}",
        f"{1000 * _p99(each):.0f}",
        f"{_p99(each) / _p99(bare[1]):.2f}",
    )


def _p99(each: list[float]) -> float:
    return sorted(each)[min(len(each) - 1, len(each) * 99 // 100)]


def _cold() -> list[tuple[str, str]]:
    """From nothing to the first answer, and what an idle curator holds."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # its worker may still write
        begun = time.perf_counter()
        with running(Path(folder)) as curator:
            listening = time.perf_counter() - begun
            idle = _resident(curator)
            with_steps(curator)
            curator.as_("olga").ask("steps", QUERY, LEVEL)
            first = time.perf_counter() - begun
    return [
        ("seconds until it listens", f"{listening:.2f}"),
        ("seconds until a first dataset is registered, filled and asked", f"{first:.2f}"),
        ("MiB of an idle curator", f"{idle:.0f}"),
    ]


def _resident(curator: Running) -> float:
    if curator.process is None:
        return float("nan")
    status = Path(f"/proc/{curator.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _write(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    print(f"\n{title}")
    for row in (header, *rows):
        print("  " + "  ".join(f"{cell:>20}" for cell in row))
    name = title.lower().replace(" ", "_")
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
