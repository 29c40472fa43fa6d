"""The sweep against a linear program over all mechanisms, on small cases of every kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.random import Generator

from evidence import sweep_program as program
from evidence import sweep_reference as reference
from evidence.random_sweeps import (
    KINDS,
    Box,
    Case,
    Chain,
    Levels,
    Tree,
    matrix,
    size_and_length,
    start,
    truth,
)
from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.errors import InvalidInputError
from quiltwork.influence import sweep

NAME = "the sweep"
CLAIM = (
    "no mechanism of these levels tells more than the sweep says, about any node or episode, for "
    "any belief, adaptively or not; for two states some mechanism tells just that"
)
CASES = 200  # of every kind, and as many adaptive analysts
SLACK = 1e-6  # of solvers, relative

Claim = Callable[[Case], np.ndarray]


def claimed(case: Case) -> np.ndarray:
    """What is claimed to leak about each block: the one place that says whose claim it is."""
    return by_package(case)


def by_reference(case: Case) -> np.ndarray:
    return np.max([_by_reference(belief, case) for belief in case.beliefs], axis=0)


def _by_reference(belief: Chain | Box | Tree, case: Case) -> np.ndarray:
    if isinstance(belief, Box):
        return reference.box_leakage(belief.lower, belief.upper, case.levels)
    if isinstance(belief, Tree):
        return reference.tree_leakage(belief.law, belief.edges, case.levels.own)
    if case.everyone:
        return reference.rows_known_leakage(belief.matrices, case.levels)
    return reference.leakage(belief, case.levels, case.episode)


def by_package(case: Case) -> np.ndarray:
    """The claim of the package, block by block; the reference's for beliefs it has no class for."""
    spent = case.charges.cost(range(case.length))
    found = []
    for belief in case.beliefs:
        made = None if case.everyone else as_belief(belief, case.kind)
        if made is None:
            found.append(_by_reference(belief, case))
        else:
            swept = sweep.sweep_of(made, case.length, case.episode)
            found.append(node_by_node(swept, case.levels, spent)[: len(case.blocks)])
    return np.max(found, axis=0)


def node_by_node(swept: sweep.Sweep, levels: Levels, total: float) -> np.ndarray:
    """The package's profile of a short series, spread over its nodes."""
    own, forward, backward = map(np.array, (levels.own, levels.forward, levels.backward))
    length = len(own)
    spent = sweep.Levels(np.arange(1, length + 1), own, forward, backward, length, total)
    first, last, leak = swept.profile(spent, range(1, length + 1))
    return np.repeat(leak, last - first + 1)


def as_belief(belief: Chain | Box | Tree, kind: str) -> MarkovChain | ChainBox | None:
    if isinstance(belief, Box):
        return ChainBox(belief.lower, belief.upper)
    if isinstance(belief, Tree):
        return None
    if len({m.tobytes() for m in belief.matrices}) > 1 or len(set(belief.values)) < len(
        belief.values
    ):
        return None
    if kind == "stationary":
        with contextlib.suppress(InvalidInputError):  # where the stationary law is not unique
            return MarkovChain(belief.matrices[0])
    return MarkovChain(belief.matrices[0], "any" if belief.start is None else belief.start)


def fault(case: Case, claim: np.ndarray, true: np.ndarray) -> str | None:
    """What is wrong with a claim, if anything.

    It must cover what some mechanism betrays, must not exceed all that is spent, and for a known
    chain of two states it must be attained.
    """
    if (claim < true - SLACK * (1 + true)).any():
        return "below the truth"
    if (claim > case.charges.cost(range(case.length)) * (1 + SLACK) + 1e-9).any():
        return "above all that is spent"
    if _attained(case) and (claim > true + SLACK * (1 + true)).any():
        return "above what two states can betray"
    return None


def _attained(case: Case) -> bool:
    plain = case.charges.pairs == () and case.charges.windows == ()
    [*chains] = [belief for belief in case.beliefs if isinstance(belief, Chain)]
    known = len(chains) == len(case.beliefs) and all(c.start is not None for c in chains)
    two = all(chain.values == (0, 1) for chain in chains)
    return plain and known and two and case.episode == 1 and not case.everyone


def compare(case: Case, claim: Claim = claimed) -> tuple[np.ndarray, np.ndarray]:
    """The claim and the truth of one case; raises where they contradict each other."""
    said, true = claim(case), truth(case)
    wrong = fault(case, said, true)
    assert wrong is None, (wrong, case, said, true)
    return said, true


def randomized_response(rng: Generator, shape: tuple[int, ...]) -> np.ndarray:
    """P(answer | x): the right one of a few with the larger probability; a window of nodes."""
    first, last = sorted(rng.integers(0, len(shape), 2))
    asked = tuple(n if first <= t <= last else 1 for t, n in enumerate(shape))
    answers = int(rng.integers(2, 4))
    right = np.broadcast_to(rng.integers(0, answers, asked), shape)
    hit = np.stack([right == answer for answer in range(answers)])
    weight = np.exp(rng.choice([0.2, 1.0, 3.0]) * hit)
    return weight / weight.sum(axis=0)


def levels_of(mechanism: np.ndarray) -> np.ndarray:
    """The level of each node: the largest log-ratio of any answer when it alone changes."""
    logs = np.log(mechanism)
    return np.array([np.ptp(logs, axis=axis).max() for axis in range(1, logs.ndim)])


def adaptive(rng: Generator, claim: Claim = claimed) -> int:
    """Two releases, where the first answer decides what is asked next; counts transcripts."""
    size, length = size_and_length(rng, 1)
    chain = Chain.of(start(rng, size), [matrix(rng, size)] * (length - 1))
    law = program.chain_law(chain.start, chain.matrices)
    first, count = randomized_response(rng, law.shape), 0
    for answer in first:
        second = randomized_response(rng, law.shape)
        points = tuple((levels_of(first) + levels_of(second)).tolist())
        levels = Levels.plain(points)
        bound = claim(Case("adaptive", (chain,), length, levels, program.Charges(points)))
        for last, node in product(second, range(length)):
            laws = program.conditional_laws(law, [node])
            seen = [_expectation(answer * last, p, node, a) for a, p in laws.items()]
            told = np.log(max(seen) / min(seen))
            assert told <= bound[node] + 1e-9, (chain, points, node, told, bound[node])
        count += len(second)
    return count


def _expectation(likelihood: np.ndarray, law: np.ndarray, node: int, a: tuple[int, ...]) -> float:
    return float((likelihood.take(a[0], node) * law).sum())


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    claim: Claim = claimed,
) -> dict[str, object]:
    """`cases` of every kind; raises AssertionError at the first counterexample."""
    counts: dict[str, object] = {}
    everything: list[float] = []
    compared, done, total = 0, 0, cases * (len(KINDS) + 1)
    for number, (kind, draw) in enumerate(KINDS.items()):
        ratios: list[float] = []
        for seed in range(cases):
            said, true = compare(draw(np.random.default_rng([number, seed])), claim)
            ratios += [s / t for s, t in zip(said, true, strict=True) if t > SLACK]
            compared += len(said)
            progress(done := done + 1, total)
        counts[f"claim / truth, {kind}"] = _spread(ratios)
        everything += ratios
    transcripts = 0
    for seed in range(cases):
        transcripts += adaptive(np.random.default_rng([len(KINDS), seed]), claim)
        progress(done := done + 1, total)
    return {
        "cases": cases * len(KINDS),
        "nodes and episodes compared": compared,
        "adaptive transcripts": transcripts,
        **counts,
        "claim / truth, all": _spread(everything),
        "violations": 0,
    }


def _spread(ratios: list[float]) -> str:
    if not ratios:
        return "nothing leaks in any case"
    median, most = np.quantile(ratios, [0.5, 0.99])
    return f"median {median:.4f}, 99 % within {most:.3f}, largest {max(ratios):.3f}"


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
