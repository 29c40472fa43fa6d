"""The exact audit against enumeration of all paths, and every mechanism against its promise.

Chains have 2 to 4 states and 1 to 8 time points, with zero entries, deterministic rows, periodic
and absorbing states; queries are counts, windows, histograms, shares, sums, means, transition
counts and pairs of releases; noise runs from a fiftieth of a unit to twenty units of the answer.
As many cases have matrices that repeat, or inner states of which a function is shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import quiltwork as qw
from evidence import leakage as enumerated
from quiltwork.errors import QuiltworkError, QuiltworkWarning
from quiltwork.queries import Query

NAME = "The exact audit is exact, and every mechanism keeps its promise"
CLAIM = "on 4,000 random beliefs the dynamic program equals enumeration; no mechanism exceeds ε"

CASES = 2000
SHAPED_METHODS = ("sweep", "optimal-scale")
METHODS = ("exact", "approx", "spectral", "contraction", "group", "optimal-scale")
PROGRAM_EVERY = 10
_MOST_PATHS = 20_000
_MOST_OUTPUTS = 3_000


@dataclass(frozen=True)
class Case:
    chain: qw.MarkovChain | qw.CyclicChain | qw.HiddenChain
    length: int
    releases: list[tuple[Query, float]]
    secrets: tuple[int, int] | None

    @property
    def nodes(self) -> range:
        first, last = self.secrets or (1, self.length)
        return range(first, last + 1)


def random_chain(draw: np.random.Generator) -> qw.MarkovChain:
    """Weights with zeros; now and then one successor only, a cycle, or a state never left."""
    k = int(draw.integers(2, 5))
    weights = draw.gamma(draw.choice([0.3, 1.0, 3.0]), size=(k, k)) + 1e-9
    weights[draw.random((k, k)) < draw.choice([0.0, 0.0, 0.3, 0.6])] = 0
    shape = draw.integers(6)
    if shape == 0:
        weights = np.roll(np.eye(k), 1, axis=1)
    elif shape == 1:
        weights[0] = np.eye(k)[0]
    empty = weights.sum(axis=1) == 0
    weights[empty, draw.integers(k)] = 1
    start = draw.dirichlet(np.ones(k))
    if draw.random() < 0.3:
        start[draw.integers(k)] = 0
    return qw.MarkovChain(
        weights / weights.sum(axis=1, keepdims=True), start / start.sum(), states=range(k)
    )


def random_query(draw: np.random.Generator, k: int, length: int) -> Query:
    kinds = [
        qw.queries.count(int(draw.integers(k))),
        qw.queries.histogram(),
        qw.queries.sum(0, k - 1),
        qw.queries.transitions(),
    ]
    query = kinds[draw.choice(len(kinds), p=[0.5, 0.2, 0.15, 0.15])]
    shared = draw.random() < 0.3
    if query.kind == "sum":
        build = qw.queries.Mean if shared else qw.queries.Sum
        query = build(lo=0, hi=k - 1, bits=int(draw.integers(3)))
    elif query.kind == "histogram" and shared:
        query = qw.queries.frequencies()
    if draw.random() < 0.4:
        start = int(draw.integers(1, length + 1))
        query = query.on(start, int(draw.integers(start, length + 1)))
    return query


def random_case(seed: int) -> Case:
    draw = np.random.default_rng(seed)
    while True:
        chain, length = random_chain(draw), int(draw.integers(1, 9))
        number = 2 if draw.random() < 0.15 else 1
        queries = [random_query(draw, chain.size, length) for _ in range(number)]
        scales = [float(10 ** draw.uniform(-1.7, 1.3)) for _ in queries]
        secrets = None
        if draw.random() < 0.2:
            first = int(draw.integers(1, length + 1))
            secrets = (first, int(draw.integers(first, length + 1)))
        case = Case(chain, length, list(zip(queries, scales, strict=True)), secrets)
        if chain.size**length <= _MOST_PATHS and _outputs(case) <= _MOST_OUTPUTS:
            return case


def random_shaped_case(seed: int) -> Case:
    """The same with matrices that repeat, or with inner states of which a function is shown.

    Odd seeds give one to four matrices of the same size, even ones two to four inner states that
    show two or more states at random.
    """
    draw, case = np.random.default_rng(seed), random_case(seed)
    if seed % 2:
        turn = [case.chain]
        while len(turn) < draw.integers(1, 5):
            other = random_chain(draw)
            if other.size == case.chain.size:
                turn.append(other)
        matrices = [one.transition for one in turn]
        return replace(case, chain=qw.CyclicChain(matrices, range(len(matrices[0])), turn[0].start))
    while (inner := random_chain(draw)).size ** case.length > _MOST_PATHS or inner.size < 3:
        if case.length > 6:
            return random_shaped_case(seed + 2 * CASES)
    shows = [int(one) for one in draw.integers(0, case.chain.size, size=inner.size)]
    if len(set(shows)) == 1:
        shows[0] = (shows[0] + 1) % case.chain.size
    labels = range(case.chain.size)
    return replace(case, chain=qw.HiddenChain(inner.transition, shows, inner.start, labels))


def _outputs(case: Case) -> float:
    size = 1.0
    for query, _ in case.releases:
        start, stop = query.window(case.length)
        points = stop - start + 1
        cells = len(query.cells(case.chain.states))
        size *= (points * max(query.subdivision, case.chain.size) + 1) ** cells
    return size


def enumerate_leakage(case: Case) -> float:
    """ε* from the definition."""
    paths = enumerated.all_paths(case.chain, case.length)
    parts = [enumerated.answers(q, case.chain.states, paths[0]) for q, _ in case.releases]
    scales = [s for part, (_, s) in zip(parts, case.releases, strict=True) for _ in part[0]]
    return enumerated.additive_leakage(paths, np.hstack(parts), scales, case.nodes)


def audit_differs(case: Case) -> float:
    """How far the audit lies from enumeration, as a share of max(1, ε*); never below it."""
    truth = enumerate_leakage(case)
    found = qw.audit.leakage(case.chain, case.length, case.releases, secrets=case.secrets)
    assert found >= truth - 1e-13 * max(1.0, truth), (case, found, truth)
    return (found - truth) / max(1.0, truth)


def excess(
    chain: qw.MarkovChain | qw.CyclicChain | qw.HiddenChain,
    length: int,
    query: Query,
    epsilon: float,
    method: str,
    secrets: tuple[int, int] | None = None,
) -> float | None:
    """True level less promise of a calibrated release, by enumeration; None if it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuiltworkWarning)
            scale = qw.calibrate(chain, length, epsilon, method, query, secrets).scale
    except QuiltworkError:
        return None
    paths = enumerated.all_paths(chain, length)
    values = enumerated.answers(query, chain.states, paths[0])
    first, last = secrets or (1, length)
    nodes = range(first, last + 1)
    if scale == 0:
        _, which = np.unique(values, axis=0, return_inverse=True)
        exact = np.eye(int(which.max()) + 1)[which.ravel()]
        return enumerated.table_leakage(paths, exact, nodes) - epsilon
    if query.kind == "most_common":
        return enumerated.choice_leakage(paths, values, scale, nodes) - epsilon
    return enumerated.additive_leakage(paths, values, [scale] * values.shape[1], nodes) - epsilon


def mechanisms_of(case: Case) -> list[tuple[str, Query]]:
    """Every method on the case's first query, and the exponential mechanism."""
    query = case.releases[0][0]
    pairs = [(method, query) for method in METHODS]
    return [*pairs, ("exact", qw.queries.most_common())]


def program_excess(case: Case, epsilon: float, cap: float | None) -> float:
    """True level less promise of the optimal mechanism for a count, by enumeration."""
    query = qw.queries.count(0)
    best = qw.optimal_for_chain(case.chain, case.length, epsilon, qw.Consumer(), query, cap)
    paths = enumerated.all_paths(case.chain, case.length)
    counts = enumerated.answers(query, case.chain.states, paths[0])[:, 0]
    nodes = range(1, case.length + 1)
    return enumerated.table_leakage(paths, best.matrix[counts], nodes) - epsilon


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    largest, promises, programs, refused, closest = 0.0, 0, 0, 0, -np.inf
    for seed in range(CASES):
        case = random_case(seed)
        largest = max(largest, audit_differs(case))
        epsilon = float(np.random.default_rng(seed).choice([0.1, 1.0, 4.0]))
        for method, query in mechanisms_of(case):
            over = excess(case.chain, case.length, query, epsilon, method, case.secrets)
            if over is None:
                refused += 1
                continue
            assert over <= 1e-9, (seed, method, query, epsilon, over)
            promises += 1
            closest = max(closest, over)
        shaped = random_shaped_case(seed)
        largest = max(largest, audit_differs(shaped))
        for method in SHAPED_METHODS:
            query = shaped.releases[0][0]
            over = excess(shaped.chain, shaped.length, query, epsilon, method, shaped.secrets)
            assert over is None or over <= 1e-9, (seed, method, "shaped", epsilon, over)
            refused, promises = refused + (over is None), promises + (over is not None)
        if seed % PROGRAM_EVERY == 0:
            for cap in (None, 1.5):
                over = program_excess(case, epsilon, cap)
                assert over <= 1e-9, (seed, "optimal mechanism", cap, over)
                programs += 1
        progress(seed + 1, CASES)
    assert largest <= 1e-9, largest
    return {
        "chains": CASES,
        "cyclic and hidden chains": CASES,
        "largest difference between audit and enumeration": f"{largest:.1e}",
        "promises of calibrated noise checked": promises,
        "promises of optimal mechanisms checked": programs,
        "promises broken": 0,
        "least room left by a promise": f"{-closest:.1e}",
        "combinations without a proof, refused": refused,
    }
