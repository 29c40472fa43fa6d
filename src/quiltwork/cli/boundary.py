"""Where every error of the command line ends: one line on stderr and an exit code.

QuiltworkErrors carry their own exit code, misuse of the command line is 2, Ctrl-C is 130, a
reader that went away (`| head`) is 141, and anything unexpected is 3. A traceback appears only
with `--debug`.
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
from quiltwork.cli.output import patience
from quiltwork.cli.program import app
from quiltwork.cli.typed_words import TypedWords
from quiltwork.errors import (
    QuiltworkError,
    QuiltworkWarning,
    StorageError,
    without_passwords,
)
from quiltwork.wording import speaking

COMPLETION_VARIABLE = "_QUILTWORK_COMPLETE"
INTERRUPTED = 130
READER_GONE = 141
_SERVERS = {"serve", "mcp"}
"""Commands that wait for others, and are not at work meanwhile."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str], program: click.Command = app) -> int:
    """Run one command line, of quiltwork or of a `program` of its repository; return its code."""
    if COMPLETION_VARIABLE in os.environ:
        app.main(prog_name="quiltwork", complete_var=COMPLETION_VARIABLE)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # ? for ε where a terminal's encoding lacks it
    # What stands before a bare `--`, so that errors in parsing know the wishes too.
    options = {*takewhile(lambda one: one != "--", arguments)}
    as_json = "--json" in options
    try:
        with warnings.catch_warnings(), speaking(TypedWords(_SERVERS)):
            _show_own_warnings(as_json)
            with patience(quiet=as_json or not _SERVERS.isdisjoint(arguments[:1])):
                code = _invoke(arguments, program)
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        # Python would complain about the closed pipe once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted", "Interrupted.", as_json)
        return INTERRUPTED
    except Exception as error:  # the boundary: whatever it is, the user gets a sentence
        if "--debug" in options:
            import traceback

            click.echo(without_passwords(traceback.format_exc()), err=True)
        kind, message, code = _describe(error)
        _complain(kind, message, as_json)
        return code


def _invoke(arguments: Sequence[str], program: click.Command) -> int:
    try:
        with program.make_context(program.name, list(arguments)) as context:
            program.invoke(context)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    return 0


def _describe(error: Exception) -> tuple[str, str, int]:
    """Return (kind, message, exit code) of an error."""
    if isinstance(error, QuiltworkError):
        return _kind(type(error)), str(error), error.exit_code
    if isinstance(error, click.ClickException):
        return "usage", _usage_message(error), 2
    if isinstance(error, OSError):
        where = "" if error.filename is None else f": {error.filename!r}"
        return "storage", f"{error.strerror or error}{where}.", StorageError.exit_code
    return (
        "internal",
        f"Unexpected {type(error).__name__}. This is a fault in quiltwork; run again with --debug "
        "for the traceback, which may show values of the data.",
        3,
    )


def _kind(error_class: type[QuiltworkError]) -> str:
    """Name the error's class as data: InvalidInputError is "invalid-input".

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


def _complain(kind: str, message: str, as_json: bool) -> None:
    line = without_passwords(" ".join(message.split()))
    document = files.dump("error", 1, {"error": {"kind": kind, "message": line}})
    click.echo(document if as_json else f"Error: {line}", err=True)


def _show_own_warnings(as_json: bool) -> None:
    """Print a QuiltworkWarning as one line; leave other warnings to Python's filters."""
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
