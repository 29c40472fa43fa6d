"""Priors learned from what is already public: earlier releases of the same or of similar counts.

Released counts may be used freely, so learning from them costs no privacy. One earlier release of
the same count gives its posterior; many releases of similar counts (the cells of last year's table)
give the prior that explains them best (maximum likelihood by EM). Cost: O(n) per release or round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quiltwork.counts.consumers.losses import FloatArray
from quiltwork.counts.consumers.priors import read_probabilities
from quiltwork.counts.levels import read_alpha
from quiltwork.counts.remaps.posteriors import decay_filter
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, integer, nearest_float, shortened, to_fraction


def learn_from_release(
    released: int | Sequence[int],
    n: int,
    alpha: Number | Sequence[Number],
    base: Any = "uniform",
    drift: Number = 0,
) -> FloatArray:
    """Return what earlier releases of the same count teach, as a prior over 0..n.

    `base` is what was believed before; `alpha` the level of each release. `drift` in [0, 1) allows
    the count to have moved since, by geometric steps of that ratio.

    >>> learn_from_release(2, 2, 0.5).round(4).tolist()
    [0.1429, 0.2857, 0.5714]
    """
    values = list(released) if isinstance(released, Sequence) else [released]
    ratios = list(alpha) if isinstance(alpha, Sequence) else [alpha] * len(values)
    if len(ratios) != len(values):
        raise InvalidInputError("Give one alpha, or one for each release.")
    prior = read_probabilities(base, integer(n, "n", 1))
    counts = np.arange(n + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(prior)
        for value, ratio in zip(values, ratios, strict=True):
            rate = np.log(np.float64(_open_ratio(ratio)))
            logs = logs + rate * np.abs(
                counts - min(max(integer(value, "released", -(2**62)), 0), n)
            )
    posterior = np.exp(logs - logs.max())
    return _spread(posterior / posterior.sum(), float(_drift(drift)))


def learn_from_table(
    released: ArrayLike, n: int, alpha: Number, rounds: int = 200, smoothing: float = 0.5
) -> FloatArray:
    """Return the prior over 0..n that best explains many releases of similar counts.

    Expectation–maximisation from the uniform prior, stopped after `rounds`; `smoothing` adds that
    many imagined releases, spread evenly, so that no count becomes impossible.
    """
    values = np.asarray(released)
    if values.size == 0 or not np.issubdtype(values.dtype, np.integer):
        raise InvalidInputError("Give at least one released count, as integers.")
    prior = read_probabilities("uniform", integer(n, "n", 1))
    size = len(prior)
    decay = float(_open_ratio(alpha))
    seen = np.bincount(np.clip(values.ravel(), 0, n), minlength=size).astype(np.float64)
    imagined = nearest_float(to_fraction(smoothing, "smoothing"))
    if not 0 <= imagined < math.inf:
        raise InvalidInputError(f"smoothing must be at least 0, not {shortened(smoothing)}.")
    total = seen.sum() + imagined
    for _ in range(integer(rounds, "rounds", 1)):
        responsibility = prior * kernel_sum(seen / kernel_sum(prior, decay), decay)
        updated = (responsibility + imagined / size) / total
        settled = float(np.abs(updated - prior).max()) < 1e-9
        prior = updated / updated.sum()
        if settled:
            break
    return prior


def kernel_sum(values: FloatArray, decay: float) -> FloatArray:
    """Return Σ_i values[i]·decay^|i−j| for every j, by two filters. O(n)."""
    forward = decay_filter(values, decay)
    backward = decay_filter(values[::-1], decay)[::-1]
    return forward + backward - values


def _spread(prior: FloatArray, decay: float) -> FloatArray:
    if decay == 0:
        return prior
    spread = kernel_sum(prior, decay)
    return np.asarray(spread / spread.sum())


def _drift(drift: Number) -> Fraction:
    value = read_alpha(drift)
    if value == 1:
        raise InvalidInputError("drift must be below 1; at 1 the earlier release says nothing.")
    return value


def _open_ratio(alpha: Number) -> Fraction:
    value = read_alpha(alpha)
    if not 0 < value < 1:
        raise InvalidInputError("The level of a release lies strictly between 0 and 1.")
    return value
