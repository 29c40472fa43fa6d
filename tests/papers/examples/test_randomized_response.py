"""Randomized response on binary chains (arXiv 2206.11402) leaks exactly what the sweep says."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import quiltwork as qw


@pytest.mark.parametrize(
    ("matrix", "level"),
    [
        ([[0.9, 0.1], [0.4, 0.6]], 0.3),
        ([[0.5, 0.5], [0.2, 0.8]], 1.5),
        ([[0.2, 0.8], [0.7, 0.3]], 1),
    ],
)
def test_randomized_response_at_every_time_point_attains_the_bound(matrix, level):
    chain, length = qw.MarkovChain(matrix), 7
    account = qw.Accountant(chain, length=length)
    for point in range(1, length + 1):
        account.spend(dp_epsilon=level, start=point, stop=point)
    assert account.epsilon() == pytest.approx(worst_transcript(chain, level, length), rel=1e-9)


def worst_transcript(chain, level, length):
    """Return the largest log-ratio about any time point over all transcripts."""
    truth = math.exp(level) / (1 + math.exp(level))
    answer = np.array([[truth, 1 - truth], [1 - truth, truth]])
    step, law, worst = chain.transition, chain.stationary, 0.0
    for transcript in product(range(2), repeat=length):
        seen = [answer[said] for said in transcript]
        past, future = [law], [np.ones(2)]
        for before, after in zip(seen[:-1], reversed(seen[1:]), strict=True):
            past.append((past[-1] * before) @ step)
            future.append(step @ (after * future[-1]))
        for before, now, after in zip(past, seen, reversed(future), strict=True):
            ratio = before * now * after / law
            worst = max(worst, abs(math.log(ratio[0] / ratio[1])))
    return worst
