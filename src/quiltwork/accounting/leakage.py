"""The joint-quilt total: max over nodes of the min over quilts of charge plus influence.

Every cell has an upper bound on its worst node. A release raises the bounds of the cells it
touches by a simple sum; a cell is computed again only when its bound decides something. Cost of
adding a release: the cells it touches. Cost of a total: the cells whose bound reaches it.

Theorem: joint-quilt-accountant
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from quiltwork.accounting.cells import Cells
from quiltwork.accounting.quilts import Quilt, best_quilt
from quiltwork.accounting.spending import Spending
from quiltwork.accounting.usage import Usage
from quiltwork.accounting.view import FloatArray, IntArray, View
from quiltwork.accounting.worst import Worst
from quiltwork.exact import float_down, float_up
from quiltwork.influence.families import TO_END

_NEVER = -1


@dataclass(eq=False)
class Leakage:
    """What a usage leaks under interval families; `plus` gives the next one.

    `upper`, `size` and `tried` are kept per cell: a bound on its worst node, the largest nearby
    set behind that bound, and how many quilts had been tried. `far` holds the cells where a
    quilt reaching to an end of the series is best; they depend on releases anywhere. `alike`
    remembers cells all of whose nodes are charged alike.
    """

    cells: Cells
    usage: Usage = field(default_factory=Usage)
    upper: FloatArray = field(init=False)
    size: IntArray = field(init=False)
    tried: IntArray = field(init=False)
    node: IntArray = field(init=False)
    far: dict[int, float] = field(init=False)
    alike: dict[tuple[int, ...], tuple[float, int]] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.cells)
        self.spliced = len(self.cells.splices)
        self.upper, self.size = np.full(count, np.inf), np.zeros(count, dtype=np.int64)
        self.tried, self.node = np.full(count, _NEVER), self.cells.first.copy()
        self.far, self.alike = {}, {}

    def _catch_up(self) -> None:
        """Follow the cells where families were refined meanwhile."""
        for splice in self.cells.splices[self.spliced :]:
            self.upper = splice.apply(self.upper, np.inf)
            self.size = splice.apply(self.size, 0)
            self.tried = splice.apply(self.tried, _NEVER)
            self.node = splice.apply(self.node, 0)
            self.far, self.alike = {}, {}
        self.spliced = len(self.cells.splices)

    def plus(self, spending: Spending) -> Leakage:
        """Add a release. O(cells it touches) beside some copying."""
        self._catch_up()
        after = Leakage(self.cells, self.usage.plus(spending))
        after.upper, after.size = self.upper.copy(), self.size.copy()
        after.tried, after.node = self.tried.copy(), self.node.copy()
        cells = self.cells.touched(spending.start, spending.stop)
        points = np.minimum(self.size[cells], spending.stop - spending.start + 1)
        raised = (
            float_up(spending.per_point) * points
            + float_up(spending.per_pair) * (points + 1)
            + float_up(spending.once)
        )
        after.upper[cells] = (self.upper[cells] + raised) * (1 + 2.0**-50)
        after.tried[cells] = _NEVER
        return after

    def fits(self, limit: Fraction) -> bool:
        """Whether every node leaks at most `limit`."""
        found = self._confirmed(float_down(limit))
        return found is None or self._exactly(*found) <= limit

    def worst(self) -> Worst:
        """The worst node, its quilt and an exact bound on the leakage of all nodes."""
        found = self._confirmed(-1.0)
        if found is None:
            return Worst(Fraction(0))
        cell, quilt = found
        view, node = self._view(cell), int(self.node[cell])
        exact = self._exactly(cell, quilt)
        separator = view.family.separator(node, quilt.left, quilt.right)
        missing = view.missing(node, float_up(exact))
        return Worst(exact, node, separator, quilt.influence, missing)

    def _view(self, cell: int) -> View:
        first, last = int(self.cells.first[cell]), int(self.cells.last[cell])
        return View.around(self.usage, self.cells.table_of(cell).family, first, last)

    def _keys(self) -> FloatArray:
        """An upper bound for every cell: the group bound holds everywhere."""
        self._catch_up()
        keys = self.upper.copy()
        for cell, bound in self.far.items():
            keys[cell] = bound
        return np.minimum(keys, float_up(self.usage.total))

    def _confirmed(self, enough: float) -> tuple[int, Quilt] | None:
        """The cell with the largest bound, once no quilt lowers it; None if all are ≤ enough."""
        while True:
            keys = self._keys()
            if not len(keys) or keys.max() <= enough or not self.usage.everything:
                return None
            cell = int(keys.argmax())
            table = self.cells.table_of(cell)
            if self.tried[cell] != len(table.tried):
                self._compute(cell, far=cell in self.far)
                continue
            view = self._view(cell)
            value, quilt = best_quilt(view, int(self.node[cell]))
            if view.raised(np.array(value), True, 3) < keys[cell]:
                if not view.sees(quilt.left, quilt.right):
                    self.far[cell] = np.inf
                table.tried.learn(quilt)
                self.tried[cell] = _NEVER
            elif not self.cells.refine(cell):
                return cell, quilt

    def _kind(self, cell: int) -> tuple[int, ...] | None:
        """Equal for cells whose nodes are all charged alike; None if nodes differ."""
        first, last = int(self.cells.first[cell]), int(self.cells.last[cell])
        family, reach = self.cells.table_of(cell).family, int(self.cells.reach[cell]) + 2
        if first - reach <= family.origin or last + reach >= family.length:
            return None
        if len(self.usage.corners_within(first - reach, last + reach)):
            return None
        return int(self.cells.table[cell]), *self.usage.level(first)

    def _compute(self, cell: int, far: bool) -> None:
        """Bound the worst node of a cell by the quilts tried in its family."""
        table = self.cells.table_of(cell)
        kind = None if far else self._kind(cell)
        known = None if kind is None else self.alike.get((*kind, len(table.tried)))
        if known is not None:
            self.upper[cell], self.size[cell] = known
            self.node[cell], self.tried[cell] = self.cells.first[cell], len(table.tried)
            return
        view = self._view(cell)
        nodes = view.representatives(self.cells.nodes(cell), every=far)
        values, choice = table.bounds(view, nodes, far)
        worst = int(values.argmax())
        bound = float(view.raised(values[worst], far))
        self.node[cell], self.tried[cell] = nodes[worst], len(table.tried)
        if far:
            self.far[cell] = bound
            return
        self.upper[cell] = bound
        used = choice[choice >= 0]
        left, right = table.tried.left[used], table.tried.right[used]
        sizes = np.where((left == TO_END) | (right == TO_END), view.width, left + right + 1)
        self.size[cell] = sizes.max(initial=0)
        if kind is not None:
            self.alike[*kind, len(table.tried)] = bound, int(self.size[cell])

    def _exactly(self, cell: int, quilt: Quilt) -> Fraction:
        """The exact bound of the confirmed node, or of a node that ties with it in floats."""
        view, group = self._view(cell), self.usage.total
        chosen = (np.array([x]) for x in (quilt.left, quilt.right, quilt.influence))
        (confirmed,) = view.fractions(self.node[cell : cell + 1], *chosen)
        least = float_down(min(confirmed, group))
        threshold = max(0.0, 2 * least - float(view.raised(np.array(least), True, 4)))
        total, done = Fraction(threshold), set[tuple[int, ...]]()
        for other in np.flatnonzero(self._keys() > threshold).tolist():
            kind = None if other in self.far else self._kind(other)
            if kind is None or kind not in done:
                total = max(total, self._exact_cell(other, threshold))
                done |= set() if kind is None else {kind}
            if total >= group:
                return group
        return total

    def _exact_cell(self, cell: int, threshold: float) -> Fraction:
        """The largest exact bound among the nodes of a cell that may exceed the threshold."""
        table, far = self.cells.table_of(cell), cell in self.far
        view = self._view(cell)
        nodes = view.representatives(self.cells.nodes(cell), every=far)
        values, choice = table.bounds(view, nodes, far)
        if (values[choice < 0] > threshold).any():
            return self.usage.total
        return table.largest(view, nodes[view.raised(values, far) > threshold], far)
