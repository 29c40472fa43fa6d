"""Coverage of confidence boxes: 1,000 random chains, one simulated sequence each.

The chains have 2 to 6 states, some of them rare (visited a few times or never) and some
transitions impossible; sequences have 30 to 3,000 steps and start anywhere. A box misses if one
single entry of the matrix lies outside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quiltwork.beliefs import ChainBox, MarkovChain

NAME = "Confidence boxes cover"
CLAIM = "at least 95 % of 1,000 simulated chains lie in the 95 % box of one sequence each"

CHAINS = 1000
CONFIDENCE = 0.95


def random_chain(
    seed: int, size: int | None = None, length: int | None = None
) -> tuple[MarkovChain, int]:
    """A chain with rare states and impossible transitions, and how long to watch it."""
    draw = np.random.default_rng(seed)
    k = size or int(draw.integers(2, 7))
    attraction = 10.0 ** draw.uniform(-3, 0, size=k)
    weights = draw.gamma(0.7, size=(k, k)) * attraction
    weights[draw.random((k, k)) < 0.15] = 0
    weights[np.arange(k), draw.integers(0, k, size=k)] += 0.05
    matrix = weights / weights.sum(axis=1, keepdims=True)
    steps = length or int(10 ** draw.uniform(1.5, 3.5))
    return MarkovChain(matrix, initial=draw.dirichlet(np.ones(k))), steps


def misses_in(seed: int, confidence: float) -> bool:
    """Whether the box fitted on one sequence of the seed's chain misses that chain."""
    chain, length = random_chain(seed)
    box = ChainBox.fit(chain.sample(length, seed), confidence, states=chain.states)
    return not box.contains(chain)


def rarest_visits(seed: int) -> int:
    """How often the seed's sequence leaves its rarest state."""
    chain, length = random_chain(seed)
    path = chain.sample(length, seed)
    return int(np.bincount(path[:-1], minlength=chain.size).min())


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    missed, unvisited, rare = 0, 0, 0
    for seed in range(CHAINS):
        missed += misses_in(seed, CONFIDENCE)
        visits = rarest_visits(seed)
        unvisited += visits == 0
        rare += 0 < visits <= 5
        progress(seed + 1, CHAINS)
    allowed = round(CHAINS * (1 - CONFIDENCE))
    assert missed <= allowed, f"{missed} boxes missed, {allowed} allowed"
    return {
        "chains": CHAINS,
        "boxes that missed": missed,
        "misses allowed at 95 %": allowed,
        "sequences with a state never left": unvisited,
        "sequences whose rarest state was left 1 to 5 times": rare,
    }
