"""Joint totals against brute force, the truth and the paper's theorems, on random small chains.

Chains have 2 or 3 states and up to 8 time points, with zero entries, periodic and deterministic
ones; windows overlap, nest or are apart; charges are per point, per pair and once.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.random import Generator
from quiltwork.accounting.joint import Joint, Quilts

from evidence import accounting_reference as reference
from quiltwork.accounting import Accountant, Spending, compose
from quiltwork.beliefs import MarkovChain
from quiltwork.influence.arguments import outlooks

NAME = "joint quilts"
CLAIM = (
    "totals equal brute force over all quilts, are never below what leaks, never above "
    "Theorem 3.7, and inside two windows never above Theorem 3.1"
)
CASES = 3000
SHAPES = ("positive", "sparse", "periodic", "deterministic")


def random_chain(rng: Generator, size: int) -> MarkovChain:
    start, matrix = reference.random_chain(rng, size, rng.choice(SHAPES))
    return MarkovChain(matrix, initial=start)


def random_window(rng: Generator, length: int) -> tuple[int, int]:
    first, last = sorted(int(t) for t in rng.integers(1, length + 1, 2))
    return first, last


def equals_brute_force(rng: Generator) -> None:
    size = int(rng.integers(2, 4))
    length = int(rng.integers(1, 7 if size == 3 else 9))
    chain = random_chain(rng, size)
    records = [
        Spending(
            *random_window(rng, length),
            *(Fraction(int(rng.integers(0, n)), d) for n, d in ((20, 10), (5, 30), (3, 7))),
        )
        for _ in range(rng.integers(1, 5))
    ]
    law = reference.chain_law(chain, length)
    joint = Joint.nothing(Quilts(outlooks(chain, length, None), 1, length, int(rng.integers(1, 9))))
    alone = Fraction(0)
    for record in records:
        alone += joint_of(chain, length, [record])
        joint = joint.plus(record)
        if rng.random() < 0.5:
            joint.worst()
    expected, found = reference.total(law, length, records), joint.worst().exact
    assert found >= Fraction(expected) * (1 - Fraction(1, 10**12)), (chain, records)
    assert float(found) <= expected * (1 + 1e-9) + 1e-12, (chain, records, found, expected)
    assert found <= alone * (1 + Fraction(1, 10**12)), "above Theorem 3.7"


def joint_of(chain: MarkovChain, length: int, records: list[Spending]) -> Fraction:
    account = Accountant(chain, length)
    account.add_all(records)
    return account.exact_epsilon


def covers_what_leaks(rng: Generator) -> float:
    """How much of the bound real noise leaks, as a share."""
    size, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    chain = random_chain(rng, size)
    releases = [
        (int(rng.integers(0, size)), *random_window(rng, length), _scale(rng))
        for _ in range(rng.integers(1, 4))
    ]
    account = Accountant(chain, length)
    for _, first, last, scale in releases:
        account.spend(1 / scale, first, last)
    leaked = reference.exact_leakage(reference.chain_law(chain, length), length, releases)
    assert leaked <= account.epsilon() * (1 + 1e-9) + 1e-12, (chain, releases)
    return leaked / account.epsilon() if account.epsilon() else 1.0


def _scale(rng: Generator) -> Fraction:
    return Fraction(int(rng.integers(1, 12)), int(rng.integers(1, 4)))


def keeps_below_theorem_3_1(rng: Generator) -> None:
    chain, length = random_chain(rng, 2), 6
    law = reference.chain_law(chain, length)
    cuts = sorted(int(t) for t in rng.choice(np.arange(1, length + 1), 4, replace=False))
    windows = (cuts[0], cuts[1]), (cuts[2], cuts[3])
    records = [Spending.dp(1 / _scale(rng), *window) for window in windows]
    levels = [
        max(reference.total(law, length, [one], range(a, b + 1)), 1e-9)
        for one, (a, b) in zip(records, windows, strict=True)
    ]
    account = Accountant(chain, length)
    account.add_all(records)
    inside = max(account.leakage(*window) for window in windows)
    influences = compose.influence_between(chain, *windows, length)
    assert inside <= compose.parallel(*levels, *influences) * (1 + 1e-9) + 1e-9, (chain, records)


def check(cases: int, seed: int, progress: Callable[[int, int], None]) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    shares = []
    for case in range(cases):
        equals_brute_force(rng)
        shares.append(covers_what_leaks(rng))
        keeps_below_theorem_3_1(rng)
        progress(case + 1, cases)
    return {
        "totals compared with brute force": cases,
        "totals compared with what leaks": cases,
        "totals compared with Theorem 3.1": cases,
        "violations": 0,
        "median share of the bound that leaks": f"{np.median(shares):.3f}",
        "largest share": f"{np.max(shares):.6f}",
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, 4298114, progress)
