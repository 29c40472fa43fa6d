"""Which coalitions threaten one group, and how many of them were checked.

The lattice of Figure 2, cut where nobody is left to protect: a coalition may hold at most n_G − 1
of the n_G providers with records in the group. Providers that know someone there without having
records in it (they hold another record of the same person) may join too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quiltwork.tables.constraints.base import Constraint
from quiltwork.tables.group import Group


@dataclass(frozen=True)
class Space:
    """Coalitions of some providers.

    Attributes:
        candidates: who may collude, as positions in the group.
        level: the size of the coalitions to check; for EG-monotonic constraints no other is needed.
        top: the size of the largest coalitions, where searches from above begin.
    """

    candidates: tuple[int, ...]
    level: int
    top: int


def spaces(group: Group, m: int) -> Iterator[Space]:
    """Yield spaces that together hold every coalition of at most m providers."""
    everyone = tuple(range(group.size))
    inside = group.providers_inside
    if inside == group.size:
        yield Space(everyone, min(m, inside - 1), inside - 1)
    elif m < inside:
        yield Space(everyone, m, inside - 1)
    elif group.contributors is not None:
        for spared in group.contributors.nonzero()[0].tolist():
            others = tuple(i for i in everyone if i != spared)
            yield Space(others, min(m, len(others)), len(others))


class LimitReached(Exception):  # noqa: N818  (a signal between these modules, not an error)
    """A search used up its checks before it came to an end."""


@dataclass
class Checks:
    """Asks whether coalitions breach a constraint, and counts: the paper compares methods by it."""

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
class SearchOutcome:
    """What a search found in one group.

    Attributes:
        coalition: positions of providers that breach; None if there is no such coalition.
        checks: how many sets of records were checked.
        settled: False if the search hit its limit: then nothing is known.
    """

    coalition: tuple[int, ...] | None
    checks: int
    settled: bool = True
