"""Verification of a published table against the rows of all providers.

Every published record must be somebody's row: a row that its group covers, with its sensitive
value. If each row fits a single group, the providers' counts are determined, and verified as for
any table. If boxes overlap, or not all of several equal rows are published, the table is made
again: `anonymize` depends on nothing but the rows and its options, so if the same records result,
each row is in the group that it was in then. Otherwise the publisher must provide the row groups:
to each provider its own rows as published. m-privacy assumes that providers know where their rows
are, so this reveals nothing more. Cost: O(distinct rows × groups × quasi-identifiers), one maximum
flow, one verification; and one anonymization if boxes overlap, or a few if the table was made with
other options than given.

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
from quiltwork.tables.table import Table, as_table
from quiltwork.tables.verification.breach_search import LIMIT
from quiltwork.tables.verification.group_verification import verify_counts
from quiltwork.tables.verification.max_m import MaxM, max_m_of_counts
from quiltwork.tables.verification.verdict import Verdict
from quiltwork.wording import argument

MOST_TRIES = 5
"""The most values of m for which the table is made again."""
_OTHER_OPTIONS: tuple[dict[str, Any], ...] = (
    {"method": "baseline"},
    {"method": "separate"},
    {"split": "fitness"},
    {"relaxed": True},
    {"boxes": "disjoint"},
)


@dataclass(frozen=True)
class PublishedVerdict(ResultBase):
    """The result of checking a published table against the rows of all providers.

    Attributes:
        private: whether it withstands every coalition of at most m providers; None if the files do
            not determine that, and False if it was not made from these rows.
        size: the number of published records.
        unmatched: the fewest of them that are nobody's row.
        rows: provider → number of rows.
        left_out: provider → how many of them are not published; empty if that is unknown.
        ambiguous: rows that fit several groups, or share a group with more equal rows than it has.
        groups, known: the number of groups, and of those for which the rows of every provider are
            known.
        verdict: the verification of these; None if the table was not made from these rows.
        made_again: the options with which `anonymize` made the same table from the rows, if boxes
            alone do not determine it; the answer then holds if it was made so. Else empty.
        largest: the largest coalition that it withstands, if known for every group.
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
        """Return whether it is private, and whose rows are in it, in a few sentences."""
        if self.verdict is None:
            are = "is no provider's row" if self.unmatched == 1 else "are no provider's rows"
            return (
                f"Not made from these rows: {self.unmatched:,} of {self.size:,} published records "
                f"{are}. The table was changed, or made from other rows, or its labels are not "
                "understood; declare its hierarchies and orders (--hierarchy, --ordinal)."
            )
        if self.private is None:
            text = (
                f"Cannot tell from these files: {self.known:,} of {self.groups:,} groups are "
                f"verified, and the others depend on the groups of {self.ambiguous:,} rows that "
                "fit several, or are not all published. With these options, anonymize makes "
                "another table from the rows: pass the constraint, m and options that made it "
                "(made=…, --method, --split and so on), or the row groups from its publisher, "
                f"{argument('row_groups')} (anonymize --row-groups)."
            )
        else:
            text = self.verdict.explain()
        if self.made_again:
            text += (
                f" Rows that fit several groups are in those where {self.made_again} puts them, "
                "which makes exactly these records from these rows. The answer holds if the table "
                "was made so."
            )
        rows = ", ".join(f"{name} {number:,}" for name, number in self.rows.items())
        text += f" All {self.size:,} records are rows of the providers ({rows})."
        missing = {name: number for name, number in self.left_out.items() if number}
        if missing:
            listed = ", ".join(f"{name} {number:,}" for name, number in missing.items())
            text += f" Left out: {listed}."
        return text


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
        row_groups: the rows with their providers as published, which decides where boxes overlap.
            They are checked: together they must be the published table, and each provider's must be
            rows of its own.
        made: the options with which `anonymize` made it, such as `{"split": "fitness"}`; without
            them, its defaults are tried first, then some others. If boxes overlap, the table is
            made again with these options, this constraint and this m, then with other values of m.

    Raises:
        InvalidInputError: if columns do not match.
        UnsupportedError: as for `verify_m_privacy`.

    >>> import pandas
    >>> rows = {"A": [21, 22, 23], "B": [24, 25]}
    >>> parts = {who: pandas.DataFrame({"age": a, "ill": "flu"}) for who, a in rows.items()}
    >>> shown = Table(pandas.DataFrame({"age": ["21..25"] * 5, "ill": "flu"}), None, ["age"], "ill")
    >>> from quiltwork.tables.constraints import KAnonymity
    >>> result = verify_published(shown, Table.concat(parts, ["age"], "ill"), KAnonymity(3), m=1)
    >>> result.private, result.verdict.coalition
    (False, ('A',))

    Theorem: docs/theory/own-rows.md
    """
    size, rule = parse_m(m), as_constraint(constraint)
    check_columns(as_table(published), as_table(originals))
    # Row groups decide; nothing has to be made again.
    if row_groups is not None:
        check_columns(published, as_table(row_groups))
        counts = counted_row_groups(published, originals, row_groups)
        if counts is None:
            raise InvalidInputError(
                "The row groups of all providers together are not the published table: they belong "
                "to another table, or one of the files was changed."
            )
        classes, owner, _ = find_row_classes(published, originals, counts)
        return PublishedCheck(published, originals, classes, owner).verdict(
            counts, rule, size, limit
        )
    check = PublishedCheck(published, originals, *find_row_classes(published, originals)[:2])
    result = None
    for options in (
        check.candidate_options(size, made or {}) if check.may_be_made_again(size) else []
    ):
        try:
            remade = require_local(anonymize(originals, rule, **options)).table
        # These options cannot have made the table.
        except (NotPrivateError, UnsupportedError):
            continue
        counts = counted_row_groups(published, originals, remade)
        if counts is not None:
            words = ", ".join(f"{name}={value}" for name, value in options.items())
            by = f"quiltwork {__version__}, anonymize({rule}, {words})"
            return replace(check.verdict(counts, rule, size, limit, made=True), made_again=by)
        if result is None:
            result = check.verdict(None, rule, size, limit)
        if result.private is not None:
            return result
    return result or check.verdict(None, rule, size, limit)


def counted_row_groups(published: Table, originals: Table, row_groups: Table) -> Counts | None:
    """Count row groups, provider × group × value; None if they are not the published table."""
    names = tuple(map(str, originals.encoded.providers))
    try:
        counts = row_group_counts(published, row_groups, names)
    except InvalidInputError:
        return None
    return counts if (counts.sum(axis=0) == published_counts(published)).all() else None


@dataclass(frozen=True, eq=False)
class PublishedCheck:
    """A published table, the rows of all providers, and the groups that these fit."""

    published: Table
    originals: Table
    classes: RowClasses
    owner: Counts

    def candidate_options(self, m: int, made: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the options with which the table may have been made, the likeliest first.

        As suppression, the share of absent rows is enough: more would have left out the same rows.
        """
        encoded = self.originals.encoded
        absent = encoded.rows - self.published.encoded.rows
        defaults: dict[str, Any] = {"suppression": Fraction(absent, encoded.rows)} if absent else {}
        defaults |= made
        by_distance = sorted(range(len(encoded.providers)), key=lambda number: abs(number - m))
        numbers = dict.fromkeys((m, *by_distance))
        options = [{"m": number, **defaults} for number in list(numbers)[:MOST_TRIES]]
        return (
            options
            if made
            else [*options, *({"m": m, **defaults, **variant} for variant in _OTHER_OPTIONS)]
        )

    @cached_property
    def capacity(self) -> Counts:
        """Provider × group × value: the most rows that may be there."""
        classes, providers = self.classes, len(self.originals.encoded.providers)
        by_owner = replace(
            classes,
            group=self.owner[classes.kind] * len(classes.shown) + classes.group,
            shown=np.tile(classes.shown, (providers, 1)),
        )
        return by_owner.possible.reshape(providers, *classes.shown.shape)

    def may_be_made_again(self, m: int) -> bool:
        """Whether boxes do not determine the rows, and no record is obviously nobody's."""
        sums = self.capacity.sum(axis=0)
        # Against outsiders, whose rows are in a group does not matter.
        return m > 0 and bool(
            (sums != self.classes.shown).any() and (sums >= self.classes.shown).all()
        )

    def verdict(
        self,
        row_groups: Counts | None,
        constraint: Constraint,
        m: int,
        limit: int,
        made: bool = False,
    ) -> PublishedVerdict:
        """Verify the groups for which the rows of every provider are known.

        With `made`, the groups were made from these rows, so that no record can be nobody's.
        """
        classes, published, shown = self.classes, self.published, self.classes.shown
        names, owner = self.originals.encoded.providers, self.owner[self.classes.kind]
        providers, known = len(names), np.ones(len(shown), dtype=bool)
        if row_groups is not None and made:
            cells = np.nonzero(row_groups)
            cells_of, assigned = cells, row_groups[cells]
        else:
            cells_of = (owner, classes.group, classes.value[classes.kind])
            if row_groups is None:
                assigned = classes.max_flow_assignment()
                known = (self.capacity.sum(axis=0) == shown).all(axis=1)
                known |= m == 0  # nobody takes anything away
            else:
                by_owner = replace(classes, group=owner * len(shown) + classes.group)
                assigned = by_owner.max_flow_within(row_groups.reshape(-1, shown.shape[1]))
        records = int(shown.sum())
        rows = np.bincount(self.originals.encoded.provider, minlength=providers)
        published_rows = np.bincount(cells_of[0], weights=assigned, minlength=providers)
        result = PublishedVerdict(
            private=False,
            size=records,
            unmatched=records - int(assigned.sum()),
            rows=dict(zip(map(str, names), rows.tolist(), strict=True)),
            left_out={},
            ambiguous=0 if known.all() else _ambiguous(classes),
            known=int(known.sum()),
            groups=len(shown),
            verdict=None,
        )
        if result.unmatched:
            return result
        provider_of, group, value = (np.repeat(column, assigned) for column in cells_of)
        encoded = replace(published.encoded, providers=names)
        if encoded.class_of is not None:
            value = encoded.class_of[value]
        counts = count_records(
            (group, provider_of, value), (len(shown), providers, len(encoded.classes))
        )
        verified, bound = np.flatnonzero(known), constraint.bind(published.encoded)
        names = encoded, published.group_values
        # m = 0 first, over all groups: it does not depend on whose rows are where.
        verdict = verify_counts(names, counts, bound, 0, "exact", limit)
        if verdict.private and len(verified):
            names = encoded, lambda group: published.group_values(int(verified[group]))
            verdict = verify_counts(names, subset(counts, verified), bound, m, "exact", limit)
        private = verdict.private if len(verified) == len(shown) or not verdict.private else None
        absent = (rows - published_rows).astype(np.int64).tolist() if private is not None else []
        left_out = dict(zip(result.rows, absent, strict=False)) if known.all() and m else {}
        largest = None
        if known.all() and m:
            proven = m if private else -1
            names = encoded, published.group_values
            largest = max_m_of_counts(names, counts, bound, limit, min(proven, providers - 1))
        return replace(result, private=private, left_out=left_out, verdict=verdict, largest=largest)


def _ambiguous(classes: RowClasses) -> int:
    """Count the rows for which it is unknown whether they are published, and in which group."""
    wanted = classes.loads(classes.weight[classes.kind], np.arange(len(classes.kind)))
    crowded = (wanted > classes.shown)[classes.group, classes.value[classes.kind]]
    unsure = np.bincount(classes.kind, weights=crowded, minlength=len(classes.weight)) > 0
    return int(classes.weight[unsure | (classes.matches > 1)].sum())
