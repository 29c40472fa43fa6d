"""Vertices with the paper's structure: the remap that a constraint matrix shows (Lemma 5.11).

Theorem: docs/theory/geometric-mechanism.md (Derivability)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.examples.structure import structure_report
from quiltwork.counts.optimality.exact_matrix import SLACK, ZERO
from quiltwork.errors import NotPrivateError
from quiltwork.exact import Number


def vertex_remap(matrix: Any, alpha: Number, tolerance: Number | None = None) -> tuple[int, ...]:
    """Read the deterministic remap of Lemma 5.11 off a mechanism's constraint matrix.

    The i-th non-zero column takes the answers i+S_{i−1} … i+S_i of G, S_i being the number of slack
    entries up to that column.
    """
    report = structure_report(matrix, alpha, tolerance)
    if not report.holds:
        raise NotPrivateError(f"No optimal vertex: {report.failed} fails, {report.detail}.")
    mapping: list[int] = []
    for r, column in enumerate(report.constraints.T):
        if column[0] != ZERO:
            mapping += [r] * (1 + int(np.sum(column == SLACK)))
    return tuple(mapping)
