"""Names of Python arguments in messages, translated to options: episode=18 becomes --protect 18."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import click

_PARAMETERS = {
    "at_most": "max_rows",
    "beginning_of": "beginning",
    "episode": "protect",
}
"""Options whose name differs from the argument that they set."""


@dataclass(frozen=True)
class OptionNames:
    """Names arguments by the options of the running command; `servers` are excluded."""

    servers: Collection[str]

    def is_used(self) -> bool:
        """Whether a command runs in this thread, other than a server."""
        context = click.get_current_context(silent=True)
        return context is not None and context.info_name not in self.servers

    def argument(self, name: str, value: tuple[object, ...]) -> str | None:
        """Return an argument as its option, with a value as typed; None if it has no option."""
        names = (name, f"{name}_", _PARAMETERS.get(name, name))
        for option in click.get_current_context().command.params:
            if isinstance(option, click.Option) and option.name in names:
                flags = [text for text in option.opts if text.startswith("--")] or option.opts
                return (
                    f"{flags[0]} {_as_typed(value[0])}"
                    if value and not option.is_flag
                    else flags[0]
                )
        return None


def _as_typed(value: object) -> str:
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
