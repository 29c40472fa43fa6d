"""Everything that may go wrong while a ledger is used, many times over.

Contention, duplicates, lost connections, kill -9, power loss, full and read-only disks, replaced
files, restored backups, hostile numbers: after each trial the log is intact, everything
acknowledged is in it, nothing was granted that does not fit, and what was shown is stored and
debited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from evidence.faults import (
    contention,
    crash,
    disk,
    hostile,
    mixed,
    network,
    power,
    replaced,
    restored,
)
from evidence.faults.outcome import Outcome
from evidence.faults.server import NoServerError, new_database, running_server
from evidence.faults.work import scratch

NAME = "The ledger survives faults"
CLAIM = "released ⊆ debited, exactly what fits is granted, and the log stays intact"

CROWDS = (
    contention.at_the_beginning,
    contention.near_the_limit,
    contention.of_all_sizes,
    contention.duplicates,
    mixed.by_everybody,
    restored.from_backups,
    restored.by_an_old_copy,
)


def run(progress: Callable[[int, int], None]) -> list[str]:
    lines, violations = [], []
    with ExitStack() as stack:
        trials = list(_trials(stack))
        for done, trial in enumerate(trials, start=1):
            outcome = trial()
            lines.append(outcome.line())
            violations += outcome.violations
            progress(done, len(trials))
    print("\n".join(f"  {line}" for line in lines) if violations else "", end="")
    assert not violations, f"{len(violations)} violations, the first: {violations[0]}"
    return lines


def _trials(stack: ExitStack) -> Iterator[Callable[[], Outcome]]:
    folder = Path(stack.enter_context(scratch()))
    for work in CROWDS:
        yield lambda w=work: w(f"sqlite:///{folder / w.__name__}.db")
    yield from _postgres_trials(stack)
    yield crash.at_every_statement
    yield crash.at_every_write
    yield crash.at_every_system_call
    yield power.replay
    yield disk.full_at_every_write
    yield disk.small_files
    yield disk.read_only
    yield replaced.under_running_processes
    yield hostile.numbers
    yield hostile.things


def _postgres_trials(stack: ExitStack) -> Iterator[Callable[[], Outcome]]:
    try:
        server = stack.enter_context(running_server())
    except NoServerError as problem:
        note = str(problem)
        yield lambda: Outcome("PostgreSQL", note=note)
        return
    for work in (*CROWDS, network.lost_around_commit):
        yield lambda w=work: w(new_database(server, w.__name__))
