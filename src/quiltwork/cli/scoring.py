"""How predictions are scored, as options that `holdout ask` and `leaderboard create` share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

import click

from quiltwork.cli.command import exact_number

_OPTIONS = (
    click.option("--metric", default="accuracy", show_default=True, help="How rows are scored."),
    click.option("--limits", metavar="LOW:HIGH", help="Public ends of the target, for errors."),
    click.option("--positive", default="1", show_default=True, help="The positive class's label."),
    click.option(
        "--variance",
        type=exact_number,
        metavar="NUMBER",
        help="Of the target on training rows, for r2.",
    ),
    click.option(
        "--floor",
        type=exact_number,
        metavar="NUMBER",
        help="The share of rows that a class, or what is divided by, has at least.",
    ),
)


def scoring_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the function gets one `scoring`."""

    @wraps(function)
    def call(
        *arguments: Any,
        metric: str,
        limits: str | None,
        positive: str,
        variance: Fraction | None,
        floor: Fraction | None,
        **others: Any,
    ) -> Any:
        from quiltwork.holdout.metrics import Scoring
        from quiltwork.holdout.questions import plain_label

        ends = None
        if limits is not None:
            low, _, high = limits.partition(":")
            ends = (exact_number(low), exact_number(high))
        scoring = Scoring(metric, ends, plain_label(positive), variance, floor)
        return function(*arguments, scoring=scoring, **others)

    for add in reversed(_OPTIONS):
        call = add(call)
    return call
