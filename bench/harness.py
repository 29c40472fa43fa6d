"""Time a candidate against its peers in the same run.

The first name is the candidate. Repeats are interleaved (candidate, peer, peer, candidate, …), so
that a slow moment of the machine falls on everybody; each repeat gives one ratio peer/candidate,
reported as the median with its quartiles. Peak memory is measured apart from the timing, in a
process of its own, as the growth of its resident set.

    from bench.harness import compare, compare_commands

    compare("A million draws", {"quiltwork": draw, "numpy": draw_insecurely}, repeats=9)
    compare_commands("Cold start", {"quiltwork": ["quiltwork", "--version"], "git": ["git", "-v"]})

Both print a table, write it as CSV and Markdown under bench/results, and return the rows.
"""

from __future__ import annotations

import csv
import ctypes
import gc
import os
import re
import resource
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
_MEMORY_TIMEOUT_SECONDS = 120
_RSS_BYTES = 1 if sys.platform == "darwin" else 1024  # the unit of ru_maxrss


@dataclass(frozen=True)
class Row:
    """One contestant: seconds per call and its time as a multiple of the candidate's."""

    name: str
    median_seconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    peak_mebibytes: float | None


def compare(
    title: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 9,
    number: int = 1,
    memory: bool = True,
) -> list[Row]:
    """Compare functions without arguments; each repeat times `number` calls in a row.

    Every function runs once before timing, so that imports and caches are warm.
    """
    for function in contestants.values():
        function()
    seconds = _interleave({n: _timed_calls(f, number) for n, f in contestants.items()}, repeats)
    peaks = {n: _forked_peak(f) if memory else None for n, f in contestants.items()}
    return _publish(title, _rows(seconds, peaks), repeats)


def compare_commands(
    title: str, contestants: Mapping[str, Sequence[str]], *, repeats: int = 9
) -> list[Row]:
    """Compare commands, each in a fresh process. A command that fails stops the bench.

    Every command runs once before timing, so that files are in the system's cache and byte code
    is compiled.
    """
    peaks = {name: _command_peak(argv) for name, argv in contestants.items()}
    runs = {name: _timed_command(argv) for name, argv in contestants.items()}
    return _publish(title, _rows(_interleave(runs, repeats), peaks), repeats)


def _interleave(timed: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    names = list(timed)
    for repeat in range(repeats):
        for name in names if repeat % 2 == 0 else reversed(names):
            seconds[name].append(timed[name]())
    return seconds


def _timed_calls(function: Callable[[], object], number: int) -> Callable[[], float]:
    def run() -> float:
        gc.collect()
        start = time.perf_counter()
        for _ in range(number):
            function()
        return (time.perf_counter() - start) / number

    return run


def _timed_command(argv: Sequence[str]) -> Callable[[], float]:
    def run() -> float:
        start = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start

    return run


def _command_peak(argv: Sequence[str]) -> float:
    """Peak mebibytes of one run.

    A process inherits the peak of the one that starts it, so a small one in between starts it.
    """
    launcher = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-IS", "-c", launcher, *argv]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(answer) * _RSS_BYTES / 2**20


def _forked_peak(function: Callable[[], object]) -> float | None:
    """Growth of the resident set during one call, in mebibytes; None if the fork did not answer.

    A library with threads of its own may hang in a forked process, hence the time limit.
    """
    gc.collect()
    _return_free_memory()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            function()
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            os.write(writing, str((after - before) * _RSS_BYTES).encode())
        finally:
            os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], _MEMORY_TIMEOUT_SECONDS)
    answer = os.read(reading, 64) if ready else b""
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return int(answer) / 2**20 if answer else None


def _return_free_memory() -> None:
    """Give freed memory back to the system, or a call that reuses it would look free (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _rows(seconds: Mapping[str, Sequence[float]], peaks: Mapping[str, float | None]) -> list[Row]:
    candidate = next(iter(seconds.values()))
    rows = []
    for name, times in seconds.items():
        ratios = [own / base for own, base in zip(times, candidate, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(Row(name, statistics.median(times), middle, low, high, peaks[name]))
    return rows


def _publish(title: str, rows: Sequence[Row], repeats: int) -> list[Row]:
    table = markdown(title, rows, repeats)
    print(table)
    RESULTS.mkdir(exist_ok=True)
    stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
    (RESULTS / f"{stem}.md").write_text(table, encoding="utf-8")
    with (RESULTS / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row.__dataclass_fields__)
        writer.writerows([getattr(row, f) for f in Row.__dataclass_fields__] for row in rows)
    return list(rows)


def markdown(title: str, rows: Sequence[Row], repeats: int) -> str:
    """The table as Markdown."""
    lines = [
        f"## {title}",
        "",
        f"| | time | × {rows[0].name} (quartiles of {repeats} runs) | peak memory |",
        "|---|---:|---:|---:|",
    ]
    for row in rows:
        ratio = f"{row.ratio:.3g} ({row.ratio_low:.3g} to {row.ratio_high:.3g})"
        peak = "not measured" if row.peak_mebibytes is None else f"{row.peak_mebibytes:.1f} MiB"
        lines.append(f"| {row.name} | {_duration(row.median_seconds)} | {ratio} | {peak} |")
    return "\n".join(lines) + "\n"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
