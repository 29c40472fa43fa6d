"""The interface of a belief's bound: the noise that it needs, and the leakage of what was spent.

Chains and trees are bounded by the sweep, rows in no order by their quilts, numbers by how far they
move together. Calibration and accounting use this protocol alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.beliefs.secrets import SecretPairs
from quiltwork.errors import InvalidInputError
from quiltwork.exact import shortened
from quiltwork.influence.profile import Profile
from quiltwork.influence.quilts.intervals import Cost
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.sweep import Charge, Levels

if TYPE_CHECKING:
    from quiltwork.influence.gaussian.worst_stretch import SumLevels
    from quiltwork.queries.query import Query


@dataclass(frozen=True)
class CalibrationProblem:
    """A query on a series of some length, and its secrets: every `episode` nodes in a row in
    `nodes`.

    With `pairs` only these pairs of values are secret. Without a query it is any query that moves
    by at most 1 for every node that changes.
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
        if not hasattr(query, "l1_sensitivity"):
            raise InvalidInputError(
                f"query is {shortened(query)}; pass one of quiltwork.queries, for example "
                "queries.histogram()."
            )
        query.window(self.length)

    @property
    def cost(self) -> Cost:
        """The sensitivity of the query to runs of nodes; their number of nodes without a query."""
        if self.query is None:
            return number_of_nodes
        return partial(_change, self.query, self.length)

    @cached_property
    def charge(self) -> Charge:
        """The sensitivity per point, pair and window."""
        return Charge.of(self.query, self.length)


@dataclass(frozen=True)
class WorstSecret:
    """The secret that needs the most noise, or leaks the most at a given noise.

    Attributes:
        scale: of the noise on the query's integers, at or above the least sufficient one.
        node: a node that needs the most (of an episode the first).
        change: the sensitivity of the query, in its integers, to all nodes charged together.
        nearby: the number of these nodes.
        influence: the leakage that the other nodes add.
        quilt: the nodes that separate the two, if the method works by quilts.
        before: the part of `influence` from earlier nodes; 0 if the method does not separate it.
    """

    scale: Fraction
    node: int
    change: int
    nearby: int
    influence: float
    quilt: tuple[int, ...] = ()
    before: float = 0.0


def _change(query: Query, length: int, start: IntArray, stop: IntArray) -> IntArray:
    """The sensitivity of a query to runs of nodes."""
    return query.l1_sensitivity(start, stop, length)


def number_of_nodes(start: IntArray, stop: IntArray) -> IntArray:
    """The cost of a query that moves by at most 1 per node."""
    return np.asarray(np.maximum(stop - start + 1, 0))


class Charges(Protocol):
    """The charges of a set of releases for changing time points, over one denominator."""

    @property
    def denominator(self) -> int:
        """The denominator of all charges."""

    @property
    def total(self) -> Fraction:
        """The charge for changing every time point."""

    @property
    def narrowest(self) -> Fraction | None:
        """The narrowest range to which numbers were clipped."""

    def charges(self, start: IntArray, stop: IntArray) -> Any:
        """The charge for changing each of start..stop, as integers over the denominator."""

    def charge(self, first: int, last: int) -> Fraction:
        """The exact charge of one run."""

    def levels(self, length: int) -> Levels:
        """The spent level of each time point, rounded up."""

    def sum_levels(self, length: int) -> SumLevels:
        """The level that sums of clipped numbers spend on each time point, rounded up."""


@dataclass(frozen=True)
class WorstPoint:
    """The time point that leaks most; `exact` also bounds the leakage of every other.

    For a chain `own` is spent on it, and its neighbours add `before` and `after`; for rows of
    clusters and networks the whole nearby set is charged, and the `quilt` adds `after`.
    """

    exact: Fraction = Fraction(0)
    node: int | None = None
    own: float = 0.0
    before: float = 0.0
    after: float = 0.0
    quilt: tuple[int, ...] = ()


class BeliefBound(Protocol):
    """One belief about a series of some length, or about rows, bounded by one method.

    Secrets are every `episode` nodes in a row within `nodes`.

    Attributes:
        belief: the belief.
        length: of the series.
        method: how influence is bounded.
        theorem: the name of this bound in an account.
        by_levels: whether totals depend on the levels of time points alone.
        swept: whether releases far from a time point hardly add to its leakage.
    """

    belief: Belief
    length: int
    method: str
    theorem: ClassVar[str]
    by_levels: ClassVar[bool]
    swept: ClassVar[bool]

    def required_scale(self, problem: CalibrationProblem, epsilon: Fraction) -> WorstSecret:
        """The least noise with which no secret leaks more than epsilon."""

    def scale_profile(self, problem: CalibrationProblem, epsilon: Fraction) -> Profile:
        """The noise that each secret needs."""

    def leakage_of(self, problem: CalibrationProblem, scale: Fraction) -> tuple[float, WorstSecret]:
        """The leakage of one release with this noise about the worst secret, rounded up."""

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst secret of all releases together."""

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """The first nodes of runs of secrets, and a bound on the leakage of each run."""

    def by_quilts(self) -> BeliefBound:
        """A bound for the same belief whose levels add up (Theorem 3.7)."""
        return self

    def cost_alone(self, charge: Charge, unit: int, nodes: range) -> Fraction | None:
        """The cost of a single release with this charge in 1/`unit`; None without quilts."""
        return None

    def hides_all(self, episode: int) -> bool:
        """Whether every time point has several possible values."""
        return False

    def largest_level(self, nodes: range, episode: int, epsilon: float) -> float | None:
        """The largest level on all time points that leaks at most ε; None if it is not swept."""
        return None

    def driving_states(
        self, problem: CalibrationProblem, scale: Fraction
    ) -> tuple[int, int] | None:
        """The indices of the two values that neighbours distinguish best; None if unknown."""
        return None
