"""The sweep: levels per time point in, leakage per time point out, for chains and boxes.

| module | what it does |
|---|---|
| `levels` | what releases spend on each node, as runs of equal nodes; what a query charges |
| `walks` | a chain as matrices, laws and possible states of its nodes |
| `program` | the one linear program: how far apart two rows can make a bounded function |
| `any_start` | its closed form to the left, whatever the start |
| `sides` | one step inwards, by the program or by contraction |
| `fixed` | bounds that hold at every node of an endless series: Newton's method up to a check |
| `stretches` | stretches of nodes swept in step, each from some nodes further out |
| `endless` | what holds for all series of some levels, and how far an end is felt |
| `leakage` | which stretches need a look, where levels change; the worst node, the profile |
| `steady_runs` | a whole series of few runs, all that is steady in them as one node |
| `largest_level`, `secants` | the largest level at which the worst node leaks no more than ε |
| `beliefs` | which sides a belief has, also against adversaries who know rows |

Programs are solved, and nodes swept, by the compiled loops of `influence.kernel`.
"""

from quiltwork.influence.sweep.beliefs import (
    can_be_swept,
    sweep_against_known_rows,
    sweep_of,
)
from quiltwork.influence.sweep.endless import Endless
from quiltwork.influence.sweep.largest_level import (
    Sweepable,
    largest_factor,
    worst_between_ends,
)
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Charge, Levels
from quiltwork.influence.sweep.steady_runs import worst_of_runs

__all__ = [
    "Charge",
    "Endless",
    "Leak",
    "Levels",
    "Sweep",
    "Sweepable",
    "can_be_swept",
    "largest_factor",
    "sweep_against_known_rows",
    "sweep_of",
    "worst_between_ends",
    "worst_of_runs",
]
