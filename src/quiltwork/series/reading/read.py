"""`read_series`: from a file or frame to the sequences of states that `quiltwork.release` takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from numpy.typing import NDArray

from quiltwork.arguments import choice, instance
from quiltwork.beliefs import (
    Belief,
    ChainBox,
    CyclicChain,
    DatedChain,
    Grid,
    MarkovChain,
    as_beliefs,
)
from quiltwork.beliefs.grids import Rule
from quiltwork.beliefs.grids import duration as duration_words
from quiltwork.beliefs.origins import CodedSequence, CodedSequences, Origin, real_path
from quiltwork.beliefs.states import Label, distinct_labels
from quiltwork.beliefs.zones import parse_zone
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.series.reading.assembly import Paths, ReadingRules, refuse_gaps, sequences
from quiltwork.series.reading.binning import Bins, agreed_grid, requested_grid
from quiltwork.series.reading.clock import (
    Clock,
    TimePoints,
    check_window,
    is_span,
    period_seconds,
    series_clock,
)
from quiltwork.series.reading.collectors import GAP
from quiltwork.series.reading.columns import only_column
from quiltwork.series.reading.source_records import ColumnChoice, Duplicates
from quiltwork.wording import argument

Missing: TypeAlias = Literal["error", "state", "public"]


@dataclass(frozen=True, eq=False)
class Series:
    """Sequences of states by subject, ready for `fit` and `release`.

    Attributes:
        data: subject → array of labels, None at public gaps. Stored as one small code for each time
            point; the arrays are made on access.
        states: the labels in use: in the order of the bins, as declared, or those that occur.
        declared: whether `states` were declared rather than observed in the data.
        points: the number of time points of all subjects.
        missing: how many of them had no value, whatever `missing=` made of them.
        grid: the time step and the bins; the step also where it was not asked for, if the times
            are regular. The arrays in `data` carry it, so that a belief fitted on them keeps it,
            and a release compares it with the belief's.
        reading: a sentence on the format that was detected; empty for plain files.
        clock: the time zone.
        counted: whether times are whole numbers of an unknown unit, which only order rows.
        holes: the step of regular times with holes, over which the sequences go on without a grid.
        pause: of irregular times: the usual time gap and the longest, if that is far longer.
    """

    data: CodedSequences
    states: tuple[Label, ...]
    declared: bool
    points: int
    missing: int
    grid: Grid
    reading: str = ""
    clock: Clock = field(default_factory=Clock)
    counted: bool = False
    holes: int | None = None
    pause: tuple[int, int] | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The number of time points of each sequence."""
        return tuple(map(len, self.data.coded.values()))

    def windows(self, text: str, subject: Any = ...) -> list[tuple[int, int]]:
        """Return the runs of time points, 1-based and inclusive, that a window in words covers.

        Without `subject` the runs must be the same for all sequences. Windows are `3:9`
        (positions), `2026-03-01:2026-03-07` (local days, both included), `2026-03`, `2026`,
        `last 7 days`, `2026-03-01 18:00..2026-03-02 06:00`, `Mondays 18:00-22:00`, `weekdays`.

        Raises:
            InvalidInputError: for words that are not a window or cover no time point, and if
                sequences begin at different or unknown times.
        """
        parts = [part.strip() for part in instance(text, str, "A window").split(":")]
        coded = self.data.coded
        chosen = list(coded.values()) if subject is ... else [coded[subject]]
        if len(parts) == 2 and all(part.isdecimal() for part in parts):
            return [(int(parts[0]), int(parts[1]))]
        check_window(text)
        starts = {self._begin(sequence, text) for sequence in chosen}
        lengths = [len(sequence) for sequence in chosen]
        if len(starts) > 1:
            raise InvalidInputError(
                f"The sequences begin at {len(starts)} different times, so {text!r} is another "
                f"window for each. {_align_hint(text)}"
            )
        runs = TimePoints(*starts.pop(), max(lengths), self.clock).windows(text)
        if runs[-1][1] > min(lengths):
            raise InvalidInputError(f"Some sequences end before {text!r} does. {_align_hint(text)}")
        return runs

    def during(self, text: str) -> Series:
        """Cut every sequence to one span of time; sequences without a time point in it are dropped.

        For sequences that do not begin and end together, such as subjects whose records begin on
        different days. Each keeps its own part of the span. `last 7 days` ends at the latest time
        point of all.

        Time points that are cut off stay protected: an answer depends on them only through the
        nearest time point that is kept. This holds for chains that remember one time point and have
        no start of their own; `release` refuses other beliefs, and refuses to debit a ledger for
        sequences that were cut.

        Raises:
            InvalidInputError: for windows that recur or cover no time point, and for sequences
                whose first time is unknown.

        Theorem: docs/theory/influence-curve.md (points that are cut off)
        """
        check_window(instance(text, str, "A window"))
        if hasattr(self.data, "total"):
            raise UnsupportedError(
                "Series on Spark are not cut here; read the span alone with "
                f"{argument('days', text)}."
            )
        coded = self.data.coded
        begins = {key: self._begin(sequence, text) for key, sequence in coded.items()}
        ends = [start + step * len(coded[key]) for key, (start, step) in begins.items()]
        first, step = min(begins.values())
        whole = TimePoints(first, step, -(-(max(ends) - first) // step), self.clock)
        if (span := whole.span(text)) is None:
            raise InvalidInputError(f"{text!r} is not one span of time. {_align_hint(text)}")
        begin, end = span
        cut: dict[Any, CodedSequence] = {}
        for key, sequence in coded.items():
            start, step = begins[key]
            a, b = (min(max(-((start - when) // step), 0), len(sequence)) for when in (begin, end))
            if a < b:
                is_cut = sequence.cut or b - a < len(sequence)
                cut[key] = replace(sequence.part(a, b), cut=is_cut)
        if not cut:
            raise InvalidInputError(f"No time point is in {text!r}.")
        points = sum(map(len, cut.values()))
        gaps = sum(int((~one.recorded).sum()) for one in cut.values() if one.recorded is not None)
        return replace(self, data=CodedSequences(cut), points=points, missing=gaps)

    def _begin(self, sequence: CodedSequence, text: str) -> tuple[int, int]:
        """Return the first moment of a sequence and its step, in seconds."""
        if sequence.start is None or self.grid.step is None:
            raise InvalidInputError(
                f"When is {text!r}? The times of this series are unknown or not regular: name "
                "the time column and a grid (time and every), or give positions START:STOP."
            )
        return sequence.start, self.grid.step

    def window(self, text: str, subject: Any = ...) -> tuple[int, int]:
        """Return the one run of time points of a window, for `query.on(*series.window(…))`.

        Raises:
            InvalidInputError: as `windows` does, and if there are several runs.
        """
        runs = self.windows(text, subject)
        if len(runs) > 1:
            shown = ", ".join(f"{a}:{b}" for a, b in runs[:4])
            raise InvalidInputError(
                f"{text!r} is {len(runs)} windows, {shown}{', …' if len(runs) > 4 else ''}, and "
                "one is needed here; query.on_runs(series.windows(…)) takes all of them."
            )
        return runs[0]


def read_series(
    source: Any,
    value: str,
    *,
    time: str | None = None,
    subject: str | Sequence[str] | None = None,
    edges: Sequence[object] | None = None,
    labels: Sequence[str] | None = None,
    states: Sequence[Label] | None = None,
    every: str | None = None,
    rule: Rule | None = None,
    missing: Missing = "error",
    missing_state: str = "missing",
    beliefs: Belief | Sequence[Belief] = (),
    duration: str | None = None,
    end: str | None = None,
    timezone: str | None = None,
    days: str | None = None,
    only: Any = None,
    duplicates: Duplicates | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    date_format: str | None = None,
) -> Series:
    """Read sequences of states from files or a table.

    The format of a CSV file is detected, and described in `Series.reading`, unless it is given:
    `delimiter`, `decimal`, `encoding`, further words for missing values (`na_values`), and
    `date_format` as in `strptime`. For times that are whole numbers `date_format` is their unit:
    seconds, minutes, hours or days. Without it they are seconds since 1970 if all are 10^8 or more,
    else the unit in the column's name; a grid refuses them where the unit stays unknown.

    Args:
        source: a path (`.csv`, `.csv.gz`, `.parquet`, `.arrow`, `-`), a folder or pattern of files,
            or a pandas, Polars (also lazy) or Arrow table or what can be read as one (DuckDB).
        value: the column with states, or with numbers if `edges` are given.
        time: the column to sort by: ISO 8601, another format of dates, or whole numbers. Without
            it, the file's order.
        subject: the column, or columns, of subject names; each subject is an independent sequence.
            "filename" is the name of the file.
        edges: public bin edges that turn numbers into states; `labels` names the bins.
        labels: see `edges`.
        states: the public states; cells of a CSV file are read as them, others are refused.
        every: a regular grid such as "10min"; needs `time`. Records of one step are gathered by
            `rule` (numbers; the mean by default), or the last one is taken (labels).
        rule: see `every`.
        missing: what becomes of a missing value or an empty step: "error" refuses it; "state" makes
            it a state, protected like the others; "public" leaves it out and claims that when the
            series was silent is public and says nothing about its states: outages, a flat battery.
            The state at a gap stays protected. With "public" only missing rows, empty cells, NaN
            among numbers and the words in `na_values` are gaps.
        missing_state: the name of the state of missing values.
        beliefs: the beliefs that the series is for: step, edges, labels, rule and states are theirs
            where not given, and refused where they differ. Under beliefs without states each cell
            of a CSV file is read on its own, so that no cell changes how others are read. Then no
            row is refused here: a missing one, or one that is no number where there are edges, is
            None in `data`, and a release refuses it if no ledger pays.
        duration: the column that says for how long a row holds: seconds or 00:15:00 with `time`
            and a grid, else a number of time points.
        end: the column that says until when a row holds.
        timezone: the zone of times without an offset, and of windows: Europe/Berlin. Steps of whole
            days are then local days. By default the zone whose clock the beliefs follow, if any.
        days: the public first and last day, 2026-03-01:2026-03-31, or 2026-03; every subject gets
            all their time points, gaps where there are no records; other records are left out.
        only: read this subject alone.
        duplicates: what becomes of a subject's rows at one time: "error" refuses them, "first"
            keeps the first, "mean" averages their numbers. By default a grid gathers them by
            `rule`, and without a grid they are refused.

    Raises:
        InvalidInputError: with the row or subject and what to do.

    Cost: one pass over the file, and a sort where rows are not in order of time.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "power.csv")
    >>> _ = path.write_text("time,kw\\n2026-01-01T00:00,0.2\\n2026-01-01T00:10,1.7\\n")
    >>> read_series(path, "kw", time="time", edges=[0.5, 2]).data
    {None: array(['<0.5', '0.5..2'], dtype='<U6')}
    """
    choice(missing, get_args(Missing), "missing")
    if duplicates is not None:
        choice(duplicates, get_args(Duplicates), "duplicates")
    members = () if isinstance(beliefs, tuple) and not beliefs else as_beliefs(beliefs)
    stateless = bool(members) and all(belief.states is None for belief in members)
    if stateless and missing == "public":
        raise InvalidInputError(
            f"{type(members[0]).__name__} is not about a series of states, of which some could be "
            f"missing; leave out {argument('missing', 'public')}."
        )
    states = None if states is None else distinct_labels(states)
    requested = requested_grid(edges, labels, states, every, rule)
    grid = agreed_grid(requested, members, named=labels is not None, timed=time is not None)
    bins = None if grid.edges is None else Bins.at(grid.edges, grid.labels)
    if duplicates == "mean" and bins is None:
        raise InvalidInputError(
            f"{argument('duplicates', 'mean')} averages numbers and needs edges, which turn them "
            f"into states; of labels the first is kept with {argument('duplicates', 'first')}."
        )
    dialect = DialectOptions(
        *(delimiter, decimal, encoding, na_values, date_format),
        by_rows=not stateless,
        declared=missing == "public",
    )
    timezone = timezone if time is None else _agreed_zone(timezone, members)
    columns = ColumnChoice(value, time, subject, duration, end, timezone, only, duplicates)
    clock = series_clock(timezone, grid.step)
    parse_zone(timezone)
    if bins is not None:
        public: Sequence[Label] | None = bins.labels
        grid = replace(grid, labels=bins.labels)
    else:
        public = grid.labels or _states_of(members, missing, missing_state)
    limits = None if days is None else period_seconds(days, clock)
    believed = bool(members)
    rules = ReadingRules(columns, dialect, bins, grid, clock, public, limits, believed, stateless)
    result = rules.read(source)
    if all(belief.length is None for belief in members):
        warn_of_holes(result, missing)
    _check_values(result, value, missing, missing_state, public, bins, stateless)
    if missing == "error" and not stateless:
        refuse_gaps(result.paths, result.grid, clock, named=subject == "filename")
    gap = missing_state if missing == "state" else None
    _check_gap_state(result, gap, members)
    origin = Origin(result.grid, real_path(source), len(result.paths), clock.zone, clock.local)
    public_gaps = missing == "public"
    data, labels_used = sequences(result.paths, result.states, gap, origin, public=public_gaps)
    return Series(
        data,
        labels_used,
        declared=public is not None,
        points=sum(len(path.codes) for path in result.paths),
        missing=sum(int((path.codes == GAP).sum()) for path in result.paths),
        grid=result.grid,
        reading=result.note,
        clock=clock,
        counted=result.counted,
        holes=result.holes,
        pause=result.pause,
    )


def _check_values(
    result: Paths,
    value: str,
    missing: Missing,
    missing_state: str,
    public: Sequence[Label] | None,
    bins: Bins | None,
    stateless: bool,
) -> None:
    """Refuse a name of gaps that is a state already, and a column without a single value."""
    if missing == "state" and missing_state in (public or () if stateless else result.states):
        raise InvalidInputError(
            f"The state for missing values, {missing_state!r}, is a state already; name another "
            "with missing_state."
        )
    if stateless or missing == "state":
        return
    if all((path.codes == GAP).all() for path in result.paths):
        expected = "a state" if bins is None else "a number; without edges it is read as labels"
        raise InvalidInputError(
            f"Every time point is missing: no row of column {value!r} holds {expected}."
        )


def _check_gap_state(result: Paths, gap: str | None, members: Sequence[Belief]) -> None:
    """Refuse gaps as a state that a belief does not have."""
    if gap is None or all(gap in (belief.states or (gap,)) for belief in members):
        return
    if any((path.codes == GAP).any() for path in result.paths):
        raise InvalidInputError(
            f"Time points are missing and would be the state {gap!r}, which the belief does not "
            "know; make a belief with that state too, or leave them out with "
            f"{argument('missing', 'public')}, if when the series was silent is public and says "
            "nothing about its states."
        )


def _agreed_zone(requested: str | None, members: Sequence[Belief]) -> str | None:
    """Return the zone to read times in: that of the beliefs' clock, if they follow one."""
    zones = {one.calendar.zone for one in members if isinstance(one, DatedChain)}
    if requested is None and len(zones) == 1:
        return zones.pop()
    if zones and requested not in zones:
        raise InvalidInputError(
            f"The belief follows the clock of {', '.join(sorted(zones))}, and times were to be "
            f"read in {requested}; leave {argument('timezone')} out."
        )
    return requested


def warn_of_holes(result: Paths | Series, missing: Missing) -> None:
    """Warn that series go on over missing time points, which only a grid shows.

    Raises:
        InvalidInputError: if the caller says what becomes of missing time points.
    """
    words: Callable[[int], object] = str if result.counted else duration_words
    if result.holes is not None:
        fact = f"Times are {words(result.holes)} apart, and some are missing"
        grid = argument("every", words(result.holes))
        if result.counted:
            unit = argument("date_format", "minutes")
            grid = f"{argument('every', '10min')} with their unit ({unit})"
        if missing != "error":
            raise InvalidInputError(
                f"{fact}: say {grid} too, so that {argument('missing', missing)} sees them."
            )
        unless = f"over the holes, unless {grid} is said"
    elif result.pause is not None:
        longest = result.pause[1] if result.counted else timedelta(seconds=result.pause[1])
        fact = f"Times of a series are about {words(result.pause[0])} apart, and once {longest}"
        unless = f"over such a pause, unless its steps are said, as {argument('every', '15min')}"
    else:
        return
    warnings.warn(f"{fact}: the series goes on {unless}.", QuiltworkWarning, stacklevel=3)


def refuse_cutting(beliefs: Sequence[Belief]) -> None:
    """Refuse beliefs under which the part of a sequence says more of the rest than its ends do."""
    for belief in beliefs:
        chain = isinstance(belief, (MarkovChain, CyclicChain)) and isinstance(belief.initial, str)
        if isinstance(belief, CyclicChain) and belief.anchor is None:
            chain = False
        if not chain and not isinstance(belief, ChainBox):
            raise UnsupportedError(
                "The sequences do not begin together, and under this "
                f"{type(belief).__name__} they cannot be cut to the window: it has a start of its "
                "own, remembers more than one time point or does not say when its phases are, so "
                "the answer would reveal more than allowed about moments before the window. If "
                "only moments in it are to be protected, read it alone with "
                f"{argument('days', '2026-03-01:2026-03-31')}; or give a chain that remembers one "
                "time point (fit --order 1), or a box."
            )


def _align_hint(text: str) -> str:
    """Say how to ask about sequences that do not begin or end together."""
    apart = (
        f"put all on public days with {argument('days', '2026-03-01:2026-03-31')} and "
        f"{argument('missing', 'public')}, or {argument('missing', 'state')} under a belief that "
        "has the state 'missing' too; or release them apart."
    )
    if is_span(text):
        return f"Cut each to it with series.during({text!r}); or {apart}"
    return f"Words that recur need sequences that begin together: {apart}"


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
    return read_sequence(source, column, states, beliefs).array()


def read_sequence(
    source: Any,
    column: str | None = None,
    states: Sequence[Label] | None = None,
    beliefs: Belief | Sequence[Belief] = (),
) -> CodedSequence:
    """Read one sequence as `read_states` does; it keeps its state codes."""
    declared = () if states is None else distinct_labels(states)
    members = () if isinstance(beliefs, tuple) and not beliefs else as_beliefs(beliefs)
    known = [state for belief in members for state in belief.states or ()]
    name = column if column is not None else only_column(source, states=[*known, *declared])
    series = read_series(source, name, states=states, beliefs=beliefs)
    (sequence,) = series.data.coded.values()
    return sequence


def _states_of(
    members: Sequence[Belief], missing: Missing, missing_state: str
) -> tuple[Label, ...] | None:
    """Return the belief's states as which text is read; the state of missing values is left out."""
    for belief in members:
        if belief.states is not None:
            gap = missing_state if missing == "state" else None
            return tuple(state for state in belief.states if gap is None or state != gap)
    return None
