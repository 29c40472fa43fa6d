"""What any mechanism of given levels can betray: a linear program over all of them.

A transcript of releases enters what an adversary learns only through its likelihood h(x), a
positive function of the data that changes at most by e^d(x, x') between two data sets. The
supremum of log E[h | a]/E[h | b] over all such h is a linear program with one variable per data
set: maximise E[h | a] with E[h | b] = 1. Laws are plain arrays P(x_1, …, x_T), so chains, trees
and hidden states are the same thing here, and nothing is assumed about their structure.

The solver's h is made exactly feasible and its ratio computed again, so what is returned is always
attained by some mechanism: a claim below it is wrong, whatever the solver did.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, linprog

Distance = Callable[[frozenset[int]], float]
Array = np.ndarray
Work = Generator[Any, Any, dict[tuple, float]]
"""Asks for programs as `_solve` takes them, and returns the suprema of pairs of assignments."""
TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def chain_law(start: Array, matrices: Sequence[Array]) -> Array:
    """P(x_1, …, x_T) of a chain, one matrix per step."""
    law = np.asarray(start, dtype=float)
    for matrix in matrices:
        law = law[..., None] * np.asarray(matrix)
    return law


def seen_through(law: Array, functions: Sequence[Sequence[int]]) -> Array:
    """The law of (f_1(X_1), …, f_T(X_T)), where f_t sends a state to 0, 1, …"""
    for axis, function in enumerate(functions):
        values = np.eye(max(function) + 1)[list(function)]
        law = np.moveaxis(np.tensordot(law, values, axes=(axis, 0)), -1, axis)
    return law


def given(law: Array, known: dict[int, int]) -> Array:
    """The law of the other nodes given some; known nodes keep an axis of length 1."""
    cut = law[tuple([known[t]] if t in known else slice(None) for t in range(law.ndim))]
    return cut / cut.sum()


def conditional_laws(law: Array, block: Sequence[int]) -> dict[tuple[int, ...], Array]:
    """P(other nodes | block = a) for every possible assignment a."""
    rows = np.moveaxis(law, block, range(len(block)))
    found = {}
    for a in itertools.product(*(range(law.shape[t]) for t in block)):
        if rows[a].sum() > 0:
            found[a] = rows[a] / rows[a].sum()
    return found


def together(works: Sequence[Work]) -> list[Any]:
    """What several works find; the programs that they ask for are solved in one call."""
    found, answers, waiting = [None] * len(works), [None] * len(works), range(len(works))
    while waiting:
        asked = {}
        for n in waiting:
            try:
                asked[n] = works[n].send(answers[n])
            except StopIteration as end:
                found[n] = end.value
        solved = iter(_solve(*([one for some in part for one in some] for part in _columns(asked))))
        answers = [
            list(itertools.islice(solved, len(asked[n][0]))) if n in asked else None
            for n in range(len(works))
        ]
        waiting = list(asked)
    return found


def _columns(asked: dict[int, Any]) -> list[list[Any]]:
    return [[programs[column] for programs in asked.values()] for column in range(3)]


def suprema(law: Array, levels: Sequence[float], block: Sequence[int]) -> Work:
    """Find the supremum for every ordered pair of possible assignments of a block, nodes from 0.

    Only what the block itself costs is taken out of the program: h(a, y) = e^S·h(b, y) is the
    worst whatever y. Nodes of level 0 are summed out, since h cannot depend on them.
    """
    beyond = yield from _beyond(law, levels, block)
    return {
        (a, b): sum(levels[t] for t, x, y in zip(block, a, b, strict=True) if x != y) + rest
        for (a, b), rest in beyond.items()
    }


def supremum(law: Array, levels: Sequence[float], block: Sequence[int]) -> float:
    """The most that can be learned about a block; 0 if it has one possible assignment."""
    return max(together([suprema(law, levels, block)])[0].values(), default=0.0)


def chain_suprema(law: Array, levels: Sequence[float], block: Sequence[int]) -> Work:
    """The same for a chain, where what lies left and right of the block are programs apart.

    Given the block its two sides are independent, so a product of a function of each side is the
    worst: every other h is bounded first on one side, then on the other.
    """
    first, last = block[0], block[-1]
    before, after = tuple(range(first)), tuple(range(last + 1, law.ndim))
    inside = law.sum(axis=(*before, *after)), [levels[t] for t in block], range(len(block))
    own = yield from suprema(*inside)
    beyond = law.sum(axis=tuple(range(first + 1, law.ndim))), levels[: first + 1], [first]
    left = yield from _beyond(*beyond)
    right = yield from _beyond(law.sum(axis=tuple(range(last))), levels[last:], [0])
    return {
        (a, b): cost + left.get((a[:1], b[:1]), 0.0) + right.get((a[-1:], b[-1:]), 0.0)
        for (a, b), cost in own.items()
    }


def chain_supremum(law: Array, levels: Sequence[float], block: Sequence[int]) -> float:
    return max(together([chain_suprema(law, levels, block)])[0].values(), default=0.0)


def two_state_suprema(start: Array, matrices: Sequence[Array], levels: Sequence[float]) -> Array:
    """The suprema of all nodes of a chain of two states, in closed form, however long it is.

    A function of the nodes beyond X_t is a number per state of X_t, here one ratio, and all ratios
    up to the largest and down to the smallest occur; so the program of one step has two vertices.
    """
    laws = [np.asarray(start, dtype=float)]
    for matrix in matrices:
        laws.append(laws[-1] @ matrix)
    forward = _ratios(matrices[::-1], levels[::-1])[::-1]
    kernels = [_reversed(law, matrix) for law, matrix in zip(laws, matrices, strict=False)]
    backward = _ratios(kernels, levels)
    leaks = [
        s + max(f[0] + b[0], f[1] + b[1]) for s, f, b in zip(levels, forward, backward, strict=True)
    ]
    return np.where([law.min() > 0 for law in laws], leaks, 0.0)


def _reversed(law: Array, matrix: Array) -> Array:
    """P(X_t | X_{t+1}); where a state cannot occur its row says what the other says."""
    rows = (law[:, None] * matrix).T
    if not rows.sum(axis=1).all():
        rows = rows[[rows.sum(axis=1).argmax()] * 2]
    return rows / rows.sum(axis=1, keepdims=True)


def _ratios(kernels: Sequence[Array], levels: Sequence[float]) -> list[tuple[float, float]]:
    """log E[h|1]/E[h|0] and its reverse at most, node by node; kernels[t] leads from t+1 to t."""
    found = [(0.0, 0.0)]
    with np.errstate(divide="ignore"):
        logs = np.log(kernels).tolist()
    for ((a, b), (c, d)), level in zip(logs, levels, strict=False):
        rise, fall = found[-1]
        ends = [_log_sum(c, d + w) - _log_sum(a, b + w) for w in (level + rise, -level - fall)]
        found.append((max(ends), -min(ends)))
    return found


def _log_sum(a: float, b: float) -> float:
    """log(e^a + e^b)"""
    high = max(a, b)
    return high if math.isinf(high) else high + math.log1p(math.exp(min(a, b) - high))


def _beyond(law: Array, levels: Sequence[float], block: Sequence[int]) -> Work:
    """What functions of the nodes outside the block tell apart."""
    rest = [t for t in range(law.ndim) if t not in block]
    silent = tuple(n for n, t in enumerate(rest) if levels[t] == 0 or law.shape[t] == 1)
    spent = [levels[t] for n, t in enumerate(rest) if n not in silent]
    laws = {a: p.sum(axis=silent) for a, p in conditional_laws(law, block).items()}
    if not spent:
        return dict.fromkeys(itertools.permutations(laws, 2), 0.0)
    pairs = list(itertools.permutations(laws, 2))
    rows = _single_changes(next(iter(laws.values())).shape, spent) if pairs else None
    feasible = [lambda h: _feasible(h, spent)] * len(pairs)
    found = yield [(laws[a], laws[b]) for a, b in pairs], [rows] * len(pairs), feasible
    return dict(zip(pairs, found, strict=True))


def _single_changes(shape: tuple[int, ...], levels: Sequence[float]) -> sparse.csr_array:
    """e^−s·h(x) − h(x') ≤ 0 for x and x' that differ in one node."""
    index = np.arange(math.prod(shape)).reshape(shape)
    upper, lower, weight = [], [], []
    for axis, level in enumerate(levels):
        for x, y in itertools.permutations(range(shape[axis]), 2):
            upper.append(index.take(x, axis).ravel())
            lower.append(index.take(y, axis).ravel())
            weight.append(np.full(upper[-1].size, math.exp(-level)))
    return _rows(np.concatenate(upper), np.concatenate(lower), np.concatenate(weight), index.size)


def _rows(upper: Array, lower: Array, weight: Array, size: int) -> sparse.csr_array:
    row = np.arange(len(upper))
    entries = np.concatenate([weight, -np.ones(len(lower))])
    places = np.concatenate([row, row]), np.concatenate([upper, lower])
    return sparse.csr_array((entries, places), (len(upper), size))


def _feasible(h: Array, levels: Sequence[float]) -> Array:
    """The largest function below h that keeps the levels, axis by axis."""
    for axis, level in enumerate(levels):
        h = np.minimum(h, math.exp(level) * h.min(axis=axis, keepdims=True))
    return h


def _solve(
    laws: Sequence[tuple[Array, Array]],
    rows: Sequence[sparse.csr_array],
    feasible: Sequence[Callable[[Array], Array]],
) -> list[float]:
    """The best ratio found for each pair of laws, by an h that was made feasible.

    Pairs have nothing in common but the call of the solver. Values of h may lie e^20 apart, beyond
    its tolerance: solved again in the scale of the first solution until the ratio that is attained
    is the one promised.
    """
    best = [0.0] * len(laws)
    scales = [np.ones(p.size) for p, _ in laws]
    left, scaled = [n for n, (p, q) in enumerate(laws) if not np.array_equal(p, q)], list(rows)
    for _ in range(4):
        if not left:
            break
        tops, bottoms = ([laws[n][side].ravel() * scales[n] for n in left] for side in (0, 1))
        found = _each_program(tops, bottoms, [scaled[n] for n in left])
        again = []
        for n, x, top in zip(left, found, tops, strict=True):
            if x is None:  # what was attained before stands
                continue
            p, q = laws[n]
            h = feasible[n]((np.maximum(x, 1e-9 * x.max()) * scales[n]).reshape(p.shape))
            best[n] = max(best[n], math.log((p * h).sum() / (q * h).sum()))
            if abs(best[n] - math.log(top @ x)) >= 1e-9:
                scales[n] = h.ravel() / (q * h).sum()
                scaled[n] = _scaled(rows[n], scales[n])
                again.append(n)
        left = again
    return best


def _each_program(
    tops: Sequence[Array], bottoms: Sequence[Array], rows: Sequence[sparse.csr_array]
) -> Sequence[Array | None]:
    """All at once, or one by one where the solver gives up; None for those it cannot solve."""
    together = _program(tops, bottoms, rows)
    if together is not None:
        return together
    alone = [_program([p], [q], [one]) for p, q, one in zip(tops, bottoms, rows, strict=True)]
    return [None if found is None else found[0] for found in alone]


def _program(
    tops: Sequence[Array], bottoms: Sequence[Array], rows: Sequence[sparse.csr_array]
) -> list[Array] | None:
    """Maximise every p·h with q·h = 1; with the solver's own tolerances if it fails with ours."""
    above = sparse.block_diag(rows, format="csr")
    ones = sparse.block_diag([q.reshape(1, -1) for q in bottoms], format="csr")
    for method, options in (("highs", TOLERANCES), ("highs-ds", {}), ("highs-ipm", {})):
        found: OptimizeResult = linprog(
            -np.concatenate(tops),
            A_ub=above,
            b_ub=np.zeros(above.shape[0]),
            A_eq=ones,
            b_eq=np.ones(len(bottoms)),
            method=method,
            options=options,
        )
        if found.status == 0:
            return np.split(found.x, np.cumsum([len(p) for p in tops])[:-1])
    return None


def _scaled(rows: sparse.csr_array, scale: Array) -> sparse.csr_array:
    """The rows for h/scale, each divided by its largest entry."""
    wide = rows * scale
    return sparse.diags_array(1 / abs(wide).max(axis=1).toarray().ravel()) @ wide


@dataclass(frozen=True)
class Charges:
    """What releases cost when a set of nodes changes, nodes from 0.

    points[t] is paid when t changes, pairs[t] when t or t+1 does (transition counts), and each
    window (first, last, once) when anything inside it does (a value rounded to a grid).
    """

    points: tuple[float, ...]
    pairs: tuple[float, ...] = ()
    windows: tuple[tuple[int, int, float], ...] = ()

    def cost(self, changed: Sequence[int]) -> float:
        own = sum(self.points[t] for t in changed)
        pairs = sum(c for t, c in enumerate(self.pairs) if t in changed or t + 1 in changed)
        once = sum(c for first, last, c in self.windows if any(first <= t <= last for t in changed))
        return own + pairs + once


def charged_supremum(law: Array, charges: Charges, block: Sequence[int]) -> float:
    """The supremum when changes may cost less together than one by one.

    Here single changes do not imply the rest, so every pair of data sets is constrained whose
    change is no union of cheaper ones. Only the two slices X_A = a and X_A = b are variables: a
    function on them extends to all data sets.
    """
    costs = _irreducible(charges, law.ndim, sum(1 << t for t in block))
    laws = conditional_laws(law, block)
    pairs, limits, feasible = [], [], []
    for a, b in itertools.combinations(laws, 2):
        points = [_with_block(y, block, x) for x in (a, b) for y in np.ndindex(laws[a].shape)]
        grid = np.array(points)
        mask = ((grid[:, None] != grid[None]) * (1 << np.arange(law.ndim))).sum(axis=2)
        price = costs[mask]
        upper, lower = np.nonzero(np.isfinite(price) & (mask > 0))
        rows = _rows(upper, lower, np.exp(-price[upper, lower]), len(grid))
        growth = np.exp(_all_costs(charges, law.ndim)[mask])
        none = np.zeros(laws[a].size)
        p, q = np.append(laws[a], none), np.append(none, laws[b])
        pairs += [(p, q), (q, p)]
        limits += [rows] * 2
        feasible += [lambda h, g=growth: (g * h).min(axis=1)] * 2
    return max(_solve(pairs, limits, feasible), default=0.0)


def _with_block(rest: tuple[int, ...], block: Sequence[int], values: tuple[int, ...]) -> list[int]:
    where, others = dict(zip(block, values, strict=True)), iter(rest)
    return [where[t] if t in where else next(others) for t in range(len(rest) + len(values))]


def _all_costs(charges: Charges, length: int) -> Array:
    """The cost of every set of changed nodes, as a bit mask."""
    sets = [[t for t in range(length) if code >> t & 1] for code in range(1 << length)]
    return np.array([charges.cost(changed) for changed in sets])


def _irreducible(charges: Charges, length: int, block: int) -> Array:
    """The same, infinite for sets that cost what two parts of them cost one after the other.

    The block changes in one part, since data sets in between must lie on one of its two slices.
    """
    costs = _all_costs(charges, length)
    kept = costs.copy()
    for code in range(1, 1 << length):
        part = (code - 1) & code
        while part:
            whole = part & block in (0, code & block)
            if whole and costs[part] + costs[code ^ part] <= costs[code] + 1e-15:
                kept[code] = math.inf
            part = (part - 1) & code
    return kept


def known_rows(law: Array, node: int) -> Iterator[Array]:
    """The law given every pattern of other rows that an adversary may know on a chain.

    Rows beyond the nearest known one say nothing more, so one row on either side is enough.
    """
    sides = (range(node), range(node + 1, law.ndim))
    choices = [
        [{}, *({t: x} for t in side for x in range(law.shape[t]) if law.take(x, t).sum() > 0)]
        for side in sides
    ]
    for left, right in itertools.product(*choices):
        if law[tuple({**left, **right}.get(t, slice(None)) for t in range(law.ndim))].sum() > 0:
            yield given(law, {**left, **right})
