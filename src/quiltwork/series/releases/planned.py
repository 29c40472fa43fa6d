"""A release whose noise was fixed, and paid for, before its data were there.

`plan` finds the noise of many releases at once and a ledger is debited for all of them; each is
drawn later, when its window has arrived, from the series as long as it is then.

Theorem: docs/theory/query-sensitivity.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, positive_fraction
from quiltwork.noise import TwoSidedGeometric
from quiltwork.queries import Count, Frequencies, Histogram, MostCommon, Query, Transitions
from quiltwork.series.releases.answer import _answered, _record
from quiltwork.series.releases.data import (
    asked_of,
    encode_cells,
    period_of,
    public_states,
    read_source,
)
from quiltwork.series.releases.plan import make_plan
from quiltwork.series.releases.protection import read_protection
from quiltwork.series.releases.record import Release

PLANNED = (Count, Histogram, Frequencies, Transitions, MostCommon)
"""Queries whose integers are counts: their noise does not depend on a grid."""


def check_planned(query: Query) -> Query:
    """Return a query that can be paid for ahead."""
    if not isinstance(query, PLANNED):
        raise UnsupportedError(
            f"A {query.kind} cannot be planned ahead; counts, histograms, frequencies, transitions "
            "and most common states can."
        )
    return query


def release_planned(
    data: Any,
    query: Query,
    beliefs: Belief | Sequence[Belief],
    paid: Spending,
    scale: Number,
    epsilon: Number,
    dataset: str | None = None,
    episode: int = 1,
) -> Release:
    """Draw the answer of a planned release with the noise that was paid for.

    Args:
        data: the series so far; it must reach to the end of the query's window.
        query: on its window.
        beliefs: those of the ledger's dataset.
        paid: what was debited.
        scale: of the noise, as planned.
        epsilon: what the release costs alone, as planned.
        dataset: the ledger's name for the data.
        episode: how many time points in a row are one secret.
    """
    members = as_beliefs(beliefs)
    asked = asked_of(check_planned(query), members)
    states = public_states(members, asked)
    source = read_source(data, members, states)
    level = positive_fraction(epsilon, "epsilon")
    protection = read_protection(None, None, None, episode, members)
    plan = make_plan(asked, members, source.lengths, level, protection)
    plan = replace(plan, law=TwoSidedGeometric.from_scale(positive_fraction(scale, "scale")))
    unanswered = _record(plan, members, states or (), level, None, dataset)
    if _levels(unanswered.spending) != _levels(paid):
        raise InvalidInputError("What was paid for is not what would be drawn; nothing was drawn.")
    series = encode_cells(source, members, asked, quietly=True)
    dated = replace(unanswered, period=period_of(source, plan.query))
    told = series.answers([plan.query] * len(source.given), quietly=True)
    return _answered(dated, plan, told, states or ())


def _levels(spending: Spending) -> tuple[int, int, Fraction, Fraction, Fraction]:
    return (
        spending.start,
        spending.stop,
        spending.per_point,
        spending.per_pair,
        spending.once,
    )
