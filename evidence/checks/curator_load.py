"""Many analysts on one budget over HTTP, with the curator killed and started again meanwhile.

Every analyst asks her questions, each under its own key, until she is told: an answer, or that the
budget is spent. At the end the chain is verified, the total is what the granted debits add up to
and not above the budget, every answer told is the one that is stored, and asking again tells the
same. A key whose debit survived a kill without its answer is told so, and never debited again.

How long answers take is measured beside it, with the load made on the same machine: analysts of
their own tokens on connections that stay open, while four others read what the dataset is.
"""

from __future__ import annotations

import http.client
import json
import statistics
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
_READERS = 4
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


def run(progress: Callable[[int, int], None]) -> dict[str, int | str]:
    """200 analysts on both databases, with kills; and the seconds of 50."""
    found = check(200, 3, 400, kills=5)
    progress(1, 4)
    with running_server() as server:
        other = check(200, 3, 400, kills=5, database=new_database(server, "load"))
    progress(2, 4)
    told: dict[str, int | str] = {name: found[name] + other[name] for name in found}
    for number, (pause, how) in enumerate(((0.0, "without pauses"), (1.0, "once a second each"))):
        told |= {f"50 analysts, {how}: {name}": text for name, text in paced(50, pause).items()}
        progress(3 + number, 4)
    return told


def paced(analysts: int, pause: float, seconds: float = 15.0) -> dict[str, str]:
    """Let analysts ask for some seconds, and others read: the median and 99 % of what both took."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as curator:
        with_steps(curator, budget=1000)
        olga = curator.as_("olga")
        for n in range(analysts):
            curator.join(f"anna{n}", "analyst")
            olga.share("steps", f"anna{n}")
        body = json.dumps({"query": QUERY, "epsilon": "1/10000"})
        over = time.monotonic() + seconds
        took: dict[str, list[float]] = {"asks": [], "reads": []}

        def one(n: int, kind: str) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", curator.port, timeout=60)
            token = {"Authorization": f"Bearer {curator.tokens[f'anna{n}']}"}
            time.sleep(pause * n / analysts)
            while (begun := time.monotonic()) < over:
                if kind == "reads":
                    connection.request("GET", "/v1/datasets/steps", headers=token)
                else:
                    key = {"Content-Type": "application/json", "Idempotency-Key": f"{begun}"}
                    connection.request("POST", "/v1/datasets/steps/releases", body, token | key)
                answer = connection.getresponse()
                answer.read()
                assert answer.status in (200, 201), answer.status
                spent = time.monotonic() - begun
                took[kind].append(spent)
                time.sleep(0.2 if kind == "reads" else max(0.0, pause - spent))

        with ThreadPoolExecutor(analysts + _READERS) as pool:
            work = [pool.submit(one, n, "asks") for n in range(analysts)]
            work += [pool.submit(one, n, "reads") for n in range(_READERS)]
            for some in work:
                some.result()
    return {
        kind: f"{len(all_of):,}, median {1000 * statistics.median(all_of):.0f} ms, "
        f"99 % within {1000 * sorted(all_of)[int(0.99 * len(all_of))]:.0f} ms"
        for kind, all_of in took.items()
    }


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
