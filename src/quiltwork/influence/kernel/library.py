"""The compiled library of the kernel: found, checked and loaded once per process.

In a source checkout it is recompiled whenever its sources have changed, so that an edited kernel
never runs stale; an installed package refuses a library of other sources.
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
"""Matrix entries processed per call: at most about a fifth of a second of work."""
_STATUS_TEXT = {
    -1: "a size or an index is out of range",
    -2: "an entry of a row is negative or not finite",
    -3: "a cached tree refers to a state that does not exist",
    -4: "the workspace is too small",
}


class KernelError(UnsupportedError):
    """The compiled kernel is missing, is of other sources, or refused its input."""


@cache
def loaded() -> ctypes.CDLL:
    """The library of this platform and these sources.

    Raises:
        KernelError: if it is missing and cannot be built.
    """
    return load(FOLDER)


def load(folder: Path) -> ctypes.CDLL:
    """Load the library in a folder; in a checkout compile it first if its sources have changed."""
    path, current = folder / library_name(this_platform()), digest(folder)
    if not _made_from(path, current):
        if not _is_checkout(folder):
            raise KernelError(
                f"The compiled kernel {path.name} in {folder} is "
                + ("built from other sources. " if path.exists() else "missing. ")
                + "Install quiltwork again: pip install --force-reinstall quiltwork"
            )
        try:
            build(folder)
        # a read-only checkout: say what the compiler or the system said
        except (BuildError, OSError) as error:
            raise KernelError(str(error)) from error
    try:
        library_ = ctypes.CDLL(str(path))
        library_.kernel_digest.restype = ctypes.c_char_p
        built_from = library_.kernel_digest().decode()
    except (OSError, AttributeError) as error:
        raise KernelError(f"The compiled kernel {path} cannot be loaded: {error}") from error
    if built_from != current:
        raise KernelError(
            f"The compiled kernel {path} was built from other sources. Install quiltwork again: "
            "pip install --force-reinstall quiltwork"
        )
    return library_


def call_until_done(call: Callable[[], int]) -> None:
    """Call the kernel until it is done; between two calls signals and other threads are served.

    Raises:
        KernelError: if the kernel refuses its input.
    """
    while (status := call()) == MORE:
        pass
    if status < 0:
        raise KernelError(f"The kernel refused its input: {_STATUS_TEXT.get(status, status)}.")


def address(array: np.ndarray) -> int:
    """The memory address of an array's first entry."""
    if not array.flags.c_contiguous:
        raise ValueError("The kernel reads and writes contiguous arrays only.")
    return int(array.__array_interface__["data"][0])


def workspace(size: int) -> np.ndarray:
    """A zeroed workspace of `size` bytes; a negative size is a status.

    Raises:
        KernelError: for a status.
    """
    if size < 0:
        raise KernelError(f"The kernel refused its input: {_STATUS_TEXT.get(size, size)}.")
    # an array of doubles is aligned for every type in the workspace
    return np.zeros(size // 8 + 1)


def _made_from(path: Path, digest_: str) -> bool:
    """Whether a library file contains this digest."""
    try:
        return digest_.encode() in path.read_bytes()
    except OSError:
        return False


def _is_checkout(folder: Path) -> bool:
    """Whether this is a source checkout and not an installed package."""
    root = folder.parents[3]
    return (root / "hatch_build.py").is_file() and (root / "pyproject.toml").is_file()
