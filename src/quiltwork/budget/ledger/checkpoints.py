"""Checkpoints: a count and a hash, kept elsewhere, that detect any rewriting of the log.

The hash chain binds every entry to all before it. A checkpoint kept outside the database shows
later whether the log still begins with exactly those entries: edits, deletions, truncation and an
old backup put in place of the database all change or remove that hash.

Theorem: docs/theory/ledger.md
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError

SCHEMA, VERSION = "ledger-checkpoint", 1


@dataclass(frozen=True)
class Checkpoint:
    """The hash of entry number `count` of ledger `ledger_id`.

    >>> text = Checkpoint("budget", 2, "0" * 64).to_json()
    >>> Checkpoint.from_json(text).count
    2
    """

    ledger_id: str
    count: int
    hash: str

    def to_json(self) -> str:
        """Write the checkpoint as a document; keep it where the ledger's owner cannot write."""
        return files.dump(
            SCHEMA, VERSION, {"ledger": self.ledger_id, "count": self.count, "hash": self.hash}
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Checkpoint:
        """Read what `to_json` wrote.

        Raises:
            InvalidInputError: if the text is another document, or damaged.
        """
        document = files.load(text, SCHEMA, (VERSION,))
        match document:
            case {"ledger": str(ledger_id), "count": int(count), "hash": str(digest)} if (
                count >= 0 and re.fullmatch("[0-9a-f]{64}", digest)
            ):
                return cls(ledger_id, count, digest)
        raise InvalidInputError("The checkpoint is damaged: it may have been cut or edited.")


def as_checkpoint(value: object) -> Checkpoint | None:
    """Return an optional argument that is a checkpoint.

    Raises:
        InvalidInputError: for any other type.
    """
    if value is None or isinstance(value, Checkpoint):
        return value
    raise InvalidInputError(
        f"A checkpoint is what checkpoint() returned, not {type(value).__name__}; read a file with "
        "Checkpoint.from_json."
    )


def check_against(
    checkpoint: Checkpoint, ledger_id: str, count: int, hash_there: str | None
) -> None:
    """Compare a checkpoint with a log of `count` entries; `hash_there` is that of its entry.

    Raises:
        StorageError: if the log does not begin with what the checkpoint saw.
    """
    if checkpoint.ledger_id != ledger_id:
        raise StorageError(
            f"The checkpoint is of ledger {checkpoint.ledger_id}, this is ledger {ledger_id}: "
            "another one, or one that was created anew in its place."
        )
    if count < checkpoint.count:
        raise StorageError(
            f"The ledger has {count} entries, the checkpoint saw {checkpoint.count}: the last "
            f"{checkpoint.count - count} were cut off, or an old backup was put in place. Retire "
            "the datasets whose debits may be missing."
        )
    if hash_there != checkpoint.hash:
        raise StorageError(
            f"The ledger is not the one the checkpoint saw: something among its first "
            f"{checkpoint.count} entries was rewritten. Restore a backup that fits the checkpoint."
        )
