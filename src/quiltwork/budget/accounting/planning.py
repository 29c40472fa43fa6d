"""`plan`: the noise with which a list of queries spends exactly the budget.

All queries get noise of one common scale, or in given proportions. The joint cost falls as the
scale rises, and the plan takes the scale at which it meets the budget. For comparison it shows the
noise of splitting the budget evenly, each release calibrated alone; with a δ, noise is Gaussian and
the comparison is with geometric noise.

Theorem: docs/theory/sweep.md, docs/theory/f-sweep.md (no filter on what was reached)
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
from quiltwork.budget.accounting.caps import GaussianBudget
from quiltwork.budget.accounting.expected_errors import (
    expected_error,
    expected_gaussian_error,
    signal_range,
)
from quiltwork.budget.accounting.gaussian_account import GaussianAccount, format_share
from quiltwork.budget.accounting.headroom import epsilon_alone, planned_spending, smallest_scales
from quiltwork.budget.accounting.release_plan import PlannedRelease, ReleasePlan
from quiltwork.budget.accounting.schedule import Planned, as_planned
from quiltwork.budget.accounting.theorems import shape_of
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    privacy_level,
    proper_fraction,
    to_fraction,
)
from quiltwork.influence.belief_bound import CalibrationProblem
from quiltwork.influence.calibration_arguments import check_states
from quiltwork.queries import Query, Sum
from quiltwork.queries.numbers import of_numbers

_PRICED_WINDOWS = 5
"""So many windows of one length are priced at either end, and about as many in between."""
_SMALLEST_FACTOR = Fraction(1, 10**24)


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
        budget: the most that everything may cost together.
        queries: from `qw.queries` on their windows, or `Planned` ones from `repeated` and
            `calendar`, with weights.
        spent: releases made before, which count too.
        episode: how many time points in a row are one secret.
        pairs: the pairs of values that are kept apart, as in `calibrate`; all by default.
        delta: plan Gaussian noise: the probability δ left for exceeding the budget.
        pure: with `delta`, a share for pure levels that is kept beside it, as in `Accountant`.

    Raises:
        BudgetExceeded: if the releases made before leave nothing.
        InvalidInputError: for invalid queries or windows.
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
    before = [as_spending(release) for release in listed(spent, "spent")]
    planned = as_planned(queries)
    if to_fraction(delta, "delta"):
        if pairs is not None:
            raise UnsupportedError("A plan with delta keeps all values apart; leave pairs out.")
        secrets = Secrets.read(beliefs, length, episode, pairs)
        limit = privacy_level(budget, "budget")
        claim = GaussianBudget.compute(
            secrets,
            limit,
            proper_fraction(delta, "delta"),
            to_fraction(pure, "pure"),
            is_final=True,
        )
        return _gaussian_plan(secrets, limit, claim, planned, before)
    if to_fraction(pure, "pure"):
        raise InvalidInputError("pure is a share beside Gaussian noise; it goes with delta.")
    return _pure_plan(Accountant(beliefs, length, budget, episode, pairs), planned, before)


def _pure_plan(
    account: Accountant, queries: Sequence[Planned], before: Sequence[Spending]
) -> ReleasePlan:
    """Plan geometric noise for a pure ε."""
    account.record(*before)
    planned = _as_released(queries, account.beliefs)
    limit = account.budget or Fraction(0)
    weighted = [(release.query, release.weight) for release in planned]
    scales = smallest_scales(account.after(), limit, weighted, account.length)
    if not any(scales):
        raise _nothing_to_hide()
    spendings = [
        planned_spending(release.query, scale, account.length, release.label)
        for release, scale in zip(planned, scales, strict=True)
    ]
    levels = _levels_alone(spendings, account.secrets)
    naive_scales = _naive_scales(account, planned)
    items = tuple(
        PlannedRelease(
            planned=release,
            scale=scale,
            spending=spending,
            cost_alone=float_up(level),
            expected_error=expected_error(release.query, scale, account.length, account.states),
            signal_range=signal_range(release.query, account.length),
            naive_scale=naive,
            naive_error=expected_error(release.query, naive, account.length, account.states),
        )
        for release, scale, spending, level, naive in zip(
            planned, scales, spendings, levels, naive_scales, strict=True
        )
    )
    return ReleasePlan(items, limit, account.cost_after(*spendings), account.epsilon())


def _gaussian_plan(
    secrets: Secrets,
    limit: Fraction,
    claim: GaussianBudget,
    queries: Sequence[Planned],
    before: Sequence[Spending],
) -> ReleasePlan:
    """Plan Gaussian noise that fills the caps, beside geometric noise for the same ε if any."""
    account = GaussianAccount.empty(secrets, claim).plus(before)
    beliefs = [bound.belief for bound in secrets.bounds]
    planned = _as_released(queries, beliefs)
    scales, spendings = _gaussian_scales(account, planned)
    geometric: Sequence[PlannedRelease | None] = [None] * len(planned)
    if all(release.composes_by == "levels" for release in before):
        with suppress(BudgetExceeded):
            pure_account = Accountant(
                beliefs, secrets.length, limit, secrets.episode, secrets.pairs
            )
            geometric = _pure_plan(pure_account, queries, before).items
    items = tuple(
        PlannedRelease(
            planned=release,
            scale=scale,
            spending=spending,
            cost_alone=float_up(account.emptied().plus([spending]).used),
            expected_error=expected_gaussian_error(release.query, scale, secrets.length),
            signal_range=signal_range(release.query, secrets.length),
            naive_scale=math.inf if other is None else other.scale,
            naive_error=math.inf if other is None else other.expected_error,
        )
        for release, scale, spending, other in zip(
            planned, scales, spendings, geometric, strict=True
        )
    )
    return ReleasePlan(items, limit, float_up(limit), float_up(account.used), claim.delta)


def _gaussian_scales(
    account: GaussianAccount, planned: Sequence[Planned]
) -> tuple[list[float], list[Spending]]:
    """Return the least σ, in proportion to 1/weight, with which queries fit, and their spendings.

    Raises:
        BudgetExceeded: if nothing is left for them.
        UnsupportedError: for queries without Gaussian noise, and where nothing is secret.
    """
    length = account.secrets.length
    for release in planned:
        if release.query.mechanism == "exponential":
            raise UnsupportedError(
                f"A query of kind {release.query.kind!r} chooses a label by the exponential "
                "mechanism, which has no Gaussian noise; plan it without delta."
            )
    factor = account.times_more(
        planned_spending(release.query, 1 / release.weight, length, gaussian=True)
        for release in planned
    )
    if factor is None:
        raise _nothing_to_hide()
    if factor < _SMALLEST_FACTOR:
        raise BudgetExceeded(
            f"{format_share(account.used)} of the squares that a time point may spend is used: "
            "nothing is left for a release of any noise this package draws."
        )
    common, margin = 1 / math.sqrt(float_down(factor)) * (1 + 2.0**-50), 2.0**-40
    while True:  # the step of a grid of numbers is charged too, and depends on the noise
        scales = [float_up(Fraction(common) / release.weight) for release in planned]
        spendings = [
            planned_spending(release.query, scale, length, release.label, gaussian=True)
            for release, scale in zip(planned, scales, strict=True)
        ]
        if account.plus(spendings).fits():
            return scales, spendings
        common, margin = common * (1 + margin), 4 * margin


def _nothing_to_hide() -> UnsupportedError:
    return UnsupportedError(
        "Under these beliefs the queries have nothing to hide, so no noise is needed and "
        "there is nothing to plan."
    )


def _levels_alone(spendings: Sequence[Spending], secrets: Secrets) -> list[Fraction]:
    """Return for each release an epsilon at which it has at least its noise when made alone.

    Windows of one length differ near the ends of the series, and by the time of day. Of many some
    are priced, and the others get the least of these levels.
    """
    by_shape: dict[tuple[object, ...], list[int]] = {}
    for number, spending in sorted(enumerate(spendings), key=lambda numbered: numbered[1].start):
        by_shape.setdefault(shape_of(spending), []).append(number)
    levels = [Fraction(0)] * len(spendings)
    for numbers in by_shape.values():
        at_ends = {*numbers[:_PRICED_WINDOWS], *numbers[-_PRICED_WINDOWS:]}
        between = numbers[:: max(1, len(numbers) // _PRICED_WINDOWS)]
        priced = {
            number: epsilon_alone(secrets, spendings[number])
            for number in sorted(at_ends | set(between))
        }
        least = min(priced.values())
        for number in numbers:
            levels[number] = priced.get(number, least)
    return levels


def _as_released(planned: Sequence[Planned], beliefs: Sequence[Belief]) -> list[Planned]:
    """Return the queries as `release` answers them: under Gaussian beliefs rounded to a grid."""

    def as_released(query: Query) -> Query:
        if isinstance(query, Sum) and any(isinstance(belief, Gaussian) for belief in beliefs):
            return of_numbers(query)
        return check_states(query, beliefs) or query

    return [replace(release, query=as_released(release.query)) for release in planned]


def _naive_scales(account: Accountant, planned: Sequence[Planned]) -> list[float]:
    """Return the noise of each release calibrated alone, to an equal share of what is left.

    By quilts, since only their levels add up (Theorem 3.7). Of equal queries on windows of equal
    length, the one closest to the middle decides for all.
    """
    length = account.length
    share = (account.exact_remaining or Fraction(0)) / len(planned)
    bounds = [bound.by_quilts() for bound in account.secrets.bounds]
    central: dict[Query, Query] = {}
    for release in planned:
        shape = _moved_to_start(release.query, length)
        central[shape] = min(
            central.get(shape, release.query),
            release.query,
            key=lambda query: _off_centre(query, length),
        )

    def scale_alone(query: Query) -> float:
        problem = CalibrationProblem(query, length, range(1, length + 1))
        return float_up(max(bound.required_scale(problem, share).scale for bound in bounds))

    scales = {shape: scale_alone(query) for shape, query in central.items()}
    return [scales[_moved_to_start(release.query, length)] for release in planned]


def _moved_to_start(query: Query, length: int) -> Query:
    start, stop = query.window(length)
    if query.runs:
        return query.on_runs((a - start + 1, b - start + 1) for a, b in query.runs)
    return query.on(1, stop - start + 1)


def _off_centre(query: Query, length: int) -> int:
    return abs(sum(query.window(length)) - length)
