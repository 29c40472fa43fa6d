"""What is of a wrong type gets a sentence, wherever it is given, and no sentence shows a row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from quiltwork.errors import QuiltworkError
from quiltwork.tables import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
    max_m,
    own_view,
    query_error,
    risk,
    verify_m_privacy,
)

FRAME = pd.DataFrame({"p": [*"AB"] * 4, "q": range(8), "s": ["CANARY", "b"] * 4})
TABLE = Table(FRAME, "p", ["q"], "s")
K = KAnonymity(2)
MADE = anonymize(TABLE, K, 0)


class Odd:
    """Cannot be compared or hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")


STRANGE = [
    None,
    True,
    -1,
    10**400,
    float("nan"),
    "x",
    "a" * 300,
    b"x",
    [["q"]],
    {"q": [[1]]},
    object(),
    Odd(),
    FRAME,
    np.arange(3),
    Table,
    lambda *given: None,
]


def made(**roles):
    return Table(**roles).encoded


def joined(**roles):
    return Table.concat(**roles).encoded


ROLES = {
    "quasi_identifiers": ["q"],
    "sensitive": "s",
    "subject": None,
    "ordinal": None,
    "hierarchies": None,
    "missing": "error",
    "text": (),
}
ASKED = {"table": TABLE, "constraint": K}
CALLS = {
    "Table": (made, {"frame": FRAME, "provider": "p", **ROLES}),
    "concat": (joined, {"frames": {"A": FRAME[["q", "s"]]}, "provider": "p", **ROLES}),
    "verify": (verify_m_privacy, {**ASKED, "m": 1, "method": "exact", "limit": 9}),
    "max_m": (max_m, {**ASKED, "limit": 9}),
    "anonymize": (
        anonymize,
        {
            **ASKED,
            "m": 0,
            "method": "baseline",
            "backend": "local",
            "split": "range",
            "relaxed": False,
            "suppression": 0,
        },
    ),
    "query_error": (
        query_error,
        {"table": TABLE, "publication": MADE, "queries": 5, "seed": 0},
    ),
    "own_view": (
        own_view,
        {"published": TABLE, "own": TABLE, "constraint": K, "left_out": 0, "row_groups": None},
    ),
    "assess": (
        risk.assess,
        {"released": TABLE, "against": None, "learned": None},
    ),
    "definetti": (risk.definetti, {"publication": MADE}),
    "definetti_of_texts": (risk.definetti_of_texts, {"published": TABLE, "original": TABLE}),
    "downcoding": (risk.downcoding, {"publication": MADE}),
    "intersection": (
        risk.intersection,
        {"earlier": TABLE, "later": TABLE, "ordinal": None, "hierarchies": None},
    ),
    "rehearse_intersection": (risk.rehearse_intersection, {"publication": MADE}),
    "subtraction": (risk.subtraction, {"table": TABLE}),
    "k": (KAnonymity, {"k": 2}),
    "l": (lambda **given: verify_m_privacy(TABLE, LDiversity(**given), 0), {"l": 2}),
    "entropy": (EntropyLDiversity, {"l": 2}),
    "recursive": (RecursiveLDiversity, {"c": 2, "l": 2}),
    "t": (TCloseness, {"t": Fraction(1, 2), "distance": "equal"}),
    "custom": (
        lambda **given: verify_m_privacy(TABLE, Custom(**given), 0),
        {"function": lambda counts: True, "eg_monotonic": True, "score": None, "name": "x"},
    ),
    "write": (lambda path: MADE.write(path), {"path": "x.csv"}),
}


@pytest.mark.parametrize("call", CALLS)
def test_strange_arguments_are_taken_or_refused_with_a_sentence(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ask, arguments = CALLS[call]
    told = []
    for name in arguments:
        for strange in STRANGE:
            try:
                ask(**{**arguments, name: strange})
            except QuiltworkError as refused:
                told.append(str(refused))
    assert told
    assert not [message for message in told if "CANARY" in message]
