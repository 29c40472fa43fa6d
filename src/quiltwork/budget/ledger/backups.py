"""Backups: the whole log as lines of JSON, the same for every database.

The first line names the ledger, then comes one line per entry, and the last is a checkpoint, so a
backup that was cut is recognised.

A backup tells nothing about debits that followed it, and spending after it was restored would spend
those twice. So what is restored comes back retired, but for datasets of which the owner says what
was lost. A *last* backup retires every dataset before it is written, so nothing follows it: what it
retired is open again where it is restored, which is how a ledger goes to another place.
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
from quiltwork.budget.ledger.debits import debit_lost
from quiltwork.budget.ledger.entries import Draft, Entry, Head, follow, origin, scoped_key
from quiltwork.budget.ledger.log import Log
from quiltwork.budget.ledger.records import NOTES, read_history
from quiltwork.budget.ledger.snapshots import States, append_step
from quiltwork.budget.ledger.state import begun, folded
from quiltwork.budget.ledger.verification import check_states
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import shortened

SCHEMA, VERSION = "ledger-backup", 1

_DOUBT = "restored from a backup that may lack debits"
_CLOSED = "closed by the last backup of its ledger, to go on elsewhere"


@dataclass(frozen=True)
class Backup:
    """The entries of a ledger up to some moment, checked; of the `last`, nothing follows them."""

    ledger_id: str
    entries: tuple[Entry, ...]
    last: bool

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of the datasets, in order."""
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

    def insert(self, log: Log, states: States, lost: Mapping[str, Iterable[Any]]) -> None:
        """Write the entries into an empty ledger of the same identity.

        What is `lost` of a dataset is debited; datasets of which nobody says so are retired, but
        for those that a last backup has closed.

        Raises:
            BudgetExceeded: if what was lost does not fit.
            InvalidInputError: if the ledger is not empty.
        """
        self.check_empty(log)
        for entry in self.entries:
            body = entry.content
            draft = Draft(entry.id, entry.dataset, entry.kind, entry.body)
            key = body.get("key")
            mark = None if key is None else scoped_key(key, body.get("analyst"))
            log.append(draft, key=mark, debit=body.get("debit"))
        for name in self.datasets:
            state, identity = states.found(log, name), secrets.token_hex(16)
            if self.last and state.retired == _CLOSED:
                state = append_step(log, states, state, "reopen", {}, identity)
            elif state.retired == _CLOSED or (state.retired is None and name not in lost):
                append_step(log, states, state, "retire", {"reason": _DOUBT}, identity)
                continue
            for spending in lost.get(name, ()) if state.retired is None else ():
                state = debit_lost(log, states, state, spending)


def close_all(log: Log, states: States) -> None:
    """Retire every dataset for the last backup of a ledger.

    Raises:
        InvalidInputError: if that was done before, and something was begun since: what was closed
            may have gone on elsewhere.
    """
    found = [states.found(log, name) for name in log.datasets()]
    still_open = [state for state in found if state.retired is None]
    if still_open and any(state.retired == _CLOSED for state in found):
        raise InvalidInputError(
            f"This ledger had its last backup, and {still_open[0].name!r} was begun since: other "
            "datasets may have gone on elsewhere. Retire it and begin it there, or take ordinary "
            "backups here."
        )
    for state in still_open:
        append_step(log, states, state, "retire", {"reason": _CLOSED}, secrets.token_hex(16))


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


def write_backup(log: Log, path: Path, *, last: bool = False) -> Checkpoint:
    """Write all entries to `path`, for its owner only; it appears complete or not at all."""
    checkpoint = Checkpoint(log.ledger_id, log.head.count, log.head.hash)
    first = {"ledger": log.ledger_id, **({"last": True} if last else {})}
    with files.replacing(path, files.OWNER_ONLY) as file:
        file.write((files.dump(SCHEMA, VERSION, first) + "\n").encode())
        for entry in log.all_entries():
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
    lines = files.read_text(path).splitlines()
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
    backup = Backup(ledger_id, entries, first.get("last") is True)
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
    for own in by_dataset.values():
        folded(begun(own[0]), (entry for entry in own[1:] if entry.kind != "answer"))
        read_history(own, set())
