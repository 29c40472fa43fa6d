"""Counts for everyone: the geometric mechanism and each consumer's optimum.

The mechanism and tables of counts are here at once; consumers, programs and the theory behind
them are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quiltwork.counts.contributions import limited_counts
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.tables import CountTable, release_table

if TYPE_CHECKING:
    from quiltwork.counts.cascade import release_levels
    from quiltwork.counts.consumers.consumer import Consumer
    from quiltwork.counts.consumers.gains import consumer_gain
    from quiltwork.counts.consumers.learning import learn_from_release, learn_from_table
    from quiltwork.counts.consumers.losses import ErrorLoss
    from quiltwork.counts.consumers.minimax import minimax_remap
    from quiltwork.counts.consumers.priors import ChainCounts
    from quiltwork.counts.optimality.derivation import best_remap, derive, vertex_remap
    from quiltwork.counts.optimality.program import OptimalMechanism, optimal_mechanism
    from quiltwork.counts.optimality.structure import constraint_matrix, structure_report
    from quiltwork.counts.remaps.remap import Remap
    from quiltwork.counts.remaps.sharpen import sharpen

_HOME = {
    "ChainCounts": "consumers.priors",
    "Consumer": "consumers.consumer",
    "ErrorLoss": "consumers.losses",
    "OptimalMechanism": "optimality.program",
    "Remap": "remaps.remap",
    "best_remap": "optimality.derivation",
    "constraint_matrix": "optimality.structure",
    "consumer_gain": "consumers.gains",
    "derive": "optimality.derivation",
    "learn_from_release": "consumers.learning",
    "learn_from_table": "consumers.learning",
    "minimax_remap": "consumers.minimax",
    "optimal_mechanism": "optimality.program",
    "release_levels": "cascade",
    "sharpen": "remaps.sharpen",
    "structure_report": "optimality.structure",
    "vertex_remap": "optimality.derivation",
}

__all__ = [
    "ChainCounts",
    "Consumer",
    "CountTable",
    "ErrorLoss",
    "GeometricMechanism",
    "OptimalMechanism",
    "Remap",
    "best_remap",
    "constraint_matrix",
    "consumer_gain",
    "derive",
    "learn_from_release",
    "learn_from_table",
    "limited_counts",
    "minimax_remap",
    "optimal_mechanism",
    "release_levels",
    "release_table",
    "sharpen",
    "structure_report",
    "vertex_remap",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"quiltwork.counts.{_HOME[name]}"), name)
    raise AttributeError(f"module 'quiltwork.counts' has no attribute {name!r}")
