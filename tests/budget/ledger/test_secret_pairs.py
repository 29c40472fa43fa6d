"""Datasets under which only chosen pairs of values are kept apart, in every release."""

from __future__ import annotations

from fractions import Fraction

import pytest

import quiltwork as qw
from quiltwork.budget import Ledger
from quiltwork.budget.ledger import snapshots
from quiltwork.errors import BudgetExceeded, UnsupportedError

ROOMS = qw.MarkovChain(
    [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]], states=["kitchen", "bath", "away"]
)
PAIRS = [("bath", "kitchen")]
COUNT = qw.queries.count("bath")
DATA = ["kitchen", "bath", "away", "away"] * 25


@pytest.fixture
def opened(ledger):
    ledger.create("rooms", ROOMS, 100, 1, pairs=PAIRS)
    ledger.create("all", ROOMS, 100, 1)
    return ledger


def test_totals_are_those_of_an_account_with_these_pairs_and_lower_than_with_all(opened, url):
    account = qw.Accountant(ROOMS, 100, 1, pairs=PAIRS)
    for level, start, stop in ((0.1, 1, 100), (0.05, 20, 60), (0.2, 61, 61)):
        account.spend(level, start, stop)
        opened.accountant("rooms").spend(level, start, stop)
        opened.accountant("all").spend(level, start, stop)
    status = opened.status("rooms")
    assert status.total == account.epsilon() < 0.95 * opened.status("all").total
    assert status.pairs == (("kitchen", "bath"),)
    assert '"pairs"' in status.to_json()
    assert '"pairs"' not in opened.status("all").to_json()
    assert opened.verify().count == len(opened.log())
    assert Ledger.open(url).status("rooms").total == account.epsilon()


def test_what_fits_with_these_pairs_is_refused_with_all(opened):
    most = qw.Accountant(ROOMS, 100, 1, pairs=PAIRS).largest_next()
    assert most > 1.05 * qw.Accountant(ROOMS, 100, 1).largest_next()
    opened.accountant("rooms").spend(most)
    with pytest.raises(BudgetExceeded):
        opened.accountant("all").spend(most)


def test_a_release_takes_the_pairs_of_its_dataset(opened):
    answer = qw.release(DATA, COUNT, ROOMS, 1, ledger=opened, dataset="rooms", key="a")
    assert answer.pairs == (("kitchen", "bath"),)
    needed = qw.calibrate(ROOMS, 100, 1, query=COUNT, pairs=PAIRS).scale
    assert needed <= answer.scale < 1.02 * needed < qw.calibrate(ROOMS, 100, 1, query=COUNT).scale
    again = qw.release(DATA, COUNT, ROOMS, 1, ledger=opened, dataset="rooms", key="a")
    assert again == answer
    assert 0.99 < opened.status("rooms").total <= 1


def test_pairs_outlive_snapshots_growth_and_a_restore(opened, url, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "TAIL", 2)
    for _ in range(8):
        opened.accountant("rooms").spend(0.01)
    opened.extend("rooms", 200)
    longer = qw.Accountant(ROOMS, 200, 1, pairs=PAIRS)
    for _ in range(8):
        longer.spend(0.01, start=1, stop=100)
    assert Ledger.open(url).status("rooms").total == longer.epsilon()
    opened.backup(tmp_path / "backup.jsonl")
    restored = Ledger.restore(tmp_path / "backup.jsonl", f"sqlite:///{tmp_path}/again.db")
    assert restored.status("rooms").pairs == (("kitchen", "bath"),)
    assert restored.status("rooms").total == longer.epsilon()


def test_pairs_go_with_neither_a_delta_nor_stretches(opened):
    for more in ({"delta": 1e-6}, {"episode": 3}):
        with pytest.raises(UnsupportedError, match="pairs"):
            opened.create("other", ROOMS, 100, 1, pairs=PAIRS, **more)


def test_a_stored_plan_keeps_the_pairs(opened):
    from quiltwork.budget.accounting.stored_plan import StoredPlan, plan_document
    from quiltwork.files import dump

    pairs = opened.status("rooms").pairs
    made = qw.plan(ROOMS, length=100, budget=1, queries=[COUNT] * 3, pairs=pairs)
    assert (
        made.items[0].scale
        < 0.95 * qw.plan(ROOMS, length=100, budget=1, queries=[COUNT] * 3).items[0].scale
    )
    text = dump("ledger-plan", 1, plan_document(made, "rooms", 100, 1, [ROOMS], pairs))
    plan = StoredPlan.from_json(text)
    assert plan.pairs == pairs
    line = plan.lines[0]
    epsilon = line.epsilon([ROOMS], 100, 1, plan.pairs)
    noise = qw.calibrate(ROOMS, 100, epsilon, query=COUNT, pairs=pairs).exact_scale
    assert line.scale <= noise < line.scale * Fraction(1001, 1000)
