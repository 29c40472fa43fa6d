"""The registry of experiments. A new experiment is a decorated function; list its module here.

    @experiment(
        "geometric-figure-2",
        title="Figure 2 in exact fractions",
        item="geometric-mechanism, Figure 2",
        quick={"draws": 10_000},
        full={"draws": 1_000_000},
    )
    def figure_2(progress: Progress, draws: int) -> Findings: …

Call `progress(done, total)` as often as is useful. Modules import heavy packages inside their
functions, so that listing experiments is instant.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from papers.result import Findings
from quiltwork.errors import InvalidInputError, UnsupportedError

MODULES = (
    "papers.experiments.time_series",
    "papers.experiments.gaussian_noise",
    "papers.experiments.plausible",
    "papers.experiments.accounting",
    "papers.experiments.geometric",
    "papers.experiments.geometric_theorems",
    "papers.experiments.consumers",
    "papers.experiments.anonymization",
    "papers.experiments.m_privacy",
    "papers.experiments.holdout",
    "papers.experiments.quilts",
    "papers.experiments.holdout_theorems",
)

SHARED = "QUILTWORK_SHARED"
"""Environment variable that names the folder of real data, which the package does not have."""

Progress: TypeAlias = Callable[[int, int], None]
Size: TypeAlias = Literal["quick", "full"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Experiment:
    """A runnable computation of an item of a paper, or of a claim of ours.

    Attributes:
        item: the paper's file name and the item in it, or "quiltwork".
        quick, full: the arguments of the two sizes.
    """

    name: str
    title: str
    item: str
    quick: Mapping[str, int]
    full: Mapping[str, int]
    function: Callable[..., Findings]

    def parameters(self, size: Size) -> Mapping[str, int]:
        """Return the arguments of a size."""
        return self.full if size == "full" else self.quick


def experiment(
    name: str,
    *,
    title: str,
    item: str = "quiltwork",
    quick: Mapping[str, int] | None = None,
    full: Mapping[str, int] | None = None,
) -> Callable[[Callable[..., Findings]], Experiment]:
    """Decorate a function of (progress, **size) as an experiment; sizes may be empty.

    `item` is the paper's file name and the item in it, or "quiltwork" for a claim of ours.
    """

    def decorate(function: Callable[..., Findings]) -> Experiment:
        return Experiment(name, title, item, dict(quick or {}), dict(full or {}), function)

    return decorate


def tracked(progress: Progress, items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items and report progress after each."""
    listed = list(items)
    for done, item in enumerate(listed, start=1):
        yield item
        progress(done, len(listed))


def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by name, in the order of the table."""
    modules = [importlib.import_module(module) for module in MODULES]
    experiments = [
        value for m in modules for value in vars(m).values() if isinstance(value, Experiment)
    ]
    return {experiment.name: experiment for experiment in experiments}


def select(names: Sequence[str]) -> list[Experiment]:
    """Return the named experiments, or all of them."""
    experiments = all_experiments()
    for name in names:
        if name not in experiments:
            raise InvalidInputError(f"No experiment {name!r}; there are: {', '.join(experiments)}.")
    return [experiments[name] for name in names] if names else list(experiments.values())


def shared_file(name: str) -> Path:
    """Return the path of a shared data file such as `data/adult.csv.gz`.

    It is looked for in the folder that QUILTWORK_SHARED names, else in `../shared`.
    """
    folder = Path(os.environ.get(SHARED) or Path("..", "shared"))
    path = folder / name
    if not path.exists():
        raise UnsupportedError(
            f"The data file {name} is not here; set {SHARED} to the folder that holds it."
        )
    return path
