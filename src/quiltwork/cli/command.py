"""What every command is made with: `@command(example=…)`, or a `group` of such commands.

    @command(example="quiltwork count people.csv --by sex --categories f,m --epsilon 1")
    def count(
        file: str = argument(),
        epsilon: Fraction | None = option("The privacy level.", kind=level_number),
    ) -> None:
        '''Release counts from a CSV file or a number.'''
        from quiltwork.counts import …      # heavy imports inside the function

        emit(files.dump("counts", 1, body), lines)

Its parameters are what can be typed: names and types are those of the options, and what may not be
None has to be given. Options that several commands share are the fields of a dataclass, or the
parameters of a function, which the command gets as one (`option_group`). The decorator adds
`--json` and `--debug` and prints the example in the help. A command returns None; to end with exit
code 1 after a result, it calls `click.get_current_context().exit(1)`.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any

import click
from click.core import augment_usage_errors

from quiltwork.errors import QuiltworkWarning

JSON_KEY = "quiltwork.json"
"""Where `--json` is kept in click's context; `output.as_json` reads it."""


@dataclass(frozen=True)
class TypedParameter:
    """What the default of a parameter says about the option or the argument that it is."""

    meaning: str | None
    shown: str
    kind: Any
    names: str
    rest: dict[str, Any]

    def made(self, name: str, annotation: str) -> click.Parameter:
        """Return what click reads for the parameter of a name."""
        kind, several = annotation.removesuffix(" | None"), annotation.startswith("tuple[")
        kind = kind.removeprefix("tuple[").removesuffix(", ...]")
        read = _READ_AS.get(kind) if self.kind is None else self.kind
        if isinstance(read, tuple):
            read = click.Choice(read)
        if read is None and (self.shown == "FILE" or name in ("file", "files")):
            read = click.Path(readable=False, path_type=str)  # which shells complete
        rest: dict[str, Any] = {"type": read, "metavar": self.shown or None, **self.rest}
        optional = several or kind == "bool" or "default" in rest
        needed = not (optional or annotation.endswith(("None", "Any")))
        if self.meaning is None:
            count = -1 if several else 1
            return click.Argument([name], nargs=count, **{"required": needed or several} | rest)
        if read is exact_number or read is level_number or read is confidence_number:
            rest["metavar"] = self.shown or "NUMBER"
        if kind == "bool":
            rest |= {"is_flag": True, "type": None}
        shown = rest.get("default") not in (None, "")
        names = self.names or f"--{name.rstrip('_').replace('_', '-')}"
        return click.Option(
            [*names.split(), name],
            help=self.meaning,
            multiple=several,
            show_default=shown,
            **{"required": needed} | rest,
        )


@dataclass(frozen=True)
class OptionGroup:
    """Options of which a command gets what is made of them."""

    made: Callable[..., Any]


def option(meaning: str, shown: str = "", kind: Any = None, *, names: str = "", **rest: Any) -> Any:
    """Make a parameter an option, as in `option("Write here.", "FILE", names="-o --output")`.

    `shown` stands for its value in the help; `kind` is what reads it where the parameter's type
    does not say that, or the words to choose from; `names` is what is typed, if it is not the
    parameter's own. A default is shown.
    """
    return TypedParameter(meaning, shown, kind, names, rest)


def argument(shown: str = "", kind: Any = None, **rest: Any) -> Any:
    """Make a parameter an argument, typed by its place."""
    return TypedParameter(None, shown, kind, "", rest)


def option_group(made: Callable[..., Any]) -> Any:
    """Make a parameter what a dataclass or a function makes of options of its own."""
    return OptionGroup(made)


def _typed(function: Callable[..., Any]) -> Iterator[click.Parameter]:
    """Return all that can be typed, in order."""
    for name, one in signature(function).parameters.items():
        if isinstance(one.default, OptionGroup):
            yield from _typed(one.default.made)
        elif isinstance(one.default, TypedParameter):
            yield one.default.made(name, str(one.annotation))


def _filled(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Take from what was typed what a function is to be called with."""
    return {
        name: one.default.made(**_filled(one.default.made, given))
        if isinstance(one.default, OptionGroup)
        else given.pop(name)
        for name, one in signature(function).parameters.items()
        if isinstance(one.default, OptionGroup) or name in given
    }


class WithShortHelp(click.Command):
    """What answers to -h as to --help."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Name both."""
        return ["-h", "--help"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let every complaint about what was typed know its command."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)


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


def split_list(text: str) -> list[str]:
    """Return what commas separate; quoted, a part may hold some.

    >>> split_list('age, zip,"Last, first"')
    ['age', 'zip', 'Last, first']
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise click.UsageError(f"{text!r} is no line of names separated by commas") from None
    return [part.strip() for part in parts if part.strip()]


_READ_AS: dict[str, Any] = {
    "int": int,
    "float": float,
    "Fraction": exact_number,
    "Path": click.Path(file_okay=False, path_type=Path),
}


def confidence_option(meaning: str) -> Any:
    """Make a parameter --confidence, 0.95 unless told; `meaning` says of what."""
    return option(meaning, kind=confidence_number, default="0.95")


output_option = option("Write the result here, as JSON; - prints it.", "FILE", names="-o --output")
delimiter_option = option("Between cells: ; or tab.  [found in the first line]", "CHARACTER")
encoding_option = option("Of text: latin-1, utf-16.  [found]", "NAME")
report_option = option("Write a page to forward: numbers, pictures, what is kept.", "FILE")
plot_option = option("Draw the result here (.png, .svg or .pdf).", "FILE")
belief_option = option(
    "What an adversary may believe, as written by `belief make` or `fit`; repeat for a set.", "FILE"
)


def command(
    name: str | None = None, *, example: str
) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Make a command with `--json`, `--debug` and an example in its help.

    Neither reaches the function: `emit` and `progress` know about the first, the error boundary
    about the second.
    """

    def decorate(function: Callable[..., Any]) -> ExampleCommand:
        as_json = click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_remember_json,
            help="Print one JSON document instead of text; errors become JSON too.",
        )
        debug = click.Option(
            ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."
        )

        return ExampleCommand(
            name or function.__name__.replace("_", "-"),
            callback=lambda **given: function(**_filled(function, given)),
            params=[*_typed(function), as_json, debug],
            help=function.__doc__,
            example=example,
        )

    return decorate


def group(name: str | None = None) -> Callable[[Callable[..., Any]], HelpGroup]:
    """Make a group of commands, such as `ledger create`; join commands with `add_command`."""
    return click.group(name, cls=HelpGroup)


def _remember_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[JSON_KEY] = value
