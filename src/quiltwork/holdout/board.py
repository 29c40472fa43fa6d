"""The file of a Ladder: what it was begun with, then two lines for every submission.

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
from quiltwork.exact import integer, shortened, written_fraction
from quiltwork.holdout.algorithm import read_count
from quiltwork.holdout.guarantee import read_share
from quiltwork.holdout.metrics import Scoring, read_scoring
from quiltwork.holdout.storage import read_chained, reading, split_lines, text_of
from quiltwork.holdout.transcript import Columns, beliefs_of, read_columns

SCHEMA = "ladder-transcript"
_KIND = "ladder"
_MOST_STEPS = 1 << 20
_TOLD = ("teams", "standings", "unscored")


@dataclass(frozen=True)
class Standing:
    """A submission that moved the board.

    Attributes:
        number: which submission it was, from 1.
        team: whose.
        score: the board's best from then on, a multiple of the step.
    """

    number: int
    team: str
    score: float


@dataclass(frozen=True)
class Board:
    """What a board is begun with and never changes, and what came of it.

    `confidence` is 1 − β, `steps` g, `commitment` a keyed digest of the rows, which betrays nothing
    without the key. `beliefs` is their document, None for independent rows; without a `scoring`
    submissions are functions that score themselves. `teams` are those whose submissions were
    counted, in order; `unscored` numbers those that were interrupted.
    """

    rows: int
    submissions: int
    confidence: float
    steps: int
    commitment: str
    beliefs: str | None
    scoring: Scoring | None = None
    columns: Columns | None = None
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
        return self.submissions - len(self.teams)

    def header(self) -> str:
        """Write the first line."""
        rules = {k: v for k, v in vars(self).items() if k not in _TOLD}
        told = {
            "kind": _KIND,
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
            if score is not None:
                standings.append(Standing(number, team, _read_score(score, board.steps, standings)))
    given = {"teams": tuple(teams), "standings": tuple(standings), "unscored": tuple(waiting)}
    return replace(board, **given)  # type: ignore[arg-type]


def _read_header(line: str) -> Board:
    document = files.load(line, SCHEMA, (2,))
    with reading(1):
        choice(document["kind"], (_KIND,), "kind")
        scoring = document["scoring"]
        return Board(
            read_count(document["rows"], "rows"),
            read_count(document["submissions"], "submissions"),
            read_share(document["confidence"], "confidence"),
            read_steps(document["steps"]),
            text_of(document, "commitment"),
            beliefs_of(document),
            None if scoring is None else read_scoring(scoring),
            read_columns(document["columns"]),
        )


def read_steps(steps: object) -> int:
    """Read the number of steps of the score; floats tell these apart."""
    if integer(steps, "steps", 1) > _MOST_STEPS:
        raise InvalidInputError(f"steps is {shortened(steps)}; it can be at most {_MOST_STEPS:,}.")
    return integer(steps, "steps", 1)


def _read_score(text: object, steps: int, before: Sequence[Standing]) -> float:
    score, best = written_fraction(text, "score"), before[-1].score if before else None
    off = score < 0 or (score * steps).denominator != 1 or score > 1
    if off or (best is not None and float(score) <= best):
        raise InvalidInputError("the score is off the grid, or no better than the one before.")
    return float(score)
