"""Backups move ledgers, and never let lost debits be spent again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction

import pytest

from quiltwork.budget import Accountant, Checkpoint, Ledger, Spending
from quiltwork.budget.ledger.entries import Draft, Head, appended, canonical, origin
from quiltwork.errors import BudgetExceeded, InvalidInputError, StorageError


@pytest.fixture
def filled(ledger, independent):
    ledger.create("d", independent, 3, 1)
    ledger.debit("d", Spending.dp(0.1, 1, 3), key="k").complete("answer")
    ledger.note("act", "invited ben", who="ana")
    ledger.note("refusal", "no such dataset yet", dataset="closed")
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


def test_a_backup_restores_everything_into_any_database(filled, target, tmp_path):
    checkpoint = filled.backup(tmp_path / "backup.jsonl")
    restored = Ledger.restore(tmp_path / "backup.jsonl", target, checkpoint, {"d": []})
    assert restored.log() == filled.log()
    assert restored.verify(checkpoint) == checkpoint
    assert restored.answer("d", "k") == "answer"
    restored.accountant("d").spend(dp_epsilon=0.9)
    with pytest.raises(BudgetExceeded):
        restored.accountant("d").spend(dp_epsilon=0.01)


def test_a_backup_that_may_lack_debits_comes_back_retired(filled, tmp_path):
    own = filled.backup(tmp_path / "old.jsonl")
    filled.accountant("d").spend(dp_epsilon=0.5)
    for name, checkpoint in (("own", own), ("short", filled.checkpoint()), ("unknown", None)):
        restored = Ledger.restore(
            tmp_path / "old.jsonl", f"sqlite:///{tmp_path / name}.db", checkpoint
        )
        with pytest.raises(BudgetExceeded, match="may lack debits"):
            restored.accountant("d").spend(dp_epsilon=0.1)
        assert restored.answer("d", "k") == "answer"
        assert all(status.retired for status in restored.datasets())
        restored.verify()


def test_what_its_owner_says_was_lost_is_debited(filled, target, tmp_path):
    filled.backup(tmp_path / "old.jsonl")
    filled.accountant("d").spend(dp_epsilon=0.5)
    newest = filled.checkpoint()
    lost = {"d": [Spending.dp(0.25, 1, 3), Spending.dp(0.25, 1, 3)]}
    restored = Ledger.restore(tmp_path / "old.jsonl", target, newest, lost)
    assert restored.status("d").exact_total == filled.status("d").exact_total
    restored.accountant("d").spend(dp_epsilon=0.4)
    with pytest.raises(BudgetExceeded):
        restored.accountant("d").spend(dp_epsilon=0.01)
    assert restored.status("closed").retired == "no longer used"
    restored.verify()


def test_what_was_lost_must_make_sense(filled, tmp_path):
    filled.backup(tmp_path / "old.jsonl")
    filled.accountant("d").spend(dp_epsilon=0.5)
    place = f"sqlite:///{tmp_path / 'new.db'}"
    for lost, error, words in [
        ({"d": []}, StorageError, "lacks the last 1 entries"),
        ({"closed": [Spending.dp(0.1, 1, 3)], "d": []}, StorageError, "nothing .* lost of 'd'"),
        ({"d": [Spending.dp(0.95, 1, 3)]}, BudgetExceeded, "above the budget"),
        ({"e": []}, InvalidInputError, "no such dataset"),
        ({"d": Spending.dp(0.1, 1, 3)}, InvalidInputError, "lost names datasets"),
        ({"d": "much"}, InvalidInputError, "lost names datasets"),
        ([], InvalidInputError, "lost names datasets"),
        ({"d": [0.1]}, InvalidInputError, "Spending"),
    ]:
        with pytest.raises(error, match=words):
            Ledger.restore(tmp_path / "old.jsonl", place, filled.checkpoint(), lost)
    restored = Ledger.restore(tmp_path / "old.jsonl", place, filled.checkpoint())
    assert len(restored.history("d")) == 1


def test_a_ledger_goes_elsewhere_with_all_it_has_and_grants_nothing_behind(
    filled, target, tmp_path
):
    before, checkpoint = filled.checkpoint(), filled.last_backup(tmp_path / "last.jsonl")
    log = filled.log()
    with pytest.raises(BudgetExceeded, match="closed by the last backup"):
        filled.accountant("d").spend(dp_epsilon=0.1)
    moved = Ledger.restore(tmp_path / "last.jsonl", target, checkpoint)
    assert moved.log()[:-1] == log
    assert [entry.kind for entry in moved.log()[-2:]] == ["retire", "reopen"]
    for seen in (before, checkpoint):
        moved.verify(seen)
        filled.verify(seen)
        moved.verify_since(seen)
    assert moved.status("closed").retired == "no longer used"
    assert moved.answer("d", "k") == filled.answer("d", "k") == "answer"
    moved.accountant("d").spend(dp_epsilon=0.9)
    with pytest.raises(BudgetExceeded, match="0 is left"):
        moved.accountant("d").spend(dp_epsilon=0.1)
    assert Ledger.open(target).status("d").exact_total == 1


def test_a_last_backup_that_failed_is_taken_again(filled, tmp_path):
    """Everything is closed, and nothing is written: so much is sure before the file is there."""
    with pytest.raises(StorageError, match="could not be written"):
        filled.last_backup(tmp_path / "no" / "such" / "folder.jsonl")
    with pytest.raises(BudgetExceeded):
        filled.accountant("d").spend(dp_epsilon=0.1)
    first = filled.last_backup(tmp_path / "last.jsonl")
    assert filled.last_backup(tmp_path / "last.jsonl") == first
    moved = Ledger.restore(tmp_path / "last.jsonl", f"sqlite:///{tmp_path / 'there.db'}")
    moved.accountant("d").spend(dp_epsilon=0.9)


def test_after_a_last_backup_nothing_is_closed_that_was_begun_since(filled, tmp_path, independent):
    filled.last_backup(tmp_path / "last.jsonl")
    filled.create("e", independent, 3, 1)
    with pytest.raises(InvalidInputError, match="had its last backup, and 'e' was created since"):
        filled.last_backup(tmp_path / "again.jsonl")
    assert filled.status("e").retired is None
    assert not (tmp_path / "again.jsonl").exists()
    filled.backup(tmp_path / "ordinary.jsonl")
    for number, lost in enumerate((None, {"d": []}, {"d": [Spending.dp(0.1, 1, 3)], "e": []})):
        place = f"sqlite:///{tmp_path / f'copy{number}.db'}"
        copy = Ledger.restore(tmp_path / "ordinary.jsonl", place, lost=lost)
        assert "may lack debits" in copy.status("d").retired
        copy.verify()


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


def rewritten(path, change):
    """Change the bodies and chain the entries again, as somebody would who knows how."""
    first, *lines, _ = path.read_text().splitlines()
    ledger_id = json.loads(first)["ledger"]
    head = Head(0, origin(ledger_id))
    written = [first]
    for line in lines:
        fields = json.loads(line)
        body = change(fields["kind"], json.loads(fields["body"]))
        draft = Draft(fields["id"], fields["dataset"], fields["kind"], body)
        entry = appended(head, draft)
        head = Head(entry.seq, entry.hash)
        written.append(json.dumps(asdict(entry)))
    written.append(Checkpoint(ledger_id, head.count, head.hash).to_json())
    path.write_text("".join(line + "\n" for line in written))


FIELDS = [
    *(("create", name) for name in ("beliefs", "length", "budget")),
    *(("debit", name) for name in ("spending", "mechanism", "request", "key", "analyst", "charge")),
    *(("debit", name) for name in ("after", "bound")),
    ("extend", "bound"),
    ("allot", "after"),
    *(("answer", name) for name in ("debit",)),
    ("retire", "reason"),
    ("allot", "analyst"),
    ("allot", "reserved"),
    ("extend", "length"),
]


@pytest.fixture(scope="module")
def backup(tmp_path_factory, independent):
    folder = tmp_path_factory.mktemp("backup")
    with Ledger.open(f"sqlite:///{folder / 'budget.db'}") as ledger:
        ledger.create("d", independent, 3, 1)
        ledger.allot("d", "ana", cap=0.5)
        ledger.extend("d", 4)
        ledger.debit("d", Spending.dp(0.1, 1, 3), key="k", analyst="ana").complete("answer")
        ledger.retire("d")
        ledger.backup(folder / "backup.jsonl")
    return (folder / "backup.jsonl").read_text()


def test_entries_chained_again_are_restored(backup, tmp_path):
    """Or the tests below would show nothing."""
    path = tmp_path / "backup.jsonl"
    path.write_text(backup)
    rewritten(path, lambda _, body: canonical(body))
    assert path.read_text().splitlines()[-1] == backup.splitlines()[-1]
    assert Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}").datasets()[0].dataset == "d"


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_a_backup_whose_entries_lack_something_is_refused_before_anything_is_written(
    backup, tmp_path, kind, field
):
    path = tmp_path / "backup.jsonl"
    path.write_text(backup)
    rewritten(
        path,
        lambda found, body: canonical({k: body[k] for k in body if (found, k) != (kind, field)}),
    )
    with pytest.raises(StorageError, match=f"damaged at entry.*lacks '{field}'"):
        Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(("kind", "field"), FIELDS)
@pytest.mark.parametrize("value", ["1e10000000", None, [[]], 10**400], ids=range(4))
def test_a_backup_whose_entries_hold_something_else_fails_with_a_sentence_or_not_at_all(
    backup, tmp_path, kind, field, value
):
    """Some fields may be null or any text."""
    path = tmp_path / "backup.jsonl"
    path.write_text(backup)
    rewritten(
        path, lambda found, body: canonical({**body, field: value} if found == kind else body)
    )
    with suppress(StorageError):
        restored = Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
        restored.datasets()
        restored.history("d")
        restored.verify()


@pytest.mark.parametrize("body", ["[]", "5", "null", "[" * 100_000, "not json"])
def test_a_backup_with_bodies_that_are_none_is_refused(backup, tmp_path, body):
    path = tmp_path / "backup.jsonl"
    path.write_text(backup)
    rewritten(path, lambda kind, found: body if kind == "create" else canonical(found))
    with pytest.raises(StorageError, match="damaged"):
        Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("line", ["{}", "[]", "5", "[" * 100_000, '{"seq": 1}', '{"a": "\\ud800"}'])
def test_lines_of_a_backup_that_are_no_entries_are_refused(backup, tmp_path, line):
    path = tmp_path / "backup.jsonl"
    lines = backup.splitlines()
    for at in (0, 1, -1):
        damaged = list(lines)
        damaged[at] = line
        path.write_text("\n".join(damaged))
        with pytest.raises((StorageError, InvalidInputError)):
            Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
    first = json.loads(lines[0])
    path.write_text("\n".join([json.dumps({**first, "ledger": "\ud800"}), *lines[1:]]))
    with pytest.raises(StorageError, match="damaged"):
        Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")
    del first["ledger"]
    path.write_text("\n".join([json.dumps(first), *lines[1:]]))
    with pytest.raises(StorageError, match="lacks 'ledger'"):
        Ledger.restore(path, f"sqlite:///{tmp_path / 'new.db'}")


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
    for name, words in ((tmp_path / "none.jsonl", "Cannot read"), ("/dev/zero", "is a device")):
        with pytest.raises(InvalidInputError, match=words):
            Ledger.restore(name, f"sqlite:///{tmp_path / 'r.db'}")


def test_what_was_lost_of_a_budget_in_shares_is_debited_for_nobody(ledger, chain, tmp_path):
    """It has happened, whoever it was for: no cap bounds it, nor what is reserved."""
    ledger.create("d", chain, 60, 1)
    ledger.allot("d", "ana", cap=Fraction(1, 10))
    ledger.allot("d", "ben", reserved=Fraction(9, 10))
    ledger.backup(tmp_path / "backup.jsonl")
    url = f"sqlite:///{tmp_path / 'again.db'}"
    restored = Ledger.restore(
        tmp_path / "backup.jsonl", url, lost={"d": [Spending.dp(0.05, 1, 60)]}
    )
    scratch = Accountant(chain, 60)
    scratch.spend(0.05)
    assert restored.status("d").exact_total == scratch.exact_epsilon > Fraction(1, 10)
    assert restored.status("d").charged == {}
    with pytest.raises(BudgetExceeded, match="reserved for other"):
        restored.debit("d", Spending.dp(0.001, 1, 60), analyst="ana")
    restored.verify()
    with pytest.raises(BudgetExceeded, match="above the budget"):
        Ledger.restore(
            tmp_path / "backup.jsonl",
            f"sqlite:///{tmp_path / 'third.db'}",
            lost={"d": [Spending.dp(9, 1, 60)]},
        )
