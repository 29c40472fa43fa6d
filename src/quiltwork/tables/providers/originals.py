"""A published table against the rows of all providers: is it made of them, and m-private?

Every published record must be somebody's row: a row that its group covers, with its sensitive
value. Where each row fits one group the providers' counts are known, and verified as those of any
table. Where boxes overlap, or not all of several like rows are published, the table is made again:
`anonymize` depends on nothing but the rows and its options, so if the same records come out, each
row is where it was then. Else whoever published the table can tell: it hands each provider its own
rows as they were published. m-privacy assumes that providers know where their rows are, so this
gives nothing away.
Cost: O(distinct rows × groups × quasi-identifiers), one maximum flow, one verification; and an
anonymization where boxes overlap, a few of them if it was made otherwise than was said.

Theorem: docs/theory/own-rows.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from quiltwork._version import __version__
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.results import ResultBase
from quiltwork.tables.anonymization import anonymize
from quiltwork.tables.codes.group import count_records, subset
from quiltwork.tables.constraints.constraint import Constraint, as_constraint, parse_m
from quiltwork.tables.providers.own_rows import (
    Counts,
    RowClasses,
    check_columns,
    find_row_classes,
    published_counts,
    row_group_counts,
)
from quiltwork.tables.publishing.published_records import require_local
from quiltwork.tables.table import Table, read_table
from quiltwork.tables.verification.breach_search import LIMIT
from quiltwork.tables.verification.group_verification import verify_counts
from quiltwork.tables.verification.max_m import MaxM, max_m_of_counts
from quiltwork.tables.verification.verdict import Verdict
from quiltwork.wording import argument

MOST_TRIES = 5
"""Numbers of colluding providers for which the table is made again."""
_OTHER_WAYS: tuple[dict[str, Any], ...] = (
    {"method": "baseline"},
    {"method": "separate"},
    {"split": "fitness"},
    {"relaxed": True},
    {"boxes": "disjoint"},
)


@dataclass(frozen=True)
class PublishedVerdict(ResultBase):
    """What a published table is, seen by someone who has the rows of all providers.

    Attributes:
        private: whether it withstands every coalition of at most m providers; None if the files do
            not tell, and False if it is not made of these rows.
        size: how many records are published.
        unmatched: how many of them are nobody's row, at least.
        rows: provider → how many rows it has.
        left_out: provider → how many of them are not published; empty if that is not known.
        ambiguous: rows that fit several groups, or share one with more like rows than it has.
        groups, known: how many groups there are, and of how many it is known who has what there.
        verdict: the verification of these; None if the table is not made of these rows.
        made_again: by which options of `anonymize` the same table was made from the rows, where
            boxes alone do not tell: the answer then holds if it was made so. Else empty.
        largest: the largest coalition that it withstands, where it is known of every group.
    """

    private: bool | None
    size: int
    unmatched: int
    rows: Mapping[str, int]
    left_out: Mapping[str, int]
    ambiguous: int
    groups: int
    known: int
    verdict: Verdict | None
    made_again: str = ""
    largest: MaxM | None = None

    def explain(self) -> str:
        """Say whether it is private, and whose rows are in it."""
        if self.verdict is None:
            are = "is nobody's row" if self.unmatched == 1 else "are nobody's rows"
            return (
                f"Not made of these rows: {self.unmatched:,} of {self.size:,} published records "
                f"{are}. It was changed, or made of other rows, or its labels are not understood; "
                "declare its hierarchies and orders (--hierarchy, --ordinal)."
            )
        if self.private is None:
            said = (
                f"Cannot tell from these files: {self.known:,} of {self.groups:,} groups hold, and "
                f"the others depend on where {self.ambiguous:,} rows are that fit several groups, "
                "or are not all published. Made again from these rows it is another table: pass "
                "the constraint, m and options that it was made with (made=…, --method, --split "
                f"and so on), or what its publisher knows, {argument('row_groups')} (anonymize "
                "--row-groups)."
            )
        else:
            said = self.verdict.explain()
        if self.made_again:
            said += (
                f" Rows that fit several groups are where {self.made_again} puts them: of these "
                "rows it makes these very records again. The answer holds if the table was made so."
            )
        whole = ", ".join(f"{name} {number:,}" for name, number in self.rows.items())
        said += f" All {self.size:,} records are rows of theirs ({whole})."
        gone = {name: number for name, number in self.left_out.items() if number}
        if gone:
            listed = ", ".join(f"{name} {number:,}" for name, number in gone.items())
            said += f" Left out: {listed}."
        return said


def verify_published(
    published: Table,
    originals: Table,
    constraint: Constraint | Callable[..., bool],
    m: int,
    limit: int = LIMIT,
    row_groups: Table | None = None,
    made: Mapping[str, Any] | None = None,
) -> PublishedVerdict:
    """Verify a published table against the rows of its providers.

    Args:
        published: the published table, `provider=None`.
        originals: the rows of all providers, with the orders and hierarchies that labels need.
        constraint, m, limit: as for `verify_m_privacy`.
        row_groups: the rows with their providers as they were published, which settles where boxes
            overlap. It is checked: together they are the published table, and each provider's are
            rows of its own.
        made: the options by which `anonymize` made it, such as `{"split": "fitness"}`; without them
            its defaults, and then some others. Where boxes overlap it is made so again, with
            this constraint and for this m, then for others near it.

    Raises:
        InvalidInputError: if columns do not match.
        UnsupportedError: as `verify_m_privacy` does.

    >>> import pandas
    >>> rows = {"A": [21, 22, 23], "B": [24, 25]}
    >>> parts = {who: pandas.DataFrame({"age": a, "ill": "flu"}) for who, a in rows.items()}
    >>> shown = Table(pandas.DataFrame({"age": ["21..25"] * 5, "ill": "flu"}), None, ["age"], "ill")
    >>> from quiltwork.tables.constraints import KAnonymity
    >>> found = verify_published(shown, Table.concat(parts, ["age"], "ill"), KAnonymity(3), m=1)
    >>> found.private, found.verdict.coalition
    (False, ('A',))

    Theorem: docs/theory/own-rows.md
    """
    size, asked = parse_m(m), as_constraint(constraint)
    check_columns(read_table(published), read_table(originals))
    if row_groups is not None:
        check_columns(published, read_table(row_groups))
        told = counted_row_groups(published, originals, row_groups)
        if told is None:
            raise InvalidInputError(
                "The row groups of all providers are not the published table; they go with "
                "another one, or one of the files was changed."
            )
        classes, owner, _ = find_row_classes(published, originals, told)
        return PublishedCheck(published, originals, classes, owner).verdict(
            told, asked, size, limit
        )
    case = PublishedCheck(published, originals, *find_row_classes(published, originals)[:2])
    found = None
    for options in case.candidate_options(size, made or {}) if case.may_be_made_again(size) else []:
        try:
            again = require_local(anonymize(originals, asked, **options)).table
        except (NotPrivateError, UnsupportedError):
            continue
        told = counted_row_groups(published, originals, again)
        if told is not None:
            chosen = ", ".join(f"{name}={value}" for name, value in options.items())
            by = f"quiltwork {__version__}, anonymize({asked}, {chosen})"
            return replace(case.verdict(told, asked, size, limit, made=True), made_again=by)
        if found is None:
            found = case.verdict(None, asked, size, limit)
        if found.private is not None:
            return found
    return found or case.verdict(None, asked, size, limit)


def counted_row_groups(published: Table, originals: Table, row_groups: Table) -> Counts | None:
    """Count row groups, provider × group × value; None if they are not the published table."""
    names = tuple(map(str, originals.encoded.providers))
    try:
        told = row_group_counts(published, row_groups, names)
    except InvalidInputError:
        return None
    return told if (told.sum(axis=0) == published_counts(published)).all() else None


@dataclass(frozen=True, eq=False)
class PublishedCheck:
    """A published table, the rows of all, and which rows fit which groups."""

    published: Table
    originals: Table
    classes: RowClasses
    owner: Counts

    def candidate_options(self, m: int, made: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return by which options it may have been made, the likeliest first.

        As many rows as are absent may have been left out: more room would have left out the same.
        """
        encoded = self.originals.encoded
        gone = encoded.rows - self.published.encoded.rows
        usual: dict[str, Any] = {"suppression": Fraction(gone, encoded.rows)} if gone else {}
        usual |= made
        others = sorted(range(len(encoded.providers)), key=lambda number: abs(number - m))
        numbers = dict.fromkeys((m, *others))
        found = [{"m": number, **usual} for number in list(numbers)[:MOST_TRIES]]
        return found if made else [*found, *({"m": m, **usual, **way} for way in _OTHER_WAYS)]

    @cached_property
    def room(self) -> Counts:
        """Return provider × group × value, the rows that may be there at most."""
        classes, providers = self.classes, len(self.originals.encoded.providers)
        by_owner = replace(
            classes,
            group=self.owner[classes.kind] * len(classes.shown) + classes.group,
            shown=np.tile(classes.shown, (providers, 1)),
        )
        return by_owner.possible.reshape(providers, *classes.shown.shape)

    def may_be_made_again(self, m: int) -> bool:
        """Whether boxes alone do not tell, and no record is nobody's at the first glance."""
        sums = self.room.sum(axis=0)
        return m > 0 and bool(
            (sums != self.classes.shown).any() and (sums >= self.classes.shown).all()
        )

    def verdict(
        self, told: Counts | None, asked: Constraint, m: int, limit: int, made: bool = False
    ) -> PublishedVerdict:
        """Verify the groups of which it is known who has what there.

        With `made` they were made of these rows: that each is somebody's needs no check.
        """
        classes, published, shown = self.classes, self.published, self.classes.shown
        names, owner = self.originals.encoded.providers, self.owner[self.classes.kind]
        providers, known = len(names), np.ones(len(shown), dtype=bool)
        if told is not None and made:
            cells = np.nonzero(told)
            held, taken = cells, told[cells]
        else:
            held = (owner, classes.group, classes.value[classes.kind])
            if told is None:
                taken = classes.max_flow_assignment()
                known = (self.room.sum(axis=0) == shown).all(axis=1)
                known |= m == 0  # nobody takes anything away
            else:
                by_owner = replace(classes, group=owner * len(shown) + classes.group)
                taken = by_owner.max_flow_within(told.reshape(-1, shown.shape[1]))
        records = int(shown.sum())
        rows = np.bincount(self.originals.encoded.provider, minlength=providers)
        published_rows = np.bincount(held[0], weights=taken, minlength=providers)
        found = PublishedVerdict(
            private=False,
            size=records,
            unmatched=records - int(taken.sum()),
            rows=dict(zip(map(str, names), rows.tolist(), strict=True)),
            left_out={},
            ambiguous=0 if known.all() else _ambiguous(classes),
            known=int(known.sum()),
            groups=len(shown),
            verdict=None,
        )
        if found.unmatched:
            return found
        who, group, value = (np.repeat(column, taken) for column in held)
        encoded = replace(published.encoded, providers=names)
        if encoded.class_of is not None:
            value = encoded.class_of[value]
        counts = count_records((group, who, value), (len(shown), providers, len(encoded.classes)))
        some, bound = np.flatnonzero(known), asked.bind(published.encoded)
        names = encoded, published.group_values
        verdict = verify_counts(names, counts, bound, 0, "exact", limit)
        if verdict.private and len(some):
            names = encoded, lambda group: published.group_values(int(some[group]))
            verdict = verify_counts(names, subset(counts, some), bound, m, "exact", limit)
        private = verdict.private if len(some) == len(shown) or not verdict.private else None
        gone = (rows - published_rows).astype(np.int64).tolist() if private is not None else []
        left_out = dict(zip(found.rows, gone, strict=False)) if known.all() and m else {}
        largest = None
        if known.all() and m:
            withstood = m if private else -1
            names = encoded, published.group_values
            largest = max_m_of_counts(names, counts, bound, limit, min(withstood, providers - 1))
        return replace(found, private=private, left_out=left_out, verdict=verdict, largest=largest)


def _ambiguous(classes: RowClasses) -> int:
    """Count the rows of which it is not known whether they are published, and where."""
    wanted = classes.loads(classes.weight[classes.kind], np.arange(len(classes.kind)))
    crowded = (wanted > classes.shown)[classes.group, classes.value[classes.kind]]
    unsure = np.bincount(classes.kind, weights=crowded, minlength=len(classes.weight)) > 0
    return int(classes.weight[unsure | (classes.matches > 1)].sum())
