"""Backups: the whole log as lines of JSON, the same for every database.

The first line names the ledger, then comes one line per entry, and the last is a checkpoint, so a
backup that was cut is recognised.

A backup tells nothing about debits that followed it, and spending after it was restored would spend
those twice. So what is restored comes back retired, but for datasets of which the owner says what
was lost. A ledger that is still there is moved instead: it is closed first, and so nothing follows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.budget.ledger.amounts import identifier
from quiltwork.budget.ledger.checkpoints import Checkpoint, check_against
from quiltwork.budget.ledger.datasets import DatasetState, replayed
from quiltwork.budget.ledger.debits import debited
from quiltwork.budget.ledger.entries import (
    Draft,
    Entry,
    Head,
    canonical,
    follow,
    origin,
    scoped_key,
)
from quiltwork.budget.ledger.log_tables import Tables, now
from quiltwork.budget.ledger.records import NOTES, read_history
from quiltwork.budget.ledger.totals import Totals
from quiltwork.budget.ledger.verification import check_states
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened

SCHEMA, VERSION = "ledger-backup", 1

_DOUBT = "restored from a backup that may lack debits"
MOVING = "moving to "
"""How the reason of a dataset begins that is retired because its ledger is moved."""


@dataclass(frozen=True)
class Backup:
    """The entries of a ledger up to some moment, checked."""

    ledger_id: str
    entries: tuple[Entry, ...]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, in order."""
        return tuple(entry.dataset for entry in self.entries if entry.kind == "create")

    def check_empty(self, tables: Tables) -> None:
        """Refuse to write over a ledger.

        Raises:
            InvalidInputError: if there is one with entries, or of another identity.
        """
        if tables.head.count or tables.ledger_id != self.ledger_id:
            raise InvalidInputError(
                "There is a ledger at that URL already; name a new file or database, so that "
                "nothing is lost."
            )

    def arrived(self, tables: Tables) -> bool:
        """Whether a ledger begins with these entries: then they were written there before."""
        if not self.entries or tables.ledger_id != self.ledger_id:
            return False
        return tables.hash_at(len(self.entries)) == self.entries[-1].hash

    def insert(self, tables: Tables, totals: Totals, lost: Mapping[str, Iterable[Any]]) -> None:
        """Write the entries into an empty ledger of the same identity.

        What is `lost` of a dataset is debited; datasets of which nobody says so are retired.

        Raises:
            BudgetExceeded: if what was lost does not fit.
            InvalidInputError: if the ledger is not empty.
        """
        self.check_empty(tables)
        for entry in self.entries:
            body = entry.content
            draft = Draft(entry.id, entry.dataset, entry.kind, entry.body)
            key = body.get("key")
            mark = None if key is None else scoped_key(key, body.get("analyst"))
            tables.append(draft, key=mark, debit=body.get("debit"))
        for name in self.datasets:
            state = totals.begun(tables, name)
            closed = state.retired is not None and not state.retired.startswith(MOVING)
            if not closed and (name not in lost or state.retired is not None):
                retire(tables, totals, state, _DOUBT)
            for spending in lost.get(name, ()) if state.retired is None else ():
                now_found, identity = totals.found(tables, name), secrets.token_hex(16)
                debited(tables, totals, now_found, identity, spending, None, None)


def retire(tables: Tables, totals: Totals, state: DatasetState, reason: str) -> None:
    """Close a dataset, or say anew why it is closed."""
    body = canonical({"reason": reason, "at": now()})
    entry = tables.append(Draft(secrets.token_hex(16), state.name, "retire", body))
    totals.changed(tables, state, entry, retired=reason)


def read_lost(given: Any) -> dict[str, tuple[Any, ...]]:
    """Read what somebody says was lost: by dataset, a list of spendings or releases.

    Raises:
        InvalidInputError: if it is something else.
    """
    found = {} if given is None else given
    if isinstance(found, Mapping) and all(
        isinstance(one, Iterable) and not isinstance(one, str | bytes | Mapping)
        for one in found.values()
    ):
        return {identifier(name, "dataset"): tuple(one) for name, one in found.items()}
    raise InvalidInputError(
        "lost names datasets, each with a list of what may have been released after the backup; "
        "write lost={'meters': [Spending.dp(0.1, 1, 1440)]}, or an empty list for nothing."
    )


def write_backup(tables: Tables, path: Path) -> Checkpoint:
    """Write all entries to `path`, for its owner only; it appears complete or not at all."""
    checkpoint = Checkpoint(tables.ledger_id, tables.head.count, tables.head.hash)
    with files.replacing(path, files.OWNER_ONLY) as file:
        file.write((files.dump(SCHEMA, VERSION, {"ledger": tables.ledger_id}) + "\n").encode())
        for entry in tables.all_entries():
            file.write((json.dumps(asdict(entry), sort_keys=True) + "\n").encode())
        file.write((checkpoint.to_json() + "\n").encode())
    return checkpoint


def read_backup(
    path: Path, checkpoint: Checkpoint | None, lost: Mapping[str, Sequence[Any]]
) -> Backup:
    """Read a backup and check its chain, its end, and what is said to be lost.

    Raises:
        InvalidInputError: if it is no backup, or lacks a dataset of which something was lost.
        StorageError: if it is cut or changed, not of the checkpoint's ledger, or lacks entries
            while nothing is said to be lost of a dataset that is to stay open.
    """
    lines = files.text_of(path).splitlines()
    first = files.load(lines[0] if lines else "", SCHEMA, (VERSION,))
    try:
        ledger_id = _text(first["ledger"])
        end = Checkpoint.from_json(lines[-1])
        start = Head(0, origin(ledger_id))
        entries = tuple(entry for entry, _ in check_states(follow(start, _entries(lines[1:-1]))))
        _check_bodies(entries)
    except (ValueError, TypeError, KeyError) as error:  # InvalidInputError is one
        raise StorageError(
            f"The backup {str(path)!r} is damaged: it was cut or edited ({_reason(error)}). Take "
            "another one."
        ) from None
    hashes = [start.hash, *(entry.hash for entry in entries)]
    check_against(end, ledger_id, len(entries), hashes[-1] if len(hashes) > end.count else None)
    backup = Backup(ledger_id, entries)
    unknown = [name for name in lost if name not in backup.datasets]
    if unknown:
        raise InvalidInputError(
            f"Something of dataset {unknown[0]!r} is said to be lost, but the backup has no such "
            "dataset."
        )
    if checkpoint is not None:
        lacking = checkpoint.count - len(entries)
        known = checkpoint.hash if lacking > 0 else hashes[checkpoint.count]
        check_against(checkpoint, ledger_id, checkpoint.count, known)
        unspent = [name for name, spendings in lost.items() if not spendings]
        if lacking > 0 and unspent:
            raise StorageError(
                f"The backup lacks the last {lacking} entries that the checkpoint saw, and nothing "
                f"is said to be lost of {unspent[0]!r}. Say what they may have spent of it, or "
                "leave it out of lost: then it comes back retired."
            )
    return backup


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
        if entry.kind not in NOTES:  # which may be of no dataset, and were read before
            by_dataset.setdefault(entry.dataset, []).append(entry)
    for name, own in by_dataset.items():
        replayed(name, (entry for entry in own if entry.kind != "answer"))
        read_history(own, set())
