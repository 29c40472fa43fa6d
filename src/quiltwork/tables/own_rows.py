"""Where original rows are in a published table, as far as the table tells.

Boxes overlap, so a row may fit several groups; it is in one of them. A placement puts every row
into a group that fits it, with no more rows of a sensitive value than are published there. Whoever
holds the rows cannot tell placements apart: a group is unprotected for certain only if it is in all
of them, and a table only if every placement leaves some group unprotected.

Theorem: docs/theory/own-rows.md
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import positive_fraction, to_fraction
from quiltwork.tables.constraints.constraint import Constraint, KAnonymity, LDiversity, SecretCounts
from quiltwork.tables.constraints.distributions import (
    EntropyLDiversity,
    RecursiveLDiversity,
    TCloseness,
)
from quiltwork.tables.encoding import group_rows
from quiltwork.tables.generalization.reading import fitting_groups
from quiltwork.tables.meanings import meaning
from quiltwork.tables.table import Table

MOST_ROUNDS = 40
MOST_UNKNOWNS = 200_000
MOST_STEPS = 2_000
_SCALE = 10**6

Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Kinds:
    """Own rows that are alike, and the groups that each kind of them fits.

    Attributes:
        shown: group × sensitive value, the published records.
        value: of each kind, the code of its sensitive value.
        weight: of each kind, how many rows there are.
        kind, group: one entry for each pair of a kind and a group that it fits.
    """

    shown: Counts
    value: Counts
    weight: Counts
    kind: Counts
    group: Counts

    @property
    def matches(self) -> Counts:
        """How many groups each kind fits."""
        return np.bincount(self.kind, minlength=len(self.weight))

    def loads(self, rows: Counts, pairs: Counts) -> Counts:
        """Return group × value, the rows that some of the pairs hold."""
        found = np.zeros_like(self.shown)
        np.add.at(found, (self.group[pairs], self.value[self.kind[pairs]]), rows)
        return found

    @property
    def possible(self) -> Counts:
        """Group × value, the rows that may be there at most."""
        every = np.arange(len(self.kind))
        return np.minimum(self.loads(self.weight[self.kind], every), self.shown)

    @property
    def certain(self) -> Counts:
        """Group × value, the rows that are there for certain, as they fit no other group."""
        alone = np.flatnonzero(self.matches[self.kind] == 1)
        return np.minimum(self.loads(self.weight[self.kind[alone]], alone), self.shown)

    def placed(self) -> Counts:
        """Return how many rows each pair has in a placement of as many rows as possible.

        One maximum flow from kinds to cells (a group and a value), O(pairs) in practice.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_flow

        if not len(self.kind):
            return np.zeros(0, dtype=np.int64)
        cells, cell = np.unique(
            self.group * self.shown.shape[1] + self.value[self.kind], return_inverse=True
        )
        kinds, last = len(self.weight), 1 + len(self.weight) + len(cells)
        start = [np.zeros(kinds, dtype=np.int64), 1 + self.kind, 1 + kinds + np.arange(len(cells))]
        end = [1 + np.arange(kinds), 1 + kinds + cell, np.full(len(cells), last)]
        room = [self.weight, self.weight[self.kind], self.shown.ravel()[cells]]
        edges = (np.concatenate(start), np.concatenate(end))
        graph = csr_array(
            (np.concatenate(room).astype(np.int32), edges), shape=(last + 1, last + 1)
        )
        flow = maximum_flow(graph, 0, last).flow
        return np.asarray(flow[1 + self.kind, 1 + kinds + cell], dtype=np.int64).ravel()

    def surplus(self) -> int:
        """Return how many rows cannot be in the table together with the others."""
        return int(self.weight.sum() - self.placed().sum())

    def least_own(self, group: int) -> Counts:
        """Return by value how many rows are in a group wherever the others are; a flow each."""
        found = np.zeros(self.shown.shape[1], dtype=np.int64)
        for value in np.unique(self.value[self.kind[self.group == group]]).tolist():
            alike = np.flatnonzero(self.value == value)
            number = np.full(len(self.weight), -1, dtype=np.int64)
            number[alike] = np.arange(len(alike))
            pairs = (number[self.kind] >= 0) & (self.group != group)
            others = Kinds(
                self.shown,
                self.value[alike],
                self.weight[alike],
                number[self.kind[pairs]],
                self.group[pairs],
            )
            found[value] = self.weight[alike].sum() - others.placed().sum()
        return found


def check_columns(published: Table, own: Table) -> None:
    """Refuse rows that have other columns than the published table, or name people."""
    refuse_subjects(published, own)
    if set(own.quasi_identifiers) != set(published.quasi_identifiers):
        raise InvalidInputError(
            "The published table and your rows must have the same quasi-identifiers, not "
            f"{', '.join(published.quasi_identifiers)} and {', '.join(own.quasi_identifiers)}."
        )
    if own.sensitive != published.sensitive:
        raise InvalidInputError(
            "The published table and your rows must have the same sensitive columns in the same "
            f"order, not {', '.join(published.sensitive)} and {', '.join(own.sensitive)}."
        )


def refuse_subjects(*tables: Table) -> None:
    """Refuse tables that name people: records are counted, and a person may have several."""
    if any(table.subject is not None for table in tables):
        raise UnsupportedError(
            "Records are counted here, not people: a person with several would count as several. "
            "Leave subject out if each has one; verify_m_privacy verifies people."
        )


def find_kinds(published: Table, own: Table) -> tuple[Kinds, Counts, int]:
    """Find the rows that fit published groups: their kinds, whose each is, and how many fit none.

    Rows of one kind have the same cells and, if `own` names providers, the same one. O(distinct
    rows × groups × quasi-identifiers).
    """
    mine, here = own.encoded, published.encoded
    width = len(here.sensitive_values)
    cells = published.groups.labels * width + here.sensitive
    counted = np.bincount(cells, minlength=published.groups.count * width)
    shown = counted.reshape(published.groups.count, width)
    columns = [*(column.codes for column in mine.quasi), mine.sensitive, mine.provider]
    sizes = [len(column.values) for column in mine.quasi]
    alike = group_rows(columns, [*sizes, len(mine.sensitive_values), len(mine.providers)])
    weight = np.bincount(alike.labels, minlength=alike.count)
    code_of = {meaning(value): code for code, value in enumerate(here.sensitive_values)}
    codes = [code_of.get(meaning(label), -1) for label in mine.sensitive_values]
    value = np.array(codes, dtype=np.int64)[mine.sensitive[alike.first]]
    known = np.flatnonzero(value >= 0)
    found = [np.zeros((2, 0), dtype=np.int64)]
    done = 0
    for portion, fits in fitting_groups(published, own, alike.first[known]):
        which = known[done : done + len(portion)]
        done += len(portion)
        row, group = np.nonzero(fits & (shown.T[value[which]] > 0))
        found.append(np.array([which[row], group]))
    pairs = np.concatenate(found, axis=1)
    fitting, kind = np.unique(pairs[0], return_inverse=True)
    kinds = Kinds(shown, value[fitting], weight[fitting], kind, pairs[1])
    owner = mine.provider[alike.first[fitting]].astype(np.int64)
    return kinds, owner, int(weight.sum() - weight[fitting].sum())


def told_counts(published: Table, placed: Table, names: tuple[str, ...]) -> Counts:
    """Count rows as they were published: provider × group × sensitive value.

    Raises:
        InvalidInputError: if one of them is in no published group, or nobody's.
    """
    check_columns(published, placed)
    group_of = {_texts(published, g): g for g in range(published.groups.count)}
    value_of = {meaning(v): c for c, v in enumerate(published.encoded.sensitive_values)}
    there = placed.encoded
    columns = [placed.quasi_identifiers.index(name) for name in published.quasi_identifiers]
    texts = (_texts(placed, g) for g in range(placed.groups.count))
    found = [
        [names.index(str(name)) if str(name) in names else -1 for name in there.providers],
        [group_of.get(tuple(text[c] for c in columns), -1) for text in texts],
        [value_of.get(meaning(value), -1) for value in there.sensitive_values],
    ]
    rows = (there.provider, placed.groups.labels, there.sensitive)
    cells = [np.array(code, dtype=np.int64)[row] for code, row in zip(found, rows, strict=True)]
    if any((cell < 0).any() for cell in cells):
        raise InvalidInputError(
            "Some placed rows are in no published group, or of another provider; they go with "
            "another table, or one of the files was changed."
        )
    shape = (len(names), published.groups.count, len(published.encoded.sensitive_values))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(cells), 1)
    return counts


def _texts(table: Table, group: int) -> tuple[str, ...]:
    return tuple(map(str, table.group_values(group)))


def left_private(kinds: Kinds, risky: Counts, parts: Sequence[Constraint]) -> bool | None:
    """Tell whether some placement leaves every group private; None if that was not decided.

    Only the groups in `risky` are asked; the others must hold wherever the rows are. A group of
    which nothing is left has nobody to protect. An integer program says which placements leave
    records and values enough; entropy, recursive diversity and t-closeness, which hold on convex
    sets, join it as tangents at whatever breaks them, until nothing does.
    """
    tangents: list[_Tangent] = []
    for _ in range(MOST_ROUNDS):
        try:
            taken = _placement(kinds, risky, parts, tangents)
        except UnsupportedError:
            return None
        if taken is None:
            return False
        left, known = kinds.shown - taken, len(tangents)
        for place, group in enumerate(risky.tolist()):
            records = SecretCounts.from_counts(dict(enumerate(left[group].tolist())))
            broken = [part for part in parts if records.size and not part.holds(records)]
            found = [_tangent(part, left[group]) for part in broken]
            if None in found:
                return None
            tangents += [_Tangent(place, *line) for line in found if line is not None]
        if len(tangents) == known:
            return True
    return None


@dataclass(frozen=True, eq=False)
class _Tangent:
    """factors · left ≥ least for one risky group, unless nothing is left of it."""

    place: int
    factors: Counts
    least: int


def _tangent(part: Constraint, left: Counts) -> tuple[Counts, int] | None:
    """Return a linear condition that a constraint implies and that these records do not meet.

    Each of these constraints says f ≥ 0 for a concave f with f(2x) = 2·f(x); so f(x) is at most
    the gradient of f at any other point, times x. Factors are rounded up, which implies less.
    """
    if isinstance(part, RecursiveLDiversity):
        c, falling = positive_fraction(part.c, "c"), np.argsort(-left, kind="stable")
        exact = np.full(len(left), c.numerator)
        exact[falling[: part.l - 1]] = 0
        exact[falling[0]] -= c.denominator
        return exact, 1
    if isinstance(part, EntropyLDiversity):
        near = left + 1e-6  # the gradient at 0 is infinite
        factors = -np.log(near / near.sum()) - math.log(to_fraction(part.l, "l"))
    elif isinstance(part, TCloseness):
        t, whole = float(to_fraction(part.t, "t")), part.whole / part.whole.sum()
        if part.distance == "equal":
            over = np.sign(left - whole * left.sum())
            factors = 2 * t - over + over @ whole
        else:
            over = np.sign(np.cumsum(left) - np.cumsum(whole) * left.sum())[:-1]
            above = np.append(np.cumsum(over[::-1])[::-1], 0.0)
            factors = t * len(over) - above + over @ np.cumsum(whole)[:-1]
    else:
        return None
    return np.ceil(factors * _SCALE).astype(np.int64), 0


def _placement(
    kinds: Kinds, risky: Counts, parts: Sequence[Constraint], tangents: Sequence[_Tangent]
) -> Counts | None:
    """Return the own rows by group and value, with k and l records and values left; None if none.

    Unknowns, in this order: the rows of each open pair (of a kind and a group, one of several that
    the kind fits); for each risky group whether it is all own; for each cell (a value that a risky
    group shows) whether some of it is left. Each block of constraints is a row of matrices, one for
    each of these, between a lower and an upper end.
    """
    k = max((part.k for part in parts if isinstance(part, KAnonymity)), default=1)
    l_ = max((part.l for part in parts if isinstance(part, LDiversity)), default=1)
    shown, surely, values = kinds.shown, kinds.certain, kinds.shown.shape[1]
    open_ = np.flatnonzero(kinds.matches[kinds.kind] > 1)
    kind, group = kinds.kind[open_], kinds.group[open_]
    pair_cell = group * values + kinds.value[kind]
    place, value = np.nonzero(shown[risky])  # the values of risky groups
    risky_cell = risky[place] * values + value
    taken_cells, open_kinds = np.unique(pair_cell), np.unique(kind)
    room, weight = (shown - surely).ravel(), kinds.weight[open_kinds]
    sizes, own = shown[risky].sum(axis=1), surely[risky].sum(axis=1)
    by_group, by_cell = _incidence(risky, group), _incidence(risky_cell, pair_cell)
    of_group = _incidence(np.arange(len(risky)), place)
    all_own, left = _diagonal(np.ones(len(risky))), _diagonal(np.ones(len(place)))
    published = _diagonal(shown.ravel()[risky_cell])
    far = int(kinds.weight.sum()) + int(shown.sum()) + k + l_  # no sum is larger
    blocks: list[tuple[list[Any], Any, Any]] = [
        ([_incidence(open_kinds, kind), None, None], weight, weight),
        ([_incidence(taken_cells, pair_cell), None, None], 0, room[taken_cells]),
        ([by_group, -k * all_own, None], -far, sizes - k - own),
        ([by_cell, -(published @ of_group.T), None], -surely.ravel()[risky_cell], far),
        ([by_cell, None, left], -far, room[risky_cell]),
        ([None, l_ * all_own, of_group], l_, far),
    ]
    if tangents:
        factors = np.array([one.factors for one in tangents])
        places = np.array([one.place for one in tangents])
        least = np.array([one.least for one in tangents])
        inside = group == risky[places][:, None]
        weighed = np.where(inside, factors[:, kinds.value[kind]], 0)
        unless = -least[:, None] * (places[:, None] == np.arange(len(risky)))
        most = (factors * (shown - surely)[risky[places]]).sum(axis=1) - least
        blocks.append(([_sparse(weighed), _sparse(unless), None], -_SCALE * far, most))
    upper = [kinds.weight[kind], np.ones(len(risky) + len(place), dtype=np.int64)]
    found = _solved(blocks, np.concatenate(upper))
    return None if found is None else surely + kinds.loads(found[: len(kind)], open_)


def _incidence(keys: Counts, of: Counts) -> Any:
    """Return keys × entries: 1 where an entry has this key; the keys are distinct."""
    from scipy.sparse import csr_array

    order = np.argsort(keys)
    place = np.searchsorted(keys[order], of)
    place[place == len(keys)] = 0
    known = np.flatnonzero(keys[order][place] == of) if len(keys) else np.zeros(0, dtype=np.int64)
    ones = np.ones(len(known), dtype=np.int64)
    return csr_array((ones, (order[place[known]], known)), shape=(len(keys), len(of)))


def _sparse(table: Counts) -> Any:
    from scipy.sparse import csr_array

    return csr_array(table)


def _diagonal(numbers: NDArray[Any]) -> Any:
    from scipy.sparse import diags_array

    return diags_array(numbers.astype(np.int64), dtype=np.int64).tocsr()


def _solved(blocks: Sequence[tuple[list[Any], Any, Any]], upper: Counts) -> Counts | None:
    """Return whole numbers 0 ≤ x ≤ upper with low ≤ matrix · x ≤ high; None if there are none.

    SciPy's HiGHS searches; what it finds is checked in whole numbers before it counts. It is given
    up after a number of steps, not of seconds, so that the same question has the same answer.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import block_array

    matrix = block_array([row for row, _, _ in blocks], format="csr")
    heights = [next(b for b in row if b is not None).shape[0] for row, _, _ in blocks]
    low, high = (
        np.concatenate(
            [np.broadcast_to(block[side], h) for block, h in zip(blocks, heights, strict=True)]
        ).astype(np.int64)
        for side in (1, 2)
    )
    if len(upper) > MOST_UNKNOWNS:
        raise UnsupportedError(f"{len(upper):,} unknowns are too many to search.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that options were passed on
        found = milp(
            np.zeros(len(upper)),
            integrality=np.ones(len(upper)),
            bounds=Bounds(np.zeros(len(upper)), upper.astype(np.float64)),
            constraints=LinearConstraint(matrix, low, high),
            options={"node_limit": MOST_STEPS},
        )
    if found.status == 2:
        return None
    if found.status != 0:
        raise UnsupportedError(f"{len(upper):,} unknowns were searched without a result.")
    numbers: Counts = np.rint(found.x).astype(np.int64)
    sums = matrix.astype(np.int64) @ numbers
    inside = (numbers >= 0) & (numbers <= upper)
    if not (inside.all() and (sums >= low).all() and (sums <= high).all()):
        raise UnsupportedError("What was found does not hold in whole numbers.")
    return numbers
