"""Backups: the whole log as lines of JSON, the same for every database.

The first line names the ledger, then comes one line per entry, and the last is a checkpoint, so a
truncated backup is detected.

A backup cannot contain the debits that followed it, and whatever is granted after a restore could
spend their part of the budget a second time. So restored datasets are retired, except those of
which the owner states what was lost. A *last* backup retires every dataset before it is written, so
nothing follows it, and restoring it opens them again: that is how a ledger is moved.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quiltwork import files
from quiltwork.budget.ledger.checkpoints import Checkpoint, check_against
from quiltwork.budget.ledger.debits import append_lost_debit
from quiltwork.budget.ledger.entries import Draft, Entry, Head, follow, origin, scoped_key
from quiltwork.budget.ledger.ledger_records import NOTES, read_debit
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.requests import parse_name
from quiltwork.budget.ledger.snapshots import StateCache, append_change
from quiltwork.budget.ledger.state import fold, initial_state
from quiltwork.budget.ledger.verification import check_transitions
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened

SCHEMA, VERSION = "ledger-backup", 1

_DOUBT = "restored from a backup that may lack debits"
_CLOSED = "closed by the last backup of its ledger, to go on elsewhere"


@dataclass(frozen=True)
class Backup:
    """The verified entries of a backup; `last` if nothing can have followed them."""

    ledger_id: str
    entries: tuple[Entry, ...]
    last: bool

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, in order of creation."""
        return tuple(entry.dataset for entry in self.entries if entry.kind == "create")

    def check_empty(self, log: Log) -> None:
        """Refuse to write over a ledger.

        Raises:
            InvalidInputError: if there is one with entries, or of another identity.
        """
        if log.head.count or log.ledger_id != self.ledger_id:
            raise InvalidInputError(
                "There is a ledger at that URL already; name a new file or database, so that "
                "nothing is lost."
            )

    def insert(self, log: Log, states: StateCache, lost: Mapping[str, Iterable[Any]]) -> None:
        """Write the entries into an empty ledger of the same identity.

        Debits what is `lost` of a dataset, and retires the datasets that `lost` does not name,
        except those that a last backup has closed.

        Raises:
            BudgetExceeded: if the lost releases do not fit.
            InvalidInputError: if the ledger is not empty.
        """
        self.check_empty(log)
        for entry in self.entries:
            body = entry.content
            draft = Draft(entry.id, entry.dataset, entry.kind, entry.body)
            key = body.get("key")
            scoped = None if key is None else scoped_key(key, body.get("analyst"))
            log.append(draft, key=scoped, debit=body.get("debit"))
        for name in self.datasets:
            state, identity = states.latest(log, name), secrets.token_hex(16)
            if self.last and state.retired == _CLOSED:
                state = append_change(log, states, state, "reopen", {}, identity)
            elif state.retired == _CLOSED or (state.retired is None and name not in lost):
                append_change(log, states, state, "retire", {"reason": _DOUBT}, identity)
                continue
            for release in lost.get(name, ()) if state.retired is None else ():
                state = append_lost_debit(log, states, state, release)


def close_all(log: Log, states: StateCache) -> None:
    """Retire every dataset for the last backup of a ledger.

    Raises:
        InvalidInputError: if that was done before and a dataset was created since: those closed
            then may be in use elsewhere.
    """
    datasets = [states.latest(log, name) for name in log.datasets()]
    still_open = [state for state in datasets if state.retired is None]
    if still_open and any(state.retired == _CLOSED for state in datasets):
        raise InvalidInputError(
            f"This ledger had its last backup, and {still_open[0].name!r} was created since: the "
            "other datasets may be in use elsewhere. Retire it and create it there, or take "
            "ordinary backups here."
        )
    for state in still_open:
        append_change(log, states, state, "retire", {"reason": _CLOSED}, secrets.token_hex(16))


def parse_lost(value: Any) -> dict[str, tuple[Any, ...]]:
    """Parse what was lost: by dataset, a list of spendings or releases.

    Raises:
        InvalidInputError: for anything else.
    """
    lost = {} if value is None else value
    if isinstance(lost, Mapping) and all(
        isinstance(releases, Iterable) and not isinstance(releases, str | bytes | Mapping)
        for releases in lost.values()
    ):
        return {parse_name(name, "dataset"): tuple(releases) for name, releases in lost.items()}
    raise InvalidInputError(
        "lost names datasets, each with a list of what may have been released after the backup; "
        "write lost={'meters': [Spending.dp(0.1, 1, 1440)]}, or an empty list for nothing."
    )


def write_backup(log: Log, path: Path, *, last: bool = False) -> Checkpoint:
    """Write all entries to `path`, readable by its owner only; atomic."""
    checkpoint = Checkpoint(log.ledger_id, log.head.count, log.head.hash)
    header = {"ledger": log.ledger_id, **({"last": True} if last else {})}
    with files.replacing(path, files.OWNER_ONLY) as file:
        file.write((files.dump(SCHEMA, VERSION, header) + "\n").encode())
        for entry in log.all_entries():
            file.write((json.dumps(asdict(entry), sort_keys=True) + "\n").encode())
        file.write((checkpoint.to_json() + "\n").encode())
    return checkpoint


def read_backup(
    path: Path, checkpoint: Checkpoint | None, lost: Mapping[str, Sequence[Any]]
) -> Backup:
    """Read a backup and verify its chain, its end, and what is stated to be lost.

    Raises:
        InvalidInputError: if it is no backup, or lacks a dataset of which something was lost.
        StorageError: if it is truncated or changed, not of the checkpoint's ledger, or lacks
            entries while a dataset that is to stay open is stated to have lost none.
    """
    lines = files.read_text(path).splitlines()
    header = files.load(lines[0] if lines else "", SCHEMA, (VERSION,))
    try:
        ledger_id = _text(header["ledger"])
        end = Checkpoint.from_json(lines[-1])
        start = Head(0, origin(ledger_id))
        chained = follow(start, _entries(lines[1:-1]))
        entries = tuple(entry for entry, _ in check_transitions(chained))
        _check_bodies(entries)
    except (ValueError, TypeError, KeyError) as error:  # InvalidInputError is a ValueError
        raise StorageError(
            f"The backup {str(path)!r} is damaged: it was cut or edited ({_reason(error)}). Take "
            "another one."
        ) from None
    hashes = [start.hash, *(entry.hash for entry in entries)]
    check_against(end, ledger_id, len(entries), hashes[-1] if len(hashes) > end.count else None)
    backup = Backup(ledger_id, entries, header.get("last") is True)
    absent = [name for name in lost if name not in backup.datasets]
    if absent:
        raise InvalidInputError(
            f"Something of dataset {absent[0]!r} is said to be lost, but the backup has no such "
            "dataset."
        )
    if checkpoint is not None:
        _check_complete(backup, hashes, checkpoint, lost)
    return backup


def _check_complete(
    backup: Backup,
    hashes: Sequence[str],
    checkpoint: Checkpoint,
    lost: Mapping[str, Sequence[Any]],
) -> None:
    """Compare a backup with a checkpoint, whose entries it may lack if their debits are named.

    Raises:
        StorageError: if it is of another ledger, or lacks entries that nobody accounts for.
    """
    lacking = checkpoint.count - len(backup.entries)
    hash_there = checkpoint.hash if lacking > 0 else hashes[checkpoint.count]
    check_against(checkpoint, backup.ledger_id, checkpoint.count, hash_there)
    without_loss = [name for name, releases in lost.items() if not releases]
    if lacking > 0 and without_loss:
        raise StorageError(
            f"The backup lacks the last {lacking} entries that the checkpoint saw, and nothing "
            f"is said to be lost of {without_loss[0]!r}. Say what they may have spent of it, or "
            "leave it out of lost: then it comes back retired."
        )


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
    is_missing_field = isinstance(error, KeyError)
    return f"it lacks {error}" if is_missing_field else shortened(str(error)).strip("'\"")


def _check_bodies(entries: tuple[Entry, ...]) -> None:
    """Read every entry as the ledger will, before anything is written.

    Raises:
        StorageError: if a body lacks a field, or has one that is never written.
    """
    by_dataset: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind not in NOTES:  # check_transitions read those, and they may have no dataset
            by_dataset.setdefault(entry.dataset, []).append(entry)
    for first, *later in by_dataset.values():
        fold(initial_state(first), (entry for entry in later if entry.kind != "answer"))
        for entry in later:
            if entry.kind == "debit":
                read_debit(entry, released=False)
