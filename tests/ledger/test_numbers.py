"""Hostile numbers and names are refused with a sentence, and leave no trace."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from quiltwork.accounting import Spending
from quiltwork.errors import InvalidInputError, QuiltworkError

HOSTILE = [
    math.nan,
    math.inf,
    -math.inf,
    float("1e999"),
    Decimal("1e999"),
    Decimal("1e999999999"),
    Decimal("1e-999999999"),
    Decimal("NaN"),
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
    "1",
    b"1",
    None,
    1j,
    [1],
]


@pytest.mark.parametrize("number", HOSTILE, ids=lambda n: f"{type(n).__name__} {str(n)[:12]}")
def test_no_hostile_number_is_granted(tmp_path, independent, number):
    from quiltwork.ledger import Ledger

    ledger = Ledger.open(f"sqlite:///{tmp_path / 'b.db'}")
    with pytest.raises(InvalidInputError):
        ledger.create("d", independent, 3, number)
    ledger.create("d", independent, 3, 1)
    before = ledger.log()
    with pytest.raises(InvalidInputError):
        ledger.accountant("d").spend(dp_epsilon=number)
    with pytest.raises(QuiltworkError):
        ledger.debit("d", Spending.dp(number, 1, 3))
    hostile_text = "1e999999999" if isinstance(number, str) else number
    with pytest.raises(QuiltworkError):
        ledger.debit("d", {"dp_epsilon": hostile_text})
    if number is not None:
        with pytest.raises(InvalidInputError):
            ledger.allot("d", "ana", cap=number)
        with pytest.raises(InvalidInputError):
            ledger.allot("d", "ana", reserved=number)
    with pytest.raises(InvalidInputError):
        ledger.extend("d", -3 if number is None else number)
    assert ledger.log() == before


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\0b", "x" * 201, None, 3, "\ud800"])
def test_names_must_be_printable(ledger, independent, name):
    with pytest.raises(InvalidInputError):
        ledger.create(name, independent, 3, 1)
    ledger.create("d", independent, 3, 1)
    if name is not None:
        with pytest.raises(InvalidInputError):
            ledger.debit("d", Spending.dp(0.1, 1, 3), key=name)
        with pytest.raises(InvalidInputError):
            ledger.debit("d", Spending.dp(0.1, 1, 3), analyst=name)
    with pytest.raises(InvalidInputError):
        ledger.debit(name, Spending.dp(0.1, 1, 3))


@pytest.mark.parametrize(
    "name", ["größe", "数据", "a b", "'; DROP TABLE quiltwork_entries; --", "%s ?"]
)
def test_other_names_are_taken_as_they_are(ledger, independent, name):
    ledger.create(name, independent, 3, 1)
    ledger.debit(name, Spending.dp(0.1, 1, 3), key=name, analyst=name).complete(name)
    assert ledger.answer(name, name) == name
    assert ledger.history(name)[0].analyst == name
    ledger.verify()
