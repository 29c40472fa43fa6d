"""Leaderboards over a folder: labels that nobody sees, predictions by row id, verdicts.

A board is a `Ladder`: it shows the best score, rounded, and moves for a clear improvement. Only one
process at a time scores, and others wait. Whatever is public is checked before a submission is
counted. A submission costs one pass over the rows, and reading what was said before.

Theorem: docs/theory/ladder.md, docs/theory/metrics.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os.path import abspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.arguments import instance
from quiltwork.beliefs import Belief, Clusters
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.metrics import Metric, Scoring, pair_rows
from quiltwork.holdout.questions import check_ids, is_number, plain_label, prediction_question
from quiltwork.holdout.standings import (
    BoardStatus,
    SubmissionVerdict,
    first_line,
    read_leaderboard,
)
from quiltwork.holdout.storage import check_team, check_text, new_secret, read_secret
from quiltwork.holdout.studies import read_table
from quiltwork.holdout.transcript import Columns


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
    submissions: int,
    confidence: Number = 0.95,
    steps: int | None = None,
) -> BoardStatus:
    """Begin a leaderboard in a folder; the table stays where it is.

    Args:
        folder: gets the board's files, for their owner only.
        labels: a table with the ids and the targets that nobody may see.
        columns: which of its columns is what; rows that are alike in the group depend on each
            other.
        scoring: the metric.
        submissions: accepted in all.
        confidence: of the promise.
        steps: of the score; None for the best number.

    Raises:
        InvalidInputError: if something is wrong with the table, or it promises nothing.
        StorageError: if there is a board already, or nothing can be written.
    """
    metric = instance(scoring, Scoring, "scoring").read()
    instance(columns, Columns, "columns")
    files.named(labels)
    secret = new_secret()
    held = scored_rows(*read_table(labels), columns, metric, labels, secret.key)
    folders.make_folder(folder)
    Ladder(
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
    folders.save(folder, folders.Places(None, abspath(labels), None))
    return read_leaderboard(folder)


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
    labels, found = folders.load(folder).holdout, first_line(folder)
    if found.columns is None or found.scoring is None:
        raise InvalidInputError(f"{folder!r} is no leaderboard: it was begun otherwise.")
    metric, path = found.scoring.read(), folders.board_path(folder)
    held = scored_rows(*read_table(labels), found.columns, metric, labels, read_secret(path).key)
    check_said(said, held.ids, metric)
    with closing(Ladder.resume(path, held.cells, wait)) as board:
        moved = board.submit(team, held.question(said, metric))
        shown = None if moved is None else metric.shown(moved.score)
        return SubmissionVerdict(board.submitted, team, moved is not None, shown, board.remaining)
