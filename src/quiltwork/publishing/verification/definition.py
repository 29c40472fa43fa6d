"""Definition 2.1 in full: every set between what a coalition leaves and the whole group.

A coalition may breach a constraint that is not EG monotonic by taking away only some of its own
records. Cost: (coalitions of the largest size) × (sets in between that can be the worst).

Theorem: m-privacy
"""

from __future__ import annotations

from itertools import combinations
from math import comb

from quiltwork.errors import UnsupportedError
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.group import Group, Weights
from quiltwork.publishing.verification.checks import Outcome
from quiltwork.publishing.verification.spaces import spaces
from quiltwork.publishing.verification.worst import trials, violating_set


def breach_between(
    group: Group, part: Constraint, m: int, limit: int
) -> tuple[Outcome, Weights | None]:
    """Look for a coalition and a set in between that violates; return both.

    Raises:
        UnsupportedError: if there are more sets than the limit.
    """
    checks = 0
    for space in spaces(group, m):
        for coalition in combinations(space.candidates, space.level):
            kept = group.kept(coalition)
            known = group.total - kept
            more = trials(group, part, kept, known)
            checks += more
            if checks > limit:
                coalitions = comb(len(space.candidates), space.level)
                raise UnsupportedError(
                    f"{part} can fail when records are added, so every set between what a "
                    f"coalition leaves and the whole group counts: one group has {coalitions:,} "
                    f"coalitions with up to {more:,} sets each, above the limit of {limit:,}. "
                    "Raise limit, lower m, or take a constraint that is EG monotonic, such as "
                    "LDiversity."
                )
            found = violating_set(group, part, kept, known)
            if found is not None:
                return Outcome(coalition, checks), found
    return Outcome(None, checks), None
