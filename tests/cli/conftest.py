from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from quiltwork.cli.boundary import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def cli(capsys):
    """`cli("count", "--help")` runs one command line in this process."""

    def call(*arguments: str) -> Ran:
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def reproduce(capsys):
    """The papers' experiments, as `python -m papers` runs them."""
    from papers.command import reproduce as program

    def call(*arguments: str) -> Ran:
        code = run(list(arguments), program)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def probe(monkeypatch):
    """Add a command made for the test to the table."""
    from quiltwork.cli import commands

    def add(function, name="probe"):
        import sys
        import types

        from quiltwork.cli.command import command

        module = types.ModuleType("quiltwork_probe")
        module.made = command(name, example=f"quiltwork {name}")(function)
        monkeypatch.setitem(sys.modules, "quiltwork_probe", module)
        monkeypatch.setitem(
            commands.COMMANDS, "Probes", {name: ("quiltwork_probe:made", "A probe.")}
        )

    return add
