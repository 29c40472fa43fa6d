"""Backups move ledgers, and never let lost debits be spent again."""

from __future__ import annotations

import pytest

from quiltwork.accounting import Spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError
from quiltwork.ledger import Ledger


@pytest.fixture
def filled(ledger, independent):
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 3), key="k").complete("answer")
    ledger.create("closed", independent, 3, 1)
    ledger.retire("closed")
    return ledger


@pytest.fixture(params=["sqlite", "postgres"])
def target(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'restored.db'}"
    from evidence.faults.server import new_database

    server = request.getfixturevalue("postgres")
    return new_database(server, f"r{abs(hash(str(tmp_path)))}")


def test_a_complete_backup_restores_everything_into_any_database(filled, target, tmp_path):
    checkpoint = filled.backup(tmp_path / "backup.jsonl")
    restored = Ledger.restore(tmp_path / "backup.jsonl", target, checkpoint)
    assert restored.log() == filled.log()
    assert restored.verify(checkpoint) == checkpoint
    assert restored.answer("d", "k") == "answer"
    restored.accountant("d").spend(dp_epsilon=0.9)
    with pytest.raises(BudgetExceeded):
        restored.accountant("d").spend(dp_epsilon=0.01)


def test_a_backup_that_may_lack_debits_comes_back_retired(filled, tmp_path):
    filled.backup(tmp_path / "old.jsonl")
    filled.accountant("d").spend(dp_epsilon=0.5)
    for name, checkpoint in (("short", filled.checkpoint()), ("unknown", None)):
        restored = Ledger.restore(
            tmp_path / "old.jsonl", f"sqlite:///{tmp_path / name}.db", checkpoint
        )
        with pytest.raises(BudgetExceeded, match="may lack debits"):
            restored.accountant("d").spend(dp_epsilon=0.1)
        assert restored.answer("d", "k") == "answer"
        assert all(status.retired for status in restored.datasets())
        restored.verify()


def test_a_cut_or_edited_backup_is_refused(filled, tmp_path):
    path = tmp_path / "backup.jsonl"
    filled.backup(path)
    lines = path.read_text().splitlines(keepends=True)
    for number, damage in enumerate(
        [
            lines[:-1],
            lines[:2] + lines[3:],
            [line.replace("1/10", "1/20") for line in lines],
            [lines[0], lines[-1]],
            lines[:-2] + lines[-1:],
            [lines[0].replace("ledger-backup", "other"), *lines[1:]],
            [],
            ["{}"],
        ]
    ):
        path.write_text("".join(damage))
        with pytest.raises((StorageError, InvalidInputError)):
            Ledger.restore(path, f"sqlite:///{tmp_path / f'r{number}.db'}")


def test_a_backup_never_replaces_a_ledger(filled, url, tmp_path):
    filled.backup(tmp_path / "backup.jsonl")
    with pytest.raises(InvalidInputError, match="a ledger at that URL already"):
        Ledger.restore(tmp_path / "backup.jsonl", url, filled.checkpoint())


def test_a_backup_is_not_taken_for_another_ledgers_checkpoint(filled, tmp_path, independent):
    filled.backup(tmp_path / "backup.jsonl")
    other = Ledger.open(f"sqlite:///{tmp_path / 'other.db'}")
    other.create("d", independent, 3, 1)
    with pytest.raises(StorageError, match="another one"):
        Ledger.restore(
            tmp_path / "backup.jsonl", f"sqlite:///{tmp_path / 'r.db'}", other.checkpoint()
        )


def test_a_backup_that_cannot_be_written_gets_a_sentence(filled, tmp_path):
    with pytest.raises(StorageError, match="could not be written"):
        filled.backup(tmp_path / "no" / "such" / "folder.jsonl")
    with pytest.raises(StorageError, match="cannot be read"):
        Ledger.restore(tmp_path / "none.jsonl", f"sqlite:///{tmp_path / 'r.db'}")
