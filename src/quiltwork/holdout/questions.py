"""Questions as data, for people who may not run code here: predictions by row id, or conditions.

Rows are an array of text, one column per column of a table. A row that has no prediction, or whose
target cannot be read, counts as wrong; nothing about a single row is ever said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError
from quiltwork.holdout.metrics import Metric
from quiltwork.holdout.rows import Statistic


def share_question(tests: Sequence[tuple[int, Callable[[str], bool]]]) -> Statistic:
    """Ask for the share of rows whose columns pass all tests."""

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        passed = np.ones(len(rows), dtype=bool)
        for column, test in tests:
            passed &= np.array([test(str(cell)) for cell in rows[:, column]], dtype=bool)
        return passed

    return values


def prediction_question(
    identity: int, target: int, predictions: Mapping[str, str], metric: Metric
) -> Statistic:
    """Ask how good predictions are, each given for a row's id.

    A row without a prediction gets the worst value: 0 for scores, 1 for errors.
    """
    worst = 0.0 if metric.scale > 0 else 1.0
    numeric = metric.name != "accuracy"

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        said = [predictions.get(str(row)) for row in rows[:, identity]]
        found = np.array([one is not None for one in said], dtype=bool)
        given = np.array([one or "" for one in said], dtype=object)
        true = rows[:, target]
        result = np.full(len(rows), worst)
        if numeric:
            read, shown = _numbers(true), _numbers(given)
            found &= np.isfinite(read) & np.isfinite(shown)
            shown = np.clip(shown, 0, 1) if metric.predicts == "predict_proba" else shown
            result[found] = metric.values(read[found], shown[found])
        else:
            result[found] = true[found] == given[found]
        return result

    return values


def check_covered(
    rows: NDArray[Any], identity: int, predictions: Mapping[str, str], kind: str
) -> None:
    """Refuse predictions that miss a row whose id is public.

    Raises:
        InvalidInputError: naming the first id without a prediction.
    """
    for row in rows[:, identity]:
        if str(row) not in predictions:
            raise InvalidInputError(
                f"There is no prediction for {kind} row {str(row)!r}; give one for every id of "
                "the training set and the holdout."
            )


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    def read(cell: Any) -> float:
        try:
            return float(cell)
        except ValueError:
            return float("nan")

    return np.array([read(cell) for cell in cells])
