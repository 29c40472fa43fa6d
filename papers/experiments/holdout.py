"""The reusable holdout: the classic experiment, the paper's Figures 2 and 3, climbing attacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from statistics import mean, stdev
from typing import TYPE_CHECKING

from papers.registry import Progress, experiment
from papers.result import Figure, Findings, Row, Sheet
from quiltwork.report.charts import Line, LineChart, MatrixChart

if TYPE_CHECKING:
    from papers.examples.attacks import Climb
    from papers.examples.classic import Claims, World

SIZES = (0, 10, 20, 50, 100, 200, 300, 400, 500)


@experiment(
    "holdout-classic",
    title="Choosing among many features with one holdout",
    item="holdout-bayesian-dp, Section 4 (the setting of its reference [12])",
    quick={"rows": 2000, "repeats": 4},
    full={"rows": 10_000, "repeats": 10},
)
def classic(progress: Progress, rows: int, repeats: int) -> Findings:
    """The classic experiment with as many features as rows: no signal, and 20 weak features."""
    from papers.examples.classic import World

    noise = _repeated(World(rows, rows), repeats, lambda k: progress(k, 2 * repeats))
    weak = _repeated(
        World(rows, rows, signal=20, bias=6 / rows**0.5),
        repeats,
        lambda k: progress(repeats + k, 2 * repeats),
    )
    figures = [
        *_figures("no-signal", "No feature is correlated with the label", noise),
        *_figures("weak", "20 features are weakly correlated", weak),
    ]
    last = SIZES[-1]
    return Findings(
        f"With {last} features chosen by a plain holdout, the holdout overestimates a classifier "
        "of pure noise; the reusable holdout's answers stay close to fresh data. Bars are ± one "
        f"standard deviation over {repeats} runs.",
        (
            *_rows("no signal", noise, 0.63 if rows == 10_000 else None),
            *_rows("20 weak features", weak, None),
            *_promise(World(rows, rows), noise[0][1].rounds),
        ),
        tuple(figures),
        (_sheet("no-signal", noise), _sheet("weak", weak)),
    )


@experiment(
    "holdout-figures-2-3",
    title="Correlated attributes and correlated samples",
    item="holdout-bayesian-dp, Figures 2 and 3",
    quick={"rows": 2000, "repeats": 4},
    full={"rows": 10_000, "repeats": 10},
)
def figures_2_and_3(progress: Progress, rows: int, repeats: int) -> Findings:
    """Attributes share factors and are weakly correlated with the label; rows come in pairs."""
    from papers.examples.classic import World

    world = World(rows, rows // 2, signal=20, bias=6 / rows**0.5, shared=0.3, copies=2)
    runs = _repeated(world, repeats, lambda k: progress(k, repeats))
    last = SIZES[-1]
    return Findings(
        "Attributes are correlated with the label and in blocks of ten among themselves, and every "
        "row is there twice, which the belief says. Reused in the common way the holdout "
        f"overfits as the training set does; the reusable holdout does not. {repeats} runs, bars "
        "± one standard deviation.",
        (*_rows(f"correlated, k = {last}", runs, None), *_promise(world, runs[0][1].rounds)),
        (
            Figure("figure-2", _chart("Figure 2: the holdout reused in the common way", runs, 0)),
            Figure("figure-3", _chart("Figure 3: the reusable holdout", runs, 1)),
        ),
        (_sheet("correlated", runs),),
    )


@experiment(
    "holdout-attacks",
    title="Attacks from the literature on every kind of leaderboard",
    quick={"rows": 600, "submissions": 40},
    full={"rows": 10_000, "submissions": 300},
)
def attacks(progress: Progress, rows: int, submissions: int) -> Findings:
    """Six attacks, five boards, three kinds of rows; fresh rows give the true accuracy."""
    from papers.examples.attacks import ATTACKS, BOARDS, WORLDS, climb, make_world

    climbs, total = [], len(WORLDS) * len(ATTACKS) * len(BOARDS)
    for name in WORLDS:
        world = make_world(name, rows, submissions, seed=7)
        for attack in ATTACKS:
            for board in BOARDS:
                climbs.append(climb(world, attack, board, submissions, seed=3))
                progress(len(climbs), total)
    guarded = [run for run in climbs if run.board != "plain"]
    above = [run for run in guarded if run.claim > run.truth + run.promise]
    hurt = [run for run in guarded if run.attack == "honest" and _hurt(run) > run.step]
    worst = {
        board: max(100 * (run.claim - run.truth) for run in climbs if run.board == board)
        for board in BOARDS
    }
    promised = {
        board: max(100 * min(run.promise, 1.0) for run in climbs if run.board == board)
        for board in BOARDS
    }
    return Findings(
        "What each board claims for the best submission, in points above the best true accuracy of "
        "all submissions: boosted random votes, selected features, restarts, label flips by row "
        "id, a bandit, an honest analyst. A plain board is climbed and promises nothing. No other "
        "claims more than it promised; counting shows scores of training rows while they are "
        "within its threshold of the holdout's, so attacks can gain that much and no more.",
        (
            *(Row(f"{board}, worst climb", worst[board], unit="points") for board in BOARDS),
            *(
                Row(f"{board}, promise in the worst world", promised[board], unit="points")
                for board in BOARDS[1:]
            ),
            Row("claims above their promise", len(above), 0),
            Row("honest analysts hurt by more than a step", len(hurt), 0),
        ),
        (Figure("climbs", _climbs(climbs)),),
        (
            Sheet(
                "climbs",
                tuple(field.name for field in fields(climbs[0])),
                tuple(tuple(vars(run).values()) for run in climbs),
            ),
        ),
    )


def _hurt(climb: Climb) -> float:
    """Return how far the best score on the holdout is above the score that the board shows."""
    return climb.held - climb.claim


def _climbs(climbs: Sequence[Climb]) -> MatrixChart:
    """Return a chart with a row for each world and board and a column for each attack."""
    selected = [climb for climb in climbs if climb.board != "counting, noise"]
    rows = list(dict.fromkeys((climb.world, climb.board) for climb in selected))
    columns = list(dict.fromkeys(climb.attack for climb in selected))
    gain = {
        (climb.world, climb.board, climb.attack): 100 * (climb.claim - climb.truth)
        for climb in selected
    }
    return MatrixChart(
        "Gain of each attack",
        "Points that a board claims above the best true accuracy of all submissions; "
        "counting with noise is in the table.",
        "rows, board",
        "attack",
        tuple(f"{world}: {board}" for world, board in rows),
        tuple(columns),
        tuple(tuple(max(gain[*row, column], 0.0) for column in columns) for row in rows),
        tuple(tuple(f"{gain[*row, column]:+.1f}" for column in columns) for row in rows),
    )


def _repeated(
    world: World, repeats: int, done: Callable[[int], None]
) -> list[tuple[Claims, Claims]]:
    from papers.examples.classic import run_classic

    runs = []
    for seed in range(repeats):
        runs.append(run_classic(world, SIZES, seed))
        done(seed + 1)
    return runs


def _rows(name: str, runs: Sequence[tuple[Claims, Claims]], published: float | None) -> list[Row]:
    plain, ours = ([pair[which] for pair in runs] for which in (0, 1))
    gaps = [
        abs(h - f) for claims in ours for h, f in zip(claims.holdout, claims.fresh, strict=True)
    ]
    return [
        Row(f"{name}: plain holdout claims", _at_last(plain, "holdout"), published),
        Row(f"{name}: … true, on fresh rows", _at_last(plain, "fresh")),
        Row(f"{name}: reusable holdout answers", _at_last(ours, "holdout")),
        Row(f"{name}: … true, on fresh rows", _at_last(ours, "fresh")),
        Row(f"{name}: largest gap of an answer to fresh rows", round(max(gaps), 4)),
    ]


def _promise(world: World, rounds: int) -> list[Row]:
    """Return the proven error at this size; with so many rounds it is vacuous."""
    from quiltwork.beliefs import Clusters
    from quiltwork.holdout.guarantee import guarantee
    from quiltwork.holdout.holdout_plan import plan_holdout

    beliefs, spent = Clusters([0] * world.copies), max(rounds, 1)
    questions = world.features + len(SIZES)
    promise = guarantee(beliefs, world.rows, world.threshold, world.noise, spent, questions)
    needed = plan_holdout(
        beliefs, queries=questions, overfits=spent, tolerance=0.05, mechanism="max-information"
    )
    return [
        Row(
            "stated error: threshold and noise",
            round(promise.noise_width, 4),
            note="between answer and holdout, at 95 %",
        ),
        Row(
            "stated error: in all",
            round(promise.tolerance, 4),
            note="vacuous at this size" if promise.vacuous else "proven, at 95 %",
        ),
        Row(
            "rows for a proven error of 0.05",
            needed.samples,
            note=f"with {spent} rounds, as were spent here",
        ),
    ]


def _at_last(claims: Sequence[Claims], name: str) -> float:
    return float(round(mean(getattr(claim, name)[-1] for claim in claims), 4))


def _figures(name: str, title: str, runs: Sequence[tuple[Claims, Claims]]) -> tuple[Figure, Figure]:
    return (
        Figure(f"{name}-plain", _chart(f"{title}: plain holdout", runs, 0)),
        Figure(f"{name}-reusable", _chart(f"{title}: reusable holdout", runs, 1)),
    )


def _chart(title: str, runs: Sequence[tuple[Claims, Claims]], which: int) -> LineChart:
    claims = [pair[which] for pair in runs]
    return LineChart(
        title,
        "Accuracy of the vote of k features, in points above 50 %: on the training set, as "
        "answered by the holdout, and on fresh rows, with one standard deviation either way.",
        "features that vote",
        "accuracy above 50 %, in points",
        tuple(
            _series(words, [getattr(claim, name) for claim in claims])
            for name, words in (
                ("train", "training set"),
                ("holdout", "holdout"),
                ("fresh", "fresh rows"),
            )
        ),
    )


def _series(name: str, runs: Sequence[Sequence[float]]) -> Line:
    points, spread = [], []
    for k, values in zip(SIZES, zip(*runs, strict=True), strict=True):
        centre, off = mean(values), stdev(values)
        points.append((float(k), 100 * centre - 50))
        spread.append((100 * (centre - off) - 50, 100 * (centre + off) - 50))
    return Line(name, tuple(points), spread=tuple(spread))


def _sheet(name: str, runs: Sequence[tuple[Claims, Claims]]) -> Sheet:
    rows: list[tuple[int | float | str, ...]] = [
        (run, kind, k, claims.train[i], claims.holdout[i], claims.fresh[i])
        for run, pair in enumerate(runs, 1)
        for kind, claims in zip(("plain", "reusable"), pair, strict=True)
        for i, k in enumerate(SIZES)
    ]
    return Sheet(name, ("run", "holdout", "features", "train", "said", "fresh"), tuple(rows))
