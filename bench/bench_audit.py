"""The exact audit and the optimal mechanism as series and state spaces grow.

The first row of each table is the unit; the others show how the cost grows: not with the length
where the two ends decide, about T³ where the law is followed (T nodes, convolutions of T values),
and k for the number of states.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import quiltwork as qw
from bench.harness import compare
from quiltwork.counts.consumers.consumer import ChainCounts

EXAMPLE = qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
ALTERNATING = qw.MarkovChain([[0.4, 0.6], [0.7, 0.3]])
COUNT = qw.queries.count(1)


def chain_of(states: int) -> qw.MarkovChain:
    draw = np.random.default_rng(states)
    return qw.MarkovChain(draw.dirichlet(np.ones(states), states))


def audit(chain: qw.MarkovChain, length: int) -> Callable[[], object]:
    return lambda: qw.audit.leakage(chain, length, [(COUNT, 3.5)])


def calibrate(length: int) -> Callable[[], object]:
    return lambda: qw.calibrate(EXAMPLE, length, 1.0, "optimal-scale", COUNT)


def program(length: int) -> Callable[[], object]:
    user = qw.Consumer(ChainCounts(EXAMPLE, 1))
    return lambda: qw.optimal_for_chain(EXAMPLE, length, 1, user, COUNT, dp_epsilon=2)


def main() -> None:
    lengths = {f"T = {t:,}": audit(EXAMPLE, t) for t in (100, 10_000, 10**6, 10**9)}
    compare("Exact audit, two states", lengths, repeats=3, memory=False)
    followed = {f"T = {t:,}": audit(ALTERNATING, t) for t in (100, 500, 1000, 2000)}
    compare("Exact audit by the law, two states", followed, repeats=3, memory=False)
    states = {f"k = {k}": audit(chain_of(k), 200) for k in (2, 4, 8)}
    compare("Exact audit, 200 time points", states, repeats=3, memory=False)
    scales = {f"T = {t:,}": calibrate(t) for t in (100, 1000, 10**6)}
    compare("Exact calibration, two states", scales, repeats=3, memory=False)
    programs = {f"n = {n}": program(n) for n in (10, 30, 100)}
    compare("Optimal mechanism with a cap", programs, repeats=2, memory=False)


if __name__ == "__main__":
    main()
