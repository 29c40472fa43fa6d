"""Exact noise: integer samplers with the operating system's randomness.

No function here takes a seed. Every sampler draws from its distribution exactly, not up to
rounding.

Theorem: docs/theory/exact-sampling.md
"""

from quiltwork.noise.exponential import exponential_mechanism
from quiltwork.noise.geometric import TwoSidedGeometric
from quiltwork.noise.rounded_gaussian import RoundedGaussian

__all__ = ["RoundedGaussian", "TwoSidedGeometric", "exponential_mechanism"]


def __dir__() -> list[str]:
    return sorted(__all__)
