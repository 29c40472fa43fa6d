"""A ledger that is put back from a backup grants nothing that could be granted twice.

Debits follow the backup, and the ledger is lost. Whatever checkpoint is at hand, the backup's own
or a newer one, a dataset comes back closed unless its owner says what may have been spent since;
what is said is debited first.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from evidence.faults.outcome import Outcome
from evidence.faults.raw import raw
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


def by_an_old_copy(url: str, repeats: int = 9) -> Outcome:
    """Put an old copy of a ledger in its place, as a whole; who has a checkpoint must notice.

    Who has none cannot: the copy is a ledger like any other, which the last lines make sure of.
    """
    outcome = Outcome(f"an old copy put back ({url.partition(':')[0]})")
    ledger = Ledger.open(url)
    ledger.create("a", INDEPENDENT, LENGTH, 2)
    for number in range(1, repeats + 1):
        before = ledger.checkpoint()
        for _ in range(1 + number % 2):
            ledger.debit("a", Spending.dp(Fraction(1, 100), 1, LENGTH), key=secrets.token_hex(8))
        newest = ledger.checkpoint()
        with _as_it_was(url, before) as old:
            for name, ask in (
                ("verify", lambda o=old, n=newest: o.verify(n)),
                ("verify_since", lambda o=old, n=newest: o.verify_since(n)),
                ("a running process", lambda: ledger.status("a")),
                ("a debit of a running process", lambda: ledger.debit("a", TENTH)),
            ):
                outcome.add(_unnoticed(name, ask))
            outcome.add(None if old.verify() == before else "the copy is not the old ledger")
        outcome.add(None if ledger.verify(newest) == newest else "the ledger did not come back")
    return outcome


def _unnoticed(name: str, ask: Callable[[], object]) -> str | None:
    try:
        ask()
    except StorageError:
        return None
    return f"{name} did not notice an old copy"


@contextmanager
def _as_it_was(url: str, before: Checkpoint) -> Iterator[Ledger]:
    """A newcomer's ledger on the database as it was then, and afterwards as it is."""
    with raw(url) as connection:
        later = f"FROM quiltwork_entries WHERE seq > {before.count}"
        connection.execute(f"CREATE TABLE later AS SELECT * {later}")
        connection.execute(f"DELETE {later}")
    try:
        with Ledger.open(url) as old:
            yield old
    finally:
        with raw(url) as connection:
            connection.execute("INSERT INTO quiltwork_entries SELECT * FROM later")
            connection.execute("DROP TABLE later")


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
