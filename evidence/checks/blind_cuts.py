"""Cuts without a look at sensitive values give nothing away, by trying every assignment of values.

For small tables every assignment of sensitive values that fits the published table is tried: the
algorithm makes the table again from it. Of a blind table all must come out the same; of others many
do not, which shows that the check would see it.
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
from quiltwork.tables.publishing.published_records import Publication

NAME = "blind_cuts"
CLAIM = "of a table that was cut blindly, every assignment of its values makes the same table"

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
    told = {"blind": 0, "of these with several assignments": 0, "others": 0}
    told["of others, with assignments ruled out"] = 0
    done = 0
    while done < cases:
        make, published = _case(rng, done)
        if published is None or number_of_ways(published) > MOST_WAYS:
            continue
        number = number_of_ways(published)
        ruled_out = len(consistent(published, make)) < number
        if published.recipe.blind:
            assert not ruled_out, published.source.frame
            told["blind"] += 1
            told["of these with several assignments"] += number > 1
        else:
            told["others"] += 1
            told["of others, with assignments ruled out"] += ruled_out
        done += 1
        progress(done, cases)
    return {"cases": cases, **told, "wrong": 0}


def _case(rng: np.random.Generator, number: int) -> tuple[Make, Publication | None]:
    """Draw a table and choices; every other one without colluding providers."""
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
    }
    owner = None if plain else "who"
    looks = choices["relaxed"] or choices["split"] == "fitness"
    choices["blind"] = bool(rng.integers(3) == 0) and not looks

    def make(given: pd.DataFrame) -> Publication:
        return anonymize(Table(given, owner, ["age", "pay"], "ill"), constraint, **choices)

    try:
        return make, make(frame)
    except QuiltworkError:
        return make, None


def left_out(cases: int, rows: int = 6) -> dict:
    """Try every assignment of tables from which groups are left out without a look at values.

    All assignments that make the same table must be all arrangements of its groups' values, each
    with the same ways to fill the groups that are left out: of who is published nothing is told.
    """
    rng = np.random.default_rng(2022)
    told = {"tables": 0, "outcomes": 0, "with rows left out": 0}
    for case in range(cases):
        who = None if case % 2 else "who"
        frame = pd.DataFrame({"age": rng.integers(0, 4, rows), "who": rng.choice([*"xy"], rows)})
        asked = (LDiversity(2), KAnonymity(2) & LDiversity(2), EntropyLDiversity(1.8))[case % 3]
        m = int(case % 4 == 0 and case % 3 != 2)
        outcomes: dict[tuple, list[tuple[str, ...]]] = {}
        groups = {}
        for values in itertools.product("ab", repeat=rows):
            table = Table(frame.assign(ill=values), who, ["age"], "ill")
            try:
                made = anonymize(table, asked, m, blind=True, suppression=0.9)
            except QuiltworkError:
                continue
            shown = tuple(_rows(made))
            outcomes.setdefault(shown, []).append(values)
            members = [made.rows[made.labels == g].tolist() for g in range(made.boxes.count)]
            assert groups.setdefault(shown, members) == members
        told["tables"] += 1
        told["outcomes"] += len(outcomes)
        for shown, assignments in outcomes.items():
            told["with rows left out"] += len(shown) < len(frame)
            _check_arranged(groups[shown], assignments)
    return told


def _check_arranged(groups: list[list[int]], assignments: list[tuple[str, ...]]) -> None:
    """Check that the published people's values are arranged in all ways, equally often."""
    seen = Counter(
        tuple(tuple(values[i] for i in some) for some in groups) for values in assignments
    )
    held = [Counter(assignments[0][i] for i in some) for some in groups]
    ways = math.prod(
        math.factorial(c.total()) // math.prod(map(math.factorial, c.values())) for c in held
    )
    assert len(seen) == ways, (groups, assignments)
    assert len(set(seen.values())) == 1, (groups, assignments)


def _rows(published: Publication) -> list[tuple]:
    return list(published.frame.itertuples(index=False, name=None))


def run(progress: Callable[[int, int], None]) -> dict:
    return {**check(400, progress), **left_out(30)}
