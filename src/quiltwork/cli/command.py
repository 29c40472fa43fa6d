"""How commands are declared: `@command(example=…)` on a function, or a `group` of commands.

    @command(example="quiltwork count people.csv --by sex --categories f,m --epsilon 1")
    def count(
        file: str = argument(),
        epsilon: Fraction | None = option("The privacy level.", kind=level_number),
    ) -> None:
        '''Release counts from a CSV file or a number.'''
        from quiltwork.counts import …      # heavy imports inside the function

        emit(files.dump("counts", 1, body), lines)

The function's parameters become options and arguments, with their names and types; a parameter
that may not be None is required. Options shared by several commands are the fields of a dataclass,
or the parameters of a function, which the command receives as one value (`option_group`). The
decorator adds `--json` and `--debug` and shows the example in the help. A command returns None; to
end with exit code 1 after printing a result it calls `click.get_current_context().exit(1)`.
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
"""The key of `--json` in click's context; `output.as_json` reads it."""


@dataclass(frozen=True)
class ParameterSpec:
    """The default value of a parameter that declares it an option or an argument."""

    help: str | None
    metavar: str
    kind: Any
    names: str
    settings: dict[str, Any]

    def to_click(self, name: str, annotation: str) -> click.Parameter:
        """Return click's parameter for a name and a type annotation."""
        type_name, multiple = annotation.removesuffix(" | None"), annotation.startswith("tuple[")
        type_name = type_name.removeprefix("tuple[").removesuffix(", ...]")
        kind = _CLICK_TYPES.get(type_name) if self.kind is None else self.kind
        if isinstance(kind, tuple):
            kind = click.Choice(kind)
        if kind is None and (self.metavar == "FILE" or name in ("file", "files")):
            kind = click.Path(readable=False, path_type=str)  # for completion in shells
        settings: dict[str, Any] = {"type": kind, "metavar": self.metavar or None, **self.settings}
        optional = multiple or type_name == "bool" or "default" in settings
        required = not (optional or annotation.endswith(("None", "Any")))
        if self.help is None:
            count = -1 if multiple else 1
            required = required or multiple
            return click.Argument([name], nargs=count, **{"required": required} | settings)
        if kind is exact_number or kind is level_number or kind is confidence_number:
            settings["metavar"] = self.metavar or "NUMBER"
        if type_name == "bool":
            settings |= {"is_flag": True, "type": None}
        names = self.names or f"--{name.rstrip('_').replace('_', '-')}"
        return click.Option(
            [*names.split(), name],
            help=self.help,
            multiple=multiple,
            show_default=settings.get("default") not in (None, ""),
            **{"required": required} | settings,
        )


@dataclass(frozen=True)
class OptionGroup:
    """The default value of a parameter that is built from several options."""

    build: Callable[..., Any]


def option(
    help: str,
    metavar: str = "",
    kind: Any = None,
    *,
    names: str = "",
    **settings: Any,
) -> Any:
    """Declare a parameter as an option: `option("Write here.", "FILE", names="-o --output")`.

    Args:
        help: the option's help text.
        metavar: the placeholder for its value in the help.
        kind: the function or click type that parses the value, or a tuple of choices; by default
            it follows from the parameter's annotation.
        names: the flags, if they are not made from the parameter's name.
        settings: further arguments of `click.Option`; a default is shown in the help.
    """
    return ParameterSpec(help, metavar, kind, names, settings)


def argument(metavar: str = "", kind: Any = None, **settings: Any) -> Any:
    """Declare a parameter as a positional argument."""
    return ParameterSpec(None, metavar, kind, "", settings)


def option_group(build: Callable[..., Any]) -> Any:
    """Declare a parameter as the value that a dataclass or function builds from its own options."""
    return OptionGroup(build)


def _click_parameters(function: Callable[..., Any]) -> Iterator[click.Parameter]:
    """Yield click's parameters for a function, those of option groups in their place."""
    for name, parameter in signature(function).parameters.items():
        if isinstance(parameter.default, OptionGroup):
            yield from _click_parameters(parameter.default.build)
        elif isinstance(parameter.default, ParameterSpec):
            yield parameter.default.to_click(name, str(parameter.annotation))


def _arguments(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return a function's arguments from click's flat values, building its option groups."""
    return {
        name: parameter.default.build(**_arguments(parameter.default.build, values))
        if isinstance(parameter.default, OptionGroup)
        else values.pop(name)
        for name, parameter in signature(function).parameters.items()
        if isinstance(parameter.default, OptionGroup) or name in values
    }


class WithShortHelp(click.Command):
    """A command that accepts -h as well as --help."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return both flags."""
        return ["-h", "--help"]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; usage errors carry the command for the hint at its help."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)


class ExampleCommand(WithShortHelp):
    """A command whose help ends with an example."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        """Take the command lines of the example, shown exactly as given."""
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
        """Disable click's behaviour without arguments, whose exit code differs between versions."""
        super().__init__(*args, **{**kwargs, "no_args_is_help": False})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; for an unknown one suggest similar names."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            alike = get_close_matches(args[0], self.list_commands(ctx), n=2)
            meant = f"; did you mean {' or '.join(map(repr, alike))}?" if alike else ""
            ctx.fail(f"No such command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Show the help if there are no arguments."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


_LARGEST = 10**300
_SMALL_LEVEL, _LARGE_LEVEL, _IMPLAUSIBLE_LEVEL = Fraction(1, 10_000), 20, 100
_HUGE_EXPONENT = re.compile(r"[eE][+-]?0*[1-9]\d{4}")
"""An exponent of five digits or more; its exact fraction would exhaust the memory."""


class TypedNumber(Fraction):
    """An exact number that messages show as typed: `0.1`, not `Fraction(1, 10)`."""

    text: str

    def __new__(cls, text: str) -> TypedNumber:
        """Parse the text exactly and remember it."""
        number = super().__new__(cls, text)
        number.text = text.strip()
        return number

    def __repr__(self) -> str:
        """Return the text as typed."""
        return self.text

    def __reduce__(self) -> tuple[type[TypedNumber], tuple[str]]:
        """Pickle as the text."""
        return TypedNumber, (self.text,)

    def __copy__(self) -> TypedNumber:
        """Return the number itself, which is immutable."""
        return self

    def __deepcopy__(self, memo: object) -> TypedNumber:
        """Return the number itself, which is immutable."""
        return self


def exact_number(text: str) -> Fraction:
    """Parse an exact number, as an option's `kind`: `0.1` is 1/10, and `1/3` is allowed.

    The function that receives the number checks its range.
    """
    if _HUGE_EXPONENT.search(text):
        raise click.BadParameter(f"{text!r} is far outside the range of any computation")
    try:
        return TypedNumber(text)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is not a number such as 1, 0.5 or 1/3") from None


def level_number(text: str) -> Fraction:
    """Parse an exact privacy level, as an option's `kind`; warn about unusual ones."""
    level = exact_number(text)
    if _LARGE_LEVEL <= level < _IMPLAUSIBLE_LEVEL:  # above, `exact.privacy_level` warns itself
        _warn(f"{text} lets odds change by a factor of e^{float(level):g}, which protects little")
    elif 0 < level < _SMALL_LEVEL:
        _warn(f"{text} needs noise about {_magnitude(1 / level)} times as large as the sensitivity")
    return level


def _magnitude(ratio: Fraction) -> str:
    return f"{float(ratio):.3g}" if ratio < _LARGEST else "1e300"


def _warn(problem: str) -> None:
    usual = "usual levels are between 0.01 and 10"
    warnings.warn(f"A level of {problem}; {usual}.", QuiltworkWarning, stacklevel=4)


def confidence_number(text: str) -> Fraction:
    """Parse a confidence strictly between 0 and 1, as an option's `kind`."""
    level = exact_number(text)
    if not 0 < level < 1:
        raise click.BadParameter(f"{text!r} is not between 0 and 1; write 0.95 for 95 %")
    return level


def split_list(text: str) -> list[str]:
    """Return the parts between commas; a part in quotes may contain commas.

    >>> split_list('age, zip,"Last, first"')
    ['age', 'zip', 'Last, first']
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise click.UsageError(f"{text!r} is not a list separated by commas") from None
    return [part.strip() for part in parts if part.strip()]


_CLICK_TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "Fraction": exact_number,
    "Path": click.Path(file_okay=False, path_type=Path),
}


def confidence_option(help: str) -> Any:
    """Declare a parameter as --confidence, 0.95 by default."""
    return option(help, kind=confidence_number, default="0.95")


output_option = option("Write the result here, as JSON; - prints it.", "FILE", names="-o --output")
delimiter_option = option(
    "The delimiter of cells: ; or tab.  [detected from the first line]", "CHARACTER"
)
encoding_option = option("The text encoding: latin-1, utf-16.  [detected]", "NAME")
report_option = option("Write an HTML report to forward: numbers, charts, guarantees.", "FILE")
plot_option = option("Draw the result here (.png, .svg or .pdf).", "FILE")
belief_option = option(
    "What an adversary may believe, as written by `belief make` or `fit`; repeat for a set.", "FILE"
)


def command(
    name: str | None = None, *, example: str
) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Return a decorator that makes a function a command with an example in its help.

    The command also has `--json`, which `emit` and `progress` obey, and `--debug`, which the error
    boundary obeys; neither is passed to the function.
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
            callback=lambda **values: function(**_arguments(function, values)),
            params=[*_click_parameters(function), as_json, debug],
            help=function.__doc__,
            example=example,
        )

    return decorate


def group(name: str | None = None) -> Callable[[Callable[..., Any]], HelpGroup]:
    """Return a decorator for a group such as `ledger`; add commands with `add_command`."""
    return click.group(name, cls=HelpGroup)


def _remember_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[JSON_KEY] = value
