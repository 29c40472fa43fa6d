"""Trade-off curves carried along a chain: the Gaussian noise that (ε, δ) needs.

| module | what it computes |
|---|---|
| `curves` | the grid of γ, the curve of a Gaussian level, ε and δ of a curve |
| `chain_kernels` | a chain as kernels to either side of its time points |
| `sweep` | the curve of the worst time point of a window |
| `noise_level` | the largest level per time point at which it leaks at most (ε, δ) |
| `privacy_losses` | pairs of laws as privacy losses; releases about one time point each |
| `one_per_point` | the curve if every release is about one time point |

Theorem: docs/theory/f-sweep.md
"""

from quiltwork.influence.tradeoffs.noise_level import LargestLevel, largest_level

__all__ = ["LargestLevel", "largest_level"]
