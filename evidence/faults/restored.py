"""A ledger that is put back from a backup grants nothing that could be granted twice.

Debits follow the backup, and the ledger is lost. Whatever checkpoint is at hand, the backup's own
or a newer one, a dataset comes back closed unless its owner says what may have been spent since;
what is said is debited first.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from pathlib import Path

from evidence.faults.outcome import Outcome
from evidence.faults.work import INDEPENDENT, LENGTH, scratch
from quiltwork.budget import Checkpoint, Ledger, Spending
from quiltwork.errors import BudgetExceeded, StorageError

TENTH = Spending.dp(Fraction(1, 10), 1, LENGTH)


def from_backups(url: str, repeats: int = 9) -> Outcome:
    """Lose 1, 2 … debits after the backup of a ledger at `url`, and restore it in every way."""
    outcome = Outcome(f"restored from backups ({url.partition(':')[0]})")
    ledger = Ledger.open(url)
    for number in range(1, repeats + 1):
        ledger.create(f"d{number}", INDEPENDENT, LENGTH, 1)
        with scratch() as place:
            path = Path(place) / "backup.jsonl"
            own = ledger.backup(path)
            for _ in range(number):
                ledger.debit(f"d{number}", TENTH)
            newest = ledger.checkpoint()
            for name, checkpoint in (("no", None), ("its own", own), ("the newest", newest)):
                lacking = checkpoint == newest
                found = _trial(path, Path(place), checkpoint, f"d{number}", number, lacking)
                outcome.add(found and f"{name} checkpoint: {found}")
    return outcome


def _trial(
    path: Path,
    folder: Path,
    checkpoint: Checkpoint | None,
    dataset: str,
    number: int,
    lacking: bool,
) -> str | None:
    closed = Ledger.restore(path, _new(folder), checkpoint)
    if _granted(closed, dataset):
        return "a dataset was granted from though nobody said what was lost"
    told = Ledger.restore(path, _new(folder), checkpoint, lost={dataset: [TENTH] * number})
    if _granted(told, dataset) != 10 - number:
        return "what was said to be lost was not debited"
    try:
        Ledger.restore(path, _new(folder), checkpoint, lost={dataset: []})
    except StorageError:
        return None if lacking else "nothing was lost, and that was refused"
    return "the checkpoint saw more, and nothing was said to be lost" if lacking else None


def _new(folder: Path) -> str:
    return f"sqlite:///{folder / secrets.token_hex(8)}.db"


def _granted(ledger: Ledger, dataset: str) -> int:
    """How many more tenths a dataset grants."""
    for count in range(11):
        try:
            ledger.debit(dataset, TENTH)
        except BudgetExceeded:
            ledger.verify()
            ledger.close()
            return count
    return 11
