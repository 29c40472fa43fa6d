"""Hostile numbers and names are refused with a sentence, and leave no trace."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from evidence.faults import hostile
from quiltwork.budget import Spending
from quiltwork.budget.ledger import debits
from quiltwork.errors import InvalidInputError


def test_no_hostile_number_is_granted():
    outcome = hostile.numbers()
    assert outcome.trials > 6 * len(hostile.NUMBERS)
    assert not outcome.violations, outcome.violations


def test_no_hostile_thing_is_taken_or_fails_without_a_sentence():
    outcome = hostile.things()
    assert outcome.trials > 500
    assert not outcome.violations, outcome.violations


def test_numpy_numbers_of_a_description_are_pythons_own(ledger, independent):
    ledger.create("d", independent, 4, 1)
    asked = {"dp_epsilon": np.float64(0.1), "start": np.int64(1), "stop": np.int32(3)}
    more = {"note": [np.float32(0.5), np.bool_(True), Fraction(1, 3)], "count": np.uint8(7)}
    first = ledger.debit("d", {**asked, **more}, key="k")
    first.complete("answer")
    (debit,) = ledger.history("d")
    assert (debit.spending.start, debit.spending.stop) == (1, 3)
    assert debit.request["note"] == [0.5, True, "1/3"]
    plain = {"dp_epsilon": 0.1, "start": 1, "stop": 3, "note": [0.5, True, "1/3"], "count": 7}
    assert ledger.debit("d", plain, key="k").stored == "answer"


def test_ordinary_numbers_are(ledger, independent):
    """The same places take an ordinary number, or the test above would show nothing."""
    ledger.create("d", independent, 4, 1)
    for place in hostile.places(ledger, 3)[:1] + hostile.places(ledger, 0.1)[1:-1]:
        assert hostile.granted(place, "an ordinary number")
    assert hostile.granted(hostile.places(ledger, 5)[-1], 5)


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
    assert ledger.answer(name, name, analyst=name) == name
    assert ledger.history(name)[0].analyst == name
    ledger.verify()


def test_what_is_kept_for_ever_has_a_size(ledger, independent, monkeypatch):
    """Names, labels, requests and answers; the longest are taken, one character more is refused."""
    ledger.create("d" * 200, independent, 3, 1)
    ledger.create("d", independent, 3, 1)
    fits = {"dp_epsilon": 0.1, "text": "x" * (10**6 - 31)}
    assert len(json.dumps(fits)) == 10**6
    for one in (Spending.dp(0.1, 1, 3, "x" * 1000), fits):
        receipt = ledger.debit("d", one, key="k" * 199 + str(type(one) is dict)[0])
    monkeypatch.setattr(debits, "_LONGEST_ANSWER", 9)
    for refused in (
        lambda: ledger.create("d" * 201, independent, 3, 1),
        lambda: ledger.allot("d", "a" * 201),
        lambda: ledger.debit("d", Spending.dp(0.1, 1, 3), key="k" * 201),
        lambda: ledger.debit("d", Spending.dp(0.1, 1, 3, "x" * 1001)),
        lambda: ledger.debit("d", {**fits, "text": fits["text"] + "x"}),
        lambda: receipt.complete("x" * 10),
    ):
        with pytest.raises(InvalidInputError, match="characters"):
            refused()
    receipt.complete("x" * 9)
    assert len(ledger.history("d")) == 2
