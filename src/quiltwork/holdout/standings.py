"""What a leaderboard shows: verdicts, standings with the interval of each, what is asked and left.

Everything is read from the lines of its file that its secret seals, without a lock: a line that
another process is adding is not seen yet. O(submissions).

Theorem: docs/theory/ladder.md, docs/theory/metrics.md
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from quiltwork.beliefs import beliefs_from_json
from quiltwork.errors import InvalidInputError
from quiltwork.holdout import folders
from quiltwork.holdout.board import Board, read_board
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import width_at
from quiltwork.holdout.metrics import Metric
from quiltwork.results import ResultBase


@dataclass(frozen=True)
class SubmissionVerdict(ResultBase):
    """What a submission is told.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        better: whether it moved the board.
        value: the metric's value as the board shows it; None if it did not move.
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
        told = f"is the best, at {self.value:.6g}" if self.better else "does not beat the best"
        return f"Submission {self.number} of {self.team} {told}; {self.left:,} left."


@dataclass(frozen=True)
class Place:
    """A line of the standings: `value` as the board shows it, and where the truth may be, with the
    board's confidence.
    """

    rank: int
    team: str
    number: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BoardStatus(ResultBase):
    """What a leaderboard asks for, what it promises and what is left.

    Attributes:
        metric: the name of the metric.
        identity: the name of the id column of predictions.
        rows: that are predicted.
        submissions: accepted in all.
        submitted: so far.
        left: how many more.
        confidence: of the promise.
        width: of a score, a share of the way from the worst to the best value.
        worst: the metric's value at the one end.
        best: at the other.
        promise: the theorem and its bound, in words.
        places: the standings, best first.
    """

    schema = ("leaderboard", 1)

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

    def body(self) -> dict[str, Any]:
        """Return it as JSON values."""
        width = self.width if math.isfinite(self.width) else None
        return {**asdict(self), "width": width, "places": [asdict(one) for one in self.places]}

    def explain(self) -> str:
        """Say it in sentences."""
        return (
            f"Predict {self.rows:,} rows: a file with {self.identity!r} and 'prediction', scored "
            f"by {self.metric}. {self.left:,} of {self.submissions:,} submissions left.\n"
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
    given = (beliefs, found.rows, found.submissions, 1 - found.confidence, found.steps, metric)
    width = width_at(*given)
    places = tuple(
        Place(
            rank,
            one.team,
            one.number,
            *(metric.shown(end) for end in (one.score, one.score - width, one.score + width)),
        )
        for rank, one in enumerate(reversed(found.standings), start=1)
    )
    return BoardStatus(
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
        promise=f"With probability {found.confidence:g} the best score is within {width:.4g} of "
        "the truth, as a share of the metric's range, whatever anybody submits."
        + (" This is vacuous: too few rows for so many submissions." if width >= VACUOUS else ""),
        places=places,
    )
