"""The providers' side: what do I, or I with others, learn from the published table?

A provider has the published table and its own rows, nobody else's. It finds its rows in the
published groups, takes them away and looks at what is left. Where boxes overlap a row may fit
several groups, and where it is cannot be told: the answer is then about all placements of the rows
(`own_rows`). The table *holds* against these rows if no placement breaks a group, it is *breached*
if rows that fit one group alone break it, and else one *cannot tell* alone.
Cost: O(distinct own rows × groups × quasi-identifiers).

Theorem: docs/theory/own-rows.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal, TypeAlias

import numpy as np

from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer
from quiltwork.results import ResultBase
from quiltwork.tables.codes.encoding import CodedTable
from quiltwork.tables.codes.histogram import SecretCounts
from quiltwork.tables.constraints.constraint import Constraint, as_constraint
from quiltwork.tables.m_privacy import verify_m_privacy
from quiltwork.tables.providers.own_rows import (
    Counts,
    RowClasses,
    check_columns,
    find_row_classes,
    row_group_counts,
)
from quiltwork.tables.table import Table, read_table
from quiltwork.wording import argument

Answer: TypeAlias = Literal["holds", "breached", "cannot tell"]


@dataclass(frozen=True)
class GroupView(ResultBase):
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

    @property
    def named(self) -> str:
        """The group in parentheses."""
        return f"({', '.join(map(str, self.group))})"

    def described(self) -> str:
        """Say how many records of others are left, and in which group."""
        most = sum(self.left_most.values())
        number = f"{most:,}" if most == self.left_size else f"{self.left_size:,} to {most:,}"
        return f"{number} of {self.published:,}, in {self.named}"

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
        verdict: "holds" if every group keeps the constraint wherever the own rows are, also when
            only some of them are taken away; "breached" if some group does not, wherever they are;
            "cannot tell" otherwise; None without a constraint.
        groups: how many groups hold records of others besides own ones.
        own_rows: how many rows the coalition has.
        unmatched: own rows that are not in the table: they fit no published group, or more of them
            fit than it has. They were suppressed, or the table is another one, or its labels are
            read otherwise than they were written.
        ambiguous: own rows that fit several groups.
        smallest: the group with the fewest records of others besides own ones; None if there is
            no such group.
        disclosed: groups whose other records all have one sensitive value: the coalition learns
            it.
        broken: groups in which what is left violates the constraint wherever the own rows are (if
            they were published), and one that fails for everybody.
        unsure: groups that are disclosed or broken only if own rows that fit several groups are in
            this one; one may be broken for certain and disclosed only so.
    """

    verdict: Answer | None
    groups: int
    own_rows: int
    unmatched: int
    ambiguous: int
    smallest: GroupView | None
    disclosed: tuple[GroupView, ...]
    broken: tuple[GroupView, ...]
    unsure: tuple[GroupView, ...]

    def explain(self) -> str:
        """Say in a few sentences what the coalition learns."""
        sentences = [self._verdict(), *self._reasons()]
        if self.smallest is None:
            sentences.append("None of these rows shares a published group with records of others.")
        elif self.verdict != "breached":
            sentences.append(
                f"In {_groups(self.groups)} these rows stand next to records of others; the fewest "
                f"left are {self.smallest.described()}."
            )
        if self.disclosed:
            verb = "gives" if len(self.disclosed) == 1 else "give"
            sentences.append(
                f"{_groups(len(self.disclosed))} {verb} away the sensitive value of everyone else."
            )
        return " ".join(filter(None, sentences))

    def _verdict(self) -> str:
        if self.verdict == "holds":
            where = ", whichever groups they are in" if self.ambiguous else ""
            return f"Holds: no group is broken without these rows{where}."
        if self.verdict == "cannot tell":
            return "Cannot tell alone."
        if self.verdict is None:
            return ""
        first, more = self.broken[0], len(self.broken) - 1
        others = f", and {_groups(more)} more {'is' if more == 1 else 'are'} broken" if more else ""
        return f"Breached: without these rows too little is left, {first.described()}{others}."

    def _reasons(self) -> list[str]:
        """Say why one cannot tell."""
        are = "is" if self.unmatched == 1 else "are"
        gone = f"{self.unmatched:,} of {self.own_rows:,} rows {are} not in the table"
        if self.verdict != "cannot tell":
            return [f"{gone}."] if self.unmatched else []
        found = []
        if self.unmatched:
            found.append(
                f"{gone}: left out (if its publisher says so, pass "
                f"{argument('left_out', self.unmatched)}), or "
                "the table is another one, or its labels are not understood; declare its "
                "hierarchies and orders (--hierarchy, --ordinal)."
            )
        if self.broken:
            found.append(f"If the others are, the group {self.broken[0].named} is broken.")
        if self.ambiguous and self.unsure:
            fit = "fits" if self.ambiguous == 1 else "fit"
            found.append(
                f"{self.ambiguous:,} of {self.own_rows:,} rows {fit} several groups, whose boxes "
                f"overlap; whether {_groups(len(self.unsure))} can be undone, such as "
                f"{self.unsure[0].named}, depends on where they are. Its publisher knows: pass "
                f"{argument('row_groups')} (anonymize --row-groups)."
            )
        return found


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number:,} groups"


def own_view(
    published: Table,
    own: Table,
    constraint: Constraint | Callable[..., bool] | None = None,
    left_out: int = 0,
    row_groups: Table | None = None,
) -> OwnView:
    """Tell what the providers of `own` learn from a published table together.

    Args:
        published: the published table, `provider=None`; its quasi-identifiers are texts such as
            `20..25`, `{flu, asthma}`, or labels of the hierarchies that `own` declares.
        own: the coalition's original rows, with the same names of columns.
        constraint: what every group should still satisfy for the others.
        left_out: how many of the rows may be absent from the table, as its publisher says; with
            more, one cannot tell.
        row_groups: the own rows as they were published, from the publisher: which groups they are
            in is then known, and checked to be possible.

    Raises:
        InvalidInputError: if there is no Table, columns do not match, or row groups are not own
            rows.

    >>> import pandas
    >>> shown = pandas.DataFrame({"age": ["20..30"] * 3, "ill": ["flu", "cold", "flu"]})
    >>> mine = pandas.DataFrame({"age": [24, 22], "ill": ["flu", "cold"]})
    >>> from quiltwork.tables.constraints import KAnonymity
    >>> tables = [Table(frame, None, ["age"], "ill") for frame in (shown, mine)]
    >>> view = own_view(*tables, KAnonymity(2))
    >>> view.verdict, view.smallest.left, len(view.disclosed)
    ('breached', {'flu': 1}, 1)

    Theorem: docs/theory/own-rows.md
    """
    allowed = integer(left_out, "left_out", 0)
    check_columns(read_table(published), read_table(own))
    told = None
    if row_groups is not None:
        told = row_group_counts(published, read_table(row_groups), ("",))
    classes, _, unmatched = find_row_classes(published, own, told)
    rows, shown = unmatched + int(classes.weight.sum()), classes.shown
    if told is None:
        missing, mine = unmatched + classes.surplus(), classes.possible
        least, most = shown - mine, _most(classes, missing, allowed)
        ambiguous = int(classes.weight[classes.matches > 1].sum())
    else:
        mine, ambiguous = _possible(told[0], classes), 0
        least = most = shown - mine
        missing = allowed = rows - int(mine.sum())
    met = np.flatnonzero(mine.any(axis=1) & most.any(axis=1)).tolist()
    views = [_view(published, g, shown[g], least[g], most[g]) for g in met]
    disclosed = [len(view.left) == len(view.left_most) == 1 for view in views]
    states: list[bool | None] = [False] * len(met)
    verdict: Answer | None = None
    everybodys: list[GroupView] = []
    if constraint is not None:
        asked = as_constraint(constraint).bind(published.encoded)
        encoded = published.encoded
        states = [_broken(asked.parts, encoded, least[g], most[g], shown[g]) for g in met]
        outsiders = verify_m_privacy(published, as_constraint(constraint), 0)
        if not outsiders.private:
            texts = [published.group_values(g) for g in range(len(shown))]
            g = texts.index(outsiders.group)
            if g not in met or states[met.index(g)] is not True:
                everybodys = [_view(published, g, *[shown[g]] * 3)]
        certain = told is not None or not (missing or allowed)
        verdict = "cannot tell"
        if not outsiders.private or (certain and True in states):
            verdict = "breached"
        elif missing <= allowed and all(state is False for state in states):
            verdict = "holds"
    return OwnView(
        verdict=verdict,
        groups=len(met),
        own_rows=rows,
        unmatched=missing,
        ambiguous=ambiguous,
        smallest=min(views, key=lambda view: view.left_size, default=None),
        disclosed=tuple(compress(views, disclosed)),
        broken=(*compress(views, [state is True for state in states]), *everybodys),
        unsure=tuple(
            view
            for view, state, known in zip(views, states, disclosed, strict=True)
            if state is None or (len(view.left) <= 1 and not known)
        ),
    )


def _most(classes: RowClasses, missing: int, allowed: int) -> Counts:
    """Return group × value, what is left of the others at most."""
    if allowed:
        return classes.shown
    most = classes.shown - classes.certain
    if missing:
        return most
    own_alone = ~(classes.shown - classes.possible).any(axis=1)
    for group in np.flatnonzero(
        own_alone & most.any(axis=1) & classes.possible.any(axis=1)
    ).tolist():
        most[group] = classes.shown[group] - classes.least_own(group)
    return most


def _possible(told: Counts, classes: RowClasses) -> Counts:
    """Return group × value, the own rows as the publisher says, if they can be these rows."""
    if (told > classes.shown).any() or int(classes.max_flow_within(told).sum()) < int(told.sum()):
        raise InvalidInputError(
            "The row groups are not yours as this table publishes them; ask its publisher for "
            "those that go with it."
        )
    return told


def _view(published: Table, group: int, shown: Counts, least: Counts, most: Counts) -> GroupView:
    labels = published.encoded.sensitive_values
    left, left_most = (
        {labels[v]: int(kept[v]) for v in np.flatnonzero(kept).tolist()} for kept in (least, most)
    )
    size, own = int(shown.sum()), int((shown - least).sum())
    return GroupView(published.group_values(group), size, own, left, left_most)


def _broken(
    parts: Sequence[Constraint], encoded: CodedTable, least: Counts, most: Counts, shown: Counts
) -> bool | None:
    """Tell whether a group is broken wherever own rows are (True), nowhere (False) or perhaps.

    What may be left is every histogram between `least` and `most` but the empty one, and the
    coalition may take away fewer of its rows: every histogram from there to `shown`.
    """
    if least.any():
        for part in parts:
            known = (least == most).all() and _between(part, encoded, least, shown) is False
            if known or (part.eg_monotonic and not part.holds(_seen(encoded, most))):
                return True
    lowest = [least] if least.any() else [*np.eye(len(most), dtype=np.int64)[most > 0]]
    kept = (_between(part, encoded, low, shown) for part in parts for low in lowest)
    return False if all(kept) else None


def _seen(encoded: CodedTable, histogram: Counts) -> SecretCounts:
    """Return records by sensitive value as constraints see them."""
    return SecretCounts.from_histogram(encoded.by_class(histogram), int(histogram.sum()))


def _between(part: Constraint, encoded: CodedTable, low: Counts, high: Counts) -> bool | None:
    """Tell whether a part holds for every histogram from `low` to `high`; None: not decided."""
    if part.eg_monotonic or (low == high).all():
        return part.holds(_seen(encoded, low))
    if not all(part.holds(_seen(encoded, end)) for end in (low, high)):
        return False
    found = part.worst_between(encoded.by_class(low)[None], encoded.by_class(high)[None])
    if found is None:
        return None
    return True if found.safe[0] else (False if found.violated[0] else None)
