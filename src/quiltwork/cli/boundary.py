"""The error boundary of the command line: every error becomes one line on stderr and an exit code.

Quiltwork's errors have their own exit code; usage errors are 2, Ctrl-C 130, a closed output pipe
(`| head`) 141, unexpected errors 3. A traceback appears only with `--debug`.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import takewhile
from typing import NoReturn

import click

from quiltwork import files
from quiltwork.cli.option_names import OptionNames
from quiltwork.cli.output import working_line
from quiltwork.cli.root_command import app
from quiltwork.errors import (
    QuiltworkError,
    QuiltworkWarning,
    StorageError,
    without_passwords,
)
from quiltwork.wording import speaking

COMPLETION_VARIABLE = "_QUILTWORK_COMPLETE"
INTERRUPTED = 130
BROKEN_PIPE = 141
_SERVERS = {"serve", "mcp"}
"""Commands that wait for requests, so that a "Working" line would mislead."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str], program: click.Command = app) -> int:
    """Run one command line, of quiltwork or another click `program`; return the exit code."""
    if COMPLETION_VARIABLE in os.environ:
        app.main(prog_name="quiltwork", complete_var=COMPLETION_VARIABLE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # ? for ε where a terminal's encoding lacks it
    # Read before click parses, so that errors of parsing follow --json and --debug too.
    options = {*takewhile(lambda word: word != "--", arguments)}
    as_json = "--json" in options
    try:
        with warnings.catch_warnings(), speaking(OptionNames(_SERVERS)):
            _show_own_warnings(as_json)
            with working_line(quiet=as_json or not _SERVERS.isdisjoint(arguments[:1])):
                code = _invoke(arguments, program)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # Python would complain about the closed pipe once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted", "Interrupted.", as_json)
        return INTERRUPTED
    except Exception as error:  # whatever it is, the user gets a sentence, never a traceback
        if "--debug" in options:
            import traceback

            click.echo(without_passwords(traceback.format_exc()), err=True)
        kind, message, code = _describe(error)
        _print_error(kind, message, as_json)
        return code


def _invoke(arguments: Sequence[str], program: click.Command) -> int:
    try:
        with program.make_context(program.name, list(arguments)) as context:
            program.invoke(context)
    except click.exceptions.Exit as request:
        return request.exit_code
    return 0


def _describe(error: Exception) -> tuple[str, str, int]:
    """Return the kind, the message and the exit code of an error."""
    if isinstance(error, QuiltworkError):
        return _kind(type(error)), str(error), error.exit_code
    if isinstance(error, click.ClickException):
        return "usage", _usage_message(error), 2
    if isinstance(error, OSError):
        file = "" if error.filename is None else f": {error.filename!r}"
        return "storage", f"{error.strerror or error}{file}.", StorageError.exit_code
    return (
        "internal",
        f"Unexpected {type(error).__name__}. This is a fault in quiltwork; run again with --debug "
        "for the traceback, which may show values of the data.",
        3,
    )


def _kind(error_class: type[QuiltworkError]) -> str:
    """Return an error class as the kind in JSON: InvalidInputError is "invalid-input".

    >>> from quiltwork.errors import BudgetExceeded
    >>> _kind(BudgetExceeded)
    'budget-exceeded'
    """
    words = re.findall("[A-Z][a-z]*", error_class.__name__.removesuffix("Error"))
    return "-".join(words).lower()


def _usage_message(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    end = "" if message.endswith("?") else "."
    return f"{message.rstrip('.')}{end} See '{context.command_path} --help'."


def _print_error(kind: str, message: str, as_json: bool) -> None:
    line = without_passwords(" ".join(message.split()))
    document = files.dump("error", 1, {"error": {"kind": kind, "message": line}})
    click.echo(document if as_json else f"Error: {line}", err=True)


def _show_own_warnings(as_json: bool) -> None:
    """Print each QuiltworkWarning as one line; other warnings are left to Python's filters."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: object) -> None:
        if not issubclass(category, QuiltworkWarning):
            usual(message, category, *where)  # type: ignore[arg-type]
            return
        line = " ".join(str(message).split())
        document = files.dump("warning", 1, {"warning": {"message": line}})
        click.echo(document if as_json else f"Warning: {line}", err=True)

    warnings.simplefilter("always", QuiltworkWarning)
    warnings.showwarning = show  # type: ignore[assignment]
