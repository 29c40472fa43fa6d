"""Where a report says that the algorithm gives nothing away, nothing is ruled out by running it.

For small tables every assignment of sensitive values that fits the published table is tried: the
algorithm makes the table again from it, and those that give another table are ruled out.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from quiltwork.errors import QuiltworkError
from quiltwork.tables import (
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    Table,
    TCloseness,
    anonymize,
)
from quiltwork.tables.publication import Publication
from quiltwork.tables.risk import refused_cuts

NAME = "minimality"
CLAIM = "no assignment is ruled out where a report says that the algorithm gives nothing away"

CONSTRAINTS = (
    KAnonymity(2) & LDiversity(2),
    LDiversity(2),
    KAnonymity(3) & LDiversity(2),
    EntropyLDiversity(1.5),
    RecursiveLDiversity(2, 2),
    KAnonymity(2) & TCloseness(0.4),
    KAnonymity(2),
)
MOST_WAYS = 100

Make = Callable[[pd.DataFrame], Publication]


def ways(published: Publication) -> Iterator[np.ndarray]:
    """Give every assignment of sensitive values with each group's values as published."""
    ill = published.source.frame["ill"].to_numpy(dtype=object)
    groups = [published.rows[published.labels == g] for g in range(published.boxes.count)]
    for way in itertools.product(*(sorted(set(itertools.permutations(ill[g]))) for g in groups)):
        values = ill.copy()
        for rows, taken in zip(groups, way, strict=True):
            values[rows] = taken
        yield values


def number_of_ways(published: Publication) -> int:
    ill = published.source.frame["ill"].to_numpy(dtype=object)
    counts = [
        Counter(ill[published.rows[published.labels == g]]) for g in range(len(published.groups))
    ]
    return math.prod(
        math.factorial(count.total()) // math.prod(map(math.factorial, count.values()))
        for count in counts
    )


def consistent(published: Publication, make: Make) -> list[np.ndarray]:
    """Return the assignments from which the algorithm makes this very table."""
    shown, found = _rows(published), []
    for values in ways(published):
        try:
            again = make(published.source.frame.assign(ill=values))
        except QuiltworkError:  # of these values it would have made no table
            continue
        if _rows(again) == shown:
            found.append(values)
    return found


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(2007)
    told = {"nothing given away": 0, "some ruled out": 0, "of these not called unexplained": 0}
    done = 0
    while done < cases:
        make, published = _case(rng, done)
        if published is None or number_of_ways(published) > MOST_WAYS:
            continue
        left = consistent(published, make)
        ruled_out = len(left) < number_of_ways(published)
        found = refused_cuts(published)
        assert not (found.nothing and ruled_out), published.source.frame
        assert not (found.nothing and found.groups)
        told["nothing given away"] += found.nothing
        told["some ruled out"] += ruled_out
        told["of these not called unexplained"] += ruled_out and not found.groups
        done += 1
        progress(done, cases)
    return {"cases": cases, **told, "wrong": 0}


def _case(rng: np.random.Generator, number: int) -> tuple[Make, Publication | None]:
    """Draw a table and choices; every other one without colluding providers and exchanges."""
    rows = int(rng.integers(4, 10))
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 6, rows),
            "pay": rng.integers(0, 4, rows),
            "who": rng.choice([*"xy"], rows),
            "ill": rng.choice([*"abc"], rows, p=[0.5, 0.3, 0.2]),
        }
    )
    plain = bool(rng.integers(2))
    constraint = CONSTRAINTS[number % len(CONSTRAINTS)]
    choices = {
        "m": 0 if plain else int(rng.integers(2)),
        "method": str(rng.choice(["baseline", "provider-aware", "separate"])),
        "split": str(rng.choice(["range", "loss"] if plain else ["range", "loss", "fitness"])),
        "relaxed": not plain and bool(rng.integers(2)),
        "quality": not plain and bool(rng.integers(3) == 0),
    }
    owner = None if plain else "who"

    def make(given: pd.DataFrame) -> Publication:
        return anonymize(Table(given, owner, ["age", "pay"], "ill"), constraint, **choices)

    try:
        return make, make(frame)
    except QuiltworkError:
        return make, None


def _rows(published: Publication) -> list[tuple]:
    return list(published.frame.itertuples(index=False, name=None))


def run(progress: Callable[[int, int], None]) -> dict:
    return check(400, progress)
