"""`quiltwork monitor`: what plain differential privacy at every step really leaks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from quiltwork import files
from quiltwork.cli.command import (
    belief_option,
    command,
    exact_number,
    level_number,
    option,
    option_group,
)
from quiltwork.cli.output import Targets
from quiltwork.cli.series_options import protect_option, read_beliefs, read_episode
from quiltwork.errors import InvalidInputError


@command(
    example="""
    quiltwork monitor --belief belief.json --epsilon 0.1 --length 365
    quiltwork monitor --belief belief.json --epsilon 0.1 --length 365 --under 1 --plot leaks.png
    quiltwork monitor --belief belief.json --levels spent.txt --under 1 --report page.html
    quiltwork monitor --belief days.json --rho 0.015 --delta 1e-6 --length 365 --under 1
    quiltwork monitor --belief days.json --deployed google_mobility --length 365
    """
)
def monitor(
    belief: tuple[str, ...] = belief_option,
    epsilon: Fraction | None = option(
        "The level of the release at every step, for substituting its time point: twice the "
        "level of a library that adds or removes records.",
        kind=level_number,
    ),
    length: int | None = option("With --epsilon: how many steps by now.", "N"),
    levels: str | None = option("Instead: one level on each line; - reads stdin.", "FILE"),
    under: Fraction | None = option(
        "Also say which level keeps every moment under this bound.", kind=level_number
    ),
    protect: str | None = protect_option,
    delta: Fraction | None = option(
        "Look at epsilon at this chance of more, each release being about its own step only."
    ),
    rho: Fraction | None = option("With --delta: rho of Gaussian noise at every step."),
    gdp: Fraction | None = option("With --delta: mu of Gaussian noise at every step."),
    level_delta: Fraction | None = option("With --delta and --epsilon: delta of each release."),
    deployed: str | None = option(
        "Instead of a level: a public deployment that protects a day, by its name in OpenDP's "
        "registry; ? lists them.",
        "NAME",
    ),
    neighbours: Any = option(
        "With --deployed: what its level is for.",
        kind=("substitute", "add-remove"),
        default="substitute",
    ),
    to: Targets = option_group(Targets),
) -> None:
    """Tell what plain DP at every step leaks about each moment.

    Releases at other steps speak of a moment too, to who knows how steps are tied. Shown is what
    all releases by now tell about each moment, what they will if they go on for ever, and with
    --under the level that keeps it under a bound. No data are read.

    With --delta and --rho, --gdp or --epsilon: what is claimed about each step if steps are
    independent, and what all releases tell about one in truth, as epsilon at that delta.
    """
    from quiltwork.budget import monitor as watch
    from quiltwork.budget.deployments import DEPLOYMENTS, deployment

    if deployed == "?":
        click.echo("\n".join(f"{one.name}: {one.unit}" for one in DEPLOYMENTS.values()))
        return
    if deployed is not None:
        if any(one is not None for one in (epsilon, levels, rho, gdp, level_delta)):
            raise click.UsageError("--deployed has a level of its own: leave out the others")
        level = deployment(deployed).level(neighbours)
        epsilon, rho = level.get("levels"), level.get("rho")
        if rho is not None and delta is None:
            raise click.UsageError(f"{deployed} publishes rho: say at which --delta to look at it")
    if delta is not None:
        if levels is not None:
            raise click.UsageError("--delta takes one level for all steps: leave out --levels")
        to.check()
        beliefs = read_beliefs(belief)
        told = watch(
            beliefs,
            epsilon,
            length,
            under,
            read_episode(protect, beliefs),
            delta=delta,
            rho=rho,
            gdp=gdp,
            level_delta=level_delta or 0,
        )
        to.deliver(told.to_json(), told.explain().splitlines(), told)
        return
    if rho is not None or gdp is not None or level_delta is not None:
        raise click.UsageError("--rho, --gdp and --level-delta are looked at with a --delta")
    if (epsilon is None) == (levels is None) or (levels is not None and length is not None):
        raise click.UsageError("Give --epsilon with --length, or --levels with one level a line")
    to.check()
    beliefs = read_beliefs(belief)
    spent = _listed(levels) if levels is not None else epsilon
    seen = watch(beliefs, spent, length, under, read_episode(protect, beliefs))  # type: ignore[arg-type]
    to.deliver(seen.to_json(), seen.explain().splitlines(), seen)


def _listed(path: str) -> list[Fraction]:
    lines = [line.strip() for line in files.read_text(path).splitlines()]
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                found.append(exact_number(line))
        except click.BadParameter as error:
            raise InvalidInputError(f"Line {number} of {path!r}: {error.message}.") from None
    return found
