"""The file of a Ladder: what was begun with, then two lines for every submission.

The first line has the rules, the beliefs and a keyed digest of the rows. A submission is counted by
a line before it is scored, and its score, if it moved the board, is in a second line before anybody
sees it: one that was interrupted in between stays counted. O(submissions) to read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork import files
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, shortened, written_fraction
from quiltwork.holdout.guarantee import read_count, read_share
from quiltwork.holdout.storage import read_chained, reading, split_lines, text_of

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
class Rules:
    """What a board is begun with, and never changes.

    Attributes:
        rows: of the holdout.
        submissions: k, accepted in all.
        confidence: 1 − β, of the bound.
        steps: g, of the score.
        commitment: a keyed digest of the rows, which betrays nothing without the key.
        beliefs: the beliefs' document, or None for independent rows.
    """

    rows: int
    submissions: int
    confidence: float
    steps: int
    commitment: str
    beliefs: str | None

    def header(self) -> str:
        """Write the first line."""
        beliefs = None if self.beliefs is None else json.loads(self.beliefs)
        return files.dump(SCHEMA, 1, {**vars(self), "beliefs": beliefs})


@dataclass(frozen=True)
class Played:
    """A board as its file tells it: whose submissions were counted, and which moved it."""

    rules: Rules
    teams: tuple[str, ...]
    standings: tuple[Standing, ...]


def counted_line(number: int, team: str) -> dict[str, Any]:
    """Write that a submission was counted."""
    return {"number": number, "team": team}


def scored_line(number: int, score: Fraction | None) -> dict[str, Any]:
    """Write the board's new score; None if the submission did not move it."""
    return {"number": number, "score": None if score is None else str(score)}


def read_board(text: str) -> Played:
    """Read the file of a board and replay it.

    Raises:
        StorageError: naming the first line that does not follow from those before.
        InvalidInputError: if it is no board's.
    """
    lines = split_lines(text)
    rules = _read_rules(lines[0] if lines else "")
    teams: list[str] = []
    standings: list[Standing] = []
    waiting: dict[int, str] = {}
    for at, body in enumerate(read_chained(lines), start=2):
        with reading(at):
            number = integer(body["number"], "number", 1)
            if "team" in body:
                if number != len(teams) + 1 or number > rules.submissions:
                    raise InvalidInputError(f"submission {number} is out of order.")
                waiting[number] = text_of(body, "team")
                teams.append(waiting[number])
                continue
            if number not in waiting:
                raise InvalidInputError(f"submission {number} was not waiting for a score.")
            team, score = waiting.pop(number), body["score"]
            if score is not None:
                standings.append(Standing(number, team, _score(score, rules, standings)))
    return Played(rules, tuple(teams), tuple(standings))


def _read_rules(line: str) -> Rules:
    document = files.load(line, SCHEMA, (1,))
    with reading(1):
        beliefs = document["beliefs"]
        return Rules(
            read_count(document["rows"], "rows"),
            read_count(document["submissions"], "submissions"),
            read_share(document["confidence"], "confidence"),
            read_steps(document["steps"]),
            text_of(document, "commitment"),
            None if beliefs is None else json.dumps(beliefs, sort_keys=True, ensure_ascii=False),
        )


def read_steps(steps: object) -> int:
    """Read the number of steps of the score; floats tell these apart."""
    if integer(steps, "steps", 1) > _MOST_STEPS:
        raise InvalidInputError(f"steps is {shortened(steps)}; it can be at most {_MOST_STEPS:,}.")
    return integer(steps, "steps", 1)


def _score(text: object, rules: Rules, standings: list[Standing]) -> float:
    score = written_fraction(text, "score")
    best = standings[-1].score if standings else -1.0
    if score < 0 or (score * rules.steps).denominator != 1 or not best < float(score) <= 1:
        raise InvalidInputError("the score is off the grid, or no better than the one before.")
    return float(score)
