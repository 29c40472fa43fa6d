"""Influence in networks: quilts as separators of the moral graph, influence by elimination.

Importing this room registers `Network` with `quilt_families` and `max_influence`.
"""

from quiltwork.influence.network.exact import conditional_influence
from quiltwork.influence.network.families import network_families
from quiltwork.influence.network.separators import Quilt, quilts_of

__all__ = ["Quilt", "conditional_influence", "network_families", "quilts_of"]
