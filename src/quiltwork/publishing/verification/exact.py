"""Exact verification of one group: closed form for k, values for l, branch and bound otherwise.

Theorem: m-privacy
"""

from __future__ import annotations

from math import comb

import numpy as np

from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.constraints.k_anonymity import KAnonymity
from quiltwork.publishing.constraints.l_diversity import LDiversity
from quiltwork.publishing.group import Group
from quiltwork.publishing.verification.checks import Checks, LimitReached, Outcome
from quiltwork.publishing.verification.spaces import Space, spaces
from quiltwork.publishing.verification.values import breach_of_values


def breach(group: Group, part: Constraint, m: int, limit: int) -> Outcome:
    """Look for a coalition of at most m providers that breaches one EG-monotonic constraint."""
    checks = Checks(group, part, limit)
    if group.held is None and group.contributors is None:
        size = min(m, group.size - 1)
        if isinstance(part, KAnonymity):
            return Outcome(_breach_of_k(group, part.k, size), 1)
        if isinstance(part, LDiversity) and group.kinds is None and _few_values(group, part, size):
            return breach_of_values(group, part.l, size, checks)
    try:
        for space in spaces(group, m):
            found = _branch(group, part, space, checks)
            if found is not None:
                return Outcome(found, checks.done)
    except LimitReached:
        return Outcome(None, checks.done - 1, settled=False)
    return Outcome(None, checks.done)


def _breach_of_k(group: Group, k: int, size: int) -> tuple[int, ...] | None:
    """Return the fewest of the largest providers without whom less than k are left."""
    records = group.weights.sum(axis=1)
    order = np.argsort(-records, kind="stable")[:size]
    left = int(records.sum()) - np.concatenate([[0], np.cumsum(records[order])])
    short = np.flatnonzero(left < k)
    return tuple(sorted(order[: short[0]].tolist())) if len(short) else None


def _few_values(group: Group, part: LDiversity, size: int) -> bool:
    """Tell whether sets of rare values are fewer than coalitions of those who hold them."""
    holders = (group.weights > 0).sum(axis=0)
    rare = holders <= size
    involved = int((group.weights[:, rare] > 0).any(axis=1).sum())
    emptied = max(len(holders) - part.l + 1, 0)
    return comb(int(rare.sum()), emptied) <= comb(involved, min(size, involved // 2))


def _branch(group: Group, part: Constraint, space: Space, checks: Checks) -> tuple[int, ...] | None:
    """Grow coalitions from the strongest provider on; drop a branch that is safe as a whole."""
    power = [group.known([i]).size for i in space.candidates]
    order = [space.candidates[i] for i in np.argsort([-p for p in power], kind="stable")]

    def visit(chosen: tuple[int, ...], position: int) -> tuple[int, ...] | None:
        if checks.breached_by(chosen):
            return chosen
        if len(chosen) == space.level:
            return None
        for at in range(position, len(order)):
            if _is_safe(group, part, chosen, order[at:], space, checks):
                return None
            found = visit((*chosen, order[at]), at + 1)
            if found is not None:
                return found
        return None

    found = visit((), 0)
    return None if found is None else tuple(sorted(found))


def _is_safe(
    group: Group,
    part: Constraint,
    chosen: tuple[int, ...],
    open_ones: list[int],
    space: Space,
    checks: Checks,
) -> bool:
    """Tell whether no choice among the open ones can breach, by a bound."""
    room = space.level - len(chosen)
    if isinstance(part, KAnonymity):
        checks.count()
        left = group.left(chosen).size
        gains = sorted((left - group.left((*chosen, i)).size for i in open_ones), reverse=True)
        return left - sum(gains[:room]) >= part.k
    if len(chosen) + len(open_ones) > space.top:
        return False  # nothing would be left, about which a constraint of the user's has no say
    return not checks.breached_by((*chosen, *open_ones))
