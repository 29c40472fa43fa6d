"""Questions marked in the ledger as they were asked, by which a key used again is recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from quiltwork.budget import Ledger, Receipt
from quiltwork.budget.payment import Request


class MarkedLedger(Ledger):
    """The ledger, where every debit is marked by the question as it was asked.

    So a key that is used again is recognised, also after the series has grown.
    """

    def __init__(self, ledger: Ledger, mark: str) -> None:
        """Share all that the ledger has, its connections and totals."""
        vars(self).update(vars(ledger))
        self._mark = mark

    def debit(
        self, dataset: str, spending: Any, key: str | None = None, analyst: str | None = None
    ) -> Receipt:
        """Debit with the mark in the request's document."""
        if isinstance(spending, Request):
            spending = replace(
                spending, document={**(spending.document or {}), "asked": self._mark}
            )
        elif isinstance(spending, Mapping):
            spending = {**spending, "asked": self._mark}
        return super().debit(dataset, spending, key, analyst)


def mark_of(question: msgspec.Struct) -> str:
    """Return a digest of a question, whatever the order of its fields."""
    return hashlib.sha256(msgspec.json.encode(question, order="deterministic")).hexdigest()
