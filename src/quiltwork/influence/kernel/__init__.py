"""The loops of the sweep as one compiled library, the same digits on every machine.

| file | what it computes |
|---|---|
| `programs.c`, `starting_trees.c` | one program after the other, from kept trees: `solve` |
| `sweep.c` | a stretch of nodes swept inwards: `sweep`, `sweep_two` |
| `tradeoffs.c` | trade-off curves composed, and carried one step along a chain: `tradeoffs` |
| `product.c` | products of matrices in a fixed order: `product` |
| `linear.c` | linear equations by elimination: `solve_linear`; sparse ones by `iterate` |
| `building`, `library` | how the library is made; how it is found, checked and loaded |

Calls are re-entrant and release the interpreter; each lasts a fraction of a second, so that long
work can be interrupted.
"""

from quiltwork.influence.kernel.equations import iterate, solve_linear
from quiltwork.influence.kernel.library import KernelError
from quiltwork.influence.kernel.matrix_products import power, product
from quiltwork.influence.kernel.programs import KeptTrees, solve
from quiltwork.influence.kernel.sweeps import sweep, sweep_two

__all__ = [
    "KeptTrees",
    "KernelError",
    "iterate",
    "power",
    "product",
    "solve",
    "solve_linear",
    "sweep",
    "sweep_two",
]
