"""The f-sweep against mechanisms written out in full, on small chains of every kind.

A mechanism is a table P(answer | x_1, …, x_T), or noise on a weighted sum, whose hockey-stick
divergences are exact: the worlds X_i = x and X_i = x' are mixtures, and an event on which one
exceeds the other is found by its sign. Claims are those of the slow f-sweep in
`evidence/tradeoff_reference.py`, from what each time point moves alone.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from evidence import sweep_program
from evidence import tradeoff_reference as slow
from evidence.random_chains import random_matrix
from evidence.tradeoff_reference import Array, Curves, Grid

NAME = "the f-sweep"
CLAIM = (
    "no joint mechanism, sum with Gaussian or Laplace noise or adaptive choice tells more about a "
    "time point or an episode than the f-sweep says from what each time point moves alone, at any "
    "trade-off, for chains, hidden chains, any start, boxes, known rows and several steps at once"
)
CASES = 400
SLACK = 1e-11
GRID = Grid(0.12, 30)
SHAPES = ("positive", "sparse", "deterministic", "periodic", "absorbing", "reducible", "transient")

Told = dict[tuple[int, ...], Array]
"""For every state of the node (or of a block) what is seen, as a law or as a list of weights."""


@dataclass(frozen=True)
class Mechanism:
    """What is seen: `told(law)` is the law of the answer under weights on the data.

    Attributes:
        levels: for every node and pair of its states, a bound on what changing it alone tells.
        tradeoff: H_γ of two mixtures of data, at the grid.
    """

    levels: list[Curves]
    tradeoff: Callable[[Array, Array], Array]


def table(answers: Array) -> Mechanism:
    """Any mechanism with finitely many answers: P(answer | x) with the answer as last axis."""

    def tradeoff(p: Array, q: Array) -> Array:
        seen = [
            (law[..., None] * answers).reshape(-1, answers.shape[-1]).sum(axis=0) for law in (p, q)
        ]
        return GRID.hockey_stick(*seen)

    levels = []
    for t, size in enumerate(answers.shape[:-1]):
        curves = np.broadcast_to(GRID.nothing, (size, size, len(GRID.gamma))).copy()
        for z, w in itertools.permutations(range(size), 2):
            one, other = (answers.take(s, t).reshape(-1, answers.shape[-1]) for s in (z, w))
            moved = one[None] - GRID.gamma[:, None, None] * other[None]
            curves[z, w] = np.maximum(moved, 0).sum(axis=2).max(axis=1)
        levels.append(curves)
    return Mechanism(levels, tradeoff)


def random_table(rng: Generator, shape: tuple[int, ...]) -> Mechanism:
    """A table whose answers lean on some of the points, or on all of them."""
    answers = int(rng.integers(2, 5))
    asked = tuple(size if rng.random() < 0.8 else 1 for size in shape)
    weight = np.exp(rng.choice([0.1, 0.4, 1.0, 2.0]) * rng.standard_normal((*asked, answers)))
    if rng.random() < 0.3:
        weight *= rng.random(weight.shape) < 0.8
        weight += 1e-3 * (weight.sum(axis=-1, keepdims=True) == 0)
    weight = np.broadcast_to(weight, (*shape, answers))
    return table(weight / weight.sum(axis=-1, keepdims=True))


def adaptive_table(rng: Generator, shape: tuple[int, ...]) -> Mechanism:
    """Two releases: the first answer decides which points the second is about, and how exact."""
    parts = []
    for _ in range(2):
        asked = tuple(size if rng.random() < 0.6 else 1 for size in shape)
        first = np.exp(rng.choice([0.2, 0.6, 1.2]) * rng.standard_normal((*asked, 2)))
        parts.append(np.broadcast_to(first / first.sum(axis=-1, keepdims=True), (*shape, 2)))
    opening = np.exp(0.5 * rng.standard_normal((*shape[:1], *(1,) * (len(shape) - 1), 2)))
    opening = np.broadcast_to(opening / opening.sum(axis=-1, keepdims=True), (*shape, 2))
    both = [opening[..., [n]] * parts[n] for n in range(2)]
    return table(np.concatenate(both, axis=-1))


def noisy_sum(rng: Generator, shape: tuple[int, ...]) -> Mechanism:
    """Σ a_t f(x_t) with Gaussian or Laplace noise of scale 1."""
    weights = rng.choice([0, 1, 1, 2], len(shape)) * rng.choice([0.15, 0.4, 1.0])
    values = [rng.choice([0, 1, 2], size) for size in shape]
    total = sum(
        (a * f).reshape((1,) * t + (-1,) + (1,) * (len(shape) - t - 1))
        for t, (a, f) in enumerate(zip(weights, values, strict=True))
    )
    centres = np.broadcast_to(total, shape).astype(float)
    gaussian = rng.random() < 0.6
    alone = GRID.gaussian if gaussian else laplace
    levels = [
        np.array([[alone(a * abs(float(u) - float(v))) for v in f] for u in f])
        for a, f in zip(weights, values, strict=True)
    ]
    return Mechanism(levels, lambda p, q: crossings(centres, p, q, gaussian))


def laplace(level: float) -> Array:
    """H_γ of Laplace noise against the same moved by `level` scales."""
    gamma = GRID.gamma
    above = np.maximum(1 - np.exp((np.log(np.maximum(gamma, 1)) - level) / 2), 0)
    below = (
        1 - gamma + gamma * np.maximum(1 - np.exp((-np.log(np.minimum(gamma, 1)) - level) / 2), 0)
    )
    return np.where(gamma >= 1, above, below) if level > 0 else GRID.nothing


def crossings(centres: Array, p: Array, q: Array, gaussian: bool) -> Array:
    """H_γ of two mixtures of noise at the centres: the exact mass of an event, chosen by signs."""
    where, place = np.unique(np.round(centres, 12), return_inverse=True)
    masses = [np.bincount(place.ravel(), law.ravel(), len(where)) for law in (p, q)]
    edges = np.linspace(where[0] - 9, where[-1] + 9, 1201)
    cdf = ndtr if gaussian else _laplace_cdf
    cells = np.diff(cdf(edges[None] - where[:, None]), axis=1)
    seen = [np.concatenate([mass @ cells, [0.0]]) for mass in masses]
    for law, mass in zip(seen, masses, strict=True):
        law[-1] = mass @ (1 - cells.sum(axis=1))
    return GRID.hockey_stick(*seen)


def _laplace_cdf(y: Array) -> Array:
    return np.where(y < 0, np.exp(np.minimum(y, 0)) / 2, 1 - np.exp(-np.maximum(y, 0)) / 2)


def counting(rng: Generator, shape: tuple[int, ...]) -> Mechanism:
    """Yes or no, by how many points are in some set: what tells most for levels like these."""
    inside = [rng.choice([-1, 0, 1], size) for size in shape]
    number = sum(
        side.reshape((1,) * t + (-1,) + (1,) * (len(shape) - t - 1))
        for t, side in enumerate(inside)
    )
    odds = np.exp(rng.choice([0.1, 0.5, 1.0]) * (number + rng.choice([0, 0, 1, -2])))
    yes = np.broadcast_to(odds / (1 + odds), shape)
    return table(np.stack([yes, 1 - yes], axis=-1))


MECHANISMS = {
    "table": random_table,
    "adaptive": adaptive_table,
    "sum": noisy_sum,
    "counting": counting,
}


@dataclass(frozen=True)
class Chain:
    """A start and one matrix per step."""

    laws: list[Array]
    kernels: list[Array]

    @classmethod
    def random(cls, rng: Generator, alike: bool | None = None) -> Chain:
        size = int(rng.choice([2, 2, 3]))
        length = int(rng.integers(2, {2: 6, 3: 4}[size]))
        same = rng.random() < 0.5 if alike is None else alike
        kernels = [matrix(rng, size) for _ in range(length - 1)]
        kernels = kernels[:1] * len(kernels) if same else kernels
        begin = rng.dirichlet(np.full(size, 0.7))
        if rng.random() < 0.3:
            begin = begin * (np.arange(size) > 0)
            begin = begin / begin.sum()
        laws = [begin]
        for kernel in kernels:
            laws.append(laws[-1] @ kernel)
        return cls(laws, kernels)

    @property
    def law(self) -> Array:
        return sweep_program.chain_law(self.laws[0], self.kernels)


def matrix(rng: Generator, size: int) -> Array:
    return random_matrix(rng, size, str(rng.choice(SHAPES)))


def given(law: Array, nodes: Sequence[int]) -> dict[tuple[int, ...], Array]:
    """The laws of all data given what these nodes are, as arrays over all data."""
    found = {}
    for states in itertools.product(*(range(law.shape[t]) for t in nodes)):
        part = law.copy()
        for t, state in zip(nodes, states, strict=True):
            others = [s for s in range(law.shape[t]) if s != state]
            part[(slice(None),) * t + (others,)] = 0
        if part.sum() > 0:
            found[states] = part / part.sum()
    return found


@dataclass
class Tally:
    """How many values were compared, and how close the claims are."""

    compared: int = 0
    pairs: int = 0
    excess: float = -math.inf
    ratios: dict[str, list[float]] = field(default_factory=dict)

    def compare(self, kind: str, claim: Array, true: Array) -> None:
        """Claim and truth at the γ ≥ 1 of the grid."""
        first = GRID.most
        over = float((true[first:] - claim[first:]).max())
        assert over <= SLACK, (kind, over)
        self.excess = max(self.excess, over)
        self.compared += len(true) - first
        self.pairs += 1
        if true[first] > 1e-4:
            self.ratios.setdefault(kind, []).append(float(claim[first] / true[first]))


def nodes(rng: Generator, tally: Tally) -> None:
    """Every node of a chain, every pair of its states."""
    chain = Chain.random(rng)
    kind = str(rng.choice(list(MECHANISMS)))
    law = chain.law
    made = MECHANISMS[kind](rng, law.shape)
    right = slow.right_of(GRID, chain.kernels, made.levels)
    left = slow.left_of(GRID, chain.laws, chain.kernels, made.levels)
    for t in range(law.ndim):
        claim = slow.leak(GRID, made.levels[t], left[t], right[t])
        worlds = given(law, [t])
        for (x,), (y,) in itertools.permutations(worlds, 2):
            tally.compare(kind, claim[x, y], made.tradeoff(worlds[x,], worlds[y,]))


def hidden(rng: Generator, tally: Tally) -> None:
    """The data show a function of the state, and it is the secret."""
    chain = Chain.random(rng)
    size = len(chain.laws[0])
    shows = np.array([0, 1, *rng.integers(0, 2, size - 2)])
    law = chain.law
    looks = MECHANISMS["table"](rng, (2,) * law.ndim)
    seen = np.zeros((2,) * law.ndim)
    levels = [level[np.ix_(shows, shows)] for level in looks.levels]
    right = slow.right_of(GRID, chain.kernels, levels)
    left = slow.left_of(GRID, chain.laws, chain.kernels, levels)

    def shown(weights: Array) -> Array:
        total = np.zeros_like(seen)
        np.add.at(total, tuple(shows[i] for i in np.indices(weights.shape)), weights)
        return total

    for t in range(law.ndim):
        claim = slow.leak(GRID, levels[t], left[t], right[t])
        worlds = given(law, [t])
        for (x,), (y,) in itertools.permutations(worlds, 2):
            if shows[x] != shows[y]:
                told = looks.tradeoff(shown(worlds[x,]), shown(worlds[y,]))
                tally.compare("hidden", claim[x, y], told)


def most(curves: Curves, states: Sequence[int] | None = None) -> Array:
    """The largest curve over pairs of different states, and of equal ones."""
    some = range(len(curves)) if states is None else states
    return np.max([curves[x, y] for x, y in itertools.product(some, some)], axis=0)


def episodes(rng: Generator, tally: Tally) -> None:
    """Two assignments of some nodes in a row, whatever they are."""
    chain = Chain.random(rng)
    law = chain.law
    made = MECHANISMS[str(rng.choice(list(MECHANISMS)))](rng, law.shape)
    first = int(rng.integers(0, law.ndim - 1))
    last = int(rng.integers(first + 1, law.ndim))
    right = slow.right_of(GRID, chain.kernels, made.levels)[last]
    left = slow.left_of(GRID, chain.laws, chain.kernels, made.levels)[first]
    ends = [np.flatnonzero(chain.laws[t] > 0).tolist() for t in (first, last)]
    claim = most(right, ends[1])
    for t in range(first, last + 1):
        claim = GRID.compose(most(made.levels[t]), claim)
    claim = GRID.compose(claim, most(left, ends[0]))
    worlds = given(law, range(first, last + 1))
    for a, b in itertools.permutations(worlds, 2):
        tally.compare("episode", claim, made.tradeoff(worlds[a], worlds[b]))


def sets(rng: Generator, tally: Tally) -> None:
    """Any start, matrices that change within a set, and adversaries who know rows."""
    chain = Chain.random(rng)
    diameters = [diameter(kernel) for kernel in chain.kernels]
    if not np.isfinite(diameters).any():
        chain = Chain.random(rng)
        diameters = [diameter(kernel) for kernel in chain.kernels]
    spread = slow.spread_of(GRID, max(diameters))
    law = chain.law
    made = MECHANISMS[str(rng.choice(list(MECHANISMS)))](rng, law.shape)
    levels = [most(level) for level in made.levels]

    def swept(ones: Sequence[Array]) -> Iterator[Array]:
        here = GRID.nothing
        yield here
        for level in ones[:-1]:
            here = slow.scalar_step(GRID, spread, GRID.both_orders(level, here))
            yield here

    left, right = list(swept(levels)), list(swept(levels[::-1]))[::-1]
    for t in range(law.ndim):
        claim = GRID.compose(GRID.compose(levels[t], right[t]), left[t])
        for known in itertools.islice(_known(law, t, rng), 3):
            worlds = given(known, [t])
            for a, b in itertools.permutations(worlds, 2):
                tally.compare("sets", claim, made.tradeoff(worlds[a], worlds[b]))


def _known(law: Array, node: int, rng: Generator) -> Iterator[Array]:
    yield law
    for _ in range(2):
        other = int(rng.integers(0, law.ndim))
        if other != node:
            yield from given(law, [other]).values()


def diameter(kernel: Array) -> float:
    """The largest log cross-ratio of a matrix, over columns that are not empty."""
    some = kernel[:, kernel.any(axis=0)]
    if not some.all():
        return math.inf
    logs = np.log(some)
    return float(
        (
            logs[:, None, :, None]
            + logs[None, :, None]
            - logs[:, None, None]
            - logs[None, :, :, None]
        ).max()
    )


def spans(rng: Generator, tally: Tally) -> None:
    """The first node of a chain, with the next ones passed over in one step."""
    chain = Chain.random(rng)
    law = chain.law
    made = MECHANISMS[str(rng.choice(list(MECHANISMS)))](rng, law.shape)
    wide = int(rng.integers(1, law.ndim))
    levels = [most(level) for level in made.levels]
    right = most(slow.right_of(GRID, chain.kernels, made.levels)[wide])
    between = GRID.nothing
    for level in levels[1:wide]:
        between = GRID.compose(between, level)
    J = GRID.compose(GRID.compose(between, levels[wide]), right)
    product = np.linalg.multi_dot([*chain.kernels[:wide], np.eye(len(law))])
    rows = np.flatnonzero(chain.laws[0] > 0)
    pairs = itertools.permutations(rows, 2)
    spread = [GRID.hockey_stick(product[x], product[y]) for x, y in pairs]
    if spread:
        past = slow.span(GRID, np.max(spread, axis=0), between, J)
        claim = GRID.compose(levels[0], past)
        worlds = given(law, [0])
        for a, b in itertools.permutations(worlds, 2):
            tally.compare("span", claim, made.tradeoff(worlds[a], worlds[b]))


def program(rng: Generator, tally: Tally) -> None:
    """The bounds of (*) against (*) itself, by a linear program."""
    size = int(rng.integers(2, 5))
    kernel = rng.dirichlet(np.full(size, 0.7), size)
    J = np.empty((size, size, len(GRID.gamma)))
    for z, w in np.ndindex(size, size):
        J[z, w] = GRID.gaussian(float(rng.choice([0.2, 0.5, 1.0])) if z != w else 0.0)
    J = slow.closed(GRID, J)
    bound = slow.step_of(GRID, kernel, J)
    for x, y in itertools.permutations(range(size), 2):
        for n in rng.choice(np.arange(GRID.most, len(GRID.gamma)), 3, replace=False).tolist():
            exact = slow.program(GRID, kernel[x], kernel[y], J, GRID.gamma[n])
            assert exact <= bound[x, y, n] + 1e-6, ("program", exact, bound[x, y, n])
            tally.compared += 1
            if exact > 1e-4:
                tally.ratios.setdefault("(*)", []).append(bound[x, y, n] / exact)


KINDS = (nodes, nodes, nodes, hidden, episodes, sets, spans, program)


def check(
    cases: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, object]:
    """`cases` of every kind; raises AssertionError at the first counterexample."""
    tally = Tally()
    with contextlib.suppress(KeyboardInterrupt):
        for seed in range(cases):
            for number, kind in enumerate(KINDS):
                kind(np.random.default_rng([number, seed]), tally)
            progress(seed + 1, cases)
    return {
        "cases": cases * len(KINDS),
        "pairs of worlds": tally.pairs,
        "values compared": tally.compared,
        "largest excess": f"{tally.excess:.1e}",
        **{
            f"claim / truth in total variation, {kind}": (
                f"median {np.median(some):.3f}, 90 % within {np.quantile(some, 0.9):.2f}"
            )
            for kind, some in tally.ratios.items()
        },
        "violations": 0,
    }


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    return check(CASES, progress)
