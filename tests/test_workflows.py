"""Workflows and citation say what the Makefile, the metadata and the version say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import quiltwork

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
