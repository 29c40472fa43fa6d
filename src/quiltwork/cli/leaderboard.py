"""`quiltwork leaderboard …`: labels that nobody sees, and scores that nobody climbs."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from quiltwork.cli.command import (
    argument,
    command,
    confidence_option,
    gathered,
    group,
    option,
    output_option,
)
from quiltwork.cli.output import check_targets, deliver, emit, text_table
from quiltwork.cli.scoring import read_scoring
from quiltwork.delimited import csv_text

if TYPE_CHECKING:
    from quiltwork.holdout.leaderboard import BoardStatus
    from quiltwork.holdout.metrics import Scoring

_HEADER = ["rank", "team", "submission", "value", "low", "high"]


@group()
def leaderboard() -> None:
    """Score predictions of many, and keep the scores true.

    A submission is data: a file with a prediction for every row id. Only the owner of the folder
    reads the labels.
    """


@command(
    example="""
    quiltwork leaderboard create race --labels labels.csv --id id --target label --class no \\
        --class yes --submissions 1000
    quiltwork leaderboard create race --labels rents.csv --id id --target rent --group home \\
        --metric neg_root_mean_squared_error --limits 0:5000 --submissions 1000 --mode one-bit
    """
)
def create(
    folder: str = argument(),
    labels: str = option("Ids and targets, for you only.", "FILE"),
    identity: str = option("Names a row; public.", "COLUMN", names="--id"),
    target: str = option("What is predicted.", "COLUMN"),
    group_: str | None = option("Rows of a group depend on each other.", "COLUMN"),
    mode: str = option(
        "What is told: the best score, or one bit.", kind=("ladder", "one-bit"), default="ladder"
    ),
    submissions: int = option("Accepted in all, of all teams."),
    confidence: Fraction = confidence_option("The probability with which the promise holds."),
    steps: int | None = option("Steps of the score.  [the best number]"),
    announcements: int | None = option(
        "Scores announced at most, of all teams; fewer are known more closely.  [no limit]"
    ),
    scoring: Scoring = gathered(read_scoring),
) -> None:
    """Begin a leaderboard in FOLDER, and print what it promises."""
    from quiltwork.holdout.leaderboard import create_leaderboard
    from quiltwork.holdout.transcript import Columns

    made = create_leaderboard(
        folder,
        labels,
        Columns(identity, target, group_),
        scoring,
        mode=mode,
        submissions=submissions,
        confidence=confidence,
        steps=steps,
        announcements=announcements,
    )
    emit(made.to_json(), made.explain().splitlines())


@command(example="quiltwork leaderboard submit race mine.csv --team ada")
def submit(
    folder: str = argument(),
    predictions: str = argument("FILE"),
    team: str = option("Who submits."),
    wait: float = option("Seconds for one's turn.", default=60.0),
) -> None:
    """Score the predictions in FILE: CSV, Parquet or JSON, with the id and `prediction`.

    Whatever is public about them is checked before the submission is counted. Others that submit
    at the same time are waited for.
    """
    from quiltwork.holdout import leaderboard as boards
    from quiltwork.holdout.leaderboard import read_leaderboard
    from quiltwork.holdout.studies import read_predictions

    asked = read_leaderboard(folder)
    found = boards.submit_predictions(
        folder, team, read_predictions(predictions, asked.identity), wait
    )
    deliver(found.to_json(), [found.explain()])


@command(example="quiltwork leaderboard standings race")
def standings(
    folder: str = argument(),
) -> None:
    """Show who leads, what is promised and what is left."""
    from quiltwork.holdout.leaderboard import read_leaderboard as read

    found = read(folder)
    table = text_table(_HEADER, _rows(found)) if found.places else ["Nobody yet."]
    emit(found.to_json(), [*table, "", *found.explain().splitlines()])


@command(example="quiltwork leaderboard export race -o standings.csv")
def export(
    folder: str = argument(),
    output: str | None = output_option,
) -> None:
    """Write the standings as CSV, for anybody to see."""
    from quiltwork import files
    from quiltwork.holdout.folders import own_files
    from quiltwork.holdout.leaderboard import read_leaderboard as read

    check_targets(output, inputs=own_files(folder))
    found = read(folder)
    text = csv_text([_HEADER, *_rows(found)])
    if output in (None, "-"):
        emit(found.to_json(), text.splitlines())
        return
    files.write(str(output), text)
    emit(found.to_json(), [f"wrote {output}"])


@command(example="quiltwork leaderboard end race")
def end(
    folder: str = argument(),
) -> None:
    """End a board of one bit by telling its best score."""
    from quiltwork.holdout.leaderboard import end_leaderboard

    found = end_leaderboard(folder)
    deliver(found.to_json(), text_table(_HEADER, _rows(found)))


def _rows(found: BoardStatus) -> list[list[object]]:
    def cell(value: float | None) -> str:
        return "" if value is None else f"{value:.6g}"

    return [
        [one.rank, one.team, one.number, *map(cell, (one.value, one.low, one.high))]
        for one in found.places
    ]


for _each in (create, submit, standings, export, end):
    leaderboard.add_command(_each)
