"""How well a belief fits a sample: likelihood, memory, stays, time of day, steps outside of it.

A chain, a chain with phases and a hidden chain say what they say in one form: matrices by phase,
and what each inner state shows. Of a box the member speaks under which the sample is likeliest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.contexts import count_contexts, fold_of_steps, last_states
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.gaps import recorded_runs
from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.hidden import HiddenChain
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.origins import grid_of, local_times
from quiltwork.beliefs.sequences import split_sequences
from quiltwork.beliefs.states import Label
from quiltwork.beliefs.transition_counts import encode_paths
from quiltwork.errors import InvalidInputError, UnsupportedError

LAGS = (1, 2, 5, 10, 20, 50, 100)
_DAY, _HOURS = 86_400, 24
_SMOOTHING = 0.5
_FOLLOWED = 5_000
_GONE = 1e-9
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class Sample:
    """Public sequences as state indices.

    `moments` is what clocks show at each of their time points, in seconds, where that is known.
    """

    paths: tuple[IntArray, ...]
    states: tuple[Label, ...]
    moments: tuple[IntArray | None, ...]
    grid: Grid | None

    @property
    def steps(self) -> int:
        """How many transitions there are."""
        return sum(len(path) - 1 for path in self.paths)

    @property
    def step(self) -> int | None:
        """The length of a step in seconds, if known."""
        return None if self.grid is None else self.grid.step


@dataclass(frozen=True)
class Stays:
    """How long a state lasts.

    Attributes:
        mean: the mean number of time points of a stay.
        most: nine stays of ten are at most so long; None if the sample is too short to tell.
        longer: the share of stays that are longer than 0, 1, 2, … time points.
        ended: how many stays were seen to begin and to end; 0 for a belief.
    """

    mean: float
    most: float | None
    longer: tuple[float, ...]
    ended: int = 0


@dataclass(frozen=True)
class Hours:
    """Shares of the states by hour of the day, (24, k) each, NaN where nothing was seen.

    `days` is how many days each hour was seen on.
    """

    sample: FloatArray
    belief: FloatArray
    days: IntArray

    def worst(self) -> tuple[int, int]:
        """Return the hour and the state whose shares differ most."""
        gaps = np.nan_to_num(np.abs(self.sample - self.belief))
        hour, state = divmod(int(gaps.argmax()), gaps.shape[1])
        return hour, state


@dataclass(frozen=True)
class Comparison:
    """A belief beside a sample.

    Attributes:
        belief: the belief.
        per_step: the mean log-likelihood of a step; −inf if the belief rules one out.
        outside: of a box, the share of steps that would have to go elsewhere for the sample's
            frequencies to lie in it; of other beliefs, the share of steps that they rule out.
        lags: of the autocorrelations.
        autocorrelation: (lags, k) of the sample: of being in each state, so many steps apart.
        believed: the same under the belief.
        stays: of each state in the sample; None for one that was never entered.
        believed_stays: the same under the belief.
        hours: by time of day, where times are known.
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
    """Matrices by phase (p, n, n), their long-run laws (p, n) and what inner states show (n)."""

    matrices: FloatArray
    laws: FloatArray
    shown: IntArray
    anchor: int | None = None

    @property
    def period(self) -> int:
        return len(self.matrices)

    def later(self, mass: FloatArray) -> FloatArray:
        """Carry masses (p, n) one step on."""
        moved = np.einsum("pi,pij->pj", mass, self.matrices)
        return np.asarray(np.roll(moved, 1, axis=0))

    def phases(self, moments: IntArray | None, step: int | None, length: int) -> IntArray:
        """The phase of each time point; counted from 0 if nobody knows."""
        if moments is None or step is None or self.anchor is None:
            return np.arange(length) % self.period
        return np.asarray((moments - self.anchor) // step % self.period)


def require_comparable(belief: Belief) -> None:
    """Refuse a belief that is not about sequences of states."""
    if not isinstance(belief, (MarkovChain, ChainBox, CyclicChain, HiddenChain)):
        raise UnsupportedError(
            f"{type(belief).__name__} is not about sequences of states, and only beliefs about "
            "these are compared with a sample: MarkovChain, ChainBox, CyclicChain, HiddenChain."
        )


def parse_sample(sequences: Any, belief: Belief, grid: Grid | None = None) -> Sample:
    """Read public sequences as the states of a belief."""
    require_comparable(belief)
    pieces = recorded_runs(split_sequences(sequences))
    known = grid_of(pieces, grid)
    paths, states = encode_paths(pieces, belief.states, known)
    sample = Sample(tuple(paths), states, tuple(map(local_times, pieces)), known)
    if sample.steps == 0:
        raise InvalidInputError(
            "No sequence of the sample has two time points, so it shows no step; give longer ones."
        )
    return sample


def compare(belief: Belief, sample: Sample) -> Comparison:
    """Return how a belief fits a sample that was read as its states.

    Steps are scored given the past, the first time point of a sequence not at all. The member of a
    box that scores one half of the sample is the likeliest by the other half.
    O(T·n² + p·n²·lags) for n inner states and p phases.

    >>> chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    >>> found = compare(chain, parse_sample([0, 1, 1, 0, 1], chain))
    >>> round(found.per_step, 4), found.outside, found.believed_stays[0].mean
    (-0.6931, 0.0, 2.0)
    """
    counts = count_contexts(sample.paths, last_states(len(sample.states), 1))[0]
    told = _describe(belief, counts)
    if isinstance(belief, ChainBox):
        steps, outside = _box_steps(belief, sample), outside_box(counts, belief)
    else:
        steps = np.concatenate(
            [
                _log_steps(told, path, told.phases(moments, sample.step, len(path)))
                for path, moments in zip(sample.paths, sample.moments, strict=True)
            ]
        )
        outside = float(np.isneginf(steps).mean())
    lengths = np.array([len(path) for path in sample.paths])
    pairs = {lag: np.maximum(lengths - lag, 0).sum() for lag in LAGS}  # few of them tell little
    lags = tuple(lag for lag in LAGS if lag == 1 or 2 * pairs[lag] > lengths.sum())
    size = len(sample.states)
    return Comparison(
        belief=belief,
        per_step=float(steps.mean()),
        outside=outside,
        lags=lags,
        autocorrelation=_sample_autocorrelation(sample.paths, size, lags),
        believed=_believed_autocorrelation(told, size, lags),
        stays=tuple(_sample_stays(sample.paths, state) for state in range(size)),
        believed_stays=tuple(_believed_stays(told, state) for state in range(size)),
        hours=_hours(told, sample),
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
    """Return the matrix of a box under which transitions with these counts are likeliest.

    Half a step is added to every count, as in the fits that it is held against. The likeliest row
    is its counts times a factor, cut to the bounds (Lagrange); the factor is bisected.

    >>> box = ChainBox([[0.6, 0.0], [0.0, 0.0]], [[0.8, 1.0], [1.0, 1.0]])
    >>> likeliest_member(box, np.array([[1e6, 9e6], [1e6, 3e6]])).round(3)
    array([[0.6 , 0.4 ],
           [0.25, 0.75]])
    """
    weights = counts + _SMOOTHING
    low, high = np.zeros((len(weights), 1)), np.full((len(weights), 1), 1.0 / _SMOOTHING)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = np.clip(weights * middle, box.lower, box.upper).sum(axis=1, keepdims=True) < 1
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    rows = np.clip(weights * high, box.lower, box.upper)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def outside_box(counts: FloatArray, box: ChainBox) -> float:
    """Return the share of steps that would have to go elsewhere to lie in the box.

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


def _log_steps(told: _Description, path: IntArray, phases: IntArray) -> FloatArray:
    """The log-probability of every step of a path given the past."""
    if len(told.shown) == len(np.unique(told.shown)):
        places = np.argsort(told.shown)[path]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(told.matrices[phases[:-1], places[:-1], places[1:]]))
    matrix, shows = told.matrices[0], [told.shown == code for code in range(told.shown.max() + 1)]
    found = np.empty(len(path) - 1)
    mass = _restarted(told.laws[0], shows[path[0]])
    for place, code in enumerate(path[1:].tolist()):
        mass = (mass @ matrix) * shows[code]
        total = float(mass.sum())
        found[place] = math.log(total) if total > 0 else -math.inf
        mass = mass / total if total > 0 else _restarted(told.laws[0], shows[code])
    return found


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


def _believed_autocorrelation(told: _Description, size: int, lags: Sequence[int]) -> FloatArray:
    """(lags, k): `mass` (p, n) is how likely inner states follow one that shows `state`."""
    shows = told.shown == np.arange(size)[:, np.newaxis]
    shares = told.laws.mean(axis=0) @ shows.T
    together = np.zeros((len(lags), size))
    for state in range(size):
        mass, at = told.laws * shows[state], 0
        for row, lag in enumerate(lags):
            while at < lag:
                mass, at = told.later(mass), at + 1
            together[row, state] = (mass * shows[state]).sum() / told.period
    return _correlations(together, shares)


def _correlations(together: FloatArray, shares: FloatArray) -> FloatArray:
    """Covariances by variances; NaN for a state that is always there or never."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (together - shares**2) / (shares * (1 - shares))
    return np.where(np.isfinite(found), found, np.nan)


def _sample_stays(paths: Sequence[IntArray], state: int) -> Stays | None:
    """Stays that were seen to begin; those that the end of a sequence cut off count while seen.

    By Kaplan and Meier; beyond the longest that ended, stays end as often as before.
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
    exposed = len(full) - np.searchsorted(np.sort(full), ages)
    exposed = exposed + len(open_) - np.searchsorted(np.sort(open_), ages, side="right")
    longer = np.cumprod(1 - ends / np.maximum(exposed, 1))
    reached = np.flatnonzero(longer <= 0.1)
    quantile = float(reached[0]) if len(reached) else None
    hazard = len(full) / exposed[1:].sum()
    mean = float(longer.sum() + longer[-1] * (1 - hazard) / hazard)
    return Stays(mean, quantile, tuple(longer.tolist()), len(full))


def _believed_stays(told: _Description, state: int) -> Stays | None:
    """Stays from when they begin in the long run; followed far, and from there geometric."""
    mine = told.shown == state
    mass = told.later(told.laws * ~mine) * mine
    if mass.sum() <= 0:
        return None
    mass = mass / mass.sum()
    longer = [1.0]
    plain = told.period == 1 and int(mine.sum()) == 1
    most = 2 if plain else max(_FOLLOWED, 2 * told.period)
    while len(longer) < most and longer[-1] > _GONE:
        mass = told.later(mass) * mine
        longer.append(float(mass.sum()))
    back = min(told.period, len(longer) - 1)
    keeps = (longer[-1] / longer[-1 - back]) ** (1 / back)
    tail = math.inf if keeps >= 1 else longer[-1] * keeps / (1 - keeps)
    quantile = next((float(n) for n, share in enumerate(longer) if share <= 0.1), None)
    if quantile is None:
        beyond = math.inf if keeps >= 1 else math.log(0.1 / longer[-1]) / math.log(keeps)
        quantile = math.inf if keeps >= 1 else len(longer) - 1 + math.ceil(beyond - 1e-9)
    if plain and 0 < keeps < 1:
        longer = [keeps**n for n in range(min(_FOLLOWED, int(quantile) * 3 + 2))]
        return Stays(1 / (1 - keeps), quantile, tuple(longer))
    return Stays(sum(longer) + tail, quantile, tuple(longer))


def _hours(told: _Description, sample: Sample) -> Hours | None:
    if sample.step is None or any(moments is None for moments in sample.moments):
        return None
    size = len(sample.states)
    shows = (told.shown == np.arange(size)[:, np.newaxis]).T.astype(np.float64)
    by_phase = told.laws @ shows
    seen, said = np.zeros((_HOURS, size)), np.zeros((_HOURS, size))
    days = np.zeros(_HOURS, dtype=np.int64)
    for path, moments in zip(sample.paths, sample.moments, strict=True):
        assert moments is not None  # noqa: S101  (others were sent back)
        hour = moments % _DAY * _HOURS // _DAY
        phases = told.phases(moments, sample.step, len(path))
        seen += np.bincount(hour * size + path, minlength=_HOURS * size).reshape(_HOURS, size)
        np.add.at(said, hour, by_phase[phases])
        pairs = np.unique(moments // _DAY * _HOURS + hour)
        days += np.bincount(pairs % _HOURS, minlength=_HOURS)
    totals = seen.sum(axis=1, keepdims=True)
    if (totals > 0).sum() < 2:
        return None
    with np.errstate(invalid="ignore"):
        return Hours(seen / totals, said / totals, days)
