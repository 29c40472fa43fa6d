"""Theorem 3.1 against the consumer's program, on random consumers.

The program's Lagrange bound is below every α-private mechanism, in exact fractions; the remapped
geometric mechanism attains it. The two sides share no code but the consumer's prior and loss.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from evidence.precise_program import solve
from quiltwork.counts import Consumer, GeometricMechanism
from quiltwork.counts.consumers.loss_functions import (
    Loss,
    MatrixLoss,
    asymmetric,
    parse_loss,
    power,
)
from quiltwork.counts.optimality.consumer_program import lagrange_bound
from quiltwork.counts.optimality.exact_matrix import best_remap

NAME = "Universal optimality"
CLAIM = (
    "for every monotone consumer, the optimal remap of the geometric mechanism loses no more than "
    "any private mechanism (Theorem 3.1); single-crossing losses too"
)
MONOTONE, CROSSING = 10_000, 2_000
LARGEST_N = 12
TOLERANCE = Fraction(1, 10**9)


def run(progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Check all consumers; the counts and the largest distance found."""
    rng = np.random.default_rng(20260731)
    worst, total = Fraction(0), MONOTONE + CROSSING
    for done in range(total):
        loss_of = monotone_loss if done < MONOTONE else crossing_loss
        consumer, n, alpha = random_consumer(rng, loss_of)
        worst = max(worst, distance(consumer, n, alpha))
        assert worst <= TOLERANCE, (n, alpha, consumer.fractions(n), consumer.loss.name)
        progress(done + 1, total)
    return {
        "consumers with monotone losses": MONOTONE,
        "consumers with single-crossing losses": CROSSING,
        "failures": 0,
        "largest n": LARGEST_N,
        "largest distance from the certified optimum, relative": f"{float(worst):.2e}",
    }


def distance(consumer: Consumer, n: int, alpha: Fraction) -> Fraction:
    """How far the remapped mechanism is above the program's bound, relative to the larger of 1."""
    prior = consumer.fractions(n)
    costs = [[prior[i] * consumer.loss.exact(i, r) for r in range(n + 1)] for i in range(n + 1)]
    _, prices = solve(costs, alpha)
    bound = lagrange_bound(costs, prices, alpha)
    mechanism = GeometricMechanism(n, alpha=alpha)
    _, exact = best_remap(mechanism.matrix(exact=True), consumer)
    fast = Fraction(mechanism.remap(consumer).expected_loss)
    scale = max(Fraction(1), exact)
    assert exact >= bound, "the bound is above an attainable loss"
    assert abs(fast - exact) <= scale / 10**11, "the linear-time remap is off"
    return (exact - bound) / scale


def random_consumer(
    rng: np.random.Generator, loss_of: Callable[[np.random.Generator, int], Loss]
) -> tuple[Consumer, int, Fraction]:
    """A prior (dense, sparse or lumpy), a loss and a level."""
    n = int(rng.integers(1, LARGEST_N + 1))
    weights = rng.integers(0, 10 ** int(rng.integers(1, 4)), n + 1)
    weights = np.where(rng.random(n + 1) < rng.choice([0.0, 0.3, 0.7]), 0, weights)
    if weights.sum() == 0:
        weights[rng.integers(n + 1)] = 1
    prior = [Fraction(int(w), int(weights.sum())) for w in weights]
    alpha = Fraction(int(rng.integers(1, 40)), 40)
    return Consumer(prior, loss_of(rng, n)), n, alpha


def monotone_loss(rng: np.random.Generator, n: int) -> Loss:
    """A named loss, or for each count its own steps that never fall with the distance."""
    named: list[Loss] = [
        parse_loss("absolute"),
        parse_loss("squared"),
        parse_loss("binary"),
        power(Fraction(3, 2)),
        power(Fraction(1, 2)),
        power(3),
    ]
    choice = int(rng.integers(2 * len(named)))
    if choice < len(named):
        return named[choice]
    steps = np.cumsum(rng.integers(0, 5, (n + 1, n + 1)), axis=1)
    counts = np.arange(n + 1)
    entries = steps[counts[:, None], np.abs(counts[:, None] - counts[None, :])].astype(float)
    return MatrixLoss(entries, tuple(tuple(Fraction(int(e)) for e in row) for row in entries))


def crossing_loss(rng: np.random.Generator, n: int) -> Loss:
    """An asymmetric loss, or any function of the error that falls up to 0 and rises after it."""
    if rng.random() < 0.3:
        return asymmetric(int(rng.integers(1, 10)), int(rng.integers(1, 10)))
    rises = np.cumsum(rng.integers(0, 5, n))
    falls = np.cumsum(rng.integers(0, 5, n))
    by_error = np.concatenate([falls[::-1], [0], rises])
    counts = np.arange(n + 1)
    entries = by_error[counts[None, :] - counts[:, None] + n].astype(float)
    return MatrixLoss(entries, tuple(tuple(Fraction(int(e)) for e in row) for row in entries))
