"""Numbers are counted alike by a table and by sorting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.tables import distinct


@pytest.mark.parametrize("small", [1024, -(10**9)])
@given(numbers=st.lists(st.integers(0, 40), max_size=60))
def test_numbers_are_counted_alike_by_a_table_and_by_sorting(small, numbers):
    expected = sorted(Counter(numbers).items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distinct, "_SMALL", small)
        listed = np.array(numbers, dtype=np.int64)
        found, counts = distinct.counted(listed, 41)
        there = distinct.present(listed, 41)
    assert list(zip(found.tolist(), counts.tolist(), strict=True)) == expected
    assert there.tolist() == found.tolist()
