"""Planning: the noise with which a list of queries spends exactly the budget.

All queries get noise of one common scale, or in given proportions. The joint cost rises as the
scale falls, and the plan takes the scale at which it meets the budget. Splitting the budget
evenly, each release calibrated on its own, is shown beside it.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, Gaussian, Label
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.limits import least_scales, planned_spending
from quiltwork.budget.accounting.release_plan import PlannedRelease, ReleasePlan
from quiltwork.budget.accounting.schedule import Planned, as_planned
from quiltwork.budget.accounting.theorems import singles
from quiltwork.budget.spending import HasSpending, Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up
from quiltwork.influence.calibration_arguments import check_states
from quiltwork.influence.problem import CalibrationProblem
from quiltwork.noise import TwoSidedGeometric
from quiltwork.noise.exponential import expected_shortfall
from quiltwork.queries import Histogram, MostCommon, Query, Sum, Transitions
from quiltwork.queries.numbers import of_numbers

if TYPE_CHECKING:
    pass


def plan(
    beliefs: Belief | Sequence[Belief],
    *,
    length: int | None = None,
    budget: Number,
    queries: Iterable[Query | Planned],
    spent: Iterable[HasSpending | Spending] = (),
    episode: int = 1,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> ReleasePlan:
    """Find the noise with which all queries together cost exactly the budget.

    Args:
        beliefs: one belief or a list.
        length: the number of time points; None for beliefs about fixed rows.
        budget: what everything may cost together.
        queries: from `qw.queries` on their windows, or `Planned` ones from `repeated` and
            `calendar`, with weights.
        spent: releases made before, which count too.
        episode: how many time points in a row are one secret.
        pairs: the pairs of values that are kept apart, as in `calibrate`; all by default.

    Raises:
        BudgetExceeded: if what was spent before leaves nothing.
        InvalidInputError: for queries or windows that make no sense.

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> ten = plan(chain, length=100, budget=1, queries=[queries.count(1)] * 10)
    >>> round(ten.items[0].scale, 1), round(ten.items[0].naive_scale, 1), round(ten.total, 9)
    (33.4, 210.5, 1.0)
    """
    account = Accountant(beliefs, length, budget, episode, pairs)
    account.record(*listed(spent, "spent"))
    planned = [
        replace(one, query=_as_asked(one.query, account.beliefs)) for one in as_planned(queries)
    ]
    limit = account.budget or Fraction(0)
    asked = [(one.query, one.weight) for one in planned]
    scales = least_scales(account.after(), limit, asked, account.length)
    if not any(scales):
        raise UnsupportedError(
            "Under these beliefs the queries have nothing to hide, so no noise is needed and "
            "there is nothing to plan."
        )
    spendings = [
        planned_spending(one.query, scale, account.length, one.label)
        for one, scale in zip(planned, scales, strict=True)
    ]
    alone = singles(spendings, account.secrets)
    naive = _naive_scales(account, planned)
    columns = zip(planned, scales, spendings, alone, naive, strict=True)
    items = tuple(_item(account, *column) for column in columns)
    return ReleasePlan(items, limit, account.cost_after(*spendings), account.epsilon())


def _as_asked(query: Query, beliefs: Sequence[Belief]) -> Query:
    """A query as it is released under these beliefs: numbers are rounded to a grid."""
    if isinstance(query, Sum) and any(isinstance(one, Gaussian) for one in beliefs):
        return of_numbers(query)
    return check_states(query, beliefs) or query


def _item(
    account: Accountant,
    planned: Planned,
    scale: float,
    spending: Spending,
    alone: Fraction,
    naive: float,
) -> PlannedRelease:
    query, states = planned.query, account.states
    return PlannedRelease(
        planned=planned,
        scale=scale,
        spending=spending,
        cost_alone=float_up(alone),
        expected_error=expected_error(query, scale, account.length, states),
        signal_range=signal_range(query, account.length),
        naive_scale=naive,
        naive_error=expected_error(query, naive, account.length, states),
    )


def _naive_scales(account: Accountant, planned: Sequence[Planned]) -> list[float]:
    """Each release calibrated alone, to an equal share of what is left.

    By quilts, since only their levels add up (Theorem 3.7). Of equal queries on windows of equal
    length, the one closest to the middle decides for all.
    """
    share = (account.exact_remaining or Fraction(0)) / len(planned)
    bounds = [one.by_quilts() for one in account.secrets.bounds]
    central: dict[Query, Query] = {}
    for one in planned:
        shape = _shape(one.query, account.length)
        central[shape] = min(
            central.get(shape, one.query), one.query, key=lambda q: _off_centre(q, account.length)
        )

    def alone(query: Query) -> float:
        asked = _problem(account, query)
        return float_up(max(one.required_scale(asked, share).scale for one in bounds))

    scales = {shape: alone(query) for shape, query in central.items()}
    return [scales[_shape(one.query, account.length)] for one in planned]


def _problem(account: Accountant, query: Query) -> CalibrationProblem:
    return CalibrationProblem(query, account.length, range(1, account.length + 1))


def _shape(query: Query, length: int) -> Query:
    start, stop = query.window(length)
    if query.runs:
        return query.on_runs((a - start + 1, b - start + 1) for a, b in query.runs)
    return query.on(1, stop - start + 1)


def _off_centre(query: Query, length: int) -> int:
    return abs(sum(query.window(length)) - length)


def expected_error(
    query: Query, scale: float, length: int, states: tuple[Label, ...] | None
) -> float:
    """The expected absolute error of one cell, in units of the answer.

    For the most common state, a bound on how far its count lies below the largest on average. A
    sum or mean is put on a grid so fine that its noise is as good as continuous.
    """
    unit = _unit(query, length)
    if isinstance(query, MostCommon):
        known = query.states or states
        if known is None:
            raise InvalidInputError("Name the states of the query: most_common(states=[…]).")
        return expected_shortfall(Fraction(scale), len(known))
    if isinstance(query, Sum):
        return float_up(Fraction(scale) * unit)
    return float_up(Fraction(TwoSidedGeometric.from_scale(scale).expected_absolute) * unit)


def signal_range(query: Query, length: int) -> float:
    """How much one cell of the answer can vary over all sequences, in units of the answer."""
    start, stop = query.window(length)
    if isinstance(query, Histogram | MostCommon):
        steps = query.points(length)
    elif isinstance(query, Transitions):
        steps = stop - start
    else:
        steps = int(query.change(start, stop, length))
    return float_up(steps * _unit(query, length))


def _unit(query: Query, length: int) -> Fraction:
    return query.grid(query.points(length))[1]
