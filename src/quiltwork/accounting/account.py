"""The state behind an accountant: what its releases cost together; immutable.

Theorem: joint-quilt-accountant
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from quiltwork.accounting.joint import Joint, Quilts
from quiltwork.accounting.leakage import Leakage
from quiltwork.accounting.rules import by_theorem_3_6, check_composition, check_window
from quiltwork.accounting.spending import Spending
from quiltwork.exact import Number, positive_fraction

History: TypeAlias = "tuple[Spending, History] | None"
"""Releases, the latest first; shared by all accounts that have them."""


@dataclass(frozen=True, eq=False)
class Account:
    """`count` releases, the latest first in `history`, and their joint cost.

    `carried` is what the account cost when the series last grew, plus the group cost of all
    releases since: a bound that holds whatever the length, so that growing never raises a total.
    `by_theorem_3_6` is what releases that do not compose by joint quilts add.
    """

    joint: Joint
    history: History = None
    count: int = 0
    carried: Fraction | None = None
    by_theorem_3_6: Fraction = Fraction(0)

    @classmethod
    def empty(cls, quilts: Quilts) -> Account:
        """No releases yet."""
        return cls(Joint.nothing(quilts))

    def plus(self, spendings: Iterable[Spending]) -> Account:
        """Add releases.

        Raises:
            InvalidInputError: if a window lies outside the series.
            UnsupportedError: if no theorem combines a release with those before it.
        """
        joint, carried, others = self.joint, self.carried, self.by_theorem_3_6
        history, count = self.history, self.count
        for spending in spendings:
            check_window(spending, joint.quilts.length)
            check_composition(count, history and history[0], spending)
            history, count = (spending, history), count + 1
            others += by_theorem_3_6(spending)
            if spending.composes_by == "joint-quilt":
                joint = joint.plus(spending)
                if carried is not None:
                    carried += spending.cost(spending.start, spending.stop)
        return Account(joint, history, count, carried, others)

    def plus_scaled(self, others: Account, factor: Number) -> Account:
        """Add the releases of another account with all their charges times `factor`.

        For totals only: the releases are not in the history. Cheaper than adding them one by one.
        """
        times = positive_fraction(factor, "factor")
        usage = self.joint.usage.combined(others.joint.usage, times)
        joint = Joint(self.joint.quilts, Leakage(self.joint.quilts.cells, usage))
        group = others.joint.usage.total * times
        carried = None if self.carried is None else self.carried + group
        return replace(self, joint=joint, carried=carried)

    @cached_property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases in order."""
        found, history = [], self.history
        while history:
            spending, history = history
            found.append(spending)
        return tuple(reversed(found))

    @cached_property
    def by_joint_quilts(self) -> Fraction:
        """What the others cost together."""
        found = self.joint.worst().exact
        return found if self.carried is None else min(found, self.carried)

    @property
    def total(self) -> Fraction:
        """The best proven total for every time point."""
        return self.by_joint_quilts + self.by_theorem_3_6

    def fits(self, limit: Fraction) -> bool:
        """Whether the total is at most `limit`; cheaper than computing it."""
        left = limit - self.by_theorem_3_6
        if left < 0:
            return False
        return (self.carried is not None and self.carried <= left) or self.joint.fits(left)

    def grown(self, quilts: Quilts) -> Account:
        """The same releases in a longer series."""
        joint = Joint(quilts, Leakage(quilts.cells, self.joint.usage))
        return replace(self, joint=joint, carried=self.by_joint_quilts)
