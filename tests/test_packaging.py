"""The wheel is small, typed and complete; it installs and runs in an empty environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import quiltwork

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target)]
    done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(target.glob("*.whl"))


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size < 1_600_000


def test_the_wheel_holds_the_package_its_types_and_its_licence_only(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    assert "quiltwork/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(re.match(r"quiltwork(/|-[\d.]+\.dist-info/)", name) for name in names)
    sources = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")}
    assert sources <= set(names)
    assert "License-Expression: Apache-2.0" in metadata


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and what its core needs, from the lock."""
    environment = tmp_path_factory.mktemp("core") / "env"
    venv.create(environment)
    python = environment / "bin" / "python"
    install = [*pip(python), "install", "--quiet", "--no-compile"]
    run([*install, "--require-hashes", "-r", str(REQUIREMENTS / "core.txt")], environment)
    run([*install, "--no-deps", str(wheel)], environment)
    return python


def pip(python: Path) -> list[str]:
    return [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]


def test_the_wheel_runs_in_a_clean_environment(core, tmp_path):
    """Core requirements only, in a folder that is not the checkout."""
    run([*pip(core), "check"], tmp_path)
    quiltwork_command = str(core.with_name("quiltwork"))
    version = run([quiltwork_command, "--version"], tmp_path)
    assert version.strip() == f"quiltwork {quiltwork.__version__}"
    where = run([str(core), "-c", "import quiltwork; print(quiltwork.__file__)"], tmp_path)
    assert str(core.parents[1].resolve()) in where
    assert run([quiltwork_command, "demo"], tmp_path).strip()


NUMBERS = ROOT / "tests" / "every_number.py"
OTHER_LIBRARIES = {"OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"}
"""Loops for an old processor in NumPy's and SciPy's linear algebra, which sum in another order."""


def test_no_number_depends_on_what_is_installed_nor_on_the_linear_algebra(core, tmp_path):
    """The core alone beside the environment with everything, to the last digit."""
    works = [
        started([str(core), str(NUMBERS)], tmp_path, OTHER_LIBRARIES),
        started([sys.executable, str(NUMBERS)], tmp_path, {"PYTHONPATH": str(ROOT / "src")}),
    ]
    bare, full = (json.loads(finished(work)) for work in works)
    answered = [name for name, value in full.items() if not str(value).endswith("Error")]
    assert len(answered) > 240
    assert {name: bare[name] for name in bare if bare[name] != full.get(name)} == {}
    assert bare.keys() == full.keys()


def test_a_ledger_filled_in_one_environment_is_verified_in_the_other(core, tmp_path):
    """Spent to the last that fits: what a total gained by rounding would be above the budget."""
    source = {"PYTHONPATH": str(ROOT / "src")}
    environments = [(str(core), OTHER_LIBRARIES), (sys.executable, source)]
    for number, (writer, reader) in enumerate(zip(environments, environments[::-1], strict=True)):
        path = str(tmp_path / f"{number}.db")
        finished(started([writer[0], str(NUMBERS), "--ledger", path], tmp_path, writer[1]))
        totals = [
            json.loads(finished(started([python, str(NUMBERS), "--verify", path], tmp_path, more)))
            for python, more in (reader, writer)
        ]
        assert totals[0] == totals[1]
        assert min(totals[0].values()) > 0.99


def started(command: list[str], folder: Path, more: dict[str, str]) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=clean | more, **pipes)


def finished(work: subprocess.Popen[str]) -> str:
    written, errors = work.communicate()
    assert work.returncode == 0, errors
    return written


def run(command: list[str], folder: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def pins(name: str) -> dict[str, str]:
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, flags=re.M))


@pytest.mark.parametrize("name", ["build", "core", "publish", "server", "dev", "zig"])
def test_requirements_are_pinned_with_hashes(name):
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.M | re.I)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+==", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_locks_agree_with_each_other_and_with_the_package():
    dev, core, publish, build = (pins(name) for name in ("dev", "core", "publish", "build"))
    assert core.items() <= publish.items() <= dev.items()
    assert build.items() <= dev.items()
    required = {re.split(r"[<>=\[; ]", r)[0] for r in PYPROJECT["project"]["dependencies"]}
    assert required <= core.keys()


def test_no_lock_brings_in_a_deep_learning_stack():
    for name in ("build", "core", "dev"):
        assert not [pin for pin in pins(name) if re.match(r"torch|tensorflow|jax|nvidia", pin)]


def test_the_extras_are_those_of_the_public_surface():
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert set(extras) == {
        "data",
        "publish",
        "holdout",
        "sign",
        "mcp",
        "plot",
        "server",
        "postgres",
        "spark",
        "all",
    }
    listed = re.search(r"\[(.*)\]", extras["all"][0])
    assert listed is not None
    assert set(listed[1].split(",")) == set(extras) - {"all"}


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {quiltwork.__version__}\n" in citation


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode != 0:  # a source archive: no repository to ask
        found = [p for p in ROOT.rglob("*") if not p.relative_to(ROOT).parts[0].startswith(".")]
        return [p for p in found if p.is_file() and "__pycache__" not in p.parts]
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


LOCAL_PATH = re.compile(r"(?<![\w.])/(root|work|opt|home/\w+|Users/\w+)/\w")
REGISTRY = re.compile(r"--(extra-)?index-url|--find-links|pypi\.org/simple|pythonhosted")


def test_no_tracked_file_names_a_machine_or_a_registry():
    for path in tracked_files():
        if path == Path(__file__) or path.suffix in (".png", ".gz"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")  # a story's file is Latin-1
        text = text.replace("--no-emit-index-url", "")
        for pattern in (LOCAL_PATH, REGISTRY):
            found = pattern.search(text)
            assert not found, f"{path.relative_to(ROOT)}: {found.group()!r}"
