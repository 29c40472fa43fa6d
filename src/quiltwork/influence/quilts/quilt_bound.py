"""A belief bounded by quilts: a node pays for what is nearby, and for its best quilt's influence.

Quilts are searched up to a reach that grows until nothing beyond can win: one with a side farther
away has at least the nodes up to the reach nearby, and once these alone cost more than the worst
node needs, the answer is final. Nothing here grows with the length, but for rows in no order.

Theorem: docs/theory/influence-curve.md, docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import ClassVar

import numpy as np

from quiltwork.beliefs import Belief, ChainBox, CyclicChain, DatedChain, HiddenChain
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_up
from quiltwork.influence.belief_bound import (
    BeliefBound,
    CalibrationProblem,
    Charges,
    WorstPoint,
    WorstSecret,
)
from quiltwork.influence.profile import Profile
from quiltwork.influence.quilts.families import ClusterFamily, ListedFamily
from quiltwork.influence.quilts.intervals import BestQuilt, Cost, Price
from quiltwork.influence.quilts.node_scales import node_scales
from quiltwork.influence.quilts.prices import LeakAt, ScaleFor
from quiltwork.influence.quilts.protocol import (
    FloatArray,
    InfluenceMethod,
    IntArray,
    QuiltFamily,
    quilt_families,
)
from quiltwork.influence.quilts.worst_node_search import worst_node
from quiltwork.influence.sweep import Charge
from quiltwork.wording import argument

_FAR = 1 << 62
_FIRST_REACH = 1 << 20
_MOST_REACH = 1 << 24
"""No quilt is searched beyond: the best one nearer is sound, and more takes minutes."""


@dataclass(frozen=True, eq=False)
class QuiltBound(BeliefBound):
    """One belief seen by one method, for a series of a given length."""

    belief: Belief
    length: int
    method: InfluenceMethod
    theorem: ClassVar[str] = "Nearby rows"
    by_levels: ClassVar[bool] = True
    swept: ClassVar[bool] = False

    def families(self, reach: int) -> Iterator[QuiltFamily]:
        """The families of the belief."""
        return quilt_families(self.belief, self.length, reach, self.method)

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no node leaks more than epsilon, by quilts.

        Raises:
            UnsupportedError: for episodes, which quilts are not searched for.
        """
        if problem.episode > 1:
            raise UnsupportedError(
                f"{argument('method', self.method)} protects single time points; stretches of "
                f"{problem.episode} take a sweep, which needs a chain."
            )
        price = ScaleFor(epsilon)
        found, _ = self.worst(problem.cost, price, problem.nodes)
        return _needed(found, price.rounded_up(found))

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """What noise of this scale leaks about the worst node, rounded up, and which that is."""
        price = LeakAt(1 / scale if scale else Fraction(0))
        found = self.worst(problem.cost, price, problem.nodes)[0]
        return price.rounded_up(found), _needed(found, scale)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The noise that each node needs by its best quilt."""
        price = ScaleFor(epsilon)
        _, reach = self.worst(problem.cost, price, problem.nodes)
        return node_scales(self.families(reach), problem.cost, price, problem.nodes)

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst row of clusters or a network: the least over its quilts of what both cost."""
        found = (
            worst
            for rows, worst in self._rows(charges)
            if ((rows >= nodes.start) & (rows < nodes.stop)).any()
        )
        return max(found, key=lambda worst: worst.exact, default=WorstPoint())

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """What each row of clusters or a network leaks."""
        values = np.zeros(self.length)
        for rows, worst in self._rows(charges):
            values[rows - 1] = np.maximum(values[rows - 1], float_up(worst.exact))
        every = np.array(nodes)
        return every, values[every - 1]

    def _rows(self, charges: Charges) -> Iterator[tuple[IntArray, WorstPoint]]:
        """Rows of clusters or a network, and what each of them leaks. O(rows·quilts)."""
        for family in self.families(_FAR):
            if isinstance(family, ClusterFamily):
                runs = charges.charges(family.first, family.last)
                sums = np.add.reduceat(runs, family.offset[:-1])
                totals, which = np.unique(sums, return_inverse=True)
                order = np.argsort(which[family.cluster], kind="stable") + 1
                ends = np.cumsum(np.bincount(which[family.cluster], minlength=len(totals)))
                for rows, total in zip(np.split(order, ends[:-1]), totals.tolist(), strict=True):
                    exact = min(Fraction(int(total), charges.denominator), charges.total)
                    yield rows, WorstPoint(exact, int(rows[0]))
            elif isinstance(family, ListedFamily) and not family.is_known:
                yield np.array(family.nodes), _best_quilt(family, charges)

    def cost_alone(self, charge: Charge, unit: int, nodes: range) -> Fraction:
        """What the worst node pays for one release with its best quilt, in 1/`unit`."""
        price = LeakAt(Fraction(1, unit))
        return Fraction(price.rounded_up(self.worst(charge.changes, price, nodes)[0]))

    def worst(self, cost: Cost, price: Price, nodes: range) -> tuple[BestQuilt, int]:
        """Return the node in `nodes` with the highest price and the reach that settled it."""
        reach = _FIRST_REACH
        while True:
            answer = worst_node(self.families(reach), cost, price, nodes)
            assert answer is not None  # noqa: S101  (families cover every node)
            found, family = answer
            settled = found.price <= self._least_beyond(found, reach, cost, price)
            if family.complete or settled or reach >= _MOST_REACH:
                return found, reach
            reach *= 16

    def _least_beyond(self, found: BestQuilt, reach: int, cost: Cost, price: Price) -> float:
        """Return the least that a quilt with a side farther than `reach` can cost this node.

        A side beyond which nothing costs anything more is better dropped altogether.
        """
        node, floor = found.node, np.inf
        sides = (
            (max(1, node - reach), node, 1, node),
            (node, min(self.length, node + reach), node, self.length),
        )
        for start, stop, first, last in sides:
            near, whole = cost(np.array([start, first]), np.array([stop, last])).tolist()
            if near < whole:
                floor = min(floor, float(price(np.array([near]), np.zeros(1))[0]))
        return floor


def _needed(found: BestQuilt, scale: Fraction) -> WorstSecret:
    return WorstSecret(scale, found.node, found.cost, found.nearby, found.influence, found.quilt)


def _best_quilt(family: ListedFamily, charges: Charges) -> WorstPoint:
    """What a row leaks at most: the least, over its quilts, of nearby charges and influence."""
    totals = np.zeros(len(family.influence), dtype=object)
    np.add.at(totals, family.owner, charges.charges(family.start, family.stop).astype(object))
    costs = {
        number: Fraction(int(totals[number]), charges.denominator)
        + Fraction(float(family.influence[number]))
        for number in np.flatnonzero(np.isfinite(family.influence)).tolist()
    }
    best = min(costs, key=costs.__getitem__)
    influence = float(family.influence[best])
    own = float_up(costs[best] - Fraction(influence))
    return WorstPoint(costs[best], family.nodes[0], own, 0.0, influence, family.quilts[best])


@singledispatch
def default_quilts(belief: Belief) -> InfluenceMethod:
    """Return the sharpest quilts that a belief allows."""
    return "exact"


@default_quilts.register(ChainBox)
@default_quilts.register(CyclicChain)
@default_quilts.register(DatedChain)
def _(belief: ChainBox | CyclicChain | DatedChain) -> InfluenceMethod:
    return "approx"


@default_quilts.register
def _(belief: HiddenChain) -> InfluenceMethod:
    return "group"
