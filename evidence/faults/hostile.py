"""Hostile numbers and things: only what a place is for is ever taken, and nothing fails bare."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evidence.faults.outcome import Outcome
from evidence.faults.work import FILE, INDEPENDENT, LENGTH, scratch
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import InvalidInputError, QuiltworkError

NUMBERS: tuple[Any, ...] = (
    math.nan,
    math.inf,
    -math.inf,
    float("1e999"),
    Decimal("1e999"),
    Decimal("1e999999999"),
    Decimal("1e-999999999"),
    Decimal("0e-999999999"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    10**400,
    Fraction(1, 10**400),
    Fraction(10**1200 + 1, 10**1200),
    5e-324,
    1e-310,
    0,
    0.0,
    -0.0,
    -1,
    True,
    False,
    np.True_,
    np.float64("nan"),
    np.float64("inf"),
    np.float64(5e-324),
    "1e999999999",
    b"1",
    1j,
    [1],
)


def numbers() -> Outcome:
    """Every hostile number in every place that takes one."""
    outcome = Outcome("hostile numbers")
    with scratch() as folder, Ledger.open(f"sqlite:///{Path(folder) / FILE}") as ledger:
        ledger.create("d", INDEPENDENT, LENGTH, 1)
        before = ledger.log()
        for number in NUMBERS:
            for place in places(ledger, number):
                outcome.add(granted(place, number))
        if ledger.log() != before:
            outcome.violations.append("a refused number left a trace")
    return outcome


def places(ledger: Ledger, number: Any) -> list[Callable[[], object]]:
    """Everything that takes a number; the last takes a number of time points.

    A share may be 0, which is no hostile number there.
    """
    is_nothing = isinstance(number, int | float) and not isinstance(number, bool) and number == 0
    shares: list[Callable[[], object]] = [
        lambda: ledger.allot("d", "ana", cap=number),
        lambda: ledger.allot("d", "ana", reserved=number),
    ]
    return [
        lambda: ledger.create("e", INDEPENDENT, LENGTH, number),
        lambda: ledger.accountant("d").spend(dp_epsilon=number),
        lambda: ledger.debit("d", Spending.dp(number, 1, LENGTH)),
        lambda: ledger.debit("d", {"dp_epsilon": number}),
        *(() if is_nothing else shares),
        lambda: ledger.extend("d", number),
    ]


def granted(place: Callable[[], object], number: Any) -> str | None:
    """Say that the number was taken, or None if it was refused with a sentence."""
    try:
        place()
    except InvalidInputError as refusal:
        return None if len(str(refusal)) > 20 else f"{number!r}: no sentence"
    return f"{str(number)[:20]} was taken"


class Unprintable:
    """What fails even when it is shown."""

    def __repr__(self) -> str:
        """Fail."""
        raise RuntimeError("no repr")


def nested(depth: int = 100_000) -> list[Any]:
    """A list that no recursion gets through."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


THINGS: tuple[Any, ...] = (
    5,
    -1,
    1.5,
    math.nan,
    10**400,
    10**5000,
    True,
    "",
    " ",
    "x" * 100_000,
    "\ud800",
    "a\0b",
    b"x",
    [],
    {},
    [1],
    {"a": 1},
    object(),
    Unprintable(),
    np.int64(3),
    np.arange(3),
    Decimal("NaN"),
    len,
)
DESCRIPTIONS: tuple[Any, ...] = (
    {"dp_epsilon": np.float64("nan")},
    {"dp_epsilon": "1e10000000"},
    {"dp_epsilon": "1/0"},
    {"dp_epsilon": "1/00"},
    {"dp_epsilon": 0.1, "start": 10**400, "stop": 10**401},
    {"dp_epsilon": 0.1, "start": 1, "stop": 10**5000},
    {"dp_epsilon": 0.1, "note": object()},
    {"dp_epsilon": 0.1, "note": math.nan},
    {"dp_epsilon": 0.1, "note": np.arange(3)},
    {"dp_epsilon": 0.1, "note": nested()},
    {"dp_epsilon": 0.1, "note": 10**5000},
    {"dp_epsilon": 0.1, (1, 2): 3},
    {"dp_epsilon": 0.1, "label": "x" * 10_000},
    {"query": 5},
    {"query": {"kind": "histogram"}},
    {
        "query": {"kind": "count", "state": 1},
        "noise_scale": 5,
        "length": LENGTH,
        "exact_epsilon": "1",
        "method": "exact",
    },
    {
        "query": {"kind": "count", "state": 1},
        "noise_scale": "1e10000000",
        "length": LENGTH,
        "exact_epsilon": "1",
        "method": "exact",
    },
)


def things() -> Outcome:
    """Every strange thing in every place that takes a name, a path, a receipt or a release."""
    outcome = Outcome("hostile things")
    with scratch() as folder, Ledger.open(f"sqlite:///{Path(folder) / FILE}") as ledger:
        ledger.create("d", INDEPENDENT, LENGTH, 1)
        ledger.backup(Path(folder) / "backup.jsonl")
        before = ledger.log()
        for thing in THINGS:
            for place in names(ledger, thing) + objects(ledger, thing, folder):
                outcome.add(refused(place, thing))
        for thing in (*THINGS, *DESCRIPTIONS):
            for place in spendings(ledger, thing):
                outcome.add(refused(place, thing))
        if ledger.log() != before:
            outcome.violations.append("a refused thing left a trace")
    return outcome


def names(ledger: Ledger, name: Any) -> list[Callable[[], object]]:
    """Everything that takes the name of a dataset, a request or an analyst."""
    one = Spending.dp(0.01, 1, LENGTH)
    return [
        lambda: ledger.create(name, INDEPENDENT, LENGTH, 1),
        lambda: ledger.extend(name, LENGTH + 1),
        lambda: ledger.allot(name, "ana", cap=1),
        lambda: ledger.allot("d", name, cap=1),
        lambda: ledger.retire(name),
        lambda: ledger.retire("d", name),
        lambda: ledger.debit(name, one),
        lambda: ledger.debit("d", one, key=name),
        lambda: ledger.debit("d", one, analyst=name),
        lambda: ledger.debit_all(name, [one]),
        lambda: ledger.debit_all("d", [one], analyst=name),
        lambda: ledger.answer(name, "key"),
        lambda: ledger.answer("d", name),
        lambda: ledger.preview(name, one),
        lambda: ledger.preview("d", one, analyst=name),
        lambda: ledger.accountant(name),
        lambda: ledger.accountant("d", analyst=name),
        lambda: ledger.status(name),
        lambda: ledger.history(name),
    ]


def objects(ledger: Ledger, thing: Any, folder: str) -> list[Callable[[], object]]:
    """Everything that takes a URL, a path, a checkpoint, a receipt or beliefs."""
    new, backup = f"sqlite:///{Path(folder) / 'new.db'}", Path(folder) / "backup.jsonl"
    places: list[Callable[[], object]] = [
        lambda: Ledger.open(thing),
        lambda: ledger.complete(thing, "answer"),
        lambda: ledger.verify(thing),
        lambda: ledger.create("e", thing, LENGTH, 1),
        lambda: Ledger.restore(thing, new),
        lambda: Ledger.restore(backup, thing),
        lambda: Ledger.restore(backup, new, thing),
        lambda: Ledger.restore(backup, new, None, {"d": [thing]}),
    ]
    file_names = isinstance(thing, str) and thing.isprintable() and thing != ""
    return places if file_names else [*places, lambda: ledger.backup(thing)]


def spendings(ledger: Ledger, thing: Any) -> list[Callable[[], object]]:
    """Everything that takes a release."""
    places: list[Callable[[], object]] = [
        lambda: ledger.debit("d", thing),
        lambda: ledger.debit_all("d", [thing]),
        lambda: ledger.preview("d", thing),
        lambda: ledger.accountant("d").add(thing),
    ]
    empty = isinstance(thing, list) and not thing
    return places if empty else [*places, lambda: ledger.debit_all("d", thing)]


def refused(place: Callable[[], object], thing: Any) -> str | None:
    """Say that a thing was taken or failed bare, or None if it was refused with a sentence."""
    try:
        place()
    except QuiltworkError as refusal:
        return None if 20 < len(str(refusal)) < 200_000 else f"{type(thing)}: no sentence"
    except Exception as error:
        return f"{type(thing).__name__}: {type(error).__name__}: {str(error)[:60]}"
    return f"a {type(thing).__name__} was taken"
