"""Scores of all groups at once are those of each group."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas
import pytest

from quiltwork.tables.constraints import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.constraints.fitness import score
from quiltwork.tables.partitioning.scores import group_scores
from quiltwork.tables.sparse import count_groups
from quiltwork.tables.table import Table

PARTS = [
    EntropyLDiversity(Fraction(5, 2)),
    EntropyLDiversity(2),
    RecursiveLDiversity(Fraction(3, 2), 2),
    RecursiveLDiversity(2, 5),
    TCloseness(Fraction(3, 10)),
    TCloseness(Fraction(1, 4), "ordered"),
    LDiversity(3),
    Custom(lambda counts: len(counts) > 1, score=lambda counts: len(counts) / 2, name="own"),
]


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("subject", [None, "person"])
@pytest.mark.parametrize("with_k", [False, True])
def test_scores_of_all_groups_are_those_of_each(part, subject, with_k, monkeypatch):
    monkeypatch.setattr("quiltwork.tables.partitioning.scores._CELLS", 40)
    rng = np.random.default_rng(5)
    rows = {
        "p": rng.integers(0, 4, 300),
        "q": rng.integers(0, 40, 300),
        "s": np.minimum(rng.geometric(0.4, 300), 6),
        "person": rng.integers(0, 200, 300),
    }
    encoded = Table(pandas.DataFrame(rows), "p", ["q"], "s", subject=subject).encoded
    labels = np.unique(rows["q"], return_inverse=True)[1]
    counts = count_groups(encoded, labels, int(labels.max()) + 1)
    asked = (KAnonymity(6) & part if with_k else part).bind(encoded)
    found = group_scores(asked, counts, 0.8)
    each = [score(asked, counts.cut(g).left(()), 0.8) for g in range(counts.groups)]
    np.testing.assert_allclose(found, each, rtol=1e-12)
    holds = [asked.holds(counts.cut(g).left(())) for g in range(counts.groups)]
    assert (found >= 1).tolist() == holds
    assert 0 < sum(holds) < len(holds)
