"""How the kernel is compiled, found and refused; and what sanitizers say of hostile input."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quiltwork.influence.kernel import KernelError, building, library
from quiltwork.influence.sweep import program

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path):
    """The kernel's folder in a checkout of its own, without a library."""
    folder = tmp_path / "src" / "quiltwork" / "influence" / "kernel"
    folder.mkdir(parents=True)
    for path in building.sources():
        shutil.copy(path, folder)
    for name in ("hatch_build.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return folder


def edit(folder):
    source = folder / "product.c"
    source.write_text(source.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def made_from(found):
    return found.kernel_digest().decode()


def test_a_checkout_compiles_its_kernel_again_whenever_a_source_changes(checkout, monkeypatch):
    built, honest = [], library.build
    monkeypatch.setattr(library, "build", lambda folder: built.append(1) or honest(folder))
    assert made_from(library.load(checkout)) == building.digest()
    library.load(checkout)
    assert len(built) == 1
    edit(checkout)
    assert building.digest(checkout) != building.digest()
    path = checkout / building.library_name(building.this_platform())
    assert building.digest(checkout).encode() not in path.read_bytes()
    with pytest.raises(KernelError, match="from other sources"):  # a process keeps what it loaded
        library.load(checkout)
    moved = checkout.rename(checkout.with_name("moved"))
    assert made_from(library.load(moved)) == building.digest(moved)
    assert len(built) == 2
    assert not list(moved.glob(".kernel-*"))


def test_an_installed_package_refuses_a_library_that_is_missing_or_of_other_sources(checkout):
    (checkout.parents[3] / "hatch_build.py").unlink()
    with pytest.raises(KernelError, match=r"is missing\. Install quiltwork again"):
        library.load(checkout)
    building.build(checkout)
    edit(checkout)
    with pytest.raises(KernelError, match=r"from other sources.*Install quiltwork again"):
        library.load(checkout)


def test_every_source_and_every_flag_is_in_the_digest(checkout, monkeypatch):
    seen = {building.digest(checkout)}
    for path in building.sources(checkout):
        path.write_bytes(path.read_bytes() + b" ")
        seen.add(building.digest(checkout))
    monkeypatch.setattr(building, "FLAGS", (*building.FLAGS, "-g"))
    seen.add(building.digest(checkout))
    assert len(seen) == len(building.sources()) + 2
    before = building.digest(checkout)
    (checkout / "more.c").write_text("", encoding="utf-8")
    assert building.digest(checkout) != before
    crlf = checkout / "kernel.c"
    before = building.digest(checkout)
    crlf.write_bytes(crlf.read_bytes().replace(b"\n", b"\r\n"))
    assert building.digest(checkout) == before


def test_a_machine_without_a_compiler_is_told_what_to_install(checkout, monkeypatch, tmp_path):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(building, "find_spec", lambda name: None)
    with pytest.raises(KernelError, match=r"no compiler.*apt install gcc.*100 MB: pip install zig"):
        library.load(checkout)
    monkeypatch.setattr(building, "find_spec", lambda name: name)
    assert building.compilers() == [[sys.executable, "-m", "ziglang", "cc", *building.ZIG_FLAGS]]


def test_a_compiler_that_refuses_is_quoted_and_the_next_one_tried(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv("CC", "no-such-compiler --option")
    with pytest.raises(KernelError, match="no-such-compiler"):
        library.load(checkout)
    monkeypatch.delenv("CC")
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho broken >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert made_from(library.load(checkout)) == building.digest()
    (checkout / "product.c").write_text("nonsense\n", encoding="utf-8")
    (checkout / building.library_name(building.this_platform())).unlink()
    with pytest.raises(KernelError, match=r"(?s)does not compile.*exit|broken.*nonsense"):
        library.load(checkout)


def test_the_name_of_the_library_carries_its_platform_and_git_leaves_it_out():
    assert sys.platform in building.this_platform()
    names = {building.library_name(target.platform) for target in building.TARGETS}
    assert len(names) == len(building.TARGETS)
    assert building.library_name(building.this_platform()).count("-") >= 2
    folder = building.FOLDER.relative_to(ROOT)
    paths = [str(folder / name) for name in names]
    if (ROOT / ".git").exists():
        done = subprocess.run(
            ["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == paths


def test_the_kernel_and_the_package_have_the_same_program():
    header = (building.FOLDER / "kernel.h").read_text(encoding="utf-8")
    for name in ("LARGEST_LIMIT", "SMALLEST_ENTRY", "MARGIN", "SLACK"):
        number = re.search(rf"^#define {name} (\S+)", header, re.M)[1]
        value = float.fromhex(number) if number.startswith("0x") else float(number)
        assert value == getattr(program, name)


def test_nothing_of_python_or_numpy_is_compiled_in():
    for path in building.sources():
        included = set(re.findall(r"#include <(.*)>", path.read_text(encoding="utf-8")))
        assert included <= {
            *("fenv.h", "float.h", "math.h", "stddef.h", "stdint.h", "string.h", "xmmintrin.h")
        }


def test_sanitizers_find_nothing_wrong_under_hostile_input(tmp_path):
    """Infinities, NaN, subnormal entries, one state, no pair, sizes and trees that are refused."""
    made = tmp_path / "hostile"
    flags = ["-std=c11", "-g", "-O1", "-ffp-contract=off", f"-I{building.FOLDER}"]
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = [*building.compilers()[0], *flags, *sanitized, str(HERE / "hostile.c"), "-lm"]
    done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "san" in done.stderr:
        pytest.skip("sanitizers absent: the compiler has no libasan and libubsan")
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([str(made)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    refused = [int(count) for count in ran.stdout.split()]
    assert len(refused) == 5
    assert min(refused) > 100  # every status was met
