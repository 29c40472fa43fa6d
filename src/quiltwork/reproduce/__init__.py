"""The registry of experiments: what the papers print, computed again by this package.

An experiment is a function under `experiments/` with the decorator `experiment`; it returns a
frozen `Findings`: values beside the published ones, figures and tables. `quiltwork reproduce` runs
them, keeps what is finished, and writes figures, CSV and one HTML page, or the pieces that the
documentation includes.
"""

from quiltwork.reproduce.registry import (
    Experiment,
    Progress,
    all_experiments,
    experiment,
    select,
)
from quiltwork.reproduce.result import Figure, Findings, Row, Sheet
from quiltwork.reproduce.runner import Reproduction, finished, run

__all__ = [
    "Experiment",
    "Figure",
    "Findings",
    "Progress",
    "Reproduction",
    "Row",
    "Sheet",
    "all_experiments",
    "experiment",
    "finished",
    "run",
    "select",
]


def __dir__() -> list[str]:
    return sorted(__all__)
