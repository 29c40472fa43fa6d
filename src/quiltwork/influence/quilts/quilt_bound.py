"""The bound of a belief by quilts: a node pays for its nearby set and its best quilt's influence.

Quilts are searched up to a reach that grows until none beyond can win: a quilt with a side farther
away has at least the nodes up to the reach nearby, and once these alone cost more than the worst
node needs, the result is final. The cost does not grow with the length, except for rows in no
order.

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
"""The search ends here: the best quilt up to it is sound, and going on would take minutes."""


@dataclass(frozen=True, eq=False)
class QuiltBound(BeliefBound):
    """The bound of one belief by the quilts of one method, for a series of a given length."""

    belief: Belief
    length: int
    method: InfluenceMethod
    theorem: ClassVar[str] = "Nearby rows"
    by_levels: ClassVar[bool] = True
    swept: ClassVar[bool] = False

    def families(self, reach: int) -> Iterator[QuiltFamily]:
        """The quilt families of the belief."""
        return quilt_families(self.belief, self.length, reach, self.method)

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no node leaks more than epsilon, by quilts.

        Raises:
            UnsupportedError: for episodes, for which there are no quilts.
        """
        if problem.episode > 1:
            raise UnsupportedError(
                f"{argument('method', self.method)} protects single time points. Episodes of "
                f"{problem.episode} need the sweep and a chain: leave method out."
            )
        price = ScaleFor(epsilon)
        worst, _ = self.worst(problem.cost, price, problem.nodes)
        return _as_worst_secret(worst, price.rounded_up(worst))

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """The leakage of noise of this scale about the worst node, rounded up, and that node."""
        price = LeakAt(1 / scale if scale else Fraction(0))
        worst = self.worst(problem.cost, price, problem.nodes)[0]
        return price.rounded_up(worst), _as_worst_secret(worst, scale)

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The noise that each node needs by its best quilt."""
        price = ScaleFor(epsilon)
        _, reach = self.worst(problem.cost, price, problem.nodes)
        return node_scales(self.families(reach), problem.cost, price, problem.nodes)

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst row of clusters or a network: the least cost over its quilts."""
        candidates = (
            worst
            for rows, worst in self._rows(charges)
            if ((rows >= nodes.start) & (rows < nodes.stop)).any()
        )
        return max(candidates, key=lambda worst: worst.exact, default=WorstPoint())

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """The leakage about each row of clusters or a network."""
        values = np.zeros(self.length)
        for rows, worst in self._rows(charges):
            values[rows - 1] = np.maximum(values[rows - 1], float_up(worst.exact))
        protected = np.array(nodes)
        return protected, values[protected - 1]

    def _rows(self, charges: Charges) -> Iterator[tuple[IntArray, WorstPoint]]:
        """Rows of clusters or a network, with the leakage about each of them. O(rows·quilts)."""
        for family in self.families(_FAR):
            if isinstance(family, ClusterFamily):
                runs = charges.charges(family.first, family.last)
                sums = np.add.reduceat(runs, family.offset[:-1])
                totals, index = np.unique(sums, return_inverse=True)
                order = np.argsort(index[family.cluster], kind="stable") + 1
                ends = np.cumsum(np.bincount(index[family.cluster], minlength=len(totals)))
                for rows, total in zip(np.split(order, ends[:-1]), totals.tolist(), strict=True):
                    exact = min(Fraction(int(total), charges.denominator), charges.total)
                    yield rows, WorstPoint(exact, int(rows[0]))
            elif isinstance(family, ListedFamily) and not family.is_known:
                yield np.array(family.nodes), _best_quilt(family, charges)

    def cost_alone(self, charge: Charge, unit: int, nodes: range) -> Fraction:
        """The cost of one release for the worst node by its best quilt, in 1/`unit`."""
        price = LeakAt(Fraction(1, unit))
        return Fraction(price.rounded_up(self.worst(charge.changes, price, nodes)[0]))

    def worst(self, cost: Cost, price: Price, nodes: range) -> tuple[BestQuilt, int]:
        """Return the node in `nodes` with the highest price, and the reach that settled it."""
        reach = _FIRST_REACH
        while True:
            result = worst_node(self.families(reach), cost, price, nodes)
            assert result is not None  # noqa: S101  (families cover every node)
            best, family = result
            settled = best.price <= self._least_beyond(best, reach, cost, price)
            if family.complete or settled or reach >= _MOST_REACH:
                return best, reach
            # few rounds, and each repeats little of the one before
            reach *= 16

    def _least_beyond(self, best: BestQuilt, reach: int, cost: Cost, price: Price) -> float:
        """Return the least price of a quilt with a side farther than `reach`, for this node.

        A side beyond which the cost no longer grows is better dropped altogether.
        """
        node, floor = best.node, np.inf
        sides = (
            (max(1, node - reach), node, 1, node),
            (node, min(self.length, node + reach), node, self.length),
        )
        for start, stop, first, last in sides:
            near_cost, total_cost = cost(np.array([start, first]), np.array([stop, last])).tolist()
            # otherwise dropping the side costs no more, and the search has tried that
            if near_cost < total_cost:
                floor = min(floor, float(price(np.array([near_cost]), np.zeros(1))[0]))
        return floor


def _as_worst_secret(best: BestQuilt, scale: Fraction) -> WorstSecret:
    """The result of a search as a `WorstSecret`."""
    return WorstSecret(scale, best.node, best.cost, best.nearby, best.influence, best.quilt)


def _best_quilt(family: ListedFamily, charges: Charges) -> WorstPoint:
    """The leakage about a row: the least, over its quilts, of nearby charges and influence."""
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
    """Return the method with the sharpest quilts for a belief."""
    return "exact"


@default_quilts.register(ChainBox)
@default_quilts.register(CyclicChain)
@default_quilts.register(DatedChain)
def _(belief: ChainBox | CyclicChain | DatedChain) -> InfluenceMethod:
    return "approx"


@default_quilts.register
def _(belief: HiddenChain) -> InfluenceMethod:
    return "group"
