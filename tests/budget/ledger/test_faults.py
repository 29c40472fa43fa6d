"""A sample of the faults that `make faults` runs in full, each with proof that it can find any."""

from __future__ import annotations

import pytest

from evidence.faults import contention, crash, disk, mixed, network, power, replaced, restored
from quiltwork.budget.ledger import sqlite


def survives(outcome):
    assert outcome.trials > 0
    assert not outcome.violations, outcome.line()


@pytest.mark.timeout(300)
def test_processes_near_the_limit_are_granted_exactly_what_fits(url):
    survives(contention.near_the_limit(url, processes=24, tries=1, fitting=16))


def test_many_processes_begin_one_ledger(url):
    survives(contention.at_the_beginning(url, processes=12))


def test_requests_of_all_sizes_stay_within_the_budget(url):
    survives(contention.of_all_sizes(url, processes=12))


def test_duplicates_in_any_order_make_one_debit_and_show_one_answer(url):
    survives(contention.duplicates(url, processes=8, keys=6))


def test_a_process_may_die_at_any_statement():
    survives(crash.at_every_statement(stride=9))


def test_a_process_may_die_at_any_write_or_sync():
    survives(crash.at_every_write(stride=11))


def test_a_process_may_die_at_any_system_call():
    if not crash.can_trace():
        pytest.skip("strace absent: the layer below SQLite covers the same calls")
    survives(crash.at_every_system_call(stride=37))


@pytest.mark.timeout(300)
def test_power_may_fail_at_any_write_or_sync():
    survives(power.replay(stride=67, subsets=1))


def test_a_ledger_that_does_not_sync_would_be_caught(monkeypatch):
    """The negative control: without waiting for the disk, acknowledged debits do get lost."""
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("journal_mode=WAL", "synchronous=NORMAL"))
    found = power.replay(stride=71, subsets=0)
    assert any("is gone" in problem or "not the stored" in problem for problem in found.violations)


def test_an_answer_shown_before_it_is_stored_would_be_caught(monkeypatch):
    """The negative control: showing first and storing afterwards fails somewhere."""

    def hasty(ledger, dataset, numbers, mark):
        for number in numbers:
            key = f"{dataset}{number}"
            receipt = ledger.debit(dataset, crash_spending(), key=key)
            mark(crash.Mark("shown", key, key))
            receipt.complete(key)

    monkeypatch.setattr(crash, "keyed_releases", hasty)
    assert crash.at_every_statement(stride=5).violations


def crash_spending():
    from quiltwork.budget import Spending

    return Spending.dp(0.1, 1, 4)


def test_the_disk_may_be_full_at_any_write():
    survives(disk.full_at_every_write(stride=7))
    survives(disk.small_files(steps=4))


def test_read_only_files_and_folders_grant_nothing():
    survives(disk.read_only())


def test_a_process_whose_file_was_replaced_grants_nothing_more():
    survives(replaced.under_running_processes(repeats=1))


def test_a_connection_lost_around_a_commit_makes_one_debit(postgres_url):
    survives(network.lost_around_commit(postgres_url, repeats=1, most_cuts=1))


def test_an_old_copy_put_back_is_noticed_by_who_has_a_checkpoint(url):
    survives(restored.by_an_old_copy(url, repeats=2))


@pytest.mark.timeout(120)
def test_processes_that_do_everything_and_are_killed_lose_nothing(url):
    survives(mixed.by_everybody(url, processes=3, kills=2, seconds=3))
