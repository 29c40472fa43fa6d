"""`anonymize_spark`: the Spark implementation of `anonymize`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import ceil, log2
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.delimited import FORMULA, NO_FORMULA, escape_formula
from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.report import facts, page, section
from quiltwork.tables.partitioning.guards import Guard
from quiltwork.tables.partitioning.mondrian import Progress
from quiltwork.tables.partitioning.provider_aware import provider_splits_are_sound
from quiltwork.tables.partitioning.recipe import Recipe
from quiltwork.tables.publishing.published_records import Publication
from quiltwork.tables.publishing.writing import Formulas, check_formulas
from quiltwork.tables.risk.assessment import coalition_text
from quiltwork.tables.risk.report_page import write_page
from quiltwork.tables.spark.domains import Domains, bind_constraint, read_domains
from quiltwork.tables.spark.session import quote_name, spark_frame, with_this_package
from quiltwork.tables.spark.tree import Measure, Measurer, Router, grow, measurer, send_to_subtrees
from quiltwork.tables.spark.workers import (
    WIDTH,
    PartVerdict,
    combine_verdicts,
    encoded_blocks,
    part_verdicts,
    publish_subtrees,
)
from quiltwork.tables.table import Table, with_frame
from quiltwork.tables.verification.breach_search import refuse_whole
from quiltwork.tables.verification.verdict import provider_too_small

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBTREE_ROWS = 500_000
"""The most records of a subtree for one worker; larger nodes are cut by distributed counts."""


@dataclass(frozen=True, eq=False, repr=False)
class SparkPublication(Publication):
    """A published Spark table: the frame to publish, and the records for checks only.

    Attributes:
        subtrees: the number of parts that workers finished by themselves.
        verdicts: the results of the workers' verification.
        published: the records with providers and widths, stored on the workers' disks.
    """

    subtrees: int
    verdicts: tuple[PartVerdict, ...]
    published: Any

    @property
    def frame(self) -> DataFrame:
        """The table to publish: a Spark frame without provider, in canonical order."""
        names = [*self.source.quasi_identifiers, *self.source.sensitive]
        columns = [self.published[quote_name(name)] for name in names]
        frame: DataFrame = self.published.select(*columns).orderBy(*columns)
        return frame

    @cached_property
    def table(self) -> Table:
        """The same as a Table with providers. Never publish it."""
        source, frame = self.source, self.published.drop(WIDTH)
        return with_frame(
            source,
            frame,
            ordinal=source.secret_orders,
            hierarchies=None,
            missing="value",
            count_missing=True,
        )

    @property
    def groups(self) -> DataFrame:
        """The groups with their numbers of records, as a Spark frame."""
        columns = [self.published[quote_name(name)] for name in self.source.quasi_identifiers]
        frame: DataFrame = self.published.groupBy(*columns).count()
        return frame

    @cached_property
    def gcp(self) -> float:
        """The global certainty penalty: the mean width of all cells."""
        from pyspark.sql import functions

        return float(self.published.agg(functions.avg(WIDTH)).first()[0])

    def records(self) -> list[dict[str, Any]]:
        """Collect the published rows."""
        return [row.asDict() for row in self.frame.collect()]

    def summary(self) -> dict[str, Any]:
        """Return rows, groups, suppressed rows and information loss, as JSON values."""
        counts = self.report()
        measures = ("gcp", "discernibility", "average_class_size", "suppressed")
        return {
            **{name: counts[name] for name in ("rows", "groups", "suppressed")},
            "loss": {name: counts[name] for name in measures},
        }

    def report(self, path: str | Path | None = None) -> dict[str, Any]:
        """Return the counts of the verification; with a path, also write them as an HTML page."""
        return _report(self, path)

    def write(self, path: str | Path, formulas: Formulas = "keep") -> Path:
        """Write the published frame as a folder of Parquet files (CSV, if it ends in .csv).

        Raises:
            InvalidInputError: if the folder exists, or for formulas to escape in Parquet files.
        """
        target = Path(path)
        check_formulas(formulas, target)
        if target.exists():
            raise InvalidInputError(f"{str(target)!r} already exists; choose another folder.")
        writer = (_escaped(self.frame) if formulas == "escape" else self.frame).write
        if target.suffix == ".csv":
            # Doubled quotes, as other CSV readers expect; Spark's default is a backslash.
            writer.options(header=True, escape='"').csv(str(target))
        else:
            writer.parquet(str(target))
        return target

    def unpersist(self) -> None:
        """Free the space on the workers' disks."""
        self.published.unpersist()

    def __repr__(self) -> str:
        rows = sum(part.rows for part in self.verdicts)
        groups = sum(part.groups for part in self.verdicts)
        return f"SparkPublication({rows} rows, {groups} groups, {self.subtrees} subtrees)"


def _escaped(frame: DataFrame) -> DataFrame:
    """Escape the column names and texts that a spreadsheet would evaluate."""
    from pyspark.sql import functions as f

    columns = []
    for name, kind in frame.dtypes:
        column = frame[quote_name(name)]
        if kind == "string":
            formula = column.rlike(FORMULA) & ~column.rlike(NO_FORMULA)
            column = f.when(formula, f.concat(f.lit("'"), column)).otherwise(column)
        columns.append(column.alias(escape_formula(name)))
    return frame.select(*columns)


@with_this_package()
def anonymize_spark(
    table: Table,
    recipe: Recipe,
    progress: Progress | None = None,
    subtree_rows: int = SUBTREE_ROWS,
) -> SparkPublication:
    """Anonymize on Spark; see `anonymize`. The driver receives aggregates only.

    The top of the tree is cut by range and strictly, whatever the recipe's rules are; these apply
    within subtrees. With `method="baseline"`, split by range and not relaxed, the result equals
    that of the local backend. `progress` is called after every pass that cuts the top of the tree,
    and before and after the subtrees are finished and verified.

    Theorem: docs/theory/m-privacy.md
    """
    frame = spark_frame(table)
    from pyspark import StorageLevel

    domains = read_domains(table, frame)
    constraint, is_separate = (
        bind_constraint(recipe.constraint, domains),
        recipe.method == "separate",
    )
    coalition = 0 if is_separate else recipe.m
    # Cached on disk: every pass over the tree reads them again.
    blocks = encoded_blocks(table, frame, domains).persist(StorageLevel.DISK_ONLY)
    published: Any = None
    try:
        router = Router(len(domains.table.providers) if is_separate else 1)
        measure = _with_progress(measurer(blocks, domains), progress, domains.rows, subtree_rows)
        roots = measure(router, list(range(router.roots)))
        guard = Guard(constraint, coalition, domains.table)
        _check_roots(roots, domains, guard, is_separate)
        leaves = grow(router, roots, measure, domains.axes, guard, subtree_rows)
        # A subtree cannot compare its boxes with those of other subtrees.
        allows_splits = recipe.rules.provider_splits and provider_splits_are_sound(constraint)
        rules = replace(recipe.rules, provider_splits=allows_splits)
        subtree_recipe = replace(recipe, constraint=constraint, m=coalition, rules=rules)
        if is_separate:  # a subtree has only one provider
            subtree_recipe = replace(subtree_recipe, method="baseline")
        parts = send_to_subtrees(blocks, domains, router, list(leaves)).repartition(
            len(leaves), "subtree"
        )
        published = publish_subtrees(table, frame, parts, domains, subtree_recipe)
        published = published.persist(StorageLevel.DISK_ONLY)
        if progress is not None:
            progress(0, domains.rows)
        # The same gate as on one machine: counted again from what is published.
        verdicts = part_verdicts(table, published, domains, constraint, recipe.m)
        _check_verdicts(verdicts, domains.rows)
        if progress is not None:
            progress(domains.rows, domains.rows)
    # Also on an interrupt: published rows must not stay on the workers' disks.
    except BaseException:
        if published is not None:
            published.unpersist()
        raise
    finally:
        blocks.unpersist()
    return SparkPublication(
        source=table,
        recipe=replace(recipe, rules=rules),
        subtrees=len(leaves),
        verdicts=tuple(verdicts),
        published=published,
    )


def _with_progress(
    measure: Measurer, progress: Progress | None, rows: int, most_rows: int
) -> Measurer:
    """Return the measurer with a progress report after every pass.

    The number of passes is estimated: nodes are halved until they have at most `most_rows` records.
    """
    if progress is None:
        return measure
    expected = 1 + max(0, ceil(log2(rows / most_rows)))
    passes = count(1)

    def measured(router: Router, nodes: list[int]) -> dict[int, Measure]:
        measures = measure(router, nodes)
        progress(min(next(passes) * rows // expected, rows), rows)
        return measures

    return measured


def _check_roots(
    roots: dict[int, Measure], domains: Domains, guard: Guard, is_separate: bool
) -> None:
    """Refuse a table, or a single provider, that is not private even as one group."""
    failing = {r: node.size for r, node in roots.items() if not guard.withstand(node.holdings)[0]}
    if failing and not is_separate:
        refuse_whole(roots[0].holdings.cut(0), domains.rows, guard.constraint, guard.m)
    if failing:
        provider = domains.table.providers[min(failing)]
        raise provider_too_small(provider, guard.constraint, sum(failing.values()), 0)


def _check_verdicts(verdicts: list[PartVerdict], rows: int) -> None:
    """Raise an error unless all rows were verified as private."""
    verdict = combine_verdicts(verdicts)
    counted = sum(part.rows for part in verdicts)
    # A lazy frame can be recomputed from a source that changed between passes.
    if counted != rows:
        raise NotPrivateError(
            f"The source had {rows:,} rows at first and {counted:,} rows when it was published, so "
            "the table is withheld. Pass a frame that does not change."
        )
    if not verdict.private:
        raise verdict.as_error


def _report(publication: SparkPublication, path: str | Path | None = None) -> dict[str, Any]:
    """Return the counts of the distributed verification; with a path, also write them as a page."""
    parts = publication.verdicts
    rows, groups = sum(part.rows for part in parts), sum(part.groups for part in parts)
    counts: dict[str, Any] = {
        "rows": rows,
        "suppressed": 0,
        "groups": groups,
        "k": min(part.smallest for part in parts),
        "distinct_l": min(part.fewest_values for part in parts),
        "discernibility": sum(part.squares for part in parts),
        "average_class_size": rows / groups,
        "gcp": publication.gcp,
        "subtrees": publication.subtrees,
        "checks": sum(part.verdict.checks for part in parts),
    }
    if path is not None:
        texts = {name.replace("_", " "): f"{value:,}" for name, value in counts.items()}
        text = page(
            "Published Spark table",
            f"Every group satisfies {publication.constraint} against "
            f"{coalition_text(publication.m)}, verified on the workers.",
            [section("What was counted", facts(texts), anchor="counted")],
        )
        write_page(path, text)
    return counts
