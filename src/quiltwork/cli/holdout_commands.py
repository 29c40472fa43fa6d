"""`quiltwork holdout …`: questions to a holdout that stay answered truly."""

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
    """Ask a holdout again and again, and keep its answers true.

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
    queries: int | None = option("Questions that will be asked."),
    overfits: int | None = option("How many of them may overfit the training set."),
    tolerance: Fraction | None = option("How far answers may be off."),
    samples: int | None = option("Rows of the holdout, if they are given."),
    confidence: Fraction = option("The probability with which the promise holds.", default="0.95"),
    overfit_at: Fraction = option(
        "A question overfits if its training value is off by this share of the tolerance.",
        default="0.5",
    ),
    belief: tuple[str, ...] = option("How rows depend; repeat for a set.", "FILE"),
    cluster_size: int | None = option("Rows come in independent clusters of this size."),
    protect: str | None = option("Protect rows by noise too, not only accuracy.", kind=("rows",)),
    mechanism: str | None = option(
        "Plan with this one instead of the best.",
        kind=("counting", "max-information", "fresh parts", "ladder"),
    ),
    plot: str | None = option("Draw the trade-off to this PNG or SVG.", "FILE"),
) -> None:
    """Say how many rows a promise takes, or what given rows can promise.

    Leave out one of --queries, --overfits, --tolerance and --samples: that is what is found.
    Without --overfits and one more it is a Ladder's, of a board that tells improvements only. Ends
    with exit code 1 if the promise does not hold or says nothing.
    """
    from quiltwork.holdout import plan_holdout

    found = plan_holdout(
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
        found = replace(found, available=samples)  # the belief stands for any number of rows
    if plot:
        from quiltwork.report.figures import write_figure

        write_figure(plot, found.chart())
    emit(found.to_json(), found.explain().splitlines())
    if not found.feasible:
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
    train: str = option("CSV of the training rows, public.", "FILE"),
    held: str = option("CSV of the holdout.", "FILE", names="--holdout"),
    identity: str = option("Names a row; public.", "COLUMN", names="--id"),
    target: str | None = option("What is predicted.", "COLUMN"),
    group_: str | None = option("Rows of a group depend on each other.", "COLUMN"),
    threshold: Fraction = option(
        "How far training rows and holdout may differ before the holdout answers."
    ),
    noise: Fraction | None = option(
        "Sigma of Algorithm 1: answers from the holdout have noise of standard deviation 5.66 "
        "times this. 0 with --values, which protects accuracy and no row."
    ),
    answer_sd: Fraction | None = option(
        "Instead of --noise: the standard deviation of the noise of an answer."
    ),
    values: int | None = option("Round answers from the holdout to multiples of 1/this."),
    budget: int = option("Answers that may come from the holdout."),
    queries: int | None = option("Refuse after so many questions."),
    ledger: str | None = option("Debit this ledger, one round at a time.", "URL"),
    dataset: str | None = option("The ledger's name for the holdout.", "NAME"),
) -> None:
    """Begin a holdout in FOLDER, and print what it promises.

    The tables stay where they are; the folder gets the transcript and the secret of the current
    threshold, which only its owner may read.
    """
    from os.path import abspath

    from quiltwork.holdout import ReusableHoldout
    from quiltwork.holdout import folders as store
    from quiltwork.holdout.prediction_tables import read_train_and_holdout
    from quiltwork.holdout.transcript import BoardSetup, Columns

    store.refuse_password(ledger)
    with store.open_ledger(ledger) as payer:
        places = store.HoldoutPaths(
            abspath(train), abspath(held), None if payer is None else payer.url
        )
        study = read_train_and_holdout(
            abspath(train), places.holdout, Columns(identity, target, group_)
        )
        store.make_folder(folder)
        made = ReusableHoldout(
            study.train,
            study.holdout,
            study.belief(),
            threshold=threshold,
            noise=noise,
            answer_sd=answer_sd,
            budget=budget,
            values=values,
            queries=queries,
            path=store.transcript_path(folder),
            ledger=payer,
            dataset=dataset,
            about=BoardSetup(columns=study.columns),
        )
        made.close()
    store.save(folder, places)
    told = f"Predictions have a line for every {identity} of {train} and of {held}, and go with "
    _show_status(folder, queries, f"{told}`quiltwork holdout ask {folder} --predictions FILE`.")


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
    where: tuple[str, ...] = option("Score predictions for such rows only.", "CONDITION"),
    share: tuple[str, ...] = option(
        "Ask for the share of rows with column=value, column!=value or column>=number; repeated "
        "conditions must all hold.",
        "CONDITION",
    ),
    label: str = option("For the transcript.", default=""),
    ledger: str | None = option("Where the ledger is now, if it has moved.", "URL"),
) -> None:
    """Ask one question of the holdout in FOLDER.

    Predictions must cover every id of both tables. Only the ledger that the holdout was created
    with pays. Exit code 1 once the budget is spent.
    """
    from quiltwork.holdout import folders as store
    from quiltwork.holdout.metrics import Metric

    if bool(predictions) == bool(share):
        raise click.UsageError("Ask with --predictions FILE, or with --share CONDITION")
    study, found = store.tables_and_transcript(folder)
    if predictions:
        if study.columns.target is None:
            raise click.UsageError("This holdout has no --target, so predictions cannot be scored")
        metric, statistic, words = _about_predictions(study, predictions, scoring, where)
    else:
        metric, statistic = None, _about_share(study, share)
        words = f"share of {' and '.join(share)}"
    rows = (study.train, study.holdout)
    with store.resumed(folder, rows, found.rounds.dataset, ledger) as opened:
        answers = opened.ask_many(statistic, label=label or words)
    if metric is not None and len(answers) < len(metric.signs):
        raise BudgetExceeded(f"The budget ended among the means that {words} is made of.")
    means = [one.value for one in answers]
    value = means[0] if metric is None else abs(metric.value(means))
    promise, noise = found.promise(), max(one.noise_sd for one in answers)
    whole = metric or Metric("share", lambda _, said: said)
    spread, ends = (whole.interval(means, width) for width in (noise, promise.tolerance))
    body = {
        "question": label or words,
        "value": value,
        "overfit": any(one.overfit for one in answers),
        "noise_sd": (spread.high - spread.low) / 2,
        "tolerance": promise.tolerance,
        "low": min(abs(ends.low), abs(ends.high)),
        "high": max(abs(ends.low), abs(ends.high)),
        "confidence": promise.confidence,
        "remaining": answers[-1].remaining,
    }
    lines = [
        f"{label or words}: {value:.6g} ({_source(answers, whole, means)})",
        "The promise is vacuous: the truth may be anywhere."
        if promise.vacuous
        else f"In truth, with probability {promise.confidence:g}, between {body['low']:.4g} and "
        f"{body['high']:.4g}, if no more than {promise.questions:,} questions are asked.",
        f"{answers[-1].remaining} of {opened.budget} rounds left",
    ]
    emit(files.dump("holdout-answer", 1, body), lines)


def _source(answers: Sequence[Answer], metric: Metric, means: Sequence[float]) -> str:
    """Say where an answer comes from, and in units of the metric how exact it is."""
    overfit = {one.overfit for one in answers}
    places = {True: "from the holdout", False: "as on the training set"}
    words = [" and ".join(text for found, text in places.items() if found in overfit)]
    for what, width in (
        ("noise of standard deviation", max(one.noise_sd for one in answers)),
        ("rounded to", max(one.step for one in answers)),
    ):
        ends = metric.interval(means, width)
        about = "" if len(means) == 1 else "about "  # a metric made of several means
        words += [f"{what} {about}{(ends.high - ends.low) / 2:.3g}"] if width else []
    return ", ".join(words)


def _about_predictions(
    study: TrainHoldoutTables, path: str, scoring: Scoring, where: tuple[str, ...]
) -> tuple[Metric, Any, str]:
    from quiltwork.holdout.prediction_tables import read_predictions, within_subgroup

    metric, words = scoring.read(), scoring.metric.removeprefix("neg_").replace("_", " ")
    said = read_predictions(path, study.columns.identity)
    statistic = study.about_predictions(said, metric)
    if not where:
        return metric, statistic, words
    metric, statistic = within_subgroup(metric, statistic, _about_share(study, where))
    return metric, statistic, f"{words} where {' and '.join(where)}"


def _about_share(study: TrainHoldoutTables, share: tuple[str, ...]) -> Any:
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
    queries: int | None = option("Print the promise for so many questions in all."),
) -> None:
    """Show what is left and what is promised."""
    _show_status(folder, queries)


def _show_status(folder: str, queries: int | None, *then: str) -> None:
    from quiltwork.holdout import folders as store

    store.load(folder)
    found = store.read_transcript_of(folder)
    settings = found.rounds.settings
    promise = found.promise(queries)
    body = {
        "asked": len(found.entries),
        "remaining": found.remaining,
        "budget": settings.budget,
        "rows": settings.rows,
        "questions": promise.questions,
        "threshold": str(settings.threshold),
        "noise": str(settings.noise),
        **plain({name: getattr(promise, name) for name in _LEVELS}),
        "tolerance": promise.tolerance,
        "confidence": promise.confidence,
        "vacuous": promise.vacuous,
        "checkpoint": found.checkpoint,
    }
    lines = [
        f"{len(found.entries)} questions answered, {found.remaining} of {settings.budget} rounds "
        "left",
        *promise.explain().splitlines(),
        *then,
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
    checkpoint: str | None = option("Verify against a hash noted earlier.", "HASH"),
    report: str | None = report_option,
) -> None:
    """Verify the transcript and show every answer."""
    from quiltwork.holdout import folders as store

    check_targets(None, report)
    store.load(folder)
    found = store.read_transcript_of(folder, checkpoint)
    body = {
        "transcript": [json.loads(line) for line in found.lines()],
        "checkpoint": found.checkpoint,
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
        for entry in found.entries
    ]
    lines = [
        *text_table(header, rows),
        f"Verified: {len(found.entries)} answers. Checkpoint {found.checkpoint}",
    ]
    if report is not None:
        files.write(report, _page(found, header, rows))
        lines.append(f"wrote {report}")
    emit(files.dump("holdout-answers", 1, body), lines)


def _page(found: Transcript, header: list[str], rows: list[list[Any]]) -> str:
    from quiltwork.report import BarChart, facts, figure, page, section, table

    answered = [entry for entry in found.entries if entry.value is not None]
    bars = tuple(
        (f"{entry.number}. {entry.label or 'question'}", float_nearest(entry.value))
        for entry in answered
        if entry.value is not None
    )
    chart = BarChart(
        "Answers in the order of the questions",
        "Outlined answers come from the training rows: the holdout had nothing to add.",
        "share or score",
        bars,
        hollow=tuple(
            name for (name, _), entry in zip(bars, answered, strict=True) if not entry.overfit
        ),
    )
    shown = {
        "questions": len(found.entries),
        "rounds left": f"{found.remaining} of {found.rounds.settings.budget}",
        "rows in the holdout": f"{found.rows:,}",
    }
    listed = table("Every question, as the transcript has it", header, rows)
    parts = [facts(shown), *([figure(chart)] if bars else []), listed]
    lead = "Answers of a holdout that stays fresh; the transcript was verified."
    return page("What the holdout said", lead, [section("Answers", *parts, anchor="answers")])


for _each in (plan, create, ask, status, transcript):
    holdout.add_command(_each)
