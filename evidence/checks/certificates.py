"""Certificates of random calibrations, checked in exact fractions, and of noise that is too little.

Chains of every shape (slow, periodic, sparse, absorbing, transient, hidden), queries, windows,
episodes and pairs. The check refuses the same proof at 99 % of the scale, and a proof that is
written anew for 99 % of the scale is not found either, except where the calibration is not sharp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from evidence.random_chains import SHAPES, random_matrix
from quiltwork import files, queries
from quiltwork.audit import check_certificate
from quiltwork.beliefs import Belief, HiddenChain, MarkovChain
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.influence import Calibration, calibrate
from quiltwork.influence.certificate_writer import certificate

NAME = "certificates"
CLAIM = (
    "the noise of a calibration under a chain, slow, periodic and hidden ones included, is proved "
    "to suffice by a certificate that a checker passes in exact fractions, and 1 % less is refused"
)
CASES = 600
LESS = Fraction(99, 100)


def case(seed: int) -> tuple[str, Calibration | None]:
    """A calibration; None where there is nothing to hide or no stationary law to begin with."""
    rng = np.random.default_rng(seed)
    size, shape = int(rng.integers(2, 5)), str(rng.choice([*SHAPES, "slow"]))
    matrix = random_matrix(rng, size, "positive" if shape == "slow" else shape)
    if shape == "slow":
        matrix = np.eye(size) + (matrix - np.eye(size)) * 10.0 ** -rng.integers(1, 6)
    start = "stationary" if rng.random() < 0.6 else rng.dirichlet(np.ones(size))
    shown = [int(v) for v in rng.integers(0, max(2, size - 1), size)]
    long = isinstance(start, str) and rng.random() < 0.4
    length = 100_000 if long else int(rng.integers(1, 25))
    asked = (None, queries.histogram(), queries.transitions())[int(rng.integers(3))]
    if asked is not None and rng.random() < 0.3:
        asked = asked.on(1 + length // 3, 1 + length // 2)
    episode = int(rng.choice([1, 1, 1, min(3, length)]))
    hidden = rng.random() < 0.3
    pairs = [(0, 1)] if episode == 1 and not hidden and rng.random() < 0.2 else None
    epsilon = float(rng.choice([0.1, 1.0, 3.0]))
    kind = f"{shape}{', hidden' if hidden else ''}"
    try:
        belief: Belief = MarkovChain(matrix, start)
        if hidden:
            belief = HiddenChain(matrix, shown, start)
        found = calibrate(belief, length, epsilon, query=asked, episode=episode, pairs=pairs)
    except InvalidInputError:
        return kind, None
    return kind, found if found.exact_scale else None


def check(
    seeds: Iterable[int], progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, object]:
    """Certificates of these seeds; raises AssertionError at the first that is wrong."""
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    all_seeds = list(seeds)
    for done, seed in enumerate(all_seeds, start=1):
        kind, found = case(seed)
        progress(done, len(all_seeds))
        if found is None:
            continue
        counts["calibrations"] += 1
        try:
            text = certificate(found)
        except UnsupportedError:
            counts["without a certificate"] += 1
            continue
        check_certificate(text)
        counts["proved"] += 1
        kinds[kind] += 1
        document = files.parse(text)
        for one in document["certificates"]:
            one["scale"] = str(Fraction(one["scale"]) * LESS)
        try:
            check_certificate(files.dump("certificate", 1, document))
        except NotPrivateError:
            counts["refused at 99 % of the scale"] += 1
        else:
            raise AssertionError(("too little noise was proved", seed, kind))
        try:
            certificate(replace(found, exact_scale=found.exact_scale * LESS))
        except UnsupportedError:
            counts["of which no other proof exists, either"] += 1
    assert counts["proved"] >= 0.9 * counts["calibrations"], (dict(counts), "too few certificates")
    return dict(counts) | {f"proved: {kind}": n for kind, n in sorted(kinds.items())}


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(range(CASES), progress)
