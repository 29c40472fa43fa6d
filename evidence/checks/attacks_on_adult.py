"""What the attacks find on tables of Adult, what cuts without a look cost, and counts with noise.

The figures of docs/how-to/risk.md. Nothing is random but what has a seed; the error of noisy counts
is their expectation, by formula.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from quiltwork.errors import NotPrivateError
from quiltwork.tables import KAnonymity, LDiversity, Table, anonymize, query_error
from quiltwork.tables.publishing.published_records import Publication
from quiltwork.tables.risk import downcoding

NAME = "attacks_on_adult"
CLAIM = "what five attacks find on Adult, the price of cuts without a look, and of noisy counts"

QUASI = "age workclass education marital-status race sex native-country income".split()  # noqa: SIM905
CROSSED = (
    ["sex"],
    ["race", "sex"],
    ["workclass"],
    ["education"],
    ["native-country"],
    ["education", "workclass"],
    ["education", "workclass", "marital-status"],
)


def adult() -> pd.DataFrame:
    folder = os.environ.get("QUILTWORK_SHARED")
    root = Path(folder) if folder else Path(__file__).resolve().parents[2].parent / "shared"
    frame = pd.read_csv(root / "data" / "adult.csv.gz")
    return frame[~(frame == "?").any(axis=1)].reset_index(drop=True)


def attacks(made: Publication) -> Iterator[str]:
    for one in made.report().assessment.attacks:
        guesses = "" if one.reached is None else f"; {one.before:.2%} -> {one.reached:.2%}"
        yield f"  {one.attack} ({one.decided}): certain {one.certain}{guesses}"
        yield f"    {one.found}"


def blind(table: Table, values: int) -> Iterator[str]:
    asked = KAnonymity(30) & LDiversity(values)
    usual = anonymize(table, asked, 0)
    yield f"l = {values}: query error {query_error(table, usual):.3f}, {usual.boxes.count} groups"
    out = anonymize(table, asked, 0, blind=True, suppression=0.2)
    yield (
        f"  blind, failing groups left out: {query_error(table, out):.3f}, {out.boxes.count} "
        f"groups, {out.suppressed:,} rows left out ({out.suppressed / len(table.frame):.2%})"
    )
    for k in range(40, 400, 10):
        try:
            made = anonymize(table, KAnonymity(k) & LDiversity(values), 0, blind=True)
        except NotPrivateError:
            continue
        error = query_error(table, made)
        yield f"  blind, first k of 40, 50, … with nothing left out: k = {k}, {error:.3f}"
        return


def crossed_error(made: Publication, names: list[str]) -> float:
    """The mean error of counts by these columns and the occupation, groups spread evenly."""
    frame = made.source.frame
    columns = {column.name: place for place, column in enumerate(made.source.encoded.quasi)}
    spread = np.ones((made.boxes.count, 1))
    for name in names:
        members = made.boxes.columns[columns[name]].members
        values = made.source.encoded.quasi[columns[name]].values
        shares = np.zeros((made.boxes.count, len(values)))
        for group in range(made.boxes.count):
            shares[group, list(members[group])] = 1 / members.sizes[group]
        spread = (spread[:, :, None] * shares[:, None, :]).reshape(made.boxes.count, -1)
    codes = made.source.encoded.sensitive[made.rows]
    held = np.zeros((made.boxes.count, len(made.source.encoded.sensitive_values)))
    np.add.at(held, (made.labels, codes), 1)
    estimate = spread.T @ held
    cell = np.zeros(len(frame), dtype=np.int64)
    for name in names:
        column = made.source.encoded.quasi[columns[name]]
        cell = cell * len(column.values) + column.codes
    truth = np.zeros_like(estimate)
    np.add.at(truth, (cell, made.source.encoded.sensitive), 1)
    return float(np.abs(estimate - truth).mean())


def told(table: Table) -> Iterator[str]:
    """What boxes tell of the cells they cover, by size of groups."""
    for asked in (KAnonymity(2), KAnonymity(5), KAnonymity(30), KAnonymity(30) & LDiversity(7)):
        found = downcoding(anonymize(table, asked, 0))
        yield (
            f"{asked}: {found.generalized / found.cells:.1%} of cells generalized, of these "
            f"{found.told / found.generalized:.1%} told"
        )


def noise(epsilon: float) -> float:
    """The expected size of the noise of a table's cells, if one person's row is replaced."""
    alpha = math.exp(-epsilon / 2)
    return 2 * alpha / (1 - alpha * alpha)


def counts(made: Publication) -> Iterator[str]:
    yield f"noise of a cell at epsilon 1: {noise(1):.2f}, at 0.1: {noise(0.1):.1f}"
    for names in CROSSED:
        error = crossed_error(made, names)
        line = f"  counts by {', '.join(names)} and occupation: mean error {error:.2f}"
        level = next((e / 1000 for e in range(1, 10_000) if noise(e / 1000) <= error), None)
        yield line if level is None else f"{line}; noisy counts err as much at epsilon {level:.3f}"


def run(progress: Callable[[int, int], None]) -> list[str]:
    frame = adult()
    alone = Table(frame, None, QUASI, "occupation")
    owner = np.random.default_rng(1).choice(10, len(frame))
    shared = Table(frame.assign(owner=owner), "owner", QUASI, "occupation")
    lines: list[str] = []
    tables = [
        ("one provider, k = 30, l = 4", alone, 4, {"m": 0}),
        ("one provider, k = 30, l = 7", alone, 7, {"m": 0}),
        ("one provider, k = 30, l = 4, blind", alone, 4, {"m": 0, "blind": True}),
        ("ten providers, k = 30, l = 4, m = 3", shared, 4, {"m": 3}),
    ]
    for number, (title, table, values, choices) in enumerate(tables):
        more = {"suppression": 0.02} if choices.get("blind") else {}
        made = anonymize(table, KAnonymity(30) & LDiversity(values), **choices, **more)
        lines += [f"{title}: {made.boxes.count} groups", *attacks(made)]
        progress(number + 1, 8)
    for values in (4, 5, 6, 7):
        lines += blind(alone, values)
    lines += told(alone)
    progress(6, 8)
    lines += counts(anonymize(alone, KAnonymity(30) & LDiversity(4), 0))
    progress(8, 8)
    return lines
