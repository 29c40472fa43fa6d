"""Whatever is done to the log behind the ledger's back, `verify` finds it."""

from __future__ import annotations

import hashlib
import json
import sqlite3

import psycopg
import pytest

from evidence.faults.raw import raw
from quiltwork.budget import Checkpoint, Ledger, Spending
from quiltwork.budget.ledger.entries import Draft, canonical
from quiltwork.budget.ledger.urls import database_at
from quiltwork.errors import InvalidInputError, StorageError


@pytest.fixture
def filled(ledger, independent):
    ledger.create("d", independent, 4, 1)
    for number in range(3):
        ledger.debit("d", Spending.dp(0.1, 1, 4), key=f"k{number}").complete(f"answer {number}")
    ledger.extend("d", 5)
    ledger.allot("d", "ana", cap=0.2)
    return ledger


def tamper(url: str, *statements: str) -> Ledger:
    """Run statements on the log; return a ledger that has seen nothing yet."""
    with raw(url) as connection:
        for statement in statements:
            connection.execute(statement)
    return Ledger.open(url)


def test_an_untouched_ledger_is_intact(filled):
    checkpoint = filled.verify()
    assert checkpoint == filled.checkpoint()
    assert filled.verify(checkpoint) == checkpoint
    filled.debit("d", Spending.dp(0.1, 1, 4), analyst="ana")
    assert filled.verify(checkpoint).count == checkpoint.count + 1


def test_a_checkpoint_beyond_any_log_is_one_that_was_cut_off(filled):
    seen = filled.checkpoint()
    with pytest.raises(StorageError, match="were cut off"):
        filled.verify(Checkpoint(seen.ledger_id, 10**400, seen.hash))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE quiltwork_entries SET body = replace(body, '1/10', '1/20') WHERE seq = 2",
        "UPDATE quiltwork_entries SET dataset = 'e' WHERE seq = 3",
        "UPDATE quiltwork_entries SET kind = 'allot' WHERE seq = 2",
        "UPDATE quiltwork_entries SET id = 'x' WHERE seq = 4",
        "UPDATE quiltwork_entries SET hash = id WHERE seq = 9",
        "UPDATE quiltwork_entries SET key = 'other' WHERE seq = 2",
        "UPDATE quiltwork_entries SET key = NULL WHERE seq = 2",
        "UPDATE quiltwork_entries SET debit = NULL WHERE seq = 3",
        "UPDATE quiltwork_entries SET key = 'k9' WHERE seq = 1",
        "UPDATE quiltwork_entries SET seq = 99 WHERE seq = 4",
        "DELETE FROM quiltwork_entries WHERE seq = 2",
        "DELETE FROM quiltwork_entries WHERE seq = 1",
        "DELETE FROM quiltwork_ledger",
        "UPDATE quiltwork_ledger SET id = 'another'",
    ],
)
def test_an_edit_or_a_deletion_is_found(filled, url, statement):
    with pytest.raises(StorageError):
        tamper(url, statement).verify()


def test_a_cut_log_is_found_by_a_checkpoint_and_by_a_running_process(filled, url):
    checkpoint = filled.checkpoint()
    cut = tamper(url, "DELETE FROM quiltwork_entries WHERE seq > 5")
    cut.verify()  # a shorter log is a valid log
    with pytest.raises(StorageError, match="the last 4 were cut off"):
        cut.verify(checkpoint)
    with pytest.raises(StorageError, match="replaced or cut while it was in use"):
        filled.accountant("d").spend(dp_epsilon=0.1)


def test_a_log_rewritten_with_new_hashes_is_found_by_a_checkpoint(filled, url):
    checkpoint = filled.checkpoint()
    with raw(url) as connection:
        previous = connection.execute(
            "SELECT hash FROM quiltwork_entries WHERE seq = 1"
        ).fetchone()[0]
        rows = connection.execute(
            "SELECT seq, id, dataset, kind, body FROM quiltwork_entries WHERE seq > 1 ORDER BY seq"
        ).fetchall()
        for seq, *rest, body in rows:
            cheaper = body.replace("1/10", "1/20")
            fields = json.dumps([previous, seq, *rest, cheaper], separators=(",", ":"))
            previous = hashlib.sha256(fields.encode()).hexdigest()
            update = "UPDATE quiltwork_entries SET body = ?, hash = ? WHERE seq = ?"
            connection.execute(database_at(url).sql(update), (cheaper, previous, seq))
    forged = Ledger.open(url)
    forged.verify()  # nothing inside the database can tell
    with pytest.raises(StorageError, match="was rewritten"):
        forged.verify(checkpoint)


def test_entries_that_make_no_sense_are_found_even_with_good_hashes(ledger, independent):
    ledger.create("d", independent, 4, 1)
    receipt = ledger.debit("d", Spending.dp(0.1, 1, 4), key="k")
    body = json.loads(ledger.log()[1].body)
    senseless = {
        "a second time": Draft("1", "d", "create", ledger.log()[0].body),
        "never created": Draft("2", "e", "extend", canonical({"length": 5})),
        "answers no debit": Draft("3", "d", "answer", canonical({"debit": 1, "answer": ""})),
        "key was used": Draft("4", "d", "debit", canonical({**body})),
        "ever written": Draft("5", "d", "refund", canonical({"debit": 2})),
    }
    for problem, draft in senseless.items():

        def write_and_check(log, draft=draft, problem=problem):
            from quiltwork.budget.ledger.verification import check_log

            log.append(draft)
            with pytest.raises(StorageError, match=problem):
                check_log(log, None)
            raise InvalidInputError("undo")

        with pytest.raises(InvalidInputError, match="undo"):
            ledger._store.write(write_and_check)
    ledger.retire("d")
    receipt.complete("late, but paid for")
    assert ledger.verify().count == 4


def test_debits_above_the_budget_are_found_even_with_good_hashes(ledger, independent):
    ledger.create("d", independent, 4, 1)
    ledger.debit("d", Spending.dp(1, 1, 4))
    body = json.loads(ledger.log()[1].body)
    forged = Draft("x", "d", "debit", canonical({**body, "after": 2}))
    ledger._store.write(lambda log: log.append(forged))
    with pytest.raises(StorageError, match=r"entry 3 .* costs 1 at most, .* cost 2 together"):
        ledger.verify()


def test_a_forged_debit_that_records_what_it_costs_is_above_the_budget(ledger, independent):
    ledger.create("d", independent, 4, 1)
    ledger.debit("d", Spending.dp(1, 1, 4))
    body = json.loads(ledger.log()[1].body)
    larger = {**body, "after": 2, "bound": {**body["bound"], "total": 3}}
    ledger._store.write(lambda log: log.append(Draft("y", "d", "debit", canonical(larger))))
    with pytest.raises(StorageError, match="costs 2 by version 1 of the bounds, above the budget"):
        ledger.verify()


def test_the_database_itself_refuses_to_change_entries(filled, url):
    for statement in (
        "UPDATE quiltwork_entries SET body = ''",
        "DELETE FROM quiltwork_entries WHERE seq = 2",
    ):
        if url.startswith("sqlite"):
            connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        else:
            connection = psycopg.connect(url)
        with pytest.raises((sqlite3.Error, psycopg.Error), match="final"):
            connection.execute(statement)
        connection.close()
    filled.verify()


def test_checkpoints_travel_as_documents(filled):
    checkpoint = filled.checkpoint()
    assert Checkpoint.from_json(checkpoint.to_json()) == checkpoint
    document = json.loads(checkpoint.to_json())
    for damage in ({"count": -1}, {"hash": "0"}, {"count": "9"}, {"ledger": None}):
        with pytest.raises(InvalidInputError, match="damaged"):
            Checkpoint.from_json(json.dumps(document | damage))


def test_a_checkpoint_of_another_ledger_is_recognised(filled, tmp_path, independent):
    other = Ledger.open(f"sqlite:///{tmp_path / 'other.db'}")
    other.create("d", independent, 4, 1)
    with pytest.raises(StorageError, match="another one"):
        other.verify(filled.checkpoint())


def test_a_file_overwritten_in_places_is_found(tmp_path, independent):
    path = tmp_path / "budget.db"
    ledger = Ledger.open(f"sqlite:///{path}")
    ledger.create("d", independent, 4, 1)
    for _ in range(5):
        ledger.debit("d", Spending.dp(0.1, 1, 4)).complete("x" * 3000)
    ledger.close()
    whole = path.read_bytes()
    found = 0
    for at in range(0, len(whole), 487):
        damaged = bytearray(whole)
        damaged[at : at + 64] = bytes(b ^ 0x5A for b in whole[at : at + 64])
        path.write_bytes(damaged)
        try:
            with Ledger.open(f"sqlite:///{path}") as opened:
                assert len(opened.history("d")) == 5
                opened.verify()
                assert [debit.state for debit in opened.history("d")] == ["released"] * 5
        except StorageError:
            found += 1
    assert found > 20


def test_files_that_are_no_ledger_get_sentences(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("dear diary\n" * 100)
    with pytest.raises(StorageError, match="not a ledger"):
        Ledger.open(f"sqlite:///{text}").verify()
    foreign = tmp_path / "songs.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    with pytest.raises(StorageError, match="another program"):
        Ledger.open(f"sqlite:///{foreign}").datasets()


def test_a_damaged_name_in_the_schema_is_damage_and_no_traceback(sqlite_url, independent, tmp_path):
    with Ledger.open(sqlite_url) as ledger:
        ledger.create("d", independent, 4, 1)
    path = tmp_path / "budget.db"
    intact = path.read_bytes()
    schema = intact.index(b"CREATE TABLE")
    found = 0
    for place in range(schema - 100, 4096, 3):
        path.write_bytes(intact[:place] + b"\xff" + intact[place + 1 :])
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        with Ledger.open(sqlite_url) as ledger:
            try:
                ledger.verify()
            except StorageError as error:
                found += "damaged" in str(error)
    assert found > 10


def test_what_was_written_since_a_checkpoint_is_checked_alone(filled, url):
    since = filled.checkpoint()
    receipt = filled.debit("d", Spending.dp(0.1, 1, 4), key="late", analyst="ana")
    receipt.complete("late answer")
    filled.create("e", filled.status("d").beliefs, 4, 1)
    filled.note("read", "the history", "d", "ana")
    filled.retire("d")
    assert filled.verify_since(since) == filled.checkpoint() == filled.verify(since)
    assert filled.verify_since(filled.checkpoint()) == filled.checkpoint()
    with pytest.raises(StorageError, match="cut off"):
        filled.verify_since(Checkpoint(since.ledger_id, 1000, since.hash))
    with pytest.raises(InvalidInputError, match="needs a checkpoint"):
        filled.verify_since(None)


def test_what_was_before_a_checkpoint_is_not_looked_at(sqlite_url, independent):
    """Not by the database either: its steps are counted."""
    ledger, steps = Ledger.open(sqlite_url), []
    ledger.create("d", independent, 4, 1)
    ledger.allot("d", "ana", cap=0.5)
    for before in (10, 1000):
        ledger.create(f"{before}", independent, 4, 1)
        ledger.debit_all(f"{before}", [Spending.dp(0.0001, 1, 4)] * before)
        since = ledger.checkpoint()
        ledger.debit("d", Spending.dp(0.1, 1, 4), key=f"{before}", analyst="ana").complete("answer")
        ledger.note("act", "invited ben")
        (connection,) = ledger._store._idle
        steps.append(0)

        def count():
            steps[-1] += 1

        connection.set_progress_handler(count, 1)
        ledger.verify_since(since)
        connection.set_progress_handler(None, 0)
    assert 0 < steps[1] < 1.2 * steps[0]


@pytest.mark.parametrize(
    ("kind", "dataset", "body", "problem"),
    [
        ("debit", "d", '{"key":null,"analyst":null}', "debits a retired dataset"),
        ("debit", "x", '{"key":null,"analyst":null}', "was never created"),
        ("create", "d", "{}", "creates a dataset a second time"),
        ("answer", "d", '{"debit":1}', "answers no debit"),
        ("answer", "d", '{"debit":2}', "answers no debit, or one that was answered"),
        ("pardon", "d", "{}", "is ever written"),
        ("refusal", "d", '{"who":""}', "its body lacks 'at'"),
    ],
)
def test_entries_since_a_checkpoint_that_are_no_step_forward(filled, kind, dataset, body, problem):
    filled.retire("d")
    since = filled.verify()
    forged = Draft("f" * 32, dataset, kind, body)
    filled._store.write(lambda log: log.append(forged))
    with pytest.raises(StorageError, match=problem):
        filled.verify_since(since)
    with pytest.raises(StorageError, match=problem):
        filled.verify()


@pytest.mark.parametrize(("analyst", "mark"), [(None, "\x1fk0"), ("ana", "mine")])
def test_a_key_put_in_again_since_a_checkpoint_is_found(filled, analyst, mark):
    filled.debit("d", Spending.dp(0.1, 1, 4), key="mine", analyst="ana")
    since = filled.verify()
    used = next(e for e in filled.log() if e.kind == "debit" and e.content["analyst"] == analyst)
    forged = Draft("f" * 32, "d", "debit", used.body)
    filled._store.write(lambda log: log.append(forged, key=mark))
    for check in (filled.verify, lambda: filled.verify_since(since)):
        with pytest.raises(StorageError, match="its key was used before"):
            check()


def test_history_and_log_come_in_pages(filled):
    whole, log = filled.history("d"), filled.log()
    for size in (1, 2, 3, 5):
        pages, after = [], 0
        while page := filled.history("d", after=after, limit=size):
            assert len(page) <= size
            pages, after = [*pages, *page], page[-1].number
        assert tuple(pages) == whole
    assert filled.log(after=2, limit=3) == log[2:5]
    assert filled.log(after=len(log)) == ()
    assert filled.history("d", limit=10**30) == whole
    for far in (2**63, 10**30):
        pages = (filled.history("d", after=far), filled.log(after=far), filled.notes(after=far))
        assert pages == ((), (), ())
    for bad in (0, -1, 1.5, True):
        with pytest.raises(InvalidInputError, match="limit"):
            filled.history("d", limit=bad)


def test_nothing_grows_or_is_shared_out_after_retirement(filled):
    filled.retire("d", "over")
    for late in (lambda: filled.extend("d", 9), lambda: filled.allot("d", "ana", cap=0.1)):
        with pytest.raises(InvalidInputError, match=r"retired \(over\)"):
            late()
