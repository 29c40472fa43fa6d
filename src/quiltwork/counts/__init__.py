"""Counts for everyone: the geometric mechanism and each consumer's optimum.

The mechanism and tables of counts are here at once; consumers, programs and the theory behind
them are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.tables import CountTable, release_table

if TYPE_CHECKING:
    from quiltwork.counts.consumer import Consumer
    from quiltwork.counts.derivation import best_remap, derive, vertex_remap
    from quiltwork.counts.priors import ChainCounts
    from quiltwork.counts.program import OptimalMechanism, optimal_mechanism
    from quiltwork.counts.remap import Remap
    from quiltwork.counts.structure import constraint_matrix, structure_report

_HOME = {
    "ChainCounts": "priors",
    "Consumer": "consumer",
    "OptimalMechanism": "program",
    "Remap": "remap",
    "best_remap": "derivation",
    "constraint_matrix": "structure",
    "derive": "derivation",
    "optimal_mechanism": "program",
    "structure_report": "structure",
    "vertex_remap": "derivation",
}

__all__ = [
    "ChainCounts",
    "Consumer",
    "CountTable",
    "GeometricMechanism",
    "OptimalMechanism",
    "Remap",
    "best_remap",
    "constraint_matrix",
    "derive",
    "optimal_mechanism",
    "release_table",
    "structure_report",
    "vertex_remap",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"quiltwork.counts.{_HOME[name]}"), name)
    raise AttributeError(f"module 'quiltwork.counts' has no attribute {name!r}")
