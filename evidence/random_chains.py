"""Random chains of every awkward shape from a seed, for the full counts."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from quiltwork.beliefs import MarkovChain
from quiltwork.errors import InvalidInputError

SHAPES = (
    "positive",
    "sparse",
    "deterministic",
    "periodic",
    "absorbing",
    "nearly reducible",
    "transient",
)
STARTS = ("given", "certain", "with zeros", "stationary")


def random_matrix(rng: Generator, size: int, shape: str) -> NDArray[np.float64]:
    """A stochastic matrix of this shape."""
    rows = rng.integers(1, 10, (size, size)).astype(float)
    if shape == "sparse":
        rows *= rng.random((size, size)) < 0.6
    elif shape == "deterministic":
        rows = np.eye(size)[rng.integers(0, size, size)]
    elif shape == "periodic":
        rows *= (np.arange(size)[:, None] + np.arange(size)) % 2
    elif shape == "absorbing":
        rows *= rng.random((size, size)) < 0.7
        rows[rng.integers(size)] = np.eye(size)[rng.integers(size)]
    elif shape == "nearly reducible":
        rows = rows * 10.0 ** -rng.integers(0, 12, (size, size))
    elif shape == "transient":  # some states that nothing leads to, or only those before them
        few = int(rng.integers(1, size))
        rows[:, :few] *= np.triu(np.ones((size, few)), 1) * (rng.random((size, few)) < 0.5)
        if rng.random() < 0.2:
            rows[0, 0] = 1.0
    for x in np.flatnonzero(rows.sum(axis=1) == 0):
        rows[x, rng.integers(size)] = 1.0
    return rows / rows.sum(axis=1, keepdims=True)


def random_chain(rng: Generator, size: int) -> MarkovChain:
    """A chain of any shape with any start; one without a stationary law starts uniformly."""
    matrix = random_matrix(rng, size, str(rng.choice(SHAPES)))
    start = str(rng.choice(STARTS))
    if start == "stationary":
        try:
            return MarkovChain(matrix)
        except InvalidInputError:
            start = "given"
    if start == "certain":
        return MarkovChain(matrix, np.eye(size)[rng.integers(size)])
    if start == "with zeros":
        return MarkovChain(matrix, rng.multinomial(4, np.full(size, 1 / size)) / 4)
    return MarkovChain(matrix, rng.dirichlet(np.ones(size)))
