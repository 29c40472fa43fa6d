"""The provider's own check: what one or more providers learn from the published table.

A provider has the published table and its own rows, nobody else's. It finds its rows in the
published groups, removes them and looks at what is left. Where boxes overlap, a row may fit several
groups, and its group is unknown; the answer is then about all assignments of rows to groups
(`own_rows`). The table *holds* against these rows if no assignment breaks a group, it is *breached*
if rows that fit a single group break it, and otherwise one *cannot tell* alone. Cost: O(distinct
own rows × groups × quasi-identifiers).

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
from quiltwork.tables.table import Table, as_table
from quiltwork.wording import argument

Answer: TypeAlias = Literal["holds", "breached", "cannot tell"]


@dataclass(frozen=True)
class GroupView(ResultBase):
    """One published group as the coalition sees it.

    Attributes:
        group: the published quasi-identifier texts.
        published: the number of records in it.
        own: how many of them may be the coalition's own.
        left: the others' records by sensitive value, at least.
        left_most: the same at most: own rows that fit other groups too are not removed.
    """

    group: tuple[Any, ...]
    published: int
    own: int
    left: Mapping[Any, int]
    left_most: Mapping[Any, int]

    @property
    def left_size(self) -> int:
        """The least number of records of others that are left."""
        return sum(self.left.values())

    @property
    def named(self) -> str:
        """The group's texts in parentheses."""
        return f"({', '.join(map(str, self.group))})"

    def described(self) -> str:
        """Return how many records of others are left, and in which group."""
        most = sum(self.left_most.values())
        number = f"{most:,}" if most == self.left_size else f"{self.left_size:,} to {most:,}"
        return f"{number} of {self.published:,}, in {self.named}"

    def body(self) -> dict[str, Any]:
        """Return the group as JSON values."""
        left, most = (
            [{"value": str(value), "records": number} for value, number in counts.items()]
            for counts in (self.left, self.left_most)
        )
        head = {"group": [str(text) for text in self.group], "published": self.published}
        return {**head, "left": left, "left_most": most}


@dataclass(frozen=True)
class OwnView(ResultBase):
    """What a coalition that pools its rows learns from a published table.

    Attributes:
        verdict: "holds" if every group keeps the constraint for all assignments of the own rows,
            also if only some of them are removed; "breached" if some group violates it for all
            assignments; "cannot tell" otherwise; None without a constraint.
        groups: the number of groups with records of others besides own ones.
        own_rows: the number of rows of the coalition.
        unmatched: own rows that are not in the table: they fit no published group, or more rows fit
            than it has. They were suppressed, or the table is another one, or its labels are read
            differently from how they were written.
        ambiguous: own rows that fit several groups.
        smallest: the group with the fewest records of others besides own ones; None if there is
            none.
        disclosed: groups whose other records all have one sensitive value, which the coalition
            learns.
        broken: groups in which what is left violates the constraint for all assignments (if the own
            rows were published), and one that fails for everybody.
        unsure: groups that are disclosed or broken only if own rows that fit several groups are in
            this one; a group may be broken for certain and disclosed only so.
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
        """Return what the coalition learns in a few sentences."""
        sentences = [self._verdict(), *self._reasons()]
        if self.smallest is None:
            sentences.append("No published group has both these rows and records of others.")
        elif self.verdict != "breached":
            sentences.append(
                f"{_groups(self.groups)} may have both these rows and records of others; the "
                f"fewest left are {self.smallest.described()}."
            )
        if self.disclosed:
            verb = "reveals" if len(self.disclosed) == 1 else "reveal"
            sentences.append(
                f"{_groups(len(self.disclosed))} {verb} the sensitive value of everyone else."
            )
        return " ".join(filter(None, sentences))

    def _verdict(self) -> str:
        if self.verdict == "holds":
            condition = ", whichever groups they are in" if self.ambiguous else ""
            return f"Holds: every group keeps the constraint without these rows{condition}."
        if self.verdict == "cannot tell":
            return "Cannot tell alone."
        if self.verdict is None:
            return ""
        first, more = self.broken[0], len(self.broken) - 1
        others = f", and {_groups(more)} more {'is' if more == 1 else 'are'} broken" if more else ""
        return (
            f"Breached: without these rows, too few records are left: {first.described()}{others}."
        )

    def _reasons(self) -> list[str]:
        """Return why one cannot tell."""
        are = "is" if self.unmatched == 1 else "are"
        absent = f"{self.unmatched:,} of {self.own_rows:,} rows {are} not in the table"
        if self.verdict != "cannot tell":
            return [f"{absent}."] if self.unmatched else []
        sentences = []
        if self.unmatched:
            sentences.append(
                f"{absent}. Either they were left out (if the publisher confirms that, pass "
                f"{argument('left_out', self.unmatched)}), or "
                "the table is another one, or its labels are not understood: declare its "
                "hierarchies and orders (--hierarchy, --ordinal)."
            )
        if self.broken:
            sentences.append(f"If the other rows are, the group {self.broken[0].named} is broken.")
        if self.ambiguous and self.unsure:
            fit = "fits" if self.ambiguous == 1 else "fit"
            sentences.append(
                f"{self.ambiguous:,} of {self.own_rows:,} rows {fit} several groups, as boxes "
                f"overlap. Whether {_groups(len(self.unsure))} can be undone, such as "
                f"{self.unsure[0].named}, depends on which groups these rows are in. Ask the "
                f"publisher for that, and pass {argument('row_groups')} (anonymize --row-groups)."
            )
        return sentences


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number:,} groups"


def own_view(
    published: Table,
    own: Table,
    constraint: Constraint | Callable[..., bool] | None = None,
    left_out: int = 0,
    row_groups: Table | None = None,
) -> OwnView:
    """Return what the providers of `own` learn together from a published table.

    Args:
        published: the published table, `provider=None`; its quasi-identifiers are texts such as
            `20..25`, `{flu, asthma}`, or labels of the hierarchies that `own` declares.
        own: the coalition's original rows, with the same column names.
        constraint: what every group should still satisfy for the others.
        left_out: how many of the rows may be absent from the table, according to its publisher; if
            more are absent, the verdict is "cannot tell".
        row_groups: the own rows as published, from the publisher: their groups are then known, and
            checked to be possible.

    Raises:
        InvalidInputError: if an argument is not a Table, columns do not match, or row groups are
            not own rows.

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
    check_columns(as_table(published), as_table(own))
    row_counts = None
    if row_groups is not None:
        row_counts = row_group_counts(published, as_table(row_groups), ("",))
    classes, _, unmatched = find_row_classes(published, own, row_counts)
    rows, shown = unmatched + int(classes.weight.sum()), classes.shown
    if row_counts is None:
        missing, own_counts = unmatched + classes.surplus(), classes.possible
        least, most = shown - own_counts, _most(classes, missing, allowed)
        ambiguous = int(classes.weight[classes.matches > 1].sum())
    else:
        own_counts, ambiguous = _possible(row_counts[0], classes), 0
        least = most = shown - own_counts
        missing = allowed = rows - int(own_counts.sum())
    # Only groups with own and other records can change by removing own ones.
    shared_groups = np.flatnonzero(own_counts.any(axis=1) & most.any(axis=1)).tolist()
    views = [_view(published, g, shown[g], least[g], most[g]) for g in shared_groups]
    disclosed = [len(view.left) == len(view.left_most) == 1 for view in views]
    states: list[bool | None] = [False] * len(shared_groups)
    verdict: Answer | None = None
    broken_for_all: list[GroupView] = []
    if constraint is not None:
        rule = as_constraint(constraint).bind(published.encoded)
        encoded = published.encoded
        states = [_broken(rule.parts, encoded, least[g], most[g], shown[g]) for g in shared_groups]
        # A group that fails for everybody is a breach, whether own rows are in it or not.
        outsiders = verify_m_privacy(published, as_constraint(constraint), 0)
        if not outsiders.private:
            texts = [published.group_values(g) for g in range(len(shown))]
            g = texts.index(outsiders.group)
            if g not in shared_groups or states[shared_groups.index(g)] is not True:
                broken_for_all = [_view(published, g, *[shown[g]] * 3)]
        certain = row_counts is not None or not (missing or allowed)
        verdict = "cannot tell"
        if not outsiders.private or (certain and True in states):
            verdict = "breached"
        elif missing <= allowed and all(state is False for state in states):
            verdict = "holds"
    return OwnView(
        verdict=verdict,
        groups=len(shared_groups),
        own_rows=rows,
        unmatched=missing,
        ambiguous=ambiguous,
        smallest=min(views, key=lambda view: view.left_size, default=None),
        disclosed=tuple(compress(views, disclosed)),
        broken=(*compress(views, [state is True for state in states]), *broken_for_all),
        unsure=tuple(
            view
            for view, state, known in zip(views, states, disclosed, strict=True)
            if state is None or (len(view.left) <= 1 and not known)
        ),
    )


def _most(classes: RowClasses, missing: int, allowed: int) -> Counts:
    """Return group × value: the most that may be left of the others."""
    # Any of the rows may be absent, so nothing has to be removed.
    if allowed:
        return classes.shown
    most = classes.shown - classes.certain
    if missing:
        return most
    only_own = ~(classes.shown - classes.possible).any(axis=1)
    for group in np.flatnonzero(
        only_own & most.any(axis=1) & classes.possible.any(axis=1)
    ).tolist():
        most[group] = classes.shown[group] - classes.least_own(group)
    return most


def _possible(counts: Counts, classes: RowClasses) -> Counts:
    """Return the own rows that the row groups state, if they can be these rows."""
    if (counts > classes.shown).any() or int(classes.max_flow_within(counts).sum()) < int(
        counts.sum()
    ):
        raise InvalidInputError(
            "The row groups are not your rows as published in this table. Ask its publisher for "
            "the row groups that belong to it."
        )
    return counts


def _view(published: Table, group: int, shown: Counts, least: Counts, most: Counts) -> GroupView:
    labels = published.encoded.sensitive_values
    left, left_most = (
        {labels[v]: int(numbers[v]) for v in np.flatnonzero(numbers).tolist()}
        for numbers in (least, most)
    )
    size, own = int(shown.sum()), int((shown - least).sum())
    return GroupView(published.group_values(group), size, own, left, left_most)


def _broken(
    parts: Sequence[Constraint], encoded: CodedTable, least: Counts, most: Counts, shown: Counts
) -> bool | None:
    """Return whether a group is broken in all assignments (True), none (False) or some (None).

    What may be left is every non-empty histogram between `least` and `most`. The coalition may also
    remove fewer of its rows: every histogram from there to `shown`.
    """
    if least.any():
        for part in parts:
            is_determined = (least == most).all() and _between(part, encoded, least, shown) is False
            if is_determined or (part.eg_monotonic and not part.holds(_seen(encoded, most))):
                return True
    # An empty group protects nobody: then every single remaining record is the least set.
    lowest = [least] if least.any() else [*np.eye(len(most), dtype=np.int64)[most > 0]]
    results = (_between(part, encoded, low, shown) for part in parts for low in lowest)
    return False if all(results) else None


def _seen(encoded: CodedTable, histogram: Counts) -> SecretCounts:
    """Return records by sensitive value as the histogram that constraints see."""
    # The size includes records without a value, which the classes do not count.
    return SecretCounts.from_histogram(encoded.by_class(histogram), int(histogram.sum()))


def _between(part: Constraint, encoded: CodedTable, low: Counts, high: Counts) -> bool | None:
    """Return whether a part holds for every histogram from `low` to `high`; None: undecided."""
    # If it holds for the smallest set, it holds for all larger ones.
    if part.eg_monotonic or (low == high).all():
        return part.holds(_seen(encoded, low))
    if not all(part.holds(_seen(encoded, end)) for end in (low, high)):
        return False
    corners = part.worst_between(encoded.by_class(low)[None], encoded.by_class(high)[None])
    if corners is None:
        return None
    return True if corners.safe[0] else (False if corners.violated[0] else None)
