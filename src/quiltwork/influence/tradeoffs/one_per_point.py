"""The f-sweep where every release is about one time point: products instead of compositions.

If no release is about both sides of a cut, what a time point releases and what later ones do are
independent given its state, so that the curve of a step is that of a product of two pairs, g ⊗ r.
For two states and Gaussian releases this is exact. A pair is a curve on the grid; the other factor
is a list of privacy losses with their masses, so that

    (g ⊗ r)(γ) = Σ mass · r(γ / e^loss) + mass that is never outweighed,

which is linear in r: with chords between grid points it is two matrices. Losses are rounded by
connecting the dots (Doroshenko et al. 2022), everything else upward. Cost: a step is a product of
matrices of the grid's size for each pair of states; some tens of steps until curves settle.

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
from quiltwork.influence.kernel.tradeoffs import Bench
from quiltwork.influence.tradeoffs.chain_kernels import MOST_STATES, ChainKernels, kernels_of
from quiltwork.influence.tradeoffs.curves import CurveGrid, FloatArray
from quiltwork.influence.tradeoffs.privacy_losses import Losses, StepRelease

_UP = 1 + 2.0**-40
_SETTLED = 1e-4
_NEGLIGIBLE = 1e-3
_MOST_STEPS = 5_000
_MOST_TRIALS = 24
_GRIDS = 4
_CLOSE, _AIM = 1e-3, 1 - 5e-4
_NOTHING = 1e-6
_LARGEST = 2.0**30
_LARGEST_LOG = 700.0
NEAR = 1_000
"""So many nodes from either end are followed one by one."""


@dataclass(frozen=True)
class Told:
    """What is told about nodes first..last: ε at which δ is kept."""

    first: int
    last: int
    epsilon: float


@lru_cache(maxsize=64)
def leakage_per_step(
    belief: Belief, release: StepRelease, length: int, delta: float
) -> tuple[list[Told], float]:
    """ε at which releases about each time point keep δ: of runs of points by now, and in the limit.

    Never more than if all time points were one secret; inf in the limit where that grows without
    end. Rounded up.

    Raises:
        UnsupportedError: for beliefs that are no chain or box, and for more states than 16.
    """
    kernels = _kernels(belief, length)
    if kernels.known:
        return [Told(1, length, 0.0)], 0.0
    alike = release.epsilon(length, delta)
    sweep, limit = _settled(kernels, release, delta, alike)
    now = sweep.by_now(release, length)
    runs = [Told(one.first, one.last, min(one.epsilon, alike)) for one in now]
    return runs, limit


def largest_step(
    belief: Belief, release: StepRelease, epsilon: float, delta: float, length: int | None
) -> float:
    """The largest level of such releases that keeps (ε, δ), for so many or for ever; rounded down.

    0 where none does. Cost: some six sweeps.
    """
    kernels = _kernels(belief, length or 1)
    if kernels.known:
        return math.inf

    steps = kernels.steps_that_matter
    high = _alone(release, epsilon, delta)
    guess, found = high / math.sqrt(1 + 2 * steps), 0.0
    for _ in range(_GRIDS):
        reach = release.at(guess).reach
        sweep = OnePerPoint(kernels, CurveGrid.near(epsilon, reach, steps), delta)
        found = _trials(sweep, release, length, epsilon, (guess, high))
        if found >= guess / 3 or guess < _NOTHING * high:
            break
        guess = max(found, guess / 8)
    return found * (1 - 2.0**-50)


def _trials(
    sweep: OnePerPoint,
    release: StepRelease,
    length: int | None,
    epsilon: float,
    between: tuple[float, float],
) -> float:
    """The largest level that was swept itself and kept ε; 0 if none did."""
    low, (level, high) = 0.0, between
    level = min(1.3 * level, high)  # lower levels go on from the curves of higher ones
    for _ in range(_MOST_TRIALS):
        at = release.at(level)
        found = sweep.in_the_limit(at)
        if length is not None and found > epsilon:
            alike = at.epsilon(length, sweep.delta)
            found = min(alike, max(one.epsilon for one in sweep.by_now(at, length)))
        if found <= epsilon:
            low = level
            if found >= epsilon * (1 - _CLOSE):
                break
        else:
            high = level
        if high - low <= high * _CLOSE / 2 or high < between[0] / 16:
            break
        guess = level * epsilon * _AIM / found if 0 < found < math.inf else 0.0
        level = guess if low < guess < high else math.sqrt(low * high) if low else high / 3
    return low


def _kernels(belief: Belief, length: int) -> ChainKernels:
    kernels = kernels_of(belief, length)
    if kernels is None or kernels.size > MOST_STATES:
        raise UnsupportedError(
            "What Gaussian releases at every step tell is known for chains, days, hidden chains "
            f"and boxes of at most {MOST_STATES} states, and this is a {type(belief).__name__}."
        )
    return kernels


def _alone(release: StepRelease, epsilon: float, delta: float) -> float:
    """The largest level of one release by itself."""
    low, high = 0.0, 1.0
    while release.at(high).epsilon(1, delta) <= epsilon:
        low, high = high, 2 * high
        if high > _LARGEST:
            return high
    while high - low > high * 2.0**-20:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if release.at(middle).epsilon(1, delta) <= epsilon else (low, middle)
        )
    return low


def _settled(
    kernels: ChainKernels, release: StepRelease, delta: float, alike: float
) -> tuple[OnePerPoint, float]:
    """The sweep on a grid that fits what it finds, and what it finds in the limit."""
    steps = kernels.steps_that_matter
    guess = min(release.epsilon(1 + 2 * math.ceil(steps), delta), alike)
    guess = max(guess, release.reach / 4)
    for _ in range(_GRIDS):
        sweep = OnePerPoint(kernels, CurveGrid.near(guess, release.reach, steps), delta)
        found = sweep.in_the_limit(release)
        if not found < guess / 2:
            break
        guess = max(found, release.reach / 4, guess / 16)
    return sweep, found


class _Product:
    """g ⊗ r as a linear function of r: both directions of a pair, and a constant."""

    def __init__(self, losses: Losses, gamma: FloatArray) -> None:
        points = len(gamma)
        ahead, behind = np.zeros((points, points)), np.zeros((points, points))
        alone = np.full(points, losses.never)
        rows = np.arange(points)
        for loss, mass in zip(losses.loss.tolist(), losses.mass.tolist(), strict=True):
            place = gamma * math.exp(-loss) * (1 - 2.0**-50)
            above = place >= 1
            _chords(ahead, gamma, rows[above], place[above], np.full(int(above.sum()), mass))
            below = place[~above]
            alone[~above] += mass * (1 - below + 2.0**-50)
            _chords(behind, gamma, rows[~above], (1 / below) * (1 - 2.0**-50), mass * below)
        self.ahead, self.behind, self.alone = ahead * _UP, behind * _UP, alone * _UP

    def of(self, curves: FloatArray) -> FloatArray:
        """The products with curves (k, k, points) of ordered pairs."""
        turned = np.swapaxes(curves, 0, 1)
        found = curves @ self.ahead.T + turned @ self.behind.T + self.alone
        return np.minimum(found * _UP, 1.0)


def _chords(
    matrix: FloatArray,
    gamma: FloatArray,
    rows: NDArray[np.int64],
    place: FloatArray,
    by: FloatArray,
) -> None:
    """Add to each row `by` times the chord at its place; beyond the grid its last value."""
    after = np.minimum(np.searchsorted(gamma, place, side="right"), len(gamma) - 1)
    low, high = gamma[after - 1], gamma[after]
    share = np.clip((place - low) / (high - low), 0, 1)
    np.add.at(matrix, (rows, after - 1), by * (1 - share))
    np.add.at(matrix, (rows, after), by * share)


@dataclass(frozen=True, eq=False)
class OnePerPoint:
    """One release about each time point of a chain, seen along the chain.

    Args:
        kernels: of the chain.
        grid: that fits the releases and the ε that is expected.
        delta: at which ε is looked for.
    """

    kernels: ChainKernels
    grid: CurveGrid
    delta: float
    settled: list[tuple[float, dict[int, dict[int, FloatArray]]]] = field(
        default_factory=list, init=False
    )
    """By level, and by direction and phase: curves that bound every late node."""

    def in_the_limit(self, release: StepRelease) -> float:
        """ε about the worst of infinitely many time points; a bound for every number of them."""
        if self.kernels.independent:
            return release.epsilon(1, self.delta)
        return _Ends(self, release).limit()

    def by_now(self, release: StepRelease, length: int) -> list[Told]:
        """ε about each of so many, as runs from the first to the last."""
        if self.kernels.independent:
            return [Told(1, length, release.epsilon(1, self.delta))]
        return _Ends(self, release).by_now(length)


class _Ends:
    """Curves from either end, and those that bound every node."""

    def __init__(self, of: OnePerPoint, release: StepRelease) -> None:
        self.kernels, self.grid, self.delta = of.kernels, of.grid, of.delta
        self.size, self.gamma = of.kernels.size, of.grid.gamma
        self.bench = Bench(self.size, self.gamma)
        self.product = _Product(release.losses, self.gamma)
        self.apart = of.kernels.apart.astype(bool)
        self.spread = of.grid.spread(of.kernels.diameter)
        self.precision = of.delta * _NEGLIGIBLE
        higher = [one for one in of.settled if one[0] >= release.level]
        above = min(higher, key=lambda one: one[0], default=(math.inf, {}))
        self.above = above[1]
        self.settled: dict[int, dict[int, FloatArray]] = {}
        if above[0] == release.level:
            self.settled = above[1]
        else:
            of.settled.append((release.level, self.settled))

    def joined(self, curves: FloatArray) -> FloatArray:
        """g ⊗ r, where the data tell states apart."""
        return np.where(self.apart[:, :, None], self.product.of(curves), curves)

    def step(
        self, kernel: FloatArray | None, curves: FloatArray, can: NDArray[np.uint8]
    ) -> FloatArray:
        """What a kernel with rows for states that `can` be makes of g ⊗ r."""
        joint = self.joined(curves)
        if kernel is None:
            pairs = ~np.eye(self.size, dtype=bool)
            found = self.bench.spread_step(self.grid.nothing, self.spread, joint[pairs].max(axis=0))
            return np.where(pairs[:, :, None], found, 0.0)
        merged = np.zeros((self.size, self.size), dtype=np.uint8)  # r is joined already
        margin = self.kernels.margin
        return self.bench.step(self.grid.nothing, kernel, joint, merged, can, margin, True)

    def right(self, node: int, curves: FloatArray) -> FloatArray:
        """r of a node from that of the next one."""
        rows = self.kernels.right
        kernel = None if rows is None else rows[(node - 1) % self.kernels.period]
        return self.step(kernel, curves, np.ones(self.size, dtype=np.uint8))

    def left(self, node: int, curves: FloatArray) -> FloatArray:
        """l of a node from that of the one before."""
        return self.step(self.kernels.left_from(node - 1), curves, self.kernels.possible_at(node))

    def nothing(self, node: int | None = None) -> FloatArray:
        """Nothing is told; about states that a node cannot take nothing is known."""
        can = np.ones(self.size, dtype=bool)
        if node is not None:
            can = self.kernels.possible_at(node).astype(bool)
        none = ~(can[:, None] & can[None]) & ~np.eye(self.size, dtype=bool)
        return np.where(none[:, :, None], 1.0, np.zeros((1, 1, len(self.gamma))))

    def bounds(self, direction: int) -> dict[int, FloatArray]:
        """Curves that bound every late node, by phase: iterates from above."""
        if direction in self.settled:
            return self.settled[direction]
        if self.kernels.reversible and -direction in self.settled:
            return self.settled[-direction]
        period, late = self.kernels.period, len(self.kernels.first) + 2
        node = late + (period * _MOST_STEPS if direction < 0 else 0)
        curves = np.ones((self.size, self.size, len(self.gamma)))
        if direction in self.above:  # what bounds a higher level bounds this one
            curves = self.above[direction][(node - 1) % period]
        found: dict[int, FloatArray] = {}
        change = math.inf
        for taken in range(1, _MOST_STEPS + 1):
            node += direction
            curves = (self.right if direction < 0 else self.left)(node, curves)
            phase = (node - 1) % period
            moved = self.moved(found[phase], curves) if phase in found else math.inf
            change = moved if taken % period == 1 or period == 1 else max(change, moved)
            found[phase] = curves
            if taken % period == 0 and change <= _SETTLED / self.kernels.steps_that_matter:
                break
        self.settled[direction] = found
        return found

    def moved(self, before: FloatArray, after: FloatArray) -> float:
        """How far curves are apart, relatively, above what is negligible."""
        return float((np.abs(after - before) / np.maximum(before, self.precision)).max())

    def limit(self) -> float:
        """The worst phase, also soon after a start."""
        period, start = self.kernels.period, len(self.kernels.first)
        rights, lefts = self.bounds(-1), self.bounds(1)
        worst = 0.0
        for phase in range(period):
            node = start + 1 + (phase - start) % period
            worst = self.told(rights[phase], lefts[phase], range(node, node + 1), worst)
        curves = self.nothing(1)
        for node in range(1, start + 1):
            here = rights[(node - 1) % period]
            worst = self.told(here, curves, range(node, node + 1), worst)
            curves = self.left(node + 1, curves)
        return worst

    def by_now(self, length: int) -> list[Told]:
        """Runs of nodes, short near the ends; of each the largest curves on both sides."""
        lefts, rights = self.followed(1, length), self.followed(-1, length)
        runs = []
        for first, last in _runs(length, len(lefts), len(rights)):
            inner = first > len(lefts) and last <= length - len(rights)
            parts = range(first, min(last, first + self.kernels.period - 1) + 1) if inner else ()
            told = 0.0
            for one, other in [(node, node) for node in parts] or [(first, last)]:
                left = self.over(1, lefts, range(one - 1, other), one)
                right = self.over(-1, rights, range(length - other, length - one + 1), one)
                told = self.told(right, left, range(one, other + 1), told)
            runs.append(Told(first, last, told))
        return runs

    def followed(self, direction: int, length: int) -> list[FloatArray]:
        """Curves so many nodes from an end, until they are about those that bound all."""
        node = 1 if direction > 0 else length
        curves, found = self.nothing(node if direction > 0 else None), list[FloatArray]()
        late = self.bounds(direction)
        least = len(self.kernels.first) + 1  # whose laws are not those that stay
        while len(found) < min(length, max(NEAR, least)):
            found.append(curves)
            settled = self.moved(late[(node - 1) % self.kernels.period], curves) <= _SETTLED
            if settled and len(found) >= least:
                break
            node += direction
            if not 1 <= node <= length:
                break
            curves = (self.left if direction > 0 else self.right)(node, curves)
        return found

    def over(self, direction: int, found: list[FloatArray], places: range, node: int) -> FloatArray:
        """The largest curves of nodes so many places from an end, of which `node` is the first."""
        known = [found[place] for place in places if place < len(found)]
        if places[-1] >= len(found):
            phases = range(node - 1, node - 1 + min(len(places), self.kernels.period))
            late = self.bounds(direction)
            known += [late[phase % self.kernels.period] for phase in phases]
        return np.asarray(np.max(known, axis=0))

    def told(self, right: FloatArray, left: FloatArray, nodes: range, least: float) -> float:
        """The largest ε of g ⊗ r ⊗ l over pairs of states that one of the nodes can take."""
        joint = self.product.of(right)
        can = np.zeros((self.size, self.size), dtype=bool)
        for node in nodes[: len(self.kernels.possible) + self.kernels.period]:
            here = self.kernels.possible_at(node).astype(bool)
            can |= here[:, None] & here[None]
        worst = least
        for x, y in np.argwhere(can & self.apart).tolist():
            losses = _losses_of(self.gamma, left[x, y], left[y, x])
            both = joint[x, y], joint[y, x]
            worst = max(worst, self.least(losses, *both, worst))
        return worst

    def least(self, losses: Losses, curve: FloatArray, turned: FloatArray, known: float) -> float:
        """The least ε on the grid's chords that keeps δ, or less than one that is known."""

        def at(place: int) -> float:
            return _excess(losses, self.gamma, curve, turned, float(self.gamma[place]))

        if _excess(losses, self.gamma, curve, turned, math.exp(known)) <= self.delta:
            return known
        low, high = 0, len(self.gamma) - 1
        if at(high) > self.delta:
            return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if at(middle) <= self.delta else (middle, high)
        ends, told = self.gamma[[low, high]], np.array([at(low), at(high)])
        return CurveGrid(ends).epsilon(told, self.delta)


def _runs(length: int, before: int, after: int) -> list[tuple[int, int]]:
    """Runs of nodes 1..length: short near the ends, as far as something changes there."""
    starts = {1, *_steps(min(before, length))}
    starts |= {length + 2 - one for one in _steps(min(after, length))} | {length + 1}
    ordered = sorted(one for one in starts if 1 <= one <= length + 1)
    return [(first, later - 1) for first, later in pairwise(ordered)]


def _steps(most: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12, … and one beyond the last."""
    found, at = [1], 1
    while at <= most:
        at = max(at + 1, at * 4 // 3)
        found.append(min(at, most + 1))
    return found


def _losses_of(gamma: FloatArray, curve: FloatArray, turned: FloatArray) -> Losses:
    """The pair of a curve over all γ ≥ 0, read below 1 from that of the reversed pair.

    Between its knots the lower hull is that of a pair with losses at the knots; what rounding may
    hide is added to what is never outweighed.
    """
    low = 1 / gamma[:0:-1]
    ends = np.minimum(1.0, (gamma[:0:-1] - 1) / gamma[:0:-1] + turned[:0:-1] * low + 2.0**-52)
    x, y = np.concatenate([low, gamma]), np.concatenate([ends, curve])
    y = np.minimum.accumulate(y)
    kept = _hull(x, y)
    x, y = x[kept], y[kept]
    slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    steps = np.diff(slopes, prepend=-1.0)
    mass = np.maximum(x * steps, 0) * _UP
    again = np.array([float((mass[n:] * (1 - x[n] / x[n:])).sum()) for n in range(len(x))]) + y[-1]
    missed = float(np.maximum(y - again, 0).max())
    return Losses(np.log(x) + 2.0**-50, mass, float(y[-1]) + missed)


def _hull(x: FloatArray, y: FloatArray) -> list[int]:
    """The corners of the lower hull of points by rising x."""
    found: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for n in range(len(xs)):
        while len(found) > 1:
            a, b = found[-2], found[-1]
            if (ys[b] - ys[a]) * (xs[n] - xs[b]) < (ys[n] - ys[b]) * (xs[b] - xs[a]):
                break
            found.pop()
        found.append(n)
    return found


def _excess(
    losses: Losses, gamma: FloatArray, curve: FloatArray, turned: FloatArray, at: float
) -> float:
    """H at γ of the product of losses and a curve, rounded up."""
    place = np.exp(np.minimum(math.log(at) - losses.loss, _LARGEST_LOG) - 2.0**-43)
    above = place >= 1
    told = np.empty(len(place))
    told[above] = np.interp(place[above], gamma, curve)
    below = place[~above]
    told[~above] = 1 - below + 2.0**-50 + below * np.interp(1 / below, gamma, turned)
    return float(losses.mass @ told) * _UP + losses.never
