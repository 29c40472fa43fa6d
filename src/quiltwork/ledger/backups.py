"""Backups: the whole log as lines of JSON, the same for every database.

The first line names the ledger, then comes one line per entry, and the last is a checkpoint, so a
backup that was cut is recognised. A backup moves a ledger from one kind of database to the other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened
from quiltwork.ledger.checkpoints import Checkpoint, check_against
from quiltwork.ledger.datasets import replayed
from quiltwork.ledger.entries import KINDS, Draft, Entry, Head, canonical, follow, origin
from quiltwork.ledger.records import read_history
from quiltwork.ledger.tables import Tables, now
from quiltwork.ledger.verification import check_states

SCHEMA, VERSION = "ledger-backup", 1

_DOUBT = "restored from a backup that may lack debits"


@dataclass(frozen=True)
class Backup:
    """A backup that was read and checked; `complete` if it is known to lack nothing."""

    ledger_id: str
    entries: tuple[Entry, ...]
    complete: bool

    def insert(self, tables: Tables) -> None:
        """Write the entries into an empty ledger of the same identity.

        Raises:
            InvalidInputError: if the ledger is not empty.
        """
        if tables.head.count or tables.ledger_id != self.ledger_id:
            raise InvalidInputError(
                "There is a ledger at that URL already; restore to a new file or database, so "
                "that nothing is lost."
            )
        for entry in self.entries:
            body = entry.content
            draft = Draft(entry.id, entry.dataset, entry.kind, entry.body)
            tables.append(draft, key=body.get("key"), debit=body.get("debit"))
        if not self.complete:
            self._retire_all(tables)

    def _retire_all(self, tables: Tables) -> None:
        names = {kind: [e.dataset for e in self.entries if e.kind == kind] for kind in KINDS}
        for name in names["create"]:
            if name not in names["retire"]:
                body = canonical({"reason": _DOUBT, "at": now()})
                tables.append(Draft(secrets.token_hex(16), name, "retire", body))


def write_backup(tables: Tables, path: Path) -> Checkpoint:
    """Write all entries to `path`, for its owner only; it appears complete or not at all."""
    checkpoint = Checkpoint(tables.ledger_id, tables.head.count, tables.head.hash)
    with files.replacing(path, files.OWNER_ONLY) as file:
        file.write((files.dump(SCHEMA, VERSION, {"ledger": tables.ledger_id}) + "\n").encode())
        for entry in tables.all_entries():
            file.write((json.dumps(asdict(entry), sort_keys=True) + "\n").encode())
        file.write((checkpoint.to_json() + "\n").encode())
    return checkpoint


def read_backup(path: Path, checkpoint: Checkpoint | None) -> Backup:
    """Read a backup and check its chain, its end, and whether it reaches the checkpoint.

    Raises:
        InvalidInputError: if it is no backup.
        StorageError: if it is cut or changed, or not of the checkpoint's ledger.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"The backup {str(path)!r} cannot be read: {reason}.") from None
    first = files.load(lines[0] if lines else "", SCHEMA, (VERSION,))
    try:
        ledger_id = _text(first["ledger"])
        end = Checkpoint.from_json(lines[-1])
        start = Head(0, origin(ledger_id))
        entries = tuple(entry for entry, _ in check_states(follow(start, _entries(lines[1:-1]))))
        _check_bodies(entries)
    except (InvalidInputError, TypeError, KeyError) as error:
        raise StorageError(
            f"The backup {str(path)!r} is damaged: it was cut or edited ({_reason(error)}). Take "
            "another one."
        ) from None
    hashes = [start.hash, *(entry.hash for entry in entries)]
    check_against(end, ledger_id, len(entries), hashes[-1] if len(hashes) > end.count else None)
    if checkpoint is None:
        return Backup(ledger_id, entries, complete=False)
    reached = min(checkpoint.count, len(entries))
    is_short = reached < checkpoint.count
    found = checkpoint.hash if is_short else hashes[reached]
    check_against(checkpoint, ledger_id, checkpoint.count, found)
    return Backup(ledger_id, entries, complete=not is_short)


def _entries(lines: list[str]) -> Iterator[Entry]:
    for line in lines:
        entry = Entry(**files.parse(line))
        for field in (entry.id, entry.dataset, entry.kind, entry.body, entry.hash):
            _text(field)
        yield entry


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(f"{shortened(value)} stands in the place of text")
    return value


def _reason(error: Exception) -> str:
    lacking = isinstance(error, KeyError)
    return f"it lacks {error}" if lacking else shortened(str(error)).strip("'\"")


def _check_bodies(entries: tuple[Entry, ...]) -> None:
    """Read every entry as the ledger will, before anything is written.

    Raises:
        StorageError: if a body lacks something, or holds what is never written.
    """
    by_dataset: dict[str, list[Entry]] = {}
    for entry in entries:
        by_dataset.setdefault(entry.dataset, []).append(entry)
    for name, own in by_dataset.items():
        replayed(name, (entry for entry in own if entry.kind != "answer"))
        read_history(own, set())
