"""Consumers of counts: universal optimality, the gain of remaps, uniqueness and its limits."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from papers.registry import Progress, experiment, tracked
from papers.result import Figure, Findings, Row
from quiltwork.report.charts import Line, LineChart

if TYPE_CHECKING:
    from quiltwork.counts import Consumer, Remap

FIGURE_3 = ("↓ Z ↑ ↑ ↑ ↑", "↓ Z S ↑ ↑ ↑", "↓ Z ↓ ↑ ↑ ↑", "↓ Z ↓ ↓ ↑ ↑", "↓ Z ↓ ↓ ↓ ↑")
"""As printed: which privacy constraints of Figure 2's mechanism are tight."""


@experiment(
    "geometric-figure-3",
    title="Which privacy constraints an optimal mechanism uses",
    item="geometric-mechanism, Figure 3",
)
def figure_3(progress: Progress) -> Findings:
    """Compute the constraint matrix of Figure 2 and the remap that Lemma 5.11 reads off it."""
    from papers.examples.geometric import figure_2
    from papers.examples.structure import draw_constraints, structure_report
    from papers.examples.vertices import vertex_remap
    from quiltwork.counts import constraint_matrix

    mechanism, alpha = figure_2(), Fraction(1, 2)
    drawn = draw_constraints(constraint_matrix(mechanism, alpha)).splitlines()
    report = structure_report(mechanism, alpha)
    rows = [Row(f"row {i}", ours, FIGURE_3[i]) for i, ours in enumerate(drawn)]
    remap = " ".join(map(str, vertex_remap(mechanism, alpha)))
    return Findings(
        f"All states are the printed ones; {len(report.passed)} statements about optimal vertices "
        f"hold, and Lemma 5.11 reads the remap {remap} off the matrix.",
        (*rows, Row("remap of 0..5", remap, "0 2 2 3 4 5")),
    )


@experiment(
    "geometric-laplace",
    title="Geometric against Laplace noise on one bit",
    item="geometric-mechanism, Section 6.1",
    quick={"steps": 12},
    full={"steps": 60},
)
def laplace(progress: Progress, steps: int) -> Findings:
    """Least losses on counts {0, 1} with even odds, for falling α."""
    from papers.examples.geometric import laplace_comparison

    alphas = [0.9 * 0.001 ** (step / (steps - 1)) for step in range(steps)]
    points = [(alpha, *laplace_comparison(alpha)) for alpha in tracked(progress, alphas)]
    quarter = laplace_comparison(0.25)
    chart = LineChart(
        title="The least loss on one bit",
        description="Both noises read optimally; the Laplace loss over the geometric loss grows "
        "without bound as α falls.",
        x_axis="α",
        y_axis="expected loss",
        lines=(
            Line("geometric, α/(1+α)", tuple((a, g) for a, g, _ in points)),
            Line("Laplace, √α/2", tuple((a, lap) for a, _, lap in points)),
        ),
        log_x=True,
        log_y=True,
    )
    return Findings(
        "Continuous noise is worse than integer noise: at α = 1/4 its loss is 1/4 instead of 1/5.",
        (
            Row("geometric, α = 1/4", quarter[0], 0.2),
            Row("Laplace, α = 1/4", quarter[1], 0.25),
        ),
        (Figure("losses", chart),),
    )


@experiment(
    "geometric-no-common-optimum",
    title="Priors about databases: no mechanism for everybody",
    item="geometric-mechanism, Theorem 6.3 and Figures 4 and 5",
)
def no_common_optimum(progress: Progress) -> Findings:
    """Exact bounds for the two consumers of Theorem 6.3, alone and together."""
    from papers.examples import databases

    bounds = databases.no_common_optimum()
    forced, needed = databases.figure_5_contradiction()
    prior = databases.database_prior(Fraction(1, 10), swapped=False)
    figure_4 = sum(
        p * x
        for database, p in prior.items()
        for answer, x in databases.FIGURE_4[database].items()
        if answer != databases.count_of(database, bool)
    )
    return Findings(
        "Each consumer alone can lose 77/240; under one mechanism for both they lose at least 1/40 "
        "more together.",
        (
            Row("loss of Figure 4", str(figure_4)),
            Row("least loss alone, certified below", float(bounds.alone)),
            Row("least loss of both together, certified below", float(bounds.together)),
            Row("answer l at {1}, forced by Figure 5", str(forced), "7/12"),
            Row("answer l at {1, 3}", str(needed), "1/6"),
        ),
    )


@experiment(
    "three-consumers",
    title="One released table, three consumers",
    quick={"tables": 20},
    full={"tables": 500},
)
def three_consumers(progress: Progress, tables: int) -> Findings:
    """Release tables of 50 towns once; three consumers remap every table by their own losses."""
    import numpy as np
    from scipy import stats

    from quiltwork.counts import Consumer, GeometricMechanism, release_table

    people, towns, epsilon = 400, 50, Fraction(3, 10)
    users = {
        "planner, absolute loss": Consumer(stats.poisson(20), "absolute"),
        "hospital, too low costs 4 times": Consumer(stats.poisson(20), "asymmetric:4:1"),
        "statistician, squared loss": Consumer(stats.poisson(20), "squared"),
    }
    mechanism = GeometricMechanism(people, epsilon=epsilon)
    remaps = {name: mechanism.remap(user) for name, user in users.items()}
    rng = np.random.default_rng(6)
    truths, released = [], []
    for _ in tracked(progress, range(tables)):
        truth = np.minimum(rng.poisson(20, towns), people)
        table = release_table(
            dict(enumerate(truth.tolist())), epsilon=epsilon, adjacency="add-remove"
        )
        truths.append(truth)
        released.append(np.clip(table.noisy, 0, people))
    true, read = np.concatenate(truths), np.concatenate(released)
    rows = [
        row
        for name, remap in remaps.items()
        for row in _measured(name, users[name], remap, true, read)
    ]
    return Findings(
        f"{tables} tables of {towns} towns at ε = {float(epsilon)}, the same for everybody; "
        "each consumer reads them with its own prior and loss, at no cost in privacy.",
        tuple(rows),
    )


def _measured(name: str, user: Consumer, remap: Remap, true: object, read: object) -> list[Row]:
    """Mean losses over all released cells, beside what was expected."""
    import numpy as np

    counts, answers = np.asarray(true), np.asarray(read)
    face = float(user.loss.table(counts, answers).mean())
    after = float(user.loss.table(counts, remap(answers)).mean())
    return [
        Row(f"{name}: face value", face, note=f"expected {remap.face_value_loss:.4g}"),
        Row(f"{name}: remapped", after, note=f"expected {remap.expected_loss:.4g}"),
        Row(f"{name}: saved", round(100 * (1 - after / face), 1), unit="%"),
    ]
