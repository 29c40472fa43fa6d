"""Who pays for a holdout: one ledger, before it is looked at, and no other."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout.sealed_log import secret_path
from tests.holdout.small import TRAIN, create, ledger_at, off, resume, same


def test_answers_that_were_paid_for_outlive_a_ledger_that_fails(tmp_path, monkeypatch):
    paying = ledger_at(tmp_path / "budget.db")
    ledger = paying["ledger"]
    h = create(tmp_path / "study.jsonl", budget=5, **paying)
    real, debits = ledger.debit, []

    def failing(*arguments):
        debits.append(arguments)
        if len(debits) == 3:
            raise qw.StorageError("the disk is full")
        return real(*arguments)

    monkeypatch.setattr(ledger, "debit", failing)
    with pytest.raises(qw.StorageError, match="the disk is full"):
        h.ask_many([off, off, off])
    assert [entry.remaining for entry in h.transcript.entries] == [4, 3]
    h.close()
    again = resume(tmp_path / "study.jsonl", **paying)
    assert again.transcript == h.transcript
    assert again.ask(off).remaining == 2


def test_the_round_is_paid_before_the_holdout_is_looked_at(tmp_path):
    paying = ledger_at(tmp_path / "budget.db")
    h = create(None, **paying)
    seen = []

    def watching(data):
        if not np.isin(data[:, 0], TRAIN[:, 0]).any():
            seen.append(len(paying["ledger"].history("held")))
        return data[:, 0]

    h.ask(watching)
    assert set(seen) == {1}


def test_a_ledger_is_debited_round_by_round_and_before_the_answer(tmp_path):
    level = 9 / (4 * 0.0005 * 300)
    paying = ledger_at(tmp_path / "budget.db", 2 * level)
    ledger = paying["ledger"]
    h = create(None, budget=5, **paying)
    assert len(ledger.history("held")) == 0
    h.ask(lambda data: data[:, 0])
    h.ask(lambda data: data[:, 1])
    assert len(ledger.history("held")) == 1
    assert h.ask(off).overfit
    assert len(ledger.history("held")) == 1
    assert h.ask(off).overfit
    assert len(ledger.history("held")) == 2
    with pytest.raises(qw.BudgetExceeded):
        h.ask(lambda data: data[:, 0])
    assert h.asked == 4
    assert ledger.accountant("held").epsilon() == pytest.approx(2 * level)
    ledger.verify()


@pytest.fixture
def paid(tmp_path):
    """A holdout with one round debited, its ledger, and another one with the same dataset."""
    ledgers = [ledger_at(tmp_path / f"{name}.db")["ledger"] for name in ("mine", "other")]
    path = tmp_path / "study.jsonl"
    h = create(path, ledger=ledgers[0], dataset="held")
    h.ask(off)
    h.ask(same)
    h.close()
    return path, *ledgers


def test_only_the_ledger_that_paid_pays_on_whatever_its_place(paid, tmp_path):
    path, mine, other = paid
    identity = mine.checkpoint().ledger_id
    assert json.loads(path.read_text().split("\n")[0])["ledger"] == identity
    with pytest.raises(qw.StorageError, match="another ledger"):
        resume(path, ledger=other, dataset="held")
    mine.last_backup(tmp_path / "last.jsonl")
    moved = qw.Ledger.restore(tmp_path / "last.jsonl", f"sqlite:///{tmp_path}/moved.db")
    again = resume(path, ledger=moved, dataset="held")
    again.ask(off)
    again.ask(same)
    again.close()
    assert len(moved.history("held")) == 3
    assert len(other.history("held")) == 0
    with pytest.raises(qw.StorageError, match="older copy"):
        resume(path, ledger=mine, dataset="held")  # it lacks the third round's debit


@pytest.mark.parametrize("noted", [True, False])
def test_a_copy_of_the_ledger_that_went_on_by_itself_does_not_pay(paid, tmp_path, noted):
    """It has a debit for the same round, under the same key, and it is another one."""
    path, mine, _ = paid
    twin, copied = tmp_path / "twin.jsonl", tmp_path / "copy.db"
    put_back(twin, files_of(path))
    with (
        closing(sqlite3.connect(tmp_path / "mine.db")) as old,
        closing(sqlite3.connect(copied)) as new,
    ):
        old.backup(new)
    fork = qw.Ledger.open(f"sqlite:///{copied}")
    for place, ledger in ((path, mine), (twin, fork)):
        with closing(resume(place, ledger=ledger, dataset="held")) as h:
            h.ask(off)
            h.ask(same)
    keys = [[debit.key for debit in ledger.history("held")] for ledger in (mine, fork)]
    assert keys[0] == keys[1]
    if not noted:  # as older versions wrote it
        hidden = json.loads(secret_path(path).read_text())
        secret_path(path).write_text(json.dumps({k: v for k, v in hidden.items() if k != "paid"}))
        resume(path, ledger=fork, dataset="held").close()
        return
    with pytest.raises(qw.StorageError, match="lacks the debit"):
        resume(path, ledger=fork, dataset="held")
    assert resume(path, ledger=mine, dataset="held").ask(off).overfit


def test_a_ledger_that_cannot_pay_is_refused_before_anything_is_made(tmp_path):
    path = tmp_path / "study.jsonl"
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    with pytest.raises(qw.StorageError, match="There is no ledger"):
        create(path, ledger=ledger, dataset="held")
    ledger.create("small", qw.Clusters(range(20)), None, 99)
    with pytest.raises(qw.InvalidInputError, match="no dataset 'held'"):
        create(path, ledger=ledger, dataset="held")
    with pytest.raises(qw.InvalidInputError, match="20 rows and the holdout 300"):
        create(path, ledger=ledger, dataset="small")
    assert not path.exists()


def files_of(path):
    return path.read_bytes(), secret_path(path).read_bytes()


def put_back(path, copied):
    path.write_bytes(copied[0])
    secret_path(path).write_bytes(copied[1])


def test_an_older_copy_of_the_files_gains_nothing_against_a_ledger(tmp_path):
    paying, path = ledger_at(tmp_path / "budget.db"), tmp_path / "study.jsonl"
    h = create(path, **paying)
    h.ask(same)
    old = files_of(path)
    h.close()
    h = resume(path, **paying)  # as every command on the command line does
    h.ask(off)
    h.close()
    with pytest.raises(qw.InvalidInputError, match="Resume it with the ledger"):
        resume(path)
    put_back(path, old)
    again = resume(path, **paying)
    assert again.remaining == 3  # the ledger knows that the round is over
    again.ask(same)
    assert len(paying["ledger"].history("held")) == 2


def test_no_older_copy_of_both_files_begins_a_round_again(tmp_path):
    """Whatever is put back, as many rounds are answered as there are, counted in the ledger."""
    paying, path = ledger_at(tmp_path / "budget.db"), tmp_path / "study.jsonl"
    h = create(path, budget=5, **paying)
    copies = [files_of(path)]
    for statistic in (same, off, same, off, off, same):
        h.ask(statistic)
        copies.append(files_of(path))
    h.close()
    ended, refused = 0, []
    for copied in copies:
        put_back(path, copied)
        try:
            with closing(resume(path, **paying)) as again:
                while True:
                    ended += again.ask(off).overfit
        except (qw.BudgetExceeded, qw.StorageError) as error:
            refused.append("Restore the latest transcript" in str(error))
    # One copy had not seen the fourth round begin: it gave that up and ended the fifth.
    assert (ended, refused) == (1, [True] * 5 + [False, True])
    keys = [debit.key for debit in paying["ledger"].history("held")]
    assert len(keys) == len(set(keys)) == 5


def test_of_two_copies_that_go_on_at_once_one_is_refused(tmp_path):
    paying, path = ledger_at(tmp_path / "budget.db"), tmp_path / "study.jsonl"
    h = create(path, **paying)
    h.ask(off)
    other = tmp_path / "other.jsonl"
    put_back(other, files_of(path))
    copy = resume(other, **paying)
    h.ask(same)
    for _ in range(2):
        with pytest.raises(qw.StorageError, match="debited for round 2"):
            copy.ask(same)
        h.ask(off)
        h.ask(same)
    assert len(paying["ledger"].history("held")) == 4


def test_a_round_that_was_debited_and_lost_is_used(tmp_path, monkeypatch):
    """A process that ends between the debit and what it writes next is no older copy."""
    paying, path = ledger_at(tmp_path / "budget.db"), tmp_path / "study.jsonl"
    h = create(path, **paying)
    h.ask(off)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(h._log, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            h.ask(same)
    again = resume(path, **paying)
    assert again.remaining == 2
    assert again.transcript.entries[-1].label == "interrupted"
    again.ask(same)
    again.close()
    assert resume(path, **paying).remaining == 2
    assert len(paying["ledger"].history("held")) == 3


def test_debits_of_older_versions_count_too(tmp_path):
    """Their keys have a random word behind the number."""
    paying, path = ledger_at(tmp_path / "budget.db"), tmp_path / "study.jsonl"
    h = create(path, **paying)
    h.close()
    begun = {"mechanism": "reusable-holdout", "dp_epsilon": "1"}
    for number, left in ((1, 3), (2, 2)):
        paying["ledger"].debit("held", begun, f"{h.transcript.identity} round {number} 0f1e2d3c")
        with closing(resume(path, **paying)) as again:
            assert again.remaining == left
    paying["ledger"].debit("held", begun, f"{h.transcript.identity} round 4 0f1e2d3c")
    with pytest.raises(
        qw.StorageError, match="round 4 of this holdout, but its files contain only 2"
    ):
        resume(path, **paying)
