"""Queries on a few points of a long series, against all mechanisms of their levels.

The joint law of the points asked about and of the secret is followed exactly, whatever the length,
so that the program over all mechanisms is as small as that of a short series. Calibrated noise, its
account, its profile and the secret that is named are compared with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from evidence import sweep_program as program
from evidence.checks.sweep import SLACK, as_belief
from evidence.random_sweeps import (
    Box,
    Chain,
    box_of,
    corner,
    extreme_start,
    longer_memory,
    matrix,
    start,
    stationary,
)
from quiltwork import queries
from quiltwork.beliefs import Belief
from quiltwork.budget import Accountant, Spending
from quiltwork.influence import calibrate

NAME = "the sweep on short windows"
CLAIM = (
    "noise for a few points of a long series leaks no more than ε about any time point or episode, "
    "under any belief, and for two states just that; the account says no less than what leaks, and "
    "the secret that is named is the one that leaks so"
)
CASES = 2_500
LENGTHS = (16, 17, 18, 33, 40, 130, 511, 513, 700)
NO_NOISE = 30.0  # a level at which an answer is as good as told
Runs = list[tuple[int, int]]


@dataclass(frozen=True)
class Believed:
    """A belief and some of its chains, each with a start."""

    made: Belief
    members: tuple[Chain, ...]


def law_at(chain: Chain, nodes: Sequence[int]) -> np.ndarray:
    """P(what the data show at some nodes, from 1), one axis each."""
    values, seen = np.array(chain.values), np.asarray(chain.start, dtype=float)[np.newaxis]
    shown = [values == value for value in range(max(chain.values) + 1)]
    for node in range(1, max(nodes) + 1):
        if node > 1:
            seen = seen @ chain.matrices[node - 2]
        if node in nodes:
            seen = np.stack([seen * one for one in shown], axis=1).reshape(-1, len(values))
    return seen.sum(axis=1).reshape((len(shown),) * len(nodes))


def some_belief(rng: Generator, size: int, length: int) -> Believed:
    """Chains with any kind of start, days, longer memory and boxes."""
    kind = str(rng.choice(["stationary", "given", "any", "days", "memory", "box"]))
    rows = matrix(rng, size)
    steps = [rows] * (length - 1)
    if kind == "memory":
        [short] = longer_memory(rng).beliefs
        while max(short.values) + 1 != size:
            [short] = longer_memory(rng).beliefs
        chain = replace(short, matrices=short.matrices[:1] * (length - 1))
    elif kind == "days":
        turn = [matrix(rng, size) for _ in range(rng.integers(2, 4))]
        steps = [turn[t % len(turn)] for t in range(length - 1)]
        chain = Chain.of(start(rng, size), steps, period=len(turn))
    elif kind == "box":
        width = rng.choice([0.01, 0.1, 0.3])
        box = box_of(np.maximum(rows - width, 0), np.minimum(rows + width, 1))
        chains = [
            Chain.of(extreme_start(rng, size), [corner(rng, box) for _ in steps]) for _ in range(2)
        ]
        return Believed(as_belief(Box(box.lower, box.upper)), tuple(chains))
    else:
        chain = Chain.of(stationary(rows) if kind == "stationary" else start(rng, size), steps)
    if kind == "any" or (kind == "days" and rng.random() < 0.3):
        starts = [extreme_start(rng, size), start(rng, size)]
        members = tuple(replace(chain, start=one) for one in starts)
        return Believed(as_belief(replace(chain, start=None)), members)
    return Believed(as_belief(chain), (chain,))


def some_runs(rng: Generator, length: int) -> Runs:
    """One to three points in a row, at an end or anywhere, or two runs of which one is a point."""
    size = int(rng.integers(1, 4))
    first = int(rng.choice([1, length - size + 1, rng.integers(1, length - size + 2)]))
    runs = [(first, first + size - 1)]
    if size < 3 and rng.random() < 0.4:
        other = int(rng.integers(1, length + 1))
        if other < first - 1 or other > first + size:
            runs = sorted([*runs, (other, other)])
    return runs


def charges_at(
    nodes: Sequence[int], runs: Runs, query: queries.Query, scale: float
) -> program.Charges:
    """What the query charges, over the nodes that are followed."""
    point, pair, once = (move / scale for move in query.sensitivity)
    asked = [any(a <= node <= b for a, b in runs) for node in nodes]
    windows = [(nodes.index(a), nodes.index(b), once) for a, b in runs if once]
    return program.Charges(
        tuple(point * one for one in asked),
        tuple(pair * (a and b) for a, b in pairwise(asked)) if pair else (),
        tuple(windows),
    )


def told(
    members: Sequence[Chain], runs: Runs, query: queries.Query, scale: float, block: range
) -> float:
    """What some mechanism of these levels tells about a block, under the worst chain."""
    points = {node for a, b in runs for node in range(a, b + 1)}
    nodes = sorted(points | set(block))
    charges, places = charges_at(nodes, runs, query, scale), [nodes.index(node) for node in block]
    laws = [law_at(chain, nodes) for chain in members]
    if charges.pairs or charges.windows:
        return max(program.charged_supremum(law, charges, places) for law in laws)
    return max(program.supremum(law, charges.points, places) for law in laws)


def some_query(rng: Generator, runs: Runs) -> queries.Query:
    kinds = [queries.count(0), queries.histogram(), queries.custom(len, lipschitz=3)]
    if len(runs) == 1 and runs[0][1] > runs[0][0]:
        kinds.append(queries.transitions())
    query = kinds[rng.integers(len(kinds))]
    return query.on_runs(runs) if len(runs) > 1 else query.on(*runs[0])


def one_case(seed: int, noise: float = 1.0) -> float:
    """What calibrated noise leaks over ε; raises where something said is wrong.

    `noise` below 1 is a broken calibration.
    """
    rng = np.random.default_rng(seed)
    size, length = int(rng.choice([2, 3], p=[0.7, 0.3])), int(rng.choice(LENGTHS))
    beliefs = [some_belief(rng, size, length) for _ in range(1 if rng.random() < 0.8 else 2)]
    made, members = [one.made for one in beliefs], [c for one in beliefs for c in one.members]
    runs, epsilon = some_runs(rng, length), float(rng.choice([0.1, 0.5, 1.0, 3.0]))
    query, episode = some_query(rng, runs), int(rng.choice([1, 1, 2, 3 if size == 2 else 2]))
    some = sorted(rng.integers(1, length + 1, 2).tolist())
    secrets = (some[0], some[1]) if rng.random() < 0.3 and some[1] - some[0] > 2 else None
    method = "sweep" if rng.random() < 0.5 else None
    found = calibrate(made, length, epsilon, method, query, secrets, episode)
    scale, case = float(found.integer_scale) * noise, (seed, runs, length, episode, secrets)
    first, last = secrets or (1, length)
    starts = {found.node, first, last, int(rng.integers(first, last + 1))}
    starts |= {end + near for run in runs for end in run for near in (-episode, 0, 2)}
    blocks = [
        range(node, node + episode)
        for node in sorted(starts)
        if first <= node <= last - episode + 1
    ]
    level = scale or max(query.sensitivity) / NO_NOISE
    leaks = {block[0]: told(members, runs, query, level, block) for block in blocks}
    most = max(leaks.values())
    assert most <= epsilon * (1 + SLACK), ("noise that leaks more than ε", case, most / epsilon)
    if not scale:
        return most / epsilon
    by_sweep = found.method == "sweep" and 0 < found.nearby < length
    said = found.change / scale + found.influence
    # Where even the plain answer leaks less than ε, that is what is said.
    named = min(abs(said / epsilon - 1), abs(said / most - 1) if most else 1.0) < 0.02
    assert not by_sweep or named, ("another secret is named", case, said)
    exact = size == 2 and episode == 1 and method == "sweep" and query.sensitivity[1:] == (0, 0)
    known = len(members) == 1 and members[0].values == (0, 1) and not isinstance(made[0], Box)
    plain = secrets is None and members[0].period is None
    if exact and known and plain and 0 < found.nearby < length:
        assert most >= epsilon * (1 - 1e-3), ("more noise than two states need", case, most)
    if secrets is None:
        spent = Spending.of_query(query, found.integer_scale, length)
        account = Accountant(made, length, episode=episode)
        account.add(spent)
        assert account.epsilon() >= most * (1 - SLACK), ("an account below the truth", case)
        assert method is None or account.epsilon() <= epsilon * (1 + 1e-9), ("does not fit", case)
        profile = account.profile()
        for node, leak in leaks.items():
            assert profile.at(node) >= leak * (1 - SLACK) - 1e-9, ("a profile below", case, node)
    return most / epsilon


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    noise: float = 1.0,
) -> dict[str, object]:
    """`cases` of them; raises AssertionError at the first counterexample.

    Ctrl-C ends it early, with what was found until then.
    """
    leaks: list[float] = []
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(cases):
            leaks.append(one_case(seed, noise))
            progress(seed + 1, cases)
    told_just_that = sum(leak > 1 - 1e-3 for leak in leaks)
    return {"cases": len(leaks), "of which ε is told": told_just_that, "violations": 0}


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
