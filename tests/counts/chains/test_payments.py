"""Who pays for an optimal mechanism: the beliefs it was made for, under a key of its own."""

from __future__ import annotations

import pytest

import quiltwork as qw
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries import count

WEAK = qw.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
STRONG = qw.MarkovChain([[0.99, 0.01], [0.01, 0.99]])


def made(state=1, loss="absolute", cap=None):
    return qw.optimal_for_chain(WEAK, 6, 0.5, qw.Consumer("uniform", loss), count(state), cap)


@pytest.fixture
def ledger(tmp_path):
    with qw.Ledger.open(f"sqlite:///{tmp_path}/budget.db") as opened:
        opened.create("weak", WEAK, 6, 2)
        opened.create("strong", STRONG, 6, 2)
        opened.create("longer", WEAK, 7, 2)
        opened.create("stretches", WEAK, 6, 2, episode=2)
        yield opened


@pytest.mark.parametrize("dataset", ["strong", "longer", "stretches"])
def test_a_mechanism_without_a_level_is_paid_only_where_its_promise_holds(ledger, dataset):
    with pytest.raises((InvalidInputError, UnsupportedError)):
        made().release(3, ledger=ledger, dataset=dataset)
    assert ledger.history(dataset) == ()
    assert 0 <= made().release(3, ledger=ledger, dataset="weak") <= 6


def test_a_key_tells_mechanisms_apart(ledger):
    first = made(cap=1)
    answer = first.release(3, ledger=ledger, dataset="weak", key="k")
    assert first.release(3, ledger=ledger, dataset="weak", key="k") == answer
    for other in (made(cap=1, loss="squared"), made(state=0, cap=1, loss="binary")):
        with pytest.raises(InvalidInputError, match="another request"):
            other.release(3, ledger=ledger, dataset="weak", key="k")
