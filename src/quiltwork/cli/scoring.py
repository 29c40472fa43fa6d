"""What `holdout` and `leaderboard` share: how predictions are scored, certificates, the attack."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import click

from quiltwork import files
from quiltwork.cli.command import argument, command, exact_number, option, output_option
from quiltwork.cli.output import check_targets, deliver, emit, text_table
from quiltwork.exact import percent

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


def read_scoring(
    metric: str = option(
        f"{', '.join(SHORT)}, or as scikit-learn names them. Leaderboards show errors times -1: "
        "more is better.",
        "NAME",
        default="accuracy",
    ),
    limits: str | None = option(
        "Public ends of the target, for mae, mse, rmse and r2.", "LOW:HIGH"
    ),
    positive: str = option("The positive class's label.", default="1"),
    variance: Fraction | None = option("Of the target on training rows, for r2."),
    floor: Fraction | None = option(
        "The share of rows that a class, or what is divided by, has at least."
    ),
    classes: tuple[str, ...] = option(
        "A class, which everybody is told; repeat it, or '*' for any text.",
        "LABEL",
        names="--class",
    ),
) -> Scoring:
    """Return how predictions are scored."""
    from quiltwork.holdout.metrics import Scoring, plain_label

    ends = None
    if limits is not None:
        low, colon, high = limits.partition(":")
        if not colon:
            raise click.UsageError(f"--limits takes two ends such as 0:5000, not {limits!r}")
        ends = (exact_number(low), exact_number(high))
    name = SHORT.get(metric, metric)
    return Scoring(name, ends, plain_label(positive), variance, floor, classes or None)


@command(example="quiltwork holdout certify race --key key.pem -o certificate.json")
def certify(
    folder: str = argument(),
    key: str = option("Ed25519 in PEM; made if not there.", "FILE"),
    output: str | None = output_option,
) -> None:
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
def verify(
    file: str = argument(),
    public_key: str | None = option("Of whom it must be: hexadecimal digits, or PEM.", "FILE|HEX"),
    transcript: str | None = option("Must be whole, and have the line that is certified.", "FILE"),
) -> None:
    """Check a certificate offline: its signature, and that of whom and about what it is."""
    from quiltwork.holdout.certificates import verify_certificate

    found = verify_certificate(files.contents(file), public_key, transcript)
    whose = "" if public_key else " Whose key it is, nothing here tells: compare it."
    emit(found.to_json(), [*found.explain().splitlines(), f"The signature fits.{whose}"])


@command(example="quiltwork holdout attack --rows 2000 --questions 1000")
def attack(
    rows: int = option("Of the holdout.", default=2000),
    questions: int = option("Of the climber.", default=1000),
    threshold: Fraction = option("Of the reusable holdout.", default="0.05"),
    noise: Fraction = option("Of the reusable holdout.", default="0.005"),
    budget: int = option("Of the reusable holdout.", default=100),
    seed: int = option("Of the simulated rows.", default=0),
) -> None:
    """Show what a greedy climber gains on a plain leaderboard, and on ours.

    Labels are fair coins, so every classifier is right half of the time. The climber asks about
    random classifiers, keeps what the board calls good, and submits their majority vote.
    """
    from quiltwork.holdout.simulated_attack import simulate_attack

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
            percent(climb.plain),
            "budget spent" if climb.reusable is None else percent(climb.reusable),
            percent(climb.ladder),
            percent(found.truth),
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
