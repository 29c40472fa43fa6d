"""A year of 429 releases for 1,000 simulated homes and, where its data are there, the real one."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from papers.experiments import accounting as year
from quiltwork import queries
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, Spending, calendar
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
    leaked, joint, total, pretended = analogue()
    assert pretended < leaked <= joint * (1 + 1e-9) < total
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


def analogue() -> tuple[float, float, float, float]:
    """Eight time points: four days, two weeks, one month; what leaks is enumerated."""
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]])
    windows = [(2 * d + 1, 2 * d + 2) for d in range(4)] + [(1, 4), (5, 8), (1, 8)]
    account = Accountant(chain, 8)
    account.add_all([Spending.dp(0.25, *window) for window in windows])
    bounds = {bound.theorem: bound.epsilon for bound in account.explain().bounds}
    total = bounds["Theorem 3.7 (sum)"] or math.inf
    return enumerated(chain, 8, windows, 4), account.epsilon(), total, 0.75


def enumerated(
    chain: MarkovChain, length: int, windows: Sequence[tuple[int, int]], scale: float
) -> float:
    """The exact leakage of counts of state 1 on windows: all paths, all answers.

    Between its values each answer's likelihood ratio is monotone, so answers on the grid of the
    counts suffice.
    """
    paths = np.array(list(itertools.product((0, 1), repeat=length)))
    law = chain.start[paths[:, 0]].copy()
    for t in range(1, length):
        law = law * chain.transition[paths[:, t - 1], paths[:, t]]
    counts = np.stack([paths[:, a - 1 : b].sum(axis=1) for a, b in windows], axis=1)
    answers = np.array(list(itertools.product(*(range(b - a + 2) for a, b in windows))))
    worst = 0.0
    for node in range(length):
        given = []
        for state in (0, 1):
            here = paths[:, node] == state
            density = np.zeros(len(answers))
            for p, count in zip(law[here] / law[here].sum(), counts[here], strict=True):
                density += p * np.exp(-np.abs(answers - count).sum(axis=1) / scale)
            given.append(density)
        worst = max(worst, float(np.abs(np.log(given[0] / given[1])).max()))
    return worst


def _quantiles(values: list[float]) -> str:
    return ", ".join(f"{q:.4f}" for q in np.quantile(values, [0.05, 0.5, 0.95]))


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(HOMES, SIMULATED, progress)
