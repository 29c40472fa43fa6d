"""Labels by row id: which of them are asked during a competition, and which are kept for its end.

The rows kept apart are chosen by the board's secret key and by what is public about rows: whole
groups, or of a series one block with a gap on either side. No label is looked at, and nobody is
told which rows they are: everybody predicts all. Targets are checked once, when a board is made.
O(rows·log rows).

Theorem: docs/theory/final-ranking.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, ChainBox, Clusters, MarkovChain
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import counted
from quiltwork.holdout.concentration import forgetting
from quiltwork.holdout.metrics import Metric, Scoring, pair_rows, plain_label, said_classes
from quiltwork.holdout.studies import (
    are_probabilities,
    is_number,
    prediction_question,
)
from quiltwork.holdout.transcript import Columns

Mask = NDArray[np.bool_]
MIXING_SHARE = 0.02
"""The part of what may fail at the end that goes to the gap of a series."""


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows as they are scored: ids and targets, of pairs where the metric compares pairs."""

    cells: NDArray[Any]
    belief: Belief | None

    def question(self, said: Mapping[str, str], metric: Metric) -> Any:
        """Ask how good predictions are that were checked."""
        ids = list(range(0, self.cells.shape[1], 2))
        return prediction_question(ids, [at + 1 for at in ids], said, metric)


@dataclass(frozen=True, eq=False)
class Labels:
    """A table of labels.

    Attributes:
        columns: which column is what.
        ids: of all rows, in order.
        targets: of all rows.
        groups: of all rows, or None.
        belief: how rows depend on each other where they are a series; None otherwise.
    """

    columns: Columns
    ids: list[str]
    targets: NDArray[Any]
    groups: NDArray[Any] | None
    belief: Belief | None = None

    @classmethod
    def of_table(
        cls,
        header: list[str],
        table: NDArray[Any],
        columns: Columns,
        path: str,
        belief: Belief | None = None,
    ) -> Labels:
        """Take what is public about rows, and their targets, from a table.

        Raises:
            InvalidInputError: for columns that are not there, and ids that occur twice.
        """
        from quiltwork.delimited import column_position

        def column(name: str) -> NDArray[Any]:
            asked = filter(None, (columns.identity, columns.target, columns.group))
            return np.asarray(table[:, column_position(header, name, path, asked)])

        if columns.target is None:
            raise InvalidInputError("A leaderboard needs the column that is predicted: target.")
        ids, targets = column(columns.identity).tolist(), column(columns.target)
        if len({plain_label(one) for one in ids}) < len(ids):
            raise InvalidInputError(f"An id occurs twice in {path!r}; an id must name one row.")
        groups = None if columns.group is None else column(columns.group)
        if belief is not None and groups is not None:
            raise InvalidInputError("Rows are a series or have groups; give one of the two.")
        return cls(columns, ids, targets, groups, belief)

    def split(self, share: float, gap: int, key: str) -> tuple[Mask, Mask]:
        """Return which rows are asked, and which are kept for the end.

        Theorem: docs/theory/final-ranking.md
        """
        rows = len(self.ids)
        if not share:
            return np.ones(rows, bool), np.zeros(rows, bool)
        if self.belief is not None:
            length = max(1, round(share * rows))
            start = _draw(key, 1)[0] % (rows - length + 1)
            at = np.arange(rows)
            inside = (at >= start) & (at < start + length)
            return (at < start - gap) | (at >= start + length + gap), inside
        names = np.asarray(self.ids) if self.groups is None else self.groups
        codes = np.unique(names, return_inverse=True)[1]
        sizes = np.bincount(codes)
        order = np.argsort(np.array(_draw(key, len(sizes)), dtype=np.uint64), kind="stable")
        covered = np.cumsum(sizes[order])
        chosen = order[: int(np.searchsorted(covered, share * rows)) + 1]
        final = np.isin(codes, chosen)
        return ~final, final

    def scored(self, rows: Mask, metric: Metric, key: str) -> ScoredRows:
        """Return some of the rows as they are scored."""
        ids = np.asarray(self.ids)[rows]
        groups = None if self.groups is None else self.groups[rows]
        cells, belief = np.stack([ids, self.targets[rows]], axis=1), self.belief
        if groups is not None:
            belief = Clusters(groups)
        if metric.pairs:
            if self.belief is not None:
                raise UnsupportedError(
                    "AUC compares independent rows, and those of a series are not; take "
                    "neg_brier_score or balanced_accuracy."
                )
            pairs, couples = pair_rows(groups, len(ids), key)
            cells = np.concatenate([cells[pairs[:, 0]], cells[pairs[:, 1]]], axis=1)
            belief = None if groups is None else Clusters(couples.tolist())
        return ScoredRows(cells, belief)

    def gap_for(self, share: float, beta: float) -> tuple[int, float]:
        """Return the gap that a series needs, and how much the parts then tell about each other.

        Raises:
            UnsupportedError: for beliefs that are neither a chain nor a box of chains.
            InvalidInputError: if too few rows are left.
        """
        if not share or self.belief is None:
            return 0, 0.0
        if not isinstance(self.belief, ChainBox | MarkovChain):
            raise UnsupportedError(
                "Rows for the end are kept apart of independent rows, of groups and of chains; of "
                f"a {type(self.belief).__name__} no part is proven to be independent of the rest."
            )
        gap, apart = forgetting(self.belief, beta * MIXING_SHARE / 2)
        if len(self.ids) * (1 - share) < 4 * gap + 2:
            raise InvalidInputError(
                f"The series forgets its state after {gap:,} rows, so as many on either side of "
                "those for the end would be lost, more than half of the others. Keep fewer rows "
                "for the end, or none."
            )
        return gap, 2 * apart


def _draw(key: str, count: int) -> list[int]:
    """Return numbers that only the key tells."""
    stream = hashlib.shake_256(b"final" + bytes.fromhex(key)).digest(8 * count)
    return [int(one) for one in np.frombuffer(stream, "<u8")]


def check_targets(targets: NDArray[Any], metric: Metric, path: str) -> None:
    """Refuse, when a board is made, targets of which its metric can make nothing."""
    cells = targets.tolist()
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
