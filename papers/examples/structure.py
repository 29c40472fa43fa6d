"""Observation 5.3 and Lemmas 5.4–5.10, checked on a mechanism's constraint matrix.

A mechanism that satisfies them all is a vertex of the polytope of α-private mechanisms, and a remap
of the geometric one. Cost: elimination on n+1 equations in fractions.

Theorem: docs/theory/geometric-mechanism.md (Structure)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from quiltwork.counts.alpha_levels import parse_alpha
from quiltwork.counts.optimality.exact_matrix import (
    DOWN,
    SLACK,
    UP,
    ZERO,
    States,
    constraint_matrix,
)
from quiltwork.exact import Number

_ARROWS = {DOWN: "↓", UP: "↑", SLACK: "S", ZERO: "Z"}


def draw_constraints(states: States) -> str:
    """Write a constraint matrix with the paper's signs ↓ ↑ S Z, one row per line."""
    return "\n".join(" ".join(_ARROWS[state] for state in row) for row in states)


@dataclass(frozen=True)
class StructureReport:
    """Which of the paper's lemmas a mechanism's constraint matrix satisfies.

    Attributes:
        constraints: the constraint matrix.
        passed: the statements that hold, in the paper's order.
        failed: the first that fails, or "" if all hold.
        detail: where it fails.
    """

    constraints: States
    passed: tuple[str, ...]
    failed: str
    detail: str

    @property
    def holds(self) -> bool:
        """Whether every statement holds, so that the mechanism is a remap of G."""
        return not self.failed


def structure_report(
    matrix: Any, alpha: Number, tolerance: Number | None = None
) -> StructureReport:
    """Check Observation 5.3 and Lemmas 5.4–5.10 on a mechanism and name the first that fails.

    Observation 5.3 is checked as: the tight constraints determine the mechanism, that is, it is a
    vertex. Floats are taken to satisfy their tight constraints exactly.
    """
    states = constraint_matrix(matrix, alpha, tolerance)
    passed: list[str] = []
    for name, check in STATEMENTS.items():
        detail = check(states, parse_alpha(alpha))
        if detail:
            return StructureReport(states, tuple(passed), name, detail)
        passed.append(name)
    return StructureReport(states, tuple(passed), "", "")


def _is_vertex(states: States, alpha: Fraction) -> str:
    blocks = list(tight_blocks(states, alpha))
    rank = exact_rank(blocks)
    if rank == len(blocks):
        return ""
    return f"the tight constraints leave {len(blocks) - rank} directions to move in: no vertex"


def _visible(states: States) -> States:
    """Drop the zero columns, which the lemmas ignore."""
    return states[:, states[0] != ZERO]


def _lemma_5_4(states: States, alpha: Fraction) -> str:
    for i, row in enumerate(_visible(states)):
        if len(set(row)) == 1 and row[0] in (DOWN, UP):
            return f"row {i} is all {_ARROWS[row[0]]}"
    return ""


def _lemma_5_5(states: States, alpha: Fraction) -> str:
    for i, row in enumerate(_visible(states)):
        downs = int(np.sum(row == DOWN))
        slacks = int(np.sum(row == SLACK))
        wanted = [DOWN] * downs + [SLACK] * min(slacks, 1)
        wanted += [UP] * (len(row) - len(wanted))
        if list(row) != wanted:
            return f"row {i} is {' '.join(_ARROWS[s] for s in row)}, not ↓…↓, at most one S, ↑…↑"
    return ""


def _lemma_5_6(states: States, alpha: Fraction) -> str:
    rows = _visible(states)
    downs = (rows == DOWN).sum(axis=1)
    for i, (before, after) in enumerate(pairwise(downs.tolist())):
        has_slack = bool((rows[i + 1] == SLACK).any())
        if after < before + (0 if has_slack else 1):
            return f"row {i + 1} has {after} ↓ after {before} in row {i}"
    return ""


def _counts(states: States) -> tuple[int, int]:
    return int((states == SLACK).sum()), int((states[0] == ZERO).sum())


def _corollary_5_7(states: States, alpha: Fraction) -> str:
    slacks, zeros = _counts(states)
    return "" if slacks >= zeros else f"{slacks} S entries, fewer than {zeros} zero columns"


def _lemma_5_8(states: States, alpha: Fraction) -> str:
    slacks, zeros = _counts(states)
    return "" if slacks == zeros else f"{slacks} S entries and {zeros} zero columns"


def _lemma_5_9(states: States, alpha: Fraction) -> str:
    before = 0
    for index, column in enumerate(_visible(states).T):
        slacks = int(np.sum(column == SLACK))
        wanted = [UP] * (index + before) + [SLACK] * slacks
        wanted += [DOWN] * (len(column) - len(wanted))
        if list(column) != wanted[: len(column)]:
            return f"non-zero column {index} does not have {index + before} ↑, then its S, then ↓"
        before += slacks
    return ""


def _lemma_5_10(states: States, alpha: Fraction) -> str:
    for index, column in enumerate(_visible(states).T):
        order = [(UP, SLACK, DOWN).index(state) for state in column]
        if order != sorted(order):
            return f"non-zero column {index} is not ↑…↑ S…S ↓…↓, as of an interval of answers of G"
    return ""


STATEMENTS: dict[str, Callable[[States, Fraction], str]] = {
    "Observation 5.3": _is_vertex,
    "Lemma 5.4": _lemma_5_4,
    "Lemma 5.5": _lemma_5_5,
    "Lemma 5.6": _lemma_5_6,
    "Corollary 5.7": _corollary_5_7,
    "Lemma 5.8": _lemma_5_8,
    "Lemma 5.9": _lemma_5_9,
    "Lemma 5.10": _lemma_5_10,
}
"""Each statement as a function of the states: where it fails, or "" if it holds."""


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
