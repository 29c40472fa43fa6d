"""The base class of privacy constraints, their conjunction, and user-defined ones.

A constraint is a yes or no about a set of records, with declared monotonicity. It depends on the
records only through `SecretCounts`: once a coalition's records are removed, neither providers nor
quasi-identifiers matter. To add one, write one class in one file: `holds` and `fitness` are enough.
The other methods (bounds, worst histograms, what remains without some records) make its
verification faster, or possible.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
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

CheckCounter: TypeAlias = Callable[[int], None]
"""Called with the number of checks done; raises if they are too many."""
MAX_COUNT = 2**31 - 1
"""Above any number of records, values or providers that a table can have."""


def parse_m(value: Any) -> int:
    """Validate the number of colluding providers."""
    return integer(value, "m", 0, MAX_COUNT)


class Constraint(ABC):
    """A privacy constraint on the records of one group.

    Pruning and shortcuts rely on the declared monotonicity, so declare only what is proven.
    """

    @property
    @abstractmethod
    def eg_monotonic(self) -> bool:
        """Whether it holds for every superset of a set for which it holds (Definition 2.3)."""

    @property
    @abstractmethod
    def generalization_monotonic(self) -> bool:
        """Whether it holds for the union of groups for each of which it holds."""

    @property
    def corners_suffice(self) -> bool:
        """Whether the histograms that satisfy it form a convex set.

        Then, among the sets between a smaller and a larger one, it is enough to check those that
        add all or no further records of each value.
        """
        return False

    @abstractmethod
    def holds(self, records: SecretCounts) -> bool:
        """Return whether a set of records satisfies the constraint."""

    @abstractmethod
    def fitness(self, records: SecretCounts) -> float:
        """Return how well a set of records fulfils the constraint: ≥ 1 if and only if it holds."""

    def bind(self, encoded: CodedTable) -> Constraint:
        """Return the constraint for a particular table, if it depends on the whole of it."""
        return self

    @property
    def parts(self) -> tuple[Constraint, ...]:
        """The constraints whose conjunction this one is."""
        return (self,)

    @property
    def records_asked(self) -> int:
        """The k of k-anonymity, or 1 without that part."""
        return 1

    @property
    def values_asked(self) -> int:
        """The l of distinct l-diversity, or 1 without that part."""
        return 1

    @property
    def records_needed(self) -> int:
        """The fewest records, each of another person, that can satisfy it."""
        return self.records_asked

    @property
    def counts_alone(self) -> bool:
        """Whether it depends only on the numbers of records and of distinct values."""
        return False

    @property
    def records_alone(self) -> bool:
        """Whether it depends only on the number of records."""
        return False

    @property
    def compares_with_whole(self) -> bool:
        """Whether it compares groups with the whole table, so that left-out rows matter."""
        return False

    @property
    def table_values(self) -> int | None:
        """The number of values of the whole table, if it compares with that."""
        return None

    def with_reference(self, counts: tuple[int, ...]) -> Constraint:
        """Return it with the counts by value of the whole table, if it compares with them."""
        return self

    def bound(self, counts: SparseCounts, m: int) -> Status:
        """Return SAFE or BROKEN for the groups that bounds on all coalitions decide, else OPEN."""
        # OPEN is always sound: the search decides.
        return np.full(counts.groups, OPEN, dtype=np.int8)

    def worst_between(self, low: Ints, high: Ints) -> Corners | None:
        """Search each box of histograms, low..high, for one that violates.

        Returns None if the constraint has no such search; every histogram must be tried then.
        """
        return None

    def needs_coalitions(self, group: Group) -> bool:
        """Return whether coalitions have to be tried one by one in this group."""
        return True

    def breach(self, group: Group, m: int, count: CheckCounter) -> tuple[int, ...] | None:
        """Return a coalition that breaches a group, without trying coalitions; None if none does.

        Only called where `needs_coalitions` is False. `count` is called with the work done, and may
        raise.
        """
        raise NotImplementedError(f"{self} is tried on coalitions")

    def violated(self, group: Group, kept: Weights) -> Flags:
        """Return which rows of `kept`, weights by kind of what remains, violate the constraint."""
        return np.array([not self.holds(group.histogram(row)) for row in kept], dtype=np.bool_)

    def without(self, records: SecretCounts, removed: int) -> bool:
        """Return whether it holds whichever `removed` records are taken away.

        Raises:
            UnsupportedError: if that cannot be decided.
        """
        if removed:
            raise UnsupportedError(
                f"{self} cannot be decided for every assignment of values to people."
            )
        return self.holds(records)

    def __and__(self, other: Constraint | Callable[..., bool]) -> Constraint:
        return Conjunction((*self.parts, *as_constraint(other).parts))

    def __rand__(self, other: Callable[..., bool]) -> Constraint:
        return as_constraint(other) & self


@dataclass(frozen=True)
class Conjunction(Constraint):
    """The conjunction of constraints: breached if and only if one of its parts is.

    It has a monotonicity if all parts have it (Observation 2.2).
    """

    all_of: tuple[Constraint, ...]

    @property
    def parts(self) -> tuple[Constraint, ...]:
        """The constraints whose conjunction this one is."""
        return self.all_of

    @property
    def eg_monotonic(self) -> bool:
        """Whether every part is EG monotonic."""
        return all(part.eg_monotonic for part in self.all_of)

    @property
    def generalization_monotonic(self) -> bool:
        """Whether every part is generalization monotonic."""
        return all(part.generalization_monotonic for part in self.all_of)

    def holds(self, records: SecretCounts) -> bool:
        """Return whether a set of records satisfies every part."""
        return all(part.holds(records) for part in self.all_of)

    def fitness(self, records: SecretCounts) -> float:
        """Return the lowest fitness of the parts; `score` weighs them instead."""
        return min(part.fitness(records) for part in self.all_of)

    def bind(self, encoded: CodedTable) -> Constraint:
        """Bind every part."""
        return Conjunction(tuple(part.bind(encoded) for part in self.all_of))

    def with_reference(self, counts: tuple[int, ...]) -> Constraint:
        """Return it with the whole table's counts by value as reference in every part."""
        return Conjunction(tuple(part.with_reference(counts) for part in self.all_of))

    @property
    def records_asked(self) -> int:
        """The k of k-anonymity, or 1 without that part."""
        return max((part.records_asked for part in self.all_of), default=1)

    @property
    def values_asked(self) -> int:
        """The l of distinct l-diversity, or 1 without that part."""
        return max((part.values_asked for part in self.all_of), default=1)

    @property
    def records_needed(self) -> int:
        """The fewest records that can satisfy all parts."""
        return max((part.records_needed for part in self.all_of), default=1)

    @property
    def counts_alone(self) -> bool:
        """Whether every part depends only on the numbers of records and of distinct values."""
        return all(part.counts_alone for part in self.all_of)

    @property
    def records_alone(self) -> bool:
        """Whether every part depends only on the number of records."""
        return all(part.records_alone for part in self.all_of)

    @property
    def compares_with_whole(self) -> bool:
        """Whether some part compares groups with the whole table."""
        return any(part.compares_with_whole for part in self.all_of)

    def without(self, records: SecretCounts, removed: int) -> bool:
        """Return whether every part holds whichever `removed` records are taken away."""
        return all(part.without(records, removed) for part in self.all_of)

    def __str__(self) -> str:
        return " and ".join(map(str, self.all_of))


def consistent_with(fitness: float, holds: bool) -> float:
    """Return the fitness, clamped to at least 1 if the constraint holds, else to below 1."""
    return max(fitness, 1.0) if holds else min(fitness, math.nextafter(1.0, 0.0))


def score(
    constraint: Constraint, records: SecretCounts | Collection[object], alpha: Number
) -> float:
    """Return the privacy fitness score (Definition 3.1), below 1 if the constraint is violated.

    It is (1−α)·F₁ + α·(mean of the other parts' F): for k-anonymity and l-diversity, equation (1)
    of the paper. Its max(1−ε, F) for violated constraints must read min. The score orders
    coalitions by attack power and chooses between splits; no verdict depends on it. `records` are
    the sensitive values of a group's records.

    >>> from quiltwork.tables.constraints import KAnonymity, LDiversity
    >>> score(KAnonymity(2) & LDiversity(2), ["flu", "flu", "flu"], alpha=0.5)
    0.9999999999999999
    """
    if not isinstance(constraint, Constraint):
        raise InvalidInputError("constraint must be a constraint on groups, such as KAnonymity(3).")
    if not isinstance(records, SecretCounts):
        if isinstance(records, str) or not isinstance(records, Collection) or len(records) == 0:
            raise InvalidInputError("records must be the sensitive values of a group's records.")
        codes = {value: code for code, value in enumerate(dict.fromkeys(map(str, records)))}
        records = SecretCounts.of([codes[str(value)] for value in records])
    weight = float(proper_fraction(alpha, "alpha"))
    first, *others = (part.fitness(records) for part in constraint.parts)
    mean = first
    if others:
        mean = (1 - weight) * first + weight * (sum(others) / len(others))
    return consistent_with(mean, constraint.holds(records))


@dataclass(frozen=True)
class Custom(Constraint):
    """A user-defined constraint.

    Args:
        function: takes {sensitive value: number of records} and returns whether these are private
            enough; with several sensitive columns the values are tuples.
        eg_monotonic: whether it still holds when records are added. If not declared, every set
            between the group and what a coalition leaves is tried, which only small groups allow.
        generalization_monotonic: whether it holds in a union of groups if it holds in each.
        score: optional; how well the records fulfil it: ≥ 1 if and only if it holds.
        name: what messages call it.

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
        for name, value in (("function", self.function), ("score", self.score)):
            if value is not None and not callable(value):
                raise InvalidInputError(f"{name} must be a function, not {shortened(value)}.")
        # A wrong type here would silently switch pruning on.
        flag(self.eg_monotonic, "eg_monotonic")
        flag(self.generalization_monotonic, "generalization_monotonic")
        instance(self.name, str, "name")

    def holds(self, records: SecretCounts) -> bool:
        """Call the function.

        Raises:
            InvalidInputError: if it raises, or returns anything but True or False.
        """
        answer = self._call(self.function, records)
        if not isinstance(answer, (bool, np.bool_)):
            raise InvalidInputError(
                f"{self} must return True or False, not a {type(answer).__name__}."
            )
        return bool(answer)

    def fitness(self, records: SecretCounts) -> float:
        """Return the score, or without one 1 if the constraint holds and ½ if not."""
        if self.score is not None:
            answer = self._call(self.score, records)
            try:
                score = float(answer)
            except (TypeError, ValueError):
                score = math.nan
            if math.isnan(score):
                raise InvalidInputError(
                    f"The score of {self} must be a number, not a {type(answer).__name__}."
                )
            return score
        return 1.0 if self.holds(records) else 0.5

    def bind(self, encoded: CodedTable) -> Constraint:
        """Return it with the labels of the sensitive values, which the function is passed."""
        return replace(self, labels=encoded.classes)

    def _call(self, function: Callable[[Mapping[Any, int]], Any], records: SecretCounts) -> Any:
        counts: dict[Any, int] = records.as_dict()
        if self.labels is not None:
            counts = {self.labels[code]: number for code, number in counts.items()}
        try:
            return function(counts)
        except Exception as error:
            # The exception's text may contain sensitive values, so it is only chained, not quoted.
            raise InvalidInputError(
                f"{self} raised {type(error).__name__}; it must return an answer for every set of "
                "records."
            ) from error

    def __str__(self) -> str:
        return self.name or getattr(self.function, "__name__", "custom constraint")


def as_constraint(value: Constraint | Callable[..., bool]) -> Constraint:
    """Return a constraint as it is, a callable as a `Custom` constraint."""
    if isinstance(value, Constraint):
        return value
    # A class such as KAnonymity without its k is callable too, and almost certainly a mistake.
    if callable(value) and not isinstance(value, type):
        return Custom(
            value,
            bool(getattr(value, "eg_monotonic", False)),
            bool(getattr(value, "generalization_monotonic", False)),
        )
    raise InvalidInputError(
        f"{shortened(value)} is not a privacy constraint. Pass KAnonymity(k), LDiversity(l), … or "
        "a function of {sensitive value: records}; & joins several."
    )
