"""What calibration asks a belief, and what it answers.

A problem is a query on a series and the time points that are secret. The answer names the noise,
the time point that needs it, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.beliefs.secrets import SecretPairs
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.influence.quilts.intervals import Cost
from quiltwork.influence.quilts.protocol import IntArray
from quiltwork.influence.sweep import Charge

if TYPE_CHECKING:
    from quiltwork.queries.base import Query


@dataclass(frozen=True)
class CalibrationProblem:
    """A query on a series of some length, every `episode` nodes in a row within `nodes` secret.

    With `pairs` only these values of a node are kept apart.
    Without a query it is any that moves by at most 1 for every node that changes.
    """

    query: Query | None
    length: int
    nodes: range
    episode: int = 1
    pairs: SecretPairs | None = None

    def __post_init__(self) -> None:
        query = self.query
        if query is None:
            return
        if not hasattr(query, "change") or not hasattr(query, "window"):
            raise InvalidInputError(
                f"query is {shortened(query)}; give one of quiltwork.queries, for example "
                "queries.histogram()."
            )
        query.window(self.length)

    @property
    def cost(self) -> Cost:
        """How far runs of nodes can move the query: by their number of nodes without one."""
        if self.query is None:
            return number_of_nodes
        return partial(_change, self.query, self.length)

    @cached_property
    def charge(self) -> Charge:
        """The same per point, pair and window."""
        return Charge.of(self.query, self.length)


@dataclass(frozen=True)
class WorstSecret:
    """The noise that a belief asks for, or what it makes of some noise.

    Attributes:
        scale: of the noise on the query's integers, at or above the least sufficient one.
        node: a node that needs the most (of an episode the first).
        change: how far what is paid for at once can move the query, in its integers.
        nearby: how many nodes that is.
        influence: what the rest adds to the leakage.
        quilt: what separates the two, where the method works by quilts.
        before: of `influence`, what earlier nodes add; 0 where the method does not say.
    """

    scale: Fraction
    node: int
    change: int
    nearby: int
    influence: float
    quilt: tuple[int, ...] = ()
    before: float = 0.0


def _change(query: Query, length: int, start: IntArray, stop: IntArray) -> IntArray:
    return query.change(start, stop, length)


def number_of_nodes(start: IntArray, stop: IntArray) -> IntArray:
    """The cost of a query that moves by at most 1 per node."""
    return np.asarray(np.maximum(stop - start + 1, 0))
