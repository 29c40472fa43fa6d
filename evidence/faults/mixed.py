"""Processes that do everything at once and are killed, against an account from scratch.

Debits of all sizes with and without analysts, several together, growth, shares, reads, new
processes: afterwards every debit that was acknowledged is in the log, the log verifies, and what
it has costs no more than the budget by an account of its own, nor any analyst more than her cap.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress
from fractions import Fraction
from typing import Any

from evidence.faults.outcome import Outcome
from quiltwork import MarkovChain
from quiltwork.budget import Accountant, Ledger, Spending
from quiltwork.budget.ledger import snapshots
from quiltwork.errors import BudgetExceeded, QuiltworkError

CHAIN = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
LENGTH = 600
BUDGETS = {"open": Fraction(2), "shared": Fraction(3), "small": Fraction(1, 20)}
CAP = Fraction(1)
_CLOSE = 1 + Fraction(1, 2**20)


def by_everybody(url: str, processes: int = 8, kills: int = 6, seconds: float = 20) -> Outcome:
    """Let processes loose on three datasets, kill some, and look at what is there."""
    outcome = Outcome(f"{processes} processes, all operations, {kills} kills ({url[:6]}…)")
    ledger = Ledger.open(url)
    for name, budget in BUDGETS.items():
        ledger.create(name, CHAIN, LENGTH, budget)
    ledger.preview("open", Spending.dp(1, 1, LENGTH))
    ledger.allot("shared", "ana", cap=CAP)
    ledger.allot("shared", "ben", reserved=Fraction(1, 2))
    context = multiprocessing.get_context("fork")
    told, stop = context.SimpleQueue(), context.Event()
    workers = [context.Process(target=_work, args=(url, told, stop, n)) for n in range(processes)]
    for worker in workers:
        worker.start()
    acknowledged: set[tuple[str, str]] = set()
    draw, begun, killed = random.Random(3), time.monotonic(), 0  # noqa: S311  (no secret)
    while time.monotonic() - begun < seconds:
        while not told.empty():
            acknowledged.add(told.get())
        if killed < kills and time.monotonic() - begun > (killed + 1) * seconds / (kills + 1):
            victim = draw.randrange(processes)
            os.kill(workers[victim].pid or 0, signal.SIGSTOP)  # not in the midst of telling
            if told.empty():
                workers[victim].kill()
                workers[victim].join()
                killed += 1
                worker = context.Process(target=_work, args=(url, told, stop, 100 + killed))
                worker.start()
                workers[victim] = worker
            else:
                os.kill(workers[victim].pid or 0, signal.SIGCONT)
        time.sleep(0.01)
    stop.set()
    for worker in workers:
        while worker.is_alive():
            while not told.empty():
                acknowledged.add(told.get())
            worker.join(0.01)
    while not told.empty():
        acknowledged.add(told.get())
    Ledger.open(url).verify()
    for name, budget in BUDGETS.items():
        _look(outcome, ledger, name, budget, {h for d, h in acknowledged if d == name})
    return outcome


def _look(
    outcome: Outcome, ledger: Ledger, name: str, budget: Fraction, acknowledged: set[str]
) -> None:
    history, length = ledger.history(name), ledger.status(name).length
    missing = acknowledged - {debit.hash for debit in history}
    scratch = Accountant(CHAIN, length)
    scratch.add_all([debit.spending for debit in history])
    total, kept = scratch.exact_epsilon, ledger.status(name).exact_total
    alone = Accountant(CHAIN, length)
    alone.add_all([debit.spending for debit in history if debit.analyst == "ana"])
    outcome.trials += len(history) - 1
    outcome.add(
        f"{name}: {len(missing)} acknowledged debits are lost"
        if missing
        else f"{name}: {float(total)} of {float(budget)} was granted"
        if total > budget * _CLOSE
        else f"{name}: the total is {float(total)}, and {float(kept)} is kept"
        if abs(total - kept) > total * (_CLOSE - 1)
        else f"{name}: ana learns {float(alone.exact_epsilon)}, above her cap"
        if name == "shared" and alone.exact_epsilon > CAP * _CLOSE
        else None
    )


def _work(url: str, told: Any, stop: Any, seed: int) -> None:
    draw, ledger = random.Random(seed), Ledger.open(url)  # noqa: S311  (no secret)
    snapshots.TAIL = draw.choice([3, 20, 1000])
    while not stop.is_set():
        if draw.random() < 0.05:
            ledger.close()
            ledger = Ledger.open(url)
        with suppress(QuiltworkError):
            for name, found in _step(ledger, draw):
                told.put((name, found))


def _step(ledger: Ledger, draw: random.Random) -> list[tuple[str, str]]:
    """One request; return dataset and hash of what it debited."""
    name = draw.choice(list(BUDGETS))
    start = draw.randint(1, LENGTH)
    stop = min(LENGTH, start + draw.choice([0, 10, 100, LENGTH]))
    level = draw.choice([Fraction(1, 10**7), Fraction(1, 10**4), Fraction(1, 300), Fraction(1, 20)])
    asked = Spending(start, stop, level, draw.choice([Fraction(0), level]) if stop > start else 0)
    who = draw.choice([None, "ana", "ben"]) if name == "shared" else None
    match draw.randrange(12):
        case 0:
            ledger.status(name)
        case 1:
            ledger.preview(name, asked, who)
        case 2:
            ledger.extend(name, (ledger.status(name).length or 0) + 1)
        case 3:
            ledger.allot("shared", "ben", reserved=Fraction(draw.randint(1, 9), 20))
        case 4:
            some = [asked, Spending.dp(level, 1, 5), asked]
            return [(name, one.hash) for one in ledger.debit_all(name, some, who)]
        case 5:
            with suppress(BudgetExceeded):
                ledger.debit(name, Spending.dp(9, 1, LENGTH), analyst=who)
        case _:
            return [(name, ledger.debit(name, asked, analyst=who).hash)]
    return []
