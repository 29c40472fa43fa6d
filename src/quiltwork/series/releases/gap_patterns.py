"""Patterns of public gaps: what a ledger keeps of them, and that no release has other ones.

Noise and refusals may depend on where gaps are, so the pattern is fixed with the data, when they
are registered: after that it is as public as the length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.beliefs.origins import gapped_sequence
from quiltwork.errors import InvalidInputError
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.budget.payment import Payer

_MARK = "gaps"


def gap_pattern(sequences: Iterable[Any], salt: str) -> str | None:
    """Return a digest of where gaps are, and when sequences begin; None if they are not public."""
    whole, known = hashlib.sha256(salt.encode()), False
    for sequence in sequences:
        coded = gapped_sequence(sequence)
        if coded is None or coded.recorded is None:
            whole.update(b"none")
            continue
        known = True
        whole.update(f"{len(coded.recorded)} {coded.start} ".encode())
        whole.update(np.packbits(coded.recorded).tobytes())
    return f"{_MARK}:{whole.hexdigest()}" if known else None


def with_pattern(mark: str, sequences: Iterable[Any]) -> str:
    """Return a mark of registered data with the pattern of their gaps, where that is public."""
    pattern = gap_pattern(sequences, mark.partition(":")[0])
    return mark if pattern is None else f"{mark}:{pattern}"


def without_pattern(mark: str) -> str:
    """Return the part of a mark that is about files: without gap pattern and reading options."""
    return mark.partition(" ")[0].partition(f":{_MARK}:")[0]


def refuse_other_gaps(payer: Payer, sequences: Iterable[Any]) -> None:
    """Refuse public gaps that were not registered for the dataset of a ledger.

    Raises:
        InvalidInputError: whatever the rows are, by where they are missing alone.
    """
    mark = (payer.ledger.registered(payer.dataset) or "").partition(" ")[0]
    _, _, known = mark.partition(f":{_MARK}:")
    if not known:
        raise InvalidInputError(
            f"Noise and refusals may depend on where gaps are, so where a ledger pays, public gaps "
            f"are registered with the data: register them for dataset {payer.dataset!r} with "
            f"{argument('missing', 'public')} (quiltwork ledger register --missing public)."
        )
    if gap_pattern(sequences, mark.partition(":")[0]) != f"{_MARK}:{known}":
        raise InvalidInputError(
            f"These are not the gaps registered for dataset {payer.dataset!r}; whoever owns the "
            "data registers them again (quiltwork ledger register)."
        )
