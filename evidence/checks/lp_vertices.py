"""The structure of optimal vertices: Observation 5.3 and Lemmas 5.4–5.11 on solved programs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from evidence.precise_program import solve
from papers.examples.structure import structure_report, tight_blocks
from papers.examples.vertices import vertex_remap
from quiltwork.counts import GeometricMechanism, derive
from quiltwork.counts.optimality.exact_matrix import (
    SLACK,
    ZERO,
    FractionMatrix,
    States,
    compose,
    deterministic,
)

NAME = "Optimal vertices"
CLAIM = (
    "the constraint matrix of every optimal vertex satisfies Observation 5.3 and Lemmas 5.4-5.10, "
    "and Lemma 5.11's remap of the geometric mechanism is that vertex, in exact fractions"
)
VERTICES = 1_000
LARGEST_N = 7
_TOLERANCE = Fraction(1, 10**9)


def run(progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Check all vertices; the counts of what was found."""
    rng = np.random.default_rng(53)
    remapped = slacks = 0
    for done in range(VERTICES):
        costs, alpha = random_program(rng)
        mapping = check_vertex(costs, alpha)
        remapped += mapping != tuple(range(len(mapping)))
        slacks += len(mapping) - len(set(mapping))
        progress(done + 1, VERTICES)
    assert remapped > VERTICES // 10, "too few vertices other than the geometric mechanism itself"
    return {
        "vertices": VERTICES,
        "failures": 0,
        "vertices other than the geometric mechanism": remapped,
        "zero columns among them": slacks,
    }


def random_program(rng: np.random.Generator) -> tuple[list[list[Fraction]], Fraction]:
    """Costs prior·loss with full support and strictly monotone losses, as the lemmas assume."""
    n = int(rng.integers(2, LARGEST_N + 1))
    weights = rng.integers(1, 10 ** int(rng.integers(1, 4)), n + 1)
    alpha = Fraction(int(rng.integers(5, 17)), 20)
    costs = []
    for i in range(n + 1):
        steps = np.concatenate([[0], np.cumsum(rng.integers(1, 30, n))])
        row = [Fraction(int(weights[i]) * int(steps[abs(i - r)])) for r in range(n + 1)]
        costs.append([cost / int(weights.sum()) for cost in row])
    return costs, alpha


def check_vertex(costs: list[list[Fraction]], alpha: Fraction) -> tuple[int, ...]:
    """Check one program's vertex; the remap that it is."""
    solution, _ = solve(costs, alpha)
    report = structure_report(solution, alpha, _TOLERANCE)
    assert report.holds, (alpha, report.failed, report.detail)
    vertex = vertex_of(report.constraints, alpha)
    assert vertex is not None
    near = max(
        abs(a - b) for x, y in zip(solution, vertex, strict=True) for a, b in zip(x, y, strict=True)
    )
    assert near <= _TOLERANCE, "the tight constraints are not those of the solution"
    mapping = vertex_remap(vertex, alpha)
    geometric = GeometricMechanism(len(vertex) - 1, alpha=alpha).matrix(exact=True).tolist()
    assert compose(geometric, deterministic(mapping)) == vertex, "not the remap of Lemma 5.11"
    assert derive(vertex, alpha).mapping == mapping
    return mapping


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
