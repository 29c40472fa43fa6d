"""Certificates: a calibration's noise with a proof that it suffices, for a checker without floats.

Bounds are computed in floats, by Newton's method or node by node; the certificate holds a rational
above each, with the spanning tree at which the program ended. A reader need not trust any of this:
`quiltwork.audit.certificate_checker` checks it in exact fractions.

Cost: that of a calibration for stationary chains with negligible ends, else O(length·k⁴).

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork import files
from quiltwork.audit import certificate_checker as checker
from quiltwork.audit.certificate_claims import chain_numbers
from quiltwork.errors import UnsupportedError
from quiltwork.exact import positive_fraction
from quiltwork.influence.kernel.programs import FloatArray, IntArray, SpanningTrees, solve

if TYPE_CHECKING:
    from quiltwork.beliefs import Belief
    from quiltwork.influence.calibration import Calibration

_SPANS = (1, 2, 4, 8, 16)
_MOST_PROGRAMS = 100_000
_LARGEST = 250.0
_ABOVE = 2.0**-43
_NEWTON, _PLAIN = 60, 40
_SLACKS = (90, 70, 55, 46)


def certificate(calibration: Calibration) -> str:
    """Return the proof, as JSON, that a calibration's noise suffices under each of its beliefs.

    Args:
        calibration: by the sweep, under chains with a known matrix and start, or hidden chains.

    Raises:
        UnsupportedError: for other methods and beliefs, noise of 0, and long series whose time
            points would each need a bound of their own.

    >>> from quiltwork import calibrate
    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> text = certificate(calibrate(chain, 100, 1))
    >>> checker.check(files.parse(text))
    """
    if calibration.method != "sweep" or calibration.integer_scale == 0:
        raise UnsupportedError(
            "Certificates are written for noise above 0 that was calibrated by the sweep."
        )
    certificates = [_proved(calibration, bound.belief) for bound in calibration.bounds]
    return files.dump("certificate", 1, {"certificates": certificates})


def _proved(calibration: Calibration, belief: Belief) -> dict[str, Any]:
    """The claim about one belief, with the first proof that passes the checker."""
    document = _stated(calibration, belief)
    # cheap proofs first; whatever the checker refuses is tried in another form
    for proof in _proofs(document):
        try:
            checker.check_one(document | proof)
        except checker.RefusedError:
            continue
        return document | proof
    raise UnsupportedError(
        "No certificate of this calibration was found: the series is long and its ends matter, or "
        "the calibration uses bounds that a certificate cannot express."
    )


def _stated(calibration: Calibration, belief: Belief) -> dict[str, Any]:
    """The claim: the chain, the charges, the noise and ε."""
    problem, length = calibration.problem, calibration.length
    query = problem.query
    windows: tuple[tuple[int, int], ...] = (
        ((1, length),) if query is None else query.windows(length)
    )
    point, pair, once = (1, 0, 0) if query is None else query.sensitivity
    charges = []
    for first, last in windows:
        spans = (1, point), (2, pair), (last - first + 1, once)
        charges += [[first, last, n, int(c)] for n, c in spans if c and last - first + 1 >= n]
    chain, labels, pairs = chain_numbers(belief), list(belief.states or ()), problem.pairs
    return chain | {
        "epsilon": str(positive_fraction(calibration.epsilon, "epsilon")),
        "scale": str(calibration.integer_scale),
        "length": length,
        "charges": charges,
        "secrets": [problem.nodes.start, problem.nodes.stop - 1],
        "episode": problem.episode,
        "pairs": None if pairs is None else [[labels.index(v) for v in pair] for pair in pairs],
    }


def _proofs(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Candidate proofs: one bound for all nodes, else one for each node."""
    chain = checker.Chain(document)
    levels = checker.ChargedLevels(document, chain.hidden)
    first, last = document["secrets"]
    for spans in ((1,), _SPANS):
        right = _SideWriter(chain, levels, False, spans).endless()
        left = (
            _SideWriter(chain, levels, True, spans).endless() if chain.settled and right else None
        )
        if left and right:
            yield _with_shown(document, chain, levels, [left, right])
        elif right and (last - 1) * chain.size**2 * len(spans) <= _MOST_PROGRAMS:
            left = _SideWriter(chain, levels, True, spans).every(last - 1)
            yield _with_shown(document, chain, levels, [left, right])
    nodes = last - 1 + chain.length - first
    for spans in ((1,), _SPANS):
        if nodes * chain.size**2 * len(spans) <= _MOST_PROGRAMS:
            left = _SideWriter(chain, levels, True, spans).every(last - 1)
            right = _SideWriter(chain, levels, False, spans).every(chain.length - first)
            yield _with_shown(document, chain, levels, [left, right])


@dataclass(frozen=True)
class _Pairs:
    """The rows of all pairs of states in one step of n nodes."""

    above: FloatArray
    below: FloatArray


class _SideWriter:
    """One side: its bounds as floats, and the same as fractions with their trees."""

    def __init__(
        self,
        chain: checker.Chain,
        levels: checker.ChargedLevels,
        left: bool,
        spans: tuple[int, ...],
    ) -> None:
        self.chain, self.levels, self.left, self.spans = chain, levels, left, spans
        self.size = chain.size
        self.x, self.y = np.nonzero(~np.eye(self.size, dtype=np.bool_))
        self.trees: dict[tuple[int, ...], SpanningTrees] = {}
        self.differ = np.array(
            [[chain.differ(x, y) for y in range(self.size)] for x in range(self.size)]
        )
        self.number = np.zeros((self.size, self.size), dtype=np.int64)
        self.number[self.x, self.y] = np.arange(len(self.x))

    def rows(self, n: int, states: list[int]) -> _Pairs:
        """p and q of all pairs, restricted to the possible states."""
        matrix = np.array(self.chain.power(n, 1), dtype=np.float64)
        matrix = (matrix.T if self.left else matrix)[:, states]
        return _Pairs(matrix[self.x], matrix[self.y])

    def start(self) -> FloatArray:
        """The boundary values of the side."""
        r = np.zeros((self.size, self.size))
        if self.left:
            law = np.array(self.chain.law(1, 1), dtype=np.float64)
            with np.errstate(divide="ignore", invalid="ignore"):
                r = np.log(law)[:, np.newaxis] - np.log(law)
        return r

    def solved(
        self, n: int, rows: _Pairs, limits: FloatArray, states: list[int]
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Bounds, slopes and the pairs that they belong to, starting from the last trees."""
        key, number = (n, *states), self.number[np.ix_(states, states)]
        solved_trees = self.trees.get(key) or SpanningTrees.none(len(self.x), len(states))
        capped = np.minimum(limits[np.ix_(states, states)], _LARGEST)[np.newaxis]
        group = np.zeros(len(self.x), dtype=np.int64)
        values, slope, high, low, solved_trees = solve(
            rows.above, rows.below, capped, group, solved_trees
        )
        self.trees[key] = solved_trees
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.log(np.where(rows.above > 0, rows.above / rows.below, 0.0).max(axis=1))
        values = np.where(np.isnan(values), np.inf, values)
        return np.minimum(values, largest), slope, number[high, low]

    def step(
        self, r: FloatArray, level: float, all_rows: dict[int, _Pairs], states: list[int]
    ) -> Any:
        """F(r) for all pairs, with the Jacobian and the number of nodes of each step."""
        limits = np.where(self.differ, level, 0.0) + r
        np.fill_diagonal(limits, 0.0)
        limits = _metric_closure(limits)
        best = np.full(len(self.x), np.inf)
        slopes = np.zeros((len(self.x), self.size))
        columns = np.zeros((len(self.x), self.size), dtype=np.int64)
        nodes_of_step = np.ones(len(self.x), dtype=np.int64)
        for n, rows in all_rows.items():
            values, slope, column = self.solved(n, rows, limits, states)
            values = values + (n - 1) * level
            # ties go to the shorter step, whose proof is shorter
            lower = values < best - 1e-13
            best, nodes_of_step = np.where(lower, values, best), np.where(lower, n, nodes_of_step)
            slopes[lower], columns[lower] = slope[lower], column[lower]
        return best, nodes_of_step, slopes, columns

    def endless(self) -> dict[str, Any] | None:
        """One bound for all nodes, by Newton's method on r = F(r) + a small amount."""
        if self.size == 1:
            return {"bounds": [[[None]]], "steps": [[[None]]], "endless": True}
        if all(row == self.chain.rows[0] for row in self.chain.rows):
            return self._independent()
        level = float(max(self.levels.side(t, self.left) for t in self.levels.corners()))
        states = self.chain.occurs(1)
        all_rows = {n: self.rows(n, states) for n in self.spans}
        rest = self.start()[self.x, self.y]
        r, matrix = rest.copy(), np.zeros((self.size, self.size))
        for iteration in range(_NEWTON):
            matrix[self.x, self.y] = r
            values, steps_of, slopes, columns = self.step(matrix, level, all_rows, states)
            if not np.isfinite(values).all() or values.max() > _LARGEST:
                return None
            if iteration < _PLAIN // 2:
                r = np.maximum(values, rest)
                continue
            jacobian = np.zeros((len(r), len(r)))
            np.add.at(jacobian, (np.arange(len(r))[:, np.newaxis], columns), slopes)
            try:
                move = np.linalg.solve(np.eye(len(r)) - jacobian, values - r + _ABOVE)
            except np.linalg.LinAlgError:
                return None
            r = np.maximum(r + move, rest + _ABOVE)
            if np.abs(move).max() < 2.0**-49 * (1 + np.abs(r).max()):
                break
        if r.max() > _LARGEST:
            return None
        matrix[self.x, self.y] = r
        _, steps_of, _, _ = self.step(matrix, level, all_rows, states)
        bounds = [[None] * self.size for _ in range(self.size)]
        steps = [[None] * self.size for _ in range(self.size)]
        for index, (x, y) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            n = int(steps_of[index])
            bounds[x][y] = str(checker.up(Fraction(math.exp(r[index]))))  # type: ignore[call-overload]
            steps[x][y] = [n, self.tree(n, index, states)]  # type: ignore[call-overload]
        return {"bounds": [bounds], "steps": [steps], "endless": True}

    def _independent(self) -> dict[str, Any]:
        """The bounds of independent nodes."""
        law, size = self.chain.law(1, 1), range(self.size)
        ratios = [[None if x == y else law[x] / law[y] for y in size] for x in size]
        bounds = [
            [None if e is None else str(e if self.left else 1) for e in row] for row in ratios
        ]
        steps = [[None if x == y else [1, None] for y in size] for x in size]
        return {"bounds": [bounds], "steps": [steps], "endless": True}

    def tree(self, n: int, place: int, states: list[int]) -> list[int] | None:
        """The tree at which the program of a pair ended, in the checker's format."""
        return _tree(self.trees[n, *states], place, states, self.size)

    def every(self, count: int) -> dict[str, Any]:
        """A bound for each of `count` nodes from the end."""
        side = checker.Side.__new__(checker.Side)  # the checker's own steps, without its reading
        side.name, side.left = ("left" if self.left else "right"), self.left
        side.chain, side.levels, side.infinite, side.kept = self.chain, self.levels, False, None
        side.bounds = [self._end(side)]
        steps = []
        for j in range(1, count + 1):
            stage: list[list[Any]] = [[None] * self.size for _ in range(self.size)]
            bounds: checker.Bounds = [[None] * self.size for _ in range(self.size)]
            for n in self.spans:
                if n <= j:
                    self._tighten(side, j, n, bounds, stage)
            side.bounds.append(bounds)
            steps.append(stage)
        written = [
            [[None if e is None else str(e) for e in row] for row in bounds_of_node]
            for bounds_of_node in side.bounds
        ]
        return {"bounds": written, "steps": steps, "endless": False}

    def _end(self, side: checker.Side) -> checker.Bounds:
        bounds: checker.Bounds = [[None] * self.size for _ in range(self.size)]
        law = self.chain.law(1, 1)
        for x, y in checker.pairs(side.states(0)):
            bounds[x][y] = law[x] / law[y] if self.left else checker.ONE
        return bounds

    def _tighten(
        self, side: checker.Side, j: int, n: int, bounds: checker.Bounds, stage: list[list[Any]]
    ) -> None:
        """Lower the bounds by a step of n nodes where it gives lower ones."""
        limits, states = side.limits(j - n), side.states(j - n)
        between = checker.exp_up(sum((side.charged(j - n + i) for i in range(1, n)), checker.ZERO))
        floats = np.array([[math.inf if e is None else _log(e) for e in row] for row in limits])
        np.fill_diagonal(floats, 0.0)
        rows = self.rows(n, states)
        self.solved(n, rows, floats, states)
        below, above = self.chain.power(n, 0), self.chain.power(n, 1)
        possible = side.states(j)
        for place, (x, y) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            if x not in possible or y not in possible:
                continue
            p, q = (
                ([row[x] for row in above], [row[y] for row in below])
                if self.left
                else (above[x], below[y])
            )
            proved = _exact(p, q, limits, states, self.tree(n, place, states))
            if proved is not None:
                bound = checker.up(proved[0] * between)
                while checker.down(bound / between) < proved[0]:
                    bound = checker.up(bound * (1 + Fraction(1, 1 << 90)))
                old = bounds[x][y]
                if old is None or bound < old:
                    bounds[x][y], stage[x][y] = bound, [n, proved[1]]


def _exact(
    p: list[Fraction], q: list[Fraction], limits: checker.Bounds, states: list[int], tree: Any
) -> tuple[Fraction, Any] | None:
    """The least bound that this tree, or no tree, proves; None without one."""
    best: tuple[Fraction, Any] | None = None
    if all(q[z] for z in states if p[z]):
        best = max((p[z] / q[z] for z in states if p[z]), default=checker.ONE), None
    if tree is None:
        return best
    try:
        _, vector = checker.tree_vector(tree, limits, states)
        top, bottom = (sum((r[z] * vector[z] for z in states), checker.ZERO) for r in (p, q))
        value = top / bottom
    except (checker.RefusedError, ZeroDivisionError):
        return best
    for bits in _SLACKS:
        bound = checker.up(value * (1 + Fraction(1, 1 << bits)))
        if best is not None and best[0] <= bound:
            return best
        if checker.proved(p, q, bound, limits, states, tree):
            return bound, tree
    return best


def _tree(trees: SpanningTrees, index: int, states: list[int], size: int) -> list[int] | None:
    """A tree of some of the states in the checker's format; None if there is none."""
    parent, upper = trees.parent[index].tolist(), trees.upper[index].tolist()
    if trees.order[index, 0] == -2:
        return None
    encoded = [0] * size
    for z in range(len(states)):
        path = [z]
        while parent[path[-1]] != path[-1] and parent[path[-1]] not in path:
            path.append(parent[path[-1]])
        if parent[path[-1]] == path[-1] and len(path) > 1:  # else a circle: not reached
            encoded[states[z]] = (states[parent[z]] + 1) * (1 if upper[z] else -1)
    return encoded


def _log(value: Fraction) -> float:
    """The logarithm of a fraction of any size."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / (1 << shift) if shift >= 0 else value * (1 << -shift)
    return math.log(scaled) + shift * math.log(2)


def _metric_closure(limits: FloatArray) -> FloatArray:
    """The tightest limits that follow from the given ones."""
    closure = limits.copy()
    for z in range(len(closure)):
        closure = np.fmin(closure, closure[:, z, np.newaxis] + closure[np.newaxis, z])
    return closure


def _with_shown(
    document: dict[str, Any], chain: checker.Chain, levels: checker.ChargedLevels, sides: list[Any]
) -> dict[str, Any]:
    """The proof of two sides, and for hidden states the programs between observed values."""
    proof: dict[str, Any] = {"left": sides[0], "right": sides[1], "shown": None}
    if chain.hidden and document["episode"] == 1:
        proof["shown"] = _shown(document | proof, chain, levels)
    return proof


def _shown(
    document: dict[str, Any], chain: checker.Chain, levels: checker.ChargedLevels
) -> list[Any]:
    """The trees of the programs between observed values, for each secret."""
    left, right = (checker.Side(name, document, chain, levels) for name in ("left", "right"))
    first, last = document["secrets"]
    if left.infinite and right.infinite:
        secrets = [(first, max(levels.own(t, t) for t in levels.corners()))]
    else:
        secrets = [(t, levels.own(t, t)) for t in range(first, last + 1)]
    labels = max(chain.shows) + 1
    programs = []
    for t, own in secrets:
        before, after = checker.conditional_bounds(chain, t, left.at(t)), right.at(t)
        limits = checker.combined_limits(chain, t, checker.exp_up(own), before, after)
        floats = np.array([[math.inf if e is None else _log(e) for e in row] for row in limits])
        np.fill_diagonal(floats, 0.0)
        observed = sorted({chain.shows[x] for x in chain.occurs(t)})
        pairs = [(a, b) for a in observed for b in observed if a != b]
        states = chain.occurs(t)
        laws = {
            a: np.array(checker.law_given_shown(chain, t, a, 1), dtype=np.float64) for a in observed
        }
        trees: list[list[Any]] = [[None] * labels for _ in range(labels)]
        if pairs:
            solved_trees = SpanningTrees.none(len(pairs), len(states))
            above, below = (np.stack([laws[pair[s]][states] for pair in pairs]) for s in (0, 1))
            group = np.zeros(len(pairs), dtype=np.int64)
            capped = np.minimum(floats[np.ix_(states, states)], _LARGEST)[np.newaxis]
            *_, solved_trees = solve(above, below, capped, group, solved_trees)
            for place, (a, b) in enumerate(pairs):
                trees[a][b] = _tree(solved_trees, place, states, chain.size)
        programs.append(trees)
    return programs
