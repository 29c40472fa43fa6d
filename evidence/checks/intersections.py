"""Whom two releases pin down together, against every way to give people values that fits both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pandas as pd

from quiltwork.tables.risk.intersection import intersection
from quiltwork.tables.table import Table

NAME = "intersections"
CLAIM = "the people whom two releases pin down lie within the bounds, by enumeration"

KNOWN = ["age", "zip"]


def pinned(earlier: pd.DataFrame, later: pd.DataFrame) -> set[str]:
    """Return who has one value in all worlds, though no group of theirs has a single one.

    A world gives the people of the earlier table values so that its groups have their counts, and
    then the newcomers what is left in the later table.
    """
    before, after = (_groups(frame) for frame in (earlier, later))
    counts = [_counts(frame) for frame in (earlier, later)]
    newcomers = [who for who in after if who not in before]
    possible: dict[str, set[str]] = {who: set() for who in (*before, *after)}
    parts = []
    for group, values in counts[0].items():
        members = [who for who in before if before[who] == group]
        ways = sorted(set(permutations(values.elements())))
        parts.append([dict(zip(members, way, strict=True)) for way in ways])
    for way in product(*parts):
        world = {who: value for part in way for who, value in part.items()}
        left = {group: values.copy() for group, values in counts[1].items()}
        for who in before:
            if who in after:
                left[after[who]][world[who]] -= 1
        if any(number < 0 for values in left.values() for number in values.values()):
            continue
        for who, value in world.items():
            possible[who].add(value)
        for who in newcomers:  # they can have anything that is left in their group
            possible[who] |= {value for value, number in left[after[who]].items() if number}
    single = {
        who
        for table, places in zip(counts, (before, after), strict=True)
        for who, group in places.items()
        if len(table[group]) == 1
    }
    return {who for who, values in possible.items() if len(values) == 1} - single


def _groups(frame: pd.DataFrame) -> dict[str, tuple]:
    return dict(
        zip(frame["person"], zip(*(frame[name] for name in KNOWN), strict=True), strict=True)
    )


def _counts(frame: pd.DataFrame) -> dict[tuple, Counter]:
    found: dict[tuple, Counter] = {}
    for *group, value in frame[[*KNOWN, "ill"]].itertuples(index=False):
        found.setdefault(tuple(group), Counter())[value] += 1
    return found


def ways(frame: pd.DataFrame) -> int:
    """Return how many worlds the first table alone has."""
    number = 1
    for values in _counts(frame).values():
        number *= len(set(permutations(values.elements())))
    return number


def released(rng: np.random.Generator, people: pd.DataFrame) -> pd.DataFrame:
    """Publish ages as ranges and zips as sets, each cut at some places."""
    frame = people.copy()
    for name, size, text in (("age", 8, _range), ("zip", 4, _set)):
        cuts = np.sort(rng.choice(size - 1, int(rng.integers(0, 3)), replace=False))
        ends = [*cuts.tolist(), size - 1]
        part = np.searchsorted(cuts, people[name].to_numpy())
        frame[name] = [text(0 if p == 0 else ends[p - 1] + 1, ends[p]) for p in part.tolist()]
    return frame


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}..{high}"


def _set(low: int, high: int) -> str:
    return "nsew"[low] if low == high else "{" + ", ".join("nsew"[low : high + 1]) + "}"


def drawn(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two releases about much the same people; every other time exactly the same."""
    rows = int(rng.integers(3, 9))
    people = pd.DataFrame(
        {
            "age": rng.integers(0, 8, rows),
            "zip": rng.integers(0, 4, rows),
            "ill": rng.choice([*"abc"], rows),
            "person": [f"p{i}" for i in range(rows)],
        }
    )
    frames = [people, people]
    if rng.integers(2):
        frames = [people[rng.random(rows) < 0.8] for _ in range(2)]
        frames = [frame if len(frame) else people for frame in frames]
    return released(rng, frames[0]), released(rng, frames[1])


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(1994)
    told = {"people pinned down": 0, "of these by counting only": 0, "tables decided": 0}
    done = 0
    while done < cases:
        frames = drawn(rng)
        if ways(frames[0]) > 600:
            continue
        truth = pinned(*frames)
        named = [Table(frame, None, KNOWN, "ill", subject="person") for frame in frames]
        found = intersection(*named)
        both = truth & set(frames[0]["person"]) & set(frames[1]["person"])
        assert found.least <= len(both) <= found.most, (frames, truth, found)
        nameless = [Table(frame.drop(columns="person"), None, KNOWN, "ill") for frame in frames]
        bounds = intersection(*nameless)
        assert len(both) <= bounds.most, (frames, truth, bounds)
        smaller, larger = sorted((set(frame["person"]) for frame in frames), key=len)
        if smaller <= larger:
            assert bounds.least <= len(truth), (frames, truth, bounds)
        assert not bounds.exact
        told["people pinned down"] += len(both)
        told["of these by counting only"] += len(both) - found.by_values
        told["tables decided"] += found.exact
        done += 1
        progress(done, cases)
    return {"cases": cases, **told, "disagreements": 0}


def run(progress: Callable[[int, int], None]) -> dict:
    return check(1000, progress)
