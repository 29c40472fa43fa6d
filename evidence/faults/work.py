"""The work that faults interrupt, and what must be true afterwards.

Two datasets, keyed releases with their answers, debits without, an extension and a reopening.
After each step that was acknowledged a `Mark` says so; whatever happens later, it must be found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from quiltwork import MarkovChain
from quiltwork.budget import Ledger, Spending
from quiltwork.errors import BudgetExceeded, QuiltworkError, StorageError

FILE = "budget.db"
INDEPENDENT = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
LENGTH = 4


def scratch() -> TemporaryDirectory[str]:
    """A folder for one trial, in memory where that is possible."""
    return TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108


@dataclass(frozen=True)
class Mark:
    """Something that was acknowledged: a dataset, a debit (by its key) or a shown answer."""

    kind: str
    name: str
    answer: str = ""


def run_work(
    opened: Callable[[Path], Ledger], folder: Path, mark: Callable[[Mark], None]
) -> list[str]:
    """Do the work in two sittings and return the hashes of the log."""
    path = folder / FILE
    ledger = opened(path)
    for dataset in ("a", "b"):
        ledger.create(dataset, INDEPENDENT, LENGTH, 1)
        mark(Mark("dataset", dataset))
    keyed_releases(ledger, "a", range(3), mark)
    ledger.close()
    keyed_releases(ledger, "b", range(2), mark)
    ledger.extend("a", LENGTH + 1)
    keyed_releases(ledger, "a", range(3, 5), mark)
    ledger.close()
    return [entry.hash for entry in Ledger.open(f"sqlite:///{path}").log()]


def keyed_releases(
    ledger: Ledger, dataset: str, numbers: range, mark: Callable[[Mark], None]
) -> None:
    """Debit, answer and show, one key after the other."""
    for number in numbers:
        key = f"{dataset}{number}"
        receipt = ledger.debit(dataset, Spending.dp(0.1, 1, LENGTH), key=key)
        mark(Mark("debit", key))
        answer = receipt.stored or f"answer to {key}"
        if receipt.stored is None:
            receipt.complete(answer)
        mark(Mark("shown", key, answer))


def check_after_crash(folder: Path, marks: list[Mark], hashes: list[str] | None) -> str | None:
    """Say what is wrong with the ledger in `folder`, or None.

    Everything marked must be there, nothing that was never written may be (the log is a beginning
    of `hashes`, if given), and the ledger must go on working.
    """
    try:
        with Ledger.open(f"sqlite:///{folder / FILE}") as ledger:
            ledger.verify()
            return _missing(ledger, marks, hashes) or _goes_on(ledger)
    except StorageError as error:
        if "There is no ledger" in str(error):
            return "the ledger is gone" if marks else None
        return str(error)
    except QuiltworkError as error:
        return str(error)


def _missing(ledger: Ledger, marks: list[Mark], hashes: list[str] | None) -> str | None:
    log = ledger.log()
    found = [entry.hash for entry in log]
    if hashes is not None and found != hashes[: len(found)]:
        return "the log is not a beginning of what was written"
    names = {entry.dataset for entry in log}
    keys = {entry.content["key"] for entry in log if entry.kind == "debit"}
    for mark in marks:
        if mark.kind == "dataset" and mark.name not in names:
            return f"dataset {mark.name} is gone"
        if mark.kind == "debit" and mark.name not in keys:
            return f"the debit under {mark.name} is gone"
        if mark.kind == "shown" and ledger.answer(mark.name[0], mark.name) != mark.answer:
            return f"the answer shown under {mark.name} is not the stored one"
    return None


def _goes_on(ledger: Ledger) -> str | None:
    """Spend all that is left of a dataset, and not more."""
    if not any(entry.dataset == "a" for entry in ledger.log()):
        return None
    left = 1 - Fraction(len(ledger.history("a")), 10)
    ledger.debit("a", Spending.dp(left, 1, LENGTH))
    try:
        ledger.debit("a", Spending.dp(Fraction(1, 10**9), 1, LENGTH))
    except BudgetExceeded:
        ledger.verify()
        return None
    return "more was granted than the budget allows"
