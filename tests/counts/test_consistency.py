from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quiltwork.counts.count_table_level import project


@given(
    st.lists(st.integers(-30, 60), min_size=1, max_size=7),
    st.integers(0, 80),
    st.data(),
)
def test_the_projection_is_the_nearest_consistent_table(noisy, total, data):
    """Against all integer moves of one unit: none comes nearer in the weighted distance."""
    spread = [data.draw(st.sampled_from([0.5, 2.0, 8.0])) for _ in noisy]
    values = project(noisy, spread, total)
    assert sum(values) == total
    assert min(values) >= 0

    def distance(table):
        return sum((v - x) ** 2 / s for v, x, s in zip(table, noisy, spread, strict=True))

    own = distance(values)
    for a in range(len(noisy)):
        for b in range(len(noisy)):
            if a != b and values[a] > 0:
                moved = list(values)
                moved[a] -= 1
                moved[b] += 1
                assert distance(moved) >= own - 2 * max(1 / s for s in spread)


@given(
    st.lists(st.integers(-(10**25), 10**25), min_size=1, max_size=6),
    st.integers(0, 10**26),
    st.data(),
)
def test_totals_add_up_where_floats_skip_integers(noisy, total, data):
    spread = [data.draw(st.sampled_from([0.0, 1e-9, 2.0, 1e12])) for _ in noisy]
    values = project(noisy, spread, total)
    assert sum(values) == total
    assert min(values) >= 0


def test_the_projection_of_reals_is_exact_before_rounding():
    """Weights alike: the projection onto the simplex, against a fine grid search in two cells."""
    assert project([10, -4], [2.0, 2.0], 8) == (8, 0)
    assert project([7, 5], [2.0, 2.0], 8) == (5, 3)
    assert project([7, 5], [1.0, 3.0], 8) == (6, 2)
