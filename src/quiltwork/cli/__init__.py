"""The command line: one table of commands, one shape of output, one boundary for errors.

`commands.py` is the table, `command.py` and `output.py` are what every command uses, and
`boundary.py` turns errors into one line and an exit code. A command module imports NumPy and the
rooms it needs inside its functions, so that `quiltwork --version` and `--help` stay instant.
"""

from quiltwork.cli.boundary import main

__all__ = ["main"]


def __dir__() -> list[str]:
    return sorted(__all__)
