"""`read_series`: one call from a file or frame to the sequences that `quiltwork.release` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quiltwork.arguments import choice, instance
from quiltwork.beliefs import Belief, Grid, as_beliefs
from quiltwork.beliefs.grids import Rule
from quiltwork.beliefs.origins import (
    Origin,
    index_step,
    note,
    note_start,
    origin_of,
    regular_step,
    resolved,
)
from quiltwork.beliefs.sequences import factorize, label_array, position_of
from quiltwork.beliefs.states import Label, list_states, show_labels
from quiltwork.errors import InvalidInputError
from quiltwork.series.reading.binning import Bins
from quiltwork.series.reading.columns import Column, only_column, read_columns
from quiltwork.series.reading.grid_asked import agreed_grid, asked_grid
from quiltwork.series.reading.regular import IntArray, OrderedRows, on_grid, ordered
from quiltwork.series.reading.values import as_labels, as_numbers, as_seconds, match_labels

Missing: TypeAlias = Literal["error", "state", "split"]


@dataclass(frozen=True, eq=False)
class Series:
    """Sequences of states by subject, ready for `fit` and `release`.

    Attributes:
        data: subject → array of labels; with missing="split", (subject, piece) → array.
        states: the labels in use, in the order of the bins or as given; observed ones otherwise.
        declared: whether `states` were declared, not observed in the data.
        points: how many time points there are in all.
        missing: how many of them were missing, whatever became of them.
        grid: what a time point and a state are; the step also where it was not asked for, if the
            times are regular. The arrays in `data` are noted to be on it, so that a belief fitted
            on them keeps it, and a release from them compares it.
    """

    data: dict[Any, NDArray[Any]]
    states: tuple[Label, ...]
    declared: bool
    points: int
    missing: int
    grid: Grid

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of time points of each sequence."""
        return tuple(len(sequence) for sequence in self.data.values())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Note the grid with the arrays of a copy too, also of one from another process."""
        vars(self).update(state)
        new = [array for array in self.data.values() if origin_of(array) is None]
        note(new, Origin(self.grid, None, len(self.data)))


def read_series(
    source: Any,
    value: str,
    *,
    time: str | None = None,
    subject: str | None = None,
    edges: Sequence[object] | None = None,
    labels: Sequence[str] | None = None,
    states: Sequence[Label] | None = None,
    every: str | None = None,
    rule: Rule | None = None,
    missing: Missing = "error",
    missing_state: str = "missing",
    beliefs: Belief | Sequence[Belief] = (),
) -> Series:
    """Read sequences of states from a CSV or Parquet file or a table.

    Args:
        source: path (`.csv`, `.csv.gz`, `.parquet`, `-`) or pandas, Polars or Arrow table.
        value: the column with states, or with numbers if `edges` are given.
        time: the column to sort by: whole seconds or ISO 8601. Without it, the file's order.
        subject: the column that tells subjects apart; each is an independent sequence.
        edges: public bin edges that turn numbers into states; `labels` names the bins.
        states: the public states, so that text from CSV is read as them; other cells are refused.
        every: a regular grid such as "10min"; needs `time`. Records of one step are gathered by
            `rule` (numbers; the mean if not given), or the last one is taken (labels).
        missing: what a missing value or an empty step becomes: "error" refuses, "state" makes it
            a state of its own, "split" cuts the sequence there. Splitting declares that the
            pieces of one subject are independent of each other, which is rarely true.
        beliefs: the beliefs that the series is for: steps, edges, labels, rule and states are
            theirs where not given, and refused where they differ. Where they have no states, each
            cell of a CSV file is read on its own: whether one is a number says nothing of others.
            Then no row is refused here: one that is missing, or no number where there are edges, is
            None in `data` unless it becomes a state, and a release refuses it if no ledger pays.

    Raises:
        InvalidInputError: with the row or subject and what to do.

    >>> import io, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "power.csv")
    >>> _ = path.write_text("time,kw\\n2026-01-01T00:00,0.2\\n2026-01-01T00:10,1.7\\n")
    >>> read_series(path, "kw", time="time", edges=[0.5, 2]).data
    {None: array(['<0.5', '0.5..2'], dtype='<U6')}
    """
    choice(missing, get_args(Missing), "missing")
    members = () if isinstance(beliefs, tuple) and not beliefs else as_beliefs(beliefs)
    free = bool(members) and all(belief.states is None for belief in members)
    if free and missing == "split":
        raise InvalidInputError(
            f"{type(members[0]).__name__} has no order of rows in which a sequence could be cut; "
            "leave out missing='split'."
        )
    states = None if states is None else list_states(states)
    asked = asked_grid(edges, labels, states, every, rule)
    named, timed = labels is not None, time is not None
    grid = agreed_grid(asked, members, named=named, timed=timed)
    names = [instance(name, str, "A column") for name in (value, time, subject) if name is not None]
    columns = dict(zip(names, read_columns(source, names), strict=True))
    if len(columns[value]) == 0:
        raise InvalidInputError(f"Column {value!r} has no rows; there is nothing to read.")
    bins = None if grid.edges is None else Bins.at(grid.edges, grid.labels)
    if bins is None:
        public = grid.labels or _states_of(members, missing, missing_state)
        known, codes = _coded(columns[value], value, public, believed=bool(members))
    else:
        public = known = bins.labels
        codes = as_numbers(columns[value], value, quietly=free)
    who, subjects = _subjects(columns, subject, len(columns[value]))
    seconds = as_seconds(columns[time], time) if time else None
    rows = ordered(who, seconds, grid.step)
    if grid.step is None:
        numbers, owner = codes[rows.order], rows.subject
        grid = replace(grid, step=_regular(source, columns.get(time or ""), seconds, rows))
    else:
        numbers, owner = on_grid(rows, codes[rows.order], grid.rule or "last")
    if bins is not None:
        gaps = np.isnan(numbers)
        numbers = np.where(gaps, np.nan, bins.codes(np.where(gaps, 0.0, numbers)))
        grid = replace(grid, labels=bins.labels)
    taken = public or () if free else known
    if missing == "state" and missing_state in taken:
        raise InvalidInputError(
            f"The state for missing values, {missing_state!r}, is a state already; name another "
            "with missing_state."
        )
    gap = missing_state if missing == "state" else None
    if missing == "error" and not free:
        _refuse_gaps(numbers, owner, subjects)
    data, found, gone = _sequences(numbers, owner, subjects, known, gap, cut=missing == "split")
    note(data.values(), Origin(grid, resolved(source), len(data)))
    if seconds is not None and grid.step is not None:
        moments = seconds[rows.order]
        gaps = np.diff(moments)[np.diff(rows.subject) == 0]
        if rows.step is not None or (gaps == grid.step).all():
            _note_starts(data, numbers, owner, rows, moments, grid.step, cut=missing == "split")
    return Series(data, found, public is not None, len(numbers), gone, grid)


def _note_starts(
    data: dict[Any, NDArray[Any]],
    numbers: NDArray[np.float64],
    owner: IntArray,
    rows: OrderedRows,
    moments: IntArray,
    step: int,
    *,
    cut: bool,
) -> None:
    """Note with every array when it begins; times are regular."""
    first = np.flatnonzero(np.append(True, np.diff(owner) != 0))
    begins = moments[np.flatnonzero(np.append(True, np.diff(rows.subject) != 0))]
    if rows.step is not None:
        begins = begins // step * step
    arrays = iter(data.values())
    for begin, end, moment in zip(first, np.append(first[1:], len(owner)), begins, strict=True):
        present = ~np.isnan(numbers[begin:end])
        opens = np.flatnonzero(np.diff(present, prepend=False) & present) if cut else [0]
        for place in opens:
            note_start(next(arrays), int(moment) + step * int(place))


def read_states(
    source: Any,
    column: str | None = None,
    states: Sequence[Label] | None = None,
    beliefs: Belief | Sequence[Belief] = (),
) -> NDArray[Any]:
    """Read one sequence of states in the order of the file; `column` may be left out if only one.

    Raises:
        InvalidInputError: if the file has several columns and none is named, or holds no rows.
    """
    name = column if column is not None else only_column(source)
    read = read_series(source, name, states=states, beliefs=beliefs)
    (sequence,) = read.data.values()
    return sequence


def _states_of(
    members: Sequence[Belief], missing: Missing, missing_state: str
) -> tuple[Label, ...] | None:
    """Return the states to read text as: the belief's, but for what missing values become."""
    for belief in members:
        if belief.states is not None:
            given = missing_state if missing == "state" else None
            return tuple(state for state in belief.states if given is None or state != given)
    return None


def _coded(
    column: Column, name: str, states: Sequence[Label] | None, *, believed: bool
) -> tuple[tuple[Label, ...], NDArray[np.float64]]:
    """Return (states, state codes with NaN for missing).

    Without beliefs all states are declared, or none. With them it is the release that refuses a
    row, once a ledger has seen whose beliefs they are; if they have no states, a row may be
    anything, and none may change how others are read.

    Raises:
        InvalidInputError: naming the first row that holds none of the states declared.
    """
    if states is not None:
        cells = match_labels(column, name, tuple(states), apart=believed)
    else:
        cells = as_labels(column, name, apart=believed)
    codes, distinct = factorize(cells)
    found = [label for label in distinct if label is not None]
    known = list(states) if states is not None else _sorted(found)
    others = [label for label in found if label not in known]
    if others and not believed:
        row = position_of(codes, distinct.index(others[0]))
        raise InvalidInputError(
            f"Row {row} of column {name!r} holds none of the states {show_labels(tuple(known))}; "
            "declare what it holds as well, or drop it."
        )
    known += others
    index = {label: float(i) for i, label in enumerate(known)}
    table = np.array([np.nan if label is None else index[label] for label in distinct])
    return tuple(known), table[codes]


def _regular(
    source: Any, times: Column | None, seconds: IntArray | None, rows: OrderedRows
) -> int | None:
    """Return the step that regular times show: those of a column, or of the index of one series."""
    if seconds is None or times is None:
        return index_step(source) if not rows.subject.any() else None
    gaps = np.diff(seconds[rows.order])[np.diff(rows.subject) == 0]
    step = regular_step(gaps)
    return None if step == 1 and str(times[0]).isdecimal() else step  # counted, not timed


def _subjects(
    columns: Mapping[str, Column], name: str | None, rows: int
) -> tuple[IntArray, list[Any]]:
    if name is None:
        return np.zeros(rows, dtype=np.int64), [None]
    return factorize(as_labels(columns[name], name))


def _refuse_gaps(numbers: NDArray[np.float64], owner: IntArray, subjects: list[Any]) -> None:
    gaps = np.isnan(numbers)
    if not gaps.any():
        return
    at = int(np.argmax(gaps))
    position = at - int(np.searchsorted(owner, owner[at])) + 1
    whose = f" of subject {owner[at] + 1} (in their order)" if subjects != [None] else ""
    raise InvalidInputError(
        f"Time point {position}{whose} is missing, and {int(gaps.sum()) - 1} more are; say what "
        "to do: missing='state' makes it a state of its own, missing='split' cuts the "
        "sequence there if you declare the pieces independent."
    )


def _sequences(
    numbers: NDArray[np.float64],
    owner: IntArray,
    subjects: list[Any],
    states: tuple[Label, ...],
    gap: str | None,
    *,
    cut: bool,
) -> tuple[dict[Any, NDArray[Any]], tuple[Label, ...], int]:
    """Return the sequences by subject, their states, and how many points were missing.

    Sequences are `cut` at missing points, or hold `gap` there.
    """
    gaps = np.isnan(numbers)
    total_missing = int(gaps.sum())
    array = label_array(states)
    if not cut and (total_missing or gap is not None):
        numbers = np.where(gaps, len(states), numbers)
        array = label_array((*states, gap))
    if gap is not None and gap not in states:
        states = (*states, gap)
    data: dict[Any, NDArray[Any]] = {}
    bounds = np.flatnonzero(np.append(True, np.diff(owner) != 0))
    for begin, end in zip(bounds, np.append(bounds[1:], len(owner)), strict=True):
        key = subjects[owner[begin]]
        if cut:
            for number, piece in enumerate(_pieces(numbers[begin:end]), 1):
                data[(key, number)] = array[piece.astype(np.int64)]
        else:
            data[key] = array[numbers[begin:end].astype(np.int64)]
    if not data:
        raise InvalidInputError("Every time point is missing; there is nothing to read.")
    return data, states, total_missing


def _pieces(numbers: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    present = ~np.isnan(numbers)
    cuts = np.flatnonzero(np.diff(present.astype(np.int8))) + 1
    return [piece for piece in np.split(numbers, cuts) if len(piece) and not np.isnan(piece[0])]


def _sorted(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))
