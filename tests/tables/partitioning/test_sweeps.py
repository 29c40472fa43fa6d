"""Large nodes are cut from counts where whole levels are cut, also under hierarchies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiltwork.tables.partitioning import mondrian, sweeps
from quiltwork.tables.partitioning.guards import CountingGuard
from quiltwork.tables.partitioning.mondrian import Rules
from quiltwork.tables.partitioning.records import records_of
from quiltwork.tables.table import Table
from tests.sizes import sample


def labelled(seed: int, rows: int, leaves: int, lost: bool) -> Table:
    """Records with a hierarchy of three levels, its leaves in no order of their own."""
    rng = np.random.default_rng(seed)
    names = [f"v{name}" for name in rng.permutation(leaves)]
    tree = [(name, f"part {i // 4}", f"half {i // 8}", "*") for i, name in enumerate(names)]
    place: list[str | None] = list(rng.choice(names, rows))
    if lost:
        place[0] = None
    frame = pd.DataFrame(
        {
            "who": rng.choice(["A", "B", "C"], rows),
            "place": place,
            "age": rng.integers(20, 60, rows),
            "ill": rng.choice(["flu", "cold", "asthma"], rows),
        }
    )
    known, trees = ["place", "age"], {"place": tree}
    return Table(frame, "who", known, "ill", hierarchies=trees, missing="value")


@settings(max_examples=sample(15, full=30))
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(20, 200),
    leaves=st.integers(2, 20),
    lost=st.booleans(),
    m=st.integers(0, 2),
)
def test_sweeps_cut_between_labels_as_levels_do(seed, rows, leaves, lost, m):
    records = records_of(labelled(seed, rows, leaves, lost).encoded)
    guard = CountingGuard(3, 2, m)
    by_levels = mondrian.mondrian(records, guard, Rules())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mondrian, "BATCH", 5)
        patch.setattr(sweeps, "_PART", 7)
        by_counts = mondrian.mondrian(records, guard, Rules())
    assert len(set(zip(by_levels.tolist(), by_counts.tolist(), strict=True))) == (
        by_levels.max() + 1
    )
    assert by_levels.max() == by_counts.max()


def test_with_as_many_providers_as_records_levels_are_cut_whole():
    records = records_of(labelled(1, 50, 4, False).encoded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "_MOST_CELLS", 8)
        assert not mondrian.counts_decide(CountingGuard(3, 2, 1), records, Rules())
    assert mondrian.counts_decide(CountingGuard(3, 2, 1), records, Rules())
    assert not mondrian.counts_decide(CountingGuard(3, 2, 1), records, Rules(relaxed=True))
    assert not mondrian.counts_decide(CountingGuard(3, 2, 1), records, Rules(split="loss"))
