"""The models' values agree with their definitions in exact fractions, and with pycanon."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycanon import anonymity as peer

from quiltwork.results import plain
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    TCloseness,
    verify_m_privacy,
)
from quiltwork.tables.metrics.models import privacy_models
from quiltwork.tables.table import Table
from tests.sizes import sample

rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.integers(0, 5)), min_size=1, max_size=60
)


def frame_of(records: list[tuple[int, str, int]]) -> pd.DataFrame:
    frame = pd.DataFrame(records, columns=["age", "zip", "pay"])
    frame["ill"] = frame["pay"].map(lambda v: f"v{(v * 7) % 5}")
    return frame


def by_definition(frame: pd.DataFrame, sensitive: str, ordered: bool) -> dict[str, object]:
    """Every model from its paper's formula, in fractions, group by group."""
    values = sorted(frame[sensitive].unique())
    whole = Counter(frame[sensitive])
    p = {v: Fraction(whole[v], len(frame)) for v in values}
    ks, ls, entropies, ts, betas, deltas, groups = [], [], [], [], [], [], []
    for _, group in frame.groupby(["age", "zip"]):
        counted = Counter(group[sensitive])
        q = {v: Fraction(counted[v], len(group)) for v in values}
        groups.append(sorted(counted.values(), reverse=True))
        ks.append(len(group))
        ls.append(len(counted))
        entropies.append(-sum(float(x) * math.log(x) for x in q.values() if x))
        gaps = [q[v] - p[v] for v in values]
        if ordered:
            partial = [abs(gap) for gap in accumulate(gaps)]
            ts.append(float(sum(map(float, partial))) / max(1, len(values) - 1))
        else:
            ts.append(sum(map(abs, gaps)) / 2)
        betas.append(max((q[v] - p[v]) / p[v] for v in values))
        deltas.append(max(abs(math.log(q[v] / p[v])) for v in values if q[v]))
    level = min(ls)
    least = None
    if level > 1:
        least = next(
            c for c in range(1, 10**6) if all(g[0] < c * sum(g[level - 1 :]) for g in groups)
        )
    return {
        "k": min(ks),
        "alpha": max(group[0] / sum(group) for group in groups),
        "distinct_l": level,
        "entropy_l": math.exp(min(entropies)),
        "recursive_c": least,
        "t": float(max(ts)),
        "beta": float(max(betas)),
        "enhanced_beta": max(min(float(max(betas)), -math.log(x)) for x in p.values()),
        "delta": max(deltas),
    }


@given(rows, st.booleans())
@settings(max_examples=sample(30, full=60))
def test_every_model_has_the_value_of_its_definition(records, ordered):
    frame = frame_of(records)
    sensitive = "pay" if ordered else "ill"
    found = plain(privacy_models(Table(frame, None, ["age", "zip"], sensitive)))
    for name, value in by_definition(frame, sensitive, ordered).items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


def test_sparse_counts_give_the_same_as_a_small_table():
    """Many groups and values take another path through the counting."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.integers(0, 90, 300), "zip": "x"})
    frame["pay"] = rng.integers(0, 100, 300)
    found = plain(privacy_models(Table(frame, None, ["age", "zip"], "pay")))
    for name, value in by_definition(frame, "pay", ordered=True).items():
        assert found[name] == (None if value is None else pytest.approx(value, rel=1e-9)), name


@pytest.mark.parametrize("sensitive", [["ill"], ["pay"], ["ill", "pay"]])
@pytest.mark.parametrize("seed", range(sample(1, full=3)))
def test_values_agree_with_pycanon(sensitive, seed):
    rng = np.random.default_rng(seed)
    rows = 600
    frame = frame_of(
        list(
            zip(
                rng.integers(0, 4, rows).tolist(),
                rng.choice(["x", "y"], rows).tolist(),
                rng.integers(0, 6, rows).tolist(),
                strict=True,
            )
        )
    )
    known = ["age", "zip"]
    found = privacy_models(Table(frame, None, known, sensitive))
    assert found.k == peer.k_anonymity(frame, known)
    assert (found.alpha, found.k) == peer.alpha_k_anonymity(frame, known, sensitive)
    assert found.distinct_l == peer.l_diversity(frame, known, sensitive)
    assert int(found.entropy_l + 1e-9) == peer.entropy_l_diversity(frame, known, sensitive)
    assert found.t == pytest.approx(peer.t_closeness(frame, known, sensitive))
    assert found.beta == pytest.approx(peer.basic_beta_likeness(frame, known, sensitive))
    assert found.enhanced_beta == pytest.approx(
        peer.enhanced_beta_likeness(frame, known, sensitive)
    )
    assert found.delta == pytest.approx(peer.delta_disclosure(frame, known, sensitive))


@pytest.mark.parametrize("seed", range(5))
def test_with_subjects_the_values_are_those_that_the_verification_counts(seed):
    """Just below (above for t) each value the constraint holds, just beyond it does not."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 4, 90),
            "pay": rng.choice([0, 1, 2, 3], 90, p=[0.5, 0.3, 0.1, 0.1]),
            "person": rng.integers(0, 40, 90),
        }
    )
    table = Table(frame, None, ["age"], "pay", subject="person")
    found = privacy_models(table)
    assert found.k == frame.drop_duplicates(["age", "person"]).groupby("age").size().min()
    assert found.k < frame.groupby("age").size().min()

    def holds(constraint):
        return verify_m_privacy(table, constraint, 0).private

    assert holds(KAnonymity(found.k))
    assert not holds(KAnonymity(found.k + 1))
    assert holds(LDiversity(found.distinct_l))
    assert not holds(LDiversity(found.distinct_l + 1))
    assert holds(EntropyLDiversity(found.entropy_l - 1e-9))
    assert not holds(EntropyLDiversity(found.entropy_l + 1e-9))
    assert holds(TCloseness(found.t + 1e-9, "ordered"))
    assert not holds(TCloseness(found.t - 1e-9, "ordered"))
    assert holds(RecursiveLDiversity(found.recursive_c, found.distinct_l))
    if found.recursive_c > 1:
        assert not holds(RecursiveLDiversity(found.recursive_c - 1, found.distinct_l))


def test_pycanon_sorts_frequencies_the_other_way_and_so_says_less():
    """Three records of one value and one of two others are not (1, 3)-diverse: 3 < 1·1 is false."""
    frame = pd.DataFrame({"age": ["a"] * 5, "zip": ["b"] * 5, "ill": ["x", "x", "x", "y", "z"]})
    found = privacy_models(Table(frame, None, ["age", "zip"], "ill"))
    assert found.recursive_c == 4
    assert peer.recursive_c_l_diversity(frame, ["age", "zip"], ["ill"]) == (1, 3)
