"""Every method against the enumeration of all paths, on short chains of every shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evidence import enumeration
from evidence.random_chains import random_chain
from quiltwork.beliefs import MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import calibrate, max_influence

NAME = "influence bounds"
CLAIM = (
    "max-influence equals its definition; the exact scale is the best over all separators, and the "
    "sweep's never more than 1 % above it; no "
    "method's noise leaks more than epsilon about any node"
)

METHODS = ("sweep", "exact", "approx", "spectral", "contraction", "group")
NEARLY = 1.01  # chains without zeros are swept one node at a time, and quilts may jump
EPSILONS = (0.3, 1.0, 3.0)


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(2017)
    counts = {"chains": 0, "quilts compared": 0, "scales compared": 0, "leakages computed": 0}
    closest = 0.0
    for case in range(cases):
        size = int(rng.integers(2, 4))
        length = int(rng.integers(1, 8 if size == 2 else 6))
        chain = random_chain(rng, size)
        weighted = enumeration.paths(chain, length)
        epsilon = float(rng.choice(EPSILONS))
        counts["chains"] += 1
        counts["quilts compared"] += _influences(rng, chain, length, weighted)
        scales = _scales(chain, length, epsilon, weighted)
        counts["scales compared"] += len(scales)
        leak = _leakages(chain, length, epsilon, weighted, scales)
        counts["leakages computed"] += 2 * len(scales)
        closest = max(closest, leak)
        progress(case + 1, cases)
    return {**counts, "largest leakage / epsilon": f"{closest:.4f}", "violations": 0}


def _influences(rng, chain: MarkovChain, length: int, weighted) -> int:
    for node in range(1, length + 1):
        quilt = tuple(i for i in range(1, length + 1) if i != node and rng.random() < 0.5)
        true = enumeration.influence(weighted, node, quilt)
        found = max_influence(chain, node, quilt, length)
        assert found >= true - 1e-14, (chain.transition, chain.initial, node, quilt, found, true)
        assert found == true or found <= true + 1e-9 * (1 + true), (node, quilt, found, true)
    return length


def _scales(chain: MarkovChain, length: int, epsilon: float, weighted) -> dict[str, float]:
    best = enumeration.scale(weighted, length, epsilon)
    scales = {}
    for method in METHODS:
        try:
            scales[method] = calibrate(chain, length, epsilon, method).scale
        except UnsupportedError:
            assert method == "spectral"
        else:
            quilts = method != "sweep"
            assert not quilts or scales[method] >= best * (1 - 1e-12), (method, chain, length)
    assert scales["sweep"] <= best * NEARLY, (chain.transition, chain.initial, length, epsilon)
    assert scales["exact"] <= best * (1 + 1e-9), (chain.transition, chain.initial, length, epsilon)
    return scales


def _leakages(chain, length: int, epsilon: float, weighted, scales: dict[str, float]) -> float:
    """The largest share of epsilon that a noisy count or a noisy weighted sum leaks."""
    worst = 0.0
    weights = np.linspace(0, 1, chain.size)
    for scale in set(scales.values()):
        for answer in (
            lambda path: path.count(0),
            lambda path: round(float(sum(weights[x] for x in path)), 12),
        ):
            if scale == 0:
                assert all(len({p[t] for p in weighted}) == 1 for t in range(length))
            else:
                leak = enumeration.leakage(weighted, length, answer, scale)
                assert leak <= epsilon * (1 + 1e-9), (chain.transition, length, epsilon, leak)
                worst = max(worst, leak / epsilon)
    return worst


def run(progress: Callable[[int, int], None]) -> dict:
    return check(5_000, progress)
