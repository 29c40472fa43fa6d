"""Options shared by the time-series commands: how a file becomes sequences, what is asked of it.

On the command line a question is data: a named query with its arguments, never code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
    """How a file is to be read as a series, as it was typed; `read` reads it."""

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
        "Tells subjects apart: house,meter, or filename; each is a sequence independent of the "
        "others.",
        "COLUMNS",
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
    delimiter: str | None = option("Between cells: ; or tab.  [found]", "CHARACTER")
    decimal: str | None = option("Decimal point.  [found]", kind=(".", ","))
    encoding: str | None = encoding_option
    na_values: str | None = option("Further words for missing: -,n.d.", "LIST", names="--na")
    date_format: str | None = option(
        "Of times: %d.%m.%Y %H:%M; or what whole numbers count: seconds, minutes, hours, days.  "
        "[found]",
        "FORMAT",
    )

    def completed(self, beliefs: Sequence[str], file: str) -> Reading:
        """Take what was not typed as the files of beliefs keep it, and say so.

        A column that is not in the file is left open: the belief may be about others' data.
        """
        kept = _kept_reading(beliefs)
        if file == "-" or (self.value is None and kept.get("value") not in _columns(file)):
            kept.pop("value", None)
        if self.time is None:
            kept.pop("timezone", None)
        taken = {name: said for name, said in kept.items() if getattr(self, name) is None}
        if taken:
            named = ", ".join(f"--{name} {said}" for name, said in taken.items())
            note(f"As the belief's file says: {named}.")
        return replace(self, **taken)


_KEPT = ("value", "timezone")
"""How data are read that a belief's file keeps beside the belief, whose grid has the rest."""


def with_reading(document: str, reading: Reading) -> str:
    """Return the document of beliefs with how their data were read, which is no part of them."""
    kept = {name: getattr(reading, name) for name in _KEPT if getattr(reading, name) is not None}
    if not kept:
        return document
    return json.dumps({**json.loads(document), "reading": kept}, sort_keys=True, ensure_ascii=False)


def _kept_reading(paths: Sequence[str]) -> dict[str, str]:
    """Return what all of some files of beliefs keep, where none of them says otherwise."""
    found: dict[str, set[str]] = {}
    for path in paths:
        kept = files.parse(_belief_document(path)).get("reading", {})
        for name in _KEPT if isinstance(kept, dict) else ():
            if isinstance(kept.get(name), str):
                found.setdefault(name, set()).add(kept[name])
    return {name: said.pop() for name, said in found.items() if len(said) == 1}


def _columns(file: str) -> list[str]:
    from quiltwork.series.reading.columns import header_of

    try:
        return header_of(file, None)
    except (QuiltworkError, OSError):
        return []  # whoever reads it says why


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
    """Read the file as was typed, on the beliefs' grid; `states` are those declared.

    It is read by `take`, if given. Where a ledger pays, `check` sees first how the file is to be
    read, and how it was found to be written is not told: that is about rows.
    """
    from quiltwork.series import read_fleet, read_series
    from quiltwork.series.reading.columns import only_column, refuse_headerless

    arguments: dict[str, Any] = {**vars(reading), "states": states}
    asked = (reading.time, reading.duration, reading.end, reading.subject)
    beside = [name for name in asked if name not in (None, "filename")]
    known = [state for belief in beliefs for state in belief.states or ()]
    column = arguments.pop("value") or only_column(file, beside, [*known, *(states or ())])
    for name in ("subject", "na_values", "edges", "labels"):
        if arguments[name] is not None:
            arguments[name] = split_list(arguments[name])
    if reading.timezone == "none":  # typed, it wins over one that is kept
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
    """Return a file of beliefs whole, read once per command: a pipe has nothing left after that."""
    documents = click.get_current_context().meta.setdefault("quiltwork.belief_documents", {})
    if path not in documents:
        documents[path] = files.read_bytes(path)
    return bytes(documents[path])


def read_beliefs(paths: tuple[str, ...]) -> tuple[Belief, ...]:
    """Read belief files; several, or a file with several, make a finite set."""
    from quiltwork.beliefs import as_beliefs, beliefs_from_json

    if not paths:
        raise click.UsageError("Give what an adversary may believe: --belief belief.json")
    return as_beliefs([one for path in paths for one in beliefs_from_json(_belief_document(path))])


pairs_option = option(
    "Keep only these values of a time point apart, as home:away,home:abroad, with the names of the "
    "belief's states.  [default: all]",
    "A:B,…",
)
"""Which values are kept apart; `read_pairs` reads it."""


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
    for written in split_list(text):
        splits = [(written[:at], written[at + 1 :]) for at, c in enumerate(written) if c == ":"]
        named = [(states[a], states[b]) for a, b in splits if a in states and b in states]
        if len(named) != 1:
            raise click.UsageError(
                f"--pairs has {written!r}, which is not two states of the belief as A:B; there "
                f"are {', '.join(states) or 'none'}"
            )
        pairs += named
    return pairs


def step_lines(beliefs: Sequence[Belief]) -> list[str]:
    """Say what a time point is, where a belief knows it."""
    from quiltwork.beliefs.grids import duration

    steps = {belief.grid.step for belief in beliefs if belief.grid is not None} - {None}
    return [f"A time point is a step of {duration(step)}." for step in steps if step is not None]


protect_option = option(
    "Who is protected: each moment, each person with the whole series, or stretches as long as "
    "this, whatever happens in them: 3h where the step is known, or a number of time points.  "
    "[default: moment]",
    "moment|person|DURATION|N",
)
"""How long a secret is; `read_episode` reads it."""


def read_episode(text: str | None, beliefs: Sequence[Belief], every: str | None = None) -> int:
    """Read how many time points in a row are one secret: a number, or a duration in steps.

    A duration that is no whole number of steps is rounded up.

    Raises:
        InvalidInputError: for anything else, and for a duration where no step is known.

    >>> read_episode("18", []), read_episode("3h", [], every="10min"), read_episode(None, [])
    (18, 18, 1)
    """
    from quiltwork.beliefs.grids import seconds_of

    if text is None or text == "moment":
        return 1
    if text == "person":
        raise InvalidInputError(
            "--protect person is for releases, and for a ledger made with --people; here give a "
            "duration, or a number of time points."
        )
    if text.strip().isdecimal():
        return integer(int(text), "--protect", 1)
    seconds = seconds_of(text)
    steps = {belief.grid.step for belief in beliefs if belief.grid is not None} - {None}
    if every is not None:
        steps = {seconds_of(every)}
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
    return tuple(read_state(one, None) for one in split_list(text))


def read_state(text: str, states: tuple[Label, ...] | None) -> Any:
    """Return the state of this name; without states, as the rows of a file are read."""
    if states is None:
        from quiltwork.series.reading.values import as_labels

        return as_labels([text], apart=True)[0]  # as the rows are read
    matching = {str(state): state for state in states}
    if text not in matching:
        raise InvalidInputError(
            f"{text!r} is not a state of the belief; its states are {', '.join(matching)}."
        )
    return matching[text]
