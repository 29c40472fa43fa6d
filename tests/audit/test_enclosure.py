"""Enclosures of the leakage in integers: they contain the truth and agree with the float audit."""

from __future__ import annotations

import pytest

import quiltwork as qw
from evidence.checks.audit_enumeration import enumerate_leakage, random_case
from evidence.enclosure import enclose
from quiltwork import audit, queries

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_enclosure_contains_what_enumeration_finds(seed):
    case = random_case(seed)
    found = enclose(case.chain, case.length, case.releases, case.secrets)
    truth = enumerate_leakage(case)
    assert found.lower - 1e-12 * (1 + truth) <= truth <= found.upper + 1e-12 * (1 + truth)
    assert found.upper - found.lower <= 1e-13 * (1 + truth)


@pytest.mark.parametrize("seed", range(25))
def test_the_float_audit_never_lies_below_the_truth(seed):
    case = random_case(1000 + seed)
    found = audit.worst_case(case.chain, case.length, case.releases, secrets=case.secrets)
    enclosed = enclose(case.chain, case.length, case.releases, case.secrets)
    assert found.at_least <= enclosed.upper
    assert found.epsilon >= enclosed.lower


def test_a_longer_series():
    release = [(queries.count(1), 3.336)]
    enclosed = enclose(CHAIN, 40, release)
    assert enclosed.upper <= audit.leakage(CHAIN, 40, release) <= enclosed.lower + 1e-11


def test_no_noise_and_too_little_noise_are_refused():
    with pytest.raises(qw.UnsupportedError, match="needs noise"):
        enclose(CHAIN, 4, [(queries.count(1), 0)])
    with pytest.raises(qw.UnsupportedError, match="so small"):
        enclose(CHAIN, 4, [(queries.count(1), 1e-6)])
