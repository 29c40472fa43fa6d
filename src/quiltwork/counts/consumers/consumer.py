"""A consumer: what it believes about the count, and what a wrong answer costs it.

A prior is an array over 0..n, "uniform", a SciPy distribution, the number of visits of a Markov
chain to a state (`ChainCounts`), or what earlier releases taught (`learn_from_release`).
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
_LEAST = 1e-290  # below, floats lose digits and then everything: logarithms are asked for
_NEAR_LEAST = -460.0
_REMAP_MICROSECONDS, _REMAP_BYTES = 2, 400  # per count, measured up to n = 10⁷


@dataclass(frozen=True, eq=False)
class ChainCounts:
    """How often a chain of n moments visits `state`: a prior for counts of that state.

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

        Terms are positive, so nothing cancels. Cost: O(n²·k²) for k states.

        Raises:
            InvalidInputError: if the chain has no such state.
            UnsupportedError: above 20,000 moments.
        """
        length = integer(n, "n", 1)
        if self.state not in self.chain.states:
            raise InvalidInputError(
                f"The chain has no state {self.state!r}; it has {list(self.chain.states)}."
            )
        if length > _LARGEST_CHAIN:
            raise UnsupportedError(
                f"The count distribution over {shortened(length)} moments would take about "
                f"{shortened(length**2 * self.chain.size**2 // 2_000_000_000)} s; simulate it and "
                f"give an array, or take at most {_LARGEST_CHAIN} moments."
            )
        counted = self.chain.states.index(self.state)
        visits = np.zeros((len(self.chain.states), length + 1))
        visits[:, 0] = self.chain.start
        for moment in range(1, length + 1):
            if moment > 1:
                visits[:, :moment] = self.chain.transition.T @ visits[:, :moment]
            visits[counted, 1 : moment + 1] = visits[counted, :moment]
            visits[counted, 0] = 0.0
        return np.asarray(visits.sum(axis=0))


def learn_from_release(
    released: int | Sequence[int], n: int, alpha: Number | Sequence[Number], base: Any = "uniform"
) -> FloatArray:
    """Return what earlier releases of the same count teach, as a prior over 0..n.

    They are public, so learning from them is free. `base` is what was believed before, `alpha` the
    level of each release.

    >>> learn_from_release(2, 2, 0.5).round(4).tolist()
    [0.1429, 0.2857, 0.5714]
    """
    values = list(released) if isinstance(released, Sequence) else [released]
    ratios = list(alpha) if isinstance(alpha, Sequence) else [alpha] * len(values)
    if len(ratios) != len(values):
        raise InvalidInputError("Give one alpha, or one for each release.")
    return np.exp(_learned_logs(values, ratios, base, n))


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """What `learn_from_release` returns, with the logarithms of what is below the least float."""

    released: int
    alpha: Fraction

    def log_probabilities(self, n: int) -> FloatArray:
        """Return the logarithms of the posterior of 0..n."""
        return _learned_logs([self.released], [self.alpha], "uniform", n)


def _learned_logs(values: list[int], ratios: list[Any], base: Any, n: int) -> FloatArray:
    logs = np.nan_to_num(
        prior_log_probabilities(base, integer(n, "n", 1)), nan=-np.inf, neginf=-np.inf
    )
    counts = np.arange(n + 1)
    for value, ratio in zip(values, map(parse_alpha, ratios), strict=True):
        if not 0 < ratio < 1:
            raise InvalidInputError("The level of a release lies strictly between 0 and 1.")
        seen = min(max(integer(value, "released", -(2**62)), 0), n)
        logs = logs + np.log(np.float64(ratio)) * np.abs(counts - seen)
    return _conditioned(logs, n)


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
    _refuse_long(n)
    if isinstance(prior, str):
        return _named(prior, n)
    if hasattr(prior, "probabilities"):
        return _normalized(np.asarray(prior.probabilities(n), dtype=np.float64), n)
    if hasattr(prior, "transition"):
        raise InvalidInputError(
            "A chain has one count per state: give ChainCounts(chain, state) as the prior."
        )
    return _normalized(_array(prior), n)


def prior_log_probabilities(prior: Any, n: int) -> FloatArray:
    """Return the logarithms of the prior over 0..n: −inf for impossible counts.

    NaN stands for what is below the least float where its logarithm is not to be had. Zeros of an
    array are impossible counts.
    """
    _refuse_long(n)
    if hasattr(prior, "log_probabilities"):
        return _conditioned(np.asarray(prior.log_probabilities(n), dtype=np.float64), n)
    if hasattr(prior, "cdf"):
        logs = _conditioned(_of_distribution(prior, n), n)
        first, last = prior.support() if hasattr(prior, "support") else (0, n)
        return _doubted(logs, np.clip(first, 0, n), np.clip(last, 0, n))
    with np.errstate(divide="ignore"):
        logs = np.log(prior_probabilities(prior, n))
    return _doubted(logs, 0, n) if hasattr(prior, "probabilities") else logs


def _doubted(logs: FloatArray, first: float, last: float) -> FloatArray:
    """Turn zeros from `first` to `last` into NaN if they lie beside what is nearly too small."""
    tiny = np.isfinite(logs) & (logs < _NEAR_LEAST)
    zero = np.isneginf(logs)
    zero[: math.ceil(first)], zero[math.floor(last) + 1 :] = False, False
    if (zero[1:] & tiny[:-1]).any() or (zero[:-1] & tiny[1:]).any():
        return np.where(zero, np.nan, logs)
    return logs


def _refuse_long(n: int) -> None:
    if n > LARGEST_PRIOR:
        raise UnsupportedError(
            f"Reading answers with a prior over 0..{shortened(n)} takes about "
            f"{shortened(n * _REMAP_MICROSECONDS // 10**6)} s and "
            f"{shortened(n * _REMAP_BYTES // 10**9)} GB; it is done up to n = {LARGEST_PRIOR:,}. "
            "Count in larger units, or take answers at face value."
        )


def prior_fractions(prior: Any, n: int) -> list[Fraction]:
    """Return the prior over 0..n exactly: floats of an array as their shortest decimals.

    The fractions add up to 1; an array is divided by its sum.
    """
    plain = isinstance(prior, (Sequence, np.ndarray)) and not isinstance(prior, str)
    probabilities = prior_probabilities(prior, n)
    if isinstance(prior, str):
        return [Fraction(1, n + 1)] * (n + 1)
    values = prior if plain else probabilities.tolist()
    exact = [to_fraction(value, "a prior probability") for value in values]
    return [value / sum(exact) for value in exact]


def _named(name: str, n: int) -> FloatArray:
    if name != "uniform":
        raise InvalidInputError(
            f"Unknown prior {name!r}; use 'uniform', an array, a SciPy distribution or ChainCounts."
        )
    return np.full(n + 1, 1 / (n + 1))


def _of_distribution(prior: Any, n: int) -> FloatArray:
    """Return the log of a distribution's mass at 0..n; a continuous one's between half-integers.

    Above the median it comes from the upper tail, of which the distribution function rounds off
    all but the first digits. What is too small for floats comes from logarithms of the mass, or of
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
    """Return log(mass); where it is too small, that of the mean of e^log over nodes about i."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.asarray(mass, dtype=np.float64))
        small = np.flatnonzero(np.asarray(mass) < _LEAST)
        if log is not None and len(small):
            parts = [np.log(w) + log(small + x) for x, w in zip(nodes, weights, strict=True)]
            logs[small] = np.logaddexp.reduce(parts, axis=0)
    return np.asarray(logs)


def _conditioned(logs: FloatArray, n: int) -> FloatArray:
    """Check logarithms of weights, and make the weights add up to 1."""
    if np.isnan(logs).any() or logs.max() == np.inf:
        raise InvalidInputError("The distribution has probabilities that are no numbers ≥ 0.")
    if np.isneginf(logs).all():
        raise InvalidInputError(f"The distribution has no probability on 0..{n}.")
    top = logs.max()
    return np.asarray(logs - (top + np.log(np.exp(logs - top).sum())))


def _array(prior: Any) -> FloatArray:
    try:
        values = np.array(prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(())
    if values.ndim == 0:
        raise InvalidInputError(
            "A prior is 'uniform', an array of n + 1 probabilities, a SciPy distribution or "
            f"ChainCounts, not {prior!r}."
        )
    if values.ndim != 1:
        raise InvalidInputError(f"A prior has one dimension, not {values.ndim}.")
    return values


def _normalized(values: FloatArray, n: int) -> FloatArray:
    """Check a prior, which must add up to 1."""
    if len(values) != n + 1:
        raise InvalidInputError(
            f"The prior has {len(values)} probabilities; counts 0..{n} need {n + 1}."
        )
    if not (np.isfinite(values).all() and (values >= 0).all()):
        bad = float(values[~(np.isfinite(values) & (values >= 0))][0])
        raise InvalidInputError(f"Prior probabilities are finite and at least 0, not {bad!r}.")
    total = float(values.sum())
    if abs(total - 1) > _SUM_TOLERANCE:
        raise InvalidInputError(
            f"The prior adds up to {total!r}, not 1; divide it by its sum if it holds weights."
        )
    return values / total


@dataclass(frozen=True, init=False, eq=False)
class Consumer:
    """A prior over 0..n and a loss l(count, answer).

    Args:
        prior: n + 1 probabilities, "uniform", a SciPy distribution (conditioned on 0..n),
            `ChainCounts(chain, state)`, or any object with `probabilities(n)`, or with
            `log_probabilities(n)`, which keep what is below the least float.
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
        """Say whether the remapped geometric mechanism is proven optimal for this loss."""
        self._check_size(n)
        return universality(self.loss, n)

    def _check_size(self, n: int) -> None:
        integer(n, "n", 1)
        if isinstance(self.loss, MatrixLoss) and self.loss.n != n:
            raise InvalidInputError(
                f"The loss matrix covers counts 0..{self.loss.n}; the mechanism has n = {n}."
            )
