"""Trade-off curves carried along a chain: what Gaussian noise needs for (ε, δ).

| module | what it does |
|---|---|
| `curves` | the grid of γ, the curve of a Gaussian level, ε and δ of a curve |
| `kernels` | a chain as kernels to either side of its time points |
| `sweep` | the curve of the worst time point of a window |
| `noise_level` | the largest level per time point at which it leaks no more than (ε, δ) |

Theorem: docs/theory/f-sweep.md
"""

from quiltwork.influence.tradeoffs.noise_level import LargestLevel, largest_level

__all__ = ["LargestLevel", "largest_level"]
