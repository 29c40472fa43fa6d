"""`quiltwork leaderboard …`: score predictions on secret labels, and rank teams at the end."""

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
    """Score predictions accurately, and rank teams at the end.

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
    labels: str = option("CSV file of ids and targets, readable by you only.", "FILE"),
    identity: str = option("The column of row ids, which are public.", "COLUMN", names="--id"),
    target: str = option("The column that is predicted.", "COLUMN"),
    group_: str | None = option("Rows with the same value in it depend on each other.", "COLUMN"),
    series: str | None = option("A belief about rows that are a series in time.", "FILE"),
    mode: str = option(
        "What is published: the best score, or one bit.",
        kind=("ladder", "one-bit"),
        default="ladder",
    ),
    submissions: int = option("The number accepted in all, from all teams."),
    announcements: int | None = option(
        "The largest number of scores announced; fewer are known more precisely.  [no limit]"
    ),
    final: str = option(
        "The share of rows kept apart for the final ranking; 0 for none.",
        "SHARE",
        default="1/2",
    ),
    confidence: Fraction = confidence_option("The probability with which the guarantee holds."),
    steps: int | None = option("The number of steps of the score.  [the best number]"),
    scoring: Scoring = option_group(scoring_options),
) -> None:
    """Create a leaderboard in FOLDER and print its accuracy guarantee.

    Half of the rows are kept apart for the final ranking unless --final says otherwise: teams
    predict all rows, and are not told which.
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
    team: str = option("The team that submits."),
    key: str | None = option("An idempotency key: a retry under it returns the stored answer."),
    wait: float = option("Seconds to wait for other submissions.", default=60.0),
) -> None:
    """Score the predictions in FILE: CSV, Parquet or JSON, with the id and `prediction`.

    Ids and classes are validated before the submission is counted. Repeating a team's predictions
    returns the stored answer and is not counted again. Concurrent submissions wait for each other.
    """
    from quiltwork.holdout.folders import board_of
    from quiltwork.holdout.prediction_tables import read_predictions_of

    board = board_of(folder, wait)
    submitted = read_predictions_of(predictions, board.begun.columns.identity)
    verdict = board.submit(team, submitted, key)
    deliver(verdict.to_json(), [verdict.explain()])


@command(example="quiltwork leaderboard choose race 17 --team ada")
def choose(
    folder: str = argument(),
    number: int = argument(),
    team: str = option("The team of the submission."),
) -> None:
    """Name the submission that will be scored for a team in the final ranking; it may change.

    By default it is the last that changed the standings, or else the latest.
    """
    from quiltwork.holdout.folders import board_of

    status = board_of(folder).choose(team, number)
    deliver(
        status.to_json(), [f"Submission {number} will be scored for {team} in the final ranking."]
    )


@command(example="quiltwork leaderboard standings race")
def standings(
    folder: str = argument(),
) -> None:
    """Show the standings, the accuracy guarantee and what is left."""
    from quiltwork.holdout.folders import board_of

    _show(board_of(folder).standings())


@command(example="quiltwork leaderboard finish race -o final.csv --report final.html")
def finish(
    folder: str = argument(),
    output: str | None = output_option,
    report: str | None = report_option,
) -> None:
    """End the competition and show the final ranking.

    Each team's named submission is scored once on the rows kept apart, with simultaneous intervals,
    and groups of teams between which no difference is significant. A board of one bit publishes its
    best score. Finishing again shows the same.
    """
    from quiltwork.holdout.folders import board_of, own_files

    check_targets(output, report, inputs=own_files(folder))
    status = board_of(folder).finish()
    if output not in (None, "-"):
        files.write(str(output), csv_text(_csv_rows(status)))
    if report is not None and status.ranking is not None:
        files.write(report, ranking_page(status.ranking, status.name))
    notes = [f"wrote {path}" for path in (output, report) if path not in (None, "-")]
    _show(status, *notes)


@command(example="quiltwork leaderboard export race -o standings.csv")
def export(
    folder: str = argument(),
    output: str | None = output_option,
) -> None:
    """Write the standings, or the final ranking, as CSV for publication."""
    from quiltwork.holdout.folders import board_of, own_files

    check_targets(output, inputs=own_files(folder))
    status = board_of(folder).standings()
    text = csv_text(_csv_rows(status))
    if output in (None, "-"):
        emit(status.to_json(), text.splitlines())
        return
    files.write(str(output), text)
    emit(status.to_json(), [f"wrote {output}"])


@command(example="quiltwork leaderboard certify race --key key.pem -o certificate.json")
def certify(
    folder: str = argument(),
    key: str = option("An Ed25519 key in PEM; created if it does not exist.", "FILE"),
    output: str | None = output_option,
) -> None:
    """Sign the standings of the leaderboard in FOLDER: name, date, guarantee and digest."""
    from quiltwork.holdout.board_certificates import certify as sign

    check_targets(output)
    certificate = sign(folder, key)
    deliver(certificate.to_json(), certificate.explain().splitlines(), output=output)


@command(
    example="""
    quiltwork leaderboard verify certificate.json
    quiltwork leaderboard verify certificate.json --public-key pub.pem --log race/board.jsonl
    """
)
def verify(
    file: str = argument(),
    public_key: str | None = option("The expected signer: hexadecimal digits, or PEM.", "FILE|HEX"),
    log: str | None = option("A log that must contain the certified line, unchanged.", "FILE"),
) -> None:
    """Verify a certificate offline: its signature, its signer and its log."""
    from quiltwork.holdout.board_certificates import verify_certificate

    certificate = verify_certificate(files.read_bytes(file), public_key, log)
    caution = "" if public_key else " Compare its public key with the signer's to know who signed."
    emit(
        certificate.to_json(),
        [*certificate.explain().splitlines(), f"The signature is valid.{caution}"],
    )


def ranking_page(ranking: FinalRanking, name: str) -> str:
    """Return the page of a final ranking."""
    from quiltwork.report import figure, page, section, table

    header, rows = ranking.table()
    parts = [
        figure(ranking.chart()),
        table(
            "Every team, best first",
            [*header, "not significantly different from"],
            [
                [*row, ", ".join(score.tied) or "–"]
                for row, score in zip(rows, ranking.scores, strict=True)
            ],
        ),
    ]
    result = section("Final ranking", *parts, anchor="ranking")
    return page(f"Final ranking of {name}", ranking.explain(), [result])


def _csv_rows(status: BoardStatus) -> list[list[object]]:
    header, rows = status.table()
    return [list(header), *rows]


def _show(status: BoardStatus, *more_lines: str) -> None:
    header, rows = status.table()
    table = [*text_table(header, rows), ""] if rows else []
    if not rows and status.submitted:
        table = ["No announced scores yet.", ""]
    emit(status.to_json(), [*table, *status.explain().splitlines(), *more_lines])


for _each in (create, submit, choose, standings, finish, export, certify, verify):
    leaderboard.add_command(_each)
