"""Random small tables of several providers, for checks against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from evidence.coalition_reference import Record


def random_group(rng: np.random.Generator, largest: int = 10) -> list[Record]:
    """One group: up to six providers of unequal size and up to five values of unequal frequency."""
    size = int(rng.integers(1, largest + 1))
    providers, values = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    sizes = rng.dirichlet(np.full(providers, rng.choice([0.4, 1.0, 4.0])))
    frequencies = rng.dirichlet(np.full(values, rng.choice([0.4, 1.0, 4.0])))
    owner = rng.choice(providers, size, p=sizes)
    value = rng.choice(values, size, p=frequencies)
    return [Record(f"P{p}", f"v{v}", i) for i, (p, v) in enumerate(zip(owner, value, strict=True))]


def even_group(rng: np.random.Generator, largest: int = 10) -> list[Record]:
    """One group whose providers hold every value about equally often, so that little is missing."""
    providers, values = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    cells = [(p, v) for p in range(providers) for v in range(values)]
    rng.shuffle(cells)
    kept = cells[: max(largest, 2)]
    return [Record(f"P{p}", f"v{v}", i) for i, (p, v) in enumerate(kept)]


def random_people(
    rng: np.random.Generator, rows: int, groups: int
) -> tuple[list[Record], list[int]]:
    """Records of people who may have several, and the group of each record."""
    persons = max(1, int(rows * rng.uniform(0.7, 2.0)))
    providers, values = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    records = [
        Record(
            f"P{rng.integers(providers)}", f"v{rng.integers(values)}", int(rng.integers(persons))
        )
        for _ in range(rows)
    ]
    return records, [int(g) for g in rng.integers(0, groups, rows)]


def frame(records: list[Record], groups: list[int]) -> Any:
    """The records as a frame with the columns group, provider, value and person."""
    import pandas

    rows = [(g, *record) for g, record in zip(groups, records, strict=True)]
    return pandas.DataFrame(rows, columns=["group", "provider", "value", "person"])
