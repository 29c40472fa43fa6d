"""Random small tables of many providers, for tests of anonymization."""

from __future__ import annotations

from typing import Any

import numpy as np

from quiltwork.tables.constraints import KAnonymity, LDiversity
from quiltwork.tables.partitioning.coded_records import Axes, CodedRecords, records_of
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.table import Table


def random_records(
    seed: int, rows: int = 60, quasi: int = 3, codes: int = 6, providers: int = 4, values: int = 4
) -> CodedRecords:
    """Records with codes 0..codes−1, evenly placed; some quasi-identifiers vary little."""
    rng = np.random.default_rng(seed)
    spans = rng.integers(1, codes + 1, quasi)
    drawn = np.stack([rng.integers(0, span, rows) for span in spans]).astype(np.int16)
    where = tuple(np.linspace(0, 1, codes) for _ in range(quasi))
    return CodedRecords(
        drawn,
        rng.integers(0, providers, rows).astype(np.int32),
        providers,
        rng.integers(0, values, rows).astype(np.int32),
        values,
        np.arange(rows),
        Axes(where, (None,) * quasi),
    )


def guard_of(k: int, l: int, m: int) -> Guard:  # noqa: E741
    """Ask for k records and l values whichever m providers collude."""
    return Guard(KAnonymity(k) & LDiversity(l), m)


def random_frame(seed: int, rows: int = 80, providers: int = 4, values: int = 4) -> Any:
    """A pandas frame with numbers, an order, categories beyond ASCII, and two sensitive columns."""
    import pandas

    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "owner": rng.choice([f"P{i}" for i in range(providers)], rows),
            "age": rng.integers(18, 60, rows),
            "weight": rng.normal(70, 12, rows).round(1),
            "town": rng.choice(["Zürich", "Łódź", "東京", "a, b", "{x}", "1..2"], rows),
            "grade": rng.choice(["low", "middle", "high"], rows),
            "ill": rng.choice([f"d{i}" for i in range(values)], rows),
            "paid": rng.choice(["yes", "no"], rows),
        }
    )


def random_table(seed: int, rows: int = 80, providers: int = 4, **more: Any) -> Table:
    """The frame as a table with four quasi-identifiers."""
    return Table(
        random_frame(seed, rows, providers),
        provider="owner",
        quasi_identifiers=["age", "weight", "town", "grade"],
        sensitive="ill",
        ordinal={"grade": ["low", "middle", "high"]},
        **more,
    )


__all__ = ["random_frame", "random_records", "random_table", "records_of"]
