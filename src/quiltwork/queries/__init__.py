"""What may be asked of a sequence of states: `qw.queries.histogram()` and its siblings.

Each function returns a frozen query that knows how to answer in integers and how far that answer
moves when time points change (`docs/theory/query-sensitivity.md`). `query.on(start, stop)` asks
the same about a window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quiltwork.beliefs.states import Label, list_states
from quiltwork.exact import Number
from quiltwork.queries.cells import Count, Frequencies, Histogram, MostCommon, Top, Transitions
from quiltwork.queries.custom import CustomQuery, Function
from quiltwork.queries.days import ByHour, TimePerDay
from quiltwork.queries.document import from_document, to_document
from quiltwork.queries.lipschitz import Violation, check_lipschitz
from quiltwork.queries.numbers import Mean, Sum
from quiltwork.queries.query import Query

__all__ = [
    "ByHour",
    "Count",
    "CustomQuery",
    "Frequencies",
    "Histogram",
    "Mean",
    "MostCommon",
    "Query",
    "Sum",
    "TimePerDay",
    "Top",
    "Transitions",
    "Violation",
    "by_hour",
    "check_lipschitz",
    "count",
    "custom",
    "frequencies",
    "from_document",
    "histogram",
    "mean",
    "most_common",
    "sum",
    "time_per_day",
    "to_document",
    "top",
    "transitions",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def count(state: Any) -> Count:
    """How many time points are in `state`.

    >>> int(count("walk").change(4, 6, 100))
    3
    """
    return Count(state=state)


def histogram(states: Iterable[Any] | None = None) -> Histogram:
    """How many time points are in each state.

    Args:
        states: the cells, where the belief does not name them (`Clusters`); must be public. Rows
            with other values are then counted in no cell.

    >>> int(histogram().change(4, 6, 100))
    6
    """
    return Histogram(states=_listed(states))


def frequencies(states: Iterable[Any] | None = None) -> Frequencies:
    """The share of time points in each state; arguments as for `histogram`."""
    return Frequencies(states=_listed(states))


def transitions(states: Iterable[Any] | None = None) -> Transitions:
    """How often each state follows each; arguments as for `histogram`.

    n neighbouring points touch n+1 pairs, which change by 2 each.

    >>> [int(transitions().change(4, 3 + n, 100)) for n in (1, 2, 3)]
    [4, 6, 8]
    """
    return Transitions(states=_listed(states))


def most_common(states: Iterable[Any] | None = None) -> MostCommon:
    """The state with the most time points; arguments as for `histogram`."""
    return MostCommon(states=_listed(states))


def top(k: int, states: Iterable[Any] | None = None) -> Top:
    """The `k` states with the most time points, and how many those are.

    Costs what a histogram costs. Intervals hold though the states were chosen by their numbers.

    >>> int(top(3).change(4, 6, 100))
    6
    """
    return Top(k=k, states=_listed(states))


def by_hour(
    step: str | int | None = None,
    begins: str | int | None = None,
    states: Iterable[Any] | None = None,
) -> ByHour:
    """How many time points are in each state in each hour of the day: a row per hour.

    Args:
        step: from one time point to the next, at most an hour: "10min", or seconds. Left out, it
            is the belief's.
        begins: when the first time point of the series is: "06:30", or seconds after midnight.
            Left out, it is when the data are known to begin.
        states: as for `histogram`.

    >>> int(by_hour("10min", "06:30").change(4, 6, 100))
    6
    """
    return ByHour(step=step, begins=begins, states=_listed(states))  # type: ignore[arg-type]


def time_per_day(state: Any) -> TimePerDay:
    """How many hours of a day are spent in `state`, on average over all days.

    >>> time_per_day("walk").grid(48)[1]
    Fraction(1, 2)
    """
    return TimePerDay(state=state)


def mean(lo: Number, hi: Number, clip: bool = False) -> Mean:
    """The mean of numeric states, or of numbers, between the public bounds lo and hi.

    Where the states do not fill the bounds, noise is made for their own range. Numbers that are no
    states need a Gaussian belief, and are moved between the bounds.

    Args:
        lo: the smallest value a time point may have.
        hi: the largest.
        clip: move states outside to the nearer bound; otherwise they are refused. Rows of beliefs
            without states (`Clusters`) are always moved: a refusal would tell about them.
    """
    return Mean(lo=lo, hi=hi, clip=clip)  # type: ignore[arg-type]  # read exactly by the query


def sum(lo: Number, hi: Number, clip: bool = False) -> Sum:
    """The sum of numeric states between the public bounds lo and hi, as for `mean`."""
    return Sum(lo=lo, hi=hi, clip=clip)  # type: ignore[arg-type]  # read exactly by the query


def custom(
    function: Function,
    lipschitz: Number,
    cells: Iterable[Any] | None = None,
    name: str | None = None,
) -> CustomQuery:
    """Any function of the array of labels, with a declared Lipschitz constant.

    Args:
        function: takes the window's labels as a NumPy array and returns a number between −1e300
            and 1e300, or as many as there are cells; must answer every sequence. Where a ledger
            pays, a failure counts as 0: an error would tell about the data.
        lipschitz: the most, in L1, that the answer moves when one time point changes. The
            guarantee rests on it; try `check_lipschitz`.
        cells: names of the numbers, if there are several.
        name: how the query is called in documents; by default the function's own name.

    >>> switches = custom(lambda x: (x[1:] != x[:-1]).sum(), lipschitz=2, name="switches")
    >>> switches.step
    Fraction(1, 32768)
    """
    called = name if name is not None else str(getattr(function, "__name__", "custom"))
    return CustomQuery(function=function, lipschitz=lipschitz, labels=_listed(cells), name=called)  # type: ignore[arg-type]


def _listed(labels: Iterable[Any] | None) -> tuple[Label, ...] | None:
    return None if labels is None else list_states(labels)
