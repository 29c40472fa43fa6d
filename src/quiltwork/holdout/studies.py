"""Two tables of text with public ids, and questions about them that are data, never code.

Both the command line and a service ask in this way: a training table and a holdout with the same
columns, of which one names rows, one may be predicted and one may tell which rows depend on each
other. What is public about them is checked when they are read; what is wrong with predictions is
found before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quiltwork.delimited import column_position, even_rows, with_csv
from quiltwork.errors import InvalidInputError
from quiltwork.holdout.transcript import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.beliefs import Belief
    from quiltwork.holdout.evaluation import Statistic
    from quiltwork.holdout.questions import Metric


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
        """Return clusters by the group column, None without one.

        Raises:
            InvalidInputError: if a group has rows on both sides.
        """
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
        """Ask how good predictions are, after all that can be wrong with them was looked for.

        Raises:
            InvalidInputError: if there is no target, a prediction is missing or cannot be read.
        """
        from quiltwork.holdout.questions import (
            check_covered,
            check_readable,
            prediction_question,
        )

        if self.columns.target is None:
            raise InvalidInputError(
                "This holdout has no target, so predictions cannot be scored; ask for shares."
            )
        identity, target = self.position(self.columns.identity), self.position(self.columns.target)
        check_readable(said, self.train[:, target], metric)
        for rows, kind in ((self.train, "training"), (self.holdout, "holdout")):
            check_covered(rows, identity, said, kind)
        return prediction_question(identity, target, said, metric)


def read_study(train: str, holdout: str, columns: Columns) -> Study:
    """Read both tables and check what is public about them, before anything is asked.

    Raises:
        InvalidInputError: if they do not go together.
    """
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
    """Read a CSV file as its header and an array of text.

    Raises:
        InvalidInputError: if it cannot be read, or a row has another number of columns.
    """
    import numpy as np

    def read(reader: Iterator[list[str]]) -> tuple[list[str], list[list[str]]]:
        header = next(reader, [])
        return header, list(even_rows(reader, len(header), path))

    header, rows = with_csv(path, read)
    if not rows:
        raise InvalidInputError(f"{path!r} has no rows.")
    return header, np.array(rows, dtype=str)


def read_predictions(path: str, identity: str) -> dict[str, str]:
    """Read a CSV file with the id column and `prediction`, or one other; ids as by `plain_label`.

    Raises:
        InvalidInputError: if a column is missing or an id occurs twice.
    """
    from quiltwork.holdout.questions import plain_label

    header, rows = read_table(path)
    ids = rows[:, column_position(header, identity, path)]
    others = [name for name in header if name != identity]
    named = others[0] if len(others) == 1 else "prediction"
    said = rows[:, column_position(header, named, path)]
    found = dict(zip(map(plain_label, ids.tolist()), said.tolist(), strict=True))
    if len(found) != len(ids):
        raise InvalidInputError(f"An id occurs twice in {path!r}; give one prediction for each.")
    return found
