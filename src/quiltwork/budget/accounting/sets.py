"""Families whose nearby sets are not intervals: clusters, and arbitrary sets of nodes.

Everything is computed in one pass over the runs of the nearby sets, in exact integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.budget.accounting.steps import Integers
from quiltwork.budget.accounting.usage import Charges, Usage
from quiltwork.budget.accounting.worst import Worst
from quiltwork.exact import float_up
from quiltwork.influence.quilts.families import ClusterFamily
from quiltwork.influence.quilts.protocol import FloatArray, IntArray, QuiltFamily


def worst_of_sets(
    families: Iterable[QuiltFamily], usage: Usage, first: int, last: int, length: int
) -> Worst:
    """The worst node in first..last. O(length + runs)."""
    charges = usage.charges(1, length)
    found = (worst_in_set(family, charges, first, last) for family in families)
    return max(found, key=lambda worst: worst.exact, default=Worst(Fraction(0)))


@singledispatch
def worst_in_set(family: Any, charges: Charges, first: int, last: int) -> Worst:
    """The worst node of one family among first..last. O(nodes·candidates)."""
    found = [_at(family, charges, int(node)) for node in family.nodes if first <= node <= last]
    return max(found, key=lambda worst: worst.exact, default=Worst(Fraction(0)))


def _at(family: QuiltFamily, charges: Charges, node: int) -> Worst:
    owner, start, stop = family.spans(node)
    totals = np.zeros(len(family.influence), dtype=object)
    np.add.at(totals, owner, _charged(charges, start, stop))
    bounds = [
        Fraction(int(charge), charges.denominator) + Fraction(float(influence))
        for charge, influence in zip(totals, family.influence, strict=True)
        if np.isfinite(influence)
    ]
    finite = np.flatnonzero(np.isfinite(family.influence))
    best = min(range(len(bounds)), key=bounds.__getitem__)
    candidate = int(finite[best])
    influence = float(family.influence[candidate])
    own = float_up(bounds[best] - Fraction(influence))
    return Worst(bounds[best], node, own, 0.0, influence, family.quilt(node, candidate))


@worst_in_set.register
def _(family: ClusterFamily, charges: Charges, first: int, last: int) -> Worst:
    rows = family.cluster[first - 1 : last]
    if not len(rows):
        return Worst(Fraction(0))
    totals = _cluster_totals(family, charges)
    row = int(np.argmax(totals[rows]))
    return Worst(Fraction(int(totals[rows[row]]), charges.denominator), first + row)


def _charged(charges: Charges, start: IntArray, stop: IntArray) -> Integers:
    """Integer charges of runs; an empty run (stop < start) is charged nothing."""
    full = stop >= start
    found = np.zeros(len(start), dtype=charges.upto.dtype)
    found[full] = charges.of(start[full], stop[full])
    return found


def set_profile(families: Iterable[QuiltFamily], usage: Usage, length: int) -> FloatArray:
    """What every node leaks at most, rounded up. O(length + runs)."""
    charges = usage.charges(1, length)
    values = np.zeros(length)
    for family in families:
        nodes, bounds = set_bounds(family, charges)
        values[nodes - 1] = np.maximum(values[nodes - 1], bounds)
    return values


@singledispatch
def set_bounds(family: Any, charges: Charges) -> tuple[IntArray, FloatArray]:
    """The nodes of one family and what each of them leaks at most."""
    nodes = np.asarray(family.nodes, dtype=np.int64)
    bounds = [float_up(_at(family, charges, int(node)).exact) for node in nodes]
    return nodes, np.array(bounds)


@set_bounds.register
def _(family: ClusterFamily, charges: Charges) -> tuple[IntArray, FloatArray]:
    totals, which = np.unique(_cluster_totals(family, charges), return_inverse=True)
    bounds = np.array([float_up(Fraction(int(total), charges.denominator)) for total in totals])
    return np.arange(1, len(family.cluster) + 1), bounds[which][family.cluster]


def _cluster_totals(family: ClusterFamily, charges: Charges) -> Integers:
    totals: Integers = np.add.reduceat(
        _charged(charges, family.first, family.last), family.offset[:-1]
    )
    return totals
