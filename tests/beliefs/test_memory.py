"""Sequences by their place in memory, against NumPy's own answer."""

from __future__ import annotations

import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quiltwork.beliefs.sources import Memory

COLUMNS = st.lists(st.tuples(st.slices(20), st.integers(0, 2)), min_size=1, max_size=4)


@given(COLUMNS, st.slices(20), st.integers(0, 2))
def test_overlap_is_that_of_numpy(seen, rows, column):
    table = np.zeros((20, 3), dtype=np.int32)
    pieces = [table[part, at] for part, at in seen if len(table[part])]
    sought = table[rows, column]
    if not pieces or not len(sought):
        return
    found = Memory.of(pieces).holds(sought)
    shared = any(np.shares_memory(piece, sought) for piece in pieces)
    if all(piece.strides == sought.strides for piece in pieces):
        assert found == shared
    else:  # on the safe side
        assert found or not shared


def test_what_is_gone_is_forgotten_and_its_memory_is_nobodys():
    x = np.arange(10)
    memory = Memory.of([x])
    assert memory.holds(x[3:])
    del x
    gc.collect()
    assert memory.arrays[0][1]() is None
    assert not any(memory.holds(np.arange(10)) for _ in range(50))


def test_very_many_sequences_are_looked_up_one_by_one():
    people = list(np.zeros((20_000, 3)))
    memory = Memory.of(people[::2])
    assert [memory.holds(person) for person in people] == [True, False] * 10_000
