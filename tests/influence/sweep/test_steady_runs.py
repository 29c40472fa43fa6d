"""Series of few runs, whose steady parts are one node, against sweeps of every node."""

import numpy as np

from quiltwork.beliefs import HiddenChain
from quiltwork.influence.sweep import Endless, Leak, Levels, Sweep, sweep_of, worst_of_runs
from quiltwork.influence.sweep.leakage import Swept


def random_chain(rng: np.random.Generator) -> HiddenChain:
    """Several inner states behind each that is shown; at times only some can follow another."""
    size, shown = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    matrix = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), size)
    if rng.random() < 0.5:
        matrix[rng.random((size, size)) < 0.5] = 0.0
    matrix += np.diag(np.full(size, rng.choice([0.02, 0.5, 3.0])))
    matrix += 0.05 * np.roll(np.eye(size), 1, axis=1)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return HiddenChain(matrix, [*range(shown), *rng.integers(0, shown, size - shown).tolist()])


def random_levels(rng: np.random.Generator, length: int) -> Levels:
    """Some windows that overlap, nest or are apart."""
    points = np.zeros(length)
    for _ in range(rng.integers(1, 5)):
        first, last = sorted(rng.integers(0, length, 2).tolist())
        points[first : last + 1] += rng.choice([0.003, 0.05, 0.3, 1.0]) * rng.random()
    return Levels.of_points(points)


def node_by_node(sweep: Sweep, levels: Levels, nodes: range) -> Leak:
    """The worst node of one sweep of the whole series in one piece, from end to end."""
    endless = Endless(sweep, sweep.charged(levels))
    endless.short = True
    return Swept(sweep, levels, nodes, endless).worst()


def compared(seed: int) -> int:
    """Whether steady parts were found; raises where the two ways differ."""
    rng = np.random.default_rng(seed)
    length, episode = int(rng.integers(513, 1500)), int(rng.choice([1, 1, 3]))
    sweep, levels = sweep_of(random_chain(rng), length, episode), random_levels(rng, length)
    assert isinstance(sweep, Sweep)
    nodes = range(1, length + 1)
    if rng.random() < 0.2:
        nodes = range(int(rng.integers(1, 200)), int(rng.integers(300, length)))
    found = worst_of_runs(sweep, levels, nodes)
    if found is None:
        return 0
    every = node_by_node(sweep, levels, nodes)
    # a sweep rounds up at every node, also where nothing was released yet: by 1e-10 at most
    assert found.leak >= every.leak * (1 - 1e-11) - 1e-10, (seed, found, every)
    assert found.leak <= every.leak * (1 + 1e-9) + 1e-9, (seed, found, every)
    return 1


def test_what_is_steady_is_bounded_as_a_sweep_of_every_node_does():
    assert sum(compared(seed) for seed in range(12)) >= 8
