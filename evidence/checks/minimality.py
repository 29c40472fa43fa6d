"""What a report says that the algorithm gives away is what running it again gives away.

For small tables every assignment of sensitive values that fits the published table is tried: the
algorithm makes the table again from it, and those that give another table are ruled out. What is
left says how likely each record has which value, and the attack of the report must say the same.
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
from quiltwork.tables.partitioning.coded_records import records_of
from quiltwork.tables.partitioning.guards import records_needed
from quiltwork.tables.publication import Publication
from quiltwork.tables.risk import refused_cuts
from quiltwork.tables.risk.exchanges import attacked
from quiltwork.tables.risk.minimality import Guesses, without_other_value
from quiltwork.tables.risk.refusals import refusals

NAME = "minimality"
CLAIM = "a report says of the algorithm what making the table of every assignment again says"

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
MOST_ORDERS = 800

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
    told = {
        "nothing given away": 0,
        "of these blind": 0,
        "some ruled out": 0,
        "of these with nobody certain": 0,
    }
    told |= {"attacked": 0, "records with one value left": 0}
    told |= {"made again": 0, "certain": 0, "counted as certain at most": 0}
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
        if found.cuts is not None:  # the tree was followed: the answer is exact
            assert found.nothing == (not ruled_out), published.source.frame
        if found.cuts is None:
            told |= Counter(told) + exchanged(published, make, found.most)
        if found.guesses is not None:
            told["attacked"] += 1
            told["records with one value left"] += compared(published, left, found.guesses)
        assert found.nothing or not published.recipe.blind
        told["nothing given away"] += found.nothing
        told["of these blind"] += published.recipe.blind
        told["some ruled out"] += ruled_out
        told["of these with nobody certain"] += ruled_out and not found.groups
        done += 1
        progress(done, cases)
    return {"cases": cases, **told, "wrong": 0}


def exchanged(published: Publication, make: Make, most: int) -> Counter:
    """Check that every record which is not counted as perhaps certain has another value somewhere.

    All arrangements of values and providers within groups are tried, if they are not too many.
    """
    frame, groups = published.source.frame, published.labels
    members = [published.rows[groups == g] for g in range(published.boxes.count)]
    pairs = list(zip(frame["who"], frame["ill"], strict=True))
    held = [Counter(pairs[row] for row in some) for some in members]
    if math.prod(math.factorial(n.total()) for n in held) > MOST_ORDERS:
        return Counter()
    arranged = [sorted(set(itertools.permutations([pairs[r] for r in some]))) for some in members]
    shown, seen = _rows(published), [set() for _ in pairs]
    for way in itertools.product(*arranged):
        world = frame.copy()
        for rows, taken in zip(members, way, strict=True):
            world.loc[rows, ["who", "ill"]] = taken
        try:
            again = _rows(make(world))
        except QuiltworkError:
            continue
        if again == shown:
            for row, ill in enumerate(world["ill"]):
                seen[row].add(ill)
    sure = without_other_value(published)
    assert sure.sum() == most
    certain = 0
    for row, unsettled, group in zip(published.rows.tolist(), sure, groups, strict=True):
        several = len({ill for _, ill in held[group]}) > 1
        assert unsettled or not several or len(seen[row]) > 1, frame
        certain += several and len(seen[row]) == 1
    return Counter({"made again": 1, "certain": certain, "counted as certain at most": int(most)})


def compared(published: Publication, left: list[np.ndarray], guesses: Guesses) -> int:
    """Compare the attack with the assignments that are left; return who has one value left."""
    encoded = published.source.encoded
    least = records_needed(published.recipe.constraint)
    split = published.recipe.rules.split
    asked = published.recipe.constraint
    cuts = refusals(records_of(encoded), published.labels, least, split, asked.eg_monotonic)
    truth, labels = encoded.sensitive, published.labels
    names = [str(name) for name in encoded.sensitive_values]
    shares: dict[int, dict[str, float]] = {}
    for part in attacked(labels, truth, cuts, asked):
        assert part.exact
        for rows, found in part.found:
            shares |= {row: {names[v]: p for v, p in found.items()} for row in rows.tolist()}
    right = by_group = pinned = 0.0
    for row, group in enumerate(labels.tolist()):
        seen = Counter(str(way[row]) for way in left)
        if row in shares:
            assert shares[row].keys() == seen.keys()
            assert all(math.isclose(shares[row][v], n / len(left)) for v, n in seen.items())
        pinned += len(seen) == 1
        inside = Counter(truth[labels == group].tolist())
        by_group += max(inside.values()) / inside.total()
        top = [v for v, n in seen.items() if n == max(seen.values())]
        right += (names[truth[row]] in top) / len(top)
    assert guesses.least == guesses.most == pinned
    assert math.isclose(guesses.by_group, by_group / len(truth))
    assert math.isclose(guesses.reached, right / len(truth))
    return int(pinned)


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
