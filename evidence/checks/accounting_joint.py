"""Totals against what noise leaks, and against quilts, on random small chains.

Chains have 2 or 3 states and up to 8 time points, with zero entries, periodic and deterministic
ones; windows overlap, nest or are apart; charges are per point, per pair and once. That no
mechanism with such charges tells more than an account says is checked in sweep.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from evidence import accounting_reference as reference
from quiltwork.beliefs import MarkovChain
from quiltwork.budget import Accountant, Spending, compose

NAME = "totals of several releases"
CLAIM = (
    "no noisy counts tell more than the total, which is never more than 1 % above the best quilts "
    "for all releases together, nor, inside two windows, above Theorem 3.1"
)
CASES = 3000
NEARLY = 1.01  # chains without zeros are swept one node at a time, and quilts may jump
SHAPES = ("positive", "sparse", "periodic", "deterministic")


def random_chain(rng: Generator, size: int) -> MarkovChain:
    start, matrix = reference.random_chain(rng, size, rng.choice(SHAPES))
    return MarkovChain(matrix, initial=start)


def random_window(rng: Generator, length: int) -> tuple[int, int]:
    first, last = sorted(int(t) for t in rng.integers(1, length + 1, 2))
    return first, last


def hardly_above_quilts(rng: Generator) -> float:
    """The total over that of the best quilts for all releases together, by brute force."""
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
    quilts = reference.total(reference.chain_law(chain, length), length, records)
    found = total_of(chain, length, records)
    assert found <= quilts * NEARLY + 1e-9, (chain, records, found, quilts)
    return found / quilts if quilts else 1.0


def total_of(chain: MarkovChain, length: int, records: list[Spending]) -> float:
    account = Accountant(chain, length)
    account.add_all(records)
    return account.epsilon()


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


def hardly_above_theorem_3_1(rng: Generator) -> None:
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
    assert inside <= compose.parallel(*levels, *influences) * NEARLY + 1e-9, (chain, records)


def check(cases: int, seed: int, progress: Callable[[int, int], None]) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    shares, ratios = [], []
    for case in range(cases):
        ratios.append(hardly_above_quilts(rng))
        shares.append(covers_what_leaks(rng))
        hardly_above_theorem_3_1(rng)
        progress(case + 1, cases)
    return {
        "totals compared with brute force over all quilts": cases,
        "totals compared with what leaks": cases,
        "totals compared with Theorem 3.1": cases,
        "violations": 0,
        "total / best quilts": f"median {np.median(ratios):.4f}, largest {max(ratios):.4f}",
        "median share of the bound that leaks": f"{np.median(shares):.3f}",
        "largest share": f"{np.max(shares):.6f}",
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, 4298114, progress)
