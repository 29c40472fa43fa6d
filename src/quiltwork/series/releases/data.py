"""Protected data as encoded sequences: one, or one for each independent subject.

First the public properties, the number and lengths of sequences, by which a release is planned and
a ledger can refuse it; then the cells. All errors in the data are raised here, before anything is
spent, and name the position alone. Refusals depend on the beliefs and on nothing that a query
chooses: rows of beliefs without states are clipped to the bounds of a sum, or counted in no cell,
since an error would reveal them. Where a ledger pays, no such row is refused: one without a value
counts as the lower bound of a sum, and is in no cell. Cost: one pass.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief, Gaussian, split_sequences
from quiltwork.beliefs.grids import require_same_grid
from quiltwork.beliefs.origins import (
    CodedSequence,
    CodedSequences,
    gapped_sequence,
    grid_of_sequence,
    origin_of,
    timezone_of,
    utc_start,
)
from quiltwork.beliefs.sequences import (
    as_labels,
    cells_of,
    encode,
    encode_known,
    factorize_labels,
    position_of,
    unknown_state_error,
)
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence.gaussian import no_sum
from quiltwork.queries.cells import OverStates, Top
from quiltwork.queries.custom import CustomQuery
from quiltwork.queries.days import ByHour
from quiltwork.queries.numbers import Sum, has_value, of_numbers
from quiltwork.queries.query import IntArray, Integers, Query, States
from quiltwork.series.reading.clock import Clock
from quiltwork.wording import argument, either


@dataclass(frozen=True, eq=False)
class Source:
    """Sequences whose cells have not been read.

    Attributes:
        cells: the cells of each sequence.
        sequences: the sequences as the caller passed them.
        fleet: the `Fleet` that holds them, if they are on Spark.
    """

    cells: tuple[Any, ...]
    sequences: tuple[Any, ...]
    fleet: Any = None

    @property
    def lengths(self) -> list[int]:
        """The length of each sequence, which is public."""
        return [len(cells) for cells in self.cells]

    @property
    def recorded(self) -> list[NDArray[np.bool_] | None]:
        """A mask of the recorded time points of each sequence, where gaps are public; else None."""
        return [getattr(cells, "recorded", None) for cells in self.cells]


@dataclass(frozen=True, eq=False)
class EncodedSeries:
    """Encoded sequences; `alphabet[code]` is the label.

    The alphabet is that of the beliefs or the query, else that of the data, which stays private.
    """

    codes: tuple[IntArray, ...]
    alphabet: States
    fleet: Any = None

    def answers(self, queries: Sequence[Query], *, quietly: bool) -> Iterable[Integers]:
        """Return the answer of each query about its sequence; on Spark, the sum of all."""
        evaluators = (query.evaluate_quietly if quietly else query.evaluate for query in queries)
        if self.fleet is not None:
            return [self.fleet.total(next(evaluators), self.alphabet)]
        pairs = zip(evaluators, self.codes, strict=True)
        return (evaluate(codes, self.alphabet) for evaluate, codes in pairs)


def read_source(data: Any, members: tuple[Belief, ...], states: States | None) -> Source:
    """Return the sequences in `data`, reading files if it names some."""
    read = _read_paths(data, members, states)
    rows = None if states_are_all(members) else fixed_length(members)
    one = isinstance(read, (list, tuple)) and len(read) == rows  # whatever is in these rows
    sequences = (read,) if one else split_sequences(read)
    fleet = data if hasattr(data, "total") and isinstance(data, CodedSequences) else None
    source = Source(_each(sequences, _cells), sequences, fleet)
    _check_rows(source, members)
    _check_gaps(source, members)
    _check_grid(source, members)
    return source


def _cells(sequence: Any) -> Any:
    gapped = gapped_sequence(sequence)
    return cells_of(sequence) if gapped is None else gapped


def encode_cells(
    source: Source, members: tuple[Belief, ...], query: Query, *, quietly: bool = False
) -> EncodedSeries:
    """Encode the cells by the states of the beliefs or the query."""
    if isinstance(members[0], Gaussian):
        return EncodedSeries(_each(source.cells, lambda cells: _floats(cells, quietly)), ())
    states = public_states(members, query)
    if source.fleet is not None:
        if states is None or not states_are_all(members):
            raise UnsupportedError("Series on Spark need beliefs that name their states.")
        source.fleet.check(states)
        return EncodedSeries((), states, source.fleet)
    if states is not None and states_are_all(members):
        encoded = _each(source.cells, lambda cells: _codes(cells, states))
        for belief in members if not any(one is not None for one in source.recorded) else ():
            _each(encoded, belief.check_codes)
        return EncodedSeries(encoded, states)
    rows = tuple(map(as_labels, source.cells)) if quietly else source.cells
    if states is not None:
        known = _each(rows, lambda cells: encode_known(cells, states, quietly=quietly))
        return EncodedSeries(known, states)
    ((codes, alphabet),) = _each(rows, factorize_labels)
    if isinstance(query, Sum):
        alphabet = _with_values(query, codes, alphabet, quietly)
    return EncodedSeries((codes,), alphabet)


def _codes(cells: Any, states: States) -> IntArray:
    """Encode cells; sequences that were read with these states keep their small codes.

    A public gap gets the code after the last state, which no query counts.
    """
    recorded = getattr(cells, "recorded", None)
    known = list(states) if recorded is None else [*states, None]
    if isinstance(cells, CodedSequence) and cells.labels.tolist() == known:
        return cells.codes
    if recorded is None:
        return encode(cells, states)
    index = {label: code for code, label in enumerate(states)}
    table = np.array([*(index.get(label, -1) for label in cells.labels[:-1].tolist()), len(states)])
    codes: IntArray = table[cells.codes]
    if (codes < 0).any():
        raise unknown_state_error(position_of(codes, -1), states)
    return codes


@dataclass(frozen=True)
class RecordedPoints:
    """The numbers of recorded time points, gaps, and recorded neighbours in a query's window."""

    points: int
    gaps: int
    pairs: int


def recorded_points(
    query: Query, recorded: Sequence[NDArray[np.bool_] | None], lengths: Sequence[int]
) -> RecordedPoints | None:
    """Count recorded points and gaps in the window of a query, where gaps are public; else None.

    Raises:
        InvalidInputError: if the window has no recorded time point, or no recorded pair.
    """
    if all(one is None for one in recorded):
        return None
    points = gaps = pairs = 0
    for one, length in zip(recorded, lengths, strict=True):
        for start, stop in query.windows(length):
            present = np.ones(stop - start + 1, np.bool_)
            if one is not None:
                present = one[start - 1 : stop]
            points += int(present.sum())
            gaps += int((~present).sum())
            pairs += int((present[:-1] & present[1:]).sum())
    if points == 0 or (query.sensitivity.pair and pairs == 0):
        what = "No time point" if points == 0 else "No two neighbours"
        raise InvalidInputError(f"{what} in the window was recorded; ask about a longer window.")
    return RecordedPoints(points, gaps, pairs)


def _check_gaps(source: Source, members: tuple[Belief, ...]) -> None:
    """Refuse public gaps under beliefs that are not about a series of states."""
    if all(recorded is None for recorded in source.recorded):
        return
    if not states_are_all(members) or fixed_length(members) is not None:
        raise UnsupportedError(
            f"{type(members[0]).__name__} is not about a series of states, of which some could be "
            f"missing; read the data without {argument('missing', 'public')}."
        )


def adapt_query(query: Query, members: tuple[Belief, ...]) -> Query:
    """Adapt the query to these beliefs, and check that it can be asked.

    Without states, values outside the bounds of a sum are clipped; with states, the bounds are
    narrowed to those of the states.
    """
    if isinstance(members[0], Gaussian):
        if not isinstance(query, Sum):
            raise no_sum(query)
        return of_numbers(query)
    states = public_states(members, query)
    if states is None and isinstance(query, Sum):
        return replace(query, clip=True)
    if states is not None or isinstance(query, CustomQuery):
        query.check(states or ())
    if isinstance(query, Top):
        return replace(query, among=len(states or ()))
    if isinstance(query, ByHour) and query.step is None:
        steps = {belief.grid.step for belief in members if belief.grid is not None}
        return replace(query, step=steps.pop() if len(steps) == 1 else None)
    return query.narrowed(states) if states is not None and isinstance(query, Sum) else query


def with_time_of_day(query: Query, source: Source, *, alike: bool) -> Query:
    """Return a query by hours with the step and the first moment of the data.

    Of series that begin at different moments it is the earliest; `queries_by_sequence` adapts it to
    each, unless all must begin `alike`.
    """
    if not isinstance(query, ByHour):
        return query
    grids = {grid.step for grid in map(grid_of_sequence, source.sequences) if grid is not None} - {
        None
    }
    if query.step is None and len(grids) == 1:
        query = replace(query, step=grids.pop())
    query.step_seconds  # noqa: B018  # refuses before anything is paid
    known = [begins for begins in map(utc_start, source.sequences) if begins is not None]
    moments = set(known)
    zones = {_zone_of(sequence) for sequence in source.sequences} - {None}
    if query.begins is None and len(moments) == len(zones) == 1:
        return replace(query, begins=moments.pop(), zone=zones.pop())
    if (
        query.begins is None
        and len(zones) <= 1
        and not alike
        and len(known) == len(source.sequences)
    ):
        first, zone = min(moments), next(iter(zones), None)
        return replace(query, begins=first if zone else first % 86400, zone=zone)
    if zones:
        raise InvalidInputError(
            "The data begin at different moments, so their clocks may change at different time "
            "points; give series that begin together, or ask about each alone."
        )
    starts = {begins % 86400 for begins in moments}
    if len(starts) > 1 or (starts and query.begins not in (None, *starts)):
        raise InvalidInputError(
            "The data begin at different times of day, and hours are counted from the first time "
            "point of each series; give series that begin together, or ask about each alone."
        )
    if query.begins is None and not starts:
        raise InvalidInputError(
            "At which time of day do the data begin? They do not say; write "
            + either("queries.by_hour(begins='06:30').", "--query by-hour:06:30.")
        )
    return replace(query, begins=starts.pop()) if query.begins is None else query


def queries_by_sequence(query: Query, source: Source) -> list[Query]:
    """Return the query for each sequence; by hours, counted from its own first moment.

    A time point counts in one cell of one hour, whichever it is, so the noise is the same.
    """
    moments = [utc_start(one) if isinstance(query, ByHour) else None for one in source.sequences]
    return [
        replace(query, begins=moment if query.zone else moment % 86400)
        if isinstance(query, ByHour) and moment is not None
        else query
        for moment in moments
    ]


def _zone_of(sequence: Any) -> str | None:
    """Return the time zone of a sequence, if it is known."""
    noted = getattr(origin_of(sequence), "zone", None)
    shown = getattr(getattr(sequence, "index", None), "tz", None)
    return noted if shown is None else str(shown)


def _each(parts: tuple[Any, ...], read: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Read every sequence; an error names its subject if there are several."""
    done = []
    for subject, part in enumerate(parts, start=1):
        try:
            done.append(read(part))
        except InvalidInputError as error:
            if len(parts) == 1:
                raise
            raise InvalidInputError(f"Subject {subject}: {error}") from None
    return tuple(done)


def public_states(members: tuple[Belief, ...], query: Query) -> States | None:
    """Return the states named by the beliefs or the query.

    None if rows can hold anything and the query needs no list of states.
    """
    for belief in members:
        if belief.states is not None:
            return belief.states
    if not isinstance(query, OverStates):
        return None
    if query.states is None:
        raise InvalidInputError(
            f"{type(members[0]).__name__} names no states, and the cells of a release must not "
            "depend on the data; "
            + either(f"write queries.{query.kind}(states=[…]).", "name them with --states a,b.")
        )
    return query.states


def states_are_all(members: tuple[Belief, ...]) -> bool:
    """Return whether the beliefs name every value that a cell may have."""
    return any(belief.states is not None for belief in members)


def fixed_length(members: tuple[Belief, ...]) -> int | None:
    """Return the number of rows that the beliefs are about; None if any number."""
    return next((b.length for b in members if b.length is not None), None)


def _read_paths(data: Any, members: tuple[Belief, ...], states: States | None) -> Any:
    """Replace paths by the content of their files, read on the beliefs' grid.

    Text inside a list is a label, not a path.
    """
    if isinstance(data, (str, os.PathLike)):
        from quiltwork.series.reading.read import read_sequence

        named = states_are_all(members)
        return read_sequence(data, states=None if named else states, beliefs=members)
    if isinstance(data, Mapping) and not isinstance(data, CodedSequences):
        return {name: _read_paths(part, members, states) for name, part in data.items()}
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], os.PathLike):
        return [_read_paths(part, members, states) for part in data]
    return data


def _check_rows(source: Source, members: tuple[Belief, ...]) -> None:
    rows = fixed_length(members)
    if rows is None:
        return
    if len(source.cells) > 1:
        raise InvalidInputError(
            f"The data are {len(source.cells)} sequences, but the belief is about {rows} rows of "
            "one; release each with its own belief."
        )
    (length,) = source.lengths
    if length != rows:
        raise InvalidInputError(
            f"The belief is about {rows} rows, the data have {length}; give one row of data for "
            "each row of the belief, in the same order."
        )


def _check_grid(source: Source, members: tuple[Belief, ...]) -> None:
    """Refuse data on another grid than the beliefs', judged by times alone."""
    for grid in set(map(grid_of_sequence, source.sequences)):
        for belief in members:
            require_same_grid(belief.grid, grid)


def period_of(source: Source, query: Query) -> tuple[str, str] | None:
    """Return the first moment of a query's window and its end, if the times are known.

    Of sequences with different times, from the earliest to the latest.
    """
    begins = list(map(utc_start, source.sequences))
    grids = {
        grid.step if grid is not None else None for grid in map(grid_of_sequence, source.sequences)
    }
    step = grids.pop()
    known = [begin for begin in begins if begin is not None]
    if grids or step is None or len(known) < len(begins):
        return None
    each = set(zip(known, source.lengths, strict=True))
    pairs = [(begin, query.window(length)) for begin, length in each]
    ends = (
        min(begin + step * (first - 1) for begin, (first, _) in pairs),
        max(begin + step * last for begin, (_, last) in pairs),
    )
    origin, place = origin_of(source.sequences[0]), timezone_of(source.sequences[0])
    if origin is None and place is not None:  # of the index
        begin, end = (datetime.fromtimestamp(one, place).isoformat("T", "minutes") for one in ends)
        return begin, end
    clock = Clock() if origin is None else Clock(origin.zone, origin.local)
    return clock.written(ends[0]), clock.written(ends[1])


def assumed_step(source: Source, members: tuple[Belief, ...]) -> int | None:
    """Return the step of the beliefs, if that of some sequence is unknown; else None."""
    steps = [belief.grid.step for belief in members if belief.grid is not None]
    known = all(grid is not None and grid.step for grid in map(grid_of_sequence, source.sequences))
    return None if known else next((step for step in steps if step is not None), None)


def _floats(cells: Any, quietly: bool) -> NDArray[np.float64]:
    """Convert cells to floats; with `quietly`, other cells become NaN, which counts as lowest."""
    if isinstance(cells, np.ndarray):
        values = cells.astype(np.float64)
    else:
        values = np.array([_float(cell) for cell in cells])
    if not quietly and np.isnan(values).any():
        position = int(np.argmax(np.isnan(values))) + 1
        raise InvalidInputError(
            f"Position {position} holds no number; fill it or leave it out first."
        )
    return values


def _float(cell: Any) -> float:
    try:
        return float(cell) if isinstance(cell, numbers.Real) else math.nan
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _with_values(query: Sum, codes: IntArray, alphabet: States, quietly: bool) -> States:
    """Return the labels of rows, which must be numbers; with `quietly`, others count as lowest."""
    for code, label in enumerate(alphabet):
        if not quietly and not has_value(label):
            raise InvalidInputError(
                f"Row {position_of(codes, code)} has no numeric value, and a {query.kind} needs "
                "one in every row."
            )
    return tuple(label if has_value(label) else -math.inf for label in alphabet)
