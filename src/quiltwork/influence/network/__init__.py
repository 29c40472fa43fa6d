"""Influence in networks: quilts as separators of the moral graph, influence by elimination.

Importing this package registers `Network` with `quilt_families`, `max_influence` and `sweep_of`.
"""

from quiltwork.influence.network.exact_networks import conditional_influence
from quiltwork.influence.network.network_quilts import network_families
from quiltwork.influence.network.separators import Quilt, quilts_of
from quiltwork.influence.network.tree_sweep import TreeSweep

__all__ = ["Quilt", "TreeSweep", "conditional_influence", "network_families", "quilts_of"]
