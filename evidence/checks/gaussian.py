"""Gaussian beliefs against covariance matrices, densities, integrals and every set of known rows.

What calibration says is what is checked: scale times ε is what leaks at scale 1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.random import Generator

from evidence import gaussian_reference as reference
from quiltwork import queries
from quiltwork.beliefs import GaussianRows, GaussianSeries
from quiltwork.errors import UnsupportedError
from quiltwork.influence import bayesian_dp, calibrate
from quiltwork.influence.gaussian import bounded_factor

NAME = "Gaussian beliefs"
CLAIM = (
    "an unclipped sum with correlations that are not negative tells just what is claimed, to 1e-9; "
    "no clipped sum on any window tells more, about any number or stretch; stretches cost the "
    "worst corner; adversaries who know rows learn no more than the factor"
)
CASES = 600
EXACT = 1e-9
CANCELLED = 1e-11  # of differences of logarithms

Claim = Callable[..., float]


def claimed(belief, length, query, secrets=None, episode: int = 1) -> float:
    """What leaks at noise of one range."""
    found = calibrate(belief, length, 1, query=query, secrets=secrets, episode=episode)
    return float(found.exact_scale / query.span)


def unclipped(random: Generator, claim: Claim) -> float:
    """How far the claim is from the density's own leakage, relatively, for φ ≥ 0."""
    phi, length = round(random.uniform(0, 0.97), 4), int(random.integers(1, 40))
    node = int(random.integers(length))
    start = int(random.integers(length))
    stop = int(random.integers(start, length))
    scale, apart = random.uniform(0.5, 20), 1.0
    covariance = reference.series_covariance([phi], length)
    truth = reference.unclipped_leakage(covariance, node, range(start, stop + 1), apart, scale)
    wide = queries.sum(-(10**6), 10**6).on(start + 1, stop + 1)
    belief = GaussianSeries(ar=[phi], within=apart)
    said = claim(belief, length, wide, (node + 1, node + 1)) * 2e6 / scale
    assert said >= truth * (1 - EXACT) - CANCELLED, f"below the truth: {said} for {truth}"
    return abs(said - truth) / max(truth, CANCELLED / EXACT)


def clipped(random: Generator, claim: Claim) -> float:
    """What a clipped sum tells, as a share of the claim: at most 1."""
    length, episode = int(random.integers(2, 5)), int(random.integers(1, 3))
    episode = max(episode, length - 3)
    ar = reference.random_autoregression(random, int(random.integers(1, 4)))
    covariance = reference.series_covariance(ar, length)
    node = int(random.integers(length - episode + 1))
    start = int(random.integers(length))
    stop = int(random.integers(start, length))
    within, scale = random.choice([0.3, 1.0, 2.0, 5.0]), random.uniform(0.3, 5)
    belief = GaussianSeries(ar=ar, within=float(within))
    query = queries.sum(-1, 1).on(start + 1, stop + 1)
    said = claim(belief, length, query, (node + 1, node + episode), episode) * 2 / scale
    value = random.uniform(-2, 2, episode)
    other = value + within * random.choice([-1, 1, random.uniform(-1, 1)], episode)
    window, block = range(start, stop + 1), range(node, node + episode)
    told = reference.clipped_leakage(covariance, block, value, other, window, (-1, 1), scale, 24)
    assert told <= said * (1 + EXACT) + 1e-12, f"above the claim: {told} for {said}"
    return told / said if said else 0.0


def stretches(random: Generator, claim: Claim) -> float:
    """The claim for a stretch without clipping, relative to the worst corner: at least 1."""
    length, episode = int(random.integers(2, 30)), int(random.integers(1, 6))
    episode = min(episode, length)
    ar = reference.random_autoregression(random, int(random.integers(1, 4)))
    covariance = reference.series_covariance(ar, length)
    start = int(random.integers(length))
    stop = int(random.integers(start, length))
    levels = np.zeros(length)
    levels[start : stop + 1] = 1.0
    query = queries.sum(-(10**6), 10**6).on(start + 1, stop + 1)
    said = claim(GaussianSeries(ar=ar, within=1), length, query, None, episode) * 2e6
    blocks = [range(i, i + episode) for i in range(length - episode + 1)]
    truth = max(reference.largest_move(covariance, block, levels, 1.0) for block in blocks)
    assert said >= truth * (1 - EXACT), f"below the worst corner: {said} for {truth}"
    if len(ar) == 1 or episode == 1 or episode >= 2 * len(ar):
        assert said <= truth * (1 + EXACT), f"far above the worst corner: {said} for {truth}"
    return said / truth


def known_rows(random: Generator, factor: Callable[[GaussianRows], float]) -> float | None:
    """What adversaries who know rows learn, as a share of the factor: at most 1."""
    size = int(random.integers(2, 6))
    signs = int(random.integers(3))
    if signs == 0:
        inverse = -np.abs(random.normal(size=(size, size))) * (random.random((size, size)) < 0.7)
        inverse = inverse + inverse.T
        np.fill_diagonal(inverse, np.abs(inverse).sum(axis=1) * 1.05 + 0.1)
        covariance = np.linalg.inv(inverse)
    else:
        largest = random.uniform(0, 0.99 / max(size - 2, 1))
        any_size = random.uniform(-1, 1, (size, size))
        drawn = np.triu(any_size if signs == 1 else np.sign(any_size), 1) * min(largest, 0.99)
        covariance = drawn + drawn.T + np.eye(size)
        if np.linalg.eigvalsh(covariance).min() < 1e-3:
            return None
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    np.fill_diagonal(correlation, 1.0)
    try:
        said = factor(GaussianRows(correlation))
    except UnsupportedError:
        return None
    told = min(reference.worst_known_rows(correlation), size)
    assert told <= said * (1 + EXACT), f"above the factor: {told} for {said}"
    return told / said


def by_bayesian_dp(belief: GaussianRows) -> float:
    """The factor as `bayesian_dp` has it."""
    return bayesian_dp(belief, 1)


def worst_signs(size: int, largest: float) -> float:
    """The most that anybody who knows rows learns, over all signs of equal correlations."""
    pairs = [(i, j) for i in range(size) for j in range(i)]
    worst = 0.0
    for signs in product((1, -1), repeat=len(pairs)):
        covariance = np.eye(size)
        for (i, j), sign in zip(pairs, signs, strict=True):
            covariance[i, j] = covariance[j, i] = sign * largest
        if np.linalg.eigvalsh(covariance).min() > 1e-9:
            worst = max(worst, reference.worst_known_rows(covariance))
    return worst


def run(progress: Callable[[int, int], None], cases: int = CASES) -> dict[str, object]:
    """Try so many cases of every kind."""
    random = np.random.default_rng(14)
    exact, shares, corners, known = [], [], [], []
    for case in range(cases):
        exact.append(unclipped(random, claimed))
        shares.append(clipped(random, claimed))
        corners.append(stretches(random, claimed))
        known.append(known_rows(random, by_bayesian_dp))
        progress(case + 1, cases)
    compared = [one for one in known if one is not None]
    assert max(exact) < EXACT, f"off by {max(exact)}"
    return {
        "unclipped sums": len(exact),
        "largest relative error": f"{max(exact):.1e}",
        "clipped sums, none above": len(shares),
        "closest": f"{max(shares):.4f}",
        "stretches against all corners, none below": len(corners),
        "largest excess": f"{max(corners):.4f}",
        "matrices, with every set of rows known": len(compared),
        "closest to the factor": f"{max(compared):.4f}",
        **table(),
    }


def table() -> dict[str, str]:
    """The factor beside that of Lange et al. (2025), and what is learnt if all are that large."""
    rows = {}
    for name, size, largest in (("Galton's heights", 3, 0.274), ("0.9", 3, 0.9), ("0.3", 4, 0.3)):
        ours = bounded_factor(GaussianRows(bounds=largest, rows=size))
        theirs, truth = reference.bound_of_lange(size, largest), worst_signs(size, largest)
        rows[f"{name}, m = {size}"] = (
            f"{ours:.4f}, theirs {theirs:.4f}, with equal ones {truth:.4f}"
        )
    return rows
