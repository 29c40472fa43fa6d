"""`quiltwork holdout …`: plan a reusable holdout, create one, and ask it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    command,
    group,
    option,
    option_group,
    report_option,
)
from quiltwork.cli.output import check_targets, emit, text_table
from quiltwork.cli.scoring import scoring_options
from quiltwork.cli.series_options import read_beliefs
from quiltwork.errors import BudgetExceeded
from quiltwork.exact import float_nearest
from quiltwork.results import plain

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.holdout.metrics import Metric, Scoring
    from quiltwork.holdout.prediction_tables import TrainHoldoutTables
    from quiltwork.holdout.transcript import Answer, Transcript


_LARGEST_CLUSTER = 10**6
_LEVELS = ("epsilon", "bayesian_epsilon", "max_information")


@group()
def holdout() -> None:
    """Reuse a holdout, with answers that stay accurate.

    A question is data: a file with a prediction for every row id, or a condition on the columns.
    """


@command(
    example="""
    quiltwork holdout plan --queries 100 --overfits 5 --tolerance 0.1
    quiltwork holdout plan --queries 100 --overfits 5 --samples 1000000 --cluster-size 4
    quiltwork holdout plan --tolerance 0.1 --overfits 5 --samples 1000000
    quiltwork holdout plan --queries 1000 --tolerance 0.1
    """
)
def plan(
    queries: int | None = option("The number of questions to be asked."),
    overfits: int | None = option("How many of them may overfit the training set."),
    tolerance: Fraction | None = option("The largest error of an answer."),
    samples: int | None = option("The number of rows of the holdout."),
    confidence: Fraction = option("The probability with which the promise holds.", default="0.95"),
    overfit_at: Fraction = option(
        "A question overfits if its training value is off by this share of the tolerance.",
        default="0.5",
    ),
    belief: tuple[str, ...] = option("How rows depend on each other; repeat for a set.", "FILE"),
    cluster_size: int | None = option("Rows come in independent clusters of this size."),
    protect: str | None = option(
        "Also protect rows, by noise; otherwise accuracy only.", kind=("rows",)
    ),
    mechanism: str | None = option(
        "Plan with this mechanism instead of the best.",
        kind=("counting", "max-information", "fresh parts", "ladder"),
    ),
    plot: str | None = option("Draw the trade-off to this PNG or SVG.", "FILE"),
) -> None:
    """Compute how many rows a promise takes, or what the given rows can promise.

    Leave out one of --queries, --overfits, --tolerance and --samples to solve for it. Without
    --overfits and one other, the plan is for a Ladder, a board that announces improvements only.
    Exit code 1 if the promise does not hold or is vacuous.
    """
    from quiltwork.holdout import plan_holdout

    result = plan_holdout(
        _belief(belief, cluster_size),
        queries,
        overfits,
        tolerance,
        confidence,
        overfit_at,
        samples,
        protect,
        mechanism,
    )
    if cluster_size is not None:
        result = replace(result, available=samples)  # the belief stands for any number of rows
    if plot:
        from quiltwork.report.figures import write_figure

        write_figure(plot, result.chart())
    emit(result.to_json(), result.explain().splitlines())
    if not result.feasible:
        click.get_current_context().exit(1)


def _belief(paths: tuple[str, ...], cluster_size: int | None) -> tuple[Belief, ...] | None:
    if paths and cluster_size is not None:
        raise click.UsageError("Give --belief or --cluster-size, not both")
    if cluster_size is not None:
        from quiltwork.beliefs import Clusters

        if not 1 <= cluster_size <= _LARGEST_CLUSTER:
            raise click.UsageError(f"--cluster-size must lie between 1 and {_LARGEST_CLUSTER:,}")
        return (Clusters([0] * cluster_size),)
    return read_beliefs(paths) if paths else None


@command(
    example="""
    quiltwork holdout create study --train train.csv --holdout held.csv --id id \\
        --target label --threshold 0.05 --noise 0.01 --budget 10
    """
)
def create(
    folder: str = argument(),
    train: str = option("CSV file of the training rows, which are public.", "FILE"),
    held: str = option("CSV file of the holdout.", "FILE", names="--holdout"),
    identity: str = option("The column of row ids, which are public.", "COLUMN", names="--id"),
    target: str | None = option("The column that is predicted.", "COLUMN"),
    group_: str | None = option("Rows with the same value in it depend on each other.", "COLUMN"),
    threshold: Fraction = option(
        "The difference between training rows and holdout from which the holdout answers."
    ),
    noise: Fraction | None = option(
        "Sigma of Algorithm 1: the noise of an answer from the holdout has standard deviation 5.66 "
        "times this. 0 with --values protects accuracy only, and no row."
    ),
    answer_sd: Fraction | None = option(
        "Instead of --noise: the standard deviation of an answer's noise."
    ),
    values: int | None = option("Round answers from the holdout to multiples of 1/this."),
    budget: int = option("The number of answers that may come from the holdout."),
    queries: int | None = option("Refuse questions after this many."),
    ledger: str | None = option("Debit this ledger, one round at a time.", "URL"),
    dataset: str | None = option("The ledger's name for the holdout.", "NAME"),
) -> None:
    """Create a holdout in FOLDER and print its accuracy guarantee.

    The tables stay where they are; the folder gets the transcript, and the secret of the current
    threshold, readable by its owner only.
    """
    from os.path import abspath

    from quiltwork.holdout import ReusableHoldout, folders
    from quiltwork.holdout.prediction_tables import read_train_and_holdout
    from quiltwork.holdout.transcript import BoardSetup, Columns

    folders.refuse_password(ledger)
    with folders.open_ledger(ledger) as payer:
        paths = folders.HoldoutPaths(
            abspath(train), abspath(held), None if payer is None else payer.url
        )
        study = read_train_and_holdout(
            abspath(train), paths.holdout, Columns(identity, target, group_)
        )
        folders.make_folder(folder)
        reusable = ReusableHoldout(
            study.train,
            study.holdout,
            study.belief(),
            threshold=threshold,
            noise=noise,
            answer_sd=answer_sd,
            budget=budget,
            values=values,
            queries=queries,
            path=folders.transcript_path(folder),
            ledger=payer,
            dataset=dataset,
            about=BoardSetup(columns=study.columns),
        )
        reusable.close()
    folders.save(folder, paths)
    instruction = f"Predict every {identity} of {train} and of {held}, and ask with "
    _show_status(
        folder, queries, f"{instruction}`quiltwork holdout ask {folder} --predictions FILE`."
    )


@command(
    example="""
    quiltwork holdout ask study --predictions mine.csv
    quiltwork holdout ask study --predictions rents.csv --metric neg_mean_absolute_error \\
        --limits 0:5000
    quiltwork holdout ask study --predictions mine.csv --where sex=f
    quiltwork holdout ask study --share "age>=65" --share sex=f
    """
)
def ask(
    folder: str = argument(),
    predictions: str | None = option(
        "CSV, Parquet or JSON: id, and `prediction` or one other column.", "FILE"
    ),
    scoring: Scoring = option_group(scoring_options),
    where: tuple[str, ...] = option("Score predictions for these rows only.", "CONDITION"),
    share: tuple[str, ...] = option(
        "Ask for the share of rows with column=value, column!=value or column>=number; repeat it "
        "for conditions that must all hold.",
        "CONDITION",
    ),
    label: str = option("A label for the transcript.", default=""),
    ledger: str | None = option("The ledger's URL, if it has moved.", "URL"),
) -> None:
    """Ask the holdout in FOLDER one question.

    Predictions must cover every id of both tables. The holdout's own ledger pays for the answer.
    Exit code 1 once the budget is spent.
    """
    from quiltwork.holdout import folders
    from quiltwork.holdout.metrics import Metric

    if bool(predictions) == bool(share):
        raise click.UsageError("Ask with --predictions FILE or with --share CONDITION, not both")
    study, record = folders.tables_and_transcript(folder)
    if predictions:
        if study.columns.target is None:
            raise click.UsageError("This holdout has no --target, so predictions cannot be scored")
        metric, statistic, question = _prediction_question(study, predictions, scoring, where)
    else:
        metric, statistic = None, _share_question(study, share)
        question = f"share of {' and '.join(share)}"
    rows = (study.train, study.holdout)
    with folders.resumed(folder, rows, record.rounds.dataset, ledger) as opened:
        answers = opened.ask_many(statistic, label=label or question)
    if metric is not None and len(answers) < len(metric.signs):
        raise BudgetExceeded(f"The budget ended among the means that {question} is made of.")
    means = [answer.value for answer in answers]
    value = means[0] if metric is None else abs(metric.value(means))
    guarantee, noise = record.promise(), max(answer.noise_sd for answer in answers)
    scored_by = metric or Metric("share", lambda _, predicted: predicted)
    spread, bounds = (scored_by.interval(means, width) for width in (noise, guarantee.tolerance))
    body = {
        "question": label or question,
        "value": value,
        "overfit": any(answer.overfit for answer in answers),
        "noise_sd": (spread.high - spread.low) / 2,
        "tolerance": guarantee.tolerance,
        # Errors are shown positive, so the ends of their interval change places.
        "low": min(abs(bounds.low), abs(bounds.high)),
        "high": max(abs(bounds.low), abs(bounds.high)),
        "confidence": guarantee.confidence,
        "remaining": answers[-1].remaining,
    }
    lines = [
        f"{label or question}: {value:.6g} ({_source(answers, scored_by, means)})",
        "The guarantee is vacuous: the true value may be anywhere."
        if guarantee.vacuous
        else f"True value, with probability {guarantee.confidence:g}: between {body['low']:.4g} "
        f"and {body['high']:.4g}, if at most {guarantee.questions:,} questions are asked.",
        f"{answers[-1].remaining} of {opened.budget} rounds left",
    ]
    emit(files.dump("holdout-answer", 1, body), lines)


def _source(answers: Sequence[Answer], metric: Metric, means: Sequence[float]) -> str:
    """Return where an answer comes from, and its precision in units of the metric."""
    overfit = {answer.overfit for answer in answers}
    sources = {True: "from the holdout", False: "as on the training set"}
    parts = [" and ".join(source for flag, source in sources.items() if flag in overfit)]
    for kind, width in (
        ("noise of standard deviation", max(answer.noise_sd for answer in answers)),
        ("rounded to", max(answer.step for answer in answers)),
    ):
        ends = metric.interval(means, width)
        about = "" if len(means) == 1 else "about "  # for a metric of several means
        parts += [f"{kind} {about}{(ends.high - ends.low) / 2:.3g}"] if width else []
    return ", ".join(parts)


def _prediction_question(
    study: TrainHoldoutTables, path: str, scoring: Scoring, where: tuple[str, ...]
) -> tuple[Metric, Any, str]:
    from quiltwork.holdout.prediction_tables import read_predictions, within_subgroup

    metric, question = scoring.read(), scoring.metric.removeprefix("neg_").replace("_", " ")
    predictions = read_predictions(path, study.columns.identity)
    statistic = study.about_predictions(predictions, metric)
    if not where:
        return metric, statistic, question
    metric, statistic = within_subgroup(metric, statistic, _share_question(study, where))
    return metric, statistic, f"{question} where {' and '.join(where)}"


def _share_question(study: TrainHoldoutTables, share: tuple[str, ...]) -> Any:
    from quiltwork.cli.tabulate import read_condition
    from quiltwork.holdout.prediction_tables import check_condition, share_question

    tests = []
    for condition in map(read_condition, share):
        at = study.position(condition.column)
        check_condition(condition.column, condition.value, study.train[:, at])
        tests.append((at, condition.test()))
    return share_question(tests)


@command(example="quiltwork holdout status study --queries 100")
def status(
    folder: str = argument(),
    queries: int | None = option("Print the guarantee for this many questions in all."),
) -> None:
    """Show what is left, and the accuracy guarantee."""
    _show_status(folder, queries)


def _show_status(folder: str, queries: int | None, *more_lines: str) -> None:
    from quiltwork.holdout import folders

    folders.load(folder)
    record = folders.read_transcript_of(folder)
    settings = record.rounds.settings
    guarantee = record.promise(queries)
    body = {
        "asked": len(record.entries),
        "remaining": record.remaining,
        "budget": settings.budget,
        "rows": settings.rows,
        "questions": guarantee.questions,
        "threshold": str(settings.threshold),
        "noise": str(settings.noise),
        **plain({name: getattr(guarantee, name) for name in _LEVELS}),
        "tolerance": guarantee.tolerance,
        "confidence": guarantee.confidence,
        "vacuous": guarantee.vacuous,
        "checkpoint": record.checkpoint,
    }
    lines = [
        f"{len(record.entries)} questions answered, {record.remaining} of {settings.budget} rounds "
        "left",
        *guarantee.explain().splitlines(),
        *more_lines,
    ]
    emit(files.dump("holdout-status", 1, body), lines)


@command(
    example="""
    quiltwork holdout transcript study --report page.html
    quiltwork holdout transcript study --checkpoint 3b5d5c3712955042212316173ccf37be...
    """
)
def transcript(
    folder: str = argument(),
    checkpoint: str | None = option("A hash noted earlier, which a line must have.", "HASH"),
    report: str | None = report_option,
) -> None:
    """Verify the transcript and show every answer."""
    from quiltwork.holdout import folders

    check_targets(None, report)
    folders.load(folder)
    record = folders.read_transcript_of(folder, checkpoint)
    body = {
        "transcript": [json.loads(line) for line in record.lines()],
        "checkpoint": record.checkpoint,
    }
    header = ["number", "question", "answer", "from", "left"]
    rows = [
        [
            entry.number,
            entry.label or "-",
            "interrupted" if entry.value is None else f"{float_nearest(entry.value):.6g}",
            "holdout" if entry.overfit else "training",
            entry.remaining,
        ]
        for entry in record.entries
    ]
    lines = [
        *text_table(header, rows),
        f"Verified: {len(record.entries)} answers. Checkpoint {record.checkpoint}",
    ]
    if report is not None:
        files.write(report, _page(record, header, rows))
        lines.append(f"wrote {report}")
    emit(files.dump("holdout-answers", 1, body), lines)


def _page(record: Transcript, header: list[str], rows: list[list[Any]]) -> str:
    from quiltwork.report import BarChart, facts, figure, page, section, table

    answered = [entry for entry in record.entries if entry.value is not None]
    bars = tuple(
        (f"{entry.number}. {entry.label or 'question'}", float_nearest(entry.value))
        for entry in answered
        if entry.value is not None
    )
    chart = BarChart(
        "Answers in the order of the questions",
        "Outlined answers come from the training rows, which agreed with the holdout.",
        "share or score",
        bars,
        hollow=tuple(
            name for (name, _), entry in zip(bars, answered, strict=True) if not entry.overfit
        ),
    )
    summary = {
        "questions": len(record.entries),
        "rounds left": f"{record.remaining} of {record.rounds.settings.budget}",
        "rows in the holdout": f"{record.rows:,}",
    }
    listed = table("Every question in the transcript", header, rows)
    parts = [facts(summary), *([figure(chart)] if bars else []), listed]
    introduction = "Answers of a reusable holdout; the transcript was verified."
    return page(
        "Answers of the holdout", introduction, [section("Answers", *parts, anchor="answers")]
    )


for _each in (plan, create, ask, status, transcript):
    holdout.add_command(_each)
