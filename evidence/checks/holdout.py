"""The holdout's promises at full counts: exact tails of random chains, and adaptive analysts.

Concentration: 1,000 random chains of 2 to 4 states, reversible and not, each with random functions
at every step, against exact tails by dynamic programming over state and sum. Max-information: 300
random beliefs and mechanisms against equation (1). Promise: 60 runs of an analyst who overfits as
hard as the answers allow, on rows that come in copies. The end of a competition: 200 families of
twelve teams that share their hard rows, on rows alone and in groups of several sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quiltwork.beliefs import Clusters, MarkovChain
from quiltwork.holdout import ReusableHoldout
from quiltwork.holdout.concentration import coupling, spectral
from quiltwork.holdout.final_ranking import rank_teams
from quiltwork.holdout.guarantee import guarantee, max_information, squared_leakages
from quiltwork.holdout.metrics import parse_metric

NAME = "The reusable holdout keeps its promises"
CLAIM = "no bound is below an exact tail, an exact max-information or a simulated error"

CHAINS, JOINTS, ANALYSTS, ENDS = 1000, 300, 60, 200
SURE = 1 - 1e-9


def sum_law(start: np.ndarray, transition: np.ndarray, values: np.ndarray) -> np.ndarray:
    """P(Σ values[t, X_t] = s) for whole values: a table of state by running sum."""
    top = int(values.max(axis=1).sum())
    table = np.zeros((len(start), top + 1))
    table[np.arange(len(start)), values[0]] = start
    for step in values[1:]:
        moved = transition.T @ table
        table = np.zeros_like(moved)
        for state, value in enumerate(step):
            table[state, value:] += moved[state, : top + 1 - value]
    return np.asarray(table.sum(axis=0))


def tightest_tail(seed: int) -> float:
    """The largest ratio of exact tail to bound for one random chain, both bounds tried."""
    draw = np.random.default_rng(seed)
    k, n = int(draw.integers(2, 5)), int(draw.integers(2, 40))
    weights = draw.gamma(0.6, size=(k, k)) + 0.02
    if seed % 2:
        weights = weights + weights.T
    chain = MarkovChain(weights / weights.sum(axis=1, keepdims=True))
    values = draw.integers(0, 4, size=(n, k))
    law = sum_law(chain.stationary, chain.transition, values)
    means = np.arange(len(law)) / (3 * n)
    gaps = np.abs(means - law @ means)
    worst = 0.0
    for bound in (spectral(chain), coupling(chain.transition)):
        for gap in np.unique(gaps[gaps > 1e-9]):
            tail = law[gaps >= gap - 1e-12].sum()
            limit = bound.tail(n, gap)
            worst = max(worst, float(tail / limit) if limit < 1 else 0.0)
    return worst


def exact_max_information(joint: np.ndarray, beta: float) -> float:
    """Equation (1) for a finite joint distribution of (X, Y), in bits.

    The best event contains the outcomes with the largest ratio of joint to product probability,
    so only the prefixes in that order are tried. O(N log N) for N outcomes.
    """
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    possible = product > 0
    together, apart = joint[possible], product[possible]
    order = np.argsort(-together / apart, kind="stable")
    gained = np.cumsum(together[order]) - beta
    ratios = gained / np.cumsum(apart[order])
    return float(np.log2(ratios[gained > 0].max()))


def tightest_information(seed: int) -> float:
    """The exact max-information over its bound, for a noisy count on clusters of copies."""
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 4, size=int(draw.integers(1, 5)))
    epsilon, beta = float(draw.uniform(0.05, 1.5)), float(10 ** draw.uniform(-3, -0.3))
    rows = np.array(np.meshgrid(*[[0, 1]] * len(sizes))).reshape(len(sizes), -1).T
    outputs = np.arange(-80, int(sizes.sum()) + 81)
    noise = np.exp(-epsilon * np.abs(outputs - (rows @ sizes)[:, None]))
    coin = draw.uniform(0.1, 0.9, size=len(sizes))
    weight = np.where(rows == 1, coin, 1 - coin).prod(axis=1)
    joint = weight[:, None] * noise / noise.sum(axis=1, keepdims=True)
    belief = Clusters(np.repeat(np.arange(len(sizes)), sizes).tolist())
    bound = max_information(squared_leakages(belief, epsilon, int(sizes.sum())), beta)
    return exact_max_information(joint / joint.sum(), beta) / bound


def error_over_promise(seed: int) -> float:
    """An analyst's worst error over what is promised at a confidence of 1 − 1e-9."""
    draw = np.random.default_rng(seed)
    copies, columns = (1, 2, 5)[seed % 3], 40
    count = 40_000
    sets = [
        np.repeat(draw.integers(0, 2, (count, columns + 1)).astype(bool), copies, axis=0)
        for _ in range(2)
    ]
    n = copies * count
    beliefs = Clusters((np.arange(n) // copies).tolist())
    holdout = ReusableHoldout(*sets, beliefs, threshold=0.05, noise=0.003, budget=1)
    promise = guarantee(beliefs, n, 0.05, 0.003, 1, 2 * columns, 1 - 1e-9)
    answers = holdout.ask_many(lambda rows: rows[:, :-1] == rows[:, -1:])
    said = np.array([one.value for one in answers])
    worst = float(np.abs(said - 0.5).max())
    for size in range(3, len(said), 2):
        best = np.argsort(-np.abs(said - 0.5))[:size]
        straight = said[best] > 0.5

        def vote(
            rows: np.ndarray, best: np.ndarray = best, straight: np.ndarray = straight
        ) -> np.ndarray:
            return (2 * (rows[:, best] == straight).sum(axis=1) > len(best)) == rows[:, -1]

        found = holdout.ask_many([vote]) if holdout.remaining else []
        worst = max([worst, *(abs(one.value - 0.5) for one in found)])
    return worst / promise.tolerance


def end_over_promise(seed: int) -> float:
    """How far the truth is from a score, over what the interval at 1 − 1e-9 allows on that side.

    Infinite where a team that is in truth no better is said to be ahead.
    """
    draw = np.random.default_rng(seed)
    units, teams = 1500, 12
    sizes = np.ones(units, int) if seed % 2 else draw.integers(1, 4, units)
    chances = draw.uniform(0, 1, (teams, 1)) * 0.3 + 0.6
    chances[: teams // 2] = chances[0]  # half of them are alike
    right = draw.random((teams, units)) < chances
    together = draw.random(units) < 0.3  # rows on which all teams do the same
    right[:, together] = draw.random(together.sum()) < chances
    values = {f"t{at}": (1, np.repeat(right[at].astype(float), sizes)) for at in range(teams)}
    belief = None if seed % 2 else Clusters(np.repeat(np.arange(units), sizes).tolist())
    ranking = rank_teams(parse_metric("accuracy"), belief, values, SURE)
    truths = {f"t{at}": float(chances[at, 0]) for at in range(teams)}
    worst = 0.0
    for one in ranking.scores:
        gap = truths[one.team] - one.value
        room = one.high - one.value if gap > 0 else one.value - one.low
        worst = max(worst, abs(gap) / room)
        behind = [o for o in ranking.scores if o.rank > one.rank and o.team not in one.tied]
        if any(truths[other.team] >= truths[one.team] for other in behind):
            return float("inf")
    return worst


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    parts = (
        (tightest_tail, CHAINS),
        (tightest_information, JOINTS),
        (error_over_promise, ANALYSTS),
        (end_over_promise, ENDS),
    )
    total, done, worst = sum(count for _, count in parts), 0, []
    for function, count in parts:
        ratios = []
        for seed in range(count):
            ratios.append(function(seed))
            assert ratios[-1] <= 1 + 1e-9, (function.__name__, seed, ratios[-1])
            done += 1
            progress(done, total)
        worst.append(max(ratios))
    return {
        "chains with exact tails": CHAINS,
        "largest ratio of tail to bound": f"{worst[0]:.4f}",
        "mechanisms with exact max-information": JOINTS,
        "largest ratio of exact value to bound": f"{worst[1]:.4f}",
        "adaptive analysts": ANALYSTS,
        "largest error over promised error": f"{worst[2]:.4f}",
        "competitions ended": ENDS,
        "largest distance of a truth over its interval": f"{worst[3]:.4f}",
        "violations": 0,
    }
