"""sweep ≲ exact ≤ approx ≤ spectral ≤ group and approx ≤ contraction, on chains of 2 to 12 states.

The sweep may need a little more noise than exact quilts: chains without zeros are swept one node
at a time, and quilts may jump.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from evidence.random_chains import SHAPES, random_matrix
from quiltwork.beliefs import MarkovChain
from quiltwork.errors import UnsupportedError
from quiltwork.influence import calibrate

NAME = "method order"
CLAIM = (
    "sweep <= 1.01 exact, exact <= approx <= spectral <= group and approx <= contraction on random "
    "chains"
)
NEARLY = 1.01


def check(chains: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(1738)
    strict = {"sweep < exact": 0, "exact < approx": 0, "approx < spectral": 0}
    for case in range(chains):
        size = int(rng.integers(2, 13))
        shape = "positive" if case % 2 else str(rng.choice(SHAPES))
        matrix = random_matrix(rng, size, shape)
        start = ("any", np.eye(size)[rng.integers(size)], rng.dirichlet(np.ones(size)))[case % 3]
        chain = MarkovChain(matrix, start)
        length = int(rng.choice([2, 10, 1000, 10**8]))
        epsilon = float(rng.choice([0.1, 1, 5]))
        found = _scales(chain, length, epsilon)
        assert found["sweep"] <= found["exact"] * NEARLY, (matrix.tolist(), start, length, found)
        order = [found[m] for m in ("exact", "approx", "spectral", "group") if m in found]
        for lower, upper in itertools.pairwise(order):
            assert lower <= upper * (1 + 1e-9), (matrix.tolist(), start, length, epsilon, found)
        assert found["approx"] <= found["contraction"] * (1 + 1e-9)
        strict["sweep < exact"] += found["sweep"] < found["exact"] * (1 - 1e-9)
        strict["exact < approx"] += found["exact"] < found["approx"] * (1 - 1e-9)
        if "spectral" in found:
            strict["approx < spectral"] += found["approx"] < found["spectral"] * (1 - 1e-9)
        progress(case + 1, chains)
    return {"chains": chains, **strict, "violations": 0}


def _scales(chain: MarkovChain, length: int, epsilon: float) -> dict[str, float]:
    scales = {}
    for method in ("sweep", "exact", "approx", "spectral", "contraction", "group"):
        try:
            scales[method] = calibrate(chain, length, epsilon, method).scale
        except UnsupportedError:
            assert method == "spectral"
    return scales


def run(progress: Callable[[int, int], None]) -> dict:
    return check(1000, progress)
