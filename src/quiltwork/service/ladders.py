"""The Ladder of a competition: labels in the vault, its lines and their secret beside the others.

A submission is known by a label that tells member and key, so one that was scored before the
curator ended is answered again; one that was interrupted before stays counted, and is scored anew.

Theorem: docs/theory/ladder.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.holdout.board import Board, read_board
from quiltwork.holdout.folders import sealed_lines
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.leaderboard import ScoredRows, scored_rows
from quiltwork.holdout.metrics import Metric, Scoring
from quiltwork.holdout.studies import read_table
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from quiltwork.service.vault import Vault

WAIT = 10.0
"""Seconds for which another process that answers is waited for."""


@lru_cache(maxsize=4)
def labels(vault: Vault, file: str, columns: Columns, scoring: Scoring) -> ScoredRows:
    """Read the table of labels; ids that occur twice and targets without a score are refused."""
    with vault.plain(file, ".csv") as path:
        table = read_table(str(path))
    return scored_rows(*table, columns, scoring.read(), "the holdout", "")


def begin(
    path: Path, rows: ScoredRows, submissions: int, scoring: Scoring, columns: Columns
) -> None:
    """Begin a board."""
    Ladder(
        rows.cells,
        rows.belief,
        submissions=submissions,
        path=path,
        scoring=scoring,
        columns=columns,
    ).close()


def submit(
    path: Path,
    rows: ScoredRows,
    label: str,
    said: Mapping[str, str],
    metric: Metric,
    check: Callable[[Board], None],
) -> dict[str, Any]:
    """Score predictions under a label, unless they were; `check` refuses before they count."""
    asked = rows.question(said, metric)
    with closing(Ladder.resume(path, rows.cells, WAIT)) as board:
        found = read_board(sealed_lines(path))
        numbers = [n for n, team in enumerate(found.teams, start=1) if team == label]
        number = next((n for n in numbers if n not in found.unscored), None)
        if number is None:
            check(found)
            board.submit(label, asked)
            number = board.submitted
        score = next((one.score for one in board.standings() if one.number == number), None)
        value = None if score is None else metric.shown(score)
        return {"number": number, "value": value, "overfit": False, "remaining": board.remaining}
