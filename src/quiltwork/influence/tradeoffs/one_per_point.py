"""The f-sweep if every release is about one time point: products instead of compositions.

If no release is about both sides of a cut, the releases of a time point and those of later ones are
independent given its state, so that the curve of a step is that of a product of two pairs, g ⊗ r.
For two states and Gaussian releases this is exact. One pair is a curve on the grid; the other is a
list of privacy losses with their masses, so that

    (g ⊗ r)(γ) = Σ mass · r(γ / e^loss) + mass of unbounded loss,

which is linear in r: with chords between grid points it is two matrices. Losses are rounded by
connecting the dots (Doroshenko et al. 2022), everything else upward. Cost: a step is a product of
matrices of the grid's size for each pair of states; some tens of steps until curves converge.

Theorem: docs/theory/f-sweep.md (one mechanism per time point)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import Belief
from quiltwork.errors import UnsupportedError
from quiltwork.influence.kernel.tradeoffs import CurveKernel
from quiltwork.influence.tradeoffs.chain_kernels import (
    FORGETS_NOTHING,
    MOST_STATES,
    ChainKernels,
    kernels_of,
)
from quiltwork.influence.tradeoffs.curves import CurveGrid, FloatArray
from quiltwork.influence.tradeoffs.privacy_losses import PrivacyLosses, StepRelease

_UP = 1 + 2.0**-40
_SETTLED = 1e-4
_NEGLIGIBLE = 1e-3
_MOST_STEPS = 5_000
_MOST_TRIALS = 24
_QUICK, _SLOWNESS = 60, 4
"""Chains that take more steps to forget, and so many times the length, have no limit computed."""
_GRIDS = 4
_CLOSE, _AIM = 1e-3, 1 - 5e-4
_NOTHING = 1e-6
_LARGEST = 2.0**30
_LARGEST_LOG = 700.0
NEAR = 1_000
"""At most this many nodes from either end are computed one by one."""


@dataclass(frozen=True)
class StepLeakage:
    """The leakage about nodes first..last: ε at which δ holds."""

    first: int
    last: int
    epsilon: float


@lru_cache(maxsize=64)
def leakage_per_step(
    belief: Belief, release: StepRelease, length: int, delta: float
) -> tuple[list[StepLeakage], float]:
    """ε at which releases about each time point keep δ: for runs of points now, and in the limit.

    Never more than if all time points were one secret; inf in the limit if it grows without bound,
    or if the chain takes far longer to forget than the series is long. Rounded up.

    Raises:
        UnsupportedError: for beliefs other than chains and boxes, and for more than 16 states.
    """
    kernels = _kernels(belief, length)
    if kernels.has_no_secret:
        return [StepLeakage(1, length, 0.0)], 0.0
    group = release.epsilon(length, delta)
    forgets = _forgets_within(kernels, length)
    if not forgets and length > NEAR:
        return [StepLeakage(1, length, group)], math.inf
    sweep, leaked = _settled(kernels, release, delta, group, None if forgets else length)
    current = sweep.runs(release, length)
    runs = [StepLeakage(run.first, run.last, min(run.epsilon, group)) for run in current]
    return runs, leaked if forgets else math.inf


def forgets_within(belief: Belief, length: int) -> bool:
    """Whether a chain forgets quickly enough, against this length, for a limit to be computed.

    Raises:
        UnsupportedError: for beliefs other than chains and boxes, and for more than 16 states.
    """
    return _forgets_within(_kernels(belief, length), length)


def _forgets_within(kernels: ChainKernels, length: int) -> bool:
    steps = kernels.mixing_steps
    return steps < FORGETS_NOTHING and steps <= max(_QUICK, _SLOWNESS * length)


def largest_step(
    belief: Belief, release: StepRelease, epsilon: float, delta: float, length: int | None
) -> float:
    """The largest level of such releases that keeps (ε, δ), for a length or for ever; rounded down.

    0 if there is none. Cost: about six sweeps.
    """
    kernels = _kernels(belief, length or 1)
    if kernels.has_no_secret:
        return math.inf

    steps, forgets = kernels.mixing_steps, True
    if length is None:
        if steps >= FORGETS_NOTHING:
            return 0.0
    elif not _forgets_within(kernels, length):
        if length > NEAR:
            return _together(release, epsilon, delta, length) * (1 - 2.0**-50)
        steps, forgets = min(steps, length), False
    high = _together(release, epsilon, delta, 1)
    guess, best = high / math.sqrt(1 + 2 * steps), 0.0
    for _ in range(_GRIDS):
        reach = release.at(guess).reach
        sweep = StepwiseSweep(kernels, CurveGrid.near(epsilon, reach, steps), delta, forgets)
        best = _trials(sweep, release, length, epsilon, (guess, high))
        if best >= guess / 3 or guess < _NOTHING * high:
            break
        guess = max(best, guess / 8)
    return best * (1 - 2.0**-50)


def _trials(
    sweep: StepwiseSweep,
    release: StepRelease,
    length: int | None,
    epsilon: float,
    bracket: tuple[float, float],
) -> float:
    """The largest level, itself swept, that keeps ε; 0 if there is none."""
    low, (level, high) = 0.0, bracket
    level = min(1.3 * level, high)  # lower levels go on from the curves of higher ones
    for _ in range(_MOST_TRIALS):
        trial = release.at(level)
        leaked = sweep.limit(trial)
        if length is not None and leaked > epsilon:
            group = trial.epsilon(length, sweep.delta)
            leaked = min(group, max(run.epsilon for run in sweep.runs(trial, length)))
        if leaked <= epsilon:
            low = level
            if leaked >= epsilon * (1 - _CLOSE):
                break
        else:
            high = level
        if high - low <= high * _CLOSE / 2 or high < bracket[0] / 16:
            break
        guess = level * epsilon * _AIM / leaked if 0 < leaked < math.inf else 0.0
        level = guess if low < guess < high else math.sqrt(low * high) if low else high / 3
    return low


def _kernels(belief: Belief, length: int) -> ChainKernels:
    """The kernels of a belief, or a refusal."""
    kernels = kernels_of(belief, length)
    if kernels is None or kernels.size > MOST_STATES:
        raise UnsupportedError(
            "Leakage of releases at every step is computed for chains, cyclic chains, hidden "
            f"chains and boxes of at most {MOST_STATES} states; this is a "
            f"{type(belief).__name__}. Use a chain with fewer states."
        )
    return kernels


def _together(release: StepRelease, epsilon: float, delta: float, points: int) -> float:
    """The largest level of releases about so many points that are one secret."""
    low, high = 0.0, 1.0
    while release.at(high).epsilon(points, delta) <= epsilon:
        low, high = high, 2 * high
        if high > _LARGEST:
            return high
    while high - low > high * 2.0**-20:
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if release.at(middle).epsilon(points, delta) <= epsilon
            else (low, middle)
        )
    return low


def _settled(
    kernels: ChainKernels, release: StepRelease, delta: float, group: float, length: int | None
) -> tuple[StepwiseSweep, float]:
    """The sweep on a grid that fits its result, and the ε at this length, or with None in the
    limit.
    """
    steps = kernels.mixing_steps if length is None else min(kernels.mixing_steps, length)
    guess = min(release.epsilon(1 + 2 * math.ceil(steps), delta), group)
    guess = max(guess, release.reach / 4)
    for _ in range(_GRIDS):
        grid = CurveGrid.near(guess, release.reach, steps)
        sweep = StepwiseSweep(kernels, grid, delta, length is None)
        leaked = (
            sweep.limit(release)
            if length is None
            else min(group, max(run.epsilon for run in sweep.runs(release, length)))
        )
        if not leaked < guess / 2:
            break
        guess = max(leaked, release.reach / 4, guess / 16)
    return sweep, leaked


class _Product:
    """g ⊗ r as a linear function of r: both directions of a pair, and a constant."""

    def __init__(self, losses: PrivacyLosses, gamma: FloatArray) -> None:
        points = len(gamma)
        ahead, behind = np.zeros((points, points)), np.zeros((points, points))
        alone = np.full(points, losses.unbounded)
        rows = np.arange(points)
        for loss, mass in zip(losses.loss.tolist(), losses.mass.tolist(), strict=True):
            # a smaller γ is a larger curve
            place = gamma * math.exp(-loss) * (1 - 2.0**-50)
            above = place >= 1
            _chords(ahead, gamma, rows[above], place[above], np.full(int(above.sum()), mass))
            below = place[~above]
            alone[~above] += mass * (1 - below + 2.0**-50)
            _chords(behind, gamma, rows[~above], (1 / below) * (1 - 2.0**-50), mass * below)
        self.ahead, self.behind, self.alone = ahead * _UP, behind * _UP, alone * _UP

    def of(self, curves: FloatArray) -> FloatArray:
        """The products with curves (k, k, points) of ordered pairs."""
        mirrored = np.swapaxes(curves, 0, 1)
        products = curves @ self.ahead.T + mirrored @ self.behind.T + self.alone
        return np.minimum(products * _UP, 1.0)


def _chords(
    matrix: FloatArray,
    gamma: FloatArray,
    rows: NDArray[np.int64],
    gammas: FloatArray,
    weights: FloatArray,
) -> None:
    """Add to each row `weights` times the chord at its γ; beyond the grid its last value."""
    after = np.minimum(np.searchsorted(gamma, gammas, side="right"), len(gamma) - 1)
    low, high = gamma[after - 1], gamma[after]
    share = np.clip((gammas - low) / (high - low), 0, 1)
    np.add.at(matrix, (rows, after - 1), weights * (1 - share))
    np.add.at(matrix, (rows, after), weights * share)


@dataclass(frozen=True, eq=False)
class StepwiseSweep:
    """One release about each time point of a chain, seen along the chain.

    Args:
        kernels: of the chain.
        grid: that fits the releases and the expected ε.
        delta: at which ε is computed.
        has_limit: whether curves that bound every late node are computed; without them a series
            of at most `NEAR` nodes is swept from end to end.
    """

    kernels: ChainKernels
    grid: CurveGrid
    delta: float
    has_limit: bool = True
    settled: list[tuple[float, dict[int, dict[int, FloatArray]]]] = field(
        default_factory=list, init=False
    )
    """Curves that bound every late node, by level, direction and phase."""

    def limit(self, release: StepRelease) -> float:
        """ε about the worst of infinitely many time points, which bounds every number of them."""
        if self.kernels.independent:
            return release.epsilon(1, self.delta)
        return _StepCurves(self, release).limit() if self.has_limit else math.inf

    def runs(self, release: StepRelease, length: int) -> list[StepLeakage]:
        """ε about each of `length` time points, as runs from the first to the last."""
        if self.kernels.independent:
            return [StepLeakage(1, length, release.epsilon(1, self.delta))]
        return _StepCurves(self, release).runs(length)


class _StepCurves:
    """Curves from either end, and curves that bound every node."""

    def __init__(self, sweep: StepwiseSweep, release: StepRelease) -> None:
        self.kernels, self.grid, self.delta = sweep.kernels, sweep.grid, sweep.delta
        self.has_limit = sweep.has_limit
        self.size, self.gamma = sweep.kernels.size, sweep.grid.gamma
        self.operations = CurveKernel(self.size, self.gamma)
        self.product = _Product(release.losses, self.gamma)
        self.apart = sweep.kernels.apart.astype(bool)
        self.spread = sweep.grid.spread(sweep.kernels.diameter)
        self.precision = sweep.delta * _NEGLIGIBLE
        higher = [entry for entry in sweep.settled if entry[0] >= release.level]
        above = min(higher, key=lambda entry: entry[0], default=(math.inf, {}))
        self.above = above[1]
        self.settled: dict[int, dict[int, FloatArray]] = {}
        if above[0] == release.level:
            self.settled = above[1]
        else:
            sweep.settled.append((release.level, self.settled))

    def with_release(self, curves: FloatArray) -> FloatArray:
        """g ⊗ r for distinguishable states, r for the others."""
        return np.where(self.apart[:, :, None], self.product.of(curves), curves)

    def step(
        self, kernel: FloatArray | None, curves: FloatArray, possible: NDArray[np.uint8]
    ) -> FloatArray:
        """The curves of g ⊗ r after a kernel with rows for the possible states."""
        joint = self.with_release(curves)
        if kernel is None:
            pairs = ~np.eye(self.size, dtype=bool)
            spread_curve = self.operations.spread_step(
                self.grid.nothing, self.spread, joint[pairs].max(axis=0)
            )
            return np.where(pairs[:, :, None], spread_curve, 0.0)
        no_pairs = np.zeros(
            (self.size, self.size), dtype=np.uint8
        )  # the release is part of the curves already
        margin = self.kernels.margin
        return self.operations.step(
            self.grid.nothing, kernel, joint, no_pairs, possible, margin, True
        )

    def right(self, node: int, curves: FloatArray) -> FloatArray:
        """r of a node from that of the next one."""
        rows = self.kernels.right
        kernel = None if rows is None else rows[(node - 1) % self.kernels.period]
        return self.step(kernel, curves, np.ones(self.size, dtype=np.uint8))

    def left(self, node: int, curves: FloatArray) -> FloatArray:
        """l of a node from that of the one before."""
        return self.step(self.kernels.left_from(node - 1), curves, self.kernels.possible_at(node))

    def boundary(self, node: int | None = None) -> FloatArray:
        """The curves at an end: no leakage; no bound for states that the node cannot take."""
        possible = np.ones(self.size, dtype=bool)
        if node is not None:
            possible = self.kernels.possible_at(node).astype(bool)
        impossible_pairs = ~(possible[:, None] & possible[None]) & ~np.eye(self.size, dtype=bool)
        return np.where(impossible_pairs[:, :, None], 1.0, np.zeros((1, 1, len(self.gamma))))

    def late_curves(self, direction: int) -> dict[int, FloatArray]:
        """Curves that bound every late node, by phase: iterates from above."""
        if direction in self.settled:
            return self.settled[direction]
        if self.kernels.reversible and -direction in self.settled:
            return self.settled[-direction]
        period, late = self.kernels.period, len(self.kernels.first) + 2
        node = late + (period * _MOST_STEPS if direction < 0 else 0)
        curves = np.ones((self.size, self.size, len(self.gamma)))
        if direction in self.above:  # curves of a higher level bound this one
            curves = self.above[direction][(node - 1) % period]
        by_phase: dict[int, FloatArray] = {}
        change = math.inf
        for count in range(1, _MOST_STEPS + 1):
            node += direction
            curves = (self.right if direction < 0 else self.left)(node, curves)
            phase = (node - 1) % period
            step_change = (
                self.relative_change(by_phase[phase], curves) if phase in by_phase else math.inf
            )
            change = step_change if count % period == 1 or period == 1 else max(change, step_change)
            by_phase[phase] = curves
            if count % period == 0 and change <= _SETTLED / self.kernels.mixing_steps:
                break
        self.settled[direction] = by_phase
        return by_phase

    def relative_change(self, before: FloatArray, after: FloatArray) -> float:
        """The largest relative change between curves, above what is negligible."""
        return float((np.abs(after - before) / np.maximum(before, self.precision)).max())

    def limit(self) -> float:
        """The ε of the worst phase, also soon after a start."""
        period, start = self.kernels.period, len(self.kernels.first)
        rights, lefts = self.late_curves(-1), self.late_curves(1)
        worst = 0.0
        for phase in range(period):
            node = start + 1 + (phase - start) % period
            worst = self.worst_epsilon(rights[phase], lefts[phase], range(node, node + 1), worst)
        curves = self.boundary(1)
        for node in range(1, start + 1):
            here = rights[(node - 1) % period]
            worst = self.worst_epsilon(here, curves, range(node, node + 1), worst)
            curves = self.left(node + 1, curves)
        return worst

    def runs(self, length: int) -> list[StepLeakage]:
        """Runs of nodes, short near the ends; the largest curves of each on both sides."""
        lefts, rights = self.followed(1, length), self.followed(-1, length)
        runs = []
        for first, last in _runs(length, len(lefts), len(rights)):
            is_inner = first > len(lefts) and last <= length - len(rights)
            parts = range(first, min(last, first + self.kernels.period - 1) + 1) if is_inner else ()
            worst = 0.0
            for begin, end in [(node, node) for node in parts] or [(first, last)]:
                left = self.over(1, lefts, range(begin - 1, end), begin)
                right = self.over(-1, rights, range(length - end, length - begin + 1), begin)
                worst = self.worst_epsilon(right, left, range(begin, end + 1), worst)
            runs.append(StepLeakage(first, last, worst))
        return runs

    def followed(self, direction: int, length: int) -> list[FloatArray]:
        """Curves of nodes from an end, until they are close to those of late nodes."""
        node = 1 if direction > 0 else length
        curves, followed = self.boundary(node if direction > 0 else None), list[FloatArray]()
        late = self.late_curves(direction) if self.has_limit else None
        least = len(self.kernels.first) + 1  # nodes with laws of their own
        while len(followed) < min(length, max(NEAR, least)):
            followed.append(curves)
            settled = late is not None and (
                self.relative_change(late[(node - 1) % self.kernels.period], curves) <= _SETTLED
            )
            if settled and len(followed) >= least:
                break
            node += direction
            if not 1 <= node <= length:
                break
            curves = (self.left if direction > 0 else self.right)(node, curves)
        return followed

    def over(
        self, direction: int, curves: list[FloatArray], offsets: range, node: int
    ) -> FloatArray:
        """The largest curves of nodes at these offsets from an end, of which `node` is
        the first.
        """
        candidates = [curves[place] for place in offsets if place < len(curves)]
        if offsets[-1] >= len(curves):
            phases = range(node - 1, node - 1 + min(len(offsets), self.kernels.period))
            late = self.late_curves(direction)
            candidates += [late[phase % self.kernels.period] for phase in phases]
        return np.asarray(np.max(candidates, axis=0))

    def worst_epsilon(
        self, right: FloatArray, left: FloatArray, nodes: range, least: float
    ) -> float:
        """The largest ε of g ⊗ r ⊗ l over pairs of possible states of the nodes."""
        joint = self.product.of(right)
        possible = np.zeros((self.size, self.size), dtype=bool)
        for node in nodes[: len(self.kernels.possible) + self.kernels.period]:
            states = self.kernels.possible_at(node).astype(bool)
            possible |= states[:, None] & states[None]
        worst = least
        for x, y in np.argwhere(possible & self.apart).tolist():
            losses = _losses_of(self.gamma, left[x, y], left[y, x])
            both = joint[x, y], joint[y, x]
            worst = max(worst, self.least(losses, *both, worst))
        return worst

    def least(
        self, losses: PrivacyLosses, curve: FloatArray, mirrored: FloatArray, lower: float
    ) -> float:
        """The least ε on the grid's chords that keeps δ, or a known lower bound if that
        suffices.
        """

        def excess_at(index: int) -> float:
            return _excess(losses, self.gamma, curve, mirrored, float(self.gamma[index]))

        if _excess(losses, self.gamma, curve, mirrored, math.exp(lower)) <= self.delta:
            return lower
        low, high = 0, len(self.gamma) - 1
        if excess_at(high) > self.delta:
            return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if excess_at(middle) <= self.delta else (middle, high)
        ends, values = self.gamma[[low, high]], np.array([excess_at(low), excess_at(high)])
        return CurveGrid(ends).epsilon(values, self.delta)


def _runs(length: int, before: int, after: int) -> list[tuple[int, int]]:
    """Runs of nodes 1..length: short near the ends, as far as curves change there."""
    starts = {1, *_steps(min(before, length))}
    starts |= {length + 2 - start for start in _steps(min(after, length))} | {length + 1}
    ordered = sorted(start for start in starts if 1 <= start <= length + 1)
    return [(first, later - 1) for first, later in pairwise(ordered)]


def _steps(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … and one beyond the last."""
    starts, start = [1], 1
    while start <= most:
        start = max(start + 1, start * 4 // 3)
        starts.append(min(start, most + 1))
    return starts


def _losses_of(gamma: FloatArray, curve: FloatArray, turned: FloatArray) -> PrivacyLosses:
    """The pair of a curve over all γ ≥ 0, below 1 from the curve of the reversed pair.

    Between its knots the lower hull is the curve of a pair with losses at the knots; the rounding
    error is added to the mass of unbounded loss.
    """
    low = 1 / gamma[:0:-1]
    ends = np.minimum(1.0, (gamma[:0:-1] - 1) / gamma[:0:-1] + turned[:0:-1] * low + 2.0**-52)
    x, y = np.concatenate([low, gamma]), np.concatenate([ends, curve])
    y = np.minimum.accumulate(y)
    corners = _hull(x, y)
    x, y = x[corners], y[corners]
    slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    steps = np.diff(slopes, prepend=-1.0)
    mass = np.maximum(x * steps, 0) * _UP
    rebuilt = (
        np.array([float((mass[n:] * (1 - x[n] / x[n:])).sum()) for n in range(len(x))]) + y[-1]
    )
    # whatever the rebuilt curve lacks counts as unbounded loss
    error = float(np.maximum(y - rebuilt, 0).max())
    return PrivacyLosses(np.log(x) + 2.0**-50, mass, float(y[-1]) + error)


def _hull(x: FloatArray, y: FloatArray) -> list[int]:
    """The corners of the lower hull of points by rising x."""
    corners: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for n in range(len(xs)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (ys[b] - ys[a]) * (xs[n] - xs[b]) < (ys[n] - ys[b]) * (xs[b] - xs[a]):
                break
            corners.pop()
        corners.append(n)
    return corners


def _excess(
    losses: PrivacyLosses, gamma: FloatArray, curve: FloatArray, mirrored: FloatArray, at: float
) -> float:
    """H at γ of the product of losses and a curve, rounded up."""
    gammas = np.exp(np.minimum(math.log(at) - losses.loss, _LARGEST_LOG) - 2.0**-43)
    above = gammas >= 1
    values = np.empty(len(gammas))
    values[above] = np.interp(gammas[above], gamma, curve)
    below = gammas[~above]
    values[~above] = 1 - below + 2.0**-50 + below * np.interp(1 / below, gamma, mirrored)
    return float(losses.mass @ values) * _UP + losses.unbounded
