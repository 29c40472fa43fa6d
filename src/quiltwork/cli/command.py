"""What every command is made with: `@command(example=…)`, or a `group` of such commands.

    @command(example="quiltwork count people.csv --by sex --categories f,m --epsilon 1")
    @click.argument("file")
    def count(file: str) -> None:
        '''Release counts from a CSV file or a number.'''
        from quiltwork.counts import …      # heavy imports inside the function

        emit(files.dump("counts", 1, body), lines)

The decorator adds `--json` and `--debug` and prints the example in the help. A command returns
None; to end with exit code 1 after a result, it calls `click.get_current_context().exit(1)`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from inspect import cleandoc
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from quiltwork.errors import QuiltworkWarning

Function = TypeVar("Function", bound=Callable[..., Any])

JSON_KEY = "quiltwork.json"
"""Where `--json` is kept in click's context; `output.as_json` reads it."""


def option(
    name: str, meaning: str, kind: Any = None, *, into: str | None = None, **rest: Any
) -> Callable[[Function], Function]:
    """Make an option from a line of the help, as in `option("-o --output FILE", "Write here.")`.

    `name` is what is typed and what stands for its value; `kind` a type, the words to choose from,
    or bool for a flag; `into` the argument of the function, if it has another name. A default is
    shown.
    """
    typed = [part for part in name.split() if part.startswith("-")]
    if kind is bool:
        rest["is_flag"] = True
    elif kind is not None:
        rest["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind
    return click.option(
        *typed,
        *([] if into is None else [into]),
        metavar=" ".join(name.split()[len(typed) :]) or None,
        show_default=rest.get("default") not in (None, ""),
        help=meaning,
        **rest,
    )


def with_options(function: Function, options: Sequence[Callable[[Any], Any]]) -> Function:
    """Add several options, which the help lists in this order."""
    for add in reversed(options):
        function = add(function)
    return function


class WithShortHelp(click.Command):
    """What answers to -h as to --help."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Name both."""
        return ["-h", "--help"]


class FileName(click.types.StringParamType):
    """The name of a file, which shells complete."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Leave it to the shell, which knows its files."""
        return [CompletionItem(incomplete, type="file")]


def _complete_files(made: click.Command) -> None:
    """Let shells complete every parameter that names a file."""
    for one in made.params:
        named = one.metavar == "FILE" or one.name in ("file", "files", "artifact")
        if named and isinstance(one.type, click.types.StringParamType):
            one.type = FileName()


class ExampleCommand(WithShortHelp):
    """A command whose help ends with an example to copy."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        """Take `example`: one or more command lines, shown exactly as given."""
        super().__init__(*args, **kwargs)
        self.example = cleandoc(example)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example after the options."""
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class HelpGroup(WithShortHelp, click.Group):
    """A group that shows its help when no command follows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Turn off click's own answer, whose exit code changed between its versions."""
        super().__init__(*args, **{**kwargs, "no_args_is_help": False})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest those spelled alike if there is none."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            alike = get_close_matches(args[0], self.list_commands(ctx), n=2)
            meant = f"; did you mean {' or '.join(map(repr, alike))}?" if alike else ""
            ctx.fail(f"No such command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if nothing was typed."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


_LARGEST = 10**300
_LITTLE, _MUCH, _NO_LEVEL = Fraction(1, 10_000), 20, 100
_ENDLESS = re.compile(r"[eE][+-]?0*[1-9]\d{4}")
"""An exponent of five digits or more: as an exact number it would fill the memory."""


class TypedNumber(Fraction):
    """An exact number that messages show as it was typed: `0.1`, not `Fraction(1, 10)`."""

    text: str

    def __new__(cls, text: str) -> TypedNumber:
        """Read the text exactly and keep it."""
        number = super().__new__(cls, text)
        number.text = text.strip()
        return number

    def __repr__(self) -> str:
        """Show what was typed."""
        return self.text

    def __reduce__(self) -> tuple[type[TypedNumber], tuple[str]]:
        """Pickle and copy as the text."""
        return TypedNumber, (self.text,)

    def __copy__(self) -> TypedNumber:
        """Numbers do not change."""
        return self

    def __deepcopy__(self, memo: object) -> TypedNumber:
        """Numbers do not change."""
        return self


def exact_number(text: str) -> Fraction:
    """Read an option's number exactly, for `type=`: `0.1` is 1/10, and `1/3` is allowed.

    Whether the number is in range is for the room it goes to.
    """
    if _ENDLESS.search(text):
        raise click.BadParameter(f"{text!r} is far outside the range of any computation")
    try:
        return TypedNumber(text)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is not a number such as 1, 0.5 or 1/3") from None


def level_number(text: str) -> Fraction:
    """Read a privacy level exactly, for `type=`; warn about levels that nobody means."""
    level = exact_number(text)
    if _MUCH <= level < _NO_LEVEL:  # beyond, the reader of levels warns itself
        _warn(f"{text} lets odds change by a factor of e^{float(level):g}, which protects little")
    elif 0 < level < _LITTLE:
        _warn(f"{text} takes noise about {_times(1 / level)} times as large as what it hides")
    return level


def _times(ratio: Fraction) -> str:
    return f"{float(ratio):.3g}" if ratio < _LARGEST else "1e300"


def _warn(what: str) -> None:
    usual = "usual levels lie between 0.01 and 10"
    warnings.warn(f"A level of {what}; {usual}.", QuiltworkWarning, stacklevel=4)


def confidence_number(text: str) -> Fraction:
    """Read a confidence strictly between 0 and 1, for `type=`, before anything is done."""
    level = exact_number(text)
    if not 0 < level < 1:
        raise click.BadParameter(f"{text!r} is not between 0 and 1; write 0.95 for 95 %")
    return level


def confidence_option(meaning: str) -> Callable[[Function], Function]:
    """Add --confidence, 0.95 unless told; `meaning` says of what."""
    return option("--confidence NUMBER", meaning, confidence_number, default="0.95")


output_option = option("-o --output FILE", "Write the result here, as JSON; - prints it.")


def written_options(function: Function) -> Function:
    """Add how CSV files are written, where rows of people have no say in that."""
    options = [
        option("--delimiter CHARACTER", "Between cells: ; or tab.  [found in the first line]"),
        option("--encoding NAME", "Of text: latin-1, utf-16.  [found]"),
    ]
    return with_options(function, options)


report_option = option("--report FILE", "Write a page to forward: numbers, pictures, what is kept.")
plot_option = option("--plot FILE", "Draw the result here (.png, .svg or .pdf).")
belief_option = option(
    "--belief FILE",
    "What an adversary may believe, as written by `belief make` or `fit`; repeat for a set.",
    multiple=True,
)


def common_options(function: Function) -> Function:
    """Add the options that every command has: `--json` and `--debug`.

    Neither reaches the function: `emit` and `progress` know about the first, the error boundary
    about the second. `command` already includes this.
    """
    json_option = option(
        "--json",
        "Print one JSON document instead of text; errors become JSON too.",
        bool,
        expose_value=False,
        callback=_remember_json,
    )
    debug_option = option("--debug", "Show the traceback of an error.", bool, expose_value=False)
    return json_option(debug_option(function))


def command(
    name: str | None = None, *, example: str
) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Make a command with the common options and an example in its help."""

    def decorate(function: Callable[..., Any]) -> ExampleCommand:
        build = click.command(name, cls=ExampleCommand, example=example)
        made = build(common_options(function))
        _complete_files(made)
        return made

    return decorate


def group(name: str | None = None) -> Callable[[Callable[..., Any]], HelpGroup]:
    """Make a group of commands, such as `ledger create`; join commands with `add_command`."""
    return click.group(name, cls=HelpGroup)


def _remember_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[JSON_KEY] = value
