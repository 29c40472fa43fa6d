"""The command line: one table of commands, one format of output, one handler for errors.

`commands.py` is the table, `command.py` and `output.py` are shared by every command, and
`boundary.py` turns errors into one line and an exit code. A command module imports NumPy and other
rooms inside its functions, so `quiltwork --version` and `--help` start in under 0.1 s.
"""

from quiltwork.cli.boundary import main

__all__ = ["main"]


def __dir__() -> list[str]:
    return sorted(__all__)
