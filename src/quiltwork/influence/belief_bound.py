"""What every belief answers: the noise it asks for, and what leaks of whatever was spent.

Chains and trees answer by the sweep, rows in no order by their quilts, numbers by how far they move
together. Whoever calibrates or accounts asks this protocol alone.
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
        if not hasattr(query, "l1_sensitivity"):
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
    return query.l1_sensitivity(start, stop, length)


def number_of_nodes(start: IntArray, stop: IntArray) -> IntArray:
    """The cost of a query that moves by at most 1 per node."""
    return np.asarray(np.maximum(stop - start + 1, 0))


class Charges(Protocol):
    """What a set of releases charges for changing time points, over one denominator."""

    @property
    def denominator(self) -> int:
        """Of all charges."""

    @property
    def total(self) -> Fraction:
        """The charge of everything."""

    @property
    def narrowest(self) -> Fraction | None:
        """The narrowest range that numbers were clipped to."""

    def charges(self, start: IntArray, stop: IntArray) -> Any:
        """What changing each of start..stop is charged, as integers over the denominator."""

    def charge(self, first: int, last: int) -> Fraction:
        """The charge of one run, exactly."""

    def levels(self, length: int) -> Levels:
        """What is spent on each time point, rounded up."""

    def sum_levels(self, length: int) -> SumLevels:
        """What sums of clipped numbers spend on each time point, rounded up."""


@dataclass(frozen=True)
class WorstPoint:
    """The time point that leaks most; `exact` bounds the leakage of every other, too.

    For a chain `own` is spent on it, and its neighbours add `before` and `after`; for rows of
    clusters and networks everything nearby is paid for, and the `quilt` adds `after`.
    """

    exact: Fraction = Fraction(0)
    node: int | None = None
    own: float = 0.0
    before: float = 0.0
    after: float = 0.0
    quilt: tuple[int, ...] = ()


class BeliefBound(Protocol):
    """One belief about a series of some length, or about rows, as one method bounds it.

    Secrets are every `episode` nodes in a row within `nodes`.

    Attributes:
        belief: what it is about.
        length: of the series.
        method: how influence is bounded.
        theorem: what an account calls this bound.
        by_levels: whether the levels of time points are all that a total rests on.
        swept: whether what is spent far from a time point says little about it.
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
        """What one release with this noise leaks about the worst secret, rounded up."""

    def leakage_at(self, charges: Charges, nodes: range, episode: int) -> WorstPoint:
        """The worst secret of all that was spent."""

    def profile(self, charges: Charges, nodes: range, episode: int) -> tuple[IntArray, FloatArray]:
        """Where runs of secrets begin and what each of them leaks at most."""

    def by_quilts(self) -> BeliefBound:
        """The same belief by a bound whose levels add up (Theorem 3.7)."""
        return self

    def cost_alone(self, charge: Charge, unit: int, nodes: range) -> Fraction | None:
        """What a release that charges so many 1/`unit` costs alone; None without quilts."""
        return None

    def hides_all(self, episode: int) -> bool:
        """Whether every time point may be any of several values."""
        return False

    def largest_level(self, nodes: range, episode: int, epsilon: float) -> float | None:
        """The largest level on all time points that leaks at most ε; None if it is not swept."""
        return None

    def driving_states(
        self, problem: CalibrationProblem, scale: Fraction
    ) -> tuple[int, int] | None:
        """The positions of two shown states that neighbours tell apart best, if they are known."""
        return None
