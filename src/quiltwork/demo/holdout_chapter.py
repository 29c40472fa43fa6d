"""The demo's chapter on holdouts: a climbing attack on labels that cannot be predicted."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.demo.tour import Chapter
from quiltwork.exact import percent
from quiltwork.report import Line, LineChart, code, facts, figure, paragraph

if TYPE_CHECKING:
    from quiltwork.demo.climber import Attack

ROWS, QUESTIONS, BUDGET = 2_000, 300, 60
NOISE = Fraction(1, 500)
SEED = 19160430


def chapter() -> Chapter:
    """Simulate a climbing attack on a plain leaderboard and on a reusable holdout."""
    from quiltwork.demo.climber import simulate_attack

    attack = simulate_attack(rows=ROWS, questions=QUESTIONS, noise=NOISE, budget=BUDGET, seed=SEED)
    last = attack.climbs[-1]
    answers = [climb.reusable for climb in attack.climbs if climb.reusable is not None]
    ours = percent(answers[-1]) if answers else "no answer"
    return Chapter(
        "holdout",
        "A holdout: scores that stay accurate under repeated use",
        (
            f"{QUESTIONS} random classifiers on {ROWS:,} rows of coin flips; the truth is 50.0 %:",
            f"  plain leaderboard {percent(last.plain):>7}",
            f"  reusable holdout  {ours:>7}   {last.rounds} of {BUDGET} noisy answers used",
        ),
        _parts(attack),
        {
            "rows": ROWS,
            "questions": QUESTIONS,
            "truth": attack.truth,
            "plain": last.plain,
            "reusable": answers[-1] if answers else None,
            "rounds": last.rounds,
        },
    )


def _parts(attack: Attack) -> tuple[Any, ...]:
    plain = tuple((float(c.questions), c.plain) for c in attack.climbs)
    ours = tuple((float(c.questions), c.reusable) for c in attack.climbs if c.reusable)
    truth = tuple((questions, attack.truth) for questions, _ in plain)
    chart = LineChart(
        title="Reported accuracy under attack",
        description="The accuracy that each board reports for the majority vote of the classifiers "
        "it scored above 50 %, by the number of questions asked. Labels are coin flips.",
        x_axis="questions asked",
        y_axis="reported accuracy",
        lines=(
            Line("plain leaderboard", plain),
            Line("reusable holdout", ours),
            Line("truth", truth),
        ),
    )
    return (
        paragraph(
            "A team queries a leaderboard many times, keeps the classifiers that score well, and "
            "submits their majority vote. Coin flips cannot be predicted, yet a plain leaderboard "
            "reports a high accuracy. The reusable holdout answers from the training rows while "
            "both tables agree, and else from the holdout with noise."
        ),
        facts(
            {
                "rows": f"{ROWS:,} to learn from, {ROWS:,} held out",
                "questions": f"{QUESTIONS}, each chosen after the answers before",
                "noisy answers": f"{BUDGET} at most",
            }
        ),
        figure(chart),
        paragraph("Plan the number of rows, or create a leaderboard:"),
        code(
            "quiltwork holdout plan --queries 100 --overfits 5 --tolerance 0.1\n"
            "quiltwork leaderboard create --help"
        ),
    )
