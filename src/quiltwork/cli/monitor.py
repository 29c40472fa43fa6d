"""`quiltwork monitor`: the true leakage of plain differential privacy at every step."""

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
        "The level of the release at every step, about its own time point.",
        kind=level_number,
    ),
    length: int | None = option("With --epsilon: the number of steps so far.", "N"),
    levels: str | None = option("Instead: one level on each line; - reads stdin.", "FILE"),
    under: Fraction | None = option(
        "Also find the level that keeps every time point under this bound.", kind=level_number
    ),
    protect: str | None = protect_option,
    delta: Fraction | None = option(
        "Compute epsilon at this delta, where each release uses its own time point only."
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
        "What the levels are for: a time point that is substituted, or one that is added or "
        "removed (OpenDP's symmetric distance, most libraries), whose epsilon and mu count twice "
        "and rho four times.",
        kind=("substitute", "add-remove"),
        default="substitute",
    ),
    to: Targets = option_group(Targets),
) -> None:
    """Compute the true leakage of plain DP at every step.

    Releases at other steps reveal something about a time point too, because steps are correlated.
    The result is the leakage of all releases so far about each time point, its limit if the
    releases never stop, and with --under the level that keeps it under a bound. No data are read.

    With --delta and --rho, --gdp or --epsilon: the claim about each step if steps were independent,
    and the true leakage about one, as epsilon at that delta.
    """
    from quiltwork.budget import monitor as monitor_levels
    from quiltwork.budget.deployments import DEPLOYMENTS, deployment, level_factor

    if deployed == "?":
        click.echo("\n".join(f"{one.name}: {one.unit}" for one in DEPLOYMENTS.values()))
        return
    if deployed is not None:
        if any(one is not None for one in (epsilon, levels, rho, gdp, level_delta)):
            raise click.UsageError("--deployed has a level of its own: leave out the others")
        published = deployment(deployed)
        epsilon, rho = published.epsilon, published.rho
        if rho is not None and delta is None:
            raise click.UsageError(f"{deployed} publishes rho: give a --delta, such as 1e-6")
    factor = level_factor(neighbours)
    epsilon, gdp = _times(epsilon, factor), _times(gdp, factor)
    if delta is not None:
        if levels is not None:
            raise click.UsageError("--delta takes one level for all steps: leave out --levels")
        if level_delta is not None and factor > 1:
            raise click.UsageError(
                "--level-delta is for substituting a time point: convert the (epsilon, delta) of a "
                "library that adds or removes records, and leave out --neighbours"
            )
        to.check()
        beliefs = read_beliefs(belief)
        gaussian = monitor_levels(
            beliefs,
            epsilon,
            length,
            under,
            read_episode(protect, beliefs),
            delta=delta,
            rho=_times(rho, factor**2),
            gdp=gdp,
            level_delta=level_delta or 0,
        )
        to.deliver(gaussian.to_json(), gaussian.explain().splitlines(), gaussian)
        return
    if rho is not None or gdp is not None or level_delta is not None:
        raise click.UsageError("--rho, --gdp and --level-delta need a --delta")
    if (epsilon is None) == (levels is None) or (levels is not None and length is not None):
        raise click.UsageError("Give --epsilon with --length, or --levels with one level a line")
    to.check()
    beliefs = read_beliefs(belief)
    spent: Any = epsilon
    if levels is not None:
        spent = [factor * level for level in _read_levels(levels)]
    result = monitor_levels(beliefs, spent, length, under, read_episode(protect, beliefs))
    to.deliver(result.to_json(), result.explain().splitlines(), result)


def _times(level: Fraction | None, factor: int) -> Fraction | None:
    return None if level is None else level * factor


def _read_levels(path: str) -> list[Fraction]:
    lines = [line.strip() for line in files.read_text(path).splitlines()]
    levels = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                levels.append(exact_number(line))
        except click.BadParameter as error:
            raise InvalidInputError(f"Line {number} of {path!r}: {error.message}.") from None
    return levels
