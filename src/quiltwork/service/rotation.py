"""Key rotation: re-encrypts the vault with a new key; can be killed at any moment and resumed.

Each file is encrypted aside and then takes the old one's name by a rename; which key a file has is
found by trying both. A marker file exists while the rotation runs, and no curator starts then.
Encrypting files that were stored without a key is the same operation.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.service.vault import CHANGING, KEY_CHECK, Vault, overwrite

_OLD = ".old"


def rotate(
    folder: Path, old: bytes | None, new: bytes, progress: Callable[[int, int], None]
) -> int:
    """Encrypt all files of a vault with a new key; return how many this run encrypted.

    After a rotation that ended, the same call reads every file and returns 0.

    Raises:
        InvalidInputError: if both keys are equal.
        StorageError: if a file opens with neither key, or a rotation to another key is unfinished.
    """
    if old is not None and secrets.compare_digest(old, new):
        raise InvalidInputError("The new key equals the old one. Make another key.")
    before, after = Vault(folder, old), Vault(folder, new)
    if (folder / CHANGING).exists():
        if not _opens(after, CHANGING):
            raise StorageError(
                "A rotation to another key is unfinished here. Run the command again with that "
                "key as QUILTWORK_NEW_KEY."
            )
    else:
        # Run again after it ended, the command finds the new key in use, which is no error.
        is_done = (folder / KEY_CHECK).exists() and _opens(after, KEY_CHECK)
        present = new if is_done else old
        Vault.opened(folder, present)  # refuses a wrong old key before anything is changed
        after.write_check(CHANGING)
    for leftover in folder.glob(f"*{_OLD}"):  # killed between the two renames of `_reseal`
        if not leftover.with_suffix("").exists():
            leftover.rename(leftover.with_suffix(""))
    names, sealed = sorted(after.names()), 0
    for done, name in enumerate(names):
        if not _opens(after, name):
            _reseal(before, after, name)
            sealed += 1
        overwrite(folder / f"{name}{_OLD}")
        progress(done + 1, len(names))
    after.write_check()
    (folder / CHANGING).unlink()
    return sealed


def _opens(vault: Vault, name: str) -> bool:
    """Whether a file is intact and encrypted with the vault's key."""
    with suppress(StorageError):
        if vault.is_sealed(name):
            deque(vault.read_any(name), maxlen=0)
            return True
    return False


def _reseal(before: Vault, after: Vault, name: str) -> None:
    """Replace a file by its copy under the new key; the old one waits as `.old` for overwriting."""
    path, plain = after.folder / name, replace(before, key=None)
    source = before if before.is_sealed(name) else plain
    fresh = after.write_aside(name, source.read_any(name))
    path.rename(path.with_suffix(_OLD))
    fresh.rename(path)
