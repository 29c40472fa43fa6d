"""`anonymize`: from the records of many providers to a table that m of them cannot undo.

Every method ends with the same check: the finished groups are counted again from the original rows
and verified exactly. A table that is not proven m-private is never returned.

Theorem: docs/theory/anonymization.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
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
from quiltwork.tables.table import Table, as_table
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
        method: "provider-aware" (groups may also be split between providers, where this improves
            answers to counts), "baseline" (Mondrian) or "separate" (each provider
            alone).
        backend: "local", or "spark" for tables larger than one machine.
        split: "loss" cuts where the two boxes lose least; "range" is Mondrian's choice, the widest
            quasi-identifier in the middle (faster, worse); "fitness" is the paper's Algorithm 2.
            None: "loss", but "range" for the baseline.
        relaxed: whether records with equal values may go to different groups.
        suppression: the largest share of rows that may be left out; fewer are, if the table would
            fail its verification otherwise. Not supported on Spark.
        blind: cut by quasi-identifiers and numbers of records alone, so that the cuts reveal
            nothing to someone who knows the algorithm. Groups that then fail the constraint are
            left out within `suppression`, which reveals that they failed; if they are too many,
            nothing is published.
        boxes: "disjoint" makes boxes of which every row fits exactly one, so that whoever has rows
            knows their groups. There are no splits between providers then, which costs utility if
            these differ (query error .212 instead of .058 with four unequal hospitals, .243 in both
            cases with ten equal ones). Not with `relaxed`, method="separate" or hierarchies, whose
            labels contain each other.
        progress: called with the number of rows done and of all rows.

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
    if progress is not None and not callable(progress):
        raise InvalidInputError(
            f"progress must be a function of rows done and all rows, not {shortened(progress)}."
        )
    choice(backend, get_args(Backend), "backend")
    on_spark = as_table(table).kind == "spark" or backend == "spark"
    recipe, share = parse_recipe(
        *(table, constraint, m, method),
        split=split,
        relaxed=relaxed,
        suppression=suppression,
        blind=blind,
        boxes=boxes,
        on_spark=on_spark,
    )
    if on_spark:
        from quiltwork.tables.spark import anonymize_spark

        if share:
            raise UnsupportedError(
                "On Spark no rows are left out: suppression needs backend='local'. If the table "
                "does not fit one machine, drop outliers first."
            )
        return anonymize_spark(table, recipe, progress)
    rule, coalition, encoded = recipe.constraint, recipe.m, table.encoded
    records = records_of(encoded)
    bound = rule.bind(encoded)
    allowed = int(share * encoded.rows)
    recipe = replace(recipe, constraint=bound)
    if method != "separate":
        # Blind cuts depend on numbers of records alone; the constraint is applied to finished
        # groups.
        least = KAnonymity(bound.records_needed) if blind else bound
        one_group = count_groups(encoded, np.zeros(encoded.rows, dtype=np.int64), 1)
        if not groups_withstand(one_group, least, coalition)[0]:
            refuse_whole(one_group.cut(0), encoded.rows, least, coalition)

    def attempt(recipe: Recipe) -> tuple[PublishedRecords, Verdict]:
        labels = partition(encoded, records, recipe, progress)
        if method == "separate":
            is_unpublished = labels == UNPUBLISHED
            if is_unpublished.sum() > allowed:
                provider = encoded.providers[int(encoded.provider[np.argmax(is_unpublished)])]
                raise provider_too_small(provider, bound, int(is_unpublished.sum()), allowed)
        elif labels.min() < 0:  # it would be mistaken for suppression
            raise RuntimeError("A row has no group: a bug in the partitioning.")
        if blind:
            publication = _drop_failing_groups(assemble(table, labels, recipe), allowed)
            return publication, _verify_again(publication, rule)
        # Suppression changes the distribution that t-closeness compares with: try half as much.
        budget = allowed
        while True:
            labels_left = _suppress_widest(encoded, labels, budget)
            publication = assemble(table, labels_left, recipe)
            verdict = _verify_again(publication, rule)
            if verdict.private or labels_left is labels:
                return publication, verdict
            budget = publication.suppressed // 2

    publication, verdict = attempt(recipe)
    if (
        not verdict.private
        and not blind
        and recipe.rules.provider_splits
        and not provider_splits_are_sound(rule)
    ):
        no_splits = replace(recipe.rules, provider_splits=False)
        publication, verdict = attempt(replace(recipe, rules=no_splits))
    # The verification is the guarantee: nothing that it does not prove is returned.
    if not verdict.private:
        raise verdict.as_error
    return LocalPublication.of(publication)


def parse_recipe(
    table: Table,
    constraint: Constraint | Callable[..., bool],
    m: int,
    method: Method = "provider-aware",
    *,
    split: Split | None = None,
    relaxed: bool = False,
    suppression: Any = 0,
    blind: bool = False,
    boxes: Overlap = "overlapping",
    on_spark: bool = False,
) -> tuple[Recipe, Fraction]:
    """Check the options of `anonymize`, without reading rows; return them with the suppression.

    Raises:
        InvalidInputError: for unknown choices, and options that cannot be combined.
        UnsupportedError: for combinations without a proof.
    """
    rule = as_constraint(constraint)
    coalition = parse_m(m)
    choice(method, get_args(Method), "method")
    chosen_split: Split = "range" if method == "baseline" else "loss"
    if split is not None:
        choice(split, get_args(Split), "split")
        chosen_split = split
    flag(relaxed, "relaxed")
    flag(blind, "blind")
    share = to_fraction(suppression, "suppression")
    if not 0 <= share < 1:
        raise InvalidInputError(
            f"suppression is the share of rows that may be left out, at least 0 and below 1, not "
            f"{shortened(suppression)}."
        )
    if choice(boxes, get_args(Overlap), "boxes") == "disjoint":
        _check_disjoint(table, method, relaxed)
    if blind:
        _check_blind(table, rule, on_spark, relaxed or chosen_split == "fitness", bool(share))
    splits = method == "provider-aware" and boxes == "overlapping"
    rules = CutRules(splits, chosen_split, relaxed)
    return Recipe(rule, coalition, method, rules, blind, boxes), share


def _check_disjoint(table: Table, method: Method, relaxed: bool) -> None:
    """Refuse options that make boxes overlap."""
    with_hierarchy = [name for name in table.hierarchies if name in table.quasi_identifiers]
    if relaxed or method == "separate" or with_hierarchy:
        reason = (
            f"the hierarchy of {with_hierarchy[0]!r}"
            if with_hierarchy
            else f"relaxed or {argument('method', 'separate')}"
        )
        raise InvalidInputError(
            f"boxes='disjoint' cannot be combined with {reason}: a row could fit several boxes."
        )


def _check_blind(
    table: Table, constraint: Constraint, on_spark: bool, uses_values: bool, may_suppress: bool
) -> None:
    """Refuse options by which sensitive values would influence the groups."""
    if on_spark:
        raise UnsupportedError("On Spark, cuts use sensitive values: blind needs backend='local'.")
    if uses_values:
        raise InvalidInputError(
            "relaxed and split='fitness' use sensitive values: they cannot be combined with blind."
        )
    if table.subject is not None:
        raise UnsupportedError(
            "blind counts every record as another person: keep one record of each subject."
        )
    if may_suppress and constraint.compares_with_whole:
        raise UnsupportedError(
            "Under t-closeness, leaving rows out changes the distribution that all groups are "
            "compared with: blind cannot be combined with suppression then."
        )


def _drop_failing_groups(publication: PublishedRecords, allowed: int) -> PublishedRecords:
    """Leave out groups that fail for some assignment of their values, within `most` rows."""
    source, recipe, labels = publication.source, publication.recipe, publication.labels
    already_out = publication.suppressed
    # Decided from what the group publishes, so that the selection reveals nothing else.
    passes = private_for_any_assignment(
        take_rows(source.encoded, publication.rows, ()),
        labels,
        publication.boxes.count,
        recipe.constraint,
        recipe.m,
    )
    if passes.all():
        return publication
    failing = int(publication.sizes[~passes].sum())
    if already_out + failing > allowed:
        raise NotPrivateError(
            f"Cut without using sensitive values, {int((~passes).sum()):,} of {len(passes):,} "
            f"groups with {failing:,} rows fail {recipe.constraint}, and {allowed:,} rows may be "
            "left out, so nothing is published. A larger k makes larger groups; choose it from "
            "public information, since a k that was tried and failed reveals something. Or allow "
            "suppression, which reveals that the groups left out failed."
        )
    labels_left = np.full(source.encoded.rows, UNPUBLISHED, dtype=np.int64)
    labels_left[publication.rows] = np.where(passes[labels], labels, UNPUBLISHED)
    return assemble(source, labels_left, recipe)


def _suppress_widest(encoded: CodedTable, labels: Counts, allowed: int) -> Counts:
    """Leave out the widest groups within the budget, if they are twice as wide as the mean."""
    budget = allowed - int((labels == UNPUBLISHED).sum())
    if budget <= 0:
        return labels
    published = np.flatnonzero(labels != UNPUBLISHED)
    width = boxes_of_groups(encoded, labels[published], published).widths.sum(axis=1)
    sizes = np.bincount(labels[published])
    widest = np.argsort(-width, kind="stable")
    # Below twice the mean width, leaving a group out gains less than its rows are worth.
    widest = widest[width[widest] > 2 * float((width * sizes).sum()) / len(published)]
    dropped = np.zeros(len(sizes), dtype=bool)
    dropped[widest[groups_within_budget(sizes[widest], budget)]] = True
    if not dropped.any():
        return labels
    return np.where((labels != UNPUBLISHED) & dropped[labels], UNPUBLISHED, labels)


def _verify_again(publication: PublishedRecords, constraint: Constraint) -> Verdict:
    """Count the published groups again from the original rows, and verify them."""
    encoded, boxes = publication.source.encoded, publication.boxes
    published = take_rows(encoded, publication.rows, ()) if publication.suppressed else encoded
    counts = count_groups(published, publication.labels, boxes.count)
    return verify_counts(
        (published, boxes.texts_of), counts, constraint.bind(published), publication.m
    )
