"""The two ends decide where the check says so: node by node against enumeration of all paths.

Chains have 2 to 4 states and 1 to 8 time points: birth and death, totally positive kernels, sticky
rows, rows drawn at random, independent points; their states are shuffled, some starts leave states
out. Queries are counts, sums and means on the series or a window, pairs of them, and histograms of
two states; now and then only some nodes are protected. Where the check fails, the law decides, and
sometimes an output in between tells more than the ends: there the check is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import quiltwork as qw
from evidence import leakage as enumerated
from evidence.checks.audit_enumeration import Case
from quiltwork.audit.additive import joint
from quiltwork.audit.ends import TiltedChain
from quiltwork.audit.node_levels import Laws
from quiltwork.audit.power_iteration import OutOfRangeError
from quiltwork.queries import Query

NAME = "The two ends decide where the check says so"
CLAIM = "where the tilted chain keeps the order, the ends are the exact level of every node"

CASES = 5000
_MOST_PATHS = 3000


def random_matrix(draw: np.random.Generator, k: int) -> np.ndarray:
    kind = draw.integers(5)
    if kind == 0:
        up, down = draw.random((2, k)) / 2
        up[-1], down[0] = 0, 0
        return np.diag(1 - up - down) + np.diag(up[:-1], 1) + np.diag(down[1:], -1)
    if kind == 1:
        here, there = np.sort(draw.random((2, k))) * draw.choice([1, 5])
        weights = np.exp(-((here[:, None] - there) ** 2)) * draw.random(k)
        return weights / weights.sum(axis=1, keepdims=True)
    rows = draw.dirichlet(np.ones(k), k)
    if kind == 2:
        return 0.9 * np.eye(k) + 0.1 * rows
    return rows if kind == 3 else np.tile(rows[0], (k, 1))


def random_query(draw: np.random.Generator, k: int, length: int) -> Query:
    kinds = [qw.queries.count(int(draw.integers(k))), qw.queries.sum(0, k - 1)]
    query = [*kinds, qw.queries.mean(0, k - 1)][draw.choice(3, p=[0.6, 0.2, 0.2])]
    if draw.random() < 0.5:
        start = int(draw.integers(1, length + 1))
        query = query.on(start, int(draw.integers(start, length + 1)))
    return query


def random_case(seed: int) -> Case:
    draw = np.random.default_rng(seed)
    k = int(draw.integers(2, 5))
    length = int(draw.integers(1, int(np.log(_MOST_PATHS) / np.log(k)) + 1))
    shuffled = draw.permutation(k)
    start = draw.dirichlet(np.ones(k)) * (draw.random(k) < draw.choice([1.0, 0.7]))
    start = start / start.sum() if start.sum() else np.eye(k)[0]
    matrix = random_matrix(draw, k)[np.ix_(shuffled, shuffled)]
    chain = qw.MarkovChain(matrix, start, states=range(k))
    queries = [random_query(draw, k, length) for _ in range(1 + (draw.random() < 0.3))]
    if k == 2 and draw.random() < 0.2:
        queries = [qw.queries.histogram()]
    releases = [(query, float(draw.choice([0.1, 0.3, 1, 3, 10]))) for query in queries]
    first = int(draw.integers(1, length + 1))
    secrets = (first, int(draw.integers(first, length + 1))) if draw.random() < 0.3 else None
    return Case(chain, length, releases, secrets)


def enumerate_levels(case: Case) -> np.ndarray:
    """What every node leaks, from the definition."""
    paths = enumerated.all_paths(case.chain, case.length)
    parts = [enumerated.answers(q, case.chain.states, paths[0]) for q, _ in case.releases]
    scales = [s for part, (_, s) in zip(parts, case.releases, strict=True) for _ in part[0]]
    values = np.hstack(parts)
    each = [enumerated.additive_leakage(paths, values, scales, [node]) for node in case.nodes]
    return np.array(each)


def ends_of(case: Case) -> tuple[np.ndarray, bool, bool] | None:
    """Levels of the ends per node, whether they are said to decide, and whatever the noise."""
    statistic = joint(case.releases, case.chain.states, case.length)
    series = TiltedChain(Laws(case.chain, case.length, statistic, case.nodes))
    try:
        found = series.ends([float(1 / scale) for scale in statistic.scales])
    except OutOfRangeError:
        return None
    levels = np.repeat(found.leak, np.diff(np.append(found.starts, case.nodes.stop)))
    decided = series.exact(found)
    return levels, decided, decided and series.order is not None and series.order.always


def check(
    cases: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, object]:
    decided = always = nodes = missed = 0
    largest = 0.0
    for seed in range(cases):
        case = random_case(seed)
        truth, found = enumerate_levels(case), ends_of(case)
        if found is not None:
            levels, exact, whatever = found
            room = (levels - truth) / np.maximum(1.0, truth)
            assert room.max() <= 1e-9, (seed, "the ends are outputs, so no node leaks less")
            missed += bool(not exact and room.min() < -1e-9)
            if exact:
                assert room.min() >= -1e-13, (seed, levels, truth)
                largest = max(largest, float(np.abs(room).max()))
                decided, always, nodes = decided + 1, always + whatever, nodes + len(truth)
        answer = qw.audit.leakage(case.chain, case.length, case.releases, secrets=case.secrets)
        assert -1e-13 <= (answer - truth.max()) / max(1.0, truth.max()) <= 1e-9, (seed, answer)
        progress(seed + 1, cases)
    assert missed, "no case in which the check is needed: it would not be tested"
    return {
        "chains": cases,
        "decided by the ends": decided,
        "of these whatever the noise": always,
        "nodes compared with enumeration": nodes,
        "largest difference": f"{largest:.1e}",
        "cases in which the ends miss a node and the check says so": missed,
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
