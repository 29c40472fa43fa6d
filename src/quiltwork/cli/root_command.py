"""The root command `quiltwork`: the click group that loads and lists the commands of the table."""

from __future__ import annotations

import importlib
from typing import cast

import click

from quiltwork._version import __version__
from quiltwork.cli.command import HelpGroup
from quiltwork.cli.commands import COMMANDS


class CommandMap(HelpGroup):
    """A click group that imports a command when it is used, and lists all commands by topic."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the table."""
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of this name."""
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module, attribute = commands[cmd_name][0].split(":")
                return cast(click.Command, getattr(importlib.import_module(module), attribute))
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each topic."""
        longest = max(map(len, self.list_commands(ctx)))
        for topic, commands in COMMANDS.items():
            with formatter.section(topic):
                formatter.write_dl([(n.ljust(longest), does) for n, (_, does) in commands.items()])


@click.group("quiltwork", cls=CommandMap)
@click.version_option(__version__, message="quiltwork %(version)s")
def app() -> None:
    """Private releases from correlated data: time series, tables of people, holdouts.

    Every command has --help with an example, and --json. Exit codes: 0 done, 1 refused or not
    private, 2 usage or input error, 3 storage or internal failure.
    """
