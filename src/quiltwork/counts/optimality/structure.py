"""The structure behind the main theorem: the constraint matrix and the lemmas about it.

Between rows i and i+1, column r of an α-private mechanism falls by exactly α ("down"), rises by
exactly 1/α ("up"), does neither ("slack"), or is zero altogether ("zero"). For an optimal vertex of
a consumer's program these states form a pattern that only remaps of the geometric mechanism have.
Cost: O(n²) comparisons; the vertex test solves n+1 equations in fractions.

Theorem: geometric-mechanism, *Structure*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from quiltwork.counts.levels import read_alpha
from quiltwork.counts.optimality.exact_matrix import read_matrix
from quiltwork.counts.optimality.states import DOWN, SLACK, UP, ZERO, States
from quiltwork.counts.optimality.vertices import exact_rank, tight_blocks
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.exact import Number, shortened, to_fraction

_ARROWS = {DOWN: "↓", UP: "↑", SLACK: "S", ZERO: "Z"}


def constraint_matrix(matrix: Any, alpha: Number, tolerance: Number | None = None) -> States:
    """Return the n×(n+1) states of Figure 3: "down", "up", "slack" or "zero".

    Entry [i, r] is "down" if α·x[i,r] = x[i+1,r] and "up" if x[i,r] = α·x[i+1,r]. Fractions are
    compared exactly; floats within `tolerance` (1e-9 unless told), relative to the column.

    Raises:
        NotPrivateError: naming the first pair of rows that is further apart than α allows.

    >>> from quiltwork.counts import GeometricMechanism
    >>> print(constraint_matrix(GeometricMechanism(2, alpha=0.5).matrix(exact=True), 0.5))
    [['down' 'up' 'up']
     ['down' 'down' 'up']]

    Theorem: geometric-mechanism
    """
    level = read_alpha(alpha)
    if not 0 < level < 1:
        raise InvalidInputError(f"A constraint matrix needs 0 < alpha < 1, not {alpha!r}.")
    exact = read_matrix(matrix)
    slack = read_tolerance(matrix, tolerance)
    columns = [
        _column(r, list(column), level, slack) for r, column in enumerate(zip(*exact, strict=True))
    ]
    states = np.empty((len(exact) - 1, len(columns)), dtype=object)
    for r, column in enumerate(columns):
        states[:, r] = column
    return states


def read_tolerance(matrix: Any, tolerance: Number | None) -> Fraction:
    """Return by how much entries may be off: as told, else 1e-9 for floats, 0 for fractions."""
    if tolerance is not None:
        told = to_fraction(tolerance, "tolerance")
        if not 0 <= told < 1:
            raise InvalidInputError(f"tolerance must lie in 0..1, not {shortened(tolerance)}.")
        return told
    floats = any(isinstance(entry, (float, np.floating)) for row in matrix for entry in row)
    return Fraction(1, 10**9) if floats else Fraction(0)


def _column(r: int, column: list[Fraction], alpha: Fraction, slack: Fraction) -> list[str]:
    if max(column) <= slack:
        return [ZERO] * (len(column) - 1)
    states = []
    for i, (here, below) in enumerate(pairwise(column)):
        margin = slack * max(here, below)
        if below < alpha * here - margin or here < alpha * below - margin:
            raise NotPrivateError(
                f"Answer {r} is more than 1/alpha times likelier at one of the counts {i} and "
                f"{i + 1} ({float(here):.6g}, {float(below):.6g}): the mechanism is not "
                f"{float(alpha):.6g}-private."
            )
        falls, rises = abs(below - alpha * here) <= margin, abs(here - alpha * below) <= margin
        states.append(DOWN if falls else UP if rises else SLACK)
    return states


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
        detail = check(states, read_alpha(alpha))
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
