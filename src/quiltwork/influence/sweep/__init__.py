"""The sweep: levels per time point in, leakage per time point out, for chains and boxes of chains.

| module | what it computes |
|---|---|
| `levels` | the level that releases spend on each node, as runs of equal nodes; a query's charge |
| `program` | the ratio program: how far apart two rows can make a bounded function |
| `step` | one step inwards on one side, by the program or by contraction |
| `fixed_point` | bounds at every node of an infinite series, by Newton's method, certified |
| `runs` | one side swept through runs of equal levels, until it converges |
| `leakage` | which stretches to sweep, and from where; the worst node, the profile |
| `observations` | leakage between observed values that several hidden states share |
| `noise` | the largest level at which the worst node leaks at most ε |
| `construction` | the sweep of each kind of belief, also against adversaries who know rows |

`influence.timeline` describes a chain at every node. Programs are solved, and nodes swept, by the
compiled loops of `influence.kernel`.
"""

from quiltwork.influence.sweep.construction import (
    can_be_swept,
    sweep_against_known_rows,
    sweep_of,
)
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Charge, Levels
from quiltwork.influence.sweep.noise import Sweepable, largest_factor

__all__ = [
    "Charge",
    "Leak",
    "Levels",
    "Sweep",
    "Sweepable",
    "can_be_swept",
    "largest_factor",
    "sweep_against_known_rows",
    "sweep_of",
]
