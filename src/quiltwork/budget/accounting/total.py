"""What a set of releases leaks about the worst time point, under every belief.

Chains and trees are swept; rows of clusters and other networks pay for their nearby sets.

Theorem: docs/theory/sweep.md, docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.budget.accounting.sets import worst_of_sets
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.accounting.worst import Worst
from quiltwork.errors import UnsupportedError
from quiltwork.exact import integer
from quiltwork.influence.arguments import AnyOutlook, default_quilts, outlooks
from quiltwork.influence.gaussian import GaussianOutlook, no_sum
from quiltwork.influence.quilts.adaptive import Outlook
from quiltwork.influence.quilts.families import KnownNodes
from quiltwork.influence.quilts.protocol import QuiltFamily
from quiltwork.influence.sweep import Levels
from quiltwork.influence.swept import SweptOutlook

_FAR = 1 << 62
_TIE = 2.0**-40


@dataclass(frozen=True)
class Secrets:
    """Beliefs, the time points first..last that are secret, and how many in a row."""

    outlooks: tuple[AnyOutlook, ...]
    first: int
    last: int
    episode: int = 1

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.outlooks[0].length

    def worst(self, usage: Usage) -> Worst:
        """The time point that leaks most, with a bound on what any of them leaks."""
        if not usage.everything:
            return Worst(Fraction(0))
        levels = usage.levels(self.length)
        found = [self._under(one, usage, levels) for one in self.outlooks]
        return max(found, key=lambda worst: worst.exact)

    def _under(self, outlook: AnyOutlook, usage: Usage, levels: Levels) -> Worst:
        if isinstance(outlook, SweptOutlook):
            return self._swept(outlook, usage, levels)
        return worst_of_sets(nearby_families(outlook), usage, self.first, self.last, self.length)

    def _swept(self, outlook: SweptOutlook, usage: Usage, levels: Levels) -> Worst:
        nodes = range(self.first, self.last + 1)
        found = outlook.sweep(self.episode).worst(levels, nodes)
        added = found.before + found.after
        if added:
            exact = Fraction(found.leak)
        elif found.leak:
            exact = self._largest_charge(usage, levels, found.own)
        else:
            exact = Fraction(0)
        return Worst(min(exact, usage.total), found.node, found.own, found.before, found.after)

    def _largest_charge(self, usage: Usage, levels: Levels, most: float) -> Fraction:
        """The most that is spent on a secret itself, in fractions, where nothing is added.

        More than `most` is spent only on what is known anyway.
        """
        first, last = self.first, self.last - self.episode + 1
        starts = np.clip(levels.first, first, last)
        starts = np.unique(starts[(levels.last >= first) & (levels.first <= self.last)])
        if self.episode > 1:
            ends = np.clip(levels.last - self.episode + 1, first, last)
            starts = np.unique(np.concatenate([starts, ends]))
        costs = levels.block(starts, starts + self.episode - 1)
        fits = costs <= most * (1 + _TIE)
        starts, costs = starts[fits], costs[fits]
        close = starts[costs >= costs.max() * (1 - _TIE)].tolist()
        return max(usage.charge(start, start + self.episode - 1) for start in close)


def nearby_families(outlook: Outlook | GaussianOutlook) -> list[QuiltFamily]:
    """The families of rows of clusters and networks that have something to hide."""
    if isinstance(outlook, GaussianOutlook):
        raise no_sum(None)
    return [f for f in outlook.families(_FAR) if not isinstance(f, KnownNodes)]


def read_account(beliefs: Any, length: Any, episode: Any) -> Secrets:
    """Return what an account is about: every stretch of `episode` time points is a secret.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.
        UnsupportedError: for episodes of rows that are in no order.
    """
    seen = outlooks(beliefs, length, None)
    stretch = integer(episode, "episode", 1)
    if stretch > 1 and any(one.belief.length is not None for one in seen):
        raise UnsupportedError(
            "episode is a number of time points in a row, and these beliefs are about rows in no "
            "order; leave it out."
        )
    points = seen[0].length
    return Secrets(seen, 1, points, min(stretch, points))


def quilts_only(outlooks: tuple[AnyOutlook, ...]) -> tuple[Outlook, ...]:
    """The same beliefs seen by their sharpest quilts, whose levels add up (Theorem 3.7)."""
    return tuple(
        Outlook(one.belief, one.length, default_quilts(one.belief))
        if isinstance(one, SweptOutlook)
        else one
        for one in outlooks
        if not isinstance(one, GaussianOutlook)
    )
