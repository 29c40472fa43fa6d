"""Many processes near the limit: exactly what fits is granted, to whoever comes first."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evidence.faults.outcome import Outcome
from evidence.faults.work import INDEPENDENT, LENGTH
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import BudgetExceeded, NotPrivateError


def near_the_limit(url: str, processes: int = 64, tries: int = 3, fitting: int = 100) -> Outcome:
    """Every process asks `tries` times for 1/fitting of the budget."""
    outcome = Outcome(f"{processes} processes near the limit ({url.partition(':')[0]})")
    ledger = Ledger.open(url)
    ledger.create("d", INDEPENDENT, LENGTH, 1)
    asked = Spending.dp(Fraction(1, fitting), 1, LENGTH)
    granted = sum(_together(_ask, processes, (url, asked, tries)))
    found = ledger.history("d")
    expected = min(fitting, processes * tries)
    outcome.trials += processes * tries - 1
    problem = None
    if granted != expected or len(found) != expected:
        problem = f"{granted} granted, {len(found)} recorded, {expected} fit"
    elif ledger.status("d").exact_total != Fraction(expected, fitting):
        problem = f"the total is {ledger.status('d').exact_total}"
    ledger.verify()
    outcome.add(problem)
    return outcome


def of_all_sizes(url: str, processes: int = 64, tries: int = 3) -> Outcome:
    """Requests of different sizes: the total stays within the budget and nothing small fits."""
    outcome = Outcome(f"{processes} processes, all sizes ({url.partition(':')[0]})")
    ledger = Ledger.open(url)
    ledger.create("d", INDEPENDENT, LENGTH, 1)
    granted = sum(_together(_ask_sizes, processes, (url, tries)))
    found = ledger.history("d")
    total = sum((debit.spending.per_point for debit in found), Fraction(0))
    outcome.trials += processes * tries - 1
    problem = None
    if granted != len(found):
        problem = f"{granted} granted, {len(found)} recorded"
    elif total > 1 or ledger.status("d").exact_total != total:
        problem = f"{total} was granted of 1, the total is {ledger.status('d').exact_total}"
    ledger.verify()
    outcome.add(problem)
    return outcome


def duplicates(url: str, processes: int = 16, keys: int = 12) -> Outcome:
    """Everybody sends the same requests, each in another order: one debit and answer per key."""
    outcome = Outcome(f"duplicates in any order ({url.partition(':')[0]})")
    ledger = Ledger.open(url)
    ledger.create("d", INDEPENDENT, LENGTH, 1)
    answers: dict[str, set[str]] = {}
    for found in _together(_ask_keys, processes, (url, keys)):
        for key, answer in found:
            answers.setdefault(key, set()).add(answer)
    debited = sorted(debit.key or "" for debit in ledger.history("d"))
    expected = sorted(f"k{number}" for number in range(keys))
    for key in expected:
        shown = answers.get(key, set())
        same = shown == {ledger.answer("d", key)}
        outcome.add(None if same else f"{key}: {len(shown)} different answers were shown")
    outcome.trials += processes * keys - keys
    if debited != expected:
        outcome.violations.append(f"debited under {debited}")
    ledger.verify()
    return outcome


def at_the_beginning(url: str, processes: int = 24) -> Outcome:
    """Everybody begins a dataset in a ledger that does not exist yet."""
    outcome = Outcome(f"{processes} processes begin one ledger ({url.partition(':')[0]})")
    _together(_begin, processes, (url,))
    ledger = Ledger.open(url)
    names = {status.dataset for status in ledger.datasets()}
    for number in range(processes):
        outcome.add(None if f"d{number}" in names else f"dataset d{number} is gone")
    ledger.verify()
    return outcome


def _together(work: Callable[..., Any], processes: int, arguments: tuple[Any, ...]) -> list[Any]:
    """What each of many processes returns that do the same work at the same time."""
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=_one, args=(work, number, start, results, arguments))
        for number in range(processes)
    ]
    for process in running:
        process.start()
    found = [results.get(timeout=300) for _ in running]
    for process in running:
        process.join()
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def _one(
    work: Callable[..., Any], number: int, start: Any, results: Any, arguments: tuple[Any, ...]
) -> None:
    try:
        start.wait(timeout=120)
        results.put(work(number, *arguments))
    except Exception as error:
        results.put(RuntimeError(f"{type(error).__name__}: {error}"))


def _begin(number: int, url: str) -> None:
    Ledger.open(url).create(f"d{number}", INDEPENDENT, LENGTH, 1)


def _ask(number: int, url: str, asked: Spending, tries: int) -> int:
    ledger = Ledger.open(url)
    return sum(_granted(ledger, asked) for _ in range(tries))


def _ask_sizes(number: int, url: str, tries: int) -> int:
    ledger = Ledger.open(url)
    chance = random.Random(number)  # noqa: S311
    levels = [Fraction(1, chance.randint(7, 90)) for _ in range(tries)]
    return sum(_granted(ledger, Spending.dp(level, 1, LENGTH)) for level in levels)


def _granted(ledger: Ledger, asked: Spending) -> bool:
    try:
        ledger.debit("d", asked)
    except BudgetExceeded:
        return False
    return True


def _ask_keys(number: int, url: str, keys: int) -> list[tuple[str, str]]:
    ledger = Ledger.open(url)
    order = [f"k{key}" for key in range(keys)]
    random.Random(number).shuffle(order)  # noqa: S311
    shown = []
    for key in order:
        try:
            receipt = ledger.debit("d", Spending.dp(Fraction(1, 100), 1, LENGTH), key=key)
        except NotPrivateError:
            continue  # somebody else is at it
        answer = receipt.stored or f"{key} by {number}"
        if receipt.stored is None:
            receipt.complete(answer)
        shown.append((key, answer))
    return shown
