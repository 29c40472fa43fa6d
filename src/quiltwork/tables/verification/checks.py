"""Counting privacy checks: the cost by which the paper compares methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.group import Group


class LimitReached(Exception):  # noqa: N818  (a signal between these modules, not an error)
    """A search used up its checks before it came to an end."""


@dataclass
class Checks:
    """Asks whether coalitions breach a constraint, and counts."""

    group: Group
    constraint: Constraint
    limit: int
    done: int = field(default=0)

    def breached_by(self, coalition: Iterable[int]) -> bool:
        """Tell whether what the coalition leaves violates the constraint."""
        self.count()
        return not self.constraint.holds(self.group.left(coalition))

    def count(self) -> None:
        """Count one more check, or stop at the limit."""
        self.done += 1
        if self.done > self.limit:
            raise LimitReached


@dataclass(frozen=True)
class Outcome:
    """What a search found in one group.

    Attributes:
        coalition: positions of providers that breach; None if there is no such coalition.
        checks: how many sets of records were checked.
        settled: False if the search hit its limit: then nothing is known.
    """

    coalition: tuple[int, ...] | None
    checks: int
    settled: bool = True
