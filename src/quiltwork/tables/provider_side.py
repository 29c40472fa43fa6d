"""The providers' side: what do I, or I with others, learn from the published table?

A provider has the published table and its own rows, nobody else's. It finds its rows in the
published groups, takes them away and looks at what is left. Where boxes overlap a row may fit
several groups: counted in each of them it gives the least that can be left there, counted in none
the most. What holds for the most is certain (if the rows were published at all), what holds for the
least cannot be excluded; whether all groups can be private at once is asked of `own_rows`.
Cost: O(distinct own rows × groups × quasi-identifiers), and an integer program over the rows that
fit several groups where such a group is in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer
from quiltwork.results import ResultBase
from quiltwork.tables.constraints.constraint import (
    Constraint,
    KAnonymity,
    LDiversity,
    SecretCounts,
    as_constraint,
)
from quiltwork.tables.encoding import group_rows
from quiltwork.tables.generalization.reading import fitting_groups
from quiltwork.tables.meanings import meaning
from quiltwork.tables.own_rows import Kinds, left_private
from quiltwork.tables.table import Table, read_table

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class GroupView:
    """One published group as the coalition sees it.

    Attributes:
        group: the published quasi-identifier texts.
        published: how many records it holds.
        own: how many of them may be the coalition's own.
        left: the others' records by sensitive value, at least.
        left_most: the same at most: own rows that fit other groups too are not taken away.
    """

    group: tuple[Any, ...]
    published: int
    own: int
    left: Mapping[Any, int]
    left_most: Mapping[Any, int]

    @property
    def left_size(self) -> int:
        """How many records of others are left, at least."""
        return sum(self.left.values())

    def body(self) -> dict[str, Any]:
        """Return the group as JSON values."""
        left, most = (
            [{"value": str(value), "records": number} for value, number in counts.items()]
            for counts in (self.left, self.left_most)
        )
        shown = {"group": [str(text) for text in self.group], "published": self.published}
        return {**shown, "left": left, "left_most": most}


@dataclass(frozen=True)
class OwnView(ResultBase):
    """What a coalition that pools its rows sees in a published table.

    Attributes:
        groups: how many groups hold records of others besides own ones.
        own_rows: how many rows the coalition has.
        unmatched: own rows that are not in the table: they fit no published group, or more of them
            fit than it has. They were suppressed, or the table is another one, or its labels are
            read otherwise than they were written. Nothing below speaks of them.
        ambiguous: own rows that fit several groups.
        smallest: the group with the fewest records of others besides own ones; None if there is
            no such group.
        disclosed: groups whose other records all have one sensitive value: the coalition learns
            it.
        broken: groups in which what is left violates the constraint.
        unsure: groups that are disclosed or broken only if own rows that fit several groups are in
            this one; one may be broken for certain and disclosed only so.
        withstood: whether the own rows can be in the groups in a way that breaks none of them;
            then the table does not tell that any is broken. None if that was not decided, as with
            rows that are not in the table.
    """

    groups: int
    own_rows: int
    unmatched: int
    ambiguous: int
    smallest: GroupView | None
    disclosed: tuple[GroupView, ...]
    broken: tuple[GroupView, ...]
    unsure: tuple[GroupView, ...]
    withstood: bool | None

    def body(self) -> dict[str, Any]:
        """Return what the coalition sees as JSON values."""
        groups = {
            name: [one.body() for one in getattr(self, name)]
            for name in ("disclosed", "broken", "unsure")
        }
        smallest = None if self.smallest is None else self.smallest.body()
        return {**super().body(), **groups, "smallest": smallest}

    def explain(self) -> str:
        """Say in a few sentences what the coalition learns."""
        if self.smallest is None:
            text = "None of these rows shares a published group with records of others."
        else:
            text = (
                f"In {_groups(self.groups)} these rows stand next to records of others. The "
                f"fewest others left are {_between(self.smallest)}, in the group "
                f"({', '.join(map(str, self.smallest.group))}). "
                f"{_doing(len(self.disclosed), 'give')} away the sensitive value of everyone else "
                f"there; {_doing(len(self.broken), 'break')} the constraint."
            )
        if self.unsure:
            text += (
                f" In {_groups(len(self.unsure))} more than that cannot be excluded: rows that "
                "fit several groups may be there."
            )
        if self.unsure and not self.broken:
            text += _CAN_ALL[self.withstood]
        if self.unmatched:
            are = "is" if self.unmatched == 1 else "are"
            text += (
                f" {self.unmatched:,} of the rows {are} not in the table, so nothing is shown: "
                "they were left out, or the table is another one, or its labels are not "
                "understood; declare its hierarchies and orders (--hierarchy, --ordinal)."
            )
        if self.ambiguous:
            text += f" {_doing(self.ambiguous, 'fit', ' of the rows')} several groups."
        return text


_CAN_ALL = {
    True: " These rows can be in their groups so that none is broken.",
    False: " Wherever these rows are, some group is broken.",
    None: " Whether these rows can be in their groups so that none is broken was not decided.",
}


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number:,} groups"


def _doing(number: int, verb: str, of: str = "") -> str:
    return f"{number:,}{of} {verb}{'s' if number == 1 else ''}"


def _between(view: GroupView) -> str:
    most = sum(view.left_most.values())
    return str(most) if most == view.left_size else f"{view.left_size} to {most}"


def own_view(
    published: Table,
    own: Table,
    constraint: Constraint | Callable[..., bool] | None = None,
    others: int = 0,
    at_most: int | None = None,
) -> OwnView:
    """Tell what the providers of `own` learn from a published table together.

    Args:
        published: the published table, `provider=None`; its quasi-identifiers are texts such as
            `20..25`, `{flu, asthma}`, or labels of the hierarchies that `own` declares.
        own: the coalition's original rows, with the same names of columns.
        constraint: what every group should still satisfy for the others.
        others: how many more providers collude whose rows are not at hand.
        at_most: how many records each of them has in a group at most.

    Raises:
        InvalidInputError: if there is no Table, columns do not match, or `others` comes without
            `at_most`.
        UnsupportedError: for `others` with a constraint other than k-anonymity and l-diversity.

    >>> import pandas
    >>> shown = pandas.DataFrame({"age": ["20..30"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> mine = pandas.DataFrame({"age": [24, 22], "ill": ["flu", "cold"]})
    >>> view = own_view(Table(shown, None, ["age"], "ill"), Table(mine, None, ["age"], "ill"))
    >>> view.smallest.left, len(view.disclosed)
    ({'flu': 1}, 1)
    """
    unseen = _unseen(others, at_most)
    _check_columns(read_table(published), read_table(own))
    shown = _counts(published)
    kinds, unmatched = _own_kinds(published, own, shown)
    mine = kinds.possible
    least, most = shown - mine, shown - kinds.certain
    met = np.flatnonzero(mine.any(axis=1) & most.any(axis=1)).tolist()
    views = [_view(published, g, int(shown[g].sum()), least[g], most[g]) for g in met]
    asked = None if constraint is None else as_constraint(constraint).bind(published.encoded)
    broken = [_broken(asked, least[g], most[g], unseen) for g in met]
    disclosed = [len(view.left) == len(view.left_most) == 1 for view in views]
    unsure = [
        state is None or (len(view.left) <= 1 and not known)
        for view, state, known in zip(views, broken, disclosed, strict=True)
    ]
    surplus = kinds.surplus()
    risky = np.array([g for g, state in zip(met, broken, strict=True) if state is None], dtype=int)
    withstood: bool | None = True not in broken
    if withstood and asked is not None and len(risky):
        exact = not surplus and not unseen  # else there is no placement, or others are unseen
        withstood = left_private(kinds, risky, asked.parts) if exact else None
    if withstood and (unmatched or surplus):
        withstood = None
    return OwnView(
        groups=len(met),
        own_rows=unmatched + int(kinds.weight.sum()),
        unmatched=unmatched + surplus,
        ambiguous=int(kinds.weight[kinds.matches > 1].sum()),
        smallest=min(views, key=lambda view: view.left_size, default=None),
        disclosed=tuple(compress(views, disclosed)),
        broken=tuple(compress(views, [state is True for state in broken])),
        unsure=tuple(compress(views, unsure)),
        withstood=withstood,
    )


def _check_columns(published: Table, own: Table) -> None:
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


def _unseen(others: int, at_most: int | None) -> int:
    """Return how many more records of a group may be known to those who bring no rows."""
    count = integer(others, "others", 0)
    if count and at_most is None:
        raise InvalidInputError(
            "What providers know whose rows are not here is a guess: say with at_most how many "
            "records of one group each of them has at most, or pool your rows."
        )
    return 0 if at_most is None else count * integer(at_most, "at_most", 0)


def _counts(published: Table) -> Counts:
    """Return the published records by group and sensitive value."""
    encoded = published.encoded
    width = len(encoded.sensitive_values)
    cells = published.groups.labels * width + encoded.sensitive
    counted = np.bincount(cells, minlength=published.groups.count * width)
    return counted.reshape(published.groups.count, width)


def _own_kinds(published: Table, own: Table, shown: Counts) -> tuple[Kinds, int]:
    """Find the own rows that fit published groups; then how many fit none."""
    mine, here = own.encoded, published.encoded
    columns = [*(column.codes for column in mine.quasi), mine.sensitive]
    sizes = [*(len(column.values) for column in mine.quasi), len(mine.sensitive_values)]
    alike = group_rows(columns, sizes)
    weight = np.bincount(alike.labels, minlength=alike.count)
    code_of = {meaning(value): code for code, value in enumerate(here.sensitive_values)}
    codes = [code_of.get(meaning(label), -1) for label in mine.sensitive_values]
    value = np.array(codes, dtype=np.int64)[mine.sensitive[alike.first]]
    known = np.flatnonzero(value >= 0)
    pairs: list[tuple[Counts, Counts]] = []
    done = 0
    for portion, fits in fitting_groups(published, own, alike.first[known]):
        which = known[done : done + len(portion)]
        done += len(portion)
        row, group = np.nonzero(fits & (shown.T[value[which]] > 0))
        pairs.append((which[row], group))
    kind, group = (np.concatenate([np.zeros(0, dtype=np.int64), *side]) for side in _sides(pairs))
    fitting, kind = np.unique(kind, return_inverse=True)
    kinds = Kinds(shown, value[fitting], weight[fitting], kind, group)
    return kinds, int(weight.sum() - weight[fitting].sum())


def _sides(pairs: list[tuple[Counts, Counts]]) -> tuple[list[Counts], list[Counts]]:
    return [kind for kind, _ in pairs], [group for _, group in pairs]


def _view(published: Table, group: int, size: int, least: Counts, most: Counts) -> GroupView:
    labels = published.encoded.sensitive_values
    left, left_most = (
        {labels[v]: int(kept[v]) for v in np.flatnonzero(kept).tolist()} for kept in (least, most)
    )
    return GroupView(published.group_values(group), size, size - int(least.sum()), left, left_most)


def _broken(asked: Constraint | None, least: Counts, most: Counts, unseen: int) -> bool | None:
    """Tell whether what is left violates the constraint; None if that depends on unsure rows."""
    parts = () if asked is None else asked.parts
    states = [_state(part, least, most, unseen) for part in parts]
    return True if True in states else (None if None in states else False)


def _state(part: Constraint, least: Counts, most: Counts, unseen: int) -> bool | None:
    if (least == most).all():
        return not _holds(part, most, unseen)
    if not part.eg_monotonic:
        return None
    if not _holds(part, most, unseen):
        return True if least.any() else None  # perhaps nobody else is there
    return False if _holds(part, least, unseen) else None


def _holds(part: Constraint, kept: Counts, unseen: int) -> bool:
    """Tell whether a part holds whatever `unseen` more records are taken away."""
    records = SecretCounts.from_counts(dict(enumerate(kept.tolist())))
    if not unseen:
        return part.holds(records)
    if isinstance(part, KAnonymity):
        return records.size - unseen >= part.k
    if isinstance(part, LDiversity):
        removed = int((np.cumsum(np.sort(records.counts)) <= unseen).sum())
        return records.distinct - removed >= part.l
    raise UnsupportedError(
        f"Without the others' rows only k-anonymity and distinct l-diversity can be judged, not "
        f"{part}; pool your rows, or ask about these two."
    )
