"""`quiltwork belief make`: a belief from a few answers, with an explanation of its numbers."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.belief_check import check, turn
from quiltwork.cli.command import WithShortHelp, command, exact_number, option, split_list
from quiltwork.cli.output import Parsed, check_targets, deliver, prompted, text_table
from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from quiltwork.beliefs import ChainBox, Label, MarkovChain

_DAY = 86_400
_POINTS = 1_440
_BAR = 40


class AskingGroup(WithShortHelp, click.Group):
    """A command group whose default command is `make`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `make` if no command is named."""
        if not ctx.resilient_parsing and (
            not args or args[0] not in {*self.commands, "-h", "--help"}
        ):
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group("belief", cls=AskingGroup)
def belief() -> None:
    """Choose a belief by a few answers, or check one.

    `quiltwork belief` alone is `quiltwork belief make`: it asks for what its options do not give.
    """


@command(
    example="""
    quiltwork belief make -o belief.json
    quiltwork belief make --states rest,walk,run --lasting 30min,10min,5min --every 1min \\
        --sure 0.05 -o belief.json
    quiltwork belief make --states rest,walk,run --lasting 30,10,5 --to run=walk:3,rest:1 \\
        --sure 0 --plot noise.svg
    """
)
def make(
    states: str | None = option("Which states are there? rest,walk,run", "LIST"),
    lasting: str | None = option(
        "How long does a stay in each last on average? Time points, or durations with --every.",
        "LIST",
    ),
    every: str | None = option("How long is one time point? 30s, 10min, 1h.", "DURATION"),
    to: tuple[str, ...] = option(
        "What follows a state, with weights: run=walk:3,rest:1.  [default: all others equally]",
        "STATE=LIST",
    ),
    sure: Fraction | None = option(
        "How far may each probability be off? 0 is exact, 0.05 careful, 0.2 very unsure."
    ),
    output: str | None = option(
        "Write the belief here, as JSON; - prints it.", "FILE", names="-o --output"
    ),
    plot: str | None = option("Draw the noise by error margin.", "FILE"),
) -> None:
    """Make a belief from a few answers, and explain its numbers.

    On a terminal it asks for missing answers. The file stores the explanation beside the belief;
    `calibrate` and `release` take the file as it is.
    """
    check_targets(output, None, plot)
    from quiltwork.beliefs import Grid
    from quiltwork.beliefs.elicited import around, chain_from_stays, reasons
    from quiltwork.beliefs.grids import parse_duration
    from quiltwork.influence.diagnostic_charts import caution_chart
    from quiltwork.influence.diagnostics import DISTANCES, noise_by_distance
    from quiltwork.report.figures import write_figure
    from quiltwork.series.reading.values import as_labels

    named = _answer(
        states, "--states", "Which states are there", lambda text: as_labels(split_list(text))
    )
    every = _step(every, lasting)
    grid = None if every is None else Grid(step=parse_duration(every))
    stays = _stays(lasting, named, every)
    chain = chain_from_stays(named, stays, _followers(to, named), grid)
    if sure is None:
        question = "How far may each probability be off (0 exact, 0.05 careful, 0.2 very unsure)"
        sure = _answer(None, "--sure", question, exact_number)
    elicited, why = around(chain, sure), reasons(chain, sure)
    length = _POINTS if grid is None or grid.step is None else max(1, _DAY // grid.step)
    distances = {float(distance): distance for distance in (*DISTANCES, sure)}
    noise = noise_by_distance(chain, length, distances=[distances[d] for d in sorted(distances)])
    own = dict(noise)[float(sure)]
    document = _document(elicited, why, length, own)
    if plot is not None:
        write_figure(plot, caution_chart(noise, length, 1))
    deliver(document, _lines(elicited, why, length, own, noise, output), (), output)


def _answer(given: str | None, option: str, question: str, read: Callable[[str], Parsed]) -> Parsed:
    """Return an option's value, or prompt until an answer is valid."""
    if given is not None:
        return read(given)
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question}? This is not a terminal, so give {option}")
    return prompted(question, read)


def _step(every: str | None, lasting: str | None) -> str | None:
    """Return the length of a time point, prompted for where durations will be; None if empty."""
    from quiltwork.beliefs.grids import parse_duration

    if every is not None or lasting is not None or not sys.stdin.isatty():
        return every

    def read(text: str) -> str | None:
        return text if text and parse_duration(text) else None

    question = "How long is one time point, such as 1min (leave empty if it has no length)"
    return prompted(question, read, default="")


def _stays(lasting: str | None, states: Sequence[Label], every: str | None) -> list[Fraction]:
    """Return the mean durations of stays in time points."""
    if lasting is not None:
        return [_points(text, every) for text in split_list(lasting)]
    unit = "time points" if every is None else f"steps of {every}, or durations"
    return [
        _answer(
            None,
            "--lasting",
            f"How long does a stay in {state} last ({unit})",
            lambda text: _points(text, every),
        )
        for state in states
    ]


def _points(text: str, every: str | None) -> Fraction:
    from quiltwork.beliefs.grids import parse_duration

    if not text[-1:].isalpha():
        return exact_number(text)
    if every is None:
        raise InvalidInputError(
            f"{text} is a duration, and the length of a time point is unknown. Give it, for "
            "example --every 1min."
        )
    return Fraction(parse_duration(text), parse_duration(every))


def _followers(to: tuple[str, ...], states: Sequence[Label]) -> dict[Any, dict[Any, Fraction]]:
    """Parse `run=walk:3,rest:1`; a state without a weight has weight 1."""
    known = {str(state): state for state in states}
    followers: dict[Any, dict[Any, Fraction]] = {}
    for text in to:
        name, equals, rest = text.partition("=")
        if not equals:
            raise InvalidInputError(
                f"{text!r} is not a list of next states; write --to STATE=NEXT:WEIGHT,…."
            )
        parts = [part.partition(":") for part in split_list(rest)]
        weights = {_known(next_, known): exact_number(w or "1") for next_, _, w in parts}
        followers[_known(name.strip(), known)] = weights
    return followers


def _known(name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise InvalidInputError(f"{name!r} is not one of the states, which are {', '.join(known)}.")
    return known[name]


def _document(made: MarkovChain | ChainBox, why: list[str], length: int, scale: float) -> str:
    """Return the belief's document with the explanation as extra fields, which readers ignore."""
    body = json.loads(made.to_json())
    noise = {"query": "histogram", "epsilon": 1, "length": length, "scale": scale}
    return json.dumps(body | {"reasons": why, "noise": noise}, sort_keys=True, ensure_ascii=False)


def _lines(
    made: MarkovChain | ChainBox,
    why: list[str],
    length: int,
    scale: float,
    noise: Sequence[tuple[float, float]],
    output: str | None,
) -> Iterator[str]:
    from quiltwork.cli.series_options import step_lines

    words = made.summary()
    yield f"{words[:1].upper()}{words[1:]}."
    yield from step_lines([made])
    yield ""
    yield from why
    yield ""
    yield (
        f"A histogram of {length:,} time points at epsilon 1 gets noise of scale {scale:.4g}: "
        f"nine of ten counts have an error of at most {math.ceil(math.log(10) * scale)}."
    )
    yield ""
    most = max(value for _, value in noise)
    rows = [(f"{d:g}", f"{v:.4g}", "█" * max(1, round(_BAR * v / most))) for d, v in noise]
    yield from text_table(["margin", "noise", "noise by error margin"], rows)
    yield ""
    if output is None:
        yield "Nothing was written; add -o belief.json to save the belief and its explanation."
    else:
        yield (
            f"Written to {output}. Try it: quiltwork belief check --belief {output} "
            "--against public.csv"
        )


belief.add_command(make)
belief.add_command(check)
belief.add_command(turn)
