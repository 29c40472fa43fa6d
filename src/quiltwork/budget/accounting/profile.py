"""What each time point leaks, as runs of time points that leak the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.sets import set_profile
from quiltwork.budget.accounting.total import nearby_families
from quiltwork.errors import InvalidInputError
from quiltwork.exact import float_up
from quiltwork.influence.arguments import AnyOutlook
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.swept import SweptOutlook


@dataclass(frozen=True)
class LeakageRun:
    """Time points first..last, each of which leaks at most `epsilon`."""

    first: int
    last: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class LeakageProfile:
    """Run j of time points first[j]..last[j] leaks at most epsilon[j]; rounded up."""

    first: IntArray
    last: IntArray
    epsilon: FloatArray

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.first)

    def __iter__(self) -> Iterator[LeakageRun]:
        """The runs in order."""
        for first, last, epsilon in zip(self.first, self.last, self.epsilon, strict=True):
            yield LeakageRun(int(first), int(last), float(epsilon))

    def at(self, node: int) -> float:
        """Return what one time point leaks at most.

        Raises:
            InvalidInputError: if there is no such time point.
        """
        if not 1 <= node <= int(self.last[-1]):
            raise InvalidInputError(f"There is no time point {node!r} in 1..{self.last[-1]}.")
        return float(self.epsilon[np.searchsorted(self.first, node, side="right") - 1])

    def values(self) -> FloatArray:
        """Return one entry per time point."""
        return np.repeat(self.epsilon, self.last - self.first + 1)


def leakage_profile(account: Account) -> LeakageProfile:
    """Bound the leakage of every time point of an account. O(changes of level), or O(rows)."""
    secrets, total = account.secrets, float_up(account.worst.exact)
    found = [_under(one, account) for one in secrets.outlooks]
    first = np.unique(np.concatenate([one.first for one in found]))
    last = np.append(first[1:] - 1, secrets.last)
    rows = [one.epsilon[np.searchsorted(one.first, first, side="right") - 1] for one in found]
    highest = np.minimum(np.max(rows, axis=0), total) + float_up(account.by_theorem_3_6)
    return _joined(first, last, highest)


def _under(outlook: AnyOutlook, account: Account) -> LeakageProfile:
    secrets = account.secrets
    if isinstance(outlook, SweptOutlook):
        levels = account.usage.levels(secrets.length)
        nodes = range(secrets.first, secrets.last + 1)
        return _joined(*outlook.sweep(secrets.episode).profile(levels, nodes))
    values = set_profile(nearby_families(outlook), account.usage, secrets.length)
    rows = np.arange(secrets.first, secrets.last + 1)
    return _joined(rows, rows, values[rows - 1])


def _joined(first: IntArray, last: IntArray, values: FloatArray) -> LeakageProfile:
    begins = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    ends = np.append(begins[1:], len(values)) - 1
    return LeakageProfile(first[begins], last[ends], values[begins])
