"""How predictions are scored, as options that `holdout ask` and `leaderboard create` share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

from quiltwork.cli.command import exact_number, option, with_options

_OPTIONS = (
    option("--metric", "How rows are scored.", default="accuracy"),
    option("--limits LOW:HIGH", "Public ends of the target, for errors."),
    option("--positive", "The positive class's label.", default="1"),
    option("--variance NUMBER", "Of the target on training rows, for r2.", exact_number),
    option(
        "--floor NUMBER",
        "The share of rows that a class, or what is divided by, has at least.",
        exact_number,
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

    return with_options(call, _OPTIONS)
