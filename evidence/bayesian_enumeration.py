"""Bayesian DP by its definition: every adversary, every value, the worst mechanism of a level.

Nothing here comes from the package. A joint distribution is an array with one axis per row of the
data. An adversary A(i, K) knows x_K and asks about row i. What a mechanism shows of data x is the
likelihood f(x) of its answer, and x-DP means f(x) ≤ e^x·f(x') for neighbours. So the worst ratio
over all x-DP mechanisms is a linear program in f: maximise Σ_u P(u|a,x_K)·f(a,u) subject to
Σ_u P(u|b,x_K)·f(b,u) = 1 and the neighbours' constraints, u the values of the unknown rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array


def adversaries(rows: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every (i, K), rows counted from 0."""
    for i in range(rows):
        others = [j for j in range(rows) if j != i]
        for size in range(rows):
            yield from ((i, known) for known in itertools.combinations(others, size))


def conditionals(joint: np.ndarray, i: int, known: tuple[int, ...]) -> Iterator:
    """For each possible x_K: {value of row i: P(unknown | x_i, x_K)}, unknown rows in order."""
    unknown = [j for j in range(joint.ndim) if j != i and j not in known]
    table = joint.transpose([*known, i, *unknown])
    for values in itertools.product(*(range(joint.shape[j]) for j in known)):
        part = table[values]
        totals = part.reshape(len(part), -1).sum(axis=1)
        yield values, {x: part[x] / totals[x] for x in range(len(part)) if totals[x] > 0}


def worst_leakage(joint: np.ndarray, level: float) -> float:
    """sup over all level-DP mechanisms and all adversaries of the BDP leakage, by programs."""
    worst = 0.0
    for i, known in sorted(adversaries(joint.ndim), key=lambda one: len(one[1])):
        if level * (joint.ndim - len(known)) <= worst:  # rows that differ, each by its level
            break
        for _, laws in conditionals(joint, i, known):
            for a, b in itertools.permutations(laws, 2):
                worst = max(worst, _program(laws[a], laws[b], level))
    return worst


def _program(above: np.ndarray, below: np.ndarray, level: float) -> float:
    """The largest log Σ above·f(a,·)/Σ below·f(b,·) over functions of this level."""
    shape = (2, *above.shape)
    number = np.arange(math.prod(shape)).reshape(shape)
    pairs = []
    for axis, size in enumerate(shape):
        for x, y in itertools.permutations(range(size), 2):
            pairs.append(np.stack([number.take(x, axis).ravel(), number.take(y, axis).ravel()]))
    first, second = np.concatenate(pairs, axis=1)
    rows = np.arange(len(first))
    matrix = coo_array(
        (
            np.concatenate([np.ones(len(first)), np.full(len(first), -math.exp(level))]),
            (np.concatenate([rows, rows]), np.concatenate([first, second])),
        ),
        shape=(len(first), number.size),
    ).tocsr()
    gain = np.concatenate([above.ravel(), np.zeros(below.size)])
    unit = np.concatenate([np.zeros(above.size), below.ravel()])
    solved = linprog(
        -gain, A_ub=matrix, b_ub=np.zeros(len(first)), A_eq=unit[np.newaxis], b_eq=[1.0]
    )
    assert solved.status == 0, solved.message
    return math.log(-solved.fun)


def leakage_of(joint: np.ndarray, likelihood: Callable[[tuple[int, ...]], float]) -> float:
    """The BDP leakage of one answer of one mechanism: every adversary, every value."""
    shown = np.empty(joint.shape)
    for x in itertools.product(*map(range, joint.shape)):
        shown[x] = likelihood(x)
    worst = 0.0
    for i, known in adversaries(joint.ndim):
        unknown = [j for j in range(joint.ndim) if j != i and j not in known]
        seen = shown.transpose([*known, i, *unknown])
        for values, laws in conditionals(joint, i, known):
            chances = [float((law * seen[values][x]).sum()) for x, law in laws.items()]
            if chances:
                worst = max(worst, math.log(max(chances) / min(chances)))
    return worst


def mechanisms(shape: tuple[int, ...], level: float) -> Iterator[Callable[..., float]]:
    """Likelihoods of single answers of level-DP mechanisms: randomized response, noisy counts."""
    for answer in itertools.product(*map(range, shape)):

        def response(x, answer=answer) -> float:
            return math.exp(-level * sum(a != b for a, b in zip(x, answer, strict=True)))

        yield response
    for count in range(len(shape) + 1):

        def noisy_count(x, count=count) -> float:
            return math.exp(-level * abs(sum(v == 0 for v in x) - count))

        yield noisy_count


def chain_joint(start: np.ndarray, transition: np.ndarray, length: int) -> np.ndarray:
    """The joint distribution of a Markov chain."""
    joint = np.asarray(start, dtype=float)
    for _ in range(length - 1):
        joint = joint[..., np.newaxis] * transition
    return joint
