"""Which coalitions threaten a group: the lattice of Figure 2, cut where nobody is left to protect.

A coalition may hold at most n_G − 1 of the n_G providers with records in the group. Providers
that know someone there without having records in it (they hold another record of the same
person) may join too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
