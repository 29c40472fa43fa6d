"""Series swept until nothing moves, and public orders of matrices, against all mechanisms.

Two states have a closed form of the truth at any length, also where matrices come in any order;
more are compared with a linear program. Runs are long and short, slow and fast, and overlap.
`Unchecked` is a broken version: a run counts as settled without a certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest import mock

import numpy as np

from evidence.random_sweeps import stationary
from evidence.sweep_program import chain_law, chain_supremum, two_state_suprema
from quiltwork.beliefs import MarkovChain
from quiltwork.influence.sweep import Levels, Sweep, sweep_of
from quiltwork.influence.sweep.runs import SideBounds
from quiltwork.influence.sweep.step import ExactSide
from quiltwork.influence.timeline import sequence_timeline

NAME = "runs of the sweep"
CLAIM = (
    "no mechanism tells more than the sweep says about any node of a long series, wherever its "
    "levels change and in whatever public order its matrices come; of two states some mechanism "
    "tells just that"
)
CASES = 4_000

Array = np.ndarray


def unchecked() -> AbstractContextManager[object]:
    """Bounds that may still rise serve for the rest of a run."""

    def settled(self: SideBounds, ring: Array, place: int, *more: float) -> Array | None:
        return ring[-self._period :] if len(ring) >= self._turns + self._period else None

    return mock.patch.object(SideBounds, "_settled", settled)


def matrix(rng: np.random.Generator, size: int) -> Array:
    sticky = float(rng.choice([0.0, 0.5, 0.9, 0.98, 0.999]))
    rows = sticky * np.eye(size) + (1 - sticky) * rng.dirichlet(np.ones(size), size)
    rows = np.maximum(rows, 1e-4)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def random_levels(rng: np.random.Generator, length: int) -> Array:
    """Some windows that overlap, nest or are apart."""
    spent = np.zeros(length)
    for _ in range(int(rng.integers(1, 5))):
        first = int(rng.integers(0, length))
        last = int(rng.integers(first, length)) + 1
        spent[first:last] += float(rng.choice([0.001, 0.01, 0.05, 0.2, 0.7]))
    return spent


def series(rng: np.random.Generator, size: int, length: int) -> tuple[Sweep, Array, list[Array]]:
    """A sweep, with the law of the first node and the matrices of all steps."""
    if rng.random() < 0.5:
        rows = matrix(rng, size)
        sweep = sweep_of(MarkovChain(rows), length)
        assert isinstance(sweep, Sweep)
        return sweep, stationary(rows), [rows] * (length - 1)
    kinds = np.array([matrix(rng, size) for _ in range(int(rng.integers(1, 4)))])
    day = int(rng.integers(2, 9))
    days = [rng.integers(0, len(kinds), day) for _ in range(2)]
    turns = [days[int(rng.random() < 0.2)] for _ in range(-(-length // day))]
    order = np.concatenate(turns)[: length - 1]
    start, marks = rng.dirichlet(np.ones(size)), np.arange(1, length + 1, day)
    possible = np.ones(size, dtype=np.bool_)
    line = sequence_timeline(kinds, order, start, possible, marks if rng.random() < 0.7 else None)
    sides = ExactSide(line, to_left=True), ExactSide(line, to_left=False)
    return Sweep(line, *sides, length), start, [kinds[one] for one in order]


def claims_and_truth(seed: int) -> tuple[Array, Array, int]:
    """What is said about nodes, what some mechanism tells about them, and how many states."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 2, 2, 3, 4]))
    length = int(rng.integers(30, 1500)) if size == 2 else 5 if size == 3 else 4
    sweep, start, matrices = series(rng, size, length)
    spent = random_levels(rng, length)
    levels, nodes = Levels.of_points(spent), range(1, length + 1)
    first, last, leaks = sweep.profile(levels, nodes)
    assert first[0] == 1, seed
    assert (first[1:] == last[:-1] + 1).all(), seed
    claims = np.repeat(leaks, last - first + 1)
    worst = sweep.worst(levels, nodes)
    assert worst.leak == claims.max(), seed
    if size == 2:
        return claims, two_state_suprema(start, matrices, spent), size
    node = int(rng.integers(0, length))
    truth = chain_supremum(chain_law(start, matrices), spent.tolist(), [node])
    return claims[[node]], np.array([truth]), size


def faulty(seed: int) -> str | None:
    """What is wrong with one case, if anything."""
    claims, truth, size = claims_and_truth(seed)
    if not (claims >= truth * (1 - 1e-9) - 1e-12).all():
        return "below the truth"
    if size == 2 and not (claims <= truth * (1 + 1e-6) + 1e-9).all():
        return "above what two states can betray"
    return None


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    ratios, exact = [], 0
    for seed in range(cases):
        claims, truth, size = claims_and_truth(seed)
        assert (claims >= truth * (1 - 1e-9) - 1e-12).all(), (seed, (claims - truth).min())
        if size == 2:
            assert (claims <= truth * (1 + 1e-6) + 1e-9).all(), (seed, (claims - truth).max())
            exact += len(claims)
        elif truth[0] > 0:
            ratios.append(float(claims[0] / truth[0]))
        progress(seed + 1, cases)
    return {
        "cases": cases,
        "nodes of two states, where the claim is the truth": exact,
        "claim / truth, more states": f"median {np.median(ratios):.4f}, largest {max(ratios):.3f}",
        "caught of a version without certificates": caught(100),
        "violations": 0,
    }


def caught(cases: int, broken: bool = True) -> int:
    """How often the broken version is wrong."""
    with unchecked() if broken else nullcontext():
        return sum(faulty(seed) is not None for seed in range(cases))


def run(progress: Callable[[int, int], None]) -> dict:
    return check(CASES, progress)
