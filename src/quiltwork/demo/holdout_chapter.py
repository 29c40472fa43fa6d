"""Chapter: a climber on a leaderboard where nothing can be learnt."""

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
    """Let a greedy climber ask about random classifiers, on a plain board and on ours."""
    from quiltwork.demo.climber import simulate_attack

    found = simulate_attack(rows=ROWS, questions=QUESTIONS, noise=NOISE, budget=BUDGET, seed=SEED)
    last = found.climbs[-1]
    answers = [one.reusable for one in found.climbs if one.reusable is not None]
    ours = percent(answers[-1]) if answers else "no answer"
    return Chapter(
        "holdout",
        "A holdout: scores that survive being asked again",
        (
            f"{QUESTIONS} random classifiers on {ROWS:,} rows of coin flips; the truth is 50.0 %:",
            f"  plain leaderboard {last.plain:>7.1%}",
            f"  reusable holdout  {ours:>7}   {last.rounds} of {BUDGET} noisy answers used",
        ),
        _parts(found),
        {
            "rows": ROWS,
            "questions": QUESTIONS,
            "truth": found.truth,
            "plain": last.plain,
            "reusable": answers[-1] if answers else None,
            "rounds": last.rounds,
        },
    )


def _parts(found: Attack) -> tuple[Any, ...]:
    plain = tuple((float(one.questions), one.plain) for one in found.climbs)
    ours = tuple((float(one.questions), one.reusable) for one in found.climbs if one.reusable)
    truth = tuple((x, found.truth) for x, _ in plain)
    chart = LineChart(
        title="What the board believes",
        description="Accuracy that each board reports for the majority vote of the classifiers "
        "it called good, against the number of questions asked. Labels are coin flips.",
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
            "A team asks a leaderboard again and again, keeps what scores well, and submits the "
            "vote of its favourites. On coin flips nothing can be learnt, yet a plain board "
            "believes it. The reusable holdout answers from the training rows while both agree, "
            "and adds noise when they do not."
        ),
        facts(
            {
                "rows": f"{ROWS:,} to learn from, {ROWS:,} held out",
                "questions": f"{QUESTIONS}, each chosen after the answers before",
                "noisy answers": f"{BUDGET} at most",
            }
        ),
        figure(chart),
        paragraph("How many rows a promise takes, and a board of your own:"),
        code(
            "quiltwork holdout plan --queries 100 --overfits 5 --tolerance 0.1\n"
            "quiltwork leaderboard create --help"
        ),
    )
