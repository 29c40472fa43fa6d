"""Many analysts on one budget over HTTP, with the curator killed and started again meanwhile.

Every analyst asks her questions, each under its own key, until she is told: an answer, or that the
budget is spent. At the end the chain is verified, the total is what the granted debits add up to
and not above the budget, every answer told is the one that is stored, and asking again tells the
same. A key whose debit survived a kill without its answer is told so, and never debited again.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from evidence.curators import Running, running, with_steps
from evidence.faults.server import new_database, running_server
from quiltwork.budget import Ledger
from quiltwork.client import Curator, Released
from quiltwork.errors import BudgetExceeded, NotPrivateError, StorageError

_PATIENCE, _PAUSE = 600, 0.2
NAME = "Analysts at a curator"
CLAIM = "kill -9 under load: never over the budget, none lost, every key answered once"
QUERY = {"kind": "count", "state": "walk"}
SECONDS_BETWEEN_KILLS = 4.0


@dataclass
class Told:
    """What the analysts were told."""

    answers: dict[str, Released] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)


def run(progress: Callable[[int, int], None]) -> dict[str, int]:
    """200 analysts on both databases, with kills."""
    found = check(200, 3, 400, kills=5)
    progress(1, 2)
    with running_server() as server:
        other = check(200, 3, 400, kills=5, database=new_database(server, "load"))
    progress(2, 2)
    return {name: found[name] + other[name] for name in found}


def check(
    analysts: int,
    questions: int,
    fitting: int,
    kills: int = 0,
    database: str | None = None,
    pause: float = SECONDS_BETWEEN_KILLS,
) -> dict[str, int]:
    """So many analysts ask so many questions, of which so many fit the budget."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), database) as curator:
        with_steps(curator, budget=1)
        curator.join("anna", "analyst")
        curator.as_("olga").share("steps", "anna")
        told = Told()
        with _killing(curator, kills, pause), ThreadPoolExecutor(analysts) as pool:
            keys = [[f"a{a}q{q}" for q in range(questions)] for a in range(analysts)]
            work = [pool.submit(_ask_all, curator, own, fitting, told) for own in keys]
            for one in work:
                one.result()
        asked = {key for own in keys for key in own}
        _judge(curator, told, asked, fitting)
        return {
            "questions": len(asked),
            "answered": len(told.answers),
            "refused": len(told.refused),
            "debited and lost in a kill": len(told.unanswered),
            "kills": kills,
            "violations": 0,
        }


def _ask_all(curator: Running, keys: list[str], fitting: int, told: Told) -> None:
    client = curator.as_("anna")
    for key in keys:
        _ask(client, key, Fraction(1, fitting), told)


def _ask(client: Curator, key: str, level: Fraction, told: Told) -> None:
    """Ask until there is an answer of some kind, but not for ever."""
    for _ in range(_PATIENCE):
        try:
            told.answers[key] = client.ask("steps", QUERY, level, key)
        except BudgetExceeded:
            told.refused.add(key)
        except NotPrivateError:
            told.unanswered.add(key)
        except StorageError:
            time.sleep(_PAUSE)  # while it is being started again
            continue
        return
    raise AssertionError(f"no answer of any kind under key {key}")


@contextmanager
def _killing(curator: Running, kills: int, pause: float) -> Iterator[None]:
    """Kill the curator so often while the block runs, and start it again at once."""
    done = threading.Event()

    def work() -> None:
        for _ in range(kills):
            if done.wait(pause):
                return
            curator.kill()
            curator.start()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _judge(curator: Running, told: Told, asked: set[str], fitting: int) -> None:
    known = [set(told.answers), told.refused, told.unanswered]
    assert set.union(*known) == asked, "somebody was told nothing"
    assert sum(map(len, known)) == len(asked), "somebody was told two things"
    with Ledger.open(curator.database) as ledger:
        ledger.verify()
        debits = {debit.key: debit for debit in ledger.history("steps")}
        assert len(debits) == len(ledger.history("steps")), "a key was debited twice"
        assert set(debits) == set(told.answers) | told.unanswered, "a debit was lost or made up"
        status = ledger.status("steps")
        assert status.exact_total <= status.exact_budget
        assert len(debits) == min(fitting, len(asked)), f"{len(debits)} of {fitting} were granted"
    client = curator.as_("anna")
    for key, answer in list(told.answers.items())[:: max(1, len(told.answers) // 50)]:
        again = client.ask("steps", QUERY, Fraction(1, fitting), key)
        assert again == answer, "a key has two answers"
