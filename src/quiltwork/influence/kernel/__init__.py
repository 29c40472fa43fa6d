"""The compiled loops of the sweep: one C library, with the same digits on every machine.

| file | what it computes |
|---|---|
| `programs.c`, `starting_trees.c` | ratio programs, from cached trees: `solve` |
| `sweep.c` | a stretch of nodes swept inwards: `sweep`, `sweep_two` |
| `tradeoffs.c` | trade-off curves composed, and carried one step along a chain: `tradeoffs` |
| `product.c` | products of matrices in a fixed order: `product` |
| `linear.c` | linear equations by elimination: `solve_linear`; sparse ones by `iterate` |
| `building`, `library` | how the library is built; how it is found, checked and loaded |

Calls are re-entrant and release the interpreter lock; each takes a fraction of a second, so that
long work can be interrupted.
"""

from quiltwork.influence.kernel.equations import iterate, solve_linear
from quiltwork.influence.kernel.library import KernelError
from quiltwork.influence.kernel.matrix_products import power, product
from quiltwork.influence.kernel.programs import SpanningTrees, solve
from quiltwork.influence.kernel.sweeps import sweep, sweep_two

__all__ = [
    "KernelError",
    "SpanningTrees",
    "iterate",
    "power",
    "product",
    "solve",
    "solve_linear",
    "sweep",
    "sweep_two",
]
