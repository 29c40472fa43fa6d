"""`quiltwork belief turn`: beliefs about days for series that begin at another time."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from quiltwork.cli.command import command
from quiltwork.cli.output import check_targets, deliver
from quiltwork.cli.series import read_beliefs
from quiltwork.errors import InvalidInputError

_DAY = 86_400


@command(
    example="""
    quiltwork belief turn belief.json --begins 08:00 -o from8.json
    quiltwork belief turn belief.json --begins 08:00 --begins 20:00 -o both.json
    """
)
@click.argument("file")
@click.option(
    "--begins",
    multiple=True,
    required=True,
    metavar="TIME",
    help="When a series begins: 08:00, or 2026-03-01T08:00 where weekdays count; repeat for more.",
)
@click.option(
    "-o", "--output", metavar="FILE", required=True, help="Write the beliefs here; - prints them."
)
def turn(file: str, begins: tuple[str, ...], output: str) -> None:
    """Turn beliefs about days to series that begin at these times.

    A release does so by itself. A ledger holds beliefs as they are: register its dataset with the
    file written here, which has one belief for each time. Beliefs without a time of day stay.
    """
    from quiltwork.beliefs import Belief, CyclicChain, beliefs_to_json

    check_targets(output)
    given, found = read_beliefs((file,)), dict[Belief, None]()
    for belief in given:
        if not isinstance(belief, CyclicChain):
            found[belief] = None
            continue
        step = None if belief.grid is None else belief.grid.step
        if step is None or belief.anchor is None:
            raise InvalidInputError(
                f"{file} does not say when its first phase is; fit it on data with times, or turn "
                "it in Python with starting(phases)."
            )
        moments = [_moment(text, belief.period * step) for text in begins]
        phases = {(moment - belief.anchor) // step % belief.period for moment in moments}
        found.update((belief.starting(phase), None) for phase in sorted(phases))
    document = beliefs_to_json(list(found))
    deliver(document, [*map(repr, found), f"Written to {output}."], (), output)


def _moment(text: str, cycle: int) -> int:
    """Read a time of day, or a moment, in seconds of the clock that beliefs keep."""
    try:
        if "-" not in text and cycle == _DAY:
            return int(datetime.fromisoformat(f"1970-01-01T{text}+00:00").timestamp())
        read = datetime.fromisoformat(text)
    except ValueError:
        day = "a time of day such as 08:00, or " if cycle == _DAY else ""
        raise InvalidInputError(
            f"Cannot read when {text!r} is; give {day}a moment such as 2026-03-01T08:00."
        ) from None
    return int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
