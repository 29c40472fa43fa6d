"""Vertices of the polytope of α-private mechanisms, from their tight constraints, in fractions.

Cost: elimination on n+1 equations.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from quiltwork.counts.optimality.exact_matrix import FractionMatrix
from quiltwork.counts.optimality.states import DOWN, SLACK, ZERO, States


def tight_blocks(states: States, alpha: Fraction) -> Iterator[list[Fraction]]:
    """Yield what the tight constraints leave free: runs of rows of a column in fixed proportions.

    A mechanism with these states is a sum of such blocks with rows that add up to 1; it is the
    only one if the blocks are linearly independent.
    """
    rows = len(states) + 1
    for column in states.T:
        if column[0] == ZERO:
            continue
        block = [Fraction(0)] * rows
        block[0] = Fraction(1)
        for i, state in enumerate(column):
            if state == SLACK:
                yield block
                block = [Fraction(0)] * rows
                block[i + 1] = Fraction(1)
            else:
                block[i + 1] = block[i] * (alpha if state == DOWN else 1 / alpha)
        yield block


def exact_rank(vectors: list[list[Fraction]]) -> int:
    """Return the rank by elimination in exact fractions."""
    rows = [list(vector) for vector in vectors]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((k for k in range(rank, len(rows)) if rows[k][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for other in range(rank + 1, len(rows)):
            factor = rows[other][column] / rows[rank][column]
            if factor:
                pairs = zip(rows[other], rows[rank], strict=True)
                rows[other] = [a - factor * b for a, b in pairs]
        rank += 1
    return rank


def vertex_of(states: States, alpha: Fraction) -> FractionMatrix | None:
    """Return the one mechanism with these tight constraints, or None if they leave it free.

    Blocks with weights that make every row add up to 1: n+1 equations in exact fractions.
    """
    blocks = list(tight_blocks(states, alpha))
    weights = solve_exactly(blocks, [Fraction(1)] * (len(states) + 1))
    if weights is None:
        return None
    scaled = iter(
        [[w * entry for entry in block] for w, block in zip(weights, blocks, strict=True)]
    )
    columns = []
    for column in states.T:
        parts = 0 if column[0] == ZERO else 1 + int(np.sum(column == SLACK))
        total = [Fraction(0)] * (len(states) + 1)
        for _ in range(parts):
            total = [a + b for a, b in zip(total, next(scaled), strict=True)]
        columns.append(total)
    return [list(row) for row in zip(*columns, strict=True)]


def solve_exactly(blocks: list[list[Fraction]], target: list[Fraction]) -> list[Fraction] | None:
    """Return the weights with Σ weight·block = target, or None unless there is exactly one."""
    rows = [[block[i] for block in blocks] + [target[i]] for i in range(len(target))]
    width = len(blocks)
    for column in range(width):
        pivot = next((k for k in range(column, len(rows)) if rows[k][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [entry / lead for entry in rows[column]]
        for other in range(len(rows)):
            factor = rows[other][column]
            if other != column and factor:
                pairs = zip(rows[other], rows[column], strict=True)
                rows[other] = [a - factor * b for a, b in pairs]
    if any(row[-1] for row in rows[width:]):
        return None
    return [rows[k][-1] for k in range(width)]
