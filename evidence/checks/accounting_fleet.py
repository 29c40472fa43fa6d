"""A year of 429 releases for 1,000 simulated homes and, where its data are there, the real one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np

from quiltwork import queries
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, calendar
from quiltwork.reproduce.experiments import accounting as year
from quiltwork.series import release

NAME = "a fleet's year"
CLAIM = (
    "429 histograms a home on 52,560 points: a sound total in under a second, far below the sum of "
    "single costs, where pretending independence claims less than what leaks"
)
HOMES = 1000
SIMULATED = 20


def check(homes: int, simulated: int, progress: Callable[[int, int], None]) -> dict[str, object]:
    histogram = queries.histogram()
    releases = calendar(2025, year.DAY, daily=histogram, weekly=histogram, monthly=histogram)
    chains = year.fleet(homes)
    found = []
    for number, chain in enumerate(chains):
        home = year.price(f"home {number + 1}", chain, releases)
        assert home.as_if_independent < home.swept < home.linear / 50, home
        found.append(home)
        progress(number + 1, homes)
    made = [released(chain, number) for number, chain in enumerate(chains[:simulated])]
    shares = [share for share, _ in made]
    assert abs(statistics.mean(shares) - 1) < 5 / math.sqrt(48 * simulated)
    totals, seconds = [home.swept for home in found], [home.seconds for home in found]
    counts: dict[str, object] = {
        "homes": homes,
        "releases a home": len(releases),
        "total (5 %, median, 95 %)": _quantiles(totals),
        "sum of single costs, median": f"{statistics.median(h.linear for h in found):.1f}",
        "as if independent (not private)": found[0].as_if_independent,
        "simulated homes with 12 monthly releases of ε = 2": simulated,
        "  their error over the expected one, mean": f"{statistics.mean(shares):.3f}",
        "  their total (the sum is 24), median": (
            f"{statistics.median(total for _, total in made):.4f}"
        ),
        "seconds for one total (median, slowest)": (
            f"{statistics.median(seconds):.3f}, {max(seconds):.3f}"
        ),
    }
    real = year.real_home()
    if real is not None:
        home = year.price("the real home", real, releases)
        counts["the real home: total, sum"] = f"{home.swept:.4f}, {home.linear:.1f}"
    leaked, joint, total, pretended = (row.ours for row in year.analogue_rows())
    assert pretended < leaked < joint < total
    counts["analogue of 8 points: leaks, joint, sum, as if independent"] = (
        f"{leaked:.4f}, {joint:.4f}, {total:.4f}, {pretended}"
    )
    return counts


def released(chain: MarkovChain, seed: int) -> tuple[float, float]:
    """Release twelve months of a simulated home; error over expected error, and the total."""
    data = chain.sample(365 * year.DAY, seed)
    account, errors = Accountant(chain, 365 * year.DAY), []
    for month in calendar(2025, year.DAY, monthly=queries.histogram()):
        answer = release(data, month.query, chain, epsilon=2)
        truth = month.query.evaluate(chain.encode(data), chain.states)
        errors.append(float(np.abs(answer.value - truth).mean()) / answer.expected_error)
        account.add(answer)
    return statistics.mean(errors), account.epsilon()


def _quantiles(values: list[float]) -> str:
    return ", ".join(f"{q:.4f}" for q in np.quantile(values, [0.05, 0.5, 0.95]))


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(HOMES, SIMULATED, progress)
