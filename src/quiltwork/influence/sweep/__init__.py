"""The sweep: levels per time point in, leakage per time point out, for chains and boxes.

| module | what it does |
|---|---|
| `levels` | what releases spend on each node, as runs of equal nodes; what a query charges |
| `program` | the one linear program: how far apart two rows can make a bounded function |
| `any_start` | its closed form to the left, whatever the start |
| `step` | one step inwards on one side, by the program or by contraction |
| `fixed_point` | bounds that hold at every node of an endless series, by Newton, certified |
| `runs` | a side followed through runs of equal levels, until nothing moves |
| `horizon` | the bounds from which a stretch of a long series is followed |
| `leakage` | which stretches need a look; the worst node, the profile |
| `noise` | the largest level at which the worst node leaks no more than ε |
| `beliefs` | which sides a belief has, also against adversaries who know rows |

`influence.timeline` says what a chain is like at every node. Programs are solved, and nodes swept,
by the compiled loops of `influence.kernel`.
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
