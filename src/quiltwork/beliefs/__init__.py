"""Beliefs: the distributions of the data that an adversary may assume.

`MarkovChain`, `CyclicChain`, `DatedChain`, `HiddenChain`, `ChainBox`, `Clusters`, `Network`,
`GaussianSeries` and `GaussianRows` are validated, immutable and comparable by value. The noise that
a belief requires is computed in `quiltwork.influence`.
"""

from quiltwork._lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
