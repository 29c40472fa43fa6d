"""A consumer of counts: a prior over the count, and a loss for wrong answers.

A prior is an array over 0..n, "uniform", a SciPy distribution, the number of visits of a Markov
chain to a state (`ChainCounts`), or the posterior from earlier releases (`learn_from_release`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.arguments import instance, listed
from quiltwork.counts.alpha_levels import parse_alpha
from quiltwork.counts.consumers.loss_functions import FloatArray, Loss, MatrixLoss, parse_loss
from quiltwork.counts.consumers.universality import Universality, universality
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer, shortened, to_fraction

if TYPE_CHECKING:
    from quiltwork.beliefs import MarkovChain

_SUM_TOLERANCE = 1e-9
_LARGEST_CHAIN = 20_000
LARGEST_PRIOR = 10_000_000
_LARGEST_MEAN = 10**15
_LEAST = 1e-290  # smaller floats lose digits, so logarithms are used below
_NEAR_LEAST = -460.0
_REMAP_MICROSECONDS, _REMAP_BYTES = 2, 400  # per count, measured up to n = 10⁷


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """The number of visits of a chain to `state` in n time points, as a prior for counts.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    >>> ChainCounts(chain, "walk").probabilities(2).round(3).tolist()
    [0.72, 0.16, 0.12]
    """

    chain: MarkovChain
    state: Any

    def __post_init__(self) -> None:
        from quiltwork.beliefs import MarkovChain

        instance(self.chain, MarkovChain, "chain")

    def probabilities(self, n: int) -> FloatArray:
        """Return P(visits = 0..n), by dynamic programming over (state, visits).

        All terms are positive, so nothing cancels. Cost: O(n²·k²) for k states.

        Raises:
            InvalidInputError: if the chain has no such state.
            UnsupportedError: above 20,000 time points.
        """
        length = integer(n, "n", 1)
        if self.state not in self.chain.states:
            raise InvalidInputError(
                f"The chain has no state {shortened(self.state)}; its states are "
                f"{', '.join(map(shortened, self.chain.states))}."
            )
        if length > _LARGEST_CHAIN:
            raise UnsupportedError(
                f"The distribution of counts over {shortened(length)} time points would take about "
                f"{shortened(length**2 * self.chain.size**2 // 2_000_000_000)} s; simulate it and "
                f"give an array, or use at most {_LARGEST_CHAIN:,} time points."
            )
        index = self.chain.states.index(self.state)
        visits = np.zeros((len(self.chain.states), length + 1))
        visits[:, 0] = self.chain.start
        for moment in range(1, length + 1):
            if moment > 1:
                visits[:, :moment] = self.chain.transition.T @ visits[:, :moment]
            visits[index, 1 : moment + 1] = visits[index, :moment]
            visits[index, 0] = 0.0
        return np.asarray(visits.sum(axis=0))


def learn_from_release(
    released: int | Sequence[int], n: int, alpha: Number | Sequence[Number], base: Any = "uniform"
) -> FloatArray:
    """Return the posterior over 0..n after earlier releases of the same count.

    Releases are public, so learning from them costs no privacy. `base` is the prior before them,
    `alpha` the level of each release.

    >>> learn_from_release(2, 2, 0.5).round(4).tolist()
    [0.1429, 0.2857, 0.5714]
    """
    values = list(released) if isinstance(released, Sequence) else [released]
    ratios = list(alpha) if isinstance(alpha, Sequence) else [alpha] * len(values)
    if len(ratios) != len(values):
        raise InvalidInputError("Give one alpha, or one for each released value.")
    return np.exp(_log_posterior(values, ratios, base, n))


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """The prior of `learn_from_release`, with logarithms of values below the smallest float."""

    released: int
    alpha: Fraction

    def log_probabilities(self, n: int) -> FloatArray:
        """Return the log posterior of 0..n."""
        return _log_posterior([self.released], [self.alpha], "uniform", n)


def _log_posterior(values: list[int], ratios: list[Any], base: Any, n: int) -> FloatArray:
    logs = np.nan_to_num(
        prior_log_probabilities(base, integer(n, "n", 1)), nan=-np.inf, neginf=-np.inf
    )
    counts = np.arange(n + 1)
    for value, ratio in zip(values, map(parse_alpha, ratios), strict=True):
        if not 0 < ratio < 1:
            raise InvalidInputError("The alpha of a release must lie strictly between 0 and 1.")
        clipped = min(max(integer(value, "released", -(2**62)), 0), n)
        logs = logs + np.log(np.float64(ratio)) * np.abs(counts - clipped)
    return _normalize_logs(logs, n)


def prior_of_kind(kind: str, parameter: Fraction, n: int) -> Any:
    """Return the distribution binomial(n, parameter), or poisson(parameter), of a count.

    >>> prior_of_kind("binomial", Fraction(1, 10), 20).mean()
    np.float64(2.0)
    """
    from scipy import stats

    if kind == "binomial" and 0 <= parameter <= 1:
        return stats.binom(n, float(parameter))
    if kind == "poisson" and 0 < parameter <= _LARGEST_MEAN:
        return stats.poisson(float(parameter))
    wanted = "a probability" if kind == "binomial" else f"a mean > 0, at most {_LARGEST_MEAN:g}"
    raise InvalidInputError(f"The prior {kind}:{shortened(parameter)} needs {wanted}.")


def prior_probabilities(prior: Any, n: int) -> FloatArray:
    """Return the prior over 0..n as an array that adds up to 1."""
    if hasattr(prior, "log_probabilities") or hasattr(prior, "cdf"):
        return np.exp(np.nan_to_num(prior_log_probabilities(prior, n), nan=-np.inf, neginf=-np.inf))
    _refuse_large(n)
    if isinstance(prior, str):
        return _named(prior, n)
    if hasattr(prior, "probabilities"):
        return _normalized(np.asarray(prior.probabilities(n), dtype=np.float64), n)
    if hasattr(prior, "transition"):
        raise InvalidInputError(
            "A chain alone is not a prior for a count: give ChainCounts(chain, state)."
        )
    return _normalized(_array(prior), n)


def prior_log_probabilities(prior: Any, n: int) -> FloatArray:
    """Return the log prior over 0..n: −inf for impossible counts.

    NaN stands for values below the smallest float whose logarithm is unavailable. Zeros of an array
    are impossible counts.
    """
    _refuse_large(n)
    if hasattr(prior, "log_probabilities"):
        return _normalize_logs(np.asarray(prior.log_probabilities(n), dtype=np.float64), n)
    if hasattr(prior, "cdf"):
        logs = _normalize_logs(_distribution_logs(prior, n), n)
        first, last = prior.support() if hasattr(prior, "support") else (0, n)
        return _mark_underflow(logs, np.clip(first, 0, n), np.clip(last, 0, n))
    with np.errstate(divide="ignore"):
        logs = np.log(prior_probabilities(prior, n))
    return _mark_underflow(logs, 0, n) if hasattr(prior, "probabilities") else logs


def _mark_underflow(logs: FloatArray, first: float, last: float) -> FloatArray:
    """Turn zeros from `first` to `last` into NaN if they are next to nearly underflown values."""
    tiny = np.isfinite(logs) & (logs < _NEAR_LEAST)
    zero = np.isneginf(logs)
    zero[: math.ceil(first)], zero[math.floor(last) + 1 :] = False, False
    if (zero[1:] & tiny[:-1]).any() or (zero[:-1] & tiny[1:]).any():
        return np.where(zero, np.nan, logs)
    return logs


def _refuse_large(n: int) -> None:
    if n > LARGEST_PRIOR:
        raise UnsupportedError(
            f"A prior over 0..{shortened(n)} would take about "
            f"{shortened(n * _REMAP_MICROSECONDS // 10**6)} s and "
            f"{shortened(n * _REMAP_BYTES // 10**9)} GB; n is limited to {LARGEST_PRIOR:,}. Count "
            "in larger units, or take answers at face value."
        )


def prior_fractions(prior: Any, n: int) -> list[Fraction]:
    """Return the prior over 0..n in exact fractions; floats of an array as their shortest decimals.

    The fractions add up to 1; an array is divided by its sum.
    """
    plain = isinstance(prior, (Sequence, np.ndarray)) and not isinstance(prior, str)
    probabilities = prior_probabilities(prior, n)
    if isinstance(prior, str):
        return [Fraction(1, n + 1)] * (n + 1)
    values = prior if plain else probabilities.tolist()
    fractions = [to_fraction(value, "a prior probability") for value in values]
    return [value / sum(fractions) for value in fractions]


def _named(name: str, n: int) -> FloatArray:
    if name != "uniform":
        raise InvalidInputError(
            f"Unknown prior {name!r}; give 'uniform', an array, a SciPy distribution or "
            "ChainCounts."
        )
    return np.full(n + 1, 1 / (n + 1))


def _distribution_logs(prior: Any, n: int) -> FloatArray:
    """Return the log mass of a distribution at 0..n; of a continuous one, between half-integers.

    Above the median it comes from the upper tail, because the distribution function rounds off all
    but the first digits there. Values too small for floats come from logarithms of the mass, or of
    the density by Gauss's rule.
    """
    if hasattr(prior, "pmf"):
        logs = _with_logs(prior.pmf(np.arange(n + 1)), getattr(prior, "logpmf", None), [0.0], [1.0])
        if not np.isneginf(logs).all():
            return logs
    edges = np.arange(n + 2) - 0.5
    below = np.asarray(prior.cdf(edges), dtype=np.float64)
    mass, tail = np.diff(below), getattr(prior, "sf", None) or getattr(prior, "ccdf", None)
    if tail is not None:
        above = np.asarray(tail(edges), dtype=np.float64)
        mass = np.where(below[:-1] < 0.5, mass, -np.diff(above))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return _with_logs(mass, getattr(prior, "logpdf", None), nodes / 2, weights / 2)


def _with_logs(mass: Any, log: Any, nodes: Any, weights: Any) -> FloatArray:
    """Return log(mass); where it underflows, the log of the mean of e^log over nodes about i."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.asarray(mass, dtype=np.float64))
        small = np.flatnonzero(np.asarray(mass) < _LEAST)
        if log is not None and len(small):
            parts = [np.log(w) + log(small + x) for x, w in zip(nodes, weights, strict=True)]
            logs[small] = np.logaddexp.reduce(parts, axis=0)
    return np.asarray(logs)


def _normalize_logs(logs: FloatArray, n: int) -> FloatArray:
    """Validate log weights and normalize the weights to add up to 1."""
    if np.isnan(logs).any() or logs.max() == np.inf:
        raise InvalidInputError("The distribution has probabilities that are not numbers ≥ 0.")
    if np.isneginf(logs).all():
        raise InvalidInputError(
            f"The distribution has no probability on 0..{n}; give one that does."
        )
    top = logs.max()
    return np.asarray(logs - (top + np.log(np.exp(logs - top).sum())))


def _array(prior: Any) -> FloatArray:
    try:
        values = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(())
    if values.ndim == 0:
        raise InvalidInputError(
            "A prior must be 'uniform', an array of n + 1 probabilities, a SciPy distribution or "
            f"ChainCounts, not {shortened(prior)}."
        )
    if values.ndim != 1:
        raise InvalidInputError(f"A prior must have one dimension, not {values.ndim}.")
    return values


def _normalized(values: FloatArray, n: int) -> FloatArray:
    """Validate a prior and divide it by its sum, which must be 1 up to rounding."""
    if len(values) != n + 1:
        raise InvalidInputError(
            f"The prior has {len(values)} probabilities; counts 0..{n} need {n + 1}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        bad = float(values[~(np.isfinite(values) & (values >= 0))][0])
        raise InvalidInputError(f"Prior probabilities must be finite and at least 0, not {bad}.")
    total = float(values.sum())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InvalidInputError(
            f"The prior adds up to {total:.12g}, not 1; divide weights by their sum."
        )
    return values / total


@dataclass(frozen=True, init=False, eq=False)
class Consumer:
    """A reader of counts: a prior over 0..n and a loss l(count, answer).

    Args:
        prior: n + 1 probabilities, "uniform", a SciPy distribution (conditioned on 0..n),
            `ChainCounts(chain, state)`, or any object with `probabilities(n)`, or with
            `log_probabilities(n)`, which may be below the smallest float.
        loss: "absolute", "squared", "binary", "power:Q", "asymmetric:UNDER:OVER", a matrix, a
            function of (count, answer), or a loss from `quiltwork.counts.consumers.loss_functions`.

    >>> user = Consumer([0.5, 0, 0, 0.5], loss="binary")
    >>> user.probabilities(3).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """

    prior: Any
    loss: Loss

    def __init__(self, prior: Any = "uniform", loss: Any = "absolute") -> None:
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "loss", parse_loss(loss))
        if isinstance(prior, str):
            prior_probabilities(prior, 1)
        elif isinstance(prior, (list, tuple, np.ndarray)):
            prior_probabilities(prior, len(listed(prior, "prior")) - 1)

    def probabilities(self, n: int) -> FloatArray:
        """Return the prior over 0..n."""
        self._check_size(n)
        return prior_probabilities(self.prior, n)

    def fractions(self, n: int) -> list[Fraction]:
        """Return the prior over 0..n in exact fractions that add up to 1."""
        self._check_size(n)
        return prior_fractions(self.prior, n)

    def universality(self, n: int) -> Universality:
        """Return whether the remapped geometric mechanism is proven optimal for this loss."""
        self._check_size(n)
        return universality(self.loss, n)

    def _check_size(self, n: int) -> None:
        integer(n, "n", 1)
        if isinstance(self.loss, MatrixLoss) and self.loss.n != n:
            raise InvalidInputError(
                f"The loss matrix covers counts 0..{self.loss.n}, but the mechanism has n = {n}."
            )
