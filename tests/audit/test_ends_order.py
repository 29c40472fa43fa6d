"""Orders in which answers and chain rise: signs of minors are exact, tilts are checked."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from quiltwork.audit.ends import find_order

COUNT = np.array([0, 0, 1])


def stochastically_rises(matrix, tilt) -> bool:
    """From the definition: rows of P(x, z)·y(z), normalised, in stochastic order."""
    rows = [[Fraction(p) * Fraction(y) for p, y in zip(row, tilt, strict=True)] for row in matrix]
    rows = [[weight / sum(row) for weight in row] for row in rows]
    return all(
        sum(rows[x][: j + 1]) >= sum(rows[x + 1][: j + 1])
        for x, j in itertools.product(range(len(rows) - 1), range(len(rows)))
    )


@pytest.mark.parametrize("backwards", [False, True])
def test_rising_is_the_stochastic_order_of_tilted_rows(backwards):
    draw, seen = np.random.default_rng(3), set()
    for _ in range(200):
        matrix = 0.6 * np.eye(3) + 0.4 * draw.dirichlet(np.ones(3), 3)
        order, tilt = find_order(matrix, [COUNT]), np.exp(draw.normal(size=3))
        kept = matrix[np.ix_(order.states, order.states)]
        known = stochastically_rises(kept.T if backwards else kept, tilt[order.states])
        assert order.rises(np.log(tilt)[None], 1e-9, backwards) == known
        if order.always:
            assert known
        seen.add((known, order.always))
    assert seen == {(True, True), (True, False), (False, False)}


def test_the_sign_of_a_minor_does_not_drown_in_rounding():
    for nudge in (-(2.0**-53), 0.0, 2.0**-53):
        matrix = np.array([[0.5, 0.5], [0.5 + nudge, 0.5 - nudge]])
        order = find_order(matrix, [np.array([0, 1])])
        assert order.always == (nudge <= 0)
    same = np.tile([0.1, 0.7, 0.2], (3, 1))
    assert find_order(same, [COUNT]).always


def test_the_order_is_found_whatever_the_states_are_called():
    chain = np.array([[0.8, 0.2, 0, 0], [0.1, 0.7, 0.2, 0], [0, 0.2, 0.6, 0.2], [0, 0, 0.3, 0.7]])
    for shuffled in itertools.permutations(range(4)):
        place = np.argsort(shuffled)
        matrix, top = chain[np.ix_(place, place)], np.eye(4, dtype=np.int64)[0][place]
        found = find_order(matrix, [top, 3 - 2 * top])
        assert found.always
        assert found.signs == (1, -1)
        assert [int(place[s]) for s in found.states] == [3, 2, 1, 0]


def test_answers_that_no_order_serves_have_none():
    chain = np.full((3, 3), 1 / 3)
    assert find_order(chain, [COUNT, np.array([0, 1, 0])]) is None
    assert find_order(np.full((17, 17), 1 / 17), [np.arange(17)]) is None
    assert find_order(chain, [np.zeros(3, dtype=np.int64)]).always
