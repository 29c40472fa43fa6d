"""`read_series`: one call from a file or frame to the sequences that `quiltwork.release` takes."""

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
from quiltwork.beliefs.origins import CodedSequence, CodedSequences, Origin, resolved
from quiltwork.beliefs.states import Label, list_states
from quiltwork.beliefs.zones import read_zone
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.series.reading.assembly import Paths, ReadingRules, refuse_gaps, sequences
from quiltwork.series.reading.binning import Bins, agreed_grid, asked_grid
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
from quiltwork.series.reading.source_records import Wanted
from quiltwork.wording import argument

Missing: TypeAlias = Literal["error", "state", "public"]


@dataclass(frozen=True, eq=False)
class Series:
    """Sequences of states by subject, ready for `fit` and `release`.

    Attributes:
        data: subject → array of labels, None at gaps that are public. What is kept is a small code
            for each time point; arrays are made when they are asked for.
        states: the labels in use, in the order of the bins or as given; observed ones otherwise.
        declared: whether `states` were declared, not observed in the data.
        points: how many time points there are in all.
        missing: how many of them were missing, whatever became of them.
        grid: what a time point and a state are; the step also where it was not asked for, if the
            times are regular. The arrays in `data` are noted to be on it, so that a belief fitted
            on them keeps it, and a release from them compares it.
        reading: how the file is written, where that was found and is not plain; else empty.
        clock: the zone of the times.
        counted: whether times are whole numbers of nobody knows what, which only order rows.
        holes: the step of regular times of which some are missing, over which sequences go on.
        pause: about how far apart irregular times are, and the longest pause, if that is longer.
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
        """Return the runs of time points, 1-based and inclusive, that words mean.

        They are the same for all sequences, or those of one `subject`. Words are `3:9`
        (positions), `2026-03-01:2026-03-07` (local days, both included), `2026-03`, `2026`,
        `last 7 days`, `2026-03-01 18:00..2026-03-02 06:00`, `Mondays 18:00-22:00`, `weekdays`.

        Raises:
            InvalidInputError: for words that are not understood or mean no time point, and if
                sequences begin at different times, or it is not known when.
        """
        parts = [part.strip() for part in instance(text, str, "A window").split(":")]
        every = self.data.coded
        chosen = list(every.values()) if subject is ... else [every[subject]]
        if len(parts) == 2 and all(part.isdecimal() for part in parts):
            return [(int(parts[0]), int(parts[1]))]
        check_window(text)
        starts, lengths = {self._begin(one, text) for one in chosen}, [len(one) for one in chosen]
        if len(starts) > 1:
            raise InvalidInputError(
                f"The sequences begin at {len(starts)} different times, so that {text!r} is "
                f"another window for each. {_together(text)}"
            )
        found = TimePoints(*starts.pop(), max(lengths), self.clock).windows(text)
        if found[-1][1] > min(lengths):
            raise InvalidInputError(f"Some sequences end before {text!r} does. {_together(text)}")
        return found

    def during(self, text: str) -> Series:
        """Cut every sequence to the one span of time that words mean, and drop those without one.

        For sequences that do not begin and end together, such as subjects with records from
        different days on: each has its own window, and what is left of it is a sequence that begins
        when the span or the sequence does. `last 7 days` are those before the latest time point of
        all.

        Time points that are left out are protected as those that stay, since an answer knows of
        them through the nearest one that stays, under chains without a start or longer memory of
        their own; `release` refuses other beliefs, and to let a ledger pay.

        Raises:
            InvalidInputError: for words that recur, or mean no time point, and if it is not known
                when a sequence begins.

        Theorem: docs/theory/influence-curve.md (points that are cut off)
        """
        check_window(instance(text, str, "A window"))
        if hasattr(self.data, "total"):
            raise UnsupportedError(
                "Series on Spark are not cut here; read the span alone with "
                f"{argument('days', text)}."
            )
        begun = {key: self._begin(one, text) for key, one in self.data.coded.items()}
        ends = [start + step * len(self.data.coded[key]) for key, (start, step) in begun.items()]
        first, step = min(begun.values())
        whole = TimePoints(first, step, -(-(max(ends) - first) // step), self.clock)
        if (span := whole.span(text)) is None:
            raise InvalidInputError(f"{text!r} is no one span of time. {_together(text)}")
        begin, end = span
        cut: dict[Any, CodedSequence] = {}
        for key, one in self.data.coded.items():
            start, step = begun[key]
            a, b = (min(max(-((start - when) // step), 0), len(one)) for when in (begin, end))
            if a < b:
                lost = one.cut or b - a < len(one)
                cut[key] = replace(one.part(a, b), cut=lost)
        if not cut:
            raise InvalidInputError(f"No time point is in {text!r}.")
        points = sum(map(len, cut.values()))
        gone = sum(int((~one.recorded).sum()) for one in cut.values() if one.recorded is not None)
        return replace(self, data=CodedSequences(cut), points=points, missing=gone)

    def _begin(self, one: CodedSequence, text: str) -> tuple[int, int]:
        """Return when a sequence begins, and its step."""
        if one.start is None or self.grid.step is None:
            raise InvalidInputError(
                f"When is {text!r}? The times of this series are not known or not regular: name "
                "the time column and a grid (time and every), or give positions START:STOP."
            )
        return one.start, self.grid.step

    def window(self, text: str, subject: Any = ...) -> tuple[int, int]:
        """Return the one run of time points that words mean, for `query.on(*series.window(…))`.

        Raises:
            InvalidInputError: as `windows` does, and if there are several runs.
        """
        found = self.windows(text, subject)
        if len(found) > 1:
            shown = ", ".join(f"{a}:{b}" for a, b in found[:4])
            raise InvalidInputError(
                f"{text!r} is {len(found)} windows, {shown}{', …' if len(found) > 4 else ''}, and "
                "one is needed here; a query takes all of them, by "
                "query.on_runs(series.windows(…))."
            )
        return found[0]


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
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    date_format: str | None = None,
) -> Series:
    """Read sequences of states from files or a table.

    How a CSV file is written is found, and told in `Series.reading`, unless it is given here:
    `delimiter`, `decimal`, `encoding`, further words for missing values (`na_values`), and
    `date_format` as in `strptime`; of whole numbers it is what they count: seconds, minutes, hours
    or days. Otherwise they are seconds since 1970 if all are 10^8 or more, or what the column's
    name says, and are refused where that leaves a grid without a unit.

    Args:
        source: a path (`.csv`, `.csv.gz`, `.parquet`, `.arrow`, `-`), a folder or pattern of files,
            or a pandas, Polars (also lazy) or Arrow table or what can be read as one (DuckDB).
        value: the column with states, or with numbers if `edges` are given.
        time: the column to sort by: ISO 8601, another format of dates, or whole numbers. Without
            it, the file's order.
        subject: the column, or columns, that tell subjects apart; each is an independent sequence.
            "filename" is the name of the file.
        edges: public bin edges that turn numbers into states; `labels` names the bins.
        states: the public states, so that text from CSV is read as them; other cells are refused.
        every: a regular grid such as "10min"; needs `time`. Records of one step are gathered by
            `rule` (numbers; the mean if not given), or the last one is taken (labels).
        missing: what a missing value or an empty step becomes: "error" refuses, "state" makes it
            a state of its own, protected like the others; "public" leaves it out, which claims that
            when a series was silent is public and says nothing about its states: outages, a flat
            battery. What the state was at a gap stays protected. Then gaps are missing rows, empty
            cells, NaN among numbers and the words in `na_values`, and no others.
        beliefs: the beliefs that the series is for: steps, edges, labels, rule and states are
            theirs where not given, and refused where they differ. Where they have no states, each
            cell of a CSV file is read on its own: whether one is a number says nothing of others.
            Then no row is refused here: one that is missing, or no number where there are edges, is
            None in `data` unless it becomes a state, and a release refuses it if no ledger pays.
        duration: the column that says for how long a row holds: seconds or 00:15:00 with `time`
            and a grid, else a number of time points.
        end: the column that says until when, instead.
        timezone: the zone of times without an offset, and of windows: Europe/Berlin. Steps of whole
            days are then local days. If not given, that whose clock the beliefs follow, if any.
        days: the public first and last day, 2026-03-01:2026-03-31, or 2026-03; every subject gets
            all its time points, missing where there are no records, and others are left out.

    Raises:
        InvalidInputError: with the row or subject and what to do.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "power.csv")
    >>> _ = path.write_text("time,kw\\n2026-01-01T00:00,0.2\\n2026-01-01T00:10,1.7\\n")
    >>> read_series(path, "kw", time="time", edges=[0.5, 2]).data
    {None: array(['<0.5', '0.5..2'], dtype='<U6')}
    """
    choice(missing, get_args(Missing), "missing")
    members = () if isinstance(beliefs, tuple) and not beliefs else as_beliefs(beliefs)
    free = bool(members) and all(belief.states is None for belief in members)
    if free and missing == "public":
        raise InvalidInputError(
            f"{type(members[0]).__name__} is not about a series of states, of which some could be "
            f"missing; leave out {argument('missing', 'public')}."
        )
    states = None if states is None else list_states(states)
    asked = asked_grid(edges, labels, states, every, rule)
    named, timed = labels is not None, time is not None
    grid = agreed_grid(asked, members, named=named, timed=timed)
    bins = None if grid.edges is None else Bins.at(grid.edges, grid.labels)
    said = delimiter, decimal, encoding, na_values, date_format
    given = DialectOptions(*said, by_rows=not free, declared=missing == "public")
    timezone = _agreed_zone(timezone, members) if timed else timezone
    wanted = Wanted(value, time, subject, duration, end, timezone)
    clock = series_clock(timezone, grid.step)
    read_zone(timezone)
    if bins is not None:
        public: Sequence[Label] | None = bins.labels
        grid = replace(grid, labels=bins.labels)
    else:
        public = grid.labels or _states_of(members, missing, missing_state)
    limits = None if days is None else period_seconds(days, clock)
    rules = ReadingRules(wanted, given, bins, grid, clock, public, limits, bool(members), free)
    read = rules.read(source)
    if all(belief.length is None for belief in members):
        tell_holes(read, missing)
    if missing == "state" and missing_state in (public or () if free else read.states):
        raise InvalidInputError(
            f"The state for missing values, {missing_state!r}, is a state already; name another "
            "with missing_state."
        )
    if not free and missing != "state" and all((path.codes == GAP).all() for path in read.paths):
        held = "a state" if bins is None else "a number; without edges it is read as labels"
        raise InvalidInputError(
            f"Every time point is missing: no row of column {value!r} holds {held}."
        )
    if missing == "error" and not free:
        refuse_gaps(read.paths, named=subject == "filename")
    gap = missing_state if missing == "state" else None
    unknown = gap is not None and any(gap not in (one.states or (gap,)) for one in members)
    if unknown and any((path.codes == GAP).any() for path in read.paths):
        raise InvalidInputError(
            f"Time points are missing and would be the state {gap!r}, which the belief does not "
            "know; make a belief with that state too, or leave them out with "
            f"{argument('missing', 'public')}, if "
            "when the series was silent is public and says nothing about its states."
        )
    origin = Origin(read.grid, resolved(source), len(read.paths), clock.zone, clock.local)
    data, found = sequences(read.paths, read.states, gap, origin, public=missing == "public")
    gone = sum(int((path.codes == GAP).sum()) for path in read.paths)
    points = sum(len(path.codes) for path in read.paths)
    return Series(
        *(data, found, public is not None, points, gone, read.grid, read.note, clock),
        *(read.counted, read.holes, read.pause),
    )


def _agreed_zone(asked: str | None, members: Sequence[Belief]) -> str | None:
    """Return the zone to read times in: that whose clock the beliefs follow, if they follow one."""
    zones = {one.calendar.zone for one in members if isinstance(one, DatedChain)}
    if asked is None and len(zones) == 1:
        return zones.pop()
    if zones and asked not in zones:
        raise InvalidInputError(
            f"The belief follows the clock of {', '.join(sorted(zones))}, and times were to be "
            f"read in {asked}; leave {argument('timezone')} out."
        )
    return asked


def tell_holes(read: Paths | Series, missing: Missing) -> None:
    """Say that series go on over time points that are missing, of which only a grid knows."""
    words: Callable[[int], object] = str if read.counted else duration_words
    if read.holes is not None:
        told = f"Times are {words(read.holes)} apart, and some are missing"
        grid = argument("every", words(read.holes))
        if read.counted:
            unit = argument("date_format", "minutes")
            grid = f"{argument('every', '10min')} with their unit ({unit})"
        if missing != "error":
            raise InvalidInputError(
                f"{told}: say {grid} too, so that {argument('missing', missing)} sees them."
            )
        unless = f"over the holes, unless {grid} is said"
    elif read.pause is not None:
        longest = read.pause[1] if read.counted else timedelta(seconds=read.pause[1])
        told = f"Times of a series are about {words(read.pause[0])} apart, and once {longest}"
        unless = f"over such a pause, unless its steps are said, as {argument('every', '15min')}"
    else:
        return
    sentence = f"{told}: the series goes on {unless}."
    warnings.warn(sentence, QuiltworkWarning, stacklevel=3)


def refuse_cutting(beliefs: Sequence[Belief]) -> None:
    """Refuse beliefs under which a part of a sequence tells of the rest by more than its ends."""
    for belief in beliefs:
        chain = isinstance(belief, (MarkovChain, CyclicChain)) and isinstance(belief.initial, str)
        if isinstance(belief, CyclicChain) and belief.anchor is None:
            chain = False
        if not chain and not isinstance(belief, ChainBox):
            raise UnsupportedError(
                f"The sequences do not begin together, and cut to the window under this "
                f"{type(belief).__name__}, which has a start of its own, remembers more than one "
                "time point or does not say when its phases are, they would tell too much of "
                "moments before it. If only those in it are to be protected, read it alone with "
                f"{argument('days', '2026-03-01:2026-03-31')}; or give a "
                "chain that remembers one time point (fit --order 1), or a box."
            )


def _together(text: str) -> str:
    """How to ask about sequences that do not begin or end together."""
    apart = (
        f"put all on public days with {argument('days', '2026-03-01:2026-03-31')} and "
        f"{argument('missing', 'public')}, or "
        f"{argument('missing', 'state')} under a belief that has the state 'missing' too; or "
        "release them apart."
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
    """Read what `read_states` reads, as codes."""
    declared = () if states is None else list_states(states)
    known = (
        []
        if isinstance(beliefs, tuple) and not beliefs
        else [one for belief in as_beliefs(beliefs) for one in belief.states or ()]
    )
    name = column if column is not None else only_column(source, states=[*known, *declared])
    read = read_series(source, name, states=states, beliefs=beliefs)
    (sequence,) = read.data.coded.values()
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
