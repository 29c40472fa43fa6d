"""The package's sweep against a linear program over all mechanisms, on small cases of every kind.

What an account says is what is checked, for every belief that it takes; for adversaries who know
rows, functions of a state and matrices that change, what the engine says. Long series of two
states are checked against a closed form, and calibrated noise against what it then leaks.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from numpy.random import Generator

from evidence import sweep_program as program
from evidence.random_sweeps import (
    KINDS,
    LONG,
    Box,
    Case,
    Chain,
    matrix,
    size_and_length,
    start,
    stationary,
    truth,
)
from quiltwork import queries
from quiltwork.beliefs import Belief, ChainBox, CyclicChain, HiddenChain, MarkovChain
from quiltwork.budget import Accountant, Spending
from quiltwork.budget.accounting.usage import Usage
from quiltwork.errors import InvalidInputError
from quiltwork.influence import calibrate
from quiltwork.influence import sweep as engine
from quiltwork.influence.sweep.step import ExactSide
from quiltwork.influence.timeline import Timeline

NAME = "the sweep"
CLAIM = (
    "no mechanism of these levels tells more than the package says, about any node or episode, for "
    "any belief, adaptively or not; for two states some mechanism tells just that, on series of "
    "any length; calibrated noise leaks no more than ε, and for two states just that"
)
CASES = 1200  # of every kind, and as many adaptive analysts and calibrations
SLACK = 1e-6  # of solvers, relative
CALIBRATED = ("any shape", "stationary", "sets", "any start", "boxes", "episodes", "days")

Claim = Callable[[Case], np.ndarray]


def claimed(case: Case) -> np.ndarray:
    """What is claimed to leak about each block: by an account where it takes the beliefs."""
    spent = spendings(case.charges)
    beliefs = [as_belief(belief) for belief in case.beliefs]
    if case.everyone or None in beliefs:
        [belief], [made] = case.beliefs, beliefs
        if case.everyone:
            swept = engine.sweep_against_known_rows(made, case.length)
        else:
            swept = by_engine(belief, case.episode)
        levels = levels_spent(case.charges, case.length)
        first, last, leak = swept.profile(levels, range(1, case.length + 1))
        return np.repeat(leak, last - first + 1)[: len(case.blocks)]
    account = Accountant(beliefs, case.length, episode=case.episode)
    account.add_all(spent)
    found = account.profile().values()[: len(case.blocks)]
    assert account.epsilon() >= found.max() * (1 - 1e-12), "the total is below a node's"
    return found


def levels_spent(charges: program.Charges, length: int) -> engine.Levels:
    """The levels of such releases, as an account adds them up."""
    usage = Usage()
    for one in spendings(charges):
        usage = usage.plus(one)
    return usage.levels(length)


def spendings(charges: program.Charges) -> list[Spending]:
    """Charges as releases: one per run of equal points, per pair and per window."""
    points = np.array(charges.points)
    cuts = [0, *(np.flatnonzero(np.diff(points)) + 1).tolist(), len(points)]
    runs = [
        Spending(a + 1, b, Fraction(float(points[a]))) for a, b in pairwise(cuts) if points[a] > 0
    ]
    pairs = [
        Spending(t + 1, t + 2, per_pair=Fraction(c)) for t, c in enumerate(charges.pairs) if c > 0
    ]
    return runs + pairs + [Spending(a + 1, b + 1, once=Fraction(c)) for a, b, c in charges.windows]


def as_belief(belief: Chain | Box) -> Belief | None:
    """The belief as the package has it; None where only its engine takes such chains."""
    if isinstance(belief, Box):
        return ChainBox(belief.lower, belief.upper)
    if len(set(belief.values)) < len(belief.values):
        return _hidden(belief) if belief.homogeneous else None
    if belief.period is not None or not belief.homogeneous:
        turn = belief.matrices[: belief.period]
        if belief.start is None:
            return CyclicChain(turn, initial="any")
        if belief.period == len(turn) and _is_long_run(belief):
            with contextlib.suppress(InvalidInputError):
                return CyclicChain(turn)
        return CyclicChain(turn, initial=belief.start)
    rows = belief.matrices[0]
    if belief.start is None:
        return MarkovChain(rows, "any")
    if np.array_equal(belief.start, stationary(rows)):
        with contextlib.suppress(InvalidInputError):  # where the stationary law is not unique
            return MarkovChain(rows)
    return MarkovChain(rows, belief.start)


def _hidden(chain: Chain) -> HiddenChain:
    rows, begin = chain.matrices[0], chain.start
    if np.array_equal(begin, stationary(rows)):
        with contextlib.suppress(InvalidInputError):
            return HiddenChain(rows, chain.values)
    return HiddenChain(rows, chain.values, "any" if begin is None else begin)


def _is_long_run(chain: Chain) -> bool:
    turn = functools.reduce(np.matmul, chain.matrices[: chain.period])
    return np.array_equal(chain.start, stationary(turn))


def by_engine(chain: Chain, episode: int) -> engine.Sweep:
    """Chains of which the data show a function."""
    steps = np.array(chain.matrices[:1] if chain.homogeneous else chain.matrices)
    walk = Timeline(steps, chain.laws, chain.laws > 0, None, 0.0, chain.differ)
    sides = ExactSide(walk, to_left=True), ExactSide(walk, to_left=False)
    return engine.Sweep(walk, *sides, chain.length, episode)


def fault(case: Case, claim: np.ndarray, true: np.ndarray) -> str | None:
    """What is wrong with a claim, if anything.

    It must cover what some mechanism betrays, must not exceed all that is spent, and for a known
    chain of two states it must be attained.
    """
    if not (claim >= true - SLACK * (1 + true)).all():
        return "below the truth"
    if (claim > case.charges.cost(range(case.length)) * (1 + SLACK) + 1e-9).any():
        return "above all that is spent"
    if attained(case) and (claim > true + SLACK * (1 + true)).any():
        return "above what two states can betray"
    return None


def attained(case: Case) -> bool:
    """Whether the sweep is the supremum: chains of two states with a start, charged by points.

    Laws of long series that get stuck are followed for some time points only, and in long series
    of days all nodes of a run get what its worst phase leaks.
    """
    plain = case.charges.pairs == () and case.charges.windows == ()
    chains = [belief for belief in case.beliefs if isinstance(belief, Chain)]
    known = len(chains) == len(case.beliefs) and all(c.start is not None for c in chains)
    two = all(chain.values == (0, 1) for chain in chains)
    connected = case.length <= LONG or all(
        c.period is None and (c.matrices[0] + np.eye(2)).all() for c in chains
    )
    return plain and known and two and connected and case.episode == 1 and not case.everyone


def compare(case: Case, claim: Claim = claimed) -> tuple[np.ndarray, np.ndarray]:
    """The claim and the truth of one case; raises where they contradict each other."""
    said, true = claim(case), truth(case)
    wrong = fault(case, said, true)
    assert wrong is None, (wrong, case, said, true)
    return said, true


def calibrated(case: Case, rng: Generator) -> float:
    """What calibrated noise leaks over ε, by the program; raises where that is above 1.

    The case lends its beliefs; one count, histogram or table of transitions is asked.
    """
    epsilon = float(rng.choice([0.1, 0.5, 1.0, 3.0]))
    scale, group, case = asked(case, rng, epsilon)
    told = truth(case).max() / epsilon
    assert scale > 0 or told == 0, ("no noise where something leaks", case)
    assert told <= 1 + SLACK * 2, ("noise that leaks more than ε", case, epsilon, told)
    if attained(case) and 0 < scale < group * (1 - 1e-9):
        assert told >= 1 - 1e-5, ("more noise than two states need", case, epsilon, told)
    return told


def asked(case: Case, rng: Generator, epsilon: float) -> tuple[float, float, Case]:
    """The scale for a random query, that of group privacy, and the case with these charges."""
    first, last = sorted(rng.integers(0, case.length, 2).tolist())
    if rng.random() < 0.5:
        first, last = 0, case.length - 1
    kind = "count" if case.length > LONG else str(rng.choice(["count", "histogram", "transitions"]))
    if kind == "transitions" and (first == last or case.length > 4 or case.laws):
        kind = "histogram"
    made = {
        "count": queries.count(0),
        "histogram": queries.histogram(),
        "transitions": queries.transitions(),
    }[kind].on(first + 1, last + 1)
    beliefs = [as_belief(belief) for belief in case.beliefs]
    if case.episode == case.length - 1:
        case = replace(case, episode=1)
    found = calibrate(beliefs, case.length, epsilon, "sweep", made, episode=case.episode)
    scale = float(found.scale)
    level = (1.0 if kind == "count" else 2.0) / (scale or 10.0)
    inside = [level * (first <= t <= last) for t in range(case.length)]
    if kind == "transitions":
        pairs = tuple(level * (first <= t < last) for t in range(case.length - 1))
        charges = program.Charges((0.0,) * case.length, pairs)
    else:
        charges = program.Charges(tuple(inside))
    group = charges.cost(range(case.length)) * scale / epsilon
    return scale, group, replace(case, charges=charges)


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
        bound = claim(Case("adaptive", (chain,), length, program.Charges(points)))
        for last, node in product(second, range(length)):
            laws = program.conditional_laws(law, [node])
            seen = [_expectation(answer * last, p, node, a) for a, p in laws.items()]
            told = np.log(max(seen) / min(seen))
            assert told <= bound[node] + 1e-9, (chain, points, node, told, bound[node])
        count += len(second)
    return count


def _expectation(likelihood: np.ndarray, law: np.ndarray, node: int, a: tuple[int, ...]) -> float:
    return float((likelihood.take(a[0], node) * law).sum())


@dataclass
class Tally:
    """What was found so far."""

    rounds: int = 0
    compared: int = 0
    equal: int = 0
    transcripts: int = 0
    ratios: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    told: list[float] = field(default_factory=list)


def one_round(seed: int, tally: Tally, claim: Claim) -> None:
    """A case of every kind, an adaptive analyst and a calibration."""
    for number, (kind, draw) in enumerate(KINDS.items()):
        case = draw(np.random.default_rng([number, seed]))
        said, true = compare(case, claim)
        tally.ratios[kind] += [s / t for s, t in zip(said, true, strict=True) if t > SLACK]
        tally.compared += len(said)
        tally.equal += len(said) * attained(case)
    tally.transcripts += adaptive(np.random.default_rng([len(KINDS), seed]), claim)
    rng = np.random.default_rng([len(KINDS) + 1, seed])
    lender = "long series of two states" if seed % 4 == 3 else str(rng.choice(CALIBRATED))
    tally.told.append(calibrated(KINDS[lender](rng), rng))
    tally.rounds += 1


def check(
    cases: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
    claim: Claim = claimed,
) -> dict[str, object]:
    """`cases` of every kind; raises AssertionError at the first counterexample.

    Ctrl-C ends it early, with what was found until then.
    """
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(cases):
            one_round(seed, tally, claim)
            progress(seed + 1, cases)
    short = [one for kind, some in tally.ratios.items() if "long " not in kind for one in some]
    return {
        "cases": tally.rounds * len(KINDS),
        "of every kind": tally.rounds,
        "nodes and episodes compared": tally.compared,
        "of these of two states, where the claim is the truth": tally.equal,
        "adaptive transcripts": tally.transcripts,
        "calibrations": tally.rounds,
        **{f"claim / truth, {kind}": _spread(some) for kind, some in tally.ratios.items()},
        "claim / truth, all short series that are swept": _spread(short),
        "ε / leak of calibrated noise": _spread([1 / one for one in tally.told if one > SLACK]),
        "violations": 0,
    }


def _spread(ratios: list[float]) -> str:
    if not ratios:
        return "nothing leaks in any case"
    median, most = np.quantile(ratios, [0.5, 0.99])
    return f"median {median:.4f}, 99 % within {most:.3f}, largest {max(ratios):.3f}"


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
