"""Where experiments find real data, which is no part of the package."""

from __future__ import annotations

import os
from pathlib import Path

from quiltwork.errors import UnsupportedError

VARIABLE = "QUILTWORK_SHARED"


def shared_file(name: str) -> Path:
    """Return the path of a shared data file such as `data/adult.csv.gz`.

    It is looked for in the folder that QUILTWORK_SHARED names, else in `../shared`.

    Raises:
        UnsupportedError: if it is not there; the experiment is then passed over.
    """
    folder = Path(os.environ.get(VARIABLE) or Path("..", "shared"))
    path = folder / name
    if not path.exists():
        raise UnsupportedError(
            f"The data file {name} is not here; set {VARIABLE} to the folder that holds it."
        )
    return path
