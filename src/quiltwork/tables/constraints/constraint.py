"""What a privacy constraint is: a yes or no about a set of records, with declared monotonicity.

Here are the simplest two as well: so many records, so many sensitive values in every group (records
are people, if the table names its subjects). Every constraint depends on a group through
`SecretCounts` alone: neither providers nor quasi-identifiers matter once a coalition's records are
taken away.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import flag, instance
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, proper_fraction, shortened

if TYPE_CHECKING:
    from quiltwork.tables.encoding import CodedTable


@dataclass(frozen=True, eq=False)
class SecretCounts:
    """A set of records as its sensitive values.

    Attributes:
        size: how many records; how many people, if the table names its subjects.
        values: the codes of the sensitive values that occur, ascending.
        counts: how many records (people) have each of them; a person with two values is in both.
    """

    size: int
    values: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, codes: Iterable[int]) -> SecretCounts:
        """Count the codes of some records.

        >>> SecretCounts.of([2, 0, 2]).as_dict()
        {0: 1, 2: 2}
        """
        listed = np.asarray(list(codes), dtype=np.int64)
        values, counts = np.unique(listed, return_counts=True)
        return cls(len(listed), values, counts.astype(np.int64))

    @classmethod
    def from_counts(cls, counts: Mapping[int, int]) -> SecretCounts:
        """Take code → records."""
        numbers = np.zeros(max(counts, default=-1) + 1, dtype=np.int64)
        numbers[list(counts)] = list(counts.values())
        return cls.from_histogram(numbers)

    @classmethod
    def from_histogram(cls, numbers: NDArray[np.int64], size: int | None = None) -> SecretCounts:
        """Take the records of each code; their sum is the size, unless people have several."""
        there = np.flatnonzero(numbers)
        return cls(int(numbers.sum()) if size is None else size, there, numbers[there])

    @property
    def distinct(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def as_dict(self) -> dict[int, int]:
        """Return code → records."""
        return dict(zip(self.values.tolist(), self.counts.tolist(), strict=True))


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
        return max((part.k for part in self.parts if isinstance(part, KAnonymity)), default=1)

    @property
    def values_asked(self) -> int:
        """The l of distinct l-diversity; 1 if that is not asked."""
        return max((part.l for part in self.parts if isinstance(part, LDiversity)), default=1)

    @property
    def asks_numbers_alone(self) -> bool:
        """Whether it asks for numbers of records and of values, and nothing else."""
        return all(isinstance(part, KAnonymity | LDiversity) for part in self.parts)

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

    def __str__(self) -> str:
        return " and ".join(map(str, self.all_of))


@dataclass(frozen=True)
class KAnonymity(Constraint):
    """At least k records in every group. EG monotonic.

    Raises:
        InvalidInputError: unless k is an integer ≥ 1.

    >>> KAnonymity(3).holds(SecretCounts.of([0, 0, 1]))
    True
    """

    k: int
    eg_monotonic: ClassVar[bool] = True
    generalization_monotonic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", integer(self.k, "k", 1, MOST))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether there are at least k records."""
        return left.size >= self.k

    def fitness(self, left: SecretCounts) -> float:
        """Return records / k."""
        return left.size / self.k

    def __str__(self) -> str:
        return f"{self.k}-anonymity"


@dataclass(frozen=True)
class LDiversity(Constraint):
    """At least l distinct sensitive values in every group. EG monotonic.

    Raises:
        InvalidInputError: unless l is an integer ≥ 1.

    >>> LDiversity(2).holds(SecretCounts.of([0, 0, 0]))
    False
    """

    l: int  # noqa: E741  (the field's own letter)
    eg_monotonic: ClassVar[bool] = True
    generalization_monotonic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", integer(self.l, "l", 1, MOST))

    def holds(self, left: SecretCounts) -> bool:
        """Tell whether there are at least l values."""
        return left.distinct >= self.l

    def fitness(self, left: SecretCounts) -> float:
        """Return distinct values / l."""
        return left.distinct / self.l

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity"


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
        return replace(self, labels=encoded.sensitive_values)

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
