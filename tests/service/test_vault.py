"""Files at rest: sealed, bound to their place, and gone when deleted."""

from __future__ import annotations

import os

import pytest

from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.service.settings import key_from, private_folder
from quiltwork.service.vault import Vault

KEY = bytes(range(32))
SIZES = [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1]


@pytest.fixture(params=[None, KEY], ids=["plain", "sealed"])
def vault(request, tmp_path):
    return Vault(tmp_path, request.param)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_written_is_read(vault, size):
    content = os.urandom(size)
    name = vault.write([content[:10], content[10:]])
    assert b"".join(vault.read(name)) == content
    with vault.plain(name, ".csv") as path:
        assert path.read_bytes() == content
        assert path.suffix == ".csv"
    assert vault.names() == {name}
    vault.delete(name)
    vault.delete(name)
    assert not any(vault.folder.iterdir())


def test_what_a_killed_process_has_left_is_removed_after_an_hour(vault):
    needed, kept = vault.write([b"needed"]), vault.write([b"young"])
    left = [vault.folder / f"{n:032x}{end}" for n, end in enumerate((".csv", ".part", "", ".csv"))]
    left[0].symlink_to("/proc/1/fd/99999")
    left[3].symlink_to("/proc/1/fd/99999")
    for path in (*left[1:3], vault.folder / needed):
        path.write_bytes(b"old")
    for path in (*left[:3], vault.folder / needed):
        os.utime(path, (1, 1), follow_symlinks=False)
    vault.clean({needed})
    assert {path.name for path in vault.folder.iterdir()} == {needed, kept, left[3].name}


def test_an_error_about_a_lent_file_does_not_say_where_it_is(vault):
    name = vault.write([b"a"])
    with (
        pytest.raises(InvalidInputError, match=r"^the file and the file: wrong$"),
        vault.plain(name, ".csv") as path,
    ):
        raise InvalidInputError(f"{str(path)!r} and {path}: wrong")
    assert vault.names() == {name}


def test_a_file_is_for_its_user_only(vault):
    name = vault.write([b"secret"])
    assert (vault.folder / name).stat().st_mode & 0o077 == 0


def test_what_fails_while_it_is_written_leaves_nothing(vault):
    def parts():
        yield b"some"
        raise InvalidInputError("enough")

    with pytest.raises(InvalidInputError):
        vault.write(parts())
    assert not any(vault.folder.iterdir())


def test_a_sealed_file_can_be_neither_read_nor_changed_without_its_key(tmp_path):
    vault, chunk = Vault(tmp_path, KEY), 1 << 20
    name = vault.write([b"canary" * chunk])
    path = tmp_path / name
    sealed = path.read_bytes()
    assert b"canary" not in sealed
    head = len(sealed) - 6 * (chunk + 16)
    pieces = [sealed[head + i * (chunk + 16) :][: chunk + 16] for i in range(6)]
    forged = {
        "a bit": bytes([*sealed[:-1], sealed[-1] ^ 1]),
        "cut": sealed[:head] + b"".join(pieces[:5]),
        "empty": sealed[:head],
        "swapped": sealed[:head] + b"".join([pieces[1], pieces[0], *pieces[2:]]),
    }
    for content in forged.values():
        path.write_bytes(content)
        with pytest.raises(StorageError):
            list(vault.read(name))
    path.write_bytes(sealed)
    other = tmp_path / ("0" * 32)
    path.rename(other)
    for wrong in (vault, Vault(tmp_path, bytes(32)), Vault(tmp_path)):
        with pytest.raises(StorageError):
            list(wrong.read(other.name))


def test_names_are_names(tmp_path):
    with pytest.raises(InvalidInputError):
        list(Vault(tmp_path).read("../etc/passwd"))


def test_the_key_comes_from_the_environment():
    assert key_from({}) is None
    assert key_from({"QUILTWORK_KEY": KEY.hex()}) == KEY
    assert key_from({"QUILTWORK_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}) == KEY
    with pytest.raises(InvalidInputError, match="32 random bytes"):
        key_from({"QUILTWORK_KEY": "short"})
    with pytest.raises(InvalidInputError, match="is empty"):  # a failed $(openssl …)
        key_from({"QUILTWORK_KEY": " "})


def test_a_folder_that_others_may_read_is_refused(tmp_path):
    assert private_folder(tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with pytest.raises(StorageError, match="chmod 700"):
        private_folder(tmp_path / "open")


def test_a_start_refuses_a_missing_and_a_wrong_key(tmp_path):
    vault = Vault.opened(tmp_path, KEY)
    name = vault.write([b"rows"])
    for wrong, said in ((None, "is not set"), (bytes(32), "another key")):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(StorageError, match=said):
            Vault.opened(tmp_path, wrong)
        assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    again = Vault.opened(tmp_path, KEY)
    again.clean({name})
    assert b"".join(again.read(name)) == b"rows"
    assert again.names() == {name}


def test_a_folder_that_was_sealed_before_there_was_a_check_is_known_by_its_files(tmp_path):
    name = Vault(tmp_path, KEY).write([b"rows"])
    for wrong in (None, bytes(32)):
        with pytest.raises(StorageError, match="QUILTWORK_KEY"):
            Vault.opened(tmp_path, wrong)
    assert b"".join(Vault.opened(tmp_path, KEY).read(name)) == b"rows"
    (tmp_path / name).unlink()
    with pytest.raises(StorageError, match="another key"):
        Vault.opened(tmp_path, bytes(32))


def test_a_key_given_later_seals_what_is_written_from_then_on(tmp_path):
    plain = Vault.opened(tmp_path, None)
    name = plain.write([b"rows"])
    sealed = Vault.opened(tmp_path, KEY)
    assert b"".join(sealed.read(name)) == b"rows"
    sealed.write([b"more"])
    assert sealed.unencrypted() == 1
    with pytest.raises(StorageError, match="is not set"):
        Vault.opened(tmp_path, None)
