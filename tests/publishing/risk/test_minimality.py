"""Refused cuts, against every middle cut tried by hand with every coalition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from quiltwork.publishing import (
    Custom,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    Table,
    anonymize,
)
from quiltwork.publishing.anonymization import assemble
from quiltwork.publishing.risk import assess, refused_cuts


def middle_cuts(part: pd.DataFrame, columns: list[str]):
    """Both sides of the most even cut of each column; of two such, the one larger on the left."""
    for name in columns:
        cuts = [part[name] <= value for value in sorted(set(part[name]))[:-1]]
        if cuts:
            best = max(cuts, key=lambda left: (-abs(2 * left.sum() - len(part)), left.sum()))
            yield part[best], part[~best]


def withstands(part: pd.DataFrame, rule, m: int) -> bool:
    """Every coalition that leaves out someone takes its records away."""
    owners = sorted(set(part["who"]))
    for size in range(min(m, len(owners) - 1) + 1):
        for coalition in combinations(owners, size):
            if not rule(part[~part["who"].isin(coalition)]):
                return False
    return True


@pytest.mark.parametrize("left_out", [False, True])
@pytest.mark.parametrize("m", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_a_group_counts_if_sizes_allow_a_cut_and_the_constraint_does_not(seed, m, left_out):
    rng = np.random.default_rng(seed)
    rows = 150
    frame = pd.DataFrame(
        {
            "who": rng.choice([*"abc"], rows),
            "age": rng.integers(0, 30, rows),
            "pay": rng.integers(0, 8, rows),
            "ill": rng.choice(["x", "y", "z"], rows, p=[0.85, 0.1, 0.05]),
        }
    )
    asked = KAnonymity(5) & LDiversity(2)
    table = Table(frame, "who", ["age", "pay"], "ill")
    made = anonymize(table, asked, m, method="baseline")
    if left_out:
        labels = np.where(made.labels == 0, -1, made.labels)
        made = assemble(table, labels, str(asked), m, "baseline")
        assert made.suppressed > 0
    expected, records = 0, 0
    for group in range(made.boxes.count):
        part = frame.iloc[made.rows[made.labels == group]]
        allowed = []
        for enough in (
            lambda rest: len(rest) >= 5,
            lambda rest: len(rest) >= 5 and rest["ill"].nunique() >= 2,
        ):
            cuts = middle_cuts(part, ["age", "pay"])
            allowed.append(any(all(withstands(s, enough, m) for s in cut) for cut in cuts))
        if allowed == [True, False]:
            expected, records = expected + 1, records + len(part)
    found = refused_cuts(made, asked)
    assert (found.groups, found.records, found.of) == (expected, records, made.boxes.count)
    assert expected > 0


def test_sizes_alone_refuse_nothing_that_speaks_of_sensitive_values():
    frame = pd.DataFrame({"age": [*range(40)], "ill": ["x", "y"] * 20})
    table = Table(frame, None, ["age"], "ill")
    for asked in (KAnonymity(3), KAnonymity(4) & LDiversity(1)):
        assert refused_cuts(anonymize(table, asked, 0), asked).groups == 0


def test_other_constraints_and_left_out_rows():
    rng = np.random.default_rng(1)
    ill = rng.choice(["x", "y"], 120, p=[0.85, 0.15])
    frame = pd.DataFrame({"age": rng.integers(0, 50, 120), "ill": ill})
    table = Table(frame, None, ["age"], "ill")
    for asked in (
        KAnonymity(4) & EntropyLDiversity(1.3),
        KAnonymity(4) & Custom(lambda counts: len(counts) == 2, eg_monotonic=True),
    ):
        made = anonymize(table, asked, 0, suppression=0.2)
        found = refused_cuts(made, asked)
        assert found.records <= len(made.rows)
        assert 0 < found.groups <= found.of == made.boxes.count


def test_the_warning_has_the_numbers():
    frame = pd.DataFrame({"age": [20, 21, 30, 31, 40, 41, 50, 51], "ill": [*"aababbab"]})
    table = Table(frame, None, ["age"], "ill")
    for asked, words in (
        (KAnonymity(2) & LDiversity(2), "2 of 2 groups, with 8 records"),
        (KAnonymity(2), "no group gives that away"),
    ):
        report = anonymize(table, asked, 0).report()
        assert words in report.assessment.warnings[0].message
        assert report.as_dict()["refused"]["groups"] == (2 if "2 of 2" in words else 0)
    assert assess(table).refused is None
