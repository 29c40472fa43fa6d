"""Goodness of fit: a belief compared with a sample.

Compared are likelihood, autocorrelation, durations of stays, time of day and impossible steps. A
chain, a cyclic chain and a hidden chain are described in one form: matrices by phase, and the state
that each inner state shows. A box is represented by its member of maximum likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import HiddenChain, MarkovChain
from quiltwork.beliefs.contexts import count_contexts, fold_of_steps, last_states
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.origins import grid_of, local_times
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.transition_counts import encode_paths
from quiltwork.errors import InvalidInputError, UnsupportedError

LAGS = (1, 2, 5, 10, 20, 50, 100)
_DAY, _HOURS = 86_400, 24
_SMOOTHING = 0.5
"""Added to counts, as in the fits that the box is compared with."""
_FOLLOWED = 5_000
"""Time points for which the distribution of a stay is computed; geometric beyond."""
_GONE = 1e-9
"""The share of stays left at which their distribution is complete."""
_HALVINGS = 200
"""The factor's range is [0, 2]: 200 halvings reach the last float."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Public sequences as state indices.

    `moments` are the local times of their time points in seconds, where known.
    """

    paths: tuple[IntArray, ...]
    states: tuple[Label, ...]
    moments: tuple[IntArray | None, ...]
    grid: Grid | None

    @property
    def steps(self) -> int:
        """The number of transitions."""
        return sum(len(path) - 1 for path in self.paths)

    @property
    def step(self) -> int | None:
        """The length of a step in seconds, if known."""
        return None if self.grid is None else self.grid.step


@dataclass(frozen=True)
class Stays:
    """The distribution of the durations of stays in a state.

    Attributes:
        mean: the mean duration in time points.
        most: the 0.9 quantile; None if the sample is too short to estimate it.
        longer: the share of stays longer than 0, 1, 2, … time points.
        ended: the number of stays observed from begin to end; 0 for a belief.
    """

    mean: float
    most: float | None
    longer: tuple[float, ...]
    ended: int = 0


@dataclass(frozen=True)
class Hours:
    """Shares of the states by hour of the day, (24, k) each; NaN for hours without data.

    `days` is the number of days on which each hour was observed.
    """

    sample: FloatArray
    belief: FloatArray
    days: IntArray

    def worst(self) -> tuple[int, int]:
        """Return the hour and the state with the largest difference of shares."""
        gaps = np.nan_to_num(np.abs(self.sample - self.belief))
        hour, state = divmod(int(gaps.argmax()), gaps.shape[1])
        return hour, state


@dataclass(frozen=True)
class Comparison:
    """A belief compared with a sample.

    Attributes:
        belief: the belief.
        per_step: the mean log-likelihood of a step; −inf if a step is impossible.
        outside: for a box, the share of steps that would have to change for the sample's
            frequencies to lie in it; for other beliefs, the share of impossible steps.
        lags: the lags of the autocorrelations.
        autocorrelation: (lags, k) that of being in each state, in the sample.
        believed: the autocorrelations under the belief.
        stays: the stays in each state in the sample; None for a state that was never entered.
        believed_stays: the stays under the belief.
        hours: shares by time of day, where times are known.
    """

    belief: Belief
    per_step: float
    outside: float
    lags: tuple[int, ...]
    autocorrelation: FloatArray
    believed: FloatArray
    stays: tuple[Stays | None, ...]
    believed_stays: tuple[Stays | None, ...]
    hours: Hours | None


@dataclass(frozen=True, eq=False)
class _Description:
    """Matrices by phase (p, n, n), their long-run laws (p, n), and shown states (n)."""

    matrices: FloatArray
    laws: FloatArray
    shown: IntArray
    anchor: int | None = None

    @property
    def period(self) -> int:
        return len(self.matrices)

    def later(self, mass: FloatArray) -> FloatArray:
        """Return masses (p, n) one step later."""
        moved = np.einsum("pi,pij->pj", mass, self.matrices)
        return np.asarray(np.roll(moved, 1, axis=0))

    def phases(self, moments: IntArray | None, step: int | None, length: int) -> IntArray:
        """Return the phase of each time point; from 0 if times are unknown."""
        if moments is None or step is None or self.anchor is None:
            return np.arange(length) % self.period
        return np.asarray((moments - self.anchor) // step % self.period)


def require_comparable(belief: Belief) -> None:
    """Raise UnsupportedError for a belief that is not about sequences of states."""
    if not isinstance(belief, (MarkovChain, ChainBox, CyclicChain, HiddenChain)):
        raise UnsupportedError(
            f"{type(belief).__name__} is not about sequences of states. Beliefs that can be "
            "compared with a sample: MarkovChain, ChainBox, CyclicChain, HiddenChain."
        )


def parse_sample(sequences: Any, belief: Belief, grid: Grid | None = None) -> Sample:
    """Return public sequences as state indices of a belief."""
    require_comparable(belief)
    pieces = recorded_runs(split_sequences(sequences))
    data_grid = grid_of(pieces, grid)
    paths, states = encode_paths(pieces, belief.states, data_grid)
    sample = Sample(tuple(paths), states, tuple(map(local_times, pieces)), data_grid)
    if sample.steps == 0:
        raise InvalidInputError(
            "No sequence of the sample has two time points, so it has no step; give longer ones."
        )
    return sample


def compare(belief: Belief, sample: Sample) -> Comparison:
    """Return the comparison of a belief with a sample.

    Steps are scored given the past; the first time point of a sequence is not scored. For a box,
    each half of the sample is scored by the member that is likeliest on the other half.
    O(T·n² + p·n²·lags) for n inner states and p phases.

    >>> chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    >>> fit = compare(chain, parse_sample([0, 1, 1, 0, 1], chain))
    >>> round(fit.per_step, 4), fit.outside, fit.believed_stays[0].mean
    (-0.6931, 0.0, 2.0)
    """
    counts = count_contexts(sample.paths, last_states(len(sample.states), 1))[0]
    description = _describe(belief, counts)
    if isinstance(belief, ChainBox):
        steps, outside = _box_steps(belief, sample), outside_box(counts, belief)
    else:
        steps = np.concatenate(
            [
                _log_steps(description, path, description.phases(moments, sample.step, len(path)))
                for path, moments in zip(sample.paths, sample.moments, strict=True)
            ]
        )
        outside = float(np.isneginf(steps).mean())
    lengths = np.array([len(path) for path in sample.paths])
    pairs = {lag: np.maximum(lengths - lag, 0).sum() for lag in LAGS}  # few are too noisy
    lags = tuple(lag for lag in LAGS if lag == 1 or 2 * pairs[lag] > lengths.sum())
    size = len(sample.states)
    return Comparison(
        belief=belief,
        per_step=float(steps.mean()),
        outside=outside,
        lags=lags,
        autocorrelation=_sample_autocorrelation(sample.paths, size, lags),
        believed=_believed_autocorrelation(description, size, lags),
        stays=tuple(_sample_stays(sample.paths, state) for state in range(size)),
        believed_stays=tuple(_believed_stays(description, state) for state in range(size)),
        hours=_hours(description, sample),
    )


def _describe(belief: Belief, counts: FloatArray) -> _Description:
    if isinstance(belief, CyclicChain):
        return _Description(belief.matrices, belief.laws, np.arange(belief.size), belief.anchor)
    if isinstance(belief, HiddenChain):
        inner, shown = belief.inner, belief.shown
    elif isinstance(belief, ChainBox):
        inner, shown = MarkovChain(likeliest_member(belief, counts)), np.arange(belief.size)
    else:
        assert isinstance(belief, MarkovChain)  # noqa: S101  (others were refused)
        inner, shown = belief, np.arange(belief.size)
    return _Description(inner.transition[np.newaxis], inner.stationary[np.newaxis], shown)


def likeliest_member(box: ChainBox, counts: FloatArray) -> FloatArray:
    """Return the matrix of a box with the maximum likelihood for these transition counts.

    Half a step is added to every count, as in the fits that it is compared with. The likeliest row
    is its counts times a factor, clipped to the bounds (Lagrange); the factor is bisected.

    >>> box = ChainBox([[0.6, 0.0], [0.0, 0.0]], [[0.8, 1.0], [1.0, 1.0]])
    >>> likeliest_member(box, np.array([[1e6, 9e6], [1e6, 3e6]])).round(3)
    array([[0.6 , 0.4 ],
           [0.25, 0.75]])
    """
    weights = counts + _SMOOTHING
    # Each weight is at least the smoothing, so at this factor each entry reaches its bound.
    low, high = np.zeros((len(weights), 1)), np.full((len(weights), 1), 1.0 / _SMOOTHING)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = np.clip(weights * middle, box.lower, box.upper).sum(axis=1, keepdims=True) < 1
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    rows = np.clip(weights * high, box.lower, box.upper)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def outside_box(counts: FloatArray, box: ChainBox) -> float:
    """Return the share of steps that would have to change for the frequencies to lie in the box.

    >>> box = ChainBox([[0.5, 0.0], [0.0, 0.0]], [[1.0, 0.3], [1.0, 1.0]])
    >>> outside_box(np.array([[6.0, 4.0], [0.0, 0.0]]), box)
    0.1
    """
    totals = counts.sum(axis=1, keepdims=True)
    above = np.maximum(counts - totals * box.upper, 0.0).sum(axis=1)
    below = np.maximum(totals * box.lower - counts, 0.0).sum(axis=1)
    return float(np.maximum(above, below).sum() / totals.sum())


def _box_steps(box: ChainBox, sample: Sample) -> FloatArray:
    halves = [fold_of_steps(path, number) for number, path in enumerate(sample.paths)]
    both = count_contexts(sample.paths, last_states(box.size, 1), halves)
    with np.errstate(divide="ignore"):
        by_other = np.log([likeliest_member(box, both[1]), likeliest_member(box, both[0])])
    return np.concatenate(
        [
            by_other[half, path[:-1], path[1:]]
            for half, path in zip(halves, sample.paths, strict=True)
        ]
    )


def _log_steps(description: _Description, path: IntArray, phases: IntArray) -> FloatArray:
    """Return the log-probability of every step of a path given the past."""
    if len(description.shown) == len(np.unique(description.shown)):
        # Every inner state is seen, so no filter is needed.
        inner = np.argsort(description.shown)[path]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(description.matrices[phases[:-1], inner[:-1], inner[1:]]))
    matrix, shows = (
        description.matrices[0],
        [description.shown == code for code in range(description.shown.max() + 1)],
    )
    scores = np.empty(len(path) - 1)
    mass = _restarted(description.laws[0], shows[path[0]])
    for place, code in enumerate(path[1:].tolist()):
        mass = (mass @ matrix) * shows[code]
        total = float(mass.sum())
        scores[place] = math.log(total) if total > 0 else -math.inf
        # After an impossible step the past says nothing, and later steps are scored anew.
        mass = mass / total if total > 0 else _restarted(description.laws[0], shows[code])
    return scores


def _restarted(law: FloatArray, able: Any) -> FloatArray:
    mass = law * able
    if mass.sum() == 0:
        mass = able.astype(np.float64)
    return np.asarray(mass / max(1e-300, mass.sum()))


def _sample_autocorrelation(
    paths: Sequence[IntArray], size: int, lags: Sequence[int]
) -> FloatArray:
    shares = np.bincount(np.concatenate(paths), minlength=size) / sum(map(len, paths))
    together = np.zeros((len(lags), size))
    for row, lag in enumerate(lags):
        pairs = 0
        for path in paths:
            same = path[: max(0, len(path) - lag)]
            pairs += len(same)
            stayed = same[same == path[lag : lag + len(same)]]
            together[row] += np.bincount(stayed, minlength=size)
        together[row] /= pairs
    return _correlations(together, shares)


def _believed_autocorrelation(
    description: _Description, size: int, lags: Sequence[int]
) -> FloatArray:
    """Return the autocorrelations (lags, k) under the belief.

    `mass` (p, n) is the joint probability of `state` at lag 0 and each inner state at lag `at`.
    """
    shows = description.shown == np.arange(size)[:, np.newaxis]
    shares = description.laws.mean(axis=0) @ shows.T
    together = np.zeros((len(lags), size))
    for state in range(size):
        mass, at = description.laws * shows[state], 0
        for row, lag in enumerate(lags):
            while at < lag:
                mass, at = description.later(mass), at + 1
            together[row, state] = (mass * shows[state]).sum() / description.period
    return _correlations(together, shares)


def _correlations(together: FloatArray, shares: FloatArray) -> FloatArray:
    """Return covariances over variances; NaN for a state that always or never occurs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = (together - shares**2) / (shares * (1 - shares))
    return np.where(np.isfinite(correlations), correlations, np.nan)


def _sample_stays(paths: Sequence[IntArray], state: int) -> Stays | None:
    """Return the stays whose begin was observed, by the Kaplan–Meier estimator.

    Stays cut off by the end of a sequence are censored; beyond the longest complete one the mean
    rate of ending is assumed.
    """
    ended, cut = [], []
    for path in paths:
        begins = np.flatnonzero(np.diff(path)) + 1
        lengths = np.diff(np.append(begins, len(path)))
        mine = path[begins] == state
        ended += lengths[:-1][mine[:-1]].tolist()
        cut += lengths[-1:][mine[-1:]].tolist()
    if not ended:
        return None
    most = max(ended)
    ends = np.bincount(ended, minlength=most + 1)[: most + 1]
    full, open_ = np.array(ended), np.array(cut, dtype=np.int64)
    ages = np.arange(most + 1)
    # A complete stay of n points could end at age n; of a censored one that was not seen.
    exposed = len(full) - np.searchsorted(np.sort(full), ages)
    exposed = exposed + len(open_) - np.searchsorted(np.sort(open_), ages, side="right")
    longer = np.cumprod(1 - ends / np.maximum(exposed, 1))
    reached = np.flatnonzero(longer <= 0.1)
    quantile = float(reached[0]) if len(reached) else None
    hazard = len(full) / exposed[1:].sum()
    mean = float(longer.sum() + longer[-1] * (1 - hazard) / hazard)
    return Stays(mean, quantile, tuple(longer.tolist()), len(full))


def _believed_stays(description: _Description, state: int) -> Stays | None:
    """Return the long-run distribution of stays: computed step by step, then geometric."""
    mine = description.shown == state
    mass = description.later(description.laws * ~mine) * mine
    if mass.sum() <= 0:
        return None
    mass = mass / mass.sum()
    longer = [1.0]
    plain = description.period == 1 and int(mine.sum()) == 1
    limit = 2 if plain else max(_FOLLOWED, 2 * description.period)
    while len(longer) < limit and longer[-1] > _GONE:
        mass = description.later(mass) * mine
        longer.append(float(mass.sum()))
    back = min(description.period, len(longer) - 1)
    keeps = (longer[-1] / longer[-1 - back]) ** (1 / back)
    tail = math.inf if keeps >= 1 else longer[-1] * keeps / (1 - keeps)
    quantile = next((float(n) for n, share in enumerate(longer) if share <= 0.1), None)
    if quantile is None:
        beyond = math.inf if keeps >= 1 else math.log(0.1 / longer[-1]) / math.log(keeps)
        # A quotient of logarithms may be rounded just above a whole number.
        quantile = math.inf if keeps >= 1 else len(longer) - 1 + math.ceil(beyond - 1e-9)
    if plain and 0 < keeps < 1:
        longer = [keeps**n for n in range(min(_FOLLOWED, int(quantile) * 3 + 2))]
        return Stays(1 / (1 - keeps), quantile, tuple(longer))
    return Stays(sum(longer) + tail, quantile, tuple(longer))


def _hours(description: _Description, sample: Sample) -> Hours | None:
    if sample.step is None or any(moments is None for moments in sample.moments):
        return None
    size = len(sample.states)
    shows = (description.shown == np.arange(size)[:, np.newaxis]).T.astype(np.float64)
    by_phase = description.laws @ shows
    seen, said = np.zeros((_HOURS, size)), np.zeros((_HOURS, size))
    days = np.zeros(_HOURS, dtype=np.int64)
    for path, moments in zip(sample.paths, sample.moments, strict=True):
        assert moments is not None  # noqa: S101  (others were sent back)
        hour = moments % _DAY * _HOURS // _DAY
        phases = description.phases(moments, sample.step, len(path))
        seen += np.bincount(hour * size + path, minlength=_HOURS * size).reshape(_HOURS, size)
        np.add.at(said, hour, by_phase[phases])
        pairs = np.unique(moments // _DAY * _HOURS + hour)
        days += np.bincount(pairs % _HOURS, minlength=_HOURS)
    totals = seen.sum(axis=1, keepdims=True)
    if (totals > 0).sum() < 2:
        return None
    with np.errstate(invalid="ignore"):
        return Hours(seen / totals, said / totals, days)
