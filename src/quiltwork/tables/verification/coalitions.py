"""The coalitions that threaten one group: the lattice of Figure 2, without those that leave nobody.

A coalition may contain at most n_G − 1 of the n_G providers with records in the group. Providers
that know someone there without having records in it (they hold another record of the same person)
may join too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.codes.group import Group, Weights
from quiltwork.tables.constraints.constraint import Constraint

Flags = NDArray[np.bool_]
_PORTION = 256  # coalitions evaluated together


@dataclass(frozen=True)
class Space:
    """Coalitions of some providers.

    Attributes:
        candidates: the providers that may collude, as positions in the group.
        level: the size of the coalitions to check; for EG-monotonic constraints no other size is
            needed.
        top: the size of the largest coalitions, at which searches from above begin.
    """

    candidates: tuple[int, ...]
    level: int
    top: int


def spaces(group: Group, m: int) -> Iterator[Space]:
    """Yield spaces that together contain every coalition of at most m providers."""
    everyone = tuple(range(group.size))
    inside = group.providers_inside
    if inside == group.size:
        yield Space(everyone, min(m, inside - 1), inside - 1)
    elif m < inside:
        yield Space(everyone, m, inside - 1)
    # One provider with records must stay out; for each of them, all others may collude.
    elif group.contributors is not None:
        for spared in group.contributors.nonzero()[0].tolist():
            others = tuple(i for i in everyone if i != spared)
            yield Space(others, min(m, len(others)), len(others))


def number_of_coalitions(group: Group, m: int) -> int:
    """Return the number of coalitions to check."""
    return sum(comb(len(space.candidates), space.level) for space in spaces(group, m))


class LimitReached(Exception):  # noqa: N818  (a signal between these modules, not an error)
    """Raised when a search has used up its checks; callers turn it into an undecided finding."""


@dataclass
class Checks:
    """Checks coalitions of one group and counts the checks, the paper's measure of a method."""

    group: Group
    constraint: Constraint
    limit: int
    done: int = field(default=0)

    def breached_by(self, coalition: Iterable[int]) -> bool:
        """Return whether what the coalition leaves violates the constraint."""
        self.count()
        return not self.constraint.holds(self.group.left(coalition))

    def count(self, number: int = 1) -> None:
        """Add to the number of checks, and stop at the limit."""
        self.done += number
        if self.done > self.limit:
            raise LimitReached


def coalitions(group: Group, m: int) -> Iterator[tuple[int, Flags]]:
    """Yield portions of coalitions as membership rows, each with the total number of coalitions.

    The coalitions that know most come first.
    """
    if group.held is None:
        power = (-group.weights.sum(axis=1)).tolist()
    else:
        power = weights_left(group, np.eye(group.size, dtype=np.bool_)).sum(axis=1).tolist()
    for space in spaces(group, m):
        # Strongest first: if the group can be breached, they are likeliest to do it.
        teams = combinations(sorted(space.candidates, key=power.__getitem__), space.level)
        number = comb(len(space.candidates), space.level)
        while portion := list(islice(teams, _PORTION)):
            members = np.zeros((len(portion), group.size), dtype=np.bool_)
            members[np.arange(len(portion))[:, None], np.array(portion, dtype=np.int64)] = True
            yield number, members


def weights_left(group: Group, members: Flags) -> Weights:
    """Return, for each coalition, the weights of the people that none of its members knows."""
    known = members if group.held is None else (members @ group.held.T)
    # Products of floats are many times faster than of integers, and exact for counts below 2^53.
    removed = known.astype(np.float64) @ group.weights.astype(np.float64)
    remaining: Weights = group.total - removed.astype(np.int64)
    return remaining
