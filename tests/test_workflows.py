"""Workflows and citation say what the Makefile, the metadata and the version say."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import quiltwork
from quiltwork.influence.kernel.building import TARGETS

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / ".github" / "workflows").glob("*.yml")
}


def test_workflows_call_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, flags=re.M))
    called = [re.findall(r"run: make (.+)", text) for text in WORKFLOWS.values()]
    assert all(called), "a workflow that calls no target does what nobody else runs"
    assert {name for lines in called for line in lines for name in line.split()} <= targets


def test_every_wheel_is_run_on_a_machine_that_it_is_for():
    text = WORKFLOWS["wheels.yml"]
    assert set(re.findall(r"tag: (\w+) }", text)) == {target.tag for target in TARGETS}
    assert "uses: ./.github/workflows/wheels.yml" in WORKFLOWS["release.yml"]
    for name in re.findall(r"tests/\w+\.py", text):
        assert (ROOT / name).exists()


def test_numbers_of_two_machines_are_near_or_named(tmp_path):
    one, same, far = (tmp_path / name for name in ("one.json", "same.json", "far.json"))
    one.write_text('{"a": "1/3", "b": "0x1.8p+0", "c": "UnsupportedError", "d": ["2", "3"]}')
    same.write_text(
        '{"a": "1/3", "b": "0x1.80000001p+0", "c": "UnsupportedError", "d": ["2", "3"]}'
    )
    far.write_text('{"a": "1/3", "b": "0x1.81p+0", "c": "1", "d": ["2", "3"]}')
    for other, fails in ((same, 0), (far, 1)):
        command = [sys.executable, str(ROOT / "tests" / "compare_numbers.py"), str(one), str(other)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == fails, done.stdout
    assert "b: [1.50390625] instead of [1.5]" in done.stdout
    assert "c: [1.0] instead of ['UnsupportedError']" in done.stdout


def test_tests_run_on_every_version_that_is_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    found = re.search(r"python-version: \[(.+)\]", WORKFLOWS["checks.yml"])
    assert re.findall(r"[\d.]+", found[1]) == named


def test_the_citation_is_of_this_version_and_names_years():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {quiltwork.__version__}\n" in text
    references = text.partition("references:")[2]
    assert references.count("    title:") == references.count("    year:")
