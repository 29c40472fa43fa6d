"""Certificates: a calibration's noise with a proof that it suffices, for a checker without floats.

Bounds are computed in floats, by Newton's method or node by node; the certificate holds a decimal
above each, with a flow that proves it: the dual solution at the spanning tree where the program
ended. A reader need not trust any of this: `quiltwork.audit.certificate_checker` checks it in exact
fractions.

Cost: that of a calibration for stationary chains with negligible ends, else O(length·k⁴).

Theorem: docs/theory/certificates.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
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
_SLACKS = (62, 52, 46)
_DIGITS = 25


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
            checker.check({"certificates": [document | proof]})
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
    claim = checker.ChainClaim(document)
    first, last = document["secrets"]
    nodes, pairs = last - 1 + claim.length - first, len(claim.states) ** 2
    for spans in ((1,), _SPANS):
        right = _SideWriter(claim, False, spans).endless()
        left = _SideWriter(claim, True, spans).endless() if claim.stationary and right else None
        if left and right:
            yield _with_flows(document, claim, left, right)
        elif right and (last - 1) * pairs * len(spans) <= _MOST_PROGRAMS:
            left = _SideWriter(claim, True, spans).every(last - 1)
            yield _with_flows(document, claim, left, right)
    for spans in ((1,), _SPANS):
        if nodes * pairs * len(spans) <= _MOST_PROGRAMS:
            left = _SideWriter(claim, True, spans).every(last - 1)
            right = _SideWriter(claim, False, spans).every(claim.length - first)
            yield _with_flows(document, claim, left, right)


@dataclass(frozen=True)
class _Rows:
    """The rows of all pairs of states in one step of n nodes."""

    above: FloatArray
    below: FloatArray


class _SideWriter:
    """One side: its bounds as floats, and the same as decimals with the flows that prove them."""

    def __init__(self, claim: checker.ChainClaim, left: bool, spans: tuple[int, ...]) -> None:
        self.claim, self.left, self.spans = claim, left, spans
        self.size, self.name = len(claim.states), "left" if left else "right"
        law = claim.law(1)[1]
        # a chain that starts in its stationary law is never in its other states
        self.states = [x for x in claim.states if law[x] or not claim.stationary]
        pairs = list(permutations(self.states, 2))
        self.x, self.y = (np.array([pair[s] for pair in pairs], dtype=np.int64) for s in (0, 1))
        self.trees: dict[tuple[int, ...], SpanningTrees] = {}
        self.differ = np.not_equal.outer(claim.shows, claim.shows)
        self.number = np.zeros((self.size, self.size), dtype=np.int64)
        self.number[self.x, self.y] = np.arange(len(self.x))

    def rows(self, side: checker.Side, n: int, states: list[int]) -> _Rows:
        """p and q of all pairs, restricted to the possible states."""
        matrix = np.array(side.power(n)[1], dtype=np.float64)[:, states]
        return _Rows(matrix[self.x], matrix[self.y])

    def start(self) -> FloatArray:
        """The boundary values of the pairs."""
        if not self.left:
            return np.zeros(len(self.x))
        law = np.array(self.claim.law(1)[1], dtype=np.float64)
        return np.log(law[self.x]) - np.log(law[self.y])

    def solved(
        self, n: int, rows: _Rows, limits: FloatArray, states: list[int]
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
        self, r: FloatArray, level: float, all_rows: dict[int, _Rows]
    ) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
        """F(r) for all pairs, with the Jacobian and the number of nodes of each step."""
        limits = np.where(self.differ, level, 0.0) + r
        np.fill_diagonal(limits, 0.0)
        limits = _metric_closure(limits)
        best = np.full(len(self.x), np.inf)
        slopes = np.zeros((len(self.x), len(self.states)))
        columns = np.zeros((len(self.x), len(self.states)), dtype=np.int64)
        nodes_of_step = np.ones(len(self.x), dtype=np.int64)
        for n, rows in all_rows.items():
            values, slope, column = self.solved(n, rows, limits, self.states)
            values = values + (n - 1) * level
            # ties go to the shorter step, whose proof is shorter
            lower = values < best - 1e-13
            best, nodes_of_step = np.where(lower, values, best), np.where(lower, n, nodes_of_step)
            slopes[lower], columns[lower] = slope[lower], column[lower]
        return best, nodes_of_step, slopes, columns

    def endless(self) -> dict[str, Any] | None:
        """One bound for all nodes, by Newton's method on r = F(r) + a small amount."""
        rows = self.claim.rows
        if all(row == rows[self.states[0]] for row in (rows[x] for x in self.states)):
            return self._independent()
        side = checker.Side(self.claim, self.left, [], True)
        all_rows = {n: self.rows(side, n, self.states) for n in self.spans}
        level, lowest = float(side.most), self.start()
        r, matrix = lowest.copy(), np.full((self.size, self.size), np.inf)
        for iteration in range(_NEWTON):
            matrix[self.x, self.y] = r
            values, _, slopes, columns = self.step(matrix, level, all_rows)
            if not np.isfinite(values).all() or values.max() > _LARGEST:
                return None
            if iteration < _PLAIN // 2:
                r = np.maximum(values, lowest)
                continue
            jacobian = np.zeros((len(r), len(r)))
            np.add.at(jacobian, (np.arange(len(r))[:, np.newaxis], columns), slopes)
            try:
                move = np.linalg.solve(np.eye(len(r)) - jacobian, values - r + _ABOVE)
            except np.linalg.LinAlgError:
                return None
            r = np.maximum(r + move, lowest + _ABOVE)
            if np.abs(move).max() < 2.0**-49 * (1 + np.abs(r).max()):
                break
        if r.max() > _LARGEST:
            return None
        matrix[self.x, self.y] = r
        _, nodes_of_step, _, _ = self.step(matrix, level, all_rows)
        bounds = self._empty()
        for x, y, value in zip(self.x.tolist(), self.y.tolist(), r.tolist(), strict=True):
            bounds[x][y] = _decimal(Fraction(math.exp(value)))
        side = checker.Side(self.claim, self.left, [bounds], True)
        steps, closures = (
            self._empty(),
            {n: _Closure(side.limits(1 - n), self.size) for n in self.spans},
        )
        for index, (x, y) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            n = int(nodes_of_step[index])
            tree = _tree(self.trees[n, *self.states], index, self.states)
            most = Fraction(bounds[x][y]) / side.between(1, n)
            flow = closures[n].flow(*side.step(1, n, x, y), most, tree)
            if flow is None:
                return None
            steps[x][y] = [n, flow]
        return {"bounds": [bounds], "steps": [steps], "endless": True}

    def _empty(self) -> list[list[Any]]:
        return [[None] * self.size for _ in range(self.size)]

    def _independent(self) -> dict[str, Any]:
        """The bounds of independent nodes."""
        return {"bounds": [self._end()], "steps": [self._steps_of_one()], "endless": True}

    def _steps_of_one(self) -> list[list[Any]]:
        steps = self._empty()
        for x, y in permutations(self.states, 2):
            steps[x][y] = [1, []]
        return steps

    def _end(self) -> list[list[Any]]:
        """The boundary values, as fractions."""
        bounds, law = self._empty(), self.claim.law(1)[1]
        for x, y in permutations(self.states, 2):
            if not self.left:
                bounds[x][y] = "1"
            elif law[x] and law[y]:
                bounds[x][y] = str(law[x] / law[y])
        return bounds

    def every(self, count: int) -> dict[str, Any]:
        """A bound for each of `count` nodes from the end."""
        written, steps = [self._end()], []
        side = checker.Side(self.claim, self.left, written, False)
        for j in range(1, count + 1):
            bounds, stage = self._empty(), self._empty()
            for n in self.spans:
                if n <= j:
                    self._tighten(side, j, n, bounds, stage)
            written.append(bounds)
            steps.append(stage)
            side.bounds.append(side.parsed(bounds))
        return {"bounds": written, "steps": steps, "endless": False}

    def _tighten(
        self, side: checker.Side, j: int, n: int, bounds: list[list[Any]], stage: list[list[Any]]
    ) -> None:
        """Lower the bounds by a step of n nodes where it gives lower ones."""
        possible = [self.states, self.states]
        if self.left:
            laws = (self.claim.law(side.node(i))[1] for i in (j - n, j))
            possible = [[x for x in self.states if law[x]] for law in laws]
        states, closure = possible[0], _Closure(side.limits(j - n), self.size)
        self.solved(n, self.rows(side, n, states), closure.logarithms(), states)
        between = side.between(j, n)
        for index, (x, y) in enumerate(zip(self.x.tolist(), self.y.tolist(), strict=True)):
            if x not in possible[1] or y not in possible[1]:
                continue
            p, q = side.step(j, n, x, y)
            best = None if bounds[x][y] is None else Fraction(bounds[x][y])
            for tree in (None, _tree(self.trees[n, *states], index, states)):
                value = closure.value(p, q, tree)
                if value is None:
                    continue
                for bits in _SLACKS:
                    bound = _decimal(value * between * (1 + Fraction(bool(tree), 1 << bits)))
                    if best is not None and Fraction(bound) >= best:
                        break
                    flow = closure.flow(p, q, Fraction(bound) / between, tree)
                    if flow is not None:
                        best, bounds[x][y], stage[x][y] = Fraction(bound), bound, [n, flow]
                        break


_Tree = list[tuple[int, int, bool]]
"""States with their parent and whether they are at their upper limit, from the root outwards."""


class _Closure:
    """Limits on ratios, those that follow via other states included, and flows along them."""

    def __init__(self, limits: checker.Bounds, size: int) -> None:
        self.direct, self.size = limits, size
        self.closed, self.via = dict(limits), dict[tuple[int, int], int]()
        for y, x, z in permutations(range(size), 3):
            if (x, y) in self.closed and (y, z) in self.closed:
                through = checker.up(self.closed[x, y] * self.closed[y, z])
                if (x, z) not in self.closed or through < self.closed[x, z]:
                    self.closed[x, z], self.via[x, z] = through, y

    def logarithms(self) -> FloatArray:
        """The closed limits as levels."""
        logs = np.full((self.size, self.size), np.inf)
        for pair, limit in self.closed.items():
            logs[pair] = _log(limit)
        np.fill_diagonal(logs, 0.0)
        return logs

    def value(self, p: list[Fraction], q: list[Fraction], tree: _Tree | None) -> Fraction | None:
        """p·v / q·v at the solution of a tree; without one the largest ratio of entries."""
        if tree is None:
            if any(b == 0 < a for a, b in zip(p, q, strict=True)):
                return None
            return max((a / b for a, b in zip(p, q, strict=True) if a), default=Fraction(1))
        vector = {}
        for z, parent, upper in tree:
            if z == parent:
                vector[z] = Fraction(1)
                continue
            limit = self.closed.get((z, parent) if upper else (parent, z))
            if not limit:
                return None
            vector[z] = checker.up(vector[parent] * limit if upper else vector[parent] / limit)
        top, bottom = (sum(row[z] * v for z, v in vector.items()) for row in (p, q))
        return top / bottom if bottom else None

    def flow(
        self, p: list[Fraction], q: list[Fraction], most: Fraction, tree: _Tree | None
    ) -> list[list[Any]] | None:
        """A flow that proves p·v ≤ most·(q·v): each state passes its excess to its parent."""
        excess, flow = [a - most * b for a, b in zip(p, q, strict=True)], []
        for z, parent, upper in reversed(tree or []):
            if z == parent or excess[z] == 0 or (upper and excess[z] < 0):
                continue
            limit = self.closed.get((z, parent) if upper else (parent, z))
            if not limit or (excess[z] > 0 and not upper):
                return None
            if upper:
                source, target, weight = z, parent, excess[z]
            else:  # a little less, for the rounding up on the way
                source, target = parent, z
                weight = -excess[z] / limit * (1 - Fraction(1, 1 << 70))
            for start, end in self._path(source, target):
                text = _decimal(weight)
                weight = Fraction(text) * self.direct[start, end]
                excess[start] -= Fraction(text)
                excess[end] += weight
                flow.append([start, end, text])
        return flow if max(excess) <= 0 else None

    def _path(self, x: int, z: int) -> list[tuple[int, int]]:
        """The direct limits that a closed one is made of."""
        y = self.via.get((x, z))
        return [(x, z)] if y is None else self._path(x, y) + self._path(y, z)


def _tree(trees: SpanningTrees, index: int, states: list[int]) -> _Tree | None:
    """The tree at which a program ended; None if there is none."""
    if trees.order[index, 0] == -2:
        return None
    parent, upper = trees.parent[index].tolist(), trees.upper[index].tolist()
    order = [z for z, above in enumerate(parent) if z == above]
    for above in order:  # grows while it is read; states of a circle were not reached
        order += [z for z, its in enumerate(parent) if its == above != z]
    return [(states[z], states[parent[z]], bool(upper[z])) for z in order]


def _decimal(value: Fraction) -> str:
    """A decimal of 25 digits, not below the value."""
    if not value:
        return "0"
    digits = _DIGITS - math.ceil(_log(value) / math.log(10))
    scaled = value * Fraction(10) ** digits
    return f"{Decimal(-(-scaled.numerator // scaled.denominator)).scaleb(-digits):f}"


def _log(value: Fraction) -> float:
    """The logarithm of a fraction of any size."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log(value / Fraction(2) ** shift) + shift * math.log(2)


def _metric_closure(limits: FloatArray) -> FloatArray:
    """The tightest limits that follow from the given ones."""
    closure = limits.copy()
    for z in range(len(closure)):
        closure = np.fmin(closure, closure[:, z, np.newaxis] + closure[np.newaxis, z])
    return closure


def _with_flows(
    document: dict[str, Any], claim: checker.ChainClaim, left: dict[str, Any], right: dict[str, Any]
) -> dict[str, Any]:
    """The proof of two sides, and the flows between observed values at every secret."""
    proof: dict[str, Any] = {"left": left, "right": right, "flows": None}
    if document["episode"] > 1:
        return proof
    sides = [
        checker.Side(claim, one is left, one["bounds"], one["endless"]) for one in (left, right)
    ]
    first, last = document["secrets"]
    if left["endless"] and right["endless"]:
        secrets = [(first, claim.highest(1))]
    else:
        secrets = [(t, claim.level(t, t)) for t in range(first, last + 1)]
    proof["flows"] = [_secret_flows(claim, t, own, *sides) for t, own in secrets]
    return proof


def _secret_flows(
    claim: checker.ChainClaim, t: int, own: Fraction, left: checker.Side, right: checker.Side
) -> list[list[Any]]:
    """The flows between the values observed at one time point."""
    labels = range(max(claim.shows) + 1)
    flows: list[list[Any]] = [[None] * len(labels) for _ in labels]
    values = list(permutations(sorted(claim.values(t)), 2))
    if not claim.hidden:
        for a, b in values:
            x, y = claim.shows.index(a), claim.shows.index(b)
            flows[a][b] = [[x, y, "1"]]
        return flows
    before, after = left.at(t), right.at(t)
    both = {pair: before[pair] * after[pair] for pair in before.keys() & after.keys()}
    states = [x for x in claim.states if claim.law(t)[1][x]]
    for a, b in values:
        p, q, most, limits = claim.program(t, own, both, a, b)
        closure = _Closure(limits, len(claim.states))
        above, below = (np.array([row], dtype=np.float64)[:, states] for row in (p, q))
        capped = np.minimum(closure.logarithms()[np.ix_(states, states)], _LARGEST)[np.newaxis]
        group = np.zeros(1, dtype=np.int64)
        *_, trees = solve(above, below, capped, group, SpanningTrees.none(1, len(states)))
        flow = closure.flow(p, q, most, _tree(trees, 0, states))
        flows[a][b] = _coupling(claim, t, a, b) if flow is None else flow
    return flows


def _coupling(claim: checker.ChainClaim, t: int, a: int, b: int) -> list[list[Any]]:
    """A flow from every state behind a to every one behind b, in proportion to their law."""
    law = claim.law(t)[1]
    behind = [x for x in claim.states if claim.shows[x] == b and law[x]]
    total = sum(law[y] for y in behind)
    return [
        [x, y, str(checker.up(law[y] / total))]
        for x in claim.states
        if claim.shows[x] == a and law[x]
        for y in behind
    ]
