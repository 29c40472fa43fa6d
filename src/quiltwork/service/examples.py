"""What an answer would look like: one about simulated data, which tells nothing of real ones."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from quiltwork.beliefs import Belief
from quiltwork.beliefs.coded import CodedSequences
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries import Query
from quiltwork.series.releases.answer import release
from quiltwork.series.releases.rehearsals import simulated
from quiltwork.service.releases import columns
from quiltwork.service.structs import Document

_MOST_POINTS = 100_000


class Example(Document, frozen=True):
    """An answer about data that were simulated from the belief, with its intervals."""

    cells: list[Any]
    values: list[Any]
    intervals: list[list[float]] | None


def example_of(
    data: CodedSequences,
    query: Query,
    beliefs: tuple[Belief, ...],
    epsilon: Fraction,
    episode: int,
) -> Example | None:
    """Answer a query about as many simulated series as there are, each as long.

    None where the beliefs cannot be simulated, or it would take long.
    """
    lengths = [len(one) for one in data.coded.values()]
    if sum(lengths) > _MOST_POINTS:
        return None
    try:
        made = [simulated(beliefs, length, seed) for seed, length in enumerate(lengths)]
        given = made[0] if len(made) == 1 else made
        drawn = release(given, query, beliefs, epsilon, episode=episode)
    except (InvalidInputError, UnsupportedError):
        return None
    return Example(*columns(drawn, json.loads(drawn.to_json()).get("intervals")))
