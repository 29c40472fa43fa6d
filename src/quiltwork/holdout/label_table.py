"""The labels of a leaderboard by row id, split into rows asked and rows kept for the final ranking.

The rows kept apart are chosen by the board's secret key and public facts about rows: whole groups,
or for a series one block with a gap on either side. Labels are not read, and nobody learns which
rows they are: every team predicts all rows. Targets are validated once, at creation. O(rows·log
rows).

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
from quiltwork.holdout.concentration import mixing_steps
from quiltwork.holdout.metrics import Metric, Scoring, class_names_text, pair_rows, plain_label
from quiltwork.holdout.prediction_tables import (
    are_probabilities,
    is_number,
    prediction_question,
)
from quiltwork.holdout.transcript import Columns

Mask = NDArray[np.bool_]
MIXING_SHARE = 0.02
"""The share of the failure probability that a series spends on its gap."""


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows in scoring form: ids and targets, of pairs where the metric compares pairs."""

    cells: NDArray[Any]
    belief: Belief | None

    def question(self, predictions: Mapping[str, str], metric: Metric) -> Any:
        """Return the question about validated predictions."""
        ids = list(range(0, self.cells.shape[1], 2))
        return prediction_question(ids, [at + 1 for at in ids], predictions, metric)


@dataclass(frozen=True, eq=False)
class Labels:
    """A table of labels.

    Attributes:
        columns: the roles of the columns.
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
        """Extract ids, targets and groups from a table.

        Raises:
            InvalidInputError: for missing columns, and ids that occur twice.
        """
        from quiltwork.delimited import column_position

        def column(name: str) -> NDArray[Any]:
            names = filter(None, (columns.identity, columns.target, columns.group))
            return np.asarray(table[:, column_position(header, name, path, names)])

        if columns.target is None:
            raise InvalidInputError("A leaderboard needs a target, the column that is predicted.")
        ids, targets = column(columns.identity).tolist(), column(columns.target)
        if len({plain_label(row_id) for row_id in ids}) < len(ids):
            raise InvalidInputError(f"An id occurs twice in {path!r}; every row needs its own id.")
        groups = None if columns.group is None else column(columns.group)
        if belief is not None and groups is not None:
            raise InvalidInputError(
                "Rows are either a series or grouped; give series or group, not both."
            )
        return cls(columns, ids, targets, groups, belief)

    def split(self, share: float, gap: int, key: str) -> tuple[Mask, Mask]:
        """Return which rows are asked, and which are kept for the final ranking.

        Theorem: docs/theory/final-ranking.md
        """
        rows = len(self.ids)
        if not share:
            return np.ones(rows, bool), np.zeros(rows, bool)
        if self.belief is not None:
            # One block: every further one would cost two more gaps.
            length = max(1, round(share * rows))
            start = _draw(key, 1)[0] % (rows - length + 1)
            at = np.arange(rows)
            inside = (at >= start) & (at < start + length)
            return (at < start - gap) | (at >= start + length + gap), inside
        names = np.asarray(self.ids) if self.groups is None else self.groups
        codes = np.unique(names, return_inverse=True)[1]
        sizes = np.bincount(codes)
        # A keyed order of group codes: neither labels nor the order of the file influence it.
        order = np.argsort(np.array(_draw(key, len(sizes)), dtype=np.uint64), kind="stable")
        covered = np.cumsum(sizes[order])
        chosen = order[: int(np.searchsorted(covered, share * rows)) + 1]
        final = np.isin(codes, chosen)
        return ~final, final

    def scored(self, rows: Mask, metric: Metric, key: str) -> ScoredRows:
        """Return a selection of the rows in scoring form, with the belief about them."""
        ids = np.asarray(self.ids)[rows]
        groups = None if self.groups is None else self.groups[rows]
        cells, belief = np.stack([ids, self.targets[rows]], axis=1), self.belief
        if groups is not None:
            belief = Clusters(groups)
        if metric.pairs:
            if self.belief is not None:
                raise UnsupportedError(
                    "AUC compares independent rows, and the rows of a series are not independent; "
                    "take neg_brier_score or balanced_accuracy."
                )
            pairs, couples = pair_rows(groups, len(ids), key)
            cells = np.concatenate([cells[pairs[:, 0]], cells[pairs[:, 1]]], axis=1)
            belief = None if groups is None else Clusters(couples.tolist())
        return ScoredRows(cells, belief)

    def gap_for(self, share: float, beta: float) -> tuple[int, float]:
        """Return the gap that a series needs, and a bound on the remaining dependence across it.

        Raises:
            UnsupportedError: for beliefs that are neither a chain nor a box of chains.
            InvalidInputError: if too few rows are left.
        """
        if not share or self.belief is None:
            return 0, 0.0
        if not isinstance(self.belief, ChainBox | MarkovChain):
            raise UnsupportedError(
                "Rows can be kept for the final ranking if they are independent, grouped or a "
                f"chain. For a {type(self.belief).__name__} no part is proven independent of the "
                "rest."
            )
        gap, distance = mixing_steps(self.belief, beta * MIXING_SHARE / 2)
        if len(self.ids) * (1 - share) < 4 * gap + 2:
            raise InvalidInputError(
                f"The series needs a gap of {gap:,} rows on either side of the rows for the final "
                "ranking, more than half of the other rows. Keep fewer rows for the final ranking, "
                "or none."
            )
        return gap, 2 * distance


def _draw(key: str, count: int) -> list[int]:
    """Return pseudorandom numbers derived from the secret key."""
    stream = hashlib.shake_256(b"final" + bytes.fromhex(key)).digest(8 * count)
    return [int(number) for number in np.frombuffer(stream, "<u8")]


def check_targets(targets: NDArray[Any], metric: Metric, path: str) -> None:
    """Refuse targets that the metric cannot score; runs when a board is created."""
    cells = targets.tolist()
    if metric.classes is not None:
        classes = set(metric.classes)
        wrong = [plain_label(cell) not in classes for cell in cells]
    elif metric.labels:
        wrong = [not cell.strip() for cell in cells]
        if are_probabilities(cells):
            raise InvalidInputError(
                f"The targets of {path!r} are numbers from 0 to 1, but {metric.name} compares "
                "labels, so predictions would be taken for probabilities. Use words as labels."
            )
    elif metric.predicts == "predict_proba":
        wrong = [plain_label(cell) not in ("0", "1") for cell in cells]
    else:
        wrong = [not is_number(cell) for cell in cells]
    if any(wrong):
        remedy = "give 0 or 1." if metric.predicts == "predict_proba" else "correct or remove them."
        if metric.classes is not None:
            remedy = f"the classes are {class_names_text(metric.classes)}."
        raise InvalidInputError(
            f"{counted(sum(wrong), 'target')} of {path!r} cannot be scored by {metric.name}, "
            f"the first in row {wrong.index(True) + 1:,}; {remedy}"
        )


def need_classes(scoring: Scoring) -> None:
    """Refuse a board that compares labels without public classes."""
    metric = scoring.read()
    if metric.labels and scoring.classes is None:
        raise InvalidInputError(
            f"{metric.name} compares labels, and a board never takes its classes from secret rows: "
            "give the public list, such as classes=('no', 'yes'), or ('*',) if any text may be "
            "right. Predictions of other classes are then refused and not counted."
        )
