"""Runs of one level between two ends, in strides of several nodes, against all mechanisms.

Two states have a closed form of the truth at any length; more are compared with a linear program.
`forgets` is a broken version: what is spent between two strides is not charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evidence.random_sweeps import stationary
from evidence.sweep_program import chain_law, chain_supremum, two_state_suprema
from quiltwork.beliefs import MarkovChain
from quiltwork.influence.sweep import Levels, sweep_of
from quiltwork.influence.sweep.sides import Exact
from quiltwork.influence.sweep.two_ended_runs import TwoEndedRun

NAME = "strides of the sweep"
CLAIM = (
    "no mechanism of one level on a window tells more than the sweep says, whatever its stride; "
    "one node at a time, two states can betray just that"
)
CASES = 4_000


class Forgets(TwoEndedRun):
    """What is spent on the nodes between two strides goes unpaid."""

    def _bounds(self, side: Exact, level: float, toward: int) -> np.ndarray:
        return super(Forgets, replace(self, stride=1))._bounds(side, level, toward)[
            : self.steps + 1
        ]


def claim_and_truth(
    seed: int, kind: type[TwoEndedRun] = TwoEndedRun
) -> tuple[float, float, int, int]:
    """What is said about the worst node, what some mechanism tells, the stride, the states."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 2, 3, 4]))
    sticky = float(rng.choice([0.0, 0.5, 0.9, 0.98]))
    rows = sticky * np.eye(size) + (1 - sticky) * rng.dirichlet(np.ones(size), size)
    rows = np.maximum(rows, 1e-4) / np.maximum(rows, 1e-4).sum(axis=1, keepdims=True)
    length = int(rng.integers(3, 120)) if size == 2 else 5 if size == 3 else 4
    first = int(rng.integers(1, length))
    last = int(rng.integers(first + 1, length + 1))
    level = float(rng.choice([0.01, 0.05, 0.2, 0.7]))
    spent = np.zeros(length)
    spent[first - 1 : last] = level
    start, matrices = stationary(rows), [rows] * (length - 1)
    sweep = sweep_of(MarkovChain(rows), length)
    between = TwoEndedRun.of(sweep, Levels.of_points(spent), range(1, length + 1))
    assert between is not None, seed
    stride = int(rng.integers(1, max(2, min(7, last - first))))
    between = replace(between, left=sweep.left, right=sweep.right, stride=1).in_strides(stride)
    fields = {name: getattr(between, name) for name in TwoEndedRun.__dataclass_fields__}
    claim = kind(**fields).leak(1.0).leak
    if size == 2:
        truth = float(two_state_suprema(start, matrices, spent).max())
    else:
        node = int(rng.integers(first, last + 1)) - 1
        truth = chain_supremum(chain_law(start, matrices), spent.tolist(), [node])
    return claim, truth, between.stride, size


def check(cases: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict:
    ratios, exact = [], 0
    for seed in range(cases):
        claim, truth, stride, size = claim_and_truth(seed)
        assert claim >= truth * (1 - 1e-9), (seed, claim, truth)
        if size == 2 and stride == 1:
            assert claim <= truth * (1 + 1e-6) + 1e-9, (seed, claim, truth)
            exact += 1
        ratios.append(claim / truth)
        progress(seed + 1, cases)
    return {
        "cases": cases,
        "of these one node at a time with two states, where the claim is the truth": exact,
        "claim / truth": f"median {np.median(ratios):.4f}, largest {max(ratios):.3f}",
        "caught of a version that forgets what is spent between strides": caught(200),
        "violations": 0,
    }


def caught(cases: int) -> int:
    """How often the broken version is below the truth."""
    found = [claim_and_truth(seed, Forgets) for seed in range(cases)]
    return sum(claim < truth * (1 - 1e-9) for claim, truth, *_ in found)


def run(progress: Callable[[int, int], None]) -> dict:
    return check(CASES, progress)
