"""Random small cases for the sweep, of every kind of belief and spending, with the truth.

A case is plain arrays, so that nothing of the package enters what it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from evidence import sweep_program as program
from evidence.random_chains import random_matrix
from evidence.sweep_program import Charges

Array = np.ndarray
LONG = 64  # longer series are chains of two states, whose suprema have a closed form
WHOLE = 40  # beyond this many data sets, the two sides of a chain's node are programs apart

SHAPES = ("positive", "sparse", "deterministic", "periodic", "absorbing", "reducible", "transient")
MOST_NODES = {2: 7, 3: 5, 4: 4}
MOST = 10.0  # spent in all: a program whose values lie e^20 apart is beyond a solver
AMOUNTS = (0.05, 0.2, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Chain:
    """A start (None: any) and one matrix per step; `values` is what the data show of a state.

    Matrices repeat after `period` steps, if there is one.
    """

    start: Array | None
    matrices: tuple[Array, ...]
    values: tuple[int, ...]
    period: int | None = None

    @classmethod
    def of(
        cls,
        start,
        matrices: Sequence[Array],
        values: Sequence[int] | None = None,
        period: int | None = None,
    ) -> Chain:
        size = len(matrices[0]) if matrices else len(start)
        begin = None if start is None else np.asarray(start, dtype=float)
        return cls(begin, tuple(map(np.asarray, matrices)), tuple(values or range(size)), period)

    @property
    def length(self) -> int:
        return len(self.matrices) + 1

    @property
    def differ(self) -> Array:
        return np.not_equal.outer(self.values, self.values)

    @property
    def homogeneous(self) -> bool:
        return len({m.tobytes() for m in self.matrices}) == 1

    @property
    def laws(self) -> Array:
        """P(X_t) for every t."""
        found = [np.asarray(self.start)]
        for matrix in self.matrices:
            found.append(found[-1] @ matrix)
        return np.array(found)


@dataclass(frozen=True)
class Box:
    lower: Array
    upper: Array


@dataclass(frozen=True)
class Case:
    kind: str
    beliefs: tuple[Chain | Box, ...]
    length: int
    charges: Charges
    episode: int = 1
    laws: tuple[Array, ...] = ()  # for beliefs that are sets of laws: some of their members
    everyone: bool = False  # also adversaries who know other rows

    @property
    def seen_whole(self) -> bool:
        """Whether what the data show is a chain itself, so that a block has two sides."""
        chains = [b for b in self.beliefs if isinstance(b, Chain)]
        return len(chains) == len(self.beliefs) and all(
            len(set(chain.values)) == len(chain.values) for chain in chains
        )

    @property
    def blocks(self) -> list[range]:
        return [range(i, i + self.episode) for i in range(self.length - self.episode + 1)]


def truth(case: Case) -> Array:
    """What some mechanism of these charges betrays of each block, under the worst law tried."""
    if case.length > LONG:
        [chain] = case.beliefs
        return program.two_state_suprema(chain.start, chain.matrices, case.charges.points)
    laws = case.laws or tuple(law_of(belief) for belief in case.beliefs)
    seen = [
        (block, one)
        for block in case.blocks
        for law in laws
        for one in (program.known_rows(law, block[0]) if case.everyone else [law])
    ]
    told = np.zeros(len(case.blocks))
    for (block, _), found in zip(seen, _suprema(case, seen), strict=True):
        told[block[0]] = max(told[block[0]], found)
    return told


def _suprema(case: Case, seen: Sequence[tuple[range, Array]]) -> list[float]:
    if case.charges.pairs or case.charges.windows:
        return [program.charged_supremum(law, case.charges, block) for block, law in seen]
    apart = case.everyone or case.episode > 1 or seen[0][1].size > WHOLE
    work = program.chain_suprema if case.seen_whole and apart else program.suprema
    works = [work(law, case.charges.points, block) for block, law in seen]
    return [max(found.values(), default=0.0) for found in program.together(works)]


def law_of(belief: Chain) -> Array:
    law = program.chain_law(belief.start, belief.matrices)
    return program.seen_through(law, [belief.values] * belief.length)


def random_levels(rng: Generator, length: int) -> tuple[float, ...]:
    """Windows of different levels, often with gaps, or the same everywhere."""
    levels = np.zeros(length)
    if rng.random() < 0.3:
        levels += rng.choice(AMOUNTS)
    else:
        for _ in range(rng.integers(1, 4)):
            first, last = sorted(rng.integers(0, length, 2))
            levels[first : last + 1] += rng.choice(AMOUNTS)
    return tuple((levels * min(1.0, MOST / levels.sum())).tolist())


def matrix(rng: Generator, size: int, shape: str | None = None) -> Array:
    shape = shape or str(rng.choice(SHAPES))
    if shape == "reducible":
        rows = random_matrix(rng, size, "positive")
        cut = int(rng.integers(1, size))
        rows[:cut, cut:] = 0
        rows[cut:, :cut] *= rng.random() < 0.5
        return rows / rows.sum(axis=1, keepdims=True)
    rows = random_matrix(rng, size, shape)
    if shape == "positive" and rng.random() < 0.5:  # sticky, as real series are
        rows = rows * 0.2 + 0.8 * np.eye(size)
    return rows


def start(rng: Generator, size: int) -> Array:
    pick = rng.random()
    if pick < 0.2:
        return np.eye(size)[rng.integers(size)]
    if pick < 0.4:
        return rng.multinomial(4, np.full(size, 1 / size)) / 4
    return rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])))


def stationary(rows: Array) -> Array:
    """A stationary law; for several, the one reached from the uniform start."""
    lazy = np.linalg.matrix_power((rows + np.eye(len(rows))) / 2, 1 << 20)
    law = np.full(len(rows), 1 / len(rows)) @ lazy
    law[law < 1e-12] = 0
    return law / law.sum()


def size_and_length(rng: Generator, shorter: int = 0) -> tuple[int, int]:
    size = int(rng.choice([2, 3, 4], p=[0.5, 0.4, 0.1]))
    return size, int(rng.integers(2, MOST_NODES[size] + 1 - shorter))


def _plain(kind: str, beliefs, length: int, points, **more) -> Case:
    return Case(kind, tuple(beliefs), length, Charges(points), **more)


def any_shape(rng: Generator) -> Case:
    size, length = size_and_length(rng)
    shape = str(rng.choice(SHAPES))
    chain = Chain.of(start(rng, size), [matrix(rng, size, shape)] * (length - 1))
    return _plain(shape, [chain], length, random_levels(rng, length))


def stationary_start(rng: Generator) -> Case:
    size, length = size_and_length(rng)
    rows = matrix(rng, size)
    chain = Chain.of(stationary(rows), [rows] * (length - 1))
    return _plain("stationary", [chain], length, random_levels(rng, length))


def changing(rng: Generator) -> Case:
    size, length = size_and_length(rng)
    chain = Chain.of(start(rng, size), [matrix(rng, size) for _ in range(length - 1)])
    return _plain("matrices that change", [chain], length, random_levels(rng, length))


def days(rng: Generator) -> Case:
    """Matrices that repeat, from a start that a turn leaves as it is or from another."""
    size, length = size_and_length(rng)
    turn = [matrix(rng, size) for _ in range(rng.integers(2, 4))]
    begin = start(rng, size)
    if rng.random() < 0.6:
        begin = stationary(np.linalg.multi_dot(turn))
    chain = Chain.of(begin, [turn[t % len(turn)] for t in range(length - 1)], period=len(turn))
    wide = 1 if rng.random() < 0.7 else 2
    return _plain("days", [chain], length, random_levels(rng, length), episode=min(wide, length))


def days_from_any_start(rng: Generator) -> Case:
    size, length = size_and_length(rng, 1)
    turn = [matrix(rng, size) for _ in range(rng.integers(2, 4))]
    rows = [turn[t % len(turn)] for t in range(length - 1)]
    laws = [program.chain_law(extreme_start(rng, size), rows) for _ in range(2)]
    chain = Chain.of(None, rows, period=len(turn))
    levels = random_levels(rng, length)
    return _plain("days, any start", [chain], length, levels, laws=tuple(laws))


def long_days(rng: Generator) -> Case:
    """Two states, some hundred days: where certificates by phase are used."""
    turn = [matrix(rng, 2) for _ in range(rng.integers(2, 6))]
    while not (np.linalg.multi_dot(turn) > 0).all():
        turn = [matrix(rng, 2) for _ in turn]
    begin = stationary(np.linalg.multi_dot(turn)) if rng.random() < 0.6 else start(rng, 2)
    length = int(rng.integers(520, 1200))
    levels = np.full(length, rng.choice([0, 0, 0.01, 0.2, 1.0]))
    for _ in range(rng.integers(1, 4)):
        first, last = sorted(rng.integers(0, length, 2))
        levels[first : last + 1] += rng.choice(AMOUNTS[:5])
    rows = [turn[t % len(turn)] for t in range(length - 1)]
    chain = Chain.of(begin, rows, period=len(turn))
    return _plain("long series of days", [chain], length, tuple(levels.tolist()))


def sets(rng: Generator) -> Case:
    size, length = size_and_length(rng)
    chains = [Chain.of(start(rng, size), [matrix(rng, size)] * (length - 1)) for _ in range(2)]
    return _plain("sets", chains, length, random_levels(rng, length))


def extreme_start(rng: Generator, size: int) -> Array:
    law = 10.0 ** -rng.uniform(0, rng.choice([1, 4]), size)
    return law / law.sum()


def any_start(rng: Generator) -> Case:
    size, length = size_and_length(rng, 1)
    rows = [matrix(rng, size)] * (length - 1)
    laws = [program.chain_law(extreme_start(rng, size), rows)]
    laws.append(program.chain_law(start(rng, size), rows))
    levels = random_levels(rng, length)
    return _plain("any start", [Chain.of(None, rows)], length, levels, laws=tuple(laws))


def corner(rng: Generator, box: Box) -> Array:
    """A matrix of the box: every row raised from its lower bounds in a random order."""
    rows = box.lower.copy()
    for row, high in zip(rows, box.upper, strict=True):
        for z in rng.permutation(len(row)):
            row[z] += min(high[z] - row[z], max(0.0, 1 - row.sum()))
    return rows


def box_of(lower: Array, upper: Array) -> Box:
    """Bounds that rows of sum 1 can reach."""
    high = np.minimum(upper, 1 - (lower.sum(axis=1, keepdims=True) - lower))
    return Box(np.maximum(lower, 1 - (high.sum(axis=1, keepdims=True) - high)), high)


def boxes(rng: Generator) -> Case:
    size, length = size_and_length(rng, 1)
    rows, width = matrix(rng, size), rng.choice([0.01, 0.1, 0.3])
    box = box_of(np.maximum(rows - width, 0), np.minimum(rows + width, 1))
    laws = [
        program.chain_law(extreme_start(rng, size), [corner(rng, box) for _ in range(length - 1)])
        for _ in range(2)
    ]
    return _plain("boxes", [box], length, random_levels(rng, length), laws=tuple(laws))


def functions(rng: Generator) -> Case:
    """Data that show only a function of the state."""
    size = int(rng.integers(3, 5))
    length = int(rng.integers(2, 6 if size == 3 else 5))
    values = (0, 1, *rng.integers(0, 2, size - 2).tolist())
    chain = Chain.of(start(rng, size), [matrix(rng, size)] * (length - 1), values)
    wide = 1 if rng.random() < 0.7 else 2
    if rng.random() < 0.7:
        levels = random_levels(rng, length)
        return _plain("functions of a state", [chain], length, levels, episode=wide)
    return Case("functions of a state", (chain,), length, random_charges(rng, length), wide)


def longer_memory(rng: Generator) -> Case:
    """Chains of order two, and states with their age, from a stationary or another start."""
    size, length = int(rng.integers(2, 4)), int(rng.integers(3, 6))
    chances = rng.dirichlet(np.full(size, 0.7), size * size)
    rows = np.zeros((size * size, size * size))
    if rng.random() < 0.5:
        for last in range(size * size):
            rows[last, last % size * size : (last % size + 1) * size] = chances[last]
        values = [last % size for last in range(size * size)]
    else:
        for state, age in np.ndindex(size, size):
            for after in range(size):
                older = state * size + min(age + 1, size - 1) if after == state else after * size
                rows[state * size + age, older] = chances[state * size + age, after]
        values = [last // size for last in range(size * size)]
    begin = stationary(rows) if rng.random() < 0.6 else start(rng, size * size)
    chain = Chain.of(begin, [rows] * (length - 1 - (size == 3)), values)
    wide = 1 if rng.random() < 0.8 else 2
    kind, points = "longer memory", random_levels(rng, chain.length)
    if rng.random() < 0.7 or chain.length > 4:
        return _plain(kind, [chain], chain.length, points, episode=wide)
    return Case(kind, (chain,), chain.length, random_charges(rng, chain.length), wide)


def hidden_from_any_start(rng: Generator) -> Case:
    """Data that show a function of a state, whatever the first one was."""
    length = int(rng.integers(2, 5))
    values = (0, 1, int(rng.integers(0, 2)))
    rows = [matrix(rng, 3)] * (length - 1)
    laws = [
        program.seen_through(program.chain_law(extreme_start(rng, 3), rows), [values] * length)
        for _ in range(2)
    ]
    levels, chain = random_levels(rng, length), Chain.of(None, rows, values)
    return _plain("hidden, any start", [chain], length, levels, laws=tuple(laws))


def episodes(rng: Generator) -> Case:
    size = int(rng.integers(2, 4))
    length = int(rng.integers(3, 7 if size == 2 else 6))
    rows = [matrix(rng, size)] * (length - 1)
    wide = int(rng.integers(2, min(length, 4)))
    chain = Chain.of(start(rng, size), rows)
    return _plain("episodes", [chain], length, random_levels(rng, length), episode=wide)


def random_charges(rng: Generator, length: int) -> Charges:
    points = tuple((rng.choice([0, 0, 0.2, 1], length)).tolist())
    pairs = tuple(rng.choice([0, 0.01, 0.3, 1, 3], length - 1).tolist())
    windows = tuple(
        (*sorted(rng.integers(0, length, 2).tolist()), float(rng.choice([0.1, 0.5, 2])))
        for _ in range(rng.integers(0, 3))
    )
    return Charges(points, pairs, windows)


def together(rng: Generator) -> Case:
    """Charges per pair and once per window, which cost less together."""
    size = int(rng.integers(2, 4))
    length = int(rng.integers(2, 6 if size == 2 else 4))
    rows = [matrix(rng, size) for _ in range(length - 1)]
    rows = rows if rng.random() < 0.5 else [rows[0]] * (length - 1)
    charges = random_charges(rng, length)
    chain = Chain.of(start(rng, size), rows)
    wide = 1 if rng.random() < 0.8 else min(2, length)
    return Case("charged together", (chain,), length, charges, wide)


def together_from_any_start(rng: Generator) -> Case:
    size = int(rng.integers(2, 4))
    length = int(rng.integers(2, 5 if size == 2 else 4))
    rows = [matrix(rng, size)] * (length - 1)
    charges = random_charges(rng, length)
    laws = tuple(program.chain_law(extreme_start(rng, size), rows) for _ in range(2))
    kind, chain = "charged together, any start", Chain.of(None, rows)
    return Case(kind, (chain,), length, charges, laws=laws)


def rows_known(rng: Generator) -> Case:
    size = int(rng.integers(2, 4))
    length = int(rng.integers(2, 6 if size == 2 else 5))
    chain = Chain.of(start(rng, size), [matrix(rng, size)] * (length - 1))
    if rng.random() < 0.7:
        levels = random_levels(rng, length)
        return _plain("rows known", [chain], length, levels, everyone=True)
    charges = random_charges(rng, min(length, 4))
    chain = Chain.of(chain.start, chain.matrices[:3])
    return Case("rows known", (chain,), min(length, 4), charges, everyone=True)


def long_series(rng: Generator, connected: bool = True) -> Case:
    """Two states, some hundred time points, windows far apart: where certificates are used."""
    rows = matrix(rng, 2)
    while (rows + np.eye(2)).all() != connected:
        rows = matrix(rng, 2)
    begin = stationary(rows) if rng.random() < 0.4 else start(rng, 2)
    length = int(rng.integers(520, 1200))
    levels = np.full(length, rng.choice([0, 0, 0.01, 0.2, 1.0]))
    for _ in range(rng.integers(1, 4)):
        first, last = sorted(rng.integers(0, length, 2))
        levels[first : last + 1] += rng.choice(AMOUNTS[:5])
    chain = Chain.of(begin, [rows] * (length - 1))
    kind = "long series of two states" if connected else "long series that get stuck"
    return _plain(kind, [chain], length, tuple(levels.tolist()))


def stuck(rng: Generator) -> Case:
    """The same where a state is never left, so that laws have no positive limit."""
    return long_series(rng, connected=False)


KINDS: dict[str, Callable[[Generator], Case]] = {
    "any shape": any_shape,
    "stationary": stationary_start,
    "matrices that change": changing,
    "days": days,
    "days, any start": days_from_any_start,
    "long series of days": long_days,
    "sets": sets,
    "any start": any_start,
    "boxes": boxes,
    "functions of a state": functions,
    "longer memory": longer_memory,
    "hidden, any start": hidden_from_any_start,
    "episodes": episodes,
    "charged together": together,
    "charged together, any start": together_from_any_start,
    "rows known": rows_known,
    "long series of two states": long_series,
    "long series that get stuck": stuck,
}
