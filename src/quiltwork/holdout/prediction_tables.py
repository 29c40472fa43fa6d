"""CSV tables of rows with public ids, and questions about them as data: predictions and conditions.

The command line and the curator both ask in this form: a training table and a holdout with the same
columns, of which one holds row ids, one may be predicted, and one may hold groups of dependent
rows. Public facts, ids included, are validated on reading; errors in predictions are found before
anything is asked. A row whose target cannot be read counts as wrong, and no message says anything
about a single row. A whole number with `.0` behind it is the same label, as written by programs
that read the column as floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.delimited import column_position, columns_of, rows_of_width, with_csv
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted, shortened
from quiltwork.holdout.arrays import kind_of
from quiltwork.holdout.evaluation import Statistic
from quiltwork.holdout.metrics import Metric, class_names_text, plain_label
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief


def share_question(tests: Sequence[tuple[int, Callable[[str], bool]]]) -> Statistic:
    """Return the question about the share of rows that pass all tests."""

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        passed = np.ones(len(rows), dtype=bool)
        for column, test in tests:
            passed &= np.array([test(str(cell)) for cell in rows[:, column]], dtype=bool)
        return passed

    return values


def prediction_question(
    identity: Sequence[int], target: Sequence[int], predictions: Mapping[str, str], metric: Metric
) -> Statistic:
    """Return the question about the quality of predictions by row id (see `plain_label`).

    There is one column of ids and one of targets, or two each where the metric compares pairs. A
    row without a prediction, or with an unreadable target, gets the worst values.
    """
    worst = np.array([0.0 if sign > 0 else 1.0 for sign in metric.signs])

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        sides = [
            _targets_and_predictions(rows[:, i], rows[:, t], predictions, metric)
            for i, t in zip(identity, target, strict=True)
        ]
        scorable = np.logical_and.reduce([side[0] for side in sides])
        targets, predicted = (
            sides[0][at] if len(sides) == 1 else np.stack([side[at] for side in sides], axis=1)
            for at in (1, 2)
        )
        result = np.tile(worst, (len(rows), 1))
        scored = np.asarray(metric.values(targets[scorable], predicted[scorable]))
        result[scorable] = scored.reshape(len(scored), -1)
        return result if len(worst) > 1 else result[:, 0]

    return values


def _targets_and_predictions(
    ids: NDArray[Any], true: NDArray[Any], predictions: Mapping[str, str], metric: Metric
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return which rows can be scored, their targets, and their predictions."""
    predicted = [predictions.get(plain_label(str(row))) for row in ids]
    present = np.array([cell is not None for cell in predicted], dtype=bool)
    if metric.labels:
        labels = [
            np.array([plain_label(str(cell)) for cell in column]) for column in (true, predicted)
        ]
        return present, labels[0], labels[1]
    target_numbers, predicted_numbers = _numbers(true), _numbers([cell or "" for cell in predicted])
    return (
        present & np.isfinite(target_numbers) & np.isfinite(predicted_numbers),
        target_numbers,
        predicted_numbers,
    )


def within_subgroup(
    metric: Metric, statistic: Statistic, member: Statistic
) -> tuple[Metric, Statistic]:
    """Restrict a metric with one mean to a subgroup of rows, as a ratio of two means.

    Theorem: docs/theory/metrics.md
    """
    if len(metric.signs) > 1 or metric.pairs:
        raise InvalidInputError(
            f"{metric.name} is a function of several means already, so it cannot be restricted to "
            "a subgroup; ask for accuracy or an error there."
        )

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        inside = np.asarray(member(rows), dtype=float)
        part = np.asarray(statistic(rows), dtype=float) * inside
        return np.stack([part, inside - part], axis=1)

    def combine(means: Sequence[float]) -> float:
        whole = means[0] + means[1]
        return metric.combine([means[0] / whole if whole > 0 else float(metric.signs[0] < 0)])

    signs = (metric.signs[0], -metric.signs[0])
    return replace(metric, signs=signs, combine=combine), values


def check_ids(known: Iterable[str], predictions: Mapping[str, str], hint: str = "") -> None:
    """Refuse predictions with missing or unknown ids; the set of ids is public."""
    expected = {plain_label(str(name)) for name in known}
    missing, unknown = len(expected - predictions.keys()), len(predictions.keys() - expected)
    if missing or unknown:
        raise InvalidInputError(
            f"{missing:,} of {counted(len(expected), 'row')} have no prediction, and {unknown:,} "
            f"of {counted(len(predictions), 'prediction')} have an unknown id. Nothing was "
            f"asked.{hint}"
        )


def are_probabilities(cells: Iterable[str]) -> bool:
    """Whether all cells are numbers from 0 to 1, some of them strictly between."""
    numbers = [_number(cell) for cell in set(cells)]
    return all(0 <= number <= 1 for number in numbers) and any(0 < number < 1 for number in numbers)


def check_predictions(predictions: Mapping[str, str], metric: Metric) -> None:
    """Refuse predictions that the metric cannot score, or outside the classes.

    Refused predictions are not counted as a submission. The labels of rows are not read.
    """
    if not metric.labels:
        _refuse(
            predictions, lambda label: not is_number(label), f"{metric.name} needs numbers here"
        )
        return
    _refuse(predictions, lambda label: not label.strip(), f"{metric.name} needs labels here")
    classes = None if metric.classes is None else set(metric.classes)
    known_classes = classes is not None and all(
        plain_label(label_text) in classes for label_text in predictions.values()
    )
    if not known_classes and are_probabilities(predictions.values()):
        raise InvalidInputError(
            f"The predictions are probabilities, but {metric.name} compares labels: give each row "
            "a label, such as 1 for a probability of 0.5 or more. Nothing was asked."
        )
    if classes is not None:
        remedy = f"the classes are {class_names_text(metric.classes or ())}"
        _refuse(predictions, lambda label: plain_label(label) not in classes, remedy)


def _refuse(predictions: Mapping[str, str], is_wrong: Callable[[str], bool], reason: str) -> None:
    rows = [row for row, prediction in predictions.items() if is_wrong(prediction)]
    if rows:
        raise InvalidInputError(
            f"{counted(len(rows), 'prediction')} cannot be scored, the first for id "
            f"{shortened(rows[0])}: {reason}. Nothing was asked."
        )


def with_classes(metric: Metric, training: NDArray[Any]) -> Metric:
    """Use the public labels of the training rows as classes, if none are given."""
    if not metric.labels:
        if kind_of_text(training) == "text":
            raise InvalidInputError(
                f"No target of the training rows is a number, and {metric.name} needs numbers. "
                "Nothing was asked."
            )
        return metric
    if metric.classes is not None:
        return metric
    return replace(metric, classes=tuple({plain_label(str(label)): 0 for label in training}))


def check_condition(column: str, value: str, training: NDArray[Any]) -> None:
    """Refuse a condition that compares numbers with text."""
    kinds = kind_of_text(training), kind_of_text(np.array([value]))
    if set(kinds) == {"numbers", "text"}:
        raise InvalidInputError(
            f"Column {column!r} holds {kinds[0]}, but the condition compares it with {kinds[1]}. "
            "Nothing was asked."
        )


def check_tables(
    header: Sequence[str],
    train: NDArray[Any],
    held: NDArray[Any],
    identity: int,
    target: int | None,
) -> None:
    """Refuse two tables with repeated ids, or with columns of different kinds."""
    ids = [plain_label(str(name)) for name in (*train[:, identity], *held[:, identity])]
    if len(set(ids)) < len(ids):
        raise InvalidInputError(
            f"An id in column {header[identity]!r} occurs twice, in one table or in both; every "
            "row needs its own id."
        )
    for at, name in enumerate(header):
        kinds = kind_of_text(train[:, at]), kind_of_text(held[:, at])
        if at != identity and set(kinds) == {"numbers", "text"}:
            raise InvalidInputError(
                f"Column {name!r} holds {kinds[0]} in the training table and {kinds[1]} in the "
                "holdout, so every question about it would appear to overfit; convert one of them."
            )
        if at == target and kinds == ("text", "text") and not set(train[:, at]) & set(held[:, at]):
            raise InvalidInputError(
                f"The training table and the holdout have no label of column {name!r} in common, "
                "so nothing could be predicted; use the same spelling."
            )


def kind_of_text(cells: NDArray[Any]) -> str:
    """Return the kind of a column: "numbers", "text", or "objects" for a mixture."""
    filled = [text for text in set(cells.tolist()) if text.strip().lower() not in ("", "nan")]
    return kind_of(text if math.isnan(_number(text)) else 0.0 for text in filled)


def _numbers(cells: Iterable[Any]) -> NDArray[np.float64]:
    return np.array([_number(cell) for cell in cells])


def is_number(cell: str) -> bool:
    """Whether a cell is a finite number."""
    return math.isfinite(_number(cell))


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class TrainHoldoutTables:
    """A training table and a holdout as text, with the roles of their columns."""

    columns: Columns
    header: list[str]
    train: NDArray[Any]
    holdout: NDArray[Any]

    def position(self, column: str) -> int:
        """Return the index of a column, from 0."""
        roles = (self.columns.identity, self.columns.target, self.columns.group)
        return column_position(self.header, column, "the tables", filter(None, roles))

    def belief(self) -> Belief | None:
        """Return clusters by the group column, None without one; groups must be whole."""
        if self.columns.group is None:
            return None
        from quiltwork.beliefs import Clusters

        at = self.position(self.columns.group)
        if set(self.train[:, at]) & set(self.holdout[:, at]):
            raise InvalidInputError(
                f"A group in column {self.columns.group!r} has rows in both tables. The holdout "
                "must be independent of the training set, so put whole groups into one of them."
            )
        return Clusters(self.holdout[:, at].tolist())

    @classmethod
    def of_tables(
        cls,
        columns: Columns,
        train: tuple[list[str], NDArray[Any]],
        holdout: tuple[list[str], NDArray[Any]],
        names: tuple[str, str],
    ) -> TrainHoldoutTables:
        """Validate what is public about two tables, before anything is asked."""
        (header, public), (other, held) = train, holdout
        roles = [column for column in (columns.identity, columns.target, columns.group) if column]
        if header != other:
            raise InvalidInputError(
                f"{names[0]!r}, {columns_of(header, roles)}, and {names[1]!r}, "
                f"{columns_of(other, roles)}: give tables with the same columns."
            )
        study = cls(columns, header, public, held)
        for name in roles:
            study.position(name)
        target = None if columns.target is None else study.position(columns.target)
        check_tables(header, public, held, study.position(columns.identity), target)
        return study

    def statistic(self, predictions: Mapping[str, str], metric: Metric) -> Statistic:
        """Return the question about validated predictions."""
        identity, target = self.columns.identity, str(self.columns.target)
        return prediction_question(
            [self.position(identity)], [self.position(target)], predictions, metric
        )

    def about_predictions(self, predictions: Mapping[str, str], metric: Metric) -> Statistic:
        """Validate predictions and return the question about them."""
        if self.columns.target is None:
            raise InvalidInputError(
                "This holdout has no target column, so predictions cannot be scored; ask for "
                "shares."
            )
        if metric.pairs:
            raise InvalidInputError(
                f"{metric.name} compares pairs of rows, but this holdout has single rows; create a "
                "leaderboard with this metric."
            )
        identity, target = self.position(self.columns.identity), self.position(self.columns.target)
        check_predictions(predictions, with_classes(metric, self.train[:, target]))
        ids = [*self.train[:, identity], *self.holdout[:, identity]]
        check_ids(ids, predictions, " The rows of the training table need predictions too.")
        return self.statistic(predictions, metric)


def read_train_and_holdout(train: str, holdout: str, columns: Columns) -> TrainHoldoutTables:
    """Read both tables and validate what is public about them."""
    return TrainHoldoutTables.of_tables(
        columns, read_table(train), read_table(holdout), (train, holdout)
    )


def read_table(path: str) -> tuple[list[str], NDArray[Any]]:
    """Read a CSV file as its header and an array of text."""

    def read(reader: Iterator[list[str]]) -> tuple[list[str], list[list[str]]]:
        header = next(reader, [])
        return header, list(rows_of_width(reader, len(header), path))

    header, rows = with_csv(path, read)
    if not rows:
        raise InvalidInputError(f"{path!r} has no rows.")
    return header, np.array(rows, dtype=str)


def read_predictions(path: str, identity: str) -> dict[str, str]:
    """Read predictions by id from CSV, Parquet or JSON; every id must occur once.

    A table has the id column and a column `prediction`, or one other column. JSON is a list of such
    objects, or one object that maps ids to predictions.
    """
    if path.endswith(".json"):
        return _from_json(path, identity)
    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    others = [name for name in header if name != identity]
    column = others[0] if len(others) == 1 else "prediction"
    predictions = rows[:, column_position(header, column, path, [identity])]
    return _unique_by_id(map(plain_label, ids.tolist()), predictions.tolist(), path)


def read_predictions_of(paths: Sequence[str], identity: str) -> dict[str, str]:
    """Read predictions split over several files; an id may occur in one of them only."""
    predictions: dict[str, str] = {}
    for path in paths:
        part = read_predictions(path, identity)
        repeated = len(predictions.keys() & part.keys())
        if repeated:
            raise InvalidInputError(
                f"{counted(repeated, 'id')} in {path!r} also occur in an earlier file; give one "
                "prediction per id."
            )
        predictions |= part
    return predictions


def _from_json(path: str, identity: str) -> dict[str, str]:
    document = files.parse(files.read_bytes(path))
    pairs: list[tuple[Any, Any]] | None = None
    if isinstance(document, dict):
        pairs = list(document.items())
    if isinstance(document, list) and all(
        isinstance(record, dict) and {identity, "prediction"} <= record.keys()
        for record in document
    ):
        pairs = [(record[identity], record["prediction"]) for record in document]
    if pairs is None:
        raise InvalidInputError(
            f"{path!r} must be an object that maps ids to predictions, or a list of objects with "
            f"{identity!r} and 'prediction'."
        )
    return predictions_from_pairs(pairs, path)


def predictions_by_id(given: object, name: str) -> dict[str, str]:
    """Parse a mapping from ids to labels, texts or numbers both."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f'{name} must map every id to a label or a number, as {{"17": 1}}, not '
            f"{shortened(given)}."
        )
    return predictions_from_pairs(given.items(), name)


def predictions_from_pairs(pairs: Iterable[tuple[Any, Any]], name: str) -> dict[str, str]:
    """Parse (id, prediction) pairs of texts or numbers, from JSON or NumPy; every id once."""
    cells = [tuple(map(_plain, pair)) for pair in pairs]
    for cell in (cell for pair in cells for cell in pair):
        if not isinstance(cell, str | int | float):
            raise InvalidInputError(
                f"An id or a prediction in {name!r} has type {type(cell).__name__}; it must be "
                "text or a number."
            )
    ids = [plain_label(_as_text(row_id)) for row_id, _ in cells]
    return _unique_by_id(ids, [_as_text(prediction) for _, prediction in cells], name)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _as_text(cell: Any) -> str:
    return repr(cell) if isinstance(cell, float) else str(cell)


def _unique_by_id(ids: Iterable[str], labels: Sequence[str], name: str) -> dict[str, str]:
    predictions = dict(zip(ids, labels, strict=True))
    if len(predictions) != len(labels):
        raise InvalidInputError(f"An id occurs twice in {name!r}; give one prediction per id.")
    return predictions
