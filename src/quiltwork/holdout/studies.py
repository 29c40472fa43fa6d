"""Two tables of text with public ids, and questions about them that are data, never code.

Both the command line and a service ask in this way: a training table and a holdout with the same
columns, of which one names rows, one may be predicted and one may tell which rows depend on each
other. What is public about them, ids too, is checked when they are read; what is wrong with
predictions is found before anything is asked. A row whose target cannot be read counts as wrong,
and nothing about a single row is ever said. A whole number is the same label with `.0` behind it,
as programs write it that read a column as floats.
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
from quiltwork.holdout.metrics import Metric, plain_label, said_classes
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief


def share_question(tests: Sequence[tuple[int, Callable[[str], bool]]]) -> Statistic:
    """Ask for the share of rows whose columns pass all tests."""

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        passed = np.ones(len(rows), dtype=bool)
        for column, test in tests:
            passed &= np.array([test(str(cell)) for cell in rows[:, column]], dtype=bool)
        return passed

    return values


def prediction_question(
    identity: Sequence[int], target: Sequence[int], predictions: Mapping[str, str], metric: Metric
) -> Statistic:
    """Ask how good predictions are, each given for a row's id as `plain_label` has it.

    There is one column of ids and one of targets, or two where the metric compares pairs. A row
    without a prediction, or whose target cannot be read, gets the worst values.
    """
    worst = np.array([0.0 if sign > 0 else 1.0 for sign in metric.signs])

    def values(rows: NDArray[Any]) -> NDArray[Any]:
        sides = [
            _read(rows[:, i], rows[:, t], predictions, metric)
            for i, t in zip(identity, target, strict=True)
        ]
        found = np.logical_and.reduce([side[0] for side in sides])
        true, said = (
            sides[0][at] if len(sides) == 1 else np.stack([side[at] for side in sides], axis=1)
            for at in (1, 2)
        )
        result = np.tile(worst, (len(rows), 1))
        scored = np.asarray(metric.values(true[found], said[found]))
        result[found] = scored.reshape(len(scored), -1)
        return result if len(worst) > 1 else result[:, 0]

    return values


def _read(
    ids: NDArray[Any], true: NDArray[Any], predictions: Mapping[str, str], metric: Metric
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return which rows can be scored, their targets, and what was predicted."""
    said = [predictions.get(plain_label(str(row))) for row in ids]
    found = np.array([one is not None for one in said], dtype=bool)
    if metric.labels:
        labels = [np.array([plain_label(str(one)) for one in some]) for some in (true, said)]
        return found, labels[0], labels[1]
    read, given = _numbers(true), _numbers([one or "" for one in said])
    return found & np.isfinite(read) & np.isfinite(given), read, given


def among(metric: Metric, statistic: Statistic, member: Statistic) -> tuple[Metric, Statistic]:
    """Score a metric that is one mean among the rows of a group, through two means.

    Theorem: docs/theory/metrics.md
    """
    if len(metric.signs) > 1 or metric.pairs:
        raise InvalidInputError(
            f"{metric.name} is made of several means already; within a group ask for accuracy or "
            "an error."
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
    """Refuse predictions for other rows than there are; which ids there are is public."""
    expected = {plain_label(str(name)) for name in known}
    missing, unknown = len(expected - predictions.keys()), len(predictions.keys() - expected)
    if missing or unknown:
        raise InvalidInputError(
            f"Of {counted(len(expected), 'row')} {missing:,} have no prediction, and {unknown:,} "
            f"of the {counted(len(predictions), 'prediction')} are for ids that no row has. "
            f"Nothing was asked.{hint}"
        )


def are_probabilities(cells: Iterable[str]) -> bool:
    """Whether all cells are numbers from 0 to 1, and some lie between."""
    numbers = [_number(cell) for cell in set(cells)]
    return all(0 <= one <= 1 for one in numbers) and any(0 < one < 1 for one in numbers)


def check_predictions(predictions: Mapping[str, str], metric: Metric) -> None:
    """Refuse predictions of which the metric can make nothing, or that are none of the classes.

    What is refused is not counted. Nothing here looks at the labels of the rows.
    """
    if not metric.labels:
        _refuse(predictions, lambda said: not is_number(said), f"{metric.name} needs numbers here")
        return
    _refuse(predictions, lambda said: not said.strip(), f"{metric.name} needs labels here")
    classes = None if metric.classes is None else set(metric.classes)
    fit = classes is not None and all(plain_label(one) in classes for one in predictions.values())
    if not fit and are_probabilities(predictions.values()):
        raise InvalidInputError(
            f"The predictions are probabilities, and {metric.name} compares labels: give each row "
            "its label, such as 1 from a probability of 0.5 on. Nothing was asked."
        )
    if classes is not None:
        named = f"the classes are {said_classes(metric.classes or ())}"
        _refuse(predictions, lambda said: plain_label(said) not in classes, named)


def _refuse(predictions: Mapping[str, str], is_wrong: Callable[[str], bool], why: str) -> None:
    wrong = [row for row, said in predictions.items() if is_wrong(said)]
    if wrong:
        raise InvalidInputError(
            f"{counted(len(wrong), 'prediction')} cannot be scored, the first that for "
            f"{shortened(wrong[0])}: {why}. Nothing was asked."
        )


def with_classes(metric: Metric, training: NDArray[Any]) -> Metric:
    """Let the labels of training rows, which are public, be the classes, if none are given."""
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
            f"Column {column!r} has {kinds[0]}, and the condition compares it with {kinds[1]}. "
            "Nothing was asked."
        )


def check_tables(
    header: Sequence[str],
    train: NDArray[Any],
    held: NDArray[Any],
    identity: int,
    target: int | None,
) -> None:
    """Refuse two tables that no question can read alike, by what is public about them."""
    ids = [plain_label(str(name)) for name in (*train[:, identity], *held[:, identity])]
    if len(set(ids)) < len(ids):
        raise InvalidInputError(
            f"An id of column {header[identity]!r} occurs twice, in one table or in both; an id "
            "must name one row, so that it can be predicted."
        )
    for at, name in enumerate(header):
        kinds = kind_of_text(train[:, at]), kind_of_text(held[:, at])
        if at != identity and set(kinds) == {"numbers", "text"}:
            raise InvalidInputError(
                f"Column {name!r} has {kinds[0]} in the training table and {kinds[1]} in the "
                "holdout, so every question about it would seem to overfit; convert one of them."
            )
        if at == target and kinds == ("text", "text") and not set(train[:, at]) & set(held[:, at]):
            raise InvalidInputError(
                f"The labels of column {name!r} in the training table and in the holdout have no "
                "word in common, so nothing could be predicted; write them alike."
            )


def kind_of_text(cells: NDArray[Any]) -> str:
    """Name what a column of a table holds: "numbers", "text", or "objects" for some of each."""
    filled = [text for text in set(cells.tolist()) if text.strip().lower() not in ("", "nan")]
    return kind_of(text if math.isnan(_number(text)) else 0.0 for text in filled)


def _numbers(cells: Iterable[Any]) -> NDArray[np.float64]:
    return np.array([_number(cell) for cell in cells])


def is_number(cell: str) -> bool:
    """Whether a cell is a number that is finite."""
    return math.isfinite(_number(cell))


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class Study:
    """Both tables, as text, and which of their columns is what."""

    columns: Columns
    header: list[str]
    train: NDArray[Any]
    holdout: NDArray[Any]

    def position(self, column: str) -> int:
        """Return which column that is, from 0."""
        asked = (self.columns.identity, self.columns.target, self.columns.group)
        return column_position(self.header, column, "the tables", filter(None, asked))

    def belief(self) -> Belief | None:
        """Return clusters by the group column, None without one; groups are on one side."""
        if self.columns.group is None:
            return None
        from quiltwork.beliefs import Clusters

        at = self.position(self.columns.group)
        if set(self.train[:, at]) & set(self.holdout[:, at]):
            raise InvalidInputError(
                f"A group of column {self.columns.group!r} has rows in both tables; the holdout "
                "must be independent of the training set, so keep groups whole."
            )
        return Clusters(self.holdout[:, at].tolist())

    @classmethod
    def of_tables(
        cls,
        columns: Columns,
        train: tuple[list[str], NDArray[Any]],
        holdout: tuple[list[str], NDArray[Any]],
        names: tuple[str, str],
    ) -> Study:
        """Check what is public about two tables, before anything is asked."""
        (header, public), (other, held) = train, holdout
        asked = [one for one in (columns.identity, columns.target, columns.group) if one]
        if header != other:
            raise InvalidInputError(
                f"{names[0]!r}, {columns_of(header, asked)}, and {names[1]!r}, "
                f"{columns_of(other, asked)}: give tables with the same columns."
            )
        study = cls(columns, header, public, held)
        for name in asked:
            study.position(name)
        target = None if columns.target is None else study.position(columns.target)
        check_tables(header, public, held, study.position(columns.identity), target)
        return study

    def statistic(self, said: Mapping[str, str], metric: Metric) -> Statistic:
        """Ask how good predictions are that were checked."""
        identity, target = self.columns.identity, str(self.columns.target)
        return prediction_question([self.position(identity)], [self.position(target)], said, metric)

    def about_predictions(self, said: Mapping[str, str], metric: Metric) -> Statistic:
        """Ask how good predictions are, after all that can be wrong with them was looked for."""
        if self.columns.target is None:
            raise InvalidInputError(
                "This holdout has no target, so predictions cannot be scored; ask for shares."
            )
        if metric.pairs:
            raise InvalidInputError(
                f"{metric.name} compares pairs of rows, and the rows of this holdout are single "
                "ones; make a leaderboard with this metric."
            )
        identity, target = self.position(self.columns.identity), self.position(self.columns.target)
        check_predictions(said, with_classes(metric, self.train[:, target]))
        known = [*self.train[:, identity], *self.holdout[:, identity]]
        check_ids(known, said, " Rows of the training table need predictions too.")
        return self.statistic(said, metric)


def read_study(train: str, holdout: str, columns: Columns) -> Study:
    """Read both tables and check what is public about them, before anything is asked."""
    return Study.of_tables(columns, read_table(train), read_table(holdout), (train, holdout))


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
    """Read predictions from CSV, Parquet or JSON; ids as `plain_label` has them, each once.

    A table has the id column and a column `prediction`, or one other; JSON is a list of such
    objects, or one object with an id and its prediction in each field.
    """
    if path.endswith(".json"):
        return _from_json(path, identity)
    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    others = [name for name in header if name != identity]
    named = others[0] if len(others) == 1 else "prediction"
    said = rows[:, column_position(header, named, path, [identity])]
    return _one_for_each(map(plain_label, ids.tolist()), said.tolist(), path)


def read_predictions_of(paths: Sequence[str], identity: str) -> dict[str, str]:
    """Read predictions that come in parts, one file each; an id occurs once in all of them."""
    said: dict[str, str] = {}
    for path in paths:
        part = read_predictions(path, identity)
        twice = len(said.keys() & part.keys())
        if twice:
            raise InvalidInputError(
                f"{counted(twice, 'id')} of {path!r} occur in a part before it, too; give one "
                "prediction for each."
            )
        said |= part
    return said


def _from_json(path: str, identity: str) -> dict[str, str]:
    document = files.parse(files.read_bytes(path))
    pairs: list[tuple[Any, Any]] | None = None
    if isinstance(document, dict):
        pairs = list(document.items())
    if isinstance(document, list) and all(
        isinstance(one, dict) and {identity, "prediction"} <= one.keys() for one in document
    ):
        pairs = [(one[identity], one["prediction"]) for one in document]
    if pairs is None:
        raise InvalidInputError(
            f"{path!r} must be an object of ids and predictions, or a list of objects with "
            f"{identity!r} and 'prediction'."
        )
    return predictions_from_pairs(pairs, path)


def predictions_by_id(given: object, name: str) -> dict[str, str]:
    """Read predictions from a mapping of ids, texts or numbers both."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f'{name} must map every id to a label or a number, as {{"17": 1}}, not '
            f"{shortened(given)}."
        )
    return predictions_from_pairs(given.items(), name)


def predictions_from_pairs(pairs: Iterable[tuple[Any, Any]], name: str) -> dict[str, str]:
    """Read predictions that came as texts or numbers, of JSON or NumPy, one for each id."""
    given = [tuple(map(_plain, pair)) for pair in pairs]
    for cell in (cell for pair in given for cell in pair):
        if not isinstance(cell, str | int | float):
            raise InvalidInputError(
                f"An id or a prediction in {name!r} is {type(cell).__name__}, and must be text or "
                "a number."
            )
    ids = [plain_label(_as_text(one)) for one, _ in given]
    return _one_for_each(ids, [_as_text(said) for _, said in given], name)


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def _as_text(cell: Any) -> str:
    return repr(cell) if isinstance(cell, float) else str(cell)


def _one_for_each(ids: Iterable[str], said: Sequence[str], name: str) -> dict[str, str]:
    found = dict(zip(ids, said, strict=True))
    if len(found) != len(said):
        raise InvalidInputError(f"An id occurs twice in {name!r}; give one prediction for each.")
    return found
