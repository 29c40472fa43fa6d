"""Variable elimination over tables of a network's nodes, with exact supports.

A table holds non-negative numbers up to a common factor, the set of possible entries (by boolean
arithmetic, not by floats that may underflow), and the number of roundings of an entry: products of
non-negative numbers keep relative accuracy, so an entry errs by at most that many units of 2^-53.
The cost in time and memory is proportional to the largest table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from quiltwork.beliefs.matrices import BoolArray, FloatArray
from quiltwork.errors import UnsupportedError
from quiltwork.wording import argument

MOST_ENTRIES = 1 << 22
"""Of one table, 32 MiB of floats; elimination holds a few such tables at once."""
_MOST_AXES = 30
"""NumPy before version 2 has at most 32 axes."""


@dataclass(frozen=True, eq=False)
class Weights:
    """A table of non-negative weights over the values of some nodes.

    Attributes:
        scope: the nodes (0-based), one axis each.
        values: the weights, up to a common factor.
        possible: which of them are not 0; None for all.
        roundings: the largest number of roundings of an entry.
    """

    scope: tuple[int, ...]
    values: FloatArray
    possible: BoolArray | None = None
    roundings: int = 1

    def over(self, scope: Sequence[int]) -> Weights:
        """Return the table with its axes in this order."""
        axes = [self.scope.index(node) for node in scope]
        values = self.values.transpose(axes)
        possible = None if self.possible is None else self.possible.transpose(axes)
        return Weights(tuple(scope), values, possible, self.roundings)

    def support(self) -> BoolArray:
        """Return which entries are possible, as an array."""
        if self.possible is None:
            return np.ones(self.values.shape, dtype=np.bool_)
        return self.possible


def table(scope: Sequence[int], values: FloatArray) -> Weights:
    """Return a table of these numbers, scaled so that long products do not under- or overflow."""
    possible = values > 0
    return Weights(tuple(scope), _scaled(values), None if possible.all() else possible)


def multiply(tables: Sequence[Weights], scope: tuple[int, ...]) -> Weights:
    """Return the product of tables over the nodes of `scope`, which includes theirs."""
    sizes: dict[int, int] = {}
    for factor in tables:
        sizes.update(zip(factor.scope, factor.values.shape, strict=True))
    shape = tuple(sizes.get(node, 1) for node in scope)
    values = np.ones(shape)
    possible: BoolArray | None = None
    for factor in tables:
        # Scaled after every factor, by a power of two, so that this adds no rounding.
        values = _scaled(values * _aligned(factor, scope, factor.values))
        if factor.possible is not None:
            support = _aligned(factor, scope, factor.possible)
            possible = np.broadcast_to(support, shape) if possible is None else possible & support
    # Relative errors of factors add up, and every product is rounded once.
    roundings = sum(factor.roundings for factor in tables) + len(tables)
    return Weights(scope, values, possible, roundings)


def sum_out(factor: Weights, node: int) -> Weights:
    """Return the table summed over a node's values."""
    axis = factor.scope.index(node)
    scope = factor.scope[:axis] + factor.scope[axis + 1 :]
    values = factor.values.sum(axis=axis)
    possible = None if factor.possible is None else np.asarray(factor.possible.any(axis=axis))
    # None spares the following products the boolean half of their work.
    if possible is not None and possible.all():
        possible = None
    return Weights(scope, values, possible, factor.roundings + factor.values.shape[axis])


def sum_to(factor: Weights, keep: Sequence[int]) -> Weights:
    """Return the table summed over every node not in `keep`, with its axes in that order."""
    axes = tuple(axis for axis, node in enumerate(factor.scope) if node not in keep)
    scope = tuple(node for node in factor.scope if node in keep)
    values = np.asarray(factor.values.sum(axis=axes))
    possible = None if factor.possible is None else np.asarray(factor.possible.any(axis=axes))
    added = math.prod(factor.values.shape[axis] for axis in axes)
    return Weights(scope, values, possible, factor.roundings + added).over(keep)


def eliminate(
    tables: Iterable[Weights],
    keep: Sequence[int],
    sizes: Sequence[int],
    most: int = MOST_ENTRIES,
) -> Weights:
    """Return the product of all tables summed over every node not in `keep`.

    The next node to eliminate is the one with the smallest table (greedy min-weight).

    Raises:
        UnsupportedError: if a table would have more than `most` entries.
    """
    check_size(keep, sizes, most)
    waiting = list(tables)
    open_nodes = {node for factor in waiting for node in factor.scope} - set(keep)
    while open_nodes:
        # Ties by number, so that results are the same in every run.
        node = min(open_nodes, key=lambda v: (_weight(_scope_with(waiting, v), sizes), v))
        scope = _scope_with(waiting, node)
        check_size(scope, sizes, most)
        joined = multiply([factor for factor in waiting if node in factor.scope], scope)
        waiting = [factor for factor in waiting if node not in factor.scope]
        waiting.append(sum_out(joined, node))
        open_nodes.remove(node)
    result = multiply(waiting, tuple(keep))
    # Kept nodes without a table have axes of size 1 until here.
    shape = tuple(sizes[node] for node in keep)
    values = np.broadcast_to(result.values, shape)
    possible = None if result.possible is None else np.broadcast_to(result.possible, shape)
    return Weights(tuple(keep), values, possible, result.roundings)


def check_size(scope: Sequence[int], sizes: Sequence[int], most: int = MOST_ENTRIES) -> None:
    """Raise UnsupportedError for a table that is too large, with its size."""
    entries = _weight(scope, sizes)
    if entries > most or len(scope) > _MOST_AXES:
        raise UnsupportedError(
            f"Eliminating exactly needs a table of {entries:,} entries over {len(scope)} nodes "
            f"(width {len(scope) - 1}), and the limit is {most:,}; use "
            f"{argument('method', 'approx')}, "
            "whose bounds need small tables only, or a sparser network."
        )


def _scope_with(tables: Iterable[Weights], node: int) -> tuple[int, ...]:
    joined = {other for factor in tables if node in factor.scope for other in factor.scope}
    return tuple(sorted(joined))


def _weight(scope: Iterable[int], sizes: Sequence[int]) -> int:
    return math.prod(sizes[node] for node in scope)


def _aligned(factor: Weights, scope: tuple[int, ...], values: np.ndarray) -> np.ndarray:
    """Return values with an axis for every node of `scope`; size 1 for nodes not in the table."""
    order = sorted(range(len(factor.scope)), key=lambda axis: scope.index(factor.scope[axis]))
    moved = values.transpose(order)
    shape = iter(moved.shape)
    return moved.reshape([next(shape) if node in factor.scope else 1 for node in scope])


def _scaled(values: FloatArray) -> FloatArray:
    """Return values over a power of two, which is exact, so that the largest is about 1."""
    largest = float(values.max(initial=0.0))
    return values if largest == 0 else np.ldexp(values, -math.frexp(largest)[1])
