"""The structure of optimal vertices: Observation 5.3 and Lemmas 5.4–5.11 on solved programs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.counts import GeometricMechanism
from quiltwork.counts.optimality.exact_matrix import compose, deterministic
from quiltwork.counts.optimality.program import solve
from quiltwork.reproduce.examples.derivation import derive, vertex_remap
from quiltwork.reproduce.examples.structure import structure_report, vertex_of

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
