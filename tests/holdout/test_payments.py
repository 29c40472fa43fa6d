"""Who pays for a holdout: one ledger, before it is looked at, and no other."""

from __future__ import annotations

import json

import numpy as np
import pytest

import quiltwork as qw
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.storage import chained, line_hash, secret_path

TRAIN = np.random.default_rng(1).random((300, 2))
HELD = np.random.default_rng(2).random((300, 2))


def off(data):
    return np.where(np.isin(data[:, 0], TRAIN[:, 0]), 1.0, 0.1)


def same(data):
    return data[:, 0]


def create(path, budget=4, **options):
    return ReusableHoldout(
        TRAIN, HELD, threshold=0.1, noise=0.0005, budget=budget, path=path, **options
    )


def resume(path, **options):
    return ReusableHoldout.resume(path, TRAIN, HELD, **options)


def test_answers_that_were_paid_for_outlive_a_ledger_that_fails(tmp_path, monkeypatch):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("held", qw.Clusters(range(300)), None, 99)
    h = create(tmp_path / "study.jsonl", budget=5, ledger=ledger, dataset="held")
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
    again = resume(tmp_path / "study.jsonl", ledger=ledger, dataset="held")
    assert again.transcript == h.transcript
    assert again.ask(off).remaining == 2


def test_the_round_is_paid_before_the_holdout_is_looked_at(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("held", qw.Clusters(range(300)), None, 99)
    h = create(None, ledger=ledger, dataset="held")
    seen = []

    def watching(data):
        if not np.isin(data[:, 0], TRAIN[:, 0]).any():
            seen.append(len(ledger.history("held")))
        return data[:, 0]

    h.ask(watching)
    assert set(seen) == {1}


def test_a_ledger_is_debited_round_by_round_and_before_the_answer(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    level = 9 / (4 * 0.0005 * 300)
    ledger.create("held", qw.Clusters(range(300)), None, 2 * level)
    h = create(None, budget=5, ledger=ledger, dataset="held")
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
    ledgers = []
    for name in ("mine", "other"):
        ledgers.append(qw.Ledger.open(f"sqlite:///{tmp_path}/{name}.db"))
        ledgers[-1].create("held", qw.Clusters(range(300)), None, 99)
    path = tmp_path / "study.jsonl"
    h = create(path, ledger=ledgers[0], dataset="held")
    h.ask(off)
    h.ask(same)
    h.close()
    return path, *ledgers


def as_version_1(path):
    """Rewrite the files as they were before transcripts named their ledger."""
    first, *rest = path.read_text().splitlines()
    header = {k: v for k, v in json.loads(first).items() if k != "ledger"} | {"version": 1}
    lines = [json.dumps(header, sort_keys=True, ensure_ascii=False)]
    for line in rest:
        lines.append(chained(json.loads(line), lines[-1]))
    path.write_text("".join(line + "\n" for line in lines))
    hidden = json.loads(secret_path(path).read_text())
    hidden |= {"lines": len(lines), "last": line_hash(lines[-1])}
    secret_path(path).write_text(json.dumps(hidden))


def test_only_the_ledger_that_paid_pays_on_whatever_its_place(paid, tmp_path):
    path, mine, other = paid
    identity = mine.checkpoint().ledger_id
    assert json.loads(path.read_text().split("\n")[0])["ledger"] == identity
    with pytest.raises(qw.StorageError, match="another one"):
        resume(path, ledger=other, dataset="held")
    checkpoint = mine.backup(tmp_path / "backup.jsonl")
    moved = qw.Ledger.restore(
        tmp_path / "backup.jsonl", f"sqlite:///{tmp_path}/moved.db", checkpoint
    )
    again = resume(path, ledger=moved, dataset="held")
    again.ask(off)
    again.ask(same)
    again.close()
    assert len(moved.history("held")) == 3
    assert len(other.history("held")) == 0
    with pytest.raises(qw.StorageError, match="older copy"):
        resume(path, ledger=mine, dataset="held")  # it lacks the third round's debit


def test_a_transcript_that_does_not_name_its_ledger_goes_on_with_the_one_that_was_debited(paid):
    path, mine, other = paid
    as_version_1(path)
    with pytest.raises(qw.StorageError, match="lacks the debit"):
        resume(path, ledger=other, dataset="held")
    again = resume(path, ledger=mine, dataset="held")
    assert again.ask(off).remaining == 2


def test_one_that_debited_nothing_yet_is_created_anew(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("held", qw.Clusters(range(300)), None, 99)
    path = tmp_path / "study.jsonl"
    create(path, ledger=ledger, dataset="held").close()
    as_version_1(path)
    with pytest.raises(qw.InvalidInputError, match="creating it anew"):
        resume(path, ledger=ledger, dataset="held")


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


def test_an_older_copy_of_the_files_gains_nothing_against_a_ledger(tmp_path):
    ledger = qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("held", qw.Clusters(range(300)), None, 99)
    path = tmp_path / "study.jsonl"
    h = create(path, ledger=ledger, dataset="held")
    h.ask(same)
    old, old_secret = path.read_text(), secret_path(path).read_text()
    h.close()
    h = resume(path, ledger=ledger, dataset="held")  # as every command on the command line does
    h.ask(off)
    h.close()
    with pytest.raises(qw.InvalidInputError, match="resume it with the ledger"):
        resume(path)
    path.write_text(old)
    secret_path(path).write_text(old_secret)
    again = resume(path, ledger=ledger, dataset="held")
    assert again.remaining == 3  # the ledger knows that the round is over
    again.ask(same)
    assert len(ledger.history("held")) == 2
