"""Joint quilts under a set of beliefs: intervals and sets together, looking as far as needed.

Quilts are tried up to a reach that doubles until nothing beyond it can lower the total, or until
it is `LARGEST_REACH`; then the total is a bound and says by how much it might be too high.

Theorem: joint-quilt-accountant
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from quiltwork.accounting.cells import Cells
from quiltwork.accounting.leakage import Leakage
from quiltwork.accounting.sets import worst_of_sets
from quiltwork.accounting.spending import Spending
from quiltwork.accounting.usage import Usage
from quiltwork.accounting.worst import Worst
from quiltwork.exact import float_up
from quiltwork.influence.adaptive import Outlook
from quiltwork.influence.families import IntervalFamily, KnownNodes
from quiltwork.influence.protocol import QuiltFamily

FIRST_REACH = 64
LARGEST_REACH = 1 << 13
NEGLIGIBLE = 1e-9


@dataclass(eq=False)
class Quilts:
    """The quilts of all nodes first..last under every belief; a cache that only grows."""

    outlooks: tuple[Outlook, ...]
    first: int
    last: int
    reach: int = FIRST_REACH
    cells: Cells = field(init=False)
    sets: tuple[QuiltFamily, ...] = field(init=False)

    def __post_init__(self) -> None:
        families = [f for outlook in self.outlooks for f in outlook.families(self.reach)]
        intervals = [f for f in families if isinstance(f, IntervalFamily)]
        self.cells = Cells.of(intervals).within(self.first, self.last)
        self.sets = tuple(f for f in families if not isinstance(f, IntervalFamily | KnownNodes))

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.outlooks[0].length

    @property
    def first_alike(self) -> int:
        """The first node from which on, under each belief, all nodes have the same quilts."""
        starts = [t.nodes[0] for t in self.cells.tables if t.nodes and t.nodes[-1] >= self.last]
        others = [t.nodes[-1] + 1 for t in self.cells.tables if t.nodes and t.nodes[-1] < self.last]
        return max([*starts, *others], default=self.first)

    def grow(self) -> bool:
        """Look twice as far, unless that is as far as we go."""
        if self.reach >= LARGEST_REACH:
            return False
        self.reach *= 2
        self.__post_init__()
        return True


@dataclass(eq=False)
class Joint:
    """What a set of releases leaks about the nodes of `quilts`; `plus` gives the next one."""

    quilts: Quilts
    leakage: Leakage

    @classmethod
    def nothing(cls, quilts: Quilts) -> Joint:
        """No releases yet."""
        return cls(quilts, Leakage(quilts.cells))

    @property
    def usage(self) -> Usage:
        """What the releases charge."""
        return self.leakage.usage

    def plus(self, spending: Spending) -> Joint:
        """Add a release."""
        return Joint(self.quilts, self.leakage.plus(spending))

    def fits(self, limit: Fraction) -> bool:
        """Whether every node leaks at most `limit`, decided with as little work as it takes."""
        while True:
            self._catch_up()
            if self._sets().exact > limit:
                return False
            if self.leakage.fits(limit):
                return True
            worst = self.leakage.worst()
            if float_up(worst.exact - limit) > worst.missing or not self.quilts.grow():
                return False

    def worst(self) -> Worst:
        """The node that leaks most, with an exact bound on what any node leaks."""
        while True:
            self._catch_up()
            intervals = self.leakage.worst()
            settled = intervals.missing <= NEGLIGIBLE * intervals.exact
            if settled or not self.quilts.grow():
                return max(intervals, self._sets(), key=lambda worst: worst.exact)

    def _sets(self) -> Worst:
        quilts = self.quilts
        if not quilts.sets:
            return Worst(Fraction(0))
        return worst_of_sets(quilts.sets, self.usage, quilts.first, quilts.last, quilts.length)

    def _catch_up(self) -> None:
        if self.leakage.cells is not self.quilts.cells:
            self.leakage = Leakage(self.quilts.cells, self.usage)
