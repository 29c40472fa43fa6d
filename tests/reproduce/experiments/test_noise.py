from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from quiltwork.noise import TwoSidedGeometric
from quiltwork.reproduce.experiments.noise import (
    SCALES,
    _expected,
    _p_value,
    _tally,
    chi_square,
)

DRAWS = 4_000_000  # at a million, a scale off by 1 % passes now and then; here at 9 deviations


def test_the_exact_law_is_accepted_and_a_scale_off_by_one_percent_is_not():
    seen = []
    result = chi_square.function(lambda done, total: seen.append(done), draws=DRAWS)
    accepted = [row.ours for row in result.rows if "against" not in row.quantity]
    control = [row.ours for row in result.rows if "against" in row.quantity]
    assert len(accepted) == len(control) == len(SCALES)
    assert min(accepted) > 1e-11
    assert max(control) < 1e-11
    assert seen[-1] == len(SCALES)
    for sheet in result.sheets:
        total = sum(row[1] for row in sheet.rows)
        assert 0.999 * DRAWS < total <= DRAWS


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_expected_counts_add_up(scale):
    law = TwoSidedGeometric.from_scale(scale)
    edge = law.quantile(0.999)
    assert _expected(law, edge, 1000).sum() == pytest.approx(1000)


def test_values_beyond_the_edge_fall_into_the_outer_bins():
    tallied = _tally(np.array([-9, -2, 0, 0, 1, 7]), 2)
    assert list(tallied) == [1, 1, 0, 2, 1, 0, 1]


def test_the_p_value_is_that_of_the_plain_statistic_for_few_bins():
    observed, expected = np.array([12, 8, 30]), np.array([10.0, 10.0, 30.0])
    assert _p_value(observed, expected) == pytest.approx(chi2.sf(0.8, 2), rel=1e-2)
