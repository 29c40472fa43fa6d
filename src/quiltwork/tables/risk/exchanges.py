"""Which assignments of sensitive values explain all refused cuts of a part of a table.

Records of a group that are on the same sides of all its refused cuts are alike: a cell. An
assignment says how many of each cell have which value. Small parts are enumerated, each assignment
counted as often as records can be arranged so. In larger parts exchanges between cells of a group
are drawn (Metropolis): those that explain more cuts are made, others now and then, less often as
the temperature falls. At the lowest one the cells' values are counted in every round in which all
cuts are explained; given that, all assignments are equally likely.
Nothing depends on chance from outside: the generator starts with a fixed number.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quiltwork.tables.constraints.constraint import Constraint, SecretCounts
from quiltwork.tables.risk.refusals import Refusal

MOST_STEPS = 400_000
"""Exchanges that are drawn, in all parts together."""
_HOT = 0.5

Ints = NDArray[np.int64]
Cells = list[Counter[int]]
"""For each cell, how many of its records have which value."""


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes:
        worlds: assignments of a part that are enumerated; beyond, exchanges are drawn.
        rounds: exchanges per record; half of them to find an assignment, half to look around.
        cold: the temperature at which it looks around.
    """

    worlds: int = 5_000
    rounds: int = 60
    cold: float = 0.25


@dataclass(frozen=True)
class Rule:
    """What a side must fulfil for its cut to be made.

    Attributes:
        constraint: bound to the table.
        enough: how many values it asks for, if it asks for nothing but these and for records.
    """

    constraint: Constraint
    enough: int | None

    @classmethod
    def of(cls, constraint: Constraint) -> Rule:
        """Read a constraint."""
        return cls(constraint, constraint.values_asked if constraint.asks_numbers_alone else None)

    def missed_by(self, counts: Mapping[int, int]) -> bool:
        """Tell whether a side with these values fails; it has records enough."""
        if self.enough is not None:
            return len(counts) < self.enough
        return not self.constraint.holds(SecretCounts.from_counts(counts))

    def distance(self, sides: Sequence[Mapping[int, int]]) -> int:
        """Return 0 if one of the sides fails, and else about how far they are from it."""
        if self.enough is not None:
            return max(0, min(map(len, sides)) - self.enough + 1)
        return int(not any(map(self.missed_by, sides)))


@dataclass(frozen=True, eq=False)
class Part:
    """What the attacker makes of one part of the table.

    Attributes:
        rows: of the part.
        found: for each cell its rows and the share of each value that it can have; empty if no
            assignment was found that explains the table.
        exact: whether all assignments were enumerated.
        nothing: whether all of them explain the table, so that none is ruled out.
    """

    rows: Ints
    found: tuple[tuple[Ints, Mapping[int, float]], ...]
    exact: bool
    nothing: bool


@dataclass(frozen=True, eq=False)
class _Puzzle:
    """A part of the table as cells.

    Attributes:
        rows: of each cell.
        groups: the cells of each group.
        held: the values of each group, with how often they occur.
        cuts: for each refused cut, its sides as sets of cells.
        rule: what a side that is not refused fulfils.
    """

    rows: list[Ints]
    groups: list[list[int]]
    held: list[Counter[int]]
    cuts: list[list[frozenset[int]]]
    rule: Rule

    def explained(self, cells: Cells) -> bool:
        """Tell whether every cut has a side that fails."""
        return all(
            any(self.rule.missed_by(_together(cells, side)) for side in sides)
            for sides in self.cuts
        )


def _together(cells: Cells, side: frozenset[int]) -> Counter[int]:
    whole: Counter[int] = Counter()
    for cell in side:
        whole.update(cells[cell])
    return whole


def attacked(
    groups: Ints,
    values: Ints,
    cuts: Sequence[Refusal],
    constraint: Constraint,
    effort: Effort = Effort(),  # noqa: B008
) -> tuple[Part, ...]:
    """Attack every part of a table that refused cuts say something about.

    `groups` and `values` are those of each row; of the values only how often each group has which
    is used.
    """
    puzzles = list(_puzzles(groups, values, cuts, Rule.of(constraint)))
    rng = np.random.default_rng(2007)
    found, records = [], sum(len(rows) for puzzle in puzzles for rows in puzzle.rows)
    rounds = min(effort.rounds, MOST_STEPS // records) if records else 0
    for puzzle in puzzles:
        rows = np.concatenate(puzzle.rows)
        counted = _enumerated(puzzle, effort.worlds)
        if counted is not None:
            shares, nothing = counted
            found.append(Part(rows, tuple(zip(puzzle.rows, shares, strict=True)), True, nothing))
            continue
        drawn = _drawn(puzzle, rounds * len(rows), effort.cold, rng)
        cells = () if drawn is None else tuple(zip(puzzle.rows, drawn, strict=True))
        found.append(Part(rows, cells, exact=False, nothing=False))
    return tuple(found)


def _puzzles(groups: Ints, values: Ints, cuts: Sequence[Refusal], rule: Rule) -> Iterator[_Puzzle]:
    """Put cuts together that have a group in common, and their rows into cells."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    met = [np.unique(groups[np.concatenate(sides)]) for sides in cuts]
    count = int(groups.max()) + 1
    cut = np.repeat(np.arange(len(cuts)), [len(one) for one in met])
    group = np.concatenate([np.zeros(0, dtype=np.int64), *met]).astype(np.int64)
    shape = (count + len(cuts),) * 2
    edges = csr_array((np.ones(len(cut)), (count + cut, group)), shape=shape)
    part = connected_components(edges, directed=False)[1]
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    by_part: dict[int, list[int]] = defaultdict(list)
    for number in range(len(cuts)):
        by_part[int(part[count + number])].append(number)
    for label, numbers in by_part.items():
        inside = np.flatnonzero(part[:count] == label).tolist()
        yield _puzzle(
            [order[ends[g] : ends[g + 1]] for g in inside], values, [cuts[n] for n in numbers], rule
        )


def _puzzle(members: list[Ints], values: Ints, cuts: list[Refusal], rule: Rule) -> _Puzzle:
    on: dict[int, list[int]] = defaultdict(list)
    sides = [side for one in cuts for side in one]
    for number, side in enumerate(sides):
        for row in side.tolist():
            on[row].append(number)
    rows: list[Ints] = []
    groups: list[list[int]] = []
    where: list[set[int]] = [set() for _ in sides]
    for member in members:
        cells: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row in member.tolist():
            cells[tuple(on.get(row, ()))].append(row)
        groups.append([])
        for key, some in cells.items():
            for number in key:
                where[number].add(len(rows))
            groups[-1].append(len(rows))
            rows.append(np.array(some, dtype=np.int64))
    held = [Counter(values[member].tolist()) for member in members]
    taken = iter(frozenset(cells) for cells in where)
    # The same cut may be tried along several quasi-identifiers.
    distinct = dict.fromkeys(tuple(next(taken) for _ in one) for one in cuts)
    return _Puzzle(rows, groups, held, [list(one) for one in distinct], rule)


def _enumerated(puzzle: _Puzzle, most: int) -> tuple[list[dict[int, float]], bool] | None:
    """Return each cell's shares over all assignments that explain the cuts, and whether all do.

    None if there are too many to try.
    """
    ways, number = [], 1
    for cells, held in zip(puzzle.groups, puzzle.held, strict=True):
        sizes = [len(puzzle.rows[c]) for c in cells]
        of_group = []
        for way in _fillings(sizes, held):
            of_group.append(way)
            if number * len(of_group) > most:
                return None
        number *= len(of_group)
        ways.append(of_group)
    seen: list[Counter[int]] = [Counter() for _ in puzzle.rows]
    nothing = True
    for world in product(*ways):
        filled = [one for way in world for one in way]  # cells are numbered group by group
        if not puzzle.explained(filled):
            nothing = False
            continue
        times = math.prod(_arrangements(one) for one in filled)
        for counted, one in zip(seen, filled, strict=True):
            for value, records in one.items():
                counted[value] += times * records
    return [_shares(one) for one in seen], nothing


def _fillings(sizes: Sequence[int], held: Counter[int]) -> Iterator[tuple[Counter[int], ...]]:
    """Give every way to fill cells of these sizes with the values of a group."""
    if len(sizes) == 1:
        yield (+held,)
        return
    for taken in _choices(sorted(held.items()), sizes[0]):
        for rest in _fillings(sizes[1:], held - taken):
            yield (taken, *rest)


def _choices(held: Sequence[tuple[int, int]], size: int) -> Iterator[Counter[int]]:
    """Give every choice of so many of the values."""
    if not held:
        if not size:
            yield Counter()
        return
    (value, most), rest = held[0], held[1:]
    if size > most + sum(number for _, number in rest):
        return
    for number in range(min(most, size) + 1):
        for others in _choices(rest, size - number):
            yield Counter({value: number, **others}) if number else others


def _arrangements(cell: Counter[int]) -> int:
    return math.factorial(cell.total()) // math.prod(map(math.factorial, cell.values()))


def _shares(counted: Mapping[int, int]) -> dict[int, float]:
    whole = sum(counted.values())
    return {value: number / whole for value, number in counted.items() if number}


class _World:
    """One assignment, and how far its cuts are from being explained."""

    def __init__(self, puzzle: _Puzzle, rng: np.random.Generator) -> None:
        self.cell = [c for c, rows in enumerate(puzzle.rows) for _ in rows]
        self.value = [0] * len(self.cell)
        self.group: list[list[int]] = []
        place: dict[int, list[int]] = defaultdict(list)
        for record, cell in enumerate(self.cell):
            place[cell].append(record)
        for cells, held in zip(puzzle.groups, puzzle.held, strict=True):
            records = [record for c in cells for record in place[c]]
            self.group.append(records)
            given = rng.permutation(list(held.elements())).tolist()
            for record, value in zip(records, given, strict=True):
                self.value[record] = value
        self.rule = puzzle.rule
        self.sides = [side for sides in puzzle.cuts for side in sides]
        self.cut_of = [n for n, sides in enumerate(puzzle.cuts) for _ in sides]
        self.sides_of = [
            [s for s, cut in enumerate(self.cut_of) if cut == n] for n in range(len(puzzle.cuts))
        ]
        self.counts: list[dict[int, int]] = []
        for side in self.sides:
            held_here = Counter(v for c, v in zip(self.cell, self.value, strict=True) if c in side)
            self.counts.append(dict(held_here))
        self.far = [self._distance(n) for n in range(len(puzzle.cuts))]
        self.total = sum(self.far)
        self._apart: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = {}

    def _distance(self, cut: int) -> int:
        return self.rule.distance([self.counts[side] for side in self.sides_of[cut]])

    def apart(self, one: int, other: int) -> tuple[list[int], list[int], list[int]]:
        """Return the sides that only one of two cells is on, and their cuts."""
        key = one, other
        if key not in self._apart:
            mine = [s for s, side in enumerate(self.sides) if one in side and other not in side]
            theirs = [s for s, side in enumerate(self.sides) if other in side and one not in side]
            cuts = sorted({self.cut_of[s] for s in (*mine, *theirs)})
            self._apart[key] = mine, theirs, cuts
        return self._apart[key]

    def exchange(self, one: int, other: int) -> int:
        """Exchange the values of two records; return how much farther all cuts are."""
        a, b = self.value[one], self.value[other]
        mine, theirs, cuts = self.apart(self.cell[one], self.cell[other])
        for sides, out, into in ((mine, a, b), (theirs, b, a)):
            for side in sides:
                held = self.counts[side]
                held[out] -= 1
                if not held[out]:
                    del held[out]
                held[into] = held.get(into, 0) + 1
        self.value[one], self.value[other] = b, a
        before = self.total
        for cut in cuts:
            self.total -= self.far[cut]
            self.far[cut] = self._distance(cut)
            self.total += self.far[cut]
        return self.total - before


def _drawn(
    puzzle: _Puzzle, steps: int, cold: float, rng: np.random.Generator
) -> list[dict[int, float]] | None:
    """Return each cell's shares over the assignments that exchanges reach; None if none is."""
    world = _World(puzzle, rng)
    seen: list[Counter[int]] = [Counter() for _ in puzzle.rows]
    if not steps:
        return None
    groups = [records for records in world.group if len(records) > 1]
    weights = np.array([len(records) for records in groups], dtype=float)
    which = rng.choice(len(groups), steps, p=weights / weights.sum()).tolist()
    draws = rng.random((steps, 3)).tolist()
    every, half = max(1, len(world.value) // 2), steps // 2
    rounds = 0
    for step, (first, second, chance) in enumerate(draws):
        records = groups[which[step]]
        one, other = records[int(first * len(records))], records[int(second * len(records))]
        if world.cell[one] != world.cell[other] and world.value[one] != world.value[other]:
            farther = world.exchange(one, other)
            heat = max(cold, _HOT * (1 - step / half)) if half else cold
            if farther > 0 and chance >= math.exp(-farther / heat):
                world.exchange(one, other)
        if step >= half and step % every == 0 and not world.total:
            rounds += 1
            for cell, value in zip(world.cell, world.value, strict=True):
                seen[cell][value] += 1
    return [_shares(one) for one in seen] if rounds else None
