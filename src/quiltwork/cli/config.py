"""`quiltwork.toml`: the options that people would type again and again.

A file in the working directory is used, and said to be; `--config` names another, `--save-config`
writes what a run that succeeded was told. What is typed wins. Options that decide what is released
or spent, such as the privacy level, are never taken from a file.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from quiltwork import files
from quiltwork.cli.command import option
from quiltwork.errors import InvalidInputError

Function = TypeVar("Function", bound=Callable[..., Any])

NAME = "quiltwork.toml"
KEPT = (
    *("value", "time", "duration", "end", "subject", "timezone", "days", "edges", "labels"),
    *("every", "rule", "missing", "delimiter", "decimal", "encoding", "na", "date-format"),
    *("belief", "ledger", "dataset"),
)
"""The options that a file may hold, by their names on the command line."""

_PATH = "quiltwork.config"


def config_options(function: Function) -> Function:
    """Add --config and --save-config, and take what is not typed from the file."""

    @wraps(function)
    def run(*args: Any, save_config: bool, **options: Any) -> Any:
        context = click.get_current_context()
        path = context.meta.get(_PATH, NAME)
        if save_config:
            files.check_writable(path)
        elif not os.path.exists(path) and _PATH in context.meta:
            raise InvalidInputError(f"There is no config file {path!r}; --save-config writes one.")
        result = function(*args, **options)
        if save_config:
            files.write(path, _written(context))
            click.echo(f"The options are kept in {path}.", err=True)
        return result

    add_file = option(
        "--config FILE",
        f"Take options from this file.  [default: {NAME} if it is there]",
        is_eager=True,
        expose_value=False,
        callback=_use,
    )
    add_saving = option(
        "--save-config",
        f"Keep the options of this run, if it succeeds, in {NAME} or --config.",
        bool,
    )
    return add_file(add_saving(run))  # type: ignore[return-value]


def _use(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the options of the file the defaults of the command."""
    if context.resilient_parsing:
        return
    if path is not None:
        context.meta[_PATH] = path
    found = path or NAME
    if not os.path.exists(found):
        return
    options = _options(context)
    kept = {options[name]: value for name, value in read_config(found).items() if name in options}
    context.default_map = {**(context.default_map or {}), **kept}
    if kept:
        click.echo(f"Options not typed are those of {found}.", err=True)


def read_config(path: str) -> dict[str, Any]:
    """Read the options that a file holds, as they would be typed.

    Raises:
        InvalidInputError: if it is no TOML, or holds something else.
    """
    try:
        document = tomllib.loads(files.text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{path!r} is no TOML: {error}.") from None
    for name, value in document.items():
        if name not in KEPT:
            near = difflib.get_close_matches(name, KEPT, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; it holds {', '.join(KEPT)}."
            raise InvalidInputError(f"{path!r} has an option {name!r} that no config has{meant}")
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, (str, int, float)) for part in parts):
            raise InvalidInputError(f"{name} in {path!r} must be a text, a number or a list.")
    return {name: _typed(name, value) for name, value in document.items()}


def _typed(name: str, value: Any) -> Any:
    parts = [str(part) for part in value] if isinstance(value, list) else [str(value)]
    return parts if name == "belief" else ",".join(parts)


def _options(context: click.Context) -> dict[str, str]:
    """Return the parameter of each option that a config may hold and this command has."""
    known = {
        opt.removeprefix("--"): parameter.name
        for parameter in context.command.params
        for opt in parameter.opts
    }
    return {name: str(known[name]) for name in KEPT if name in known}


def _written(context: click.Context) -> str:
    lines = []
    for name, parameter in _options(context).items():
        value = context.params.get(parameter)
        if context.get_parameter_source(parameter) == ParameterSource.DEFAULT or value is None:
            continue
        shown = [str(part) for part in value] if isinstance(value, tuple) else str(value)
        lines.append(f"{name} = {json.dumps(shown, ensure_ascii=False)}\n")
    return "".join(lines)
