"""Checkpoints: two numbers, kept elsewhere, that betray any rewriting of the log.

The hash chain ties every entry to all before it. Whoever keeps a checkpoint outside the database
can tell later whether the log still begins with exactly those entries: edits, deletions,
truncation and backups put back in place of the real thing all change or remove that hash.

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
    """The first `count` entries of ledger `ledger_id` end with `hash`."""

    ledger_id: str
    count: int
    hash: str

    def to_json(self) -> str:
        """Write the checkpoint as a document; keep it where the ledger's keeper cannot write."""
        return files.dump(
            SCHEMA, VERSION, {"ledger": self.ledger_id, "count": self.count, "hash": self.hash}
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Checkpoint:
        """Read what `to_json` wrote.

        Raises:
            InvalidInputError: if the text is another document or damaged.
        """
        document = files.load(text, SCHEMA, (VERSION,))
        match document:
            case {"ledger": str(ledger_id), "count": int(count), "hash": str(digest)} if (
                count >= 0 and re.fullmatch("[0-9a-f]{64}", digest)
            ):
                return cls(ledger_id, count, digest)
        raise InvalidInputError("The checkpoint is damaged: it may have been cut or edited.")


def read_checkpoint(given: object) -> Checkpoint | None:
    """Return a checkpoint that somebody gives, or None.

    Raises:
        InvalidInputError: if it is something else.
    """
    if given is None or isinstance(given, Checkpoint):
        return given
    raise InvalidInputError(
        f"A checkpoint is what checkpoint() returned, not {type(given).__name__}; read a file with "
        "Checkpoint.from_json."
    )


def check_against(checkpoint: Checkpoint, ledger_id: str, count: int, found: str | None) -> None:
    """Compare a checkpoint with the log: `count` entries now, `found` the hash at its place.

    Raises:
        StorageError: if the log does not begin with what the checkpoint saw.
    """
    if checkpoint.ledger_id != ledger_id:
        raise StorageError(
            f"The checkpoint is of ledger {checkpoint.ledger_id}, this is ledger {ledger_id}: "
            "another one, or one that was begun anew in its place."
        )
    if count < checkpoint.count:
        raise StorageError(
            f"The ledger has {count} entries, the checkpoint saw {checkpoint.count}: the last "
            f"{checkpoint.count - count} were cut off, or an old backup was put in place. Retire "
            "the datasets whose debits may be missing."
        )
    if found != checkpoint.hash:
        raise StorageError(
            f"The ledger is not the one the checkpoint saw: something among its first "
            f"{checkpoint.count} entries was rewritten. Restore a backup that fits the checkpoint."
        )
