"""kill -9 of a curator and of its publishing process while a team asks and a table is made.

Analysts ask under keys and ask again after every broken connection. In the end every key that was
answered has one debit and one answer, the table was published once or its job has failed after two
attempts, nothing was debited twice, and the ledger verifies.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np

from evidence.curators import Running, running, with_steps
from evidence.faults.server import NoServerError, new_database, running_server
from quiltwork.budget import Ledger
from quiltwork.errors import QuiltworkError

NAME = "kill -9 of a curator and of its publishing process"
CLAIM = "nothing lost, nothing spent twice, no job stuck"
ANALYSTS, ROWS = 6, 4_000
LEVEL = Fraction(1, 1000)
_LOOKS = 120
"""How often nothing may have changed before something is stuck."""


def run(progress: Callable[[int, int], None]) -> dict[str, dict[str, int]]:
    """Ten kills each on SQLite and on PostgreSQL."""
    found = {"sqlite": check(10, progress)}
    with ExitStack() as stack, suppress(NoServerError):
        server = stack.enter_context(running_server())
        found["postgres"] = check(10, progress, new_database(server, "kills"))
    return found


def check(
    kills: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    database: str | None = None,
) -> dict[str, int]:
    """Kill server and publishing process in turn, so many times, under load."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), database) as curator:
        job = _prepared(curator)
        asked = _Asked(curator)
        try:
            for number in range(kills):
                time.sleep(2)
                if number % 2:
                    curator.kill()
                    curator.start()
                else:
                    _kill_child(job)
                progress(number + 1, kills)
        finally:
            asked.stop()
        _settled(curator, job)
        return _counted(curator, asked, job, kills)


def _prepared(curator: Running) -> str:
    """A series to ask about, and a table whose publication takes a while: its job."""
    with_steps(curator, budget=1000)
    olga = curator.as_("olga")
    for n in range(ANALYSTS):
        curator.join(f"anna{n}", "analyst")
        olga.share("steps", f"anna{n}")
    olga.make_table("clinic", ["age", "zip"], "ill", k=3, m=1)
    draw = np.random.default_rng(1)
    for n in range(2):
        curator.join(f"pia{n}", "provider")
        olga.admit("table", "clinic", f"pia{n}")
        rows = draw.integers((20, 1000, 0), (80, 9999, 5), (ROWS, 3)).tolist()
        text = "age,zip,ill\n" + "".join(f"{a},{z},{ill}\n" for a, z, ill in rows)
        (curator.folder / "part.csv").write_text(text)
        curator.as_(f"pia{n}").give_rows("clinic", curator.folder / "part.csv")
    return olga.publish("clinic").id


class _Asked:
    """Analysts who ask, and ask again under the same key until they are answered."""

    def __init__(self, curator: Running) -> None:
        self.answers: dict[tuple[str, str], str] = {}
        self.given_up: set[tuple[str, str]] = set()
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(curator, f"anna{n}")) for n in range(ANALYSTS)
        ]
        for thread in self._threads:
            thread.start()

    def _ask(self, curator: Running, member: str) -> None:
        client, number = curator.as_(member), 0
        while not self._over.is_set():
            key = f"{member}-{number}"
            try:
                found = client.ask("steps", {"kind": "histogram"}, LEVEL, key)
            except QuiltworkError as error:
                if "never stored" in str(error):  # debited by a server that was killed then
                    self.given_up.add((member, key))
                    number += 1
                time.sleep(0.05)
                continue
            self.answers[member, key] = json.dumps(found.values)
            number += 1

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def _kill_child(job: str) -> None:
    """Kill the process that is at a job, known by its command line."""
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and job.encode() in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)


def _settled(curator: Running, job: str) -> None:
    """Wait until the job has ended, as long as something goes on."""
    olga, left, before = curator.as_("olga"), _LOOKS, None
    while left:
        found = olga.job(job)
        if found.state not in ("queued", "running"):
            return
        left = left - 1 if found == before else _LOOKS
        before = found
        time.sleep(0.5)
    raise AssertionError(f"something is stuck: {before}")


def _counted(curator: Running, asked: _Asked, job: str, kills: int) -> dict[str, int]:
    olga = curator.as_("olga")
    made = olga.job(job)
    with Ledger.open(curator.database) as ledger:
        ledger.verify()
        debits = ledger.history("steps")
        keys = [(debit.analyst, debit.key) for debit in debits]
        notes = [note.text for note in ledger.notes()]
    assert asked.answers, "nobody was answered"
    assert len(set(keys)) == len(keys), "a key was debited twice"
    assert notes.count("published table clinic") == (made.state == "done")
    assert made.state == "done" or "ended twice" in made.error
    for (member, key), value in asked.answers.items():
        assert (member, key) in keys, "an answer without a debit"
        again = curator.as_(member).ask("steps", {"kind": "histogram"}, LEVEL, key)
        assert json.dumps(again.values) == value, "another answer under one key"
    with Ledger.open(curator.database) as ledger:
        assert len(ledger.history("steps")) == len(debits), "asking again was debited"
    return {
        "kills": kills,
        "answers": len(asked.answers),
        "answers lost by a kill": len(asked.given_up),
        "attempts at the table": made.attempts,
        "violations": 0,
    }
