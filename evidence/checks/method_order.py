"""sweep ≲ exact ≤ approx ≤ spectral ≤ group and approx ≤ contraction, on chains of 2 to 12 states.

The sweep may need a little more noise than exact quilts: chains whose steps are all likely are
swept one node at a time, others 1, 2, 4, 8 or 16 at once, and quilts may jump as far as they like.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from evidence.random_chains import SHAPES, random_matrix
from quiltwork.beliefs import MarkovChain
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.influence import calibrate

NAME = "method order"
CLAIM = (
    "sweep <= 1.01 exact where every step is likelier than 1e-6, else <= 1.25 exact, and exact <= "
    "approx <= spectral <= group and approx <= contraction, on random chains from every start"
)
NEARLY, ROUGHLY = 1.01, 1.25
LIKELY = 1e-6


def random_start(rng: Generator, matrix: np.ndarray, case: int) -> MarkovChain:
    """A chain from any start, a certain one, a random one, or its stationary law if it has one."""
    size = len(matrix)
    starts = ("any", np.eye(size)[rng.integers(size)], rng.dirichlet(np.ones(size)), "stationary")
    try:
        return MarkovChain(matrix, starts[case % 4])
    except InvalidInputError:
        return MarkovChain(matrix, "any")


def check(chains: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    rng = np.random.default_rng(1738)
    strict = {"sweep < exact": 0, "exact < approx": 0, "approx < spectral": 0}
    most = {NEARLY: 0.0, ROUGHLY: 0.0}
    for case in range(chains):
        size = int(rng.integers(2, 13))
        shape = "positive" if case % 8 < 3 else str(rng.choice(SHAPES))
        matrix = random_matrix(rng, size, shape)
        chain = random_start(rng, matrix, case)
        length = int(rng.choice([2, 10, 1000, 10**8]))
        epsilon = float(rng.choice([0.1, 1, 5]))
        found = _scales(chain, length, epsilon)
        told = (matrix.tolist(), chain.initial, length, epsilon, found)
        nearly = NEARLY if (matrix > LIKELY).all() else ROUGHLY
        if found["exact"] > 0:
            most[nearly] = max(most[nearly], found["sweep"] / found["exact"])
        assert found["sweep"] <= found["exact"] * nearly, told
        order = [found[m] for m in ("exact", "approx", "spectral", "group") if m in found]
        for lower, upper in itertools.pairwise(order):
            assert lower <= upper * (1 + 1e-9), told
        assert found["approx"] <= found["contraction"] * (1 + 1e-9), told
        strict["sweep < exact"] += found["sweep"] < found["exact"] * (1 - 1e-9)
        strict["exact < approx"] += found["exact"] < found["approx"] * (1 - 1e-9)
        if "spectral" in found:
            strict["approx < spectral"] += found["approx"] < found["spectral"] * (1 - 1e-9)
        progress(case + 1, chains)
    return {
        "chains": chains,
        **strict,
        "largest sweep / exact, all steps likely": f"{most[NEARLY]:.4f}",
        "largest sweep / exact, others": f"{most[ROUGHLY]:.4f}",
        "violations": 0,
    }


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
