"""What a privacy constraint is: a yes or no about a set of records, with declared monotonicity.

Every constraint depends on a group through `SecretCounts` alone: neither providers nor
quasi-identifiers matter once a coalition's records are taken away. To add one is one class in one
file: `holds` and `fitness` are enough; what else it answers for itself (bounds, worst histograms,
what is left without some records) makes verifying it faster, or possible.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from quiltwork.arguments import flag, instance
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer, proper_fraction, shortened
from quiltwork.tables.codes.group import Group, SparseCounts, Weights
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.coalition_bounds import OPEN, Flags, Ints, Status
from quiltwork.tables.constraints.corners import Corners

if TYPE_CHECKING:
    from quiltwork.tables.codes.encoding import CodedTable

Counter: TypeAlias = Callable[[int], None]
"""Is told how much was looked at; raises where that is too much."""
MOST = 2**31 - 1
"""More than any table has of anything that is asked for by number."""


def read_m(value: Any) -> int:
    """Return how many providers collude."""
    return integer(value, "m", 0, MOST)


class Constraint(ABC):
    """A privacy constraint on the records of one group.

    Its monotonicity is declared, and pruning and shortcuts rely on it.
    """

    @property
    @abstractmethod
    def eg_monotonic(self) -> bool:
        """Whether, once it holds, it holds for every larger set of records (Definition 2.3)."""

    @property
    @abstractmethod
    def generalization_monotonic(self) -> bool:
        """Whether, once it holds in several groups, it holds in their union."""

    @property
    def corners_suffice(self) -> bool:
        """Whether the histograms that satisfy it form a convex set.

        Then, of all sets between two, only those need a look that have all or nothing more of each
        value than the smaller one.
        """
        return False

    @abstractmethod
    def holds(self, left: SecretCounts) -> bool:
        """Tell whether a set of records satisfies the constraint."""

    @abstractmethod
    def fitness(self, left: SecretCounts) -> float:
        """Return how far a set of records fulfils the constraint: ≥ 1 if it holds, below if not."""

    def bind(self, encoded: CodedTable) -> Constraint:
        """Return the constraint for one table, if it depends on the whole of it."""
        return self

    @property
    def parts(self) -> tuple[Constraint, ...]:
        """The constraints that this one is the conjunction of."""
        return (self,)

    @property
    def records_asked(self) -> int:
        """The k of k-anonymity; 1 if that is not asked."""
        return 1

    @property
    def values_asked(self) -> int:
        """The l of distinct l-diversity; 1 if that is not asked."""
        return 1

    @property
    def records_needed(self) -> int:
        """How many records it takes at least, each its own person."""
        return self.records_asked

    @property
    def counts_alone(self) -> bool:
        """Whether it asks for numbers of records and of values, and nothing else."""
        return False

    @property
    def records_alone(self) -> bool:
        """Whether it asks for a number of records, and nothing else."""
        return False

    @property
    def compares_with_whole(self) -> bool:
        """Whether rows that are left out change what groups are compared with."""
        return False

    @property
    def table_values(self) -> int | None:
        """How many values the whole table has, if it compares with that."""
        return None

    def with_reference(self, counts: tuple[int, ...]) -> Constraint:
        """Return it with the whole table's counts by value, if it compares with them."""
        return self

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Return SAFE or BROKEN for groups that bounds on every coalition decide, else OPEN."""
        return np.full(counts.groups, OPEN, dtype=np.int8)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Look in each box for a histogram that violates; None if only trying them all tells."""
        return None

    def needs_coalitions(self, group: Group) -> bool:
        """Tell whether coalitions have to be tried, one by one."""
        return True

    def breach(self, group: Group, m: int, count: Counter) -> tuple[int, ...] | None:
        """Return a coalition that breaches a group which needs no trying; None if there is none.

        `count` is told how much was looked at, and may raise.
        """
        raise NotImplementedError(f"{self} is tried on coalitions")

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Tell which rows, weights by kind of what is left, violate the constraint."""
        return np.array([not self.holds(group.histogram(row)) for row in kept], dtype=np.bool_)

    def without(self, left: SecretCounts, known: int) -> bool:
        """Tell whether it holds whichever `known` records are taken away.

        Raises:
            UnsupportedError: if that cannot be judged.
        """
        if known:
            raise UnsupportedError(f"{self} cannot be judged without knowing who has which value.")
        return self.holds(left)

    def __and__(self, other: Constraint | Callable[..., bool]) -> Constraint:
        return Conjunction((*self.parts, *as_constraint(other).parts))

    def __rand__(self, other: Callable[..., bool]) -> Constraint:
        return as_constraint(other) & self


@dataclass(frozen=True)
class Conjunction(Constraint):
    """All of several constraints: breached if and only if one of them is.

    It has a monotonicity if all its parts have it (Observation 2.2).
    """

    all_of: tuple[Constraint, ...]

    @property
    def parts(self) -> tuple[Constraint, ...]:
        """The constraints that this one is the conjunction of."""
        return self.all_of

    @property
    def eg_monotonic(self) -> bool:
        """Whether every part is EG monotonic."""
        return all(part.eg_monotonic for part in self.all_of)

    @property
    def generalization_monotonic(self) -> bool:
        """Whether every part is generalization monotonic."""
        return all(part.generalization_monotonic for part in self.all_of)

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether a set of records satisfies every part."""
        return all(part.holds(left) for part in self.all_of)

    def fitness(self, left: SecretCounts) -> float:
        """Return the least fitness of the parts; `score` weighs them."""
        return min(part.fitness(left) for part in self.all_of)

    def bind(self, encoded: CodedTable) -> Constraint:
        """Bind every part."""
        return Conjunction(tuple(part.bind(encoded) for part in self.all_of))

    def with_reference(self, counts: tuple[int, ...]) -> Constraint:
        """Return it with the whole table's counts by value in every part."""
        return Conjunction(tuple(part.with_reference(counts) for part in self.all_of))

    @property
    def records_asked(self) -> int:
        """The k of k-anonymity; 1 if that is not asked."""
        return max((part.records_asked for part in self.all_of), default=1)

    @property
    def values_asked(self) -> int:
        """The l of distinct l-diversity; 1 if that is not asked."""
        return max((part.values_asked for part in self.all_of), default=1)

    @property
    def records_needed(self) -> int:
        """How many records all parts need."""
        return max((part.records_needed for part in self.all_of), default=1)

    @property
    def counts_alone(self) -> bool:
        """Whether every part asks for numbers of records and of values, and nothing else."""
        return all(part.counts_alone for part in self.all_of)

    @property
    def records_alone(self) -> bool:
        """Whether every part asks for a number of records, and nothing else."""
        return all(part.records_alone for part in self.all_of)

    @property
    def compares_with_whole(self) -> bool:
        """Whether some part compares with the whole table."""
        return any(part.compares_with_whole for part in self.all_of)

    def without(self, left: SecretCounts, known: int) -> bool:
        """Tell whether every part holds whichever `known` records are taken away."""
        return all(part.without(left, known) for part in self.all_of)

    def __str__(self) -> str:
        return " and ".join(map(str, self.all_of))


def agreeing(fitness: float, holds: bool) -> float:
    """Return the fitness, kept at or above 1 exactly if the constraint holds."""
    return max(fitness, 1.0) if holds else min(fitness, math.nextafter(1.0, 0.0))


def score(constraint: Constraint, records: SecretCounts, alpha: Number) -> float:
    """Return the privacy fitness score (Definition 3.1), below 1 if the constraint is violated.

    (1−α)·F₁ + α·(mean of the other parts' F): for k-anonymity and l-diversity this is equation (1)
    of the paper; after it, the paper's max(1−ε, F) must be a min. It orders coalitions by attack
    power and chooses between splits; no verdict depends on it.

    >>> from quiltwork.tables.constraints import KAnonymity, LDiversity
    >>> score(KAnonymity(2) & LDiversity(2), SecretCounts.of([0, 0, 0]), alpha=0.5)
    0.9999999999999999
    """
    weight = float(proper_fraction(alpha, "alpha"))
    first, *others = (part.fitness(records) for part in constraint.parts)
    mean = first
    if others:
        mean = (1 - weight) * first + weight * (sum(others) / len(others))
    return agreeing(mean, constraint.holds(records))


@dataclass(frozen=True)
class Custom(Constraint):
    """A constraint of your own.

    Args:
        function: takes {sensitive value: number of records} and says whether it is private
            enough; with several sensitive columns the values are tuples.
        eg_monotonic: whether it still holds when records are added. Undeclared, every set between
            the group and what a coalition leaves is tried, which only small groups allow.
        generalization_monotonic: whether it holds in a union of groups where it holds in each.
        score: optionally, how far the records fulfil it: ≥ 1 if and only if it holds.
        name: what to call it.

    >>> at_least_two = Custom(lambda counts: len(counts) >= 2, eg_monotonic=True)
    >>> at_least_two.holds(SecretCounts.of([0, 0])), at_least_two.holds(SecretCounts.of([0, 1]))
    (False, True)
    """

    function: Callable[[Mapping[Any, int]], bool]
    eg_monotonic: bool = False
    generalization_monotonic: bool = False
    score: Callable[[Mapping[Any, int]], float] | None = None
    name: str = ""
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        for what, asked in (("function", self.function), ("score", self.score)):
            if asked is not None and not callable(asked):
                raise InvalidInputError(f"{what} must be a function, not {shortened(asked)}.")
        flag(self.eg_monotonic, "eg_monotonic")
        flag(self.generalization_monotonic, "generalization_monotonic")
        instance(self.name, str, "name")

    def holds(self, left: SecretCounts) -> bool:
        """Ask the function.

        Raises:
            InvalidInputError: if it fails, or says anything but True or False.
        """
        answer = self._asked(self.function, left)
        if not isinstance(answer, (bool, np.bool_)):
            raise InvalidInputError(
                f"{self} must return True or False, not a {type(answer).__name__}."
            )
        return bool(answer)

    def fitness(self, left: SecretCounts) -> float:
        """Ask the score, or give 1 if the constraint holds and ½ if not."""
        if self.score is not None:
            answer = self._asked(self.score, left)
            try:
                found = float(answer)
            except (TypeError, ValueError):
                found = math.nan
            if math.isnan(found):
                raise InvalidInputError(
                    f"The score of {self} must be a number, not a {type(answer).__name__}."
                )
            return found
        return 1.0 if self.holds(left) else 0.5

    def bind(self, encoded: CodedTable) -> Constraint:
        """Learn the labels of the table's sensitive values."""
        return replace(self, labels=encoded.classes)

    def _asked(self, function: Callable[[Mapping[Any, int]], Any], left: SecretCounts) -> Any:
        counts: dict[Any, int] = left.as_dict()
        if self.labels is not None:
            counts = {self.labels[code]: number for code, number in counts.items()}
        try:
            return function(counts)
        except Exception as error:
            # Its words may show sensitive values; the chain of exceptions keeps them.
            raise InvalidInputError(
                f"{self} failed with {type(error).__name__}; it must answer for every set of "
                "records."
            ) from error

    def __str__(self) -> str:
        return self.name or getattr(self.function, "__name__", "custom constraint")


def as_constraint(value: Constraint | Callable[..., bool]) -> Constraint:
    """Take a constraint as it is and a callable as a `Custom` one without monotonicity."""
    if isinstance(value, Constraint):
        return value
    if callable(value) and not isinstance(value, type):
        return Custom(
            value,
            bool(getattr(value, "eg_monotonic", False)),
            bool(getattr(value, "generalization_monotonic", False)),
        )
    raise InvalidInputError(
        f"{shortened(value)} is no privacy constraint; give KAnonymity(k), LDiversity(l), … or a "
        "function of {sensitive value: records}, joined by &."
    )
