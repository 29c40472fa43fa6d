"""The compiled library of the kernel: found, checked and loaded once per process.

In a source checkout it is compiled again whenever its sources are others than those it was made
from, so that an edited kernel never runs stale; an installed package refuses such a library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from quiltwork.errors import UnsupportedError
from quiltwork.influence.kernel.building import (
    FOLDER,
    BuildError,
    build,
    digest,
    library_name,
    this_platform,
)

MORE = 1
MOST_WORK = 1 << 26
"""So many entries of matrices are looked at in one call: at most about a fifth of a second."""
_MEANINGS = {
    -1: "a size or an index is out of range",
    -2: "an entry of a row is negative or not finite",
    -3: "a kept tree names a state that is not there",
    -4: "the room to work in is too small",
}


class KernelError(UnsupportedError):
    """The compiled kernel is missing, is of other sources, or was called with what it refuses."""


@cache
def loaded() -> ctypes.CDLL:
    """The library of this platform and these sources.

    Raises:
        KernelError: if there is none, and none can be made.
    """
    return load(FOLDER)


def load(folder: Path) -> ctypes.CDLL:
    """Load the library in a folder; in a checkout compile it first if its sources have changed."""
    path, now = folder / library_name(this_platform()), digest(folder)
    if not _made_from(path, now):
        if not _is_checkout(folder):
            raise KernelError(
                f"The compiled kernel {path.name} in {folder} is "
                + ("of other sources than those beside it. " if path.exists() else "missing. ")
                + "Install quiltwork again: pip install --force-reinstall quiltwork"
            )
        try:
            build(folder)
        except (BuildError, OSError) as error:
            raise KernelError(str(error)) from error
    try:
        found = ctypes.CDLL(str(path))
        found.kernel_digest.restype = ctypes.c_char_p
        made_from = found.kernel_digest().decode()
    except (OSError, AttributeError) as error:
        raise KernelError(f"The compiled kernel {path} cannot be loaded: {error}") from error
    if made_from != now:
        raise KernelError(f"The compiled kernel {path} is of other sources than those beside it.")
    return found


def in_parts(call: Callable[[], int]) -> None:
    """Call until there is no more to do; between two calls signals and other threads have turns.

    Raises:
        KernelError: if the kernel refuses what it was given.
    """
    while (status := call()) == MORE:
        pass
    if status < 0:
        raise KernelError(f"The kernel refuses its input: {_MEANINGS.get(status, status)}.")


def address(array: np.ndarray) -> int:
    """Where the entries of an array begin."""
    if not array.flags.c_contiguous:
        raise ValueError("The kernel reads and writes contiguous arrays only.")
    return int(array.__array_interface__["data"][0])


def room(size: int) -> np.ndarray:
    """So many bytes of room, all 0; a negative size is a status.

    Raises:
        KernelError: for a status.
    """
    if size < 0:
        raise KernelError(f"The kernel refuses its input: {_MEANINGS.get(size, size)}.")
    return np.zeros(size // 8 + 1)


def _made_from(path: Path, digest_: str) -> bool:
    """Whether a library file carries this digest."""
    try:
        return digest_.encode() in path.read_bytes()
    except OSError:
        return False


def _is_checkout(folder: Path) -> bool:
    """Whether these are sources that people edit, and not an installed package."""
    root = folder.parents[3]
    return (root / "hatch_build.py").is_file() and (root / "pyproject.toml").is_file()
