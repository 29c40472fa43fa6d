"""Hostile numbers: nothing but an ordinary positive amount is ever granted."""

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
from quiltwork.accounting import Spending
from quiltwork.errors import InvalidInputError
from quiltwork.ledger import Ledger

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
    """Everything that takes a number; the last takes a number of time points."""
    return [
        lambda: ledger.create("e", INDEPENDENT, LENGTH, number),
        lambda: ledger.accountant("d").spend(dp_epsilon=number),
        lambda: ledger.debit("d", Spending.dp(number, 1, LENGTH)),
        lambda: ledger.debit("d", {"dp_epsilon": number}),
        lambda: ledger.allot("d", "ana", cap=number),
        lambda: ledger.allot("d", "ana", reserved=number),
        lambda: ledger.extend("d", number),
    ]


def granted(place: Callable[[], object], number: Any) -> str | None:
    """Say that the number was taken, or None if it was refused with a sentence."""
    try:
        place()
    except InvalidInputError as refusal:
        return None if len(str(refusal)) > 20 else f"{number!r}: no sentence"
    return f"{str(number)[:20]} was taken"
