"""Definition 2.1 in full: every set between what a coalition leaves and the whole group.

A coalition may breach a constraint that is not EG monotonic by taking away only some of its own
records. Cost: (coalitions of the largest size) × (sets in between that can be the worst). For
entropy and recursive diversity and t-closeness the coalitions are looked at many at a time, and
hardly more than one set each; coalitions of equal providers count once. Where coalitions are many,
the worst is found without going through them (`alliances`).

Theorem: m-privacy
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.group import Group, Weights
from quiltwork.publishing.verification.alliances import Alliance
from quiltwork.publishing.verification.between import BETWEEN, worst_alliance_of, worst_of_group
from quiltwork.publishing.verification.checks import Outcome
from quiltwork.publishing.verification.corners import Flags
from quiltwork.publishing.verification.spaces import spaces
from quiltwork.publishing.verification.teams import draws_of
from quiltwork.publishing.verification.worst import trials, violating_set

_PORTION = 2_048
_FEW = 256
"""Coalitions up to which all are looked at; of more, the worst is found by branch and bound."""
_MOST_SETS = 20_000
"""Sets of coalitions that this looks at before it gives up, after about a second."""


def breach_between(
    group: Group, part: Constraint, m: int, limit: int
) -> tuple[Outcome, Weights | None]:
    """Look for a coalition and a set in between that violates; return both.

    Raises:
        UnsupportedError: if there are more sets than the limit.
    """
    if isinstance(part, BETWEEN):
        decided = _breach_of_corners(group, part, m, limit)
        if decided is not None:
            return decided
    checks = 0
    for space in spaces(group, m):
        for coalition in combinations(space.candidates, space.level):
            kept = group.kept(coalition)
            known = group.total - kept
            more = trials(group, part, kept, known)
            checks += more
            if checks > limit:
                raise _too_many(part, comb(len(space.candidates), space.level), more, limit)
            found = violating_set(group, part, kept, known)
            if found is not None:
                return Outcome(coalition, checks), found
    return Outcome(None, checks), None


def _breach_of_corners(
    group: Group, part: Constraint, m: int, limit: int
) -> tuple[Outcome, Weights | None] | None:
    """Look at the worst corners for many coalitions at a time; None if they stay in doubt."""
    checks = 0
    for number, members in _coalitions(group, m):
        if not checks:
            checks, whole = 1, worst_of_group(group, part, group.total[None, :])
            if whole.box[0] >= 0:
                anyone = tuple(np.flatnonzero(members[0]).tolist())
                return Outcome(anyone, checks), group.total
            if number > _FEW and group.is_plain and group.contributors is None:
                most = min(limit, _MOST_SETS)
                best = worst_alliance_of(group, part, min(m, group.size - 1), most)
                if best is not None:
                    return _of_alliance(best)
        if max(number, checks + len(members)) > limit:
            raise _too_many(part, number, 1, limit)
        found = worst_of_group(group, part, _kept(group, members))
        checks += found.looked
        if found.box[0] >= 0:
            coalition = tuple(np.flatnonzero(members[found.box[0]]).tolist())
            return Outcome(coalition, checks), found.point[0]
        if not found.safe[0]:
            return None
    return Outcome(None, checks), None


def _of_alliance(found: Alliance) -> tuple[Outcome, Weights | None]:
    if found.members is None:
        return Outcome(None, found.looked), None
    return Outcome(tuple(np.flatnonzero(found.members).tolist()), found.looked), found.point


def _coalitions(group: Group, m: int) -> Iterator[tuple[int, Flags]]:
    """Yield how many coalitions there are, and some of them as rows: who is in it."""
    if group.held is None and group.contributors is None:
        yield from _unlike_coalitions(group, min(m, group.size - 1))
        return
    for space in spaces(group, m):
        teams = combinations(space.candidates, space.level)
        number = comb(len(space.candidates), space.level)
        while chosen := list(islice(teams, _PORTION)):
            members = np.zeros((len(chosen), group.size), dtype=np.bool_)
            members[np.arange(len(chosen))[:, None], np.array(chosen, dtype=np.int64)] = True
            yield number, members


def _unlike_coalitions(group: Group, size: int) -> Iterator[tuple[int, Flags]]:
    """Of coalitions that hold the same, take the one with the first of equal providers."""
    found, kind = np.unique(group.weights, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    number = np.bincount(kind)
    order = np.argsort(kind, kind="stable")
    place = np.empty(group.size, dtype=np.int64)  # of each provider among its like
    place[order] = np.arange(group.size) - np.searchsorted(kind[order], kind[order])
    draws = draws_of(len(found), group.size, size)
    every = draws.all()
    while some := list(islice(every, _PORTION)):
        drawn = draws.table(some)
        possible = drawn[(drawn <= number).all(axis=1)]
        if len(possible):
            members = place < possible[:, kind]
            yield draws.number, ~members if draws.spared else members


def _kept(group: Group, members: Flags) -> Weights:
    """Return, for each coalition, the weights of those whom nobody in it knows."""
    known = members if group.held is None else (members @ group.held.T)
    kept: Weights = group.total - known.astype(np.int64) @ group.weights
    return kept


def _too_many(part: Constraint, coalitions: int, sets: int, limit: int) -> UnsupportedError:
    each = f" with up to {sets:,} sets each" if sets > 1 else ""
    return UnsupportedError(
        f"{part} can fail when records are added, so every set between what a coalition leaves "
        f"and the whole group counts: one group has {coalitions:,} coalitions{each}, above the "
        f"limit of {limit:,}. Raise limit, lower m, or take a constraint that is EG monotonic, "
        "such as LDiversity."
    )
