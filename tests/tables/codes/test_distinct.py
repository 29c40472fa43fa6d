"""Numbers are counted alike by a table and by sorting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.tables.codes import distinct


@pytest.mark.parametrize("cells", [41, 10**9])
@given(numbers=st.lists(st.integers(0, 40), max_size=60))
def test_numbers_are_counted_alike_by_a_table_and_by_sorting(cells, numbers):
    assert distinct.bincount_is_cheaper(cells, len(numbers)) == (cells == 41)
    found, counts = distinct.distinct_counts(np.array(numbers, dtype=np.int64), cells)
    expected = sorted(Counter(numbers).items())
    assert list(zip(found.tolist(), counts.tolist(), strict=True)) == expected
