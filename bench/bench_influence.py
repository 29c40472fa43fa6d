"""Calibration against a straightforward implementation of the paper's loops, and how it scales.

The loops (evidence/paper_loops.py) visit every node and every quilt, so the races are on series
that they can finish. The other tables have no peer: they show that nothing grows with the length,
and what many states and slow mixing cost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench.harness import compare
from evidence.paper_loops import mqm_exact
from quiltwork.beliefs import MarkovChain
from quiltwork.influence import calibrate


def sticky(size: int, stay: float) -> np.ndarray:
    """A walk between levels that stays where it is with probability `stay`."""
    levels = np.arange(size)
    moves = np.exp(-np.abs(levels[:, None] - levels) / 3.0) + 1e-3
    moves /= moves.sum(axis=1, keepdims=True)
    return (1 - stay) * moves + stay * np.eye(size)


def fresh(matrix: np.ndarray, initial: object, length: int, method: str) -> Callable[[], float]:
    """A calibration of a new chain each time, so that nothing computed before is used again."""
    return lambda: calibrate(MarkovChain(matrix, initial), length, 1, method).scale


def race(title: str, chain: MarkovChain, length: int, repeats: int) -> None:
    def ours() -> float:
        return calibrate(MarkovChain(chain.transition, chain.initial), length, 1).scale

    def loops() -> float:
        return mqm_exact(chain, length, 1.0)[0]

    assert abs(ours() / loops() - 1) < 1e-9, "both must find the same scale"
    compare(title, {"quiltwork": ours, "the paper's loops": loops}, repeats=repeats)


def main() -> None:
    small = np.array([[0.9, 0.1], [0.4, 0.6]])
    walk = sticky(51, 0.0)
    start = np.eye(51)[0]
    race("Calibration, 2 states, T = 100, known start", MarkovChain(small, [1, 0]), 100, 5)
    race("Calibration, 8 states, T = 60, stationary", MarkovChain(sticky(8, 0.0)), 60, 3)
    compare(
        "Calibration and length, 2 states, known start",
        {f"T = 10^{n}": fresh(small, [1, 0], 10**n, "exact") for n in (4, 6, 8)},
    )
    compare(
        "Calibration of 51 states, T = 10^6, exact",
        {
            "stationary start": fresh(walk, "stationary", 10**6, "exact"),
            "known start": fresh(walk, start, 10**6, "exact"),
            "any start": fresh(walk, "any", 10**6, "exact"),
            "stationary, slow": fresh(sticky(51, 0.9), "stationary", 10**6, "exact"),
            "known start, slow": fresh(sticky(51, 0.9), start, 10**6, "exact"),
        },
        repeats=3,
    )
    compare(
        "Calibration of 500 states, T = 10^6, approx",
        {
            "spread out": fresh(
                np.random.default_rng(1).dirichlet(np.ones(500), 500), "any", 10**6, "approx"
            ),
            "a walk": fresh(sticky(500, 0.5), "stationary", 10**6, "approx"),
        },
        repeats=3,
    )
    slow = np.array([[0.9995, 0.0005], [0.0005, 0.9995]])
    compare(
        "Calibration of a slow chain (gap 0.001), T = 10^8",
        {
            "stationary start": fresh(slow, "stationary", 10**8, "exact"),
            "known start": fresh(slow, [1, 0], 10**8, "exact"),
        },
        repeats=3,
    )


if __name__ == "__main__":
    main()
