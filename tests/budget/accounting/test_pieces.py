"""The total of a long series, found in pieces, is that of the series swept in one piece."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, CyclicChain, MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.influence.sweep import leakage, sweep_of
from quiltwork.influence.sweep.runs import SideBounds
from tests.sizes import sample

P, Q = [[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.2, 0.8]]
SPARSE = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.9, 0.1, 0.0]]
BELIEFS = (
    MarkovChain(P),
    MarkovChain(P, [0.2, 0.8]),
    MarkovChain([[0.99, 0.01], [0.02, 0.98]], [0.2, 0.8]),
    MarkovChain(SPARSE),
    MarkovChain(SPARSE, "any"),
    MarkovChain([[0, 0.3, 0.7], [0, 0.6, 0.4], [0, 0.1, 0.9]], "any"),
    ChainBox([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]]),
    CyclicChain([P, Q, P]),
)
LEVELS = st.sampled_from([Fraction(1, 100), Fraction(1, 7), Fraction(1, 2)])


@st.composite
def histories(draw):
    """Releases on some time points of a series, one after the other; at first one on all."""
    length, found = draw(st.integers(520, 3000)), []
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(1, length))
        stop = min(length, start + draw(st.sampled_from([0, 5, 300])))
        pair = draw(LEVELS) if draw(st.booleans()) and stop > start else 0
        found.append(Spending(start, stop, draw(LEVELS), pair, draw(st.sampled_from([0, 1]))))
    return length, [Spending.dp(Fraction(1, 50), 1, length), *found]


def in_one_piece(belief, account: Accountant, episode: int) -> float:
    """Swept from end to end, node by node."""
    length = account.length
    levels = account._account.usage.levels(length)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(leakage, "_VERY_FEW", 10**9)
        patched.setattr(SideBounds, "_settled", lambda *_: None)
        return sweep_of(belief, length, episode).worst(levels, range(1, length + 1)).leak


def in_pieces(patched: pytest.MonkeyPatch) -> None:
    """Stretches are followed alone, as in series of many runs."""
    for name in ("_VERY_FEW", "_FEW_RUNS"):
        patched.setattr(leakage, name, 0)


@pytest.mark.parametrize("pieces", [False, True], ids=["runs", "pieces"])
@pytest.mark.parametrize("belief", BELIEFS, ids=range(len(BELIEFS)))
@given(histories(), st.sampled_from([1, 1, 3]))
@settings(max_examples=sample(2, full=30))
def test_a_total_of_runs_or_pieces_is_that_of_every_node(belief, pieces, history, episode):
    """However the releases were added, it is the same number."""
    with pytest.MonkeyPatch.context() as patched:
        if pieces:
            in_pieces(patched)
        compare(belief, history, episode)


def compare(belief, history, episode):
    length, spendings = history
    account, scratch = (Accountant(belief, length, episode=episode) for _ in range(2))
    for spending in spendings:
        account.add(spending)
    scratch.add_all(spendings)
    assert account.epsilon() == scratch.epsilon()
    whole = in_one_piece(belief, account, episode)
    assert account.epsilon() >= min(whole * (1 - 1e-9), float(account._account.usage.total))
    assert account.epsilon() == pytest.approx(whole, rel=1e-6)


def test_slow_chains_are_not_priced_too_low_in_pieces(monkeypatch):
    """Sweeps begin where the bounds that hold everywhere are not forgotten."""
    in_pieces(monkeypatch)
    monkeypatch.setattr(leakage, "MOST_WARM_UP", 64)
    slow, length = MarkovChain([[0.999, 0.001], [0.001, 0.999]]), 2000
    account = Accountant(slow, length)
    account.add_all([Spending.dp(0.1, 1, length), Spending.dp(0.1, 900, 920)])
    for start in (300, 1500):
        account.add(Spending.dp(0.01, start, start + 9))
        assert account.epsilon() >= in_one_piece(slow, account, 1) * (1 - 1e-9)
