"""Arguments of Python as the options of the command that was typed: episode=18, --protect 18."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import click

_PARAMETERS = {
    "at_most": "max_rows",
    "beginning_of": "beginning",
    "episode": "protect",
    "na_values": "na",
}
"""What the options for arguments are called in commands, where it is something else."""


@dataclass(frozen=True)
class TypedWords:
    """The options of the command that runs in this thread; those of `servers` say nothing here."""

    servers: Collection[str]

    def is_used(self) -> bool:
        """Whether somebody has typed a command and waits for its answer."""
        context = click.get_current_context(silent=True)
        return context is not None and context.info_name not in self.servers

    def argument(self, name: str, value: tuple[object, ...]) -> str | None:
        """Name the option of an argument, with a value as it is typed; None without an option."""
        wanted = _PARAMETERS.get(name, name)
        for one in click.get_current_context().command.params:
            if isinstance(one, click.Option) and one.name in (wanted, f"{wanted}_"):
                flag = next((text for text in one.opts if text.startswith("--")), one.opts[0])
                return f"{flag} {_typed(value[0])}" if value and not one.is_flag else flag
        return None


def _typed(value: object) -> str:
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
