"""Leaderboards over a folder: labels that nobody sees, predictions by row id, verdicts.

Three modes: *ladder* shows the best score, rounded, and moves for a clear improvement; *one bit*
says whether a submission is better than the best; *counting* scores every submission by the
reusable holdout, which needs training rows. Files, seals, ledger and crash safety are those of the
holdout; only one process at a time scores, and others wait. Whatever is public is checked before a
submission is counted. A submission costs one pass over the rows, and reading what was said before.

Theorem: docs/theory/ladder.md, docs/theory/counting.md, docs/theory/metrics.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from os.path import abspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.arguments import choice, instance
from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import BudgetExceeded, InvalidInputError
from quiltwork.exact import Number, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.algorithm import read_count
from quiltwork.holdout.board import Board
from quiltwork.holdout.holdout_plan import plan_holdout
from quiltwork.holdout.metrics import Metric, Scoring, pair_rows
from quiltwork.holdout.questions import check_ids, is_number, plain_label, prediction_question
from quiltwork.holdout.reusable import ReusableHoldout
from quiltwork.holdout.standings import (
    BOARDS,
    BoardStatus,
    SubmissionVerdict,
    board_file,
    first_line,
    metric_of,
    read_leaderboard,
    scores_of,
)
from quiltwork.holdout.storage import check_team, check_text, new_secret, read_secret
from quiltwork.holdout.studies import read_study, read_table
from quiltwork.holdout.transcript import Columns

MODES = ("ladder", "one bit", "counting")


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows as they are scored: ids and targets, of pairs where the metric compares pairs."""

    ids: list[str]
    cells: NDArray[Any]
    belief: Belief | None

    def question(self, said: Mapping[str, str], metric: Metric) -> Any:
        """Ask how good predictions are."""
        places = range(0, self.cells.shape[1], 2)
        return prediction_question(list(places), [at + 1 for at in places], said, metric)


def scored_rows(
    header: list[str], table: NDArray[Any], columns: Columns, metric: Metric, path: str, key: str
) -> ScoredRows:
    """Take what is scored from a table, after what is wrong with it was said."""
    from quiltwork.delimited import column_position

    def column(name: str) -> NDArray[Any]:
        return np.asarray(table[:, column_position(header, name, path)])

    if columns.target is None:
        raise InvalidInputError("A leaderboard needs the column that is predicted: target.")
    ids, target = column(columns.identity), column(columns.target)
    if len({plain_label(one) for one in ids.tolist()}) < len(ids):
        raise InvalidInputError(f"An id occurs twice in {path!r}; an id must name one row.")
    _check_targets(target, metric, path)
    groups = None if columns.group is None else column(columns.group)
    cells, belief = np.stack([ids, target], axis=1), None if groups is None else Clusters(groups)
    if metric.pairs:
        pairs, couples = pair_rows(groups, len(ids), key)
        cells = np.concatenate([cells[pairs[:, 0]], cells[pairs[:, 1]]], axis=1)
        belief = None if groups is None else Clusters(couples.tolist())
    return ScoredRows(ids.tolist(), cells, belief)


def _check_targets(target: NDArray[Any], metric: Metric, path: str) -> None:
    """Refuse, when a board is made, targets of which its metric can make nothing."""
    cells = target.tolist()
    if metric.labels:
        wrong = [not cell.strip() for cell in cells]
    elif metric.predicts == "predict_proba":
        wrong = [plain_label(cell) not in ("0", "1") for cell in cells]
    else:
        wrong = [not is_number(cell) for cell in cells]
    if any(wrong):
        raise InvalidInputError(
            f"{sum(wrong):,} targets of {path!r} cannot be scored by {metric.name}, the first in "
            f"row {wrong.index(True) + 1:,}; "
            + ("give 0 or 1." if metric.predicts == "predict_proba" else "mend or remove them.")
        )


def check_said(said: Mapping[str, str], ids: Sequence[str], metric: Metric) -> None:
    """Refuse predictions that miss a row, name another or cannot be read; all of it is public."""
    check_ids(ids, said)
    wrong = [
        row for row, one in said.items() if not (one.strip() if metric.labels else is_number(one))
    ]
    if wrong:
        raise InvalidInputError(
            f"{len(wrong):,} predictions cannot be read, the first that for {wrong[0]!r}: "
            f"{metric.name} needs {'labels' if metric.labels else 'numbers'}. Nothing was asked."
        )


def create_leaderboard(
    folder: str,
    labels: str,
    columns: Columns,
    scoring: Scoring,
    *,
    mode: str = "ladder",
    submissions: int,
    confidence: Number = 0.95,
    steps: int | None = None,
    train: str | None = None,
    overfits: int | None = None,
    protect: str | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
) -> BoardStatus:
    """Begin a leaderboard in a folder; the tables stay where they are.

    Args:
        folder: gets the board's files, for their owner only.
        labels: a table with the ids and the targets that nobody may see.
        columns: which of its columns is what; rows that are alike in the group depend on each
            other.
        scoring: the metric.
        mode: "ladder", "one bit" or "counting".
        submissions: accepted in all.
        confidence: of the promise.
        steps: of the score; None for the best number.
        train: a table of training rows, public, for counting.
        overfits: how many submissions may overfit it, for counting.
        protect: "rows" to protect them by noise too, for counting.
        ledger: pays for that, one round at a time.
        dataset: the ledger's name for the rows.

    Raises:
        InvalidInputError: if something is wrong with the tables, or they promise nothing.
        StorageError: if there is a board already, or nothing can be written.
    """
    metric = instance(scoring, Scoring, "scoring").read()
    instance(columns, Columns, "columns")
    mode = mode.replace("-", " ") if isinstance(mode, str) else mode
    counting = choice(mode, MODES, "mode") == "counting"
    for path in (labels, *([] if train is None else [train])):
        files.named(path)
    if counting != (train is not None and overfits is not None):
        raise InvalidInputError(
            "Counting needs training rows and the number of overfits, train= and overfits=; the "
            "other modes do without."
        )
    if not counting and (protect is not None or ledger is not None):
        raise InvalidInputError(
            f"A board of mode {mode} has no noise, so it protects no row and no ledger can price "
            "it; take mode='counting' with protect='rows'."
        )
    folders.refuse_password(ledger)
    places = folders.Places(None if train is None else abspath(train), abspath(labels), None)
    secret = new_secret()
    public, held = _read(places, columns, metric, secret.key)
    folders.make_folder(folder)
    with folders.open_ledger(ledger) as payer:
        if public is None:
            BOARDS[mode](
                held.cells,
                held.belief,
                submissions=submissions,
                confidence=confidence,
                steps=steps,
                path=folders.board_path(folder),
                scoring=scoring,
                columns=columns,
                secret=secret,
            ).close()
        else:
            means = len(metric.signs)
            plan = plan_holdout(
                held.belief,
                read_count(submissions, "submissions") * means,
                overfits,
                confidence=confidence,
                samples=len(held.cells),
                protect=protect,
                mechanism="counting",
            )
            ReusableHoldout.from_plan(
                plan,
                public.cells,
                held.cells,
                path=folders.transcript_path(folder),
                ledger=payer,
                dataset=dataset,
                columns=columns,
                scoring=scoring,
                secret=secret,
            ).close()
        url = None if payer is None else payer.url
    folders.save(folder, folders.Places(places.train, places.holdout, url))
    return read_leaderboard(folder)


def _read(
    places: folders.Places, columns: Columns, metric: Metric, key: str
) -> tuple[ScoredRows | None, ScoredRows]:
    if places.train is None:
        return None, scored_rows(*read_table(places.holdout), columns, metric, places.holdout, key)
    study = read_study(places.train, places.holdout, columns)
    study.belief()  # refuses groups with rows on both sides
    return (
        scored_rows(study.header, study.train, columns, metric, places.train, key),
        scored_rows(study.header, study.holdout, columns, metric, places.holdout, key),
    )


def submit_predictions(
    folder: str, team: str, said: Mapping[str, str], wait: float = folders.WAIT
) -> SubmissionVerdict:
    """Score predictions, by ids as `plain_label` has them; other processes are waited for.

    Raises:
        InvalidInputError: for ids that do not match, with how many, or what cannot be read.
            Nothing was spent.
        BudgetExceeded: after the last submission.
        StorageError: if it could not be recorded; its score is then withheld.
    """
    check_team(team)
    if not isinstance(said, Mapping):
        raise InvalidInputError(f"said must map ids to predictions, not {shortened(said)}.")
    try:
        "".join([*said.keys(), *said.values()]).encode()
    except (TypeError, UnicodeEncodeError):
        for cell in (cell for pair in said.items() for cell in pair):
            check_text(cell, "an id or a prediction")
    places, found = folders.load(folder), first_line(folder)
    if found.columns is None or found.scoring is None:
        raise InvalidInputError(f"{folder!r} is no leaderboard: it was begun otherwise.")
    metric = found.scoring.read()
    public, held = _read(places, found.columns, metric, read_secret(board_file(folder)).key)
    ids = held.ids if public is None else [*public.ids, *held.ids]
    check_said(said, ids, metric)
    question = held.question(said, metric)
    if isinstance(found, Board) or public is None:
        with _opened(folder, held, wait) as board:
            moved = board.submit(team, question)
            shown = None if moved is None or moved.score is None else metric.shown(moved.score)
            number = board.submitted
            return SubmissionVerdict(number, team, moved is not None, shown, board.remaining)
    rows = (public.cells, held.cells)
    with folders.resumed(folder, rows, found.dataset, None, wait) as opened:
        number, means = len(scores_of(opened.transcript)) + 1, len(metric.signs)
        answers = opened.ask_many(question, label=f"{number} {team}")
        if len(answers) < means:
            raise BudgetExceeded(f"The budget ended among the means of {metric.name}.")
        left = 0 if not opened.remaining else ((opened.queries or 0) - opened.asked) // means
        return SubmissionVerdict(
            number, team, None, metric.value([one.value for one in answers]), left
        )


def end_leaderboard(folder: str, wait: float = folders.WAIT) -> BoardStatus:
    """End a board of one bit by telling its best score.

    Raises:
        InvalidInputError: for a board of another mode, or before the first submission.
    """
    places, found = folders.load(folder), first_line(folder)
    if not isinstance(found, Board) or found.kind != "one bit":
        raise InvalidInputError("Only a board of one bit is ended; others tell scores as they go.")
    metric = metric_of(found)
    key = read_secret(board_file(folder)).key
    _, held = _read(places, found.columns or Columns(""), metric, key)
    with _opened(folder, held, wait) as board:
        board.final()
    return read_leaderboard(folder)


@contextmanager
def _opened(folder: str, held: ScoredRows, wait: float) -> Iterator[Any]:
    kind = first_line(folder).kind  # type: ignore[union-attr]
    board = BOARDS[kind].resume(folders.board_path(folder), held.cells, wait)
    with closing(board):
        yield board
