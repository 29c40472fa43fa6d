"""Series of few runs, whose steady parts are one node, against sweeps of every node."""

import numpy as np

from quiltwork.beliefs import ChainBox, HiddenChain
from quiltwork.influence.sweep import Endless, Leak, Levels, Sweep, leakage, sweep_of, worst_of_runs
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


def profile_of(sweep: Sweep, levels: Levels, length: int) -> list[list[float]]:
    """What every node leaks, piece by piece."""
    endless = Endless(sweep, sweep.charged(levels))
    endless.short = True
    found = Swept(sweep, levels, range(1, length + 1), endless).profile()
    return [one.tolist() for one in found]


def test_a_side_that_has_settled_is_filled_in_with_what_each_step_would_give(monkeypatch):
    """Contracted sides end their steps early; the same nodes, step by step, have the same bits."""
    rng, real, filled = np.random.default_rng(3), np.array_equal, []

    def noted(one, other):
        filled.append(real(one, other))
        return filled[-1]

    for _ in range(20):
        lower = rng.dirichlet(np.full(3, 2.0), 3) * 0.8
        belief = ChainBox(lower, np.minimum(1.0, lower + 0.25))
        length = int(rng.integers(30, 400))
        sweep, levels = sweep_of(belief, length, 1), random_levels(rng, length)
        with monkeypatch.context() as patch:
            patch.setattr(leakage.np, "array_equal", noted)
            found = profile_of(sweep, levels, length)
            patch.setattr(leakage.np, "array_equal", lambda *_: False)
            assert profile_of(sweep, levels, length) == found
    assert any(filled)
