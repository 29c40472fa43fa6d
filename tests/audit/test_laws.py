"""Convolution of laws in logarithms against sums term by term."""

from __future__ import annotations

import numpy as np
import pytest

from quiltwork.audit.laws import _log_convolve


def term_by_term(one, other, cells):
    law = np.full(cells, -np.inf)
    for code, weight in enumerate(one):
        for further, more in enumerate(other):
            if weight + more > -np.inf:
                law[code + further] = np.logaddexp(law[code + further], weight + more)
    return law


@pytest.mark.parametrize("seed", range(40))
def test_tilted_convolutions_equal_sums_term_by_term(seed):
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 30, 2)
    one, other = (np.log(draw.random(n)) * draw.choice([1, 10, 400]) for n in sizes)
    one = one + draw.normal() * 30 * np.arange(sizes[0])
    for law in (one, other):
        law[draw.random(len(law)) < 0.3] = -np.inf
    cells = int(sizes.sum()) + 1
    truth = term_by_term(one, other, cells)
    found, slopes = _log_convolve(one, other, cells, [0.5])
    again, _ = _log_convolve(one, other, cells, slopes)
    tolerance = 1e-13 * (1 + np.abs(truth[np.isfinite(truth)]).max(initial=0))
    for law in (found, again):
        assert ((law == -np.inf) == (truth == -np.inf)).all()
        seen = np.isfinite(truth)
        assert np.abs(law[seen] - truth[seen]).max(initial=0) <= tolerance
