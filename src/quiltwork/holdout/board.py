"""The file of a Ladder: what it was begun with, then two lines for every submission.

The first line has the rules, the beliefs and a keyed digest of the rows. A submission is counted by
a line before it is scored, and its score, if it moved the board, is in a second line before anybody
sees it: one that was interrupted in between stays counted. O(submissions) to read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened, written_fraction
from quiltwork.holdout.algorithm import read_count
from quiltwork.holdout.guarantee import read_share
from quiltwork.holdout.storage import read_chained, reading, split_lines, text_of
from quiltwork.holdout.transcript import beliefs_of

SCHEMA = "ladder-transcript"
_MOST_STEPS = 1 << 20


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

    Attributes:
        rows: of the holdout.
        submissions: k, accepted in all.
        confidence: 1 − β, of the bound.
        steps: g, of the score.
        commitment: a keyed digest of the rows, which betrays nothing without the key.
        beliefs: the beliefs' document, or None for independent rows.
        teams: whose submissions were counted, in order.
        standings: the submissions that moved the board, in order.
    """

    rows: int
    submissions: int
    confidence: float
    steps: int
    commitment: str
    beliefs: str | None
    teams: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = ()

    def header(self) -> str:
        """Write the first line."""
        rules = {k: v for k, v in vars(self).items() if k not in ("teams", "standings")}
        beliefs = None if self.beliefs is None else json.loads(self.beliefs)
        return files.dump(SCHEMA, 1, {**rules, "beliefs": beliefs})


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
                best = standings[-1].score if standings else -1.0
                standings.append(Standing(number, team, _read_score(score, board.steps, best)))
    return replace(board, teams=tuple(teams), standings=tuple(standings))


def _read_header(line: str) -> Board:
    document = files.load(line, SCHEMA, (1,))
    with reading(1):
        return Board(
            read_count(document["rows"], "rows"),
            read_count(document["submissions"], "submissions"),
            read_share(document["confidence"], "confidence"),
            read_steps(document["steps"]),
            text_of(document, "commitment"),
            beliefs_of(document),
        )


def read_steps(steps: object) -> int:
    """Read the number of steps of the score; floats tell these apart."""
    if integer(steps, "steps", 1) > _MOST_STEPS:
        raise InvalidInputError(f"steps is {shortened(steps)}; it can be at most {_MOST_STEPS:,}.")
    return integer(steps, "steps", 1)


def _read_score(text: object, steps: int, best: float) -> float:
    score = written_fraction(text, "score")
    if score < 0 or (score * steps).denominator != 1 or not best < float(score) <= 1:
        raise InvalidInputError("the score is off the grid, or no better than the one before.")
    return float(score)
