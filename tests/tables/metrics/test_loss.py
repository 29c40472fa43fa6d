"""Information loss, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from quiltwork.tables.metrics.loss import information_loss


def test_losses_are_means_over_cells():
    rng = np.random.default_rng(1)
    widths, sizes = rng.random((7, 3)), rng.integers(1, 40, 7)
    found = information_loss(("a", "b", "c"), widths, sizes, suppressed=5)
    cells = [widths[g, c] for g in range(7) for _ in range(sizes[g]) for c in range(3)] + [1.0] * 15
    assert found.gcp == pytest.approx(np.mean(cells))
    column = [widths[g, 1] for g in range(7) for _ in range(sizes[g])] + [1.0] * 5
    assert found.ncp["b"] == pytest.approx(np.mean(column))
    rows = int(sizes.sum()) + 5
    assert found.discernibility == sum(int(s) ** 2 for s in sizes) + 5 * rows
    assert found.average_class_size == pytest.approx(sizes.mean())
    assert found.relative_class_size == pytest.approx(sizes.mean() / sizes.min())


def test_the_original_loses_nothing_and_one_group_loses_everything():
    assert information_loss(("a",), np.zeros((4, 1)), np.ones(4, dtype=np.int64)).gcp == 0
    assert information_loss(("a",), np.ones((1, 1)), np.array([9])).gcp == 1


def test_discernibility_does_not_overflow():
    big = np.array([4_000_000_000])
    assert information_loss(("a",), np.ones((1, 1)), big).discernibility == 16 * 10**18
