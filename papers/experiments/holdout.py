"""The reusable holdout: the classic experiment, the paper's Figures 2 and 3, a greedy climber."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING

from papers.registry import Progress, experiment
from papers.result import Figure, Findings, Row, Sheet
from quiltwork.report.charts import Line, LineChart

if TYPE_CHECKING:
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
    """As many features as rows: no signal, and 20 weak features."""
    from papers.examples.classic import World

    noise = _repeated(World(rows, rows), repeats, lambda k: progress(k, 2 * repeats))
    weak = _repeated(
        World(rows, rows, signal=20, bias=6 / rows**0.5),
        repeats,
        lambda k: progress(repeats + k, 2 * repeats),
    )
    figures = [
        *_figures("no-signal", "No feature tells the label", noise),
        *_figures("weak", "20 features tell a little", weak),
    ]
    last = SIZES[-1]
    return Findings(
        f"With {last} features chosen by a plain holdout, the holdout praises a classifier of pure "
        "noise; the reusable holdout's answers stay close to fresh data. Bars are ± one standard "
        f"deviation over {repeats} runs.",
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
    """Attributes share factors and tell the label a little; rows come in pairs of copies."""
    from papers.examples.classic import World

    world = World(rows, rows // 2, signal=20, bias=6 / rows**0.5, shared=0.3, copies=2)
    found = _repeated(world, repeats, lambda k: progress(k, repeats))
    last = SIZES[-1]
    return Findings(
        "Attributes are correlated with the label and in blocks of ten among themselves, and every "
        "row is there twice, which the holdout is told. Reused in the common way the holdout "
        f"overfits as the training set does; ours does not. {repeats} runs, bars ± one standard "
        "deviation.",
        (*_rows(f"correlated, k = {last}", found, None), *_promise(world, found[0][1].rounds)),
        (
            Figure("figure-2", _chart("Figure 2: the holdout reused in the common way", found, 0)),
            Figure("figure-3", _chart("Figure 3: the reusable holdout", found, 1)),
        ),
        (_sheet("correlated", found),),
    )


@experiment(
    "holdout-climber",
    title="A greedy climber on three leaderboards",
    quick={"rows": 2000, "questions": 1000},
    full={"rows": 10_000, "questions": 5000},
)
def climber(progress: Progress, rows: int, questions: int) -> Findings:
    """Labels that nothing predicts: what each board claims for the climber's vote."""
    from quiltwork.holdout.climber import simulate_attack

    found = simulate_attack(rows, questions, budget=questions // 5)
    names = ("plain", "reusable", "ladder")
    series = [
        Line(
            {"plain": "plain board", "reusable": "reusable holdout", "ladder": "Ladder"}[name],
            tuple(
                (float(climb.questions), 100 * value - 50)
                for climb in found.climbs
                if (value := getattr(climb, name)) is not None
            ),
        )
        for name in names
    ]
    truth = tuple((float(climb.questions), 0.0) for climb in found.climbs)
    chart = LineChart(
        "What a climber gains",
        "Claimed accuracy of a vote of random classifiers, in points above 50 %, against the "
        "number of questions; the truth is 0.",
        "questions",
        "claimed accuracy above 50 %, in points",
        (*series, Line("truth", truth)),
    )
    last = found.climbs[-1]
    return Findings(
        "The climber keeps random classifiers that the board calls good. A plain board believes "
        "the vote of them; the reusable holdout and the Ladder do not.",
        (
            Row("plain board", 100 * last.plain, unit="%"),
            Row("reusable holdout", 100 * (last.reusable or 0.0), unit="%"),
            Row("Ladder", 100 * last.ladder, unit="%"),
            Row("truth", 50.0, unit="%"),
            Row("the Ladder's proven width", 100 * found.ladder_width, unit="%", note="at 95 %"),
        ),
        (Figure("claims", chart),),
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
    gaps = [abs(h - f) for one in ours for h, f in zip(one.holdout, one.fresh, strict=True)]
    return [
        Row(f"{name}: plain holdout claims", _at_last(plain, "holdout"), published),
        Row(f"{name}: … true, on fresh rows", _at_last(plain, "fresh")),
        Row(f"{name}: reusable holdout answers", _at_last(ours, "holdout")),
        Row(f"{name}: … true, on fresh rows", _at_last(ours, "fresh")),
        Row(f"{name}: largest gap of an answer to fresh rows", round(max(gaps), 4)),
    ]


def _promise(world: World, rounds: int) -> list[Row]:
    """Say what is proven at this size: with so many rounds nothing, which is said too."""
    from quiltwork.beliefs import Clusters
    from quiltwork.holdout.guarantee import guarantee
    from quiltwork.holdout.holdout_plan import plan_holdout

    beliefs, spent = Clusters([0] * world.copies), max(rounds, 1)
    asked = world.features + len(SIZES)
    stated = guarantee(beliefs, world.rows, world.threshold, world.noise, spent, asked)
    needed = plan_holdout(
        beliefs, queries=asked, overfits=spent, tolerance=0.05, mechanism="max-information"
    )
    return [
        Row(
            "stated error: threshold and noise",
            round(stated.noise_width, 4),
            note="between answer and holdout, at 95 %",
        ),
        Row(
            "stated error: in all",
            round(stated.tolerance, 4),
            note="vacuous at this size" if stated.vacuous else "proven, at 95 %",
        ),
        Row(
            "rows for a proven error of 0.05",
            needed.samples,
            note=f"with {spent} rounds, as were spent here",
        ),
    ]


def _at_last(claims: Sequence[Claims], name: str) -> float:
    return float(round(mean(getattr(one, name)[-1] for one in claims), 4))


def _figures(name: str, title: str, runs: Sequence[tuple[Claims, Claims]]) -> tuple[Figure, Figure]:
    return (
        Figure(f"{name}-plain", _chart(f"{title}: plain holdout", runs, 0)),
        Figure(f"{name}-reusable", _chart(f"{title}: reusable holdout", runs, 1)),
    )


def _chart(title: str, runs: Sequence[tuple[Claims, Claims]], which: int) -> LineChart:
    claims = [pair[which] for pair in runs]
    return LineChart(
        title,
        "Accuracy of the vote of k features, in points above 50 %, on the training set, as the "
        "holdout tells it, and on fresh rows, with one standard deviation either way.",
        "features that vote",
        "accuracy above 50 %, in points",
        tuple(
            _series(words, [getattr(one, name) for one in claims])
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
        (run, kind, k, one.train[i], one.holdout[i], one.fresh[i])
        for run, pair in enumerate(runs, 1)
        for kind, one in zip(("plain", "reusable"), pair, strict=True)
        for i, k in enumerate(SIZES)
    ]
    return Sheet(name, ("run", "holdout", "features", "train", "said", "fresh"), tuple(rows))
