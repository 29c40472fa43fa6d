"""Published bounds for releases from a chain, beside which the sweep is measured.

Cao, Yoshikawa, Xiao and Xiong, "Quantifying Differential Privacy under Temporal Correlations",
ICDE 2017 (extended: "… in Continuous Data Release …", TKDE 2019): one mechanism per time point,
whose leakage travels along the chain as a single number in either direction. The recursion and the
sum of both directions are those of the authors' own program (TPL, 2017).

Lange, Guerra-Balboa, Parra-Arnau and Strufe, "Balancing Privacy and Utility in Correlated Data: A
Study of Bayesian Differential Privacy", PVLDB 2025: one mechanism on the whole series, against
adversaries who may know other rows. The ratio is taken as in the authors' own experiments.

Ghosh and Kleinberg, "Inferential Privacy Guarantees for Differentially Private Mechanisms", 2016:
data of weak correlations, where a matrix of influences has a norm below 1. Written from memory: its
factor is compared with the program in tests, not with the paper.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def temporal_loss(kernel: np.ndarray, alpha: float) -> float:
    """L(α) = max log (Q(e^α−1)+1)/(D(e^α−1)+1) over pairs of rows, in closed form. O(k³ log k).

    Q and D are the masses that two rows give to a set of states. The best set holds those of the
    largest ratio q/d, so only the beginnings of that order are tried.
    """
    growth, worst = math.expm1(alpha), 0.0
    for q, d in itertools.permutations(np.asarray(kernel, dtype=float), 2):
        ratio = np.where(d > 0, q / np.where(d > 0, d, 1.0), np.where(q > 0, np.inf, 0.0))
        order = np.argsort(-ratio, kind="stable")
        upper, lower = np.cumsum(q[order]), np.cumsum(d[order])
        worst = max(worst, float(np.log((upper * growth + 1) / (lower * growth + 1)).max()))
    return worst


def temporal_privacy_leakage(
    forward: np.ndarray, backward: np.ndarray, levels: Sequence[float]
) -> np.ndarray:
    """Backward plus forward leakage of every time point, its own level counted once.

    Args:
        forward: P(X_{t+1} | X_t), rows by X_t.
        backward: P(X_{t−1} | X_t), rows by X_t.
        levels: the level of the mechanism at each time point.
    """
    past, future = [levels[0]], [levels[-1]]
    for level in levels[1:]:
        past.append(level + temporal_loss(backward, past[-1]))
    for level in reversed(levels[:-1]):
        future.append(level + temporal_loss(forward, future[-1]))
    return np.array(past) + np.array(future[::-1]) - np.array(levels)


def markov_chain_bound(transition: np.ndarray, level: float) -> float:
    """ε + 4 ln γ, γ the largest transition probability over the smallest; infinite with zeros.

    γ as in the authors' own experiments: over all entries of the matrix.
    """
    smallest = float(np.min(transition))
    return level + 4 * math.log(np.max(transition) / smallest) if smallest > 0 else math.inf


def level_for_markov_chain_bound(transition: np.ndarray, epsilon: float) -> float:
    """The level that this bound allows for ε; 0 where it allows none."""
    return max(0.0, epsilon - markov_chain_bound(transition, 0.0))


def inferential_factor(transition: np.ndarray, length: int) -> float:
    """The most by which a level grows: the largest row sum of 2·(I − Γ)⁻¹; infinite if ‖Γ‖ ≥ 1.

    Γ(i, j) is half the largest log-ratio by which the law of X_i given all others moves with X_j,
    here the same for all inner nodes and both neighbours.
    """
    rows = np.asarray(transition, dtype=float)
    if np.min(rows) <= 0:
        return math.inf
    given = rows[:, :, None] * rows[None, :, :]  # [before, i, after]
    logs = np.log(given / given.sum(axis=1, keepdims=True))
    before, after = (np.ptp(logs, axis=axis).max() / 2 for axis in (0, 2))
    influence = np.diag([before] * (length - 1), -1) + np.diag([after] * (length - 1), 1)
    if np.linalg.norm(influence, 2) >= 1:
        return math.inf
    return float(2 * np.linalg.inv(np.eye(length) - influence).sum(axis=1).max())
