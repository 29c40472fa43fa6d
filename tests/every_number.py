"""Scales, totals and levels of many cases, to the last digit, as JSON: `python every_number.py`.

Needs the package and what its core needs, nothing else, so that it runs in any environment. With
`--ledger FILE` a ledger is filled to its brim in that file, with `--verify FILE` it is verified.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

import quiltwork as qw

WEATHER = [[0.9, 0.1], [0.4, 0.6]]
GRAPH = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "e")])
LOOP = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0)])
SMALL = ("weather", "known start", "alternating", "zeros", "dense 3")


def matrix(size: int, seed: int, stay: float = 0.0) -> np.ndarray:
    """A random matrix; `stay` of every row is on the diagonal."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(size), size)
    return stay * np.eye(size) + (1 - stay) * drawn


def readings(states: int, many: int, seed: int) -> list[int]:
    """A series that lasts in its states."""
    random = np.random.default_rng(seed)
    steps = np.where(random.random(many) < 0.8, 0, random.integers(0, states, many))
    return (np.cumsum(steps) % states).tolist()


def chains() -> Iterator[tuple[str, qw.MarkovChain]]:
    """Chains of few and many states, quick and slow, with zeros and from several starts."""
    yield "weather", qw.MarkovChain(WEATHER)
    yield "known start", qw.MarkovChain(WEATHER, initial=[1, 0])
    yield "any start", qw.MarkovChain(WEATHER, initial="any")
    yield "slow", qw.MarkovChain([[0.9999, 0.0001], [0.0003, 0.9997]])
    yield "alternating", qw.MarkovChain([[0.1, 0.9], [0.8, 0.2]])
    yield (
        "zeros",
        qw.MarkovChain([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.3, 0.7], [1, 0, 0, 0]]),
    )
    yield (
        "absorbing",
        qw.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0, 0, 1]], initial=[0.5, 0.5, 0]),
    )
    for size in (3, 4, 7, 12):
        yield f"dense {size}", qw.MarkovChain(matrix(size, size))
        yield f"lasting {size}", qw.MarkovChain(matrix(size, size, 0.9), initial=matrix(size, 1)[0])
    yield "dense 20", qw.MarkovChain(matrix(20, 20))
    yield "order 2", qw.MarkovChain.fit(readings(3, 900, 1), order=2)
    yield "durations", qw.MarkovChain.fit(readings(2, 900, 2), durations=True)


def others() -> Iterator[tuple[str, qw.beliefs.Belief, int | None]]:
    """Beliefs of every other kind, with a length where they have none of their own."""
    yield "box", qw.ChainBox(np.array(WEATHER) - 0.05, np.array(WEATHER) + 0.05), 200
    yield "fitted box", qw.ChainBox.fit(readings(3, 2000, 3), confidence=0.95), 200
    day = [matrix(3, seed, 0.5) for seed in range(6)]
    yield "day", qw.CyclicChain(day), 90
    yield "day from a start", qw.CyclicChain(day, initial=[1, 0, 0]), 90
    tables = {"a": [0.3, 0.7], **{name: matrix(2, ord(name)).tolist() for name in "bcde"}}
    yield "tree", qw.Network(GRAPH, tables), None
    cliques = {tuple(sorted(edge)): matrix(2, sum(edge)) + 0.2 for edge in LOOP.edges}
    yield "loop", qw.Network(LOOP, cliques), None
    yield "clusters", qw.Clusters(list("aabbbcd")), None


def of_chain(chain: qw.MarkovChain) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is asked of every chain."""
    histogram = qw.queries.histogram()
    for epsilon in (0.1, 1, 5):
        yield f"{epsilon}", lambda e=epsilon: scale(chain, 500, e)
    for method in ("exact", "approx", "spectral", "contraction", "group"):
        yield method, lambda m=method: scale(chain, 500, 1, m)
    yield "histogram", lambda: scale(chain, 300, 1, query=histogram)
    yield "window", lambda: scale(chain, 300, 1, query=histogram.on(40, 60))
    yield "two-ended", lambda: scale(chain, 12, 1)
    yield "episode", lambda: scale(chain, 100, 1, episode=5)
    yield "influence", lambda: qw.max_influence(chain, 20, (15, 27), 100)
    yield "curve", lambda: qw.influence_curve(chain, 200).epsilon(0.2)
    yield "account", lambda: account(chain, 400)
    yield "Bayesian", lambda: qw.bayesian_dp(chain, 0.05, length=300)
    if chain.size < 5:
        yield "pair", lambda: scale(chain, 300, 1, pairs=[(0, 1)])
        yield "monitor", lambda: qw.monitor(chain, [0.1] * 60).most_by_now


def of_small_chain(chain: qw.MarkovChain) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is exact, or takes Gaussian noise: with few states only."""
    count = qw.queries.count(1)
    yield "least", lambda: scale(chain, 60, 1, "optimal-scale", query=count)
    gaussian = {"noise": "gaussian", "delta": 1e-6, "releases": 20}
    yield "Gaussian", lambda: scale(chain, 100, 1, **gaussian)


def of_belief(
    belief: qw.beliefs.Belief, length: int | None
) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is asked of every other belief."""
    yield "1", lambda: scale(belief, length, 1)
    yield "curve", lambda: qw.influence_curve(belief, length).epsilon(0.2)
    yield "account", lambda: account(belief, length)
    yield "Bayesian", lambda: qw.bayesian_dp(belief, 0.05, length=length)


def elsewhere() -> Iterator[tuple[str, Callable[[], object]]]:
    """Numbers, rows of a holdout, counts."""
    weather, count = qw.MarkovChain(WEATHER), qw.queries.count(1)
    families = qw.GaussianRows(0.3 ** np.abs(np.subtract.outer(range(6), range(6))))
    mean, series = qw.queries.mean(0, 10), qw.GaussianSeries(ar=[0.6, -0.2])
    yield "mean of a series", lambda: scale(series, 200, 1, query=mean)
    yield "mean of a family", lambda: scale(families, None, 1, query=mean)
    yield "Bayesian family", lambda: qw.bayesian_dp(families, 0.05)
    yield "Bayesian series", lambda: qw.bayesian_dp(series, 0.05, length=200)
    groups = qw.Clusters([1, 1, 2] * 50)
    for rows, belief in (("independent", None), ("weather", weather), ("grouped", groups)):
        yield f"plan of {rows} rows", lambda b=belief: planned(b)
    user = qw.Consumer("uniform", loss="absolute")
    yield "reading", lambda: qw.GeometricMechanism(60, epsilon=0.5).remap(user).expected_loss
    halves = (count.on(1, 9), 4), (count.on(10, 20), 4)
    yield "divergence", lambda: qw.compose.count_divergence(weather, 30, *halves)


def numbers() -> Iterator[tuple[str, Callable[[], object]]]:
    """Every case by its name, and how to compute what it comes to."""
    for name, chain in chains():
        yield from ((f"{name}, {case}", compute) for case, compute in of_chain(chain))
        if name in SMALL:
            yield from ((f"{name}, {case}", compute) for case, compute in of_small_chain(chain))
    for name, belief, length in others():
        yield from ((f"{name}, {case}", compute) for case, compute in of_belief(belief, length))
    yield from elsewhere()


def scale(beliefs: object, length: int | None, epsilon: float, *asked: str, **more: Any) -> object:
    """The noise of a calibration, exactly."""
    return qw.calibrate(beliefs, length, epsilon, *asked, **more).exact_scale


def account(belief: qw.beliefs.Belief, length: int | None) -> object:
    """What releases on windows come to, by one level and by a query's noise."""
    acc = qw.Accountant(belief, length)
    points = acc.length
    for start in range(1, points + 1, max(1, points // 9)):
        acc.spend(dp_epsilon=0.1, start=start, stop=min(points, start + points // 4))
    acc.spend(dp_epsilon=0.03)
    return acc.exact_epsilon


def planned(belief: qw.beliefs.Belief | None) -> object:
    """The numbers of a plan."""
    plan = qw.plan_holdout(belief, queries=50, overfits=3, tolerance=0.1)
    return [plan.samples, plan.noise, plan.threshold, plan.epsilon]


def spelled(value: object) -> object:
    """A number so that nothing of it is lost."""
    if isinstance(value, list):
        return [spelled(one) for one in value]
    if isinstance(value, Fraction | int):
        return str(value)
    return float(value).hex()  # type: ignore[arg-type]


def said(compute: Callable[[], object]) -> object:
    """What a case comes to, or why it has no answer."""
    try:
        return spelled(compute())
    except qw.QuiltworkError as error:
        return type(error).__name__


def fill(path: str) -> None:
    """Make a ledger whose datasets are spent to the last that fits."""
    with qw.Ledger.open(f"sqlite:///{path}") as ledger:
        for name, chain in chains():
            ledger.create(name, chain, 400, 1)
            for start in range(1, 400, 80):
                ledger.debit(name, qw.Spending(start, start + 60, Fraction(1, 500)))
            left = ledger.accountant(name).largest_next()
            ledger.debit(name, qw.Spending(1, 400, Fraction(left)))


def verify(path: str) -> None:
    """Verify it, and say what it rests on."""
    with qw.Ledger.open(f"sqlite:///{path}") as ledger:
        ledger.verify()
        totals = {name: float(ledger.accountant(name).epsilon()) for name, _ in chains()}
    assert min(totals.values()) > 0.99
    print(json.dumps(totals))


def main() -> None:
    warnings.simplefilter("ignore")
    if "--ledger" in sys.argv:
        fill(sys.argv[-1])
    elif "--verify" in sys.argv:
        verify(sys.argv[-1])
    else:
        json.dump({name: said(compute) for name, compute in numbers()}, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
