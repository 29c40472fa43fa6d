"""Exact noise: integers, the operating system's randomness and a public grid.

No function here takes a seed. Every sampler draws from its distribution exactly, not up to
rounding (`docs/theory/exact-sampling.md`).
"""

from quiltwork.noise.exponential import exponential_mechanism
from quiltwork.noise.geometric import TwoSidedGeometric
from quiltwork.noise.grid import PublicGrid

__all__ = ["PublicGrid", "TwoSidedGeometric", "exponential_mechanism"]


def __dir__() -> list[str]:
    return sorted(__all__)
