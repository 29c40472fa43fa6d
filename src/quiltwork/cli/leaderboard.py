"""`quiltwork leaderboard …`: labels that nobody sees, scores that nobody climbs, and an end."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from quiltwork import files
from quiltwork.cli.command import (
    argument,
    command,
    confidence_option,
    exact_number,
    group,
    option,
    option_group,
    output_option,
    report_option,
)
from quiltwork.cli.output import check_targets, deliver, emit, text_table
from quiltwork.cli.scoring import scoring_options
from quiltwork.delimited import csv_text

if TYPE_CHECKING:
    from quiltwork.holdout.board import BoardStatus
    from quiltwork.holdout.final_ranking import FinalRanking
    from quiltwork.holdout.metrics import Scoring


@group()
def leaderboard() -> None:
    """Score predictions of many, truly, and rank them at the end.

    A submission is data: a file with a prediction for every row id. Only the owner of the folder
    reads the labels.
    """


@command(
    example="""
    quiltwork leaderboard create race --labels labels.csv --id id --target label --class no \\
        --class yes --submissions 1000 --announcements 20 --final 1/2
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
    series: str | None = option("Rows are a series in time, which this belief describes.", "FILE"),
    mode: str = option(
        "What is told: the best score, or one bit.", kind=("ladder", "one-bit"), default="ladder"
    ),
    submissions: int = option("Accepted in all, of all teams."),
    announcements: int | None = option(
        "Scores announced at most, of all teams; fewer are known more closely.  [no limit]"
    ),
    final: str = option(
        "The share of the rows that is kept apart and scored once, at the end; 0 for none.",
        "SHARE",
        default="1/2",
    ),
    confidence: Fraction = confidence_option("The probability with which the promise holds."),
    steps: int | None = option("Steps of the score.  [the best number]"),
    scoring: Scoring = option_group(scoring_options),
) -> None:
    """Begin a leaderboard in FOLDER, and print what it promises.

    Half of the rows are kept for the end unless --final says otherwise: teams predict all, and are
    not told which.
    """
    from quiltwork.cli.series_options import read_beliefs
    from quiltwork.holdout.folders import create_board
    from quiltwork.holdout.transcript import Columns

    board = create_board(
        folder,
        labels,
        Columns(identity, target, group_),
        scoring,
        mode,
        final=exact_number(final),
        series=None if series is None else read_beliefs((series,))[0],
        submissions=submissions,
        confidence=confidence,
        steps=steps,
        announcements=announcements,
    )
    _show(board.standings())


@command(
    example="""
    quiltwork leaderboard submit race mine.csv --team ada
    quiltwork leaderboard submit race first-half.csv second-half.csv --team ada --key run-17
    """
)
def submit(
    folder: str = argument(),
    predictions: tuple[str, ...] = argument("FILE"),
    team: str = option("Who submits."),
    key: str | None = option("Answered once, however often it is sent."),
    wait: float = option("Seconds for one's turn.", default=60.0),
) -> None:
    """Score the predictions in FILE: CSV, Parquet or JSON, with the id and `prediction`.

    Whatever is public about them is checked before the submission is counted. The same predictions
    of a team are answered from the log and not counted again. Others that submit at the same time
    are waited for.
    """
    from quiltwork.holdout.folders import board_of
    from quiltwork.holdout.prediction_tables import read_predictions_of

    board = board_of(folder, wait)
    said = read_predictions_of(predictions, board.begun.columns.identity)
    found = board.submit(team, said, key)
    deliver(found.to_json(), [found.explain()])


@command(example="quiltwork leaderboard choose race 17 --team ada")
def choose(
    folder: str = argument(),
    number: int = argument(),
    team: str = option("Whose submission it is."),
) -> None:
    """Name the submission that is scored for a team at the end; the last word counts.

    Without one it is the last that moved the board, or else the latest.
    """
    from quiltwork.holdout.folders import board_of

    found = board_of(folder).choose(team, number)
    deliver(found.to_json(), [f"At the end submission {number} is scored for {team}."])


@command(example="quiltwork leaderboard standings race")
def standings(
    folder: str = argument(),
) -> None:
    """Show who leads, what is promised and what is left."""
    from quiltwork.holdout.folders import board_of

    _show(board_of(folder).standings())


@command(example="quiltwork leaderboard finish race -o final.csv --report final.html")
def finish(
    folder: str = argument(),
    output: str | None = output_option,
    report: str | None = report_option,
) -> None:
    """End the competition, and say who is really ahead.

    Each team's named submission is scored once on the rows that were kept apart, with intervals for
    all teams together, and groups of teams that cannot be told apart. A board of one bit tells its
    best score. Finishing again shows the same.
    """
    from quiltwork.holdout.folders import board_of, own_files

    check_targets(output, report, inputs=own_files(folder))
    found = board_of(folder).finish()
    if output not in (None, "-"):
        files.write(str(output), csv_text(_lines(found)))
    if report is not None and found.ranking is not None:
        files.write(report, ranking_page(found.ranking, found.name))
    written = [f"wrote {path}" for path in (output, report) if path not in (None, "-")]
    _show(found, *written)


@command(example="quiltwork leaderboard export race -o standings.csv")
def export(
    folder: str = argument(),
    output: str | None = output_option,
) -> None:
    """Write the standings as CSV, or how it ended, for anybody to see."""
    from quiltwork.holdout.folders import board_of, own_files

    check_targets(output, inputs=own_files(folder))
    found = board_of(folder).standings()
    text = csv_text(_lines(found))
    if output in (None, "-"):
        emit(found.to_json(), text.splitlines())
        return
    files.write(str(output), text)
    emit(found.to_json(), [f"wrote {output}"])


@command(example="quiltwork leaderboard certify race --key key.pem -o certificate.json")
def certify(
    folder: str = argument(),
    key: str = option("Ed25519 in PEM; made if not there.", "FILE"),
    output: str | None = output_option,
) -> None:
    """Sign how the leaderboard in FOLDER stands: its name, the date, its promise, its digest."""
    from quiltwork.holdout.board_certificates import certify as sign

    check_targets(output)
    found = sign(folder, key)
    deliver(found.to_json(), found.explain().splitlines(), output=output)


@command(
    example="""
    quiltwork leaderboard verify certificate.json
    quiltwork leaderboard verify certificate.json --public-key pub.pem --log race/board.jsonl
    """
)
def verify(
    file: str = argument(),
    public_key: str | None = option("Of whom it must be: hexadecimal digits, or PEM.", "FILE|HEX"),
    log: str | None = option("Must be whole, and have the line that is certified.", "FILE"),
) -> None:
    """Check a certificate offline: its signature, and that of whom and about what it is."""
    from quiltwork.holdout.board_certificates import verify_certificate

    found = verify_certificate(files.read_bytes(file), public_key, log)
    whose = "" if public_key else " Whose key it is, nothing here tells: compare it."
    emit(found.to_json(), [*found.explain().splitlines(), f"The signature fits.{whose}"])


def ranking_page(ranking: FinalRanking, name: str) -> str:
    """Return the page of how a competition ended."""
    from quiltwork.report import figure, page, section, table

    header, rows = ranking.table()
    parts = [
        figure(ranking.chart()),
        table(
            "Every team, best first",
            [*header, "cannot be told apart from"],
            [
                [*row, ", ".join(one.tied) or "–"]
                for row, one in zip(rows, ranking.scores, strict=True)
            ],
        ),
    ]
    ends = section("Who is ahead", *parts, anchor="ranking")
    return page(f"How {name} ended", ranking.explain(), [ends])


def _lines(found: BoardStatus) -> list[list[object]]:
    header, rows = found.table()
    return [list(header), *rows]


def _show(found: BoardStatus, *then: str) -> None:
    header, rows = found.table()
    table = [*text_table(header, rows), ""] if rows else []
    if not rows and found.submitted:
        table = ["Nobody yet.", ""]
    emit(found.to_json(), [*table, *found.explain().splitlines(), *then])


for _each in (create, submit, choose, standings, finish, export, certify, verify):
    leaderboard.add_command(_each)
