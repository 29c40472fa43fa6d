"""The papers' results, computed with this package.

An experiment is a function under `experiments/` with the decorator `experiment`; it returns a
frozen `Findings`: values beside the published ones, figures and tables. `make reproduce` runs
experiments, caches results, and writes figures, CSV, one HTML page, and Markdown for the
documentation. `examples` has the papers' own figures, lemmas and counterexamples.
Nothing in the package imports this folder.
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
