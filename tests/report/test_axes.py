from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.report.axes import axis_for, label

NUMBERS = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)
POSITIVE = st.floats(min_value=1e-9, max_value=1e9)


@given(values=st.lists(NUMBERS, max_size=8), zero=st.booleans())
def test_a_linear_axis_holds_its_values_and_ticks(values, zero):
    axis = axis_for(values, 10, 110, logarithmic=False, zero=zero)
    for value in [*values, *axis.ticks(), *([0.0] if zero else [])]:
        assert 10 - 1e-6 <= axis.place(value) <= 110 + 1e-6
    assert len(axis.ticks()) <= 7


@given(values=st.lists(POSITIVE, max_size=8))
def test_a_logarithmic_axis_holds_its_values_and_ticks(values):
    axis = axis_for(values, 0, 100, logarithmic=True)
    for value in [*values, *axis.ticks()]:
        assert -1e-6 <= axis.place(value) <= 100 + 1e-6
    assert len(axis.ticks()) <= 8


def test_axes_keep_order_and_direction():
    up = axis_for([0, 10], 300, 0, logarithmic=False)
    assert up.place(10) < up.place(5) < up.place(0)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (12345.0, "12,345"), (0.3, "0.3"), (1e9, "1e+09")]
)
def test_labels_are_short(value, text):
    assert label(value) == text
