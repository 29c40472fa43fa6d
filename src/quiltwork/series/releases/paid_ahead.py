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
from quiltwork.series.releases.answer import prepared
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
    members, level = as_beliefs(beliefs), positive_fraction(epsilon, "epsilon")
    protection = read_protection(None, None, None, episode, members)
    found = prepared(data, check_planned(query), members, level, protection, paid=True)
    law = TwoSidedGeometric.from_scale(positive_fraction(scale, "scale"))
    found = replace(found, plan=replace(found.plan, law=law))
    unanswered = found.record(level, None, dataset)
    if _levels(unanswered.spending) != _levels(paid):
        raise InvalidInputError("What was paid for is not what would be drawn; nothing was drawn.")
    return found.drawn(unanswered, found.encoded())


def _levels(spending: Spending) -> tuple[int, int, Fraction, Fraction, Fraction]:
    return (
        spending.start,
        spending.stop,
        spending.per_point,
        spending.per_pair,
        spending.once,
    )
