"""How far to look: quilts are searched up to a reach that grows until nothing beyond can win.

A quilt with a side farther than the reach has at least the nodes up to the reach nearby. Once
these alone cost more than the worst node needs, the answer is final. The reach ends at some 16
million nodes; whatever was found by then holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.errors import UnsupportedError
from quiltwork.influence.question import NoiseNeeded, Question
from quiltwork.influence.quilts.intervals import BestQuilt, Cost, Price
from quiltwork.influence.quilts.prices import LeakAt, ScaleFor
from quiltwork.influence.quilts.protocol import InfluenceMethod, QuiltFamily, quilt_families
from quiltwork.influence.quilts.search import worst_node

_FIRST_REACH = 1 << 20
_MOST_REACH = 1 << 24
"""No quilt is searched beyond: the best one nearer is sound, and more takes minutes."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """One belief seen by one method, for a series of a given length."""

    belief: Belief
    length: int
    method: InfluenceMethod

    def families(self, reach: int) -> Iterator[QuiltFamily]:
        """The families of the belief."""
        return quilt_families(self.belief, self.length, reach, self.method)

    def scale(self, question: Question, epsilon: Fraction) -> NoiseNeeded:
        """The least noise with which no node leaks more than epsilon, by quilts.

        Raises:
            UnsupportedError: for episodes, which quilts are not searched for.
        """
        if question.episode > 1:
            raise UnsupportedError(
                f"method={self.method!r} protects single time points; stretches of "
                f"{question.episode} take a sweep, which needs a chain."
            )
        price = ScaleFor(epsilon)
        found, _ = self.worst(question.cost, price, question.nodes)
        return _needed(found, price.rounded_up(found))

    def told(self, question: Question, scale: Fraction) -> tuple[float, NoiseNeeded]:
        """What noise of this scale leaks about the worst node, rounded up, and which that is."""
        price = LeakAt(1 / scale if scale else Fraction(0))
        found = self.worst(question.cost, price, question.nodes)[0]
        return price.rounded_up(found), _needed(found, scale)

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


def _needed(found: BestQuilt, scale: Fraction) -> NoiseNeeded:
    return NoiseNeeded(scale, found.node, found.cost, found.nearby, found.influence, found.quilt)
