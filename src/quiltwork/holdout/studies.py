"""Two tables of text with public ids, and questions about them that are data, never code.

Both the command line and a service ask in this way: a training table and a holdout with the same
columns, of which one names rows, one may be predicted and one may tell which rows depend on each
other. What is public about them is checked when they are read; what is wrong with predictions is
found before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.beliefs import Belief
    from quiltwork.holdout.evaluation import Statistic
    from quiltwork.holdout.metrics import Metric


@dataclass(frozen=True, eq=False)
class Study:
    """Both tables, as text, and which of their columns is what."""

    columns: Columns
    header: list[str]
    train: NDArray[Any]
    holdout: NDArray[Any]

    def position(self, column: str) -> int:
        """Return which column that is, from 0."""
        return column_position(self.header, column, "the tables")

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

    def about_predictions(self, said: Mapping[str, str], metric: Metric) -> Statistic:
        """Ask how good predictions are, after all that can be wrong with them was looked for."""
        from quiltwork.holdout.questions import check_ids, check_readable, prediction_question

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
        check_readable(said, self.train[:, target], metric)
        known = [*self.train[:, identity], *self.holdout[:, identity]]
        check_ids(known, said, " Rows of the training table need predictions too.")
        return prediction_question([identity], [target], said, metric)


def read_study(train: str, holdout: str, columns: Columns) -> Study:
    """Read both tables and check what is public about them, before anything is asked."""
    from quiltwork.holdout.questions import check_tables

    header, public = read_table(train)
    other, held = read_table(holdout)
    if header != other:
        raise InvalidInputError(
            f"{train!r} has the columns {', '.join(header)} and {holdout!r} has "
            f"{', '.join(other)}; give tables with the same ones."
        )
    study = Study(columns, header, public, held)
    for name in filter(None, (columns.identity, columns.target, columns.group)):
        study.position(name)
    target = None if columns.target is None else study.position(columns.target)
    check_tables(header, public, held, study.position(columns.identity), target)
    return study


def read_table(path: str) -> tuple[list[str], NDArray[Any]]:
    """Read a CSV file as its header and an array of text."""
    import numpy as np

    def read(reader: Iterator[list[str]]) -> tuple[list[str], list[list[str]]]:
        header = next(reader, [])
        return header, list(even_rows(reader, len(header), path))

    header, rows = with_csv(path, read)
    if not rows:
        raise InvalidInputError(f"{path!r} has no rows.")
    return header, np.array(rows, dtype=str)


def read_predictions(path: str, identity: str) -> dict[str, str]:
    """Read predictions from CSV, Parquet or JSON; ids as `plain_label` has them, each once.

    A table has the id column and a column `prediction`, or one other; JSON is a list of such
    objects, or one object with an id and its prediction in each field.
    """
    from quiltwork.holdout.questions import plain_label

    if path.endswith(".json"):
        return _from_json(path, identity)
    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    others = [name for name in header if name != identity]
    named = others[0] if len(others) == 1 else "prediction"
    said = rows[:, column_position(header, named, path)]
    return _one_for_each(map(plain_label, ids.tolist()), said.tolist(), path)


def _from_json(path: str, identity: str) -> dict[str, str]:
    document = files.parse(files.contents(path))
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


def predictions_from_pairs(pairs: Iterable[tuple[Any, Any]], name: str) -> dict[str, str]:
    """Read predictions that came as values of JSON, texts or numbers, one for each id."""
    from quiltwork.holdout.questions import plain_label

    given = list(pairs)
    for cell in (cell for pair in given for cell in pair):
        if not isinstance(cell, str | int | float):
            raise InvalidInputError(
                f"An id or a prediction in {name!r} is {type(cell).__name__}, and must be text or "
                "a number."
            )
    ids = [plain_label(_as_text(one)) for one, _ in given]
    return _one_for_each(ids, [_as_text(said) for _, said in given], name)


def _as_text(cell: Any) -> str:
    return repr(cell) if isinstance(cell, float) else str(cell)


def _one_for_each(ids: Iterable[str], said: Sequence[str], name: str) -> dict[str, str]:
    found = dict(zip(ids, said, strict=True))
    if len(found) != len(said):
        raise InvalidInputError(f"An id occurs twice in {name!r}; give one prediction for each.")
    return found
