"""Hostile input: a sample of the cases that `make evidence ONLY=fuzz` runs in full."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evidence.checks import fuzz
from evidence.fuzzing import commands, functions, workspace
from quiltwork import beliefs
from quiltwork.series.releases import postprocess

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api"
NOT_CALLED = {"Release", "Ledger", "Spending", "sklearn", "queries", "compose", "audit"}
"""Results and handles, whose methods are called, and modules, whose functions are."""
MODULES = {"sklearn", "queries", "compose", "audit"}
READERS = {
    *("beliefs.belief_from_json", "beliefs.beliefs_from_json", "beliefs.beliefs_to_json"),
    "influence.fit_warnings",
    "influence.conditional_influence",
}
"""What commands call with whatever is in a file."""
PARTIAL = {
    *("Release.shortfall", "Network.from_bif", "Ledger.complete", "Ledger.restore"),
    *("ReusableHoldout.from_plan", "ReusableHoldout.resume", "Ladder.resume"),
    *("Ladder.interval", "Calibration.active_quilts"),
    *("holdout.create_board", "holdout.board_of", "holdout.Board.create"),
    *("holdout.certify", "holdout.verify_certificate"),
    *("budget.spendings_of", "CyclicChain.beginning", "series.opendp_measurement"),
    *("series.read_fleet", "series.register_series", "Ledger.verify_since"),
}
"""What needs more than one ordinary value for each parameter."""


def is_command(name):
    return name in commands.ORDINARY


def is_function(name):
    return name not in commands.ORDINARY


def test_hostile_command_lines_end_with_a_sentence():
    fuzz.check(2 * len(commands.ORDINARY), only=is_command)


def test_hostile_arguments_are_answered_or_refused_in_our_words():
    fuzz.check(300, only=is_function)


def test_a_fault_would_be_seen(monkeypatch):
    """A reader of files and a reader of arguments that fail with exceptions of their own."""

    def broken(*_):
        raise KeyError("schema")

    monkeypatch.setattr(beliefs, "beliefs_from_json", broken)
    with pytest.raises(AssertionError, match="a fault in quiltwork"):
        fuzz.check(6, only=lambda name: name.startswith("calibrate"))
    monkeypatch.setattr(postprocess, "_numbers", broken)
    with pytest.raises(AssertionError, match="KeyError"):
        fuzz.check(6, only=lambda name: name == "series.clip")


def test_every_command_has_an_ordinary_line_that_it_takes(tmp_path):
    words = {" ".join(command) for command in commands.commands()}
    assert {w for w in words if any(line.startswith(w) for line in commands.ORDINARY)} == words
    (tmp_path / "template").mkdir()
    workspace.build(tmp_path / "template")
    refused = []
    for line in commands.ORDINARY:
        with workspace.copied(tmp_path / "template", tmp_path / "work"):
            if commands.run(line.split()) not in (0, 1):
                refused.append(line.split()[0])
    assert refused == ["mcp", "demo", "serve", "rotate-key", "ask"]


def test_every_name_of_the_reference_is_called():
    pages = sorted(REFERENCE.glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = {name.removeprefix("quiltwork.") for name in re.findall(r"^quiltwork\.\S+", text, re.M)}
    called = set(fuzz.callables())
    classes = {name for name in named if name.rpartition(".")[2][0].isupper()}
    assert named - called - classes == {*MODULES, *READERS}
    assert {name.split(".")[0] for name in called} >= NOT_CALLED


def test_ordinary_arguments_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "states.csv").write_text("state\nrest\nwalk\n")
    for name, make in functions.callables().items():
        if name not in PARTIAL:
            given, named = functions.arguments(name, make(), None)
            make()(*given, **named)
