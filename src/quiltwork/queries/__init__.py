"""Queries on a sequence of states: `qw.queries.histogram()` and its siblings.

Each function returns a frozen query with an integer answer and a declared sensitivity
(`docs/theory/query-sensitivity.md`). `query.on(start, stop)` is the same query on a window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quiltwork.beliefs.states import Label, distinct_labels
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
    """Return the query for the number of time points in `state`; L1 sensitivity 1.

    >>> int(count("walk").l1_sensitivity(4, 6, 100))
    3
    """
    return Count(state=state)


def histogram(states: Iterable[Any] | None = None) -> Histogram:
    """Return the query for the number of time points in each state; L1 sensitivity 2.

    Args:
        states: the cells, where the belief has no states (`Clusters`); they must be public. Rows
            with other values are counted in no cell.

    >>> int(histogram().l1_sensitivity(4, 6, 100))
    6
    """
    return Histogram(states=_listed(states))


def frequencies(states: Iterable[Any] | None = None) -> Frequencies:
    """Return the query for the share of time points in each state; arguments as for `histogram`.

    >>> frequencies().grid(100)[1]
    Fraction(1, 100)
    """
    return Frequencies(states=_listed(states))


def transitions(states: Iterable[Any] | None = None) -> Transitions:
    """Return the query for transition counts: how often each state follows each other one.

    Arguments as for `histogram`. n neighbouring time points are in n+1 pairs, of sensitivity 2.

    >>> [int(transitions().l1_sensitivity(4, 3 + n, 100)) for n in (1, 2, 3)]
    [4, 6, 8]
    """
    return Transitions(states=_listed(states))


def most_common(states: Iterable[Any] | None = None) -> MostCommon:
    """Return the query for the state with the most time points; arguments as for `histogram`.

    >>> most_common().mechanism
    'exponential'
    """
    return MostCommon(states=_listed(states))


def top(k: int, states: Iterable[Any] | None = None) -> Top:
    """Return the query for the `k` states with the most time points, with their counts.

    It needs the noise of a histogram. Intervals account for the selection by noisy counts.

    >>> int(top(3).l1_sensitivity(4, 6, 100))
    6
    """
    return Top(k=k, states=_listed(states))


def by_hour(
    step: str | int | None = None,
    begins: str | int | None = None,
    states: Iterable[Any] | None = None,
) -> ByHour:
    """Return the query for a histogram per hour of the day: a row per hour.

    Args:
        step: the length of a step, at most an hour: "10min", or seconds; by default the belief's.
        begins: the time of the series' first time point: "06:30", or seconds after midnight; by
            default that of the data.
        states: as for `histogram`.

    >>> int(by_hour("10min", "06:30").l1_sensitivity(4, 6, 100))
    6
    """
    return ByHour(step=step, begins=begins, states=_listed(states))  # type: ignore[arg-type]


def time_per_day(state: Any) -> TimePerDay:
    """Return the query for the mean number of hours per day in `state`.

    >>> time_per_day("walk").grid(48)[1]
    Fraction(1, 2)
    """
    return TimePerDay(state=state)


def mean(lo: Number, hi: Number, clip: bool = False) -> Mean:
    """Return the query for the mean of numeric states, or of numbers, between public bounds.

    Where the states have a smaller range than the bounds, noise is calibrated to that range.
    Numbers that are not states need a Gaussian belief, and are clipped to the bounds.

    Args:
        lo: the smallest value a time point may have.
        hi: the largest.
        clip: clip states to the bounds; otherwise states outside are refused. Rows of beliefs
            without states (`Clusters`) are always clipped: a refusal would leak.

    >>> int(mean(0, 10).l1_sensitivity(4, 6, 100))
    3
    """
    return Mean(lo=lo, hi=hi, clip=clip)  # type: ignore[arg-type]  # read exactly by the query


def sum(lo: Number, hi: Number, clip: bool = False) -> Sum:
    """Return the query for the sum of numeric states between public bounds; arguments as `mean`.

    >>> sum(0, 10).narrowed((2, 5)).span
    Fraction(3, 1)
    """
    return Sum(lo=lo, hi=hi, clip=clip)  # type: ignore[arg-type]  # read exactly by the query


def custom(
    function: Function,
    lipschitz: Number,
    cells: Iterable[Any] | None = None,
    name: str | None = None,
    version: str | None = None,
) -> CustomQuery:
    """Return a query for any function of the array of labels, with a declared Lipschitz constant.

    Args:
        function: takes the window's labels as a NumPy array and returns a number between −1e300
            and 1e300, or one per cell, for every sequence. Where a ledger pays, a failure counts
            as 0: an error would leak.
        lipschitz: the L1 sensitivity to one time point. The guarantee rests on it; search for a
            counterexample with `check_lipschitz`.
        cells: names of the numbers, if there are several.
        name: the name of the query in documents; by default the function's own.
        version: identifies the function under a ledger's idempotency key, which needs it: change
            it with the function, since a retry returns the answer stored under the key.

    >>> switches = custom(lambda x: (x[1:] != x[:-1]).sum(), lipschitz=2, name="switches")
    >>> switches.step
    Fraction(1, 32768)
    """
    return CustomQuery(
        function=function,
        lipschitz=lipschitz,  # type: ignore[arg-type]  # read exactly by the query
        labels=_listed(cells),
        name=name if name is not None else str(getattr(function, "__name__", "custom")),
        version=version,
    )


def _listed(labels: Iterable[Any] | None) -> tuple[Label, ...] | None:
    return None if labels is None else distinct_labels(labels)
