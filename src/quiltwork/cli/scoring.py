"""How predictions are scored, as options that `holdout ask` and `leaderboard create` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

import click

from quiltwork.cli.command import exact_number, option, with_options
from quiltwork.errors import InvalidInputError

SHORT = {
    **{name: name for name in ("accuracy", "f1", "precision", "recall")},
    "balanced-accuracy": "balanced_accuracy",
    "auc": "roc_auc",
    "brier": "neg_brier_score",
    "log-loss": "neg_log_loss",
    "mae": "neg_mean_absolute_error",
    "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error",
    "r2": "r2",
}
_IN_PYTHON = re.compile(
    r"\b(floor|limits|mode|overfits|protect|train|variance)=(\(\d+, \d+\)|'[\w ]+')?"
)
_OPTIONS = (
    option(
        "--metric NAME",
        f"{', '.join(SHORT)}, or as scikit-learn names them. Leaderboards show errors times -1: "
        "more is better.",
        default="accuracy",
    ),
    option("--limits LOW:HIGH", "Public ends of the target, for mae, mse, rmse and r2."),
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
            low, colon, high = limits.partition(":")
            if not colon:
                raise click.UsageError(f"--limits takes two ends such as 0:5000, not {limits!r}")
            ends = (exact_number(low), exact_number(high))
        name = SHORT.get(metric, metric)
        scoring = Scoring(name, ends, plain_label(positive), variance, floor)
        try:
            return function(*arguments, scoring=scoring, **others)
        except InvalidInputError as problem:
            raise InvalidInputError(_IN_PYTHON.sub(_as_option, str(problem))) from None

    return with_options(call, _OPTIONS)


def _as_option(found: re.Match[str]) -> str:
    value = (found[2] or "").strip("()'").replace(", ", ":").replace(" ", "-")
    return f"--{found[1]} {value}".rstrip()
