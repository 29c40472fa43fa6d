"""A new key for the files at rest: killed at every step and resumed, nothing is lost."""

from __future__ import annotations

import os
import shutil

import pytest

from quiltwork.cli.boundary import run
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.service import rotation
from quiltwork.service.rotation import rotate
from quiltwork.service.vault import Vault

OLD, NEW, OTHER = (bytes([byte]) * 32 for byte in (1, 2, 3))
CONTENTS = [b"", b"rest\nwalk\n" * 10, b"x" * 3_000_000]


class KilledError(BaseException):
    """Stands for kill -9: nothing of the program runs after it."""


def filled(folder, key):
    folder.mkdir(mode=0o700)
    vault = Vault.opened(folder, key)
    return {vault.write([content]): content for content in CONTENTS}


def silent(done, total):
    """Say nothing of how far it is."""


def steps_of(folder, kept, old):
    """How often a rotation changes something on the disk."""
    count = 0

    def counting():
        nonlocal count
        count += 1

    killed_after(folder, old, 10**6, counting)
    assert contents(folder, NEW) == kept
    return count


def killed_after(folder, old, steps, seen=lambda: None):
    """Rotate, and kill it after so many steps that change something on the disk."""
    left = steps
    with pytest.MonkeyPatch.context() as patched:
        for name in ("rename", "unlink", "replace", "open", "fsync"):
            usual = getattr(os, name)

            def stepped(*arguments, usual=usual, **named):
                nonlocal left
                seen()
                if left == 0:
                    raise KilledError
                left -= 1
                return usual(*arguments, **named)

            patched.setattr(os, name, stepped)
        patched.setattr("quiltwork.service.vault.overwrite", lambda path: None)  # of a part
        rotate(folder, old, NEW, silent)


def contents(folder, key):
    vault = Vault.opened(folder, key)
    return {name: b"".join(vault.read(name)) for name in vault.names()}


@pytest.mark.parametrize("old", [OLD, None], ids=["sealed", "plain"])
def test_killed_at_any_step_it_is_run_again_and_nothing_is_lost(tmp_path, old):
    kept = filled(tmp_path / "vault", old)
    shutil.copytree(tmp_path / "vault", tmp_path / "counted")
    steps = steps_of(tmp_path / "counted", kept, old)
    assert steps > 10
    for step in range(steps):
        folder = tmp_path / f"killed{step}"
        shutil.copytree(tmp_path / "vault", folder)
        with pytest.raises(KilledError):
            killed_after(folder, old, step)
        if (folder / "key.changing").exists():
            for key in (old, NEW):
                with pytest.raises(StorageError, match="rotate-key"):
                    Vault.opened(folder, key)
            rotate(folder, old, NEW, silent)
        else:
            assert step < 10  # it had not begun: nothing has changed
            rotate(folder, old, NEW, silent)
        assert contents(folder, NEW) == kept
        with pytest.raises(StorageError):
            Vault.opened(folder, OLD)
        assert not [path.name for path in folder.iterdir() if path.suffix == ".old"]
        shutil.rmtree(folder)


def test_what_opens_with_neither_key_is_refused_before_anything_changes(tmp_path):
    kept = filled(tmp_path / "vault", OLD)
    with pytest.raises(StorageError, match="another key"):
        rotate(tmp_path / "vault", OTHER, NEW, silent)
    with pytest.raises(InvalidInputError, match="the old one"):
        rotate(tmp_path / "vault", OLD, OLD, silent)
    assert contents(tmp_path / "vault", OLD) == kept


def test_a_change_that_was_begun_goes_on_to_the_same_key_only(tmp_path, monkeypatch):
    kept = filled(tmp_path / "vault", OLD)

    def killed(*_):
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(rotation, "_reseal", killed)
        with pytest.raises(KilledError):
            rotate(tmp_path / "vault", OLD, NEW, silent)
    with pytest.raises(StorageError, match="rotation to another key is unfinished"):
        rotate(tmp_path / "vault", OLD, OTHER, silent)
    assert rotate(tmp_path / "vault", OLD, NEW, silent) == len(CONTENTS)
    assert contents(tmp_path / "vault", NEW) == kept


def test_the_command_changes_the_key_of_a_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").mkdir(mode=0o700)
    kept = filled(tmp_path / "data" / "vault", OLD)
    monkeypatch.setenv("QUILTWORK_KEY", OLD.hex())
    line = ["rotate-key", "--data", str(tmp_path / "data"), "--json"]
    assert run(line) == 2
    assert "QUILTWORK_NEW_KEY" in capsys.readouterr().err
    monkeypatch.setenv("QUILTWORK_NEW_KEY", NEW.hex())
    assert run(line) == 0
    assert '"sealed": 3' in capsys.readouterr().out
    assert contents(tmp_path / "data" / "vault", NEW) == kept
    assert run(line[:-1]) == 0  # again, with the same keys: nothing is left to do, and it says so
    assert "set QUILTWORK_KEY to the key in QUILTWORK_NEW_KEY" in capsys.readouterr().out
    monkeypatch.setenv("QUILTWORK_NEW_KEY", OTHER.hex())
    assert run(line) != 0  # the old key opens nothing any more
    assert contents(tmp_path / "data" / "vault", NEW) == kept
