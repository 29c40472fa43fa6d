"""What a leaderboard shows: verdicts, standings with the interval of each, what is asked and left.

Everything is read from the lines of its files that its secret seals, without a lock: a line that
another process is adding is not seen yet. O(submissions).

Theorem: docs/theory/ladder.md, docs/theory/counting.md, docs/theory/metrics.md
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from quiltwork.beliefs import beliefs_from_json
from quiltwork.errors import InvalidInputError
from quiltwork.exact import nearest_float
from quiltwork.holdout import folders
from quiltwork.holdout.board import Board, read_board
from quiltwork.holdout.guarantee import VACUOUS
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.metrics import Metric
from quiltwork.holdout.one_bit import OneBit, last_width
from quiltwork.holdout.transcript import Transcript, read_transcript
from quiltwork.results import ResultBase

BOARDS: dict[str, type[Ladder]] = {"ladder": Ladder, "one bit": OneBit}


@dataclass(frozen=True)
class SubmissionVerdict(ResultBase):
    """What a submission is told.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        better: whether it moved the board; None in the mode that scores every submission.
        value: the metric's value as the board shows it; None where nothing more is told.
        left: how many more submissions are accepted.
    """

    schema = ("leaderboard-verdict", 1)

    number: int
    team: str
    better: bool | None
    value: float | None
    left: int

    def explain(self) -> str:
        """Say it in a sentence."""
        if self.better is None:
            told = f"scores {self.value:.6g}"
        elif not self.better:
            told = "does not beat the best"
        else:
            told = "is the best" + ("" if self.value is None else f", at {self.value:.6g}")
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
        mode: "ladder", "one bit" or "counting".
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


def first_line(folder: str) -> Board | Transcript:
    """Read what a board was begun with."""
    return _whole(folder, first=True)


def _whole(folder: str, first: bool = False) -> Board | Transcript:
    path = board_file(folder)
    text = folders.sealed_lines(path)
    text = text.partition("\n")[0] if first else text
    return read_board(text) if path == folders.board_path(folder) else read_transcript(text)


def board_file(folder: str) -> Path:
    """Return where a board's lines are."""
    board = folders.board_path(folder)
    return board if board.exists() else folders.transcript_path(folder)


def metric_of(found: Board | Transcript) -> Metric:
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
    found = _whole(folder)
    return status_of_board(found) if isinstance(found, Board) else _of_transcript(found)


def status_of_board(found: Board) -> BoardStatus:
    """Return what a board of the Ladder or of one bit asks for, promises and shows."""
    metric, kind = metric_of(found), BOARDS[found.kind]
    beliefs = None if found.beliefs is None else beliefs_from_json(found.beliefs)
    given = (beliefs, found.rows, found.submissions, 1 - found.confidence, found.steps, metric)
    width = kind._width_at(*given)
    of_score = width if found.kind == "ladder" else last_width(width, found.steps)

    def place(rank: int, team: str, number: int, score: float | None) -> Place:
        told = found.final if score is None and rank == 1 else score
        if told is None:
            return Place(rank, team, number, None, None, None)
        ends = (metric.shown(told - of_score), metric.shown(told + of_score))
        return Place(rank, team, number, metric.shown(told), *ends)

    moved = tuple(
        place(rank, one.team, one.number, one.score)
        for rank, one in enumerate(reversed(found.standings), start=1)
    )
    told = (
        f"the best score is within {width:.4g} of the truth"
        if found.kind == "ladder"
        else f"every verdict is right where scores in truth differ by more than {width:.4g}"
    )
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
        promise=f"With probability {found.confidence:g} {told}, as a share of the "
        "metric's range, whatever anybody submits."
        + (" This is vacuous: too few rows for so many submissions." if width >= VACUOUS else ""),
        places=moved,
    )


def _of_transcript(found: Transcript) -> BoardStatus:
    metric, settings = metric_of(found), found.settings
    means, queries = len(metric.signs), found.queries or 1
    promise = found.promise()
    best: dict[str, tuple[float, int, list[float]]] = {}
    for number, (team, values) in enumerate(scores_of(found).values(), start=1):
        if len(values) == means and metric.score(values) > best.get(team, (-1.0, 0, []))[0]:
            best[team] = (metric.score(values), number, values)
    ranked = sorted(best.items(), key=lambda one: (-one[1][0], one[1][1]))
    places = tuple(
        Place(rank, team, n, metric.value(values), *metric.interval(values, promise.tolerance))
        for rank, (team, (_, n, values)) in enumerate(ranked, start=1)
    )
    asked = len(found.entries)
    return BoardStatus(
        mode="counting",
        metric=metric.name,
        identity="" if found.columns is None else found.columns.identity,
        rows=(settings.rows + found.train_rows) * (2 if metric.pairs else 1),
        submissions=queries // means,
        submitted=len(scores_of(found)),
        left=(queries - asked) // means if found.remaining else 0,
        confidence=promise.confidence,
        width=promise.tolerance,
        worst=metric.worst,
        best=metric.best,
        promise=f"{promise.explain()}\nScores are those of training rows while the holdout's are "
        f"within {float(settings.threshold):.4g} of them, so up to that they can be climbed; a "
        "ladder tells less and is climbed less.",
        places=places,
    )


def scores_of(found: Transcript) -> dict[str, tuple[str, list[float]]]:
    """Return every submission's team and the means it was told."""
    scores: dict[str, tuple[str, list[float]]] = {}
    for entry in found.entries:
        if entry.value is not None:
            team = entry.question.partition(" ")[2]
            scores.setdefault(entry.question, (team, []))[1].append(nearest_float(entry.value))
    return scores
