"""`quiltwork` itself: the group that finds commands in the table and shows the map of them."""

from __future__ import annotations

import importlib
from typing import cast

import click

from quiltwork._version import __version__
from quiltwork.cli.command import HelpGroup
from quiltwork.cli.commands import COMMANDS


class CommandMap(HelpGroup):
    """A group whose commands are imported when they are asked for, listed by job."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every command, in the order of the table."""
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None if the table does not have it."""
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module, attribute = commands[cmd_name][0].split(":")
                return cast(click.Command, getattr(importlib.import_module(module), attribute))
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per job."""
        longest = max(map(len, self.list_commands(ctx)))
        for job, commands in COMMANDS.items():
            with formatter.section(job):
                formatter.write_dl([(n.ljust(longest), does) for n, (_, does) in commands.items()])


@click.group("quiltwork", cls=CommandMap)
@click.version_option(__version__, message="quiltwork %(version)s")
def app() -> None:
    """Private releases from data where people and moments are tied to each other.

    Every command has --help with an example, and --json. Exit codes: 0 done, 1 refused or not
    private, 2 usage or input error, 3 storage or internal failure.
    """
