"""Beliefs about days meet series that begin at other hours: each is protected against its own."""

from __future__ import annotations

import pandas as pd
import pytest

import quiltwork as qw
from evidence import leakage as enumerated
from quiltwork.beliefs import Grid
from quiltwork.beliefs.cyclic import align_to_starts, require_aligned
from quiltwork.errors import InvalidInputError

NIGHT, NOON = [[0.97, 0.03], [0.05, 0.95]], [[0.5, 0.5], [0.5, 0.5]]
MATRICES = [NIGHT] * 4 + [NOON] * 4
COUNT = qw.queries.count(1)


def day(initial="stationary"):
    """Eight steps of three hours: four are sticky, four forget everything."""
    return qw.CyclicChain(MATRICES, initial=initial, grid=Grid(step="3h"), anchor=0)


def begun(hour: int, states: list[int]) -> pd.Series:
    return pd.Series(
        states, pd.date_range(f"2026-03-02T{hour:02d}", periods=len(states), freq="3h")
    )


def test_each_subject_of_a_pooled_answer_is_protected_against_its_own_hours():
    subjects = [begun(15, [0, 1, 1, 0]), begun(0, [1, 0, 0, 1])]
    released = qw.release(subjects, COUNT, day(), epsilon=1)
    assert len(released.beliefs) == 2
    true = [_pooled_leakage(released.scale, first, other) for first, other in ((5, 0), (0, 5))]
    assert max(true) <= 1 + 1e-9
    noon_only = qw.calibrate(day().starting(5), 4, 1, query=COUNT).scale
    assert _pooled_leakage(noon_only, 0, 5) > 1.2  # the phase of one is not enough for the other
    scales = [qw.calibrate(day().starting(phase), 4, 1, query=COUNT).scale for phase in (0, 5)]
    assert released.scale == pytest.approx(max(scales), rel=1e-6)


def _pooled_leakage(scale: float, first: int, other: int) -> float:
    """What the sum of two independent counts tells about the first, over all pairs of paths."""
    rows, weight = enumerated.all_paths(day().starting(first), 4)
    more, odds = enumerated.all_paths(day().starting(other), 4)
    pairs = rows.repeat(len(more), axis=0), (weight[:, None] * odds).ravel()
    answer = (rows.sum(axis=1)[:, None] + more.sum(axis=1)).ravel()
    return enumerated.additive_leakage(pairs, answer[:, None], [scale], range(1, 5))


def test_only_phases_that_occur_are_turned_to_and_each_once():
    data = [begun(15, [0, 1]), begun(3, [0, 1]), begun(15, [1, 1])]
    plain = qw.MarkovChain(NIGHT)
    found = align_to_starts([day(), plain, day().starting(1)], data)
    assert found == (day().starting(1), day().starting(5), plain)
    assert align_to_starts([day()], [[0, 1, 1]]) == (day(),)


def test_phases_that_no_clock_shows_are_those_of_one_beginning():
    """Noise for the forgetful phases alone would be enough for nobody who begins at night."""
    placeless = qw.CyclicChain(MATRICES)
    qw.release([begun(3, [0, 1, 1]), begun(3, [1, 1])], COUNT, placeless)
    qw.release([[0, 1, 1], [1, 1]], COUNT, placeless)
    with pytest.raises(InvalidInputError, match="in 2 of 8 phases"):
        qw.release([begun(3, [0, 1, 1]), begun(15, [1, 1])], COUNT, placeless)


def test_a_start_of_its_own_belongs_to_one_phase():
    own = day(initial=[1, 0])
    assert align_to_starts([own], [begun(15, [0, 1])]) == (own,)
    with pytest.raises(InvalidInputError, match=r"5 of 8 phases later.*initial distribution"):
        qw.release(begun(15, [0, 1]), COUNT, own)


def test_a_ledger_holds_beliefs_as_they_are(tmp_path):
    with qw.Ledger.open(f"sqlite:///{tmp_path}/b.db") as ledger:
        ledger.create("days", day(), 4, 2)
        ledger.create("both", [day(), day().starting(5)], 4, 2)
        asked = {"ledger": ledger, "epsilon": 1}
        with pytest.raises(
            InvalidInputError, match=r"beliefs of a ledger are fixed.*starting\(5\)"
        ):
            qw.release(begun(15, [0, 1, 1, 0]), COUNT, day(), dataset="days", **asked)
        assert ledger.status("days").total == 0
        subjects = [begun(15, [0, 1, 1, 0]), begun(0, [1, 0, 0, 1])]
        both = [day(), day().starting(5)]
        qw.release(subjects, COUNT, both, dataset="both", **asked)
        assert 0.9 < ledger.status("both").total <= 1
        require_aligned(both, subjects)
