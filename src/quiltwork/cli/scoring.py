"""Options of `holdout` and `leaderboard` that say how predictions are scored."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from quiltwork.cli.command import exact_number, option

if TYPE_CHECKING:
    from quiltwork.holdout.metrics import Scoring

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


def scoring_options(
    metric: str = option(
        f"{', '.join(SHORT)}, or a name of scikit-learn's. Leaderboards show errors times -1, so "
        "that larger is better.",
        "NAME",
        default="accuracy",
    ),
    limits: str | None = option(
        "Public ends of the target, for mae, mse, rmse and r2.", "LOW:HIGH"
    ),
    positive: str = option("The label of the positive class.", default="1"),
    variance: Fraction | None = option("The variance of the target on training rows, for r2."),
    floor: Fraction | None = option(
        "A public lower bound on the share of rows in the metric's denominator."
    ),
    classes: tuple[str, ...] = option(
        "A class that may be predicted, which is public; repeat it, or '*' for any text.",
        "LABEL",
        names="--class",
    ),
) -> Scoring:
    """Return how predictions are scored."""
    from quiltwork.holdout.metrics import Scoring, plain_label

    limit_pair = None
    if limits is not None:
        low, colon, high = limits.partition(":")
        if not colon:
            raise click.UsageError(f"--limits takes two ends such as 0:5000, not {limits!r}")
        limit_pair = (exact_number(low), exact_number(high))
    name = SHORT.get(metric, metric)
    return Scoring(name, limit_pair, plain_label(positive), variance, floor, classes or None)
