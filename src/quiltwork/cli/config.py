"""`quiltwork.toml`: the options that people would type again and again.

The first run that succeeds where there is none writes it, and says so; later runs use it, and say
so too. What is typed wins. `--config` names another file, `--save-config` writes what this run was
told over it, `--no-config` does without. Options that decide what is released or spent, such as the
privacy level, are never taken from a file, and passwords never written to one.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from quiltwork import files
from quiltwork.cli.command import option
from quiltwork.cli.output import note
from quiltwork.errors import InvalidInputError, without_passwords

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
    """Add --config, --save-config and --no-config, and take what is not typed from the file."""

    @wraps(function)
    def run(*, save_config: bool, no_config: bool, **options: Any) -> Any:
        context = click.get_current_context()
        path = context.meta.get(_PATH, NAME)
        if save_config:
            if no_config:
                raise click.UsageError("--save-config does not go with --no-config")
            files.check_writable(path)
        elif not os.path.exists(path) and _PATH in context.meta:
            raise InvalidInputError(f"There is no config file {path!r}; --save-config writes one.")
        used = [name for name, parameter in _options(context).items() if from_config(parameter)]
        if used:
            named = ", ".join(f"--{name}" for name in used)
            less = ", --subject '' without subjects" if "subject" in used else ""
            note(f"Options not typed are those of {path}: {named}; --no-config does without{less}.")
        result = function(**options)
        if save_config:
            files.write(path, _written(context))
            note(f"The options are kept in {path}.")
        elif not no_config:
            _keep_first(context)
        return result

    known = signature(function)
    own = signature(_own_options).parameters.values()
    run.__signature__ = known.replace(parameters=[*known.parameters.values(), *own])  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def from_config(parameter: str) -> bool:
    """Whether a parameter of the running command has its value from a file."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source == ParameterSource.DEFAULT_MAP


def _keep_first(context: click.Context) -> None:
    """Write the options where there is no file yet; what fails here fails no run."""
    text = _written(context)
    if not text or os.path.lexists(NAME) or _PATH in context.meta:
        return
    try:
        with open(NAME, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        note(f"The options could not be kept in {NAME}: {error.strerror}.")
    else:
        note(f"The options are kept in {NAME} for the next run; --no-config does without.")


def _use(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the options of the file the defaults of the command."""
    if context.resilient_parsing:
        return
    if path is not None:
        context.meta[_PATH] = path
    found = path or NAME
    if context.params.get("no_config") or not os.path.exists(found):
        return
    options = _options(context)
    kept = {options[name]: value for name, value in read_config(found).items() if name in options}
    context.default_map = {**(context.default_map or {}), **kept}


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
        if without_passwords(str(shown)) != str(shown):
            break  # the URL of a ledger, without which its dataset means nothing
        lines.append(f"{name} = {json.dumps(shown, ensure_ascii=False)}\n")
    return "".join(lines)


def _own_options(
    no_config: bool = option(
        f"Neither use nor write {NAME}.", is_eager=True, envvar="QUILTWORK_NO_CONFIG"
    ),
    config: str | None = option(
        f"Take options from this file.  [default: {NAME}, which the first run writes]",
        "FILE",
        is_eager=True,
        expose_value=False,
        callback=_use,
    ),
    save_config: bool = option(
        f"Keep the options of this run, if it succeeds, in {NAME} or --config."
    ),
) -> None:
    """Name what every command with such options takes besides."""
