"""The file of a leaderboard: what it was begun with, then two lines for every submission.

The first line has the rules, the beliefs and a keyed digest of the rows. A submission is counted by
a line before it is scored, and its score, if it moved the board, is in a second line before anybody
sees it: one that was interrupted in between stays counted. O(submissions) to read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from quiltwork import files
from quiltwork.arguments import choice
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, written_fraction
from quiltwork.holdout.algorithm import read_count
from quiltwork.holdout.guarantee import read_share
from quiltwork.holdout.metrics import Scoring, read_scoring
from quiltwork.holdout.storage import read_chained, reading, split_lines, text_of
from quiltwork.holdout.transcript import Columns, beliefs_of, read_columns

SCHEMA = "ladder-transcript"
KINDS = ("ladder", "one bit")
_MOST_STEPS = 1 << 20
KEPT = "kept"
"""Instead of a score: nothing was compared any more."""
FINER = 8
"""Parts of a step to which the last score of a board of one bit is rounded."""
_TOLD = ("teams", "standings", "unscored", "final")


@dataclass(frozen=True)
class Standing:
    """A submission that moved the board.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        score: the board's best from then on, a multiple of the step; None where only one bit is
            told.
    """

    number: int
    team: str
    score: float | None


@dataclass(frozen=True)
class Board:
    """What a board is begun with and never changes, and what came of it.

    `confidence` is 1 − β, `steps` g, `announcements` how many scores are announced at most, None
    for no limit, `commitment` a keyed digest of the rows, which betrays nothing without the key.
    `beliefs` is their document, None for independent rows; without a `scoring` submissions are
    functions that score themselves. `final` ends a board of one bit. `teams` are those whose
    submissions were counted, in order; `unscored` numbers those that were interrupted.
    """

    rows: int
    submissions: int
    confidence: float
    steps: int
    commitment: str
    beliefs: str | None
    kind: str = "ladder"
    scoring: Scoring | None = None
    columns: Columns | None = None
    announcements: int | None = None
    final: float | None = None
    teams: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = ()
    unscored: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the submissions that were counted, in order."""
        return self.teams

    @property
    def remaining(self) -> int:
        """How many more submissions are accepted."""
        return 0 if self.final is not None else self.submissions - len(self.teams)

    def header(self) -> str:
        """Write the first line."""
        rules = {k: v for k, v in vars(self).items() if k not in _TOLD}
        told = {
            "beliefs": None if self.beliefs is None else json.loads(self.beliefs),
            "scoring": None if self.scoring is None else self.scoring.body(),
            "columns": None if self.columns is None else asdict(self.columns),
        }
        return files.dump(SCHEMA, 2, {**rules, **told})


def read_board(text: str) -> Board:
    """Read the file of a board and replay it."""
    lines = split_lines(text)
    board = _read_header(lines[0] if lines else "")
    teams: list[str] = []
    standings: list[Standing] = []
    waiting: dict[int, str] = {}
    for at, body in enumerate(read_chained(lines), start=2):
        with reading(at):
            if board.final is not None:
                raise InvalidInputError("the board had ended.")
            if "final" in body:
                final = _read_grid(body["final"], "final", FINER * board.steps)
                board = replace(board, final=final)
                continue
            number = integer(body["number"], "number", 1)
            if "team" in body:
                if number != len(teams) + 1 or number > board.submissions:
                    raise InvalidInputError(f"submission {number} is out of order.")
                waiting[number] = text_of(body, "team")
                teams.append(waiting[number])
                continue
            if number not in waiting:
                raise InvalidInputError(f"submission {number} was not waiting for a score.")
            team, score = waiting.pop(number), body["score"]
            if board.announcements is not None and len(standings) >= board.announcements:
                choice(score, (KEPT,), "score")
            elif score is not None:
                standings.append(Standing(number, team, _read_score(score, board, standings)))
    given = {"teams": tuple(teams), "standings": tuple(standings), "unscored": tuple(waiting)}
    return replace(board, **given)  # type: ignore[arg-type]


def _read_header(line: str) -> Board:
    document = files.load(line, SCHEMA, (2,))
    with reading(1):
        scoring, limit = document["scoring"], document["announcements"]
        return Board(
            read_count(document["rows"], "rows"),
            read_count(document["submissions"], "submissions"),
            read_share(document["confidence"], "confidence"),
            read_steps(document["steps"]),
            text_of(document, "commitment"),
            beliefs_of(document),
            choice(document["kind"], KINDS, "kind"),
            None if scoring is None else read_scoring(scoring),
            read_columns(document["columns"]),
            None if limit is None else read_count(limit, "announcements"),
        )


def read_steps(steps: object) -> int:
    """Read the number of steps of the score; floats tell these apart."""
    return integer(steps, "steps", 1, _MOST_STEPS)


def _read_score(text: object, board: Board, before: Sequence[Standing]) -> float | None:
    if board.kind == "one bit":
        choice(text, ("better",), "score")
        return None
    score, best = _read_grid(text, "score", board.steps), before[-1].score if before else None
    if best is not None and score <= best:
        raise InvalidInputError("the score is no better than the one before.")
    return score


def _read_grid(text: object, name: str, steps: int) -> float:
    score = written_fraction(text, name)
    if not 0 <= score <= 1 or (score * steps).denominator != 1:
        raise InvalidInputError(f"the {name} is off the grid.")
    return float(score)
