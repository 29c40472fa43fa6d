"""What `holdout` and `leaderboard` share: how predictions are scored, certificates, the attack."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import wraps
from typing import Any

import click

from quiltwork import files
from quiltwork.cli.command import command, exact_number, option, output_option, with_options
from quiltwork.cli.output import check_targets, deliver, emit, text_table
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


@command(example="quiltwork holdout certify race --key key.pem -o certificate.json")
@click.argument("folder")
@option("--key FILE", "Ed25519 in PEM; made if not there.", required=True)
@output_option
def certify(folder: str, key: str, output: str | None) -> None:
    """Sign the best score of a leaderboard in FOLDER, or the last answer of a holdout."""
    from quiltwork.holdout.certificates import certify as sign

    check_targets(output)
    found = sign(folder, key)
    deliver(found.to_json(), found.explain().splitlines(), output=output)


@command(
    example="""
    quiltwork holdout verify certificate.json
    quiltwork holdout verify certificate.json --public-key 3b5d... --transcript board.jsonl
    """
)
@click.argument("file")
@option("--public-key HEX", "Of whom it must be.")
@option("--transcript FILE", "Must be whole, and have the line that is certified.")
def verify(file: str, public_key: str | None, transcript: str | None) -> None:
    """Check a certificate offline: its signature, and that of whom and about what it is."""
    from quiltwork.holdout.certificates import verify_certificate

    found = verify_certificate(files.contents(file), public_key, transcript)
    whose = "" if public_key else " Whose key it is, nothing here tells: compare it."
    emit(found.to_json(), [*found.explain().splitlines(), f"The signature fits.{whose}"])


@command(example="quiltwork holdout attack --rows 2000 --questions 1000")
@option("--rows", "Of the holdout.", int, default=2000)
@option("--questions", "Of the climber.", int, default=1000)
@option("--threshold NUMBER", "Of the reusable holdout.", exact_number, default="0.05")
@option("--noise NUMBER", "Of the reusable holdout.", exact_number, default="0.005")
@option("--budget", "Of the reusable holdout.", int, default=100)
@option("--seed", "Of the simulated rows.", int, default=0)
def attack(
    rows: int, questions: int, threshold: Fraction, noise: Fraction, budget: int, seed: int
) -> None:
    """Show what a greedy climber gains on a plain leaderboard, and on ours.

    Labels are fair coins, so every classifier is right half of the time. The climber asks about
    random classifiers, keeps what the board calls good, and submits their majority vote.
    """
    from quiltwork.holdout.climber import simulate_attack

    found = simulate_attack(rows, questions, threshold, noise, budget, seed)
    body = {
        "rows": found.rows,
        "truth": found.truth,
        "ladder_width": found.ladder_width,
        "climbs": [vars(climb) for climb in found.climbs],
    }
    table = [
        [
            climb.questions,
            f"{100 * climb.plain:.1f} %",
            "budget spent" if climb.reusable is None else f"{100 * climb.reusable:.1f} %",
            f"{100 * climb.ladder:.1f} %",
            f"{100 * found.truth:.1f} %",
        ]
        for climb in found.climbs
    ]
    header = ["questions", "plain board", "reusable holdout", "Ladder", "truth"]
    last = found.climbs[-1]
    lines = [
        f"A climber on {rows:,} rows with labels that nothing predicts:",
        "",
        *text_table(header, table),
        "",
        f"The reusable holdout spent {last.rounds} of {budget} rounds; the Ladder's best is within "
        f"{found.ladder_width:.3g} of the truth at 95 %.",
    ]
    emit(files.dump("holdout-attack", 1, body), lines)
