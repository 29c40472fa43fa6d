"""Planning: the noise with which a list of queries spends exactly the budget.

All queries get noise of one common scale, or in given proportions. The joint cost rises as the
scale falls, and the plan takes the scale at which it meets the budget. Splitting the budget
evenly, each release calibrated on its own, is shown beside it.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, Gaussian, Label
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.expected_errors import (
    expected_error,
    expected_gaussian_error,
    signal_range,
)
from quiltwork.budget.accounting.gaussian_account import GaussianAccount, Room
from quiltwork.budget.accounting.gaussian_planning import gaussian_scales
from quiltwork.budget.accounting.limits import least_scales, level_alone, planned_spending
from quiltwork.budget.accounting.release_plan import PlannedRelease, ReleasePlan
from quiltwork.budget.accounting.schedule import Planned, as_planned
from quiltwork.budget.accounting.theorems import shape_of
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, privacy_level, proper_fraction, to_fraction
from quiltwork.influence.belief_bound import CalibrationProblem
from quiltwork.influence.calibration_arguments import check_states
from quiltwork.queries import Query, Sum
from quiltwork.queries.numbers import of_numbers

_PRICED = 5
"""So many windows of one length are priced at either end, and about as many in between."""


def plan(
    beliefs: Belief | Sequence[Belief],
    *,
    length: int | None = None,
    budget: Number,
    queries: Iterable[Query | Planned],
    spent: Iterable[HasSpending | Spending] = (),
    episode: int = 1,
    pairs: Iterable[tuple[Label, Label]] | None = None,
    delta: Number = 0,
    pure: Number = 0,
) -> ReleasePlan:
    """Find the noise with which all queries together cost exactly the budget.

    With a `delta` it is Gaussian noise for (ε, δ), beside geometric noise for the same ε: the plan
    says which of them is quieter, and by how much.

    Args:
        beliefs: one belief or a list.
        length: the number of time points; None for beliefs about fixed rows.
        budget: what everything may cost together.
        queries: from `qw.queries` on their windows, or `Planned` ones from `repeated` and
            `calendar`, with weights.
        spent: releases made before, which count too.
        episode: how many time points in a row are one secret.
        pairs: the pairs of values that are kept apart, as in `calibrate`; all by default.
        delta: plan Gaussian noise: the chance that is left for more than the budget.
        pure: with `delta`, a share for pure levels that is kept beside it, as in `Accountant`.

    Raises:
        BudgetExceeded: if what was spent before leaves nothing.
        InvalidInputError: for queries or windows that make no sense.
        UnsupportedError: with `delta` for queries that have no Gaussian noise, and for networks.

    Theorem: docs/theory/sweep.md, docs/theory/f-sweep.md

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> ten = plan(chain, length=100, budget=1, queries=[queries.count(1)] * 10)
    >>> round(ten.items[0].scale, 1), round(ten.items[0].naive_scale, 1), round(ten.total, 9)
    (33.4, 210.5, 1.0)
    >>> many = plan(chain, length=100, budget=1, queries=[queries.count(1)] * 100, delta=1e-6)
    >>> many.quieter, round(many.gain, 1)
    ('gaussian', 3.0)
    """
    before = [as_spending(one) for one in listed(spent, "spent")]
    asked_for = as_planned(queries)
    if to_fraction(delta, "delta"):
        if pairs is not None:
            raise UnsupportedError("A plan with delta keeps all values apart; leave pairs out.")
        given = (budget, proper_fraction(delta, "delta"), to_fraction(pure, "pure"))
        secrets = Secrets.read(beliefs, length, episode, pairs)
        return _gaussian_plan(secrets, given, asked_for, before)
    if to_fraction(pure, "pure"):
        raise InvalidInputError("pure is a share beside Gaussian noise; it goes with delta.")
    return _pure_plan(Accountant(beliefs, length, budget, episode, pairs), asked_for, before)


def _pure_plan(
    account: Accountant, asked_for: Sequence[Planned], before: Sequence[Spending]
) -> ReleasePlan:
    account.record(*before)
    planned = [replace(one, query=_as_asked(one.query, account.beliefs)) for one in asked_for]
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
    alone = _levels_alone(spendings, account.secrets)
    naive = _naive_scales(account, planned)
    columns = zip(planned, scales, spendings, alone, naive, strict=True)
    items = tuple(_item(account, *column) for column in columns)
    return ReleasePlan(items, limit, account.cost_after(*spendings), account.epsilon())


def _gaussian_plan(
    secrets: Secrets,
    given: tuple[Number, Fraction, Fraction],
    asked_for: Sequence[Planned],
    before: Sequence[Spending],
) -> ReleasePlan:
    """Gaussian noise that fills the caps, beside geometric noise for the same ε if there is any."""
    budget, delta, pure = given
    limit, beliefs = privacy_level(budget, "budget"), [one.belief for one in secrets.bounds]
    room = Room.of(secrets, limit, delta, pure)
    account = GaussianAccount.empty(secrets, room).plus(before)
    planned = [replace(one, query=_as_asked(one.query, beliefs)) for one in asked_for]
    scales, spendings = gaussian_scales(account, planned)
    geometric: Sequence[PlannedRelease | None] = [None] * len(planned)
    if all(one.composes_by == "levels" for one in before):
        with suppress(BudgetExceeded):
            pure_account = Accountant(
                beliefs, secrets.length, limit, secrets.episode, secrets.pairs
            )
            geometric = _pure_plan(pure_account, asked_for, before).items
    items = tuple(
        PlannedRelease(
            planned=one,
            scale=scale,
            spending=spending,
            cost_alone=float_up(account.nothing().plus([spending]).used),
            expected_error=expected_gaussian_error(one.query, scale, secrets.length),
            signal_range=signal_range(one.query, secrets.length),
            naive_scale=math.inf if beside is None else beside.scale,
            naive_error=math.inf if beside is None else beside.expected_error,
        )
        for one, scale, spending, beside in zip(planned, scales, spendings, geometric, strict=True)
    )
    used = float_up(account.used)
    return ReleasePlan(items, limit, float_up(limit), used, delta)


def _levels_alone(spendings: Sequence[Spending], secrets: Secrets) -> list[Fraction]:
    """The epsilon with which each release, if asked for alone, has no less than its noise.

    Windows of one length differ near the ends of the series, and by the time of day. Of many some
    are priced, and the others get the least of these levels.
    """
    shapes: dict[tuple[object, ...], list[int]] = {}
    for number, one in sorted(enumerate(spendings), key=lambda two: two[1].start):
        shapes.setdefault(shape_of(one), []).append(number)
    found = [Fraction(0)] * len(spendings)
    for numbers in shapes.values():
        ends = {*numbers[:_PRICED], *numbers[-_PRICED:]}
        priced = ends | set(numbers[:: max(1, len(numbers) // _PRICED)])
        levels = {number: level_alone(secrets, spendings[number]) for number in sorted(priced)}
        least = min(levels.values())
        for number in numbers:
            found[number] = levels.get(number, least)
    return found


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
