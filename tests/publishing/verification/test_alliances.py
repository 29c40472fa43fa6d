"""The worst coalition is found without going through all of them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas
import pytest

from quiltwork.publishing import max_m
from quiltwork.publishing.constraints import EntropyLDiversity, RecursiveLDiversity, TCloseness
from quiltwork.publishing.constraints.histogram import Histogram
from quiltwork.publishing.group import Group
from quiltwork.publishing.table import Table
from quiltwork.publishing.verification.between import worst_alliance_of
from quiltwork.publishing.verification.definition import breach_between


def some_part(rng, values):
    kind = int(rng.integers(0, 4))
    if kind == 0:
        return EntropyLDiversity([Fraction(3, 2), 2, Fraction(5, 2), 3][int(rng.integers(0, 4))])
    if kind == 1:
        return RecursiveLDiversity(
            [Fraction(1, 2), 1, 3][int(rng.integers(0, 3))], int(rng.integers(1, 4))
        )
    whole = tuple(rng.integers(1, 9, values).tolist())
    t = Fraction(int(rng.integers(1, 12)), 20)
    return TCloseness(t, "equal" if kind == 2 else "ordered", whole)


def some_holdings(rng, providers, values):
    held = rng.integers(0, int(rng.integers(2, 6)), (providers, values))
    held[held.sum(axis=1) == 0, 0] = 1
    return held * int(rng.integers(1, 3))


def holds(part, counts) -> bool:
    return part.holds(Histogram.from_counts(dict(enumerate(counts.tolist()))))


def breached(part, held, size) -> bool:
    """Every coalition, and of every value all its records or none."""
    total = held.sum(axis=0)
    return any(
        not holds(part, total - held[list(team)].sum(axis=0) * np.array(gone))
        for team in combinations(range(len(held)), size)
        for gone in product((0, 1), repeat=held.shape[1])
    )


def agree(groups, seed) -> int:
    """Compare random groups with brute force; return how many were breached."""
    rng = np.random.default_rng(seed)
    broken = 0
    for _ in range(groups):
        providers, values = int(rng.integers(2, 7)), int(rng.integers(2, 5))
        held, part = some_holdings(rng, providers, values), some_part(rng, values)
        size = int(rng.integers(0, providers))
        group = Group.from_counts(held.tolist())
        found = worst_alliance_of(group, part, size, 10**6)
        assert (found.members is not None) == breached(part, held, size), (
            held.tolist(),
            part,
            size,
        )
        if found.members is not None:
            broken += 1
            point = np.zeros(values, dtype=np.int64)
            point[group.values] = found.point
            least = held.sum(axis=0) - held[found.members > 0].sum(axis=0)
            assert found.members.sum() == size
            assert ((point >= least) & (point <= held.sum(axis=0))).all()
            assert not holds(part, point)
    return broken


def test_small_groups_agree_with_every_coalition_and_corner():
    assert 60 < agree(200, seed=1) < 160


@pytest.mark.parametrize("seed", range(4))
def test_larger_groups_agree_with_all_their_coalitions(seed):
    """Of 11 providers any five may collude: 462 coalitions, which the other route goes through."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        group = Group.from_counts(some_holdings(rng, 11, 6).tolist())
        part = some_part(rng, 6)
        outcome, point = breach_between(group, part, 5, 10**6)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("quiltwork.publishing.verification.definition._FEW", 10**9)
            listed, _ = breach_between(group, part, 5, 10**6)
        assert (outcome.coalition is None) == (listed.coalition is None)
        if outcome.coalition is not None:
            assert not part.holds(group.histogram(point))


def crowd(seed=3) -> Table:
    rng = np.random.default_rng(seed)
    rows = {"p": rng.integers(0, 60, 3000), "q": 1, "s": rng.integers(0, 9, 3000)}
    return Table(pandas.DataFrame(rows), "p", ["q"], "s")


def test_sixty_providers_are_settled_exactly():
    """Entropy falls as m grows; the coalition at one more really breaches."""
    table = crowd()
    asked = EntropyLDiversity(8)
    safe = max_m(table, asked)
    assert safe == 30
    assert safe.breach.settled
    assert len(safe.breach.coalition) == safe + 1
    own = table.frame[~table.frame["p"].isin(safe.breach.coalition)]["s"].value_counts()
    left = pandas.Series(safe.breach.left)
    assert (left >= own.reindex(left.index, fill_value=0)).all()
    shares = left / left.sum()
    assert np.exp(-(shares * np.log(shares)).sum()) < 8
