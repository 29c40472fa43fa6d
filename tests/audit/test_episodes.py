"""The exact leakage about stretches of time is that of all paths, enumerated one by one."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

import quiltwork as qw
from quiltwork import audit, queries
from quiltwork.errors import InvalidInputError, UnsupportedError

LENGTH = 5


def law(rng, size):
    found = rng.random(size) * (rng.random(size) > 0.25)
    found[rng.integers(size)] += 0.1
    return found / found.sum()


def matrix(rng, size):
    return np.array([law(rng, size) for _ in range(size)])


def plain(rng):
    size = int(rng.integers(2, 4))
    steps, start = matrix(rng, size), law(rng, size)
    return qw.MarkovChain(steps, initial=start), start, lambda t: steps, range(size)


def days(rng):
    steps, start = [matrix(rng, 2) for _ in range(3)], law(rng, 2)
    return qw.CyclicChain(steps, initial=start), start, lambda t: steps[t % 3], range(2)


def hidden(rng):
    steps, start, shown = matrix(rng, 3), law(rng, 3), [0, 1, 0]
    return (
        qw.HiddenChain(steps, shown, initial=start),
        start,
        lambda t: steps,
        shown,
    )


ASKED = {
    "count": (queries.count(1), lambda path: [sum(x == 1 for x in path)], [LENGTH]),
    "window": (queries.count(0).on(3, 4), lambda path: [sum(x == 0 for x in path[2:4])], [2]),
    "stays": (
        queries.transitions(states=[0, 1]),
        lambda path: [list(pairwise(path)).count(pair) for pair in product((0, 1), (0, 1))],
        [LENGTH - 1] * 4,
    ),
}


def enumerated(made, answer, most, scale, episode, secrets):
    """The worst log-ratio of densities over the product grid, given any two sequences of states."""
    _, start, steps, shown = made
    outputs = np.array(list(product(*(range(top + 1) for top in most))))
    worst, first, last = 0.0, *secrets
    for begin in range(first - 1, last - episode + 1):
        density: dict[tuple[int, ...], np.ndarray] = {}
        weight: dict[tuple[int, ...], float] = {}
        for path in product(range(len(start)), repeat=LENGTH):
            moves = enumerate(pairwise(path))
            p = start[path[0]] * math.prod(steps(t)[x, y] for t, (x, y) in moves)
            if p == 0:
                continue
            seen = tuple(shown[x] for x in path)
            kept = seen[begin : begin + episode]
            likely = np.exp(-np.abs(outputs - answer(seen)).sum(axis=1) / scale)
            density[kept] = density.get(kept, 0) + p * likely
            weight[kept] = weight.get(kept, 0.0) + p
        laws = np.array([density[kept] / weight[kept] for kept in density])
        worst = max(worst, float(np.log(laws.max(axis=0) / laws.min(axis=0)).max()))
    return worst


@pytest.mark.parametrize("kind", [plain, days, hidden])
@pytest.mark.parametrize("asked", ASKED)
def test_the_laws_of_blocks_are_those_of_all_paths(kind, asked):
    query, answer, most = ASKED[asked]
    for seed in range(6):
        made = kind(np.random.default_rng(seed))
        if asked == "stays" and len(made[0].states) > 2:
            continue
        for episode, secrets in ((2, (1, LENGTH)), (3, (2, 5)), (2, (3, 4)), (9, (1, LENGTH))):
            given = (made[0], LENGTH, [(query, 1.3)])
            found = audit.leakage(*given, secrets=secrets, episode=episode)
            within = min(episode, secrets[1] - secrets[0] + 1)
            truth = enumerated(made, answer, most, 1.3, within, secrets)
            assert truth <= found <= truth + 1e-9


def test_noise_that_hides_an_episode_tells_no_more_of_it_than_that():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    for episode in (2, 4):
        scale = qw.calibrate(chain, 40, 1, query=queries.count(1), episode=episode).scale
        found = audit.leakage(chain, 40, [(queries.count(1), scale)], episode=episode)
        assert found == pytest.approx(1, rel=1e-6)  # attained: states that stay
        assert found > 1.2 * audit.leakage(chain, 40, [(queries.count(1), scale)])


def test_what_is_no_episode_and_what_is_too_long_is_said():
    chain = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    with pytest.raises(InvalidInputError, match="episode"):
        audit.leakage(chain, 40, [(queries.count(1), 2)], episode=0)
    with pytest.raises(UnsupportedError, match="possible sequences"):
        audit.leakage(chain, 40, [(queries.count(1), 2)], episode=30)
