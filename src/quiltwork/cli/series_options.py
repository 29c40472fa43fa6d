"""Options shared by the time-series commands: how a file becomes sequences, and what is asked.

On the command line a question is data: a named query with its arguments, never code.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from quiltwork import files
from quiltwork.cli.command import encoding_option, exact_number, option, split_list
from quiltwork.cli.output import note
from quiltwork.errors import InvalidInputError, QuiltworkError
from quiltwork.exact import integer

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief, Label
    from quiltwork.queries import Query
    from quiltwork.series import Series


@dataclass(frozen=True)
class Reading:
    """The options for reading a file as series, as they were typed; `read` applies them."""

    value: str | None = option("The column with states, or numbers with --edges.", "COLUMN")
    time: str | None = option(
        "Sort by this column: dates or whole numbers. Without it, the file's order.", "COLUMN"
    )
    duration: str | None = option(
        "How long a row holds: seconds or 00:15:00 with --time and --every, else a number of time "
        "points.",
        "COLUMN",
    )
    end: str | None = option("Until when a row holds, instead.", "COLUMN")
    timezone: str | None = option(
        "Of times without an offset, and of windows: Europe/Berlin; or none.", "ZONE"
    )
    days: str | None = option(
        "The public days 2026-03-01:2026-03-31, or 2026-03: every subject gets all their time "
        "points, and no others.",
        "FIRST:LAST",
    )
    subject: str | None = option(
        "The columns of subject names: house,meter, or filename; each subject is a sequence "
        "independent of the others.",
        "COLUMNS",
    )
    only: str | None = option("With --subject: read this subject alone.", "NAME")
    duplicates: str | None = option(
        "A subject's rows at one time: refuse them, keep the first, or average their numbers.  "
        "[default: gather them with --every, else refuse]",
        kind=("error", "first", "mean"),
    )
    edges: str | None = option("Public bin edges that turn numbers into states: 0.5,2", "LIST")
    labels: str | None = option("Names of the bins: low,medium,high", "LIST")
    every: str | None = option("Gather records on a regular grid: 30s, 10min, 1h, 1d.", "DURATION")
    rule: str | None = option(
        "With --every and --edges: how the numbers of one step are gathered.  [default: the "
        "belief's, or mean]",
        kind=("mean", "min", "max", "sum", "first", "last"),
    )
    missing: str = option(
        "Missing values and empty steps: refuse, make them a state of their own, or leave out: "
        "public claims that when a series was silent is public and says nothing of its states.",
        kind=("error", "state", "public"),
        default="error",
    )
    delimiter: str | None = option("Between cells: ; or tab.  [detected]", "CHARACTER")
    decimal: str | None = option("Decimal point.  [detected]", kind=(".", ","))
    encoding: str | None = encoding_option
    na_values: str | None = option("Further words for missing: -,n.d.", "LIST", names="--na")
    date_format: str | None = option(
        "Of times: %d.%m.%Y %H:%M; or the unit of whole numbers: seconds, minutes, hours, days.  "
        "[detected]",
        "FORMAT",
    )

    def completed(
        self, beliefs: Sequence[str], file: str, registered: Mapping[str, Any] | None = None
    ) -> Reading:
        """Add options that were not typed: those registered with a ledger, or of beliefs' files.

        The options added are printed. A column of a belief's file that FILE does not have is left
        open: the belief may be about others' data.
        """
        if registered:
            return self._added(_typed_options(registered), "As the data were registered")
        kept = _kept_reading(beliefs)
        if file == "-" or (self.value is None and kept.get("value") not in _columns(file)):
            kept.pop("value", None)
        if self.time is None:
            kept.pop("timezone", None)
        return self._added(kept, "As the belief's file says")

    def _added(self, options: Mapping[str, str], reason: str) -> Reading:
        untyped = (None, "error")
        added = {
            name: text
            for name, text in options.items()
            if name in vars(self) and getattr(self, name) in untyped
        }
        if added:
            shown = {"na_values": "na", "date_format": "date-format"}
            words = (f"--{shown.get(name, name)} {text}" for name, text in added.items())
            note(f"{reason}: {', '.join(words)}.")
        return replace(self, **added)


def _typed_options(registered: Mapping[str, Any]) -> dict[str, str]:
    """Return registered reading options as they would be typed."""
    typed = {}
    for name, value in registered.items():
        if isinstance(value, list):
            line = io.StringIO()
            csv.writer(line).writerow(value)
            typed[name] = line.getvalue().strip()
        else:
            typed[name] = str(value)
    return typed


_KEPT = ("value", "timezone")
"""The reading options in a belief's file, beside the belief; its grid has the others."""


def with_reading(document: str, reading: Reading) -> str:
    """Add to the document of beliefs the options by which their data were read."""
    kept = {name: getattr(reading, name) for name in _KEPT if getattr(reading, name) is not None}
    if not kept:
        return document
    return json.dumps({**json.loads(document), "reading": kept}, sort_keys=True, ensure_ascii=False)


def _kept_reading(paths: Sequence[str]) -> dict[str, str]:
    """Return the reading options on which the files of beliefs agree."""
    values: dict[str, set[str]] = {}
    for path in paths:
        kept = files.parse(_belief_document(path)).get("reading", {})
        for name in _KEPT if isinstance(kept, dict) else ():
            if isinstance(kept.get(name), str):
                values.setdefault(name, set()).add(kept[name])
    return {name: options.pop() for name, options in values.items() if len(options) == 1}


def _columns(file: str) -> list[str]:
    from quiltwork.series.reading.columns import header_of

    try:
        return header_of(file, None)
    except (QuiltworkError, OSError):
        return []  # the command that reads the file reports the error


def read(
    file: str,
    reading: Reading,
    *,
    states: tuple[Label, ...] | None = None,
    beliefs: Sequence[Belief] = (),
    backend: str = "local",
    check: Callable[..., None] | None = None,
    take: Callable[..., Series] | None = None,
) -> Series:
    """Read the file with the typed options, on the beliefs' grid.

    Args:
        file: the path, or - for standard input.
        reading: the options.
        states: the declared states.
        beliefs: the beliefs that the series is for.
        backend: "local" or "spark".
        check: called first with the file, the column and the options, where a ledger pays; then the
            detected format is not printed, since it depends on rows.
        take: what reads the file; `read_series` by default.
    """
    from quiltwork.series import read_fleet, read_series
    from quiltwork.series.reading.columns import only_column, refuse_headerless

    arguments: dict[str, Any] = {**vars(reading), "states": states}
    others = (reading.time, reading.duration, reading.end, reading.subject)
    beside = [name for name in others if name not in (None, "filename")]
    known = [state for belief in beliefs for state in belief.states or ()]
    column = arguments.pop("value") or only_column(file, beside, [*known, *(states or ())])
    for name in ("subject", "na_values", "edges", "labels"):
        if arguments[name] is not None:
            arguments[name] = split_list(arguments[name])
    if reading.timezone == "none":  # overrides the zone in the belief's file
        arguments["timezone"] = None
    if reading.subject is not None and len(arguments["subject"]) == 1:
        (arguments["subject"],) = arguments["subject"]
    if reading.edges is not None:
        arguments["edges"] = [exact_number(edge) for edge in arguments["edges"]]
    arguments["na_values"] = arguments["na_values"] or ()
    take = take or read_series
    if backend == "spark":
        from quiltwork.cli.spark_files import quiet_session

        take = partial(read_fleet, quiet_session())
    if check is not None:
        check(file, column, arguments)
    if reading.missing == "public":
        from quiltwork.beliefs.gaps import silence_claim

        note(f"--missing public: {silence_claim()}")
    series = take(file, column, **arguments, beliefs=beliefs)
    if reading.value is None and not known and states is None:
        refuse_headerless(file, column, series.states)
    if series.reading and check is None:
        note(series.reading)
    return series


def _belief_document(path: str) -> bytes:
    """Return the bytes of a file of beliefs, read once per command: a pipe can be read once."""
    documents = click.get_current_context().meta.setdefault("quiltwork.belief_documents", {})
    if path not in documents:
        documents[path] = files.read_bytes(path)
    return bytes(documents[path])


def read_beliefs(paths: tuple[str, ...]) -> tuple[Belief, ...]:
    """Read belief files; several beliefs make a finite set."""
    from quiltwork.beliefs import as_beliefs, beliefs_from_json

    if not paths:
        raise click.UsageError("Give what an adversary may believe: --belief belief.json")
    return as_beliefs([one for path in paths for one in beliefs_from_json(_belief_document(path))])


pairs_option = option(
    "Keep only these values of a time point apart, as home:away,home:abroad, with the names of the "
    "belief's states.  [default: all]",
    "A:B,…",
)
"""The pairs of values to keep apart, read by `read_pairs`."""


def read_pairs(text: str | None, beliefs: Sequence[Belief]) -> list[tuple[Label, Label]] | None:
    """Read pairs of states; None for all of them.

    >>> from quiltwork.beliefs import MarkovChain
    >>> read_pairs("a:b", [MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=["a", "b"])])
    [('a', 'b')]
    """
    if text is None:
        return None
    states = {str(state): state for state in beliefs[0].states or ()}
    pairs = []
    for pair in split_list(text):
        # State names may hold colons: exactly one split must name two states.
        splits = [(pair[:at], pair[at + 1 :]) for at, c in enumerate(pair) if c == ":"]
        named = [(states[a], states[b]) for a, b in splits if a in states and b in states]
        if len(named) != 1:
            raise click.UsageError(
                f"--pairs has {pair!r}, which is not two states of the belief as A:B; there "
                f"are {', '.join(states) or 'none'}"
            )
        pairs += named
    return pairs


def step_lines(beliefs: Sequence[Belief]) -> list[str]:
    """Describe a time point, if a belief has a step."""
    from quiltwork.beliefs.grids import duration

    steps = {belief.grid.step for belief in beliefs if belief.grid is not None} - {None}
    return [f"A time point is a step of {duration(step)}." for step in steps if step is not None]


protect_option = option(
    "Who is protected: each moment, each person with the whole series, or stretches as long as "
    "this, whatever happens in them: 3h where the step is known, or a number of time points.  "
    "[default: moment]",
    "moment|person|DURATION|N",
)
"""How long a secret is, read by `read_episode`."""


def read_episode(text: str | None, beliefs: Sequence[Belief], every: str | None = None) -> int:
    """Read how many time points in a row are one secret: a number, or a duration in steps.

    A duration that is no whole number of steps is rounded up.

    Raises:
        InvalidInputError: for anything else, and for a duration where no step is known.

    >>> read_episode("18", []), read_episode("3h", [], every="10min"), read_episode(None, [])
    (18, 18, 1)
    """
    from quiltwork.beliefs.grids import parse_duration

    if text is None or text == "moment":
        return 1
    if text == "person":
        raise InvalidInputError(
            "--protect person is for releases, and for a ledger made with --people; here give a "
            "duration, or a number of time points."
        )
    if text.strip().isdecimal():
        return integer(int(text), "--protect", 1)
    seconds = parse_duration(text)
    steps = {belief.grid.step for belief in beliefs if belief.grid is not None} - {None}
    if every is not None:
        steps = {parse_duration(every)}
    if len(steps) != 1:
        raise InvalidInputError(
            f"How many time points are {text}? The belief does not say how long a step is; give "
            "their number, for example --protect 18."
        )
    return -(-seconds // (steps.pop() or 1))


QUERY_HELP = (
    "histogram, frequencies, transitions, most-common, top:K, by-hour (or by-hour:06:30 where the "
    "data do not say when they begin), count:STATE, time-per-day:STATE, mean:LO:HI or sum:LO:HI."
)


def read_query(text: str, states: tuple[Label, ...] | None, window: str | None) -> Query:
    """Read a query such as `histogram`, `count:walk` or `mean:0:10`, and its window `3:9`.

    >>> read_query("count:1", (0, 1), "3:9").window(20)
    (3, 9)
    """
    from quiltwork import queries

    name, *arguments = text.split(":")
    plain: dict[str, Callable[[], Query]] = {
        "histogram": queries.histogram,
        "frequencies": queries.frequencies,
        "transitions": queries.transitions,
        "most-common": queries.most_common,
    }
    if name in plain and not arguments:
        query = plain[name]()
    elif name in ("count", "time-per-day") and len(arguments) >= 1:
        of_state = queries.count if name == "count" else queries.time_per_day
        query = of_state(read_state(":".join(arguments), states))
    elif name == "top" and len(arguments) == 1 and arguments[0].isdecimal():
        query = queries.top(int(arguments[0]))
    elif name == "by-hour":
        query = queries.by_hour(begins=":".join(arguments) or None)
    elif name in ("mean", "sum") and len(arguments) == 2:
        build = queries.mean if name == "mean" else queries.sum
        query = build(exact_number(arguments[0]), exact_number(arguments[1]))
    else:
        raise InvalidInputError(f"Cannot read the query {text!r}; write one of: {QUERY_HELP}")
    return query if window is None else query.on(*read_window(window))


def read_window(text: str) -> tuple[int, int]:
    """Read `start:stop`, 1-based and inclusive.

    >>> read_window("3:9")
    (3, 9)
    """
    try:
        start, stop = (int(part) for part in text.split(":"))
    except ValueError:
        raise InvalidInputError(
            f"Cannot read the window {text!r}; write START:STOP, counted from 1 and inclusive."
        ) from None
    return start, stop


def read_states(text: str) -> tuple[Any, ...]:
    """Return states declared on the command line: rest,walk."""
    return tuple(read_state(name, None) for name in split_list(text))


def read_state(text: str, states: tuple[Label, ...] | None) -> Any:
    """Return the state of this name; without states, read it as a cell of a file is read."""
    if states is None:
        from quiltwork.series.reading.values import as_labels

        return as_labels([text], apart=True)[0]
    matching = {str(state): state for state in states}
    if text not in matching:
        raise InvalidInputError(
            f"{text!r} is not a state of the belief; its states are {', '.join(matching)}."
        )
    return matching[text]
