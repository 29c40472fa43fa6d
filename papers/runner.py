"""Run experiments and cache their results under a fingerprint of the code and the size."""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from papers.registry import Experiment, Progress, Size
from papers.result import Findings, result_from_dict, result_to_dict
from quiltwork import files
from quiltwork.errors import InvalidInputError

PRESENTATION = ("cli/", "report/", "demo/")
"""Folders that only show results: a change in them does not make a stored result stale."""


@dataclass(frozen=True)
class Reproduction:
    """A result with its experiment and size; `kept` if it was stored by an earlier run."""

    experiment: Experiment
    size: Size
    result: Findings
    seconds: float
    kept: bool


def run(
    experiment: Experiment, size: Size, folder: Path, progress: Progress, *, fresh: bool = False
) -> Reproduction:
    """Run an experiment and store its result, or return the stored one if nothing changed."""
    if not fresh and (stored := finished(experiment, size, folder)):
        return stored
    started = time.perf_counter()
    result = experiment.function(progress, **experiment.parameters(size))
    seconds = round(time.perf_counter() - started, 3)
    body = {
        "name": experiment.name,
        "item": experiment.item,
        "size": size,
        "parameters": dict(experiment.parameters(size)),
        "fingerprint": fingerprint(experiment, size),
        "seconds": seconds,
        "result": result_to_dict(result),
    }
    path = _path(experiment, size, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, files.dump("reproduction", 1, body))
    return Reproduction(experiment, size, result, seconds, kept=False)


def finished(experiment: Experiment, size: Size, folder: Path) -> Reproduction | None:
    """Return the stored result of the same code and size; None if there is none."""
    try:
        text = _path(experiment, size, folder).read_text(encoding="utf-8")
        document = files.load(text, "reproduction", (1,))
        if document.get("fingerprint") != fingerprint(experiment, size):
            return None
        result = result_from_dict(document["result"])
    except (FileNotFoundError, InvalidInputError, KeyError):
        return None
    return Reproduction(experiment, size, result, document["seconds"], kept=True)


def fingerprint(experiment: Experiment, size: Size) -> str:
    """Return a digest of the package, the experiment's own module and its size."""
    own = sys.modules[experiment.function.__module__].__file__
    digest = hashlib.sha256(_mathematics())
    digest.update(Path(str(own)).read_bytes())
    digest.update(repr(sorted(experiment.parameters(size).items())).encode())
    return digest.hexdigest()


@cache
def _mathematics() -> bytes:
    """Return a digest of the package without `PRESENTATION`, and of the examples."""
    import quiltwork

    package, examples = Path(quiltwork.__file__).parent, Path(__file__).parent / "examples"
    digest = hashlib.sha256()
    for root in (package, examples):
        for path in sorted(root.rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if root == examples or not name.startswith(PRESENTATION):
                digest.update(name.encode())
                digest.update(path.read_bytes())
    return digest.digest()


def _path(experiment: Experiment, size: Size, folder: Path) -> Path:
    return folder / "results" / f"{experiment.name}.{size}.json"
