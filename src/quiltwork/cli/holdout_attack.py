"""`quiltwork holdout attack`: a greedy climber on three leaderboards."""

from __future__ import annotations

from fractions import Fraction

from quiltwork import files
from quiltwork.cli.command import command, exact_number, option
from quiltwork.cli.output import emit, text_table


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
