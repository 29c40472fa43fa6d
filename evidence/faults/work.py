"""The work that faults interrupt, and what must be true afterwards.

Two datasets, keyed releases with their answers, debits without, an extension and a reopening.
After each step that was acknowledged a `Mark` says so; whatever happens later, it must be found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quiltwork import MarkovChain
from quiltwork.accounting import Spending
from quiltwork.errors import BudgetExceeded, QuiltworkError, StorageError
from quiltwork.ledger import Ledger

FILE = "budget.db"
INDEPENDENT = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
LENGTH = 4


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
    path = folder / FILE
    try:
        return _missing(path, marks, hashes) or _goes_on(path)
    except StorageError as error:
        if "There is no ledger" in str(error):
            return "the ledger is gone" if marks else None
        return str(error)
    except QuiltworkError as error:
        return str(error)


def _missing(path: Path, marks: list[Mark], hashes: list[str] | None) -> str | None:
    ledger = Ledger.open(f"sqlite:///{path}")
    ledger.verify()
    found = [entry.hash for entry in ledger.log()]
    if hashes is not None and found != hashes[: len(found)]:
        return "the log is not a beginning of what was written"
    names = {status.dataset for status in ledger.datasets()}
    debits = {debit.key: debit for name in names for debit in ledger.history(name)}
    for mark in marks:
        if mark.kind == "dataset" and mark.name not in names:
            return f"dataset {mark.name} is gone"
        if mark.kind == "debit" and mark.name not in debits:
            return f"the debit under {mark.name} is gone"
        if mark.kind == "shown" and ledger.answer(mark.name[0], mark.name) != mark.answer:
            return f"the answer shown under {mark.name} is not the stored one"
    ledger.close()
    return None


def _goes_on(path: Path) -> str | None:
    """Spend what is left of a dataset, and not more."""
    ledger = Ledger.open(f"sqlite:///{path}")
    if not any(status.dataset == "a" for status in ledger.datasets()):
        return None
    accountant = ledger.accountant("a")
    before = len(ledger.history("a"))
    for _ in range(10 - before):
        accountant.spend(dp_epsilon=0.1)
    try:
        accountant.spend(dp_epsilon=0.1)
    except BudgetExceeded:
        ledger.verify()
        ledger.close()
        return None
    return "more was granted than the budget allows"
