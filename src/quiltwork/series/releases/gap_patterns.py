"""Patterns of public gaps: a ledger keeps a digest of them, and refuses other patterns.

Noise and refusals may depend on where gaps are, so the pattern is fixed when the data are
registered; from then on it is as public as the length.
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
    """Return a digest of the gaps and starts of sequences; None if no gaps are public."""
    digest, has_public = hashlib.sha256(salt.encode()), False
    for sequence in sequences:
        coded = gapped_sequence(sequence)
        if coded is None or coded.recorded is None:
            digest.update(b"none")
            continue
        has_public = True
        digest.update(f"{len(coded.recorded)} {coded.start} ".encode())
        digest.update(np.packbits(coded.recorded).tobytes())
    return f"{_MARK}:{digest.hexdigest()}" if has_public else None


def with_pattern(mark: str, sequences: Iterable[Any]) -> str:
    """Add the pattern of public gaps to a mark of registered data."""
    pattern = gap_pattern(sequences, mark.partition(":")[0])
    return mark if pattern is None else f"{mark}:{pattern}"


def without_pattern(mark: str) -> str:
    """Return the part of a mark that is about files: without gap pattern and reading options."""
    return mark.partition(" ")[0].partition(f":{_MARK}:")[0]


def refuse_other_gaps(payer: Payer, sequences: Iterable[Any]) -> None:
    """Refuse public gaps that were not registered for the dataset of a ledger.

    Raises:
        InvalidInputError: depending on the pattern of gaps alone, not on the rows.
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
