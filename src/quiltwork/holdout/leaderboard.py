"""Leaderboards over a folder: labels that nobody sees, predictions by row id, verdicts.

Two modes: *ladder* shows the best score, rounded, and moves for a clear improvement; *one bit* says
whether a submission is better than the best. Only one process at a time scores, and others wait.
Whatever is public is checked before a submission is counted. A submission costs one pass over the
rows, and reading what was said before. What a board shows is read from the lines that its secret
seals, without a lock: one that another process is adding is not seen yet.

Theorem: docs/theory/ladder.md, docs/theory/counting.md, docs/theory/metrics.md
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from os.path import abspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.arguments import choice, instance
from quiltwork.beliefs import Belief, Clusters, beliefs_from_json
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, counted, shortened
from quiltwork.holdout import folders
from quiltwork.holdout.board import KINDS, Board, read_board
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import Ladder, interval_of
from quiltwork.holdout.metrics import Metric, Scoring, pair_rows, plain_label, said_classes
from quiltwork.holdout.one_bit import OneBit
from quiltwork.holdout.storage import check_team, check_text, new_secret, read_secret
from quiltwork.holdout.studies import (
    are_probabilities,
    check_ids,
    check_predictions,
    is_number,
    prediction_question,
    read_table,
)
from quiltwork.holdout.transcript import Columns
from quiltwork.results import ResultBase

_BOARDS: dict[str, type[Ladder]] = {"ladder": Ladder, "one bit": OneBit}


@dataclass(frozen=True)
class SubmissionVerdict(ResultBase):
    """What a submission is told.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        better: whether it moved the board.
        value: the metric's value as the board shows it; None where nothing more is told.
        left: how many more submissions are accepted.
    """

    schema = ("leaderboard-verdict", 1)

    number: int
    team: str
    better: bool
    value: float | None
    left: int

    def explain(self) -> str:
        """Say it in a sentence."""
        told = "is the best" if self.better else "does not beat the best"
        told += "" if self.value is None else f", at {self.value:.6g}"
        return f"Submission {self.number} of {self.team} {told}; {self.left:,} left."


@dataclass(frozen=True)
class Place:
    """A line of the standings: `value` as the board shows it, None where only one bit was told, and
    where the truth may be, with the board's confidence.
    """

    rank: int
    team: str
    number: int
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class BoardStatus(ResultBase):
    """What a leaderboard asks for, what it promises and what is left.

    Attributes:
        mode: "ladder" or "one bit".
        metric: the name of the metric.
        identity: the name of the id column of predictions.
        rows: that are predicted.
        submissions: accepted in all.
        submitted: so far.
        left: how many more.
        confidence: of the promise.
        width: of a score, or of a verdict, a share of the way from the worst to the best value.
        worst: the metric's value at the one end.
        best: at the other.
        promise: the theorem and its bound, in words.
        places: the standings, best first.
    """

    schema = ("leaderboard", 1)

    mode: str
    metric: str
    identity: str
    rows: int
    submissions: int
    submitted: int
    left: int
    confidence: float
    width: float
    worst: float
    best: float
    promise: str
    places: tuple[Place, ...]

    def explain(self) -> str:
        """Say it in sentences."""
        return (
            f"Predict {self.rows:,} rows: a file with {self.identity!r} and 'prediction', scored "
            f"by {self.metric}. {self.left:,} of {counted(self.submissions, 'submission')} left.\n"
            f"{self.promise}"
        )


def first_line(folder: str) -> Board:
    """Read what a board was begun with."""
    return read_board(folders.sealed_lines(folders.board_path(folder)).partition("\n")[0])


def metric_of(found: Board) -> Metric:
    """Return the metric that a board was begun with."""
    if found.scoring is None:
        raise InvalidInputError("This is no leaderboard: no metric was fixed when it was begun.")
    return found.scoring.read()


def read_leaderboard(folder: str) -> BoardStatus:
    """Return what a leaderboard asks for, what it promises, what is left, and its standings.

    Raises:
        InvalidInputError: if there is none in the folder.
        StorageError: if its files are damaged, cut or changed.
    """
    folders.load(folder)
    path = folders.board_path(folder)
    if not path.exists():
        raise InvalidInputError(f"{folder!r} is no leaderboard: it is the folder of a holdout.")
    return status_of_board(read_board(folders.sealed_lines(path)))


def status_of_board(found: Board) -> BoardStatus:
    """Return what a board asks for, promises and shows."""
    metric = metric_of(found)
    beliefs = None if found.beliefs is None else beliefs_from_json(found.beliefs)
    given = (
        beliefs,
        found.rows,
        found.submissions,
        1 - found.confidence,
        found.steps,
        metric,
        found.announcements,
    )
    width = _BOARDS[found.kind]._width_at(*given)
    told = f"the best score is within {width:.4g} of the truth"
    if found.kind == "one bit":
        told = f"every verdict is right where scores in truth differ by more than {width:.4g}"
    places = []
    for rank, one in enumerate(reversed(found.standings), start=1):
        score = found.final if one.score is None and rank == 1 else one.score
        ends: tuple[float, ...] = ()
        if score is not None:
            ends = (score, *interval_of(found, len(found.standings) - rank))
        shown = map(metric.shown, ends) if ends else (None, None, None)
        places.append(Place(rank, one.team, one.number, *shown))
    return BoardStatus(
        mode=found.kind,
        metric=metric.name,
        identity="" if found.columns is None else found.columns.identity,
        rows=found.rows * (2 if metric.pairs else 1),
        submissions=found.submissions,
        submitted=len(found.teams),
        left=found.remaining,
        confidence=found.confidence,
        width=width,
        worst=metric.worst,
        best=metric.best,
        promise=f"With probability {found.confidence:g} {told}, as a share of the metric's range, "
        "whatever anybody submits."
        + (" This is vacuous: too few rows for so many submissions." if width >= VACUOUS else ""),
        places=tuple(places),
    )


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows as they are scored: ids and targets, of pairs where the metric compares pairs."""

    ids: list[str]
    cells: NDArray[Any]
    belief: Belief | None

    def question(self, said: Mapping[str, str], metric: Metric) -> Any:
        """Ask how good predictions are, after what is public was checked.

        That is which rows there are, which classes, and whether the metric takes numbers.
        """
        check_ids(self.ids, said)
        check_predictions(said, metric)
        places = range(0, self.cells.shape[1], 2)
        return prediction_question(list(places), [at + 1 for at in places], said, metric)


def scored_rows(
    header: list[str], table: NDArray[Any], columns: Columns, metric: Metric, path: str, key: str
) -> ScoredRows:
    """Take what is scored from a table, after what is wrong with it was said."""
    from quiltwork.delimited import column_position

    def column(name: str) -> NDArray[Any]:
        asked = filter(None, (columns.identity, columns.target, columns.group))
        return np.asarray(table[:, column_position(header, name, path, asked)])

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
    if metric.classes is not None:
        classes = set(metric.classes)
        wrong = [plain_label(cell) not in classes for cell in cells]
    elif metric.labels:
        wrong = [not cell.strip() for cell in cells]
        if are_probabilities(cells):
            raise InvalidInputError(
                f"The targets of {path!r} are numbers from 0 to 1, and {metric.name} compares "
                "labels: predictions of them would be taken for probabilities. Name the labels by "
                "words."
            )
    elif metric.predicts == "predict_proba":
        wrong = [plain_label(cell) not in ("0", "1") for cell in cells]
    else:
        wrong = [not is_number(cell) for cell in cells]
    if any(wrong):
        remedy = "give 0 or 1." if metric.predicts == "predict_proba" else "mend or remove them."
        if metric.classes is not None:
            remedy = f"the classes are {said_classes(metric.classes)}."
        raise InvalidInputError(
            f"{counted(sum(wrong), 'target')} of {path!r} cannot be scored by {metric.name}, "
            f"the first in row {wrong.index(True) + 1:,}; {remedy}"
        )


def need_classes(scoring: Scoring) -> None:
    """Refuse a board that compares labels and does not say which there are."""
    metric = scoring.read()
    if metric.labels and scoring.classes is None:
        raise InvalidInputError(
            f"{metric.name} compares labels, and a board never reads from its rows which there "
            "are: give the classes, which everybody is told, such as classes=('no', 'yes'), or "
            "('*',) where any text may be right. Predictions of another class are refused and not "
            "counted."
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
    announcements: int | None = None,
) -> BoardStatus:
    """Begin a leaderboard in a folder; the table stays where it is.

    Args:
        folder: gets the board's files, for their owner only.
        labels: a table with the ids and the targets that nobody may see.
        columns: which of its columns is what; rows that are alike in the group depend on each
            other.
        scoring: the metric.
        mode: "ladder" or "one bit".
        submissions: accepted in all.
        confidence: of the promise.
        steps: of the score; None for the best number.
        announcements: scores that are announced at most, of all teams together; None for no limit.

    Raises:
        InvalidInputError: if something is wrong with the table, or it promises nothing.
        StorageError: if there is a board already, or nothing can be written.
    """
    metric = instance(scoring, Scoring, "scoring").read()
    need_classes(scoring)
    instance(columns, Columns, "columns")
    mode = mode.replace("-", " ") if isinstance(mode, str) else mode
    board = _BOARDS[choice(mode, KINDS, "mode")]
    files.named(labels)
    secret = new_secret()
    held = scored_rows(*read_table(labels), columns, metric, labels, secret.key)
    folders.make_folder(folder)
    board(
        held.cells,
        held.belief,
        submissions=submissions,
        confidence=confidence,
        steps=steps,
        announcements=announcements,
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
    found, metric, held = _begun(folder)
    asked, path = held.question(said, metric), folders.board_path(folder)
    with closing(_BOARDS[found.kind].resume(path, held.cells, wait)) as board:
        moved = board.submit(team, asked)
        shown = None if moved is None or moved.score is None else metric.shown(moved.score)
        return SubmissionVerdict(board.submitted, team, moved is not None, shown, board.remaining)


def end_leaderboard(folder: str, wait: float = folders.WAIT) -> BoardStatus:
    """End a board of one bit by telling its best score; other processes are waited for.

    Raises:
        InvalidInputError: for a board of another mode, or before the first submission.
        StorageError: if it could not be recorded; it is then withheld.
    """
    found, _, held = _begun(folder)
    if found.kind != OneBit.kind:
        raise InvalidInputError("Only a board of one bit is ended; a Ladder tells as it goes.")
    with closing(OneBit.resume(folders.board_path(folder), held.cells, wait)) as board:
        board.final()
    return read_leaderboard(folder)


def _begun(folder: str) -> tuple[Board, Metric, ScoredRows]:
    """Read what a board was begun with: its rules, its metric and its rows."""
    labels, found = folders.load(folder).holdout, first_line(folder)
    if found.columns is None or found.scoring is None:
        raise InvalidInputError(f"{folder!r} is no leaderboard: it was begun otherwise.")
    metric, key = found.scoring.read(), read_secret(folders.board_path(folder)).key
    return found, metric, scored_rows(*read_table(labels), found.columns, metric, labels, key)
