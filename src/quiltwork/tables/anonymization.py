"""`anonymize`: from the records of many providers to a table that m of them cannot undo.

Every route ends at the same gate: the finished groups are counted again from the original rows and
verified exactly; a table that is not proven m-private is never returned.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from quiltwork.arguments import choice, flag
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.exact import shortened, to_fraction
from quiltwork.tables.codes.encoding import CodedTable, take_rows
from quiltwork.tables.codes.group import count_groups
from quiltwork.tables.constraints.constraint import Constraint, as_constraint, parse_m
from quiltwork.tables.constraints.k_anonymity import KAnonymity
from quiltwork.tables.partitioning.coded_records import Counts, records_of
from quiltwork.tables.partitioning.guards import private_for_any_assignment
from quiltwork.tables.partitioning.mondrian import CutRules, Progress, Split
from quiltwork.tables.partitioning.provider_aware import provider_splits_are_sound
from quiltwork.tables.partitioning.recipe import (
    UNPUBLISHED,
    Method,
    Overlap,
    Recipe,
    groups_within_budget,
    partition,
)
from quiltwork.tables.publication import LocalPublication
from quiltwork.tables.publishing.published_records import (
    Publication,
    PublishedRecords,
    assemble,
    boxes_of_groups,
)
from quiltwork.tables.table import Table, read_table
from quiltwork.tables.verification import Verdict, verify_counts
from quiltwork.tables.verification.breach_search import refuse_whole
from quiltwork.tables.verification.group_verification import groups_withstand
from quiltwork.tables.verification.verdict import provider_too_small
from quiltwork.wording import argument

Backend: TypeAlias = Literal["local", "spark"]


def anonymize(
    table: Table,
    constraint: Constraint | Callable[..., bool],
    m: int,
    method: Method = "provider-aware",
    backend: Backend = "local",
    *,
    split: Split | None = None,
    relaxed: bool = False,
    suppression: Any = 0,
    blind: bool = False,
    boxes: Overlap = "overlapping",
    progress: Progress | None = None,
) -> Publication:
    """Generalize a table until every group withstands every coalition of m providers.

    Args:
        table: the records of all providers.
        constraint: for example `KAnonymity(30) & LDiversity(4)`.
        m: how many providers may collude; 0 protects against outsiders only.
        method: "provider-aware" (Algorithm 2: groups may also be cut between providers, where
            counts from the table get better), "baseline" (Mondrian) or "separate" (each alone).
        backend: "local", or "spark" for tables larger than one machine.
        split: "loss" cuts where the two boxes lose least; "range", Mondrian's choice, the widest
            quasi-identifier in the middle (faster, worse); "fitness" is the paper's. None: "loss",
            but "range" for the baseline.
        relaxed: whether records with equal values may go to different groups.
        suppression: the share of rows that may be left out, at most; less are where the table does
            not pass its verification with so many. None on Spark.
        blind: cut by quasi-identifiers and numbers of records alone, so that who knows the
            algorithm learns nothing from the cuts. Groups that then fail the constraint are left
            out within `suppression`, which tells of them that they failed; else nothing is
            published.
        boxes: "disjoint" makes boxes of which every row fits one, so that whoever has rows knows
            where they are: there are no cuts between providers, which costs utility where these
            differ (query error .212 for .058 with four unequal hospitals, .243 for .243 with ten
            alike). Not with `relaxed`, method="separate" and hierarchies, whose labels lie in each
            other.
        progress: called with rows done and rows in all.

    Cost: O(rows · quasi-identifiers · log(rows/k)).

    Raises:
        InvalidInputError: for unknown choices.
        NotPrivateError: if not even one group of all rows is m-private.
        UnsupportedError: on Spark without PySpark or Java, or with more values, providers or sets
            of providers that know one person than its driver takes.

    >>> import pandas
    >>> frame = pandas.DataFrame({
    ...     "hospital": ["A", "B"] * 4, "age": [20, 21, 24, 25, 40, 41, 44, 45],
    ...     "ill": ["flu", "cold", "cold", "flu"] * 2})
    >>> table = Table(frame, "hospital", ["age"], "ill")
    >>> from quiltwork.tables.constraints import KAnonymity
    >>> anonymize(table, KAnonymity(2), m=1, method="baseline").frame["age"].unique().tolist()
    ['20..25', '40..45']

    Theorem: docs/theory/anonymization.md
    """
    asked = as_constraint(constraint)
    coalition = parse_m(m)
    if progress is not None and not callable(progress):
        raise InvalidInputError(
            f"progress must be a function of rows done and rows in all, not {shortened(progress)}."
        )
    choice(method, get_args(Method), "method")
    choice(backend, get_args(Backend), "backend")
    cut: Split = "range" if method == "baseline" else "loss"
    if split is not None:
        choice(split, get_args(Split), "split")
        cut = split
    flag(relaxed, "relaxed")
    flag(blind, "blind")
    share = to_fraction(suppression, "suppression")
    if not 0 <= share < 1:
        raise InvalidInputError(
            f"suppression is the share of rows that may be left out: from 0 to below 1, not "
            f"{shortened(suppression)}."
        )
    on_spark = read_table(table).kind == "spark" or backend == "spark"
    if choice(boxes, get_args(Overlap), "boxes") == "disjoint":
        _check_disjoint(table, method, relaxed)
    if blind:
        _check_blind(table, asked, on_spark, relaxed or cut == "fitness", bool(share))
    splits = method == "provider-aware" and boxes == "overlapping"
    rules = CutRules(splits, cut, relaxed)
    recipe = Recipe(asked, coalition, method, rules, blind, boxes)
    if on_spark:
        from quiltwork.tables.spark import anonymize_spark

        if share:
            raise UnsupportedError(
                "On Spark no rows are left out: suppression needs backend='local'; where the table "
                "does not fit one machine, drop outliers first."
            )
        return anonymize_spark(table, recipe, progress)
    encoded = table.encoded
    records = records_of(encoded)
    bound = asked.bind(encoded)
    most = int(share * encoded.rows)
    recipe = replace(recipe, constraint=bound)
    if method != "separate":
        least = KAnonymity(bound.records_needed) if blind else bound
        whole = count_groups(encoded, np.zeros(encoded.rows, dtype=np.int64), 1)
        if not groups_withstand(whole, least, coalition)[0]:
            refuse_whole(whole.cut(0), encoded.rows, least, coalition)

    def made(recipe: Recipe) -> tuple[PublishedRecords, Verdict]:
        labels = partition(encoded, records, recipe, progress)
        if method == "separate":
            lost = labels == UNPUBLISHED
            if lost.sum() > most:
                who = encoded.providers[int(encoded.provider[np.argmax(lost)])]
                raise provider_too_small(who, bound, int(lost.sum()), most)
        elif labels.min() < 0:  # would pass for suppression
            raise RuntimeError("A row has no group; this is a fault of the partitioning.")
        if blind:
            publication = _kept(assemble(table, labels, recipe), most)
            return publication, _verdict(publication, asked)
        # What is left out changes the distribution that t-closeness compares with: less may do.
        room = most
        while True:
            left = _suppressed(encoded, labels, room)
            publication = assemble(table, left, recipe)
            verdict = _verdict(publication, asked)
            if verdict.private or left is labels:
                return publication, verdict
            room = publication.suppressed // 2

    publication, verdict = made(recipe)
    if (
        not verdict.private
        and not blind
        and rules.provider_splits
        and not provider_splits_are_sound(asked)
    ):
        kept = replace(rules, provider_splits=False)
        publication, verdict = made(replace(recipe, rules=kept))
    if not verdict.private:
        raise verdict.as_error
    return LocalPublication.of(publication)


def _check_disjoint(table: Table, method: Method, relaxed: bool) -> None:
    """Refuse choices by which boxes come to overlap."""
    trees = [name for name in table.hierarchies if name in table.quasi_identifiers]
    if relaxed or method == "separate" or trees:
        what = (
            f"the hierarchy of {trees[0]!r}"
            if trees
            else f"relaxed and {argument('method', 'separate')}"
        )
        raise InvalidInputError(
            f"boxes='disjoint' and {what} do not go together: a row could fit several boxes."
        )


def _check_blind(
    table: Table, asked: Constraint, on_spark: bool, looks: bool, left_out: bool
) -> None:
    """Refuse choices by which sensitive values would find a way into the groups."""
    if on_spark:
        raise UnsupportedError("On Spark cuts look at sensitive values: blind is for one machine.")
    if looks:
        raise InvalidInputError(
            "relaxed and split='fitness' look at sensitive values: leave them out with blind."
        )
    if table.subject is not None:
        raise UnsupportedError(
            "blind takes each record for another person's: keep one record of each subject."
        )
    if left_out and asked.compares_with_whole:
        raise UnsupportedError(
            "Under t-closeness what is left out moves what all groups are compared with: blind "
            "goes without suppression then."
        )


def _kept(publication: PublishedRecords, most: int) -> PublishedRecords:
    """Leave out the groups that fail for some arrangement of their values, at most so many rows."""
    source, recipe, labels = publication.source, publication.recipe, publication.labels
    lost = publication.suppressed
    fine = private_for_any_assignment(
        take_rows(source.encoded, publication.rows, ()),
        labels,
        publication.boxes.count,
        recipe.constraint,
        recipe.m,
    )
    if fine.all():
        return publication
    failing = int(publication.sizes[~fine].sum())
    if lost + failing > most:
        raise NotPrivateError(
            f"Cut without a look at sensitive values, {int((~fine).sum()):,} of {len(fine):,} "
            f"groups with {failing:,} rows fail {recipe.constraint}, and {most:,} rows may be left "
            "out: nothing is published. A larger k makes larger groups; choose it from what is "
            "public, since a k that was tried before and failed tells something. Or allow "
            "suppression, which tells of the groups left out that they failed."
        )
    kept = np.full(source.encoded.rows, UNPUBLISHED, dtype=np.int64)
    kept[publication.rows] = np.where(fine[labels], labels, UNPUBLISHED)
    return assemble(source, kept, recipe)


def _suppressed(encoded: CodedTable, labels: Counts, most: int) -> Counts:
    """Leave out the widest groups that the budget allows, if they are twice as wide as the mean."""
    room = most - int((labels == UNPUBLISHED).sum())
    if room <= 0:
        return labels
    published = np.flatnonzero(labels != UNPUBLISHED)
    width = boxes_of_groups(encoded, labels[published], published).widths.sum(axis=1)
    sizes = np.bincount(labels[published])
    widest = np.argsort(-width, kind="stable")
    widest = widest[width[widest] > 2 * float((width * sizes).sum()) / len(published)]
    dropped = np.zeros(len(sizes), dtype=bool)
    dropped[widest[groups_within_budget(sizes[widest], room)]] = True
    if not dropped.any():
        return labels
    return np.where((labels != UNPUBLISHED) & dropped[labels], UNPUBLISHED, labels)


def _verdict(publication: PublishedRecords, constraint: Constraint) -> Verdict:
    """Count the published groups again from the original rows and verify them."""
    whole, boxes = publication.source.encoded, publication.boxes
    left = take_rows(whole, publication.rows, ()) if publication.suppressed else whole
    counts = count_groups(left, publication.labels, boxes.count)
    return verify_counts((left, boxes.texts_of), counts, constraint.bind(left), publication.m)
