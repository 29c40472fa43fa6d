"""What only the papers need: what they print, computed again by this package.

An experiment is a function under `experiments/` with the decorator `experiment`; it returns a
frozen `Findings`: values beside the published ones, figures and tables. `make reproduce` runs
them, keeps what is finished, and writes figures, CSV and one HTML page, or the pieces that the
documentation includes. `examples` are the papers' own figures, lemmas and examples of failure.
Nothing in the package imports any of it.
"""

from papers.registry import (
    Experiment,
    Progress,
    all_experiments,
    experiment,
    select,
)
from papers.result import Figure, Findings, Row, Sheet
from papers.runner import Reproduction, finished, run

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
