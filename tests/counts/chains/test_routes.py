"""Routes to a private count: the worked example, and every row's promise against the audit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import audit, queries
from quiltwork.counts import compare_routes
from quiltwork.counts.chains.routes import remapped_loss

CHAIN = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])


@pytest.fixture(scope="module")
def found():
    return compare_routes(CHAIN, 30, 1, queries.count(1), distance=0.01)


def test_the_worked_example(found):
    assert found["quilts, exact influence"].error == pytest.approx(12.83, abs=0.01)
    assert found["quilts, exact influence, remapped"].error == pytest.approx(2.85, abs=0.005)
    assert found["sweep"].error == pytest.approx(3.28, abs=0.01)
    assert found["sweep"].level == pytest.approx(1, rel=1e-8)
    assert found["exact calibration, remapped"].error == pytest.approx(2.15, abs=0.005)
    assert found["optimal mechanism, cap 1"].error == pytest.approx(1.06, abs=0.005)
    assert found["optimal mechanism, cap 2"].error == pytest.approx(0.63, abs=0.005)
    assert found["optimal mechanism"].error == pytest.approx(0.401, abs=0.001)


def test_only_entry_dp_is_not_private_here(found):
    for row in found.rows:
        assert (row.level <= 1 + 1e-9) == row.private
        assert row.nearby >= row.level
    assert {row.route for row in found.rows if not row.private} == {
        "entry DP",
        "entry DP, remapped",
    }


def test_errors_fall_along_the_routes_and_no_route_beats_the_floor(found):
    errors = [row.error for row in found.rows]
    assert errors == sorted(errors, reverse=True)
    private = [row.error for row in found.rows if row.private]
    assert min(private) == found["optimal mechanism"].error


def test_a_figure_and_a_table_show_it(found):
    header, rows = found.table()
    assert len(header) == len(rows[0])
    assert len(rows) == 17
    assert "not private here" in str([tick.get_text() for tick in found.plot().get_yticklabels()])


def test_a_window_has_its_own_counts():
    other = compare_routes(CHAIN, 8, 1, queries.count(1).on(3, 6), caps=[1])
    assert other.rows[-1].error < 2
    assert (
        audit.leakage(
            CHAIN, 8, [(queries.count(1).on(3, 6), 1 / other["exact calibration"].dp_epsilon)]
        )
        <= 1 + 1e-9
    )


def test_the_remapped_loss_is_that_of_clipped_noise_and_bayes_rule():
    """Two-sided geometric noise folded at 0 and n, and the least posterior loss, by hand."""
    n, scale = 7, Fraction(3, 2)
    alpha, counts = np.exp(-1 / 1.5), np.arange(n + 1)
    table = (1 - alpha) / (1 + alpha) * alpha ** np.abs(counts[:, None] - counts)
    table[:, 0], table[:, n] = (alpha**d / (1 + alpha) for d in (counts, n - counts))
    losses = table.T @ np.abs(counts[:, None] - counts) / (n + 1)
    assert remapped_loss(scale, n, qw.Consumer()) == pytest.approx(losses.min(axis=1).sum())
    assert remapped_loss(Fraction(0), n, qw.Consumer()) == 0
