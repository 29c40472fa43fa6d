"""Posteriors in blocks, against the posterior of every answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from quiltwork.counts.remaps.filters import posteriors
from quiltwork.counts.remaps.laws import block_laws


@pytest.fixture(params=["0.000001", "0.4", "0.999", "1"])
def post(request):
    prior = np.random.default_rng(5).dirichlet(np.full(38, 0.2))
    prior[[0, 1, 2, 3, 4, 5, 20, 21, 22, 23, 24, 37]] = 0
    return posteriors(prior / prior.sum(), Fraction(request.param), 0)


def posterior(post, answer):
    counts = np.arange(post.n + 1)
    weights = post.prior * np.exp(-post.rate * np.abs(counts - answer).astype(float))
    return weights / weights.sum()


def test_rows_are_posteriors_with_what_lies_beyond_the_block_added_up(post):
    laws = block_laws(post, 5)
    rows = laws.rows(0, laws.blocks)
    assert laws.blocks == 8
    assert np.array_equal(laws.rows(3, 5), rows[3:5])
    assert laws.first_rows() == pytest.approx(rows[:, 0], rel=1e-12, abs=1e-280)
    for answer in range(post.n + 1):
        b, offset = divmod(answer, 5)
        own = posterior(post, answer)
        block = np.pad(own, (0, 2))[5 * b : 5 * b + 5]
        expected = [own[: 5 * b].sum(), *block, own[5 * b + 5 :].sum()]
        assert rows[b, offset] == pytest.approx(expected, rel=1e-11, abs=1e-280)


def test_laws_of_all_counts_before_and_after_grow_block_by_block(post):
    laws = block_laws(post, 5)
    left, right = laws.entering_left(), laws.entering_right()
    before, after = np.zeros(40), np.zeros(40)
    for b in range(laws.blocks - 1):
        before *= left.old[b]
        before[5 * b : 5 * b + 5] += left.new[b] * left.law[b]
        expected = posterior(post, 5 * b + 5)[: 5 * b + 5]
        assert before[: 5 * b + 5] == pytest.approx(
            expected / (expected.sum() or 1), rel=1e-11, abs=1e-280
        )
    for b in range(laws.blocks - 1, 0, -1):
        after *= right.old[b]
        after[5 * b : 5 * b + 5] += right.new[b] * right.law[b]
        expected = posterior(post, 5 * b - 1)[5 * b :]
        assert after[5 * b : post.n + 1] == pytest.approx(
            expected / (expected.sum() or 1), rel=1e-11, abs=1e-280
        )
