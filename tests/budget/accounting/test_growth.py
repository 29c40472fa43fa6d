"""A total that looks only at what changed is the total of all releases, and no less."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.beliefs import ChainBox, CyclicChain, MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.budget.accounting import worst_point
from quiltwork.influence import sweep_bound
from quiltwork.influence.sweep import Levels, endless, sweep_of
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
    """Swept from end to end, as short series are."""
    length = account.length
    levels = account._account.usage.levels(length)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(endless, "SHORT", 10**9)
        return sweep_of(belief, length, episode).worst(levels, range(1, length + 1)).leak


@pytest.mark.parametrize("belief", BELIEFS, ids=range(len(BELIEFS)))
@given(histories(), st.sampled_from([1, 1, 3]))
@settings(max_examples=sample(2, full=30))
def test_a_grown_total_is_the_total_from_scratch(belief, history, episode):
    length, spendings = history
    account = Accountant(belief, length, episode=episode)
    for number, spending in enumerate(spendings, start=1):
        account.add(spending)
        scratch = Accountant(belief, length, episode=episode)
        scratch.add_all(spendings[:number])
        assert account.epsilon() == pytest.approx(scratch.epsilon(), rel=2.0**-28)
    whole = in_one_piece(belief, account, episode)
    assert account.epsilon() >= min(whole * (1 - 1e-9), float(account._account.usage.total))
    assert account.epsilon() == pytest.approx(whole, rel=1e-6)


def test_only_what_changed_is_looked_at(monkeypatch):
    """Two hundred windows, then one: as long as no level is higher than ever before."""
    rng, length = np.random.default_rng(5), 10**5
    account = Accountant(MarkovChain(P), length)
    starts = rng.integers(1, length - 100, 200).tolist()
    account.add_all([Spending.dp(0.01, start, start + 50) for start in starts])
    account.add(Spending.dp(1, 700, 720))
    before, looked = account.epsilon(), []
    honest = worst_point.Usage.levels_between

    def watched(self, first, last, *more):
        looked.append(last - first)
        return honest(self, first, last, *more)

    monkeypatch.setattr(worst_point.Usage, "levels_between", watched)
    monkeypatch.setattr(worst_point.Usage, "levels", None)
    account.add(Spending.dp(0.01, 50_000, 50_050))
    assert account.epsilon() == before
    account.add(Spending.dp(0.5, 60_000, 60_020))
    assert account.epsilon() == before
    assert len(looked) == 2
    assert max(looked) < 3000


@pytest.mark.parametrize("filled", [False, True])
def test_what_two_ends_do_not_lower_is_kept(monkeypatch, filled):
    """Each debit swept the whole series, though the ends are felt only where totals get higher."""
    monkeypatch.setattr(endless, "MOST_WARM_UP", 64)
    slow, length, asked = MarkovChain([[0.999, 0.001], [0.001, 0.999]]), 2000, []
    honest = sweep_bound.worst_between_ends
    watched = lambda *given: asked.append(given) or honest(*given)  # noqa: E731
    monkeypatch.setattr(sweep_bound, "worst_between_ends", watched)
    account = Accountant(slow, length)
    every = [Spending.dp(0.1, 1, length), Spending.dp(0.1, 900, 920)]
    more = [Spending.dp(0.01, start, start + 9) for start in (300, 1500)]
    if filled:
        every = [Spending.dp(0.001, start, start + 99) for start in range(1, length, 200)]
        more = [Spending.dp(0.001, start, start + 99) for start in range(101, length, 200)]
    account.add_all(every)
    before = account.epsilon()
    looked = len(asked)
    for number, one in enumerate(more, start=1):
        account.add(one)
        scratch = Accountant(slow, length)
        scratch.add_all([*every, *more[:number]])
        assert account.epsilon() == pytest.approx(scratch.epsilon(), rel=2.0**-28)
    assert looked > 0
    if not filled:
        assert account.epsilon() == before
        assert len(asked) == looked + len(more)  # from scratch, and not when it grew
    assert account.epsilon() >= in_one_piece(slow, account, 1) * (1 - 1e-9)


def test_levels_between_are_those_there_and_the_highest_elsewhere():
    account = Accountant(MarkovChain(P), 1000)
    account.add_all([Spending(10, 20, 1, 1, 1), Spending.dp(2, 15, 600), Spending.dp(5, 900, 900)])
    usage = account._account.usage
    nodes, everywhere = np.arange(1, 1001), usage.levels(1000)
    for first, last in ((1, 1000), (1, 12), (11, 17), (16, 16), (21, 22), (700, 1000)):
        near: Levels = usage.levels_between(first, last, 1000, usage.peaks)
        for part, peak in zip(("own", "forward", "backward"), usage.peaks, strict=True):
            true = everywhere.at(getattr(everywhere, part), nodes)
            expected = np.where((nodes < first) | (nodes > last), peak, true)
            assert near.at(getattr(near, part), nodes).tolist() == expected.tolist()
            assert peak == true.max()
