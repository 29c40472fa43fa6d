"""Reports: a promise against the truth, brackets where the joint law is out of reach."""

from __future__ import annotations

import json

import pytest

import quiltwork as qw
from quiltwork import audit, queries

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


def test_a_kept_promise_and_how_much_noise_it_wastes():
    found = audit.report(CHAIN, 100, [(queries.count(1), 12.84)], claimed=1)
    assert found.sound is True
    assert found.tightness == pytest.approx(1 / 0.2409, rel=1e-3)
    assert "holds" in found.explain()
    assert f"time point {found.worst.node}" in found.explain()


def test_a_broken_promise_is_called_so():
    found = audit.report(CHAIN, 100, [(queries.count(1), 1)], claimed=1)
    assert found.sound is False
    assert found.lower > 3
    assert "BROKEN" in found.explain()


def test_plain_differential_privacy_hears_what_it_leaks():
    found = audit.report(CHAIN, 100, [(queries.count(1), 1)])
    assert found.claimed is None
    assert found.sound is None
    assert found.dp_epsilon == 1
    assert found.upper > 3
    assert "Plain differential privacy" in found.explain()


def test_a_histogram_out_of_reach_is_bracketed_by_its_cells_and_its_promise():
    chain = qw.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.3, 0.7]])
    scale = qw.calibrate(chain, 200, 1.0, query=queries.histogram()).scale
    found = audit.report(chain, 200, [(queries.histogram(), scale)], claimed=1)
    cells = [audit.leakage(chain, 200, [(queries.count(s), scale)]) for s in chain.states]
    assert not found.joint
    assert found.lower == pytest.approx(max(cells), abs=1e-9)
    assert found.upper == 1
    assert found.tightness is None
    assert "between" in found.explain()


def test_a_small_histogram_is_audited_jointly():
    release = [(queries.histogram(), 5)]
    found = audit.report(CHAIN, 12, release, claimed=2)
    assert found.lower <= audit.leakage(CHAIN, 12, release) == found.upper
    assert found.upper - found.lower < 1e-9


def test_without_a_promise_a_large_histogram_has_no_upper_end():
    chain = qw.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0, 0.3, 0.7]])
    found = audit.report(chain, 200, [(queries.histogram(), 20)])
    assert found.upper is None
    assert "at least" in found.explain()


def test_the_document_holds_everything():
    document = json.loads(audit.report(CHAIN, 9, [(queries.count(1), 4)], claimed=1).to_json())
    assert document["schema"] == "quiltwork/audit"
    assert document["sound"] is True
    assert document["states"] == [1, 0]


def test_an_answer_without_noise_leaks_without_bound():
    found = audit.report(CHAIN, 9, [(queries.count(1), 0)], claimed=1)
    assert found.sound is False
    assert found.tightness is None
    assert json.loads(found.to_json())["lower"] is None
