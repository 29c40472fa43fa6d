"""A new key for the files at rest, by a command that may be killed at any moment and run again.

Each file is sealed anew beside the old one and takes its name in one step; which key a file is
sealed with is found by trying. While the change goes on, a file of the folder says so, and no
curator starts. Giving a first key to files that were plain is the same change.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.service.vault import CHANGING, Vault, overwrite

_OLD = ".old"


def rotate(
    folder: Path, old: bytes | None, new: bytes, progress: Callable[[int, int], None]
) -> int:
    """Seal all files of a vault with a new key; return how many were sealed now.

    Raises:
        InvalidInputError: if both keys are one.
        StorageError: if a file opens with neither key, or a change to another key was begun.
    """
    if old is not None and secrets.compare_digest(old, new):
        raise InvalidInputError("The new key is the old one; make another.")
    before, after = Vault(folder, old), Vault(folder, new)
    if (folder / CHANGING).exists():
        if not _opens(after, CHANGING):
            raise StorageError(
                "A change to another key was begun here and not finished; give that key again."
            )
    else:
        Vault.opened(folder, old)  # refuses what the old key does not open
        after.mark(CHANGING)
    for left in folder.glob(f"*{_OLD}"):  # of a change that was killed between two steps
        if not left.with_suffix("").exists():
            left.rename(left.with_suffix(""))
    names, sealed = sorted(after.names()), 0
    for done, name in enumerate(names):
        if not _opens(after, name):
            _seal(before, after, name)
            sealed += 1
        overwrite(folder / f"{name}{_OLD}")
        progress(done + 1, len(names))
    after.mark()
    (folder / CHANGING).unlink()
    return sealed


def _opens(vault: Vault, name: str) -> bool:
    """Whether a file is sealed with the vault's key, and whole."""
    with suppress(StorageError):
        if vault.is_sealed(name):
            deque(vault.read_named(name), maxlen=0)
            return True
    return False


def _seal(before: Vault, after: Vault, name: str) -> None:
    """Put a file that is sealed anew in the place of the old one, which is overwritten."""
    path, plain = after.folder / name, replace(before, key=None)
    source = before if before.is_sealed(name) else plain
    fresh = after.written_beside(name, source.read_named(name))
    path.rename(path.with_suffix(_OLD))
    fresh.rename(path)
