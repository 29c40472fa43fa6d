"""Chains that follow the clock of a zone: phases, laws, leakage across changes, by enumeration."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise, product
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import queries
from quiltwork.beliefs import CyclicChain, DatedChain, belief_from_json, calendars
from quiltwork.beliefs.calendars import Calendar
from quiltwork.errors import InvalidInputError, UnsupportedError

HOUR = 3600
SPRING, AUTUMN = 3, 7
BOTH = Calendar(
    "Test/Both", -200 * HOUR, 500 * HOUR, 0, ((SPRING * HOUR, HOUR), (AUTUMN * HOUR, 0))
)
GRID = qw.Grid(step="1h")
LENGTH = 10
SEEDS = range(10)


def days(seed, phases=4, size=2):
    """A belief about a day of four hours, with phases that differ much."""
    rows = np.random.default_rng(seed).dirichlet([0.7] * size, size=(phases, size))
    matrices = (rows + 0.03) / (rows + 0.03).sum(axis=2, keepdims=True)
    return CyclicChain(matrices, grid=GRID, anchor=0, calendar=BOTH)


def phase_at(hour, phases=4):
    """What clocks show at an hour of UTC, counted without the belief."""
    return (hour + (SPRING <= hour < AUTUMN)) % phases


def law_of(day, hours):
    """The law at the last of some hours, from the cycle's at the first, step by step."""
    law = np.asarray(day.laws[phase_at(hours[0])])
    for hour in hours[:-1]:
        law = law @ day.matrices[phase_at(hour)]
    return law


def paths(day, begin, law):
    """Every path of a series from an hour on, with its probability."""
    for path in product(range(day.size), repeat=LENGTH):
        steps = [day.matrices[phase_at(begin + t)][a, b] for t, (a, b) in enumerate(pairwise(path))]
        yield path, law[path[0]] * np.prod(steps)


def leakage(day, begin, law, window, scale):
    """The largest log-ratio of a noisy count of state 1 given two states of one time point."""
    laws = np.zeros((LENGTH, day.size, LENGTH + 1))
    for path, p in paths(day, begin, law):
        count = sum(path[window[0] - 1 : window[1]])
        for t, state in enumerate(path):
            laws[t, state, count] += p
    laws /= laws.sum(axis=2, keepdims=True)
    centres = np.arange(LENGTH + 1)
    noisy = laws @ np.exp(-np.abs(centres[:, None] - centres[None]) / scale)
    logs = np.log(noisy)
    return float((logs[:, :, None] - logs[:, None]).max())


@pytest.mark.parametrize("begin", [0, 2, 4, 6])
def test_no_time_point_leaks_more_than_epsilon_across_both_changes(begin):
    """Against who has the laws as they are: the cycle's long before, and what steps made of it."""
    worst = []
    for seed in SEEDS:
        day = days(seed)
        dated = day.beginning(begin * HOUR)
        truth = law_of(day, range(-400, begin + 1))
        for window in ((1, LENGTH), (2, 5), (5, 7)):
            query = queries.count(1).on(*window)
            made = qw.calibrate(dated, LENGTH, 1.0, query=query)
            worst.append(leakage(day, begin, truth, window, made.scale))
    assert max(worst) <= 1 + 1e-9
    assert max(worst) > 0.97
    assert np.median(worst) > 0.6


def test_laws_are_followed_through_changes_and_a_phase_s_own_law_is_too_little():
    apart = []
    for seed in SEEDS:
        day = days(seed)
        dated = day.beginning(0)
        for t in range(1, LENGTH + 1):
            truth = law_of(day, range(-400, t))
            assert np.allclose(dated.marginal(t), truth, rtol=1e-10)
            own = day.laws[phase_at(t - 1)]
            apart.append(np.abs(np.diff(np.log(truth) - np.log(own))).max())
        assert np.allclose(day.beginning(5 * HOUR).start, dated.marginal(6))
    assert max(apart) > 0.5
    steady = days(1).starting(1)
    assert np.allclose(days(1).beginning(-47 * HOUR).marginal(3), steady.marginal(3))


def test_noise_without_the_change_is_too_little_where_clocks_change():
    """So that the tests above would notice: the cycle that goes on is calibrated for less."""
    short = [
        leakage(day, 0, day.laws[0], (1, LENGTH), qw.calibrate(day, LENGTH, 1.0).scale)
        for day in map(days, SEEDS)
    ]
    assert max(short) > 1.05


@pytest.mark.parametrize(("length", "window"), [(700, (480, 530)), (3000, (1180, 1230))])
def test_long_series_leak_no_more_by_the_exact_audit(length, window):
    changes = tuple((hour * HOUR, HOUR * (n % 2 == 0)) for n, hour in enumerate((333, 500, 1200)))
    known = Calendar("Test/Long", -400 * HOUR, 9000 * HOUR, 0, changes)
    told = []
    for seed in range(3):
        day = days(seed, phases=24)
        dated = CyclicChain(day.matrices, grid=GRID, anchor=0).beginning(0, known)
        query = queries.count(1).on(*window)
        made = qw.calibrate(dated, length, 1.0, query=query)
        told.append(qw.audit.leakage(dated, length, [(query, made.scale)]))
    assert max(told) <= 1 + 1e-9
    assert max(told) > 0.85


def test_accounts_and_quilts_bound_what_the_audit_tells():
    for seed in range(6):
        dated = days(seed).beginning(HOUR)
        account = qw.Accountant(dated, LENGTH)
        account.spend(dp_epsilon=0.2, start=1, stop=6)
        account.spend(dp_epsilon=0.1, start=4)
        asked = [(queries.count(1).on(1, 6), 5), (queries.count(1).on(4, LENGTH), 10)]
        exact = qw.audit.leakage(dated, LENGTH, asked)
        assert 0.3 * account.epsilon() < exact <= account.epsilon() + 1e-9
        sweep, quilts = (
            qw.calibrate(dated, LENGTH, 1.0, method=method).scale for method in ("sweep", "approx")
        )
        assert sweep <= quilts * (1 + 1e-12)


def test_phases_are_those_of_the_zone_to_the_hour():
    begin = int(datetime(2026, 2, 1, tzinfo=UTC).timestamp())
    zone = ZoneInfo("Europe/Berlin")
    known = Calendar.of("Europe/Berlin", begin, begin)
    day = CyclicChain(np.full((96, 2, 2), 0.5), grid=qw.Grid(step="15min"), anchor=0)
    length = 300 * 96
    phases = day.beginning(begin, known).phases(length)
    shown = [datetime.fromtimestamp(begin + 900 * t, zone) for t in range(0, length, 7)]
    assert phases[::7].tolist() == [one.hour * 4 + one.minute // 15 for one in shown]
    assert len(known.changes_between(begin, begin + 900 * length)) == 2
    week = CyclicChain(np.full((168, 2, 2), 0.5), grid=GRID, anchor=4 * 86400)
    hours = week.beginning(begin, known).phases(5000)
    shown = [datetime.fromtimestamp(begin + HOUR * t, zone) for t in range(5000)]
    assert hours.tolist() == [one.weekday() * 24 + one.hour for one in shown]


def test_a_document_keeps_the_changes_and_no_machine_is_asked_again(monkeypatch):
    begin = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    day = days(3)
    fitted = CyclicChain(
        day.matrices, grid=GRID, anchor=0, calendar=Calendar.of("Europe/Berlin", begin, begin)
    )
    made = fitted.beginning(begin)
    documents = fitted.to_json(), made.to_json()
    monkeypatch.setattr(calendars, "parse_zone", lambda name: pytest.fail("a table was read"))
    again, dated = map(belief_from_json, documents)
    assert (again, dated) == (fitted, made)
    assert again.beginning(begin) == made
    assert dated.phases(9000).tolist() == made.phases(9000).tolist()
    assert len(set((np.diff(dated.phases(9000)) % 4).tolist())) == 3
    with pytest.raises(InvalidInputError, match=r"covers 2025-01-01 to before 2036-01-01, and the"):
        dated.phases(10**6)
    with pytest.raises(InvalidInputError, match="calendar in a belief's document is damaged"):
        belief_from_json(documents[0].replace("2082758400", "1"))


def test_what_cannot_follow_a_clock_is_refused():
    day = days(2)
    for step in ("2h", "45min"):
        other = CyclicChain(day.matrices, grid=qw.Grid(step=step), anchor=0, calendar=BOTH)
        with pytest.raises(InvalidInputError, match=f"change by 1h .* steps of {step} do not"):
            other.beginning(0)
    with pytest.raises(InvalidInputError, match="needs the moment of phase 0"):
        CyclicChain(day.matrices, calendar=BOTH).beginning(0)
    with pytest.raises(InvalidInputError, match="and calendar="):
        CyclicChain(day.matrices, grid=GRID, anchor=0).beginning(0)
    started = CyclicChain(day.matrices, initial=[0.5, 0.5], grid=GRID, anchor=0)
    with pytest.raises(UnsupportedError, match="an initial distribution"):
        started.beginning(0, BOTH)
    free = CyclicChain(day.matrices, initial="any", grid=GRID, anchor=0, calendar=BOTH)
    assert isinstance(free.beginning(0), DatedChain)
    with pytest.raises(UnsupportedError, match="has initial='any'"):
        qw.audit.leakage(free.beginning(0), 9, [(queries.count(1), 1)])
    with pytest.raises(UnsupportedError, match="has many matrices"):
        qw.calibrate(day.beginning(0), 9, 1.0, method="exact")


def test_from_any_start_takes_no_less_than_from_the_cycle_s():
    for seed in range(6):
        day = days(seed)
        free = CyclicChain(day.matrices, initial="any", grid=GRID, anchor=0, calendar=BOTH)
        anywhere, known = (qw.calibrate(one.beginning(0), LENGTH, 1.0) for one in (free, day))
        assert anywhere.scale >= known.scale * (1 - 1e-9)
        law = np.random.default_rng(seed).dirichlet([1, 1])
        assert leakage(day, 0, law, (1, LENGTH), anywhere.scale) <= 1 + 1e-9
