"""Totals of long series: a year of one home, a million points, and what a long history costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from bench.harness import compare
from papers.experiments.accounting import DAY, SCALE, fleet
from quiltwork import queries
from quiltwork.budget import Accountant, Spending, calendar, plan

YEAR = 365 * DAY
MILLION = 10**6


def year_of_releases() -> list[Spending]:
    histogram = queries.histogram()
    year = calendar(2025, DAY, daily=histogram, weekly=histogram, monthly=histogram)
    return [Spending.of_query(one.query, SCALE, YEAR) for one in year]


def random_windows(count: int) -> list[Spending]:
    rng = np.random.default_rng(1)
    starts = rng.integers(1, MILLION - 1500, count).tolist()
    sizes = rng.integers(1, 1500, count).tolist()
    return [Spending.dp(0.002, a, a + n) for a, n in zip(starts, sizes, strict=True)]


def one_total(length: int, spendings: list[Spending]) -> Callable[[], float]:
    (chain,) = fleet(1)

    def total() -> float:
        account = Accountant(chain, length)
        account.add_all(spendings)
        return account.epsilon()

    return total


def one_by_one(length: int, spendings: list[Spending], budget: int) -> Callable[[], None]:
    (chain,) = fleet(1)

    def spend() -> None:
        account = Accountant(chain, length, budget=budget)
        for spending in spendings:
            account.add(spending)

    return spend


def next_release(history: int) -> Callable[[], None]:
    """One more release within budget, after many others; the account itself stays as it is."""
    (chain,) = fleet(1)
    account = Accountant(chain, MILLION, budget=99)
    account.add_all(random_windows(history))
    account.epsilon()
    days = itertools.cycle(range(1, MILLION - DAY, 7 * DAY))

    def fits() -> None:
        start = next(days)
        assert account.fits(Spending.dp(0.001, start, start + DAY - 1))

    return fits


def main() -> None:
    year, windows = year_of_releases(), random_windows(10_000)
    (chain,) = fleet(1)
    histogram = queries.histogram()
    asked = calendar(2025, DAY, daily=histogram, weekly=histogram, monthly=histogram)
    compare(
        "Accounting for many releases",
        {
            "a year, 429 releases: total": one_total(YEAR, year),
            "a year, each checked against the budget": one_by_one(YEAR, year, 100),
            "a year: plan the noise for ε = 4": lambda: plan(
                chain, length=YEAR, budget=4, queries=asked
            ),
            "a million points, 10,000 releases: total": one_total(MILLION, windows),
            "a million points, each checked": one_by_one(MILLION, windows, 100),
        },
        repeats=3,
    )
    compare(
        "One more release after a history",
        {f"after {n:,} releases": next_release(n) for n in (100, 1_000, 10_000)},
        repeats=9,
        number=50,
        memory=False,
    )


if __name__ == "__main__":
    main()
