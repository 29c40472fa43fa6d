"""The Ladder of a competition: labels in the vault, its lines and their secret beside the others.

A submission is known by a label that tells member and key, so one that was scored before the
curator ended is answered again; one that was interrupted before stays counted, and is scored anew.

Theorem: docs/theory/ladder.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.holdout.board import Board, read_board
from quiltwork.holdout.folders import sealed_lines
from quiltwork.holdout.ladder import Ladder
from quiltwork.holdout.leaderboard import ScoredRows, scored_rows
from quiltwork.holdout.metrics import Scoring
from quiltwork.holdout.storage import new_secret, read_secret
from quiltwork.holdout.studies import read_table
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from quiltwork.service.vault import Vault

WAIT = 10.0
"""Seconds for which another process that answers is waited for."""


@dataclass(frozen=True)
class Labels:
    """A table of labels in the vault, and how predictions of them are scored."""

    vault: Vault
    file: str
    columns: Columns
    scoring: Scoring


@lru_cache(maxsize=4)
def scored(labels: Labels, key: str) -> ScoredRows:
    """Read the table of labels; ids that occur twice and targets without a score are refused.

    Which rows make pairs, for a metric that compares them, only the board's key tells.
    """
    with labels.vault.plain(labels.file, ".csv") as path:
        table = read_table(str(path))
    return scored_rows(*table, labels.columns, labels.scoring.read(), "the holdout", key)


def begin(path: Path, labels: Labels, submissions: int) -> None:
    """Begin a board."""
    secret = new_secret()
    rows = scored(labels, secret.key)
    Ladder(
        rows.cells,
        rows.belief,
        submissions=submissions,
        path=path,
        scoring=labels.scoring,
        columns=labels.columns,
        secret=secret,
    ).close()


def submit(
    path: Path,
    labels: Labels,
    label: str,
    said: Mapping[str, str],
    check: Callable[[Board], None],
) -> dict[str, Any]:
    """Score predictions under a label, unless they were; `check` refuses before they count."""
    rows, metric = scored(labels, read_secret(path).key), labels.scoring.read()
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
