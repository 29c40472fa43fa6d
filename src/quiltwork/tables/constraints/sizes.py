"""k-anonymity and distinct l-diversity: so many records, so many sensitive values in every group.

Records are people, if the table names its subjects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import MOST, Constraint, SecretCounts


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
