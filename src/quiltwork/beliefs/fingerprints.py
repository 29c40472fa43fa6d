"""Fingerprints: recognising the data that a belief was fitted on.

A fitted belief used on its own data makes the noise scale itself a leak, so fitted beliefs keep a
SHA-256 of each sequence. Two sequences have the same fingerprint exactly when they are equal item
by item, whatever their container: 1, 1.0 and True count as one value, as in Python.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from quiltwork.beliefs.matrices import IntArray
from quiltwork.beliefs.sequences import first_positions, read_labels
from quiltwork.beliefs.states import Label


def fingerprint(sequence: Any) -> str:
    """Return the SHA-256 of a sequence's content as 64 hexadecimal digits. O(T).

    Keep it as you keep the data: whoever can guess a short sequence can confirm the guess.

    Raises:
        InvalidInputError: for empty data, missing values and what cannot be a label.

    >>> fingerprint([0, 1, 1]) == fingerprint(np.array([0.0, 1.0, 1.0]))
    True
    """
    return content_hash(*read_labels(sequence))


def content_hash(codes: IntArray, labels: tuple[Label, ...]) -> str:
    """Return the fingerprint of the sequence `[labels[c] for c in codes]`. O(T)."""
    order = np.argsort(first_positions(codes, len(labels)))
    rank = np.empty(len(labels), dtype=_narrowest(len(labels)))
    rank[order] = np.arange(len(labels))
    digest = hashlib.sha256(b"quiltwork/sequence/1\n")
    digest.update(f"{len(codes)} {len(labels)}\n".encode())
    for i in order:
        digest.update(_canonical(labels[i]))
    digest.update(rank[codes].tobytes())
    return digest.hexdigest()


def _narrowest(count: int) -> np.dtype[Any]:
    return np.dtype("<u1" if count <= 2**8 else "<u2" if count <= 2**16 else "<u8")


def _canonical(label: Label) -> bytes:
    """Write a label so that equal labels, and only they, become equal bytes."""
    if label is None:
        return b"n;"
    if isinstance(label, str):
        text = label.encode("utf-8", "surrogatepass")
        return b"s%d:%s;" % (len(text), text)
    if isinstance(label, tuple):
        return b"t%d:%s;" % (len(label), b"".join(map(_canonical, label)))
    if isinstance(label, float) and not (math.isfinite(label) and label.is_integer()):
        return f"f{label.hex()};".encode()
    return f"i{int(label)};".encode()
