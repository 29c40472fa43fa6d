"""The sweep: levels per time point in, leakage per time point out."""

from quiltwork.influence.sweep.beliefs import (
    can_be_swept,
    sweep_against_known_rows,
    sweep_of,
)
from quiltwork.influence.sweep.calibration import Sweepable, largest_factor
from quiltwork.influence.sweep.leakage import Leak, Sweep
from quiltwork.influence.sweep.levels import Charge, Levels

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
