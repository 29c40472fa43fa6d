"""Beliefs: what an adversary may believe about the data.

`MarkovChain`, `CyclicChain`, `DatedChain`, `HiddenChain`, `ChainBox`, `Clusters`, `Network` and the
Gaussian ones
hold validated, immutable data and answer questions about it; what a belief means for privacy is
computed in `quiltwork.influence`.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
