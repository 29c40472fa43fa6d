"""Other libraries' releases in an account: pure ones by ε, Gaussian by μ, others by the least μ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import quiltwork as qw
from quiltwork.budget import least_gdp, spendings_of
from quiltwork.errors import InvalidInputError, UnsupportedError

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])


def laplace(level):
    return lambda epsilon: max(0.0, 1 - math.exp((epsilon - level) / 2))


def gaussian(mu, epsilon):
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("level", [0.05, 0.5, 1.0, 4.0])
def test_the_least_level_lies_above_everywhere_and_a_lower_one_does_not(level):
    mu, profile = least_gdp(laplace(level), level), laplace(level)
    places = np.linspace(0, level, 5000)
    assert all(gaussian(mu, e) >= profile(e) - 1e-12 for e in places)
    assert any(gaussian(0.95 * mu, e) < profile(e) for e in places)


@dataclass
class GaussianDpEvent:
    noise_multiplier: float


@dataclass
class LaplaceDpEvent:
    noise_multiplier: float


@dataclass
class EpsilonDeltaDpEvent:
    epsilon: float
    delta: float


@dataclass
class NoOpDpEvent:
    pass


@dataclass
class ZCDpEvent:
    rho: float


@dataclass
class SelfComposedDpEvent:
    event: object
    count: int


@dataclass
class ComposedDpEvent:
    events: list


def test_events_add_up_as_what_they_are():
    event = ComposedDpEvent(
        [
            SelfComposedDpEvent(GaussianDpEvent(100), 4),
            NoOpDpEvent(),
            LaplaceDpEvent(50),
            EpsilonDeltaDpEvent(0.01, 0),
        ]
    )
    swapped = spendings_of(event, 1, 30, neighbours="substitute", label="theirs")
    assert [one.square for one in swapped] == [4 * Fraction(1, 100**2), 0, 0]
    assert [one.dp_epsilon for one in swapped[1:]] == [Fraction(1, 50), Fraction(1, 100)]
    added = spendings_of(event, 1, 30)
    assert [one.square for one in added] == [16 * Fraction(1, 100**2), 0, 0]
    assert [one.dp_epsilon for one in added[1:]] == [Fraction(1, 25), Fraction(1, 50)]
    account = qw.Accountant(CHAIN, 100, 1, delta=1e-6, pure=0.1)
    account.add_all(added)
    assert 0 < account.used < 1
    assert {one.label for one in swapped} == {"theirs"}


@pytest.mark.parametrize("event", [ZCDpEvent(0.1), EpsilonDeltaDpEvent(1, 1e-6), "a text"])
def test_what_has_no_level_that_adds_up_is_refused(event):
    with pytest.raises(UnsupportedError, match="no level that adds up"):
        spendings_of(event, 1, 9)


def test_an_opendp_measurement_of_pure_level_goes_in_and_others_do_not():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    series = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=100), dp.symmetric_distance()
    noisy = series >> dp.t.then_sum() >> dp.m.then_laplace(20.0)
    (spent,) = spendings_of(noisy, 1, 100)
    assert float(spent.dp_epsilon) == pytest.approx(noisy.map(2))
    account = qw.Accountant(CHAIN, 100, 1)
    account.add(spent)
    assert account.epsilon() > noisy.map(2)
    quiet = series >> dp.t.then_sum() >> dp.m.then_gaussian(20.0)
    with pytest.raises(UnsupportedError, match="a ρ without its tails"):
        spendings_of(quiet, 1, 100)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: least_gdp(lambda e: 0.1, 1), "still 0.1"),
        (lambda: least_gdp(lambda e: min(e, 1), 1), "rises"),
        (lambda: least_gdp(lambda e: 2, 1), "between 0 and 1"),
        (lambda: least_gdp(lambda e: math.nan, 1), "between 0 and 1"),
        (lambda: least_gdp(lambda e: "x", 1), "between 0 and 1"),
        (lambda: least_gdp(laplace(1), 0), "largest"),
        (lambda: spendings_of(GaussianDpEvent(0), 1, 9), "noise_multiplier"),
        (lambda: spendings_of(GaussianDpEvent(1), 9, 1), "stop"),
        (lambda: spendings_of(GaussianDpEvent(1), 1, 9, neighbours="all"), "neighbours"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(ask, said):
    with pytest.raises(InvalidInputError, match=said):
        ask()
