"""Files appear whole or not at all, and never in the place of anything but a file."""

from __future__ import annotations

import os
import stat

import pytest

from quiltwork import files
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.report import BarChart
from quiltwork.report.figures import write_figure
from quiltwork.report.svg import standalone_svg


def device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        return "/dev/full"
    return path


@pytest.mark.parametrize("content", ["ε\n", b"\x00\xff"])
def test_what_is_written_is_what_is_there_and_nothing_else(tmp_path, content):
    files.write(tmp_path / "new", content)
    files.write(tmp_path / "new", content)
    expected = content.encode() if isinstance(content, str) else content
    assert (tmp_path / "new").read_bytes() == expected
    assert os.listdir(tmp_path) == ["new"]


def test_a_failure_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "kept"
    path.write_text("old")
    for error, seen in ((ZeroDivisionError(), ZeroDivisionError), (OSError(28, "f"), StorageError)):
        with pytest.raises(seen):
            _write_half(path, error)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept"]


def _write_half(path, error):
    with files.replacing(path) as file:
        file.write(b"half")
        raise error


def test_devices_pipes_and_folders_are_refused_and_stay(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/null")
    made = device(tmp_path / "device")
    for path in (tmp_path / "pipe", tmp_path / "folder", tmp_path / "link", made):
        kind = os.stat(path).st_mode
        with pytest.raises(InvalidInputError, match="name a file"):
            files.write(path, "text")
        assert os.stat(path).st_mode == kind
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("path", ["no/such/folder", "there/below", "x" * 300, "nul\0"])
def test_paths_that_cannot_be_written_say_so(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("a file")
    with pytest.raises(StorageError, match="could not be written"):
        files.check_writable(path)
    assert os.listdir(tmp_path) == ["there"]
    with pytest.raises(InvalidInputError, match="empty"):
        files.check_writable("")


def test_links_and_permissions_are_kept(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


def test_a_file_for_its_owner_only_is_so_whatever_was_there(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o644)
    for name in ("old", "new"):
        with files.replacing(tmp_path / name, files.OWNER_ONLY) as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
            file.write(b"kept")
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert (tmp_path / name).read_text() == "kept"


def test_a_figure_needs_the_ending_of_a_format(tmp_path):
    bars = BarChart("bars", "one bar", "x", (("a", 1.0),))
    for name in ("full", "x.foo", ".png"):
        with pytest.raises(InvalidInputError, match=r"\.png, \.svg or \.pdf"):
            write_figure(str(tmp_path / name), bars)
    assert os.listdir(tmp_path) == []
    write_figure(str(tmp_path / "x.PNG"), bars)
    assert (tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")
    write_figure(str(tmp_path / "y.svg"), bars)
    assert (tmp_path / "y.svg").read_text() == standalone_svg(bars)
