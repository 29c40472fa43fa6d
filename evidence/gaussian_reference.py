"""Gaussian vectors by their definition: covariance matrices, densities, integrals, every subset.

Nothing here comes from the package.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.linalg import toeplitz
from scipy.special import log_ndtr

_WEIGHTS = 20_000


def autocorrelations(ar, lags: int) -> np.ndarray:
    """Of an autoregression, from its moving-average weights, added up without end in sight."""
    weights = [1.0]
    for _ in range(_WEIGHTS):
        weights.append(sum(c * weights[-j] for j, c in enumerate(ar, 1) if j <= len(weights)))
    psi = np.array(weights)
    return np.array([psi[: len(psi) - h] @ psi[h:] for h in range(lags + 1)]) / (psi @ psi)


def series_covariance(ar, length: int) -> np.ndarray:
    return toeplitz(autocorrelations(ar, length - 1))


def slopes(covariance: np.ndarray, block) -> np.ndarray:
    """B with one row per number: how means move with those of the block, themselves included."""
    block = list(block)
    return covariance[:, block] @ np.linalg.inv(covariance[np.ix_(block, block)])


def largest_move(covariance, block, levels, ratio: float) -> float:
    """max over corners of Σ_t level_t·|B_t·corner|·ratio, without clipping."""
    moved = slopes(covariance, block)
    corners = np.array(list(itertools.product((1, -1), repeat=len(block)))).T
    return float((levels @ np.abs(moved @ corners)).max()) * ratio


def clipped_move(covariance, block, levels, ratio: float, corner) -> float:
    """Σ_t level_t·min(|B_t·corner|·ratio, 1): how far clipped numbers move, at most."""
    return float(levels @ np.minimum(np.abs(slopes(covariance, block) @ corner) * ratio, 1.0))


def log_density(output, mean: float, variance: float, scale: float) -> np.ndarray:
    """The log-density of a Gaussian plus Laplace noise, in closed form."""
    z, spread = np.asarray(output) - mean, np.sqrt(variance)
    left = -z / scale + log_ndtr(z / spread - spread / scale)
    right = z / scale + log_ndtr(-z / spread - spread / scale)
    return np.logaddexp(left, right) + variance / (2 * scale**2) - np.log(2 * scale)


def unclipped_leakage(covariance, node: int, window, apart: float, scale: float) -> float:
    """The largest log-ratio over outputs of a noisy sum, for two true values so far apart."""
    chosen = np.zeros(len(covariance))
    chosen[list(window)] = 1.0
    column = covariance[:, node]
    conditional = covariance - np.outer(column, column) / covariance[node, node]
    variance = max(float(chosen @ conditional @ chosen), 1e-300)
    shift = float(chosen @ column) / covariance[node, node] * apart
    spread = np.sqrt(variance)
    outputs = np.concatenate([np.linspace(-9, 9, 2001) * spread, [-80 * spread - 80 * scale]])
    outputs = np.concatenate([outputs, -outputs, outputs + shift])
    told = log_density(outputs, shift, variance, scale) - log_density(outputs, 0.0, variance, scale)
    return float(np.abs(told).max())


def clipped_leakage(covariance, block, values, others, window, bounds, scale, points=40) -> float:
    """The largest log-ratio over outputs of a noisy sum of clipped numbers, by quadrature.

    `values` and `others` are two true values of the block; the rest, at most three numbers, is
    integrated by Gauss–Hermite on its conditional law, with mean 0 for all.
    """
    block = list(block)
    rest = [t for t in range(len(covariance)) if t not in block]
    moved = slopes(covariance, block)[rest]
    conditional = covariance[np.ix_(rest, rest)] - moved @ covariance[np.ix_(block, rest)]
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    every = list(itertools.product(nodes, repeat=len(rest)))
    grid = np.array(every).reshape(len(every), len(rest))
    mass = np.array([np.prod(w) for w in itertools.product(weights, repeat=len(rest))])
    noise = grid @ np.linalg.cholesky(conditional).T if rest else grid
    sums = []
    for truth in (np.asarray(values, float), np.asarray(others, float)):
        whole = np.empty((len(grid), len(covariance)))
        whole[:, block] = truth
        whole[:, rest] = noise + moved @ truth
        sums.append(np.clip(whole, *bounds)[:, list(window)].sum(axis=1))
    low, high = min(map(np.min, sums)), max(map(np.max, sums))
    outputs = np.linspace(low, high, 400)
    laws = [np.log(np.exp(-np.abs(outputs[:, None] - one[None, :]) / scale) @ mass) for one in sums]
    return float(np.abs(laws[0] - laws[1]).max())


def worst_known_rows(covariance: np.ndarray) -> float:
    """max over rows i and known sets of Σ |slope of the unknown rows on i|, i itself included."""
    size, worst = len(covariance), 0.0
    for i in range(size):
        others = [j for j in range(size) if j != i]
        for number in range(size):
            for known in itertools.combinations(others, number):
                left = [j for j in range(size) if j not in known]
                inner = np.linalg.inv(np.linalg.inv(covariance)[np.ix_(left, left)])
                place = left.index(i)
                worst = max(worst, float(np.abs(inner[:, place] / inner[place, place]).sum()))
    return worst


def bound_of_lange(size: int, largest: float) -> float:
    """The factor of Lange et al. (2025) for Laplace noise on sums: 1 + m²/(4(1/ρ − m + 2))."""
    return 1 + size**2 / (4 * (1 / largest - size + 2))


def random_autoregression(random: np.random.Generator, memory: int) -> list[float]:
    """Coefficients of a stationary one, from partial correlations (Durbin–Levinson)."""
    found = np.zeros(0)
    for kappa in random.uniform(-0.9, 0.9, memory):
        found = np.append(found - kappa * found[::-1], kappa)
    return [float(f"{c:.6f}") for c in found]
