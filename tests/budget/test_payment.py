"""Debit first, for every system that a ledger pays: releases, counts, tables and holdouts.

Each system is asked for one answer under one key; what happens before, between and after the
debit, the draw and the store must be the same for all of them.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import quiltwork as qw
from quiltwork.budget import Ledger, Spending
from quiltwork.budget.payment import as_payer, pay_and_store
from quiltwork.counts import release_levels, release_table
from quiltwork.errors import (
    BudgetExceeded,
    InvalidInputError,
    NotPrivateError,
    StorageError,
)
from quiltwork.holdout import ReusableHoldout
from tests.holdout.small import HELD, TRAIN, off

ROWS = 300
PEOPLE = qw.Clusters(range(ROWS))


@dataclass
class System:
    """One question; `drawn` names what draws its noise."""

    name: str
    drawn: str

    private: ClassVar = {"few": [1] + [0] * (ROWS - 1), "many": [1] * ROWS}

    def ask(self, data: str, **paying: Any) -> Any:
        rows = self.private[data]
        match self.name:
            case "release":
                return qw.release(rows, qw.queries.sum(0, 1), PEOPLE, epsilon=1, **paying).to_json()
            case "count":
                return qw.GeometricMechanism(ROWS, epsilon=1).release(sum(rows), **paying)
            case "levels":
                return release_levels(sum(rows), ROWS, epsilons=[1], **paying)
            case "table":
                counts = {"a": sum(rows), "b": ROWS - sum(rows)}
                return release_table(counts, epsilon=1, **paying).to_json()
        assert self.name == "holdout"
        path = paying.pop("key")
        given = TRAIN, HELD if data == "many" else HELD * 0.5
        if path.exists():
            board = ReusableHoldout.resume(path, *given, **paying)
        else:
            options = {"threshold": 0.1, "noise": 0.05, "budget": 4, "path": path}
            board = ReusableHoldout(*given, **options, **paying)
        with closing(board):
            return board.ask(off).value


SYSTEMS = [
    System("release", "quiltwork.series.releases.answer.draw_answer"),
    System("count", "quiltwork.counts.geometric_mechanism.GeometricMechanism._draw"),
    System("levels", "quiltwork.counts.geometric_mechanism.GeometricMechanism._draw"),
    System("table", "quiltwork.counts.count_table._draw"),
    System("holdout", "quiltwork.noise.geometric.TwoSidedGeometric.draw_one"),
]
KEPT = SYSTEMS[:-1]  # whose answers the ledger itself keeps under their key


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/budget.db") as opened:
        opened.create("d", PEOPLE, None, 20)
        yield opened


@pytest.fixture
def paying(ledger, tmp_path):
    """The arguments of a question, for which a holdout's file stands in the place of a key."""
    return lambda system: {
        "ledger": ledger,
        "dataset": "d",
        "key": tmp_path / "board.jsonl" if system.name == "holdout" else "k",
    }


def states(ledger):
    return [debit.state for debit in ledger.history("d")]


@pytest.fixture(params=SYSTEMS, ids=lambda system: system.name)
def system(request):
    return request.param


def test_the_debit_is_durable_before_anything_is_drawn(system, ledger, paying, monkeypatch):
    """Another connection to the file sees it while the noise is being drawn."""
    seen = []

    def watched(*_):
        with Ledger.open(ledger.url) as other:
            seen.append(states(other))
        raise RuntimeError("stop here")

    monkeypatch.setattr(system.drawn, watched)
    with pytest.raises(RuntimeError, match="stop here"):
        system.ask("few", **paying(system))
    assert seen == [["debited"]]


@pytest.mark.parametrize("data", ["few", "many"])
def test_an_error_after_the_debit_is_charged_once_and_does_not_depend_on_the_data(
    system, ledger, paying, monkeypatch, data
):
    """Nothing is refunded; the same key draws no second answer, and a holdout's round is used."""
    with monkeypatch.context() as crash:
        crash.setattr(system.drawn, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            system.ask(data, **paying(system))
    spent = ledger.status("d").exact_total
    assert spent > 0
    assert states(ledger) == ["debited"]
    if system in KEPT:
        with pytest.raises(NotPrivateError, match="second release"):
            system.ask(data, **paying(system))
        assert ledger.status("d").exact_total == spent
        assert states(ledger) == ["debited"]
    else:
        system.ask(data, **paying(system))
        assert [debit.key[-1] for debit in ledger.history("d")] == ["1", "2"]


@pytest.mark.parametrize("one", KEPT, ids=lambda system: system.name)
def test_a_repeated_key_returns_the_stored_answer_for_nothing(one, ledger, paying, monkeypatch):
    first = one.ask("few", **paying(one))
    spent, log = ledger.status("d").exact_total, ledger.log()
    monkeypatch.setattr(one.drawn, None)
    assert one.ask("few", **paying(one)) == first
    assert one.ask("many", **paying(one)) == first  # the key names the request, not the data
    assert (ledger.status("d").exact_total, ledger.log()) == (spent, log)


def test_what_does_not_fit_draws_nothing_and_leaves_a_note(system, ledger, paying, monkeypatch):
    ledger.accountant("d").add(Spending.dp(20, 1, ROWS))
    before = ledger.log()
    monkeypatch.setattr(system.drawn, None)
    with pytest.raises(BudgetExceeded):
        system.ask("few", **paying(system))
    *same, note_draft = ledger.log()
    assert (tuple(same), note_draft.kind) == (before, "refusal")


def test_an_answer_that_cannot_be_stored_is_not_shown(system, ledger, paying, monkeypatch):
    """Charged once, and not drawn again: a full disk would choose among answers."""

    def full(*_):
        raise StorageError("no room")

    where = "quiltwork.holdout.sealed_log.SealedLog.keep"
    place = where if system.name == "holdout" else "quiltwork.budget.ledger.ledger.Ledger.complete"
    with monkeypatch.context() as crash:
        crash.setattr(place, full)
        with pytest.raises(StorageError, match="no room"):
            system.ask("few", **paying(system))
    assert states(ledger) == ["debited"]


def test_a_key_stands_for_one_request(ledger):
    paid = {"ledger": ledger, "dataset": "d", "key": "k"}
    for system in KEPT:
        if system is KEPT[0]:
            system.ask("few", **paid)
            continue
        with pytest.raises(InvalidInputError, match="another request"):
            system.ask("few", **paid)
    assert states(ledger) == ["released"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("sqlite:///a.db", "d"), "not a URL; write ledger=qw.Ledger.open"),
        ((7, "d"), "not a int; write"),
        ((None, "d"), "belong to a ledger"),
        ((None, None, "k"), "belong to a ledger"),
        ((None, None, None, "ana"), "belong to a ledger"),
        (("ledger", None), "without dataset="),
        (("ledger", ""), "dataset must be text"),
        (("ledger", "d", 7), "key must be text"),
        (("ledger", "d", "k", b"ana"), "analyst must be text"),
    ],
)
def test_who_pays_must_be_said_whole(ledger, given, words):
    named = [ledger if one == "ledger" else one for one in given]
    with pytest.raises(InvalidInputError, match=words):
        as_payer(*named)
    assert as_payer(None) is None
    assert as_payer(ledger, "d").dataset == "d"


def test_without_a_payer_the_answer_is_only_drawn():
    def never(*_):
        raise AssertionError

    assert pay_and_store(None, never, lambda: 7, never, never) == 7
