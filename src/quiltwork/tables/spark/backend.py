"""`anonymize_spark`: the route of `anonymize` for tables larger than one machine."""

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
from quiltwork.tables.spark.domains import Domains, bound, read_domains
from quiltwork.tables.spark.session import quoted, spark_frame, with_this_package
from quiltwork.tables.spark.tree import Measure, Measurer, Router, grow, measurer, sent
from quiltwork.tables.spark.workers import (
    WIDTH,
    PartVerdict,
    combined,
    encoded_blocks,
    finished,
    part_verdicts,
)
from quiltwork.tables.table import Table, with_frame
from quiltwork.tables.verification.breach_search import refuse_whole
from quiltwork.tables.verification.verdict import provider_too_small

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBTREE_ROWS = 500_000
"""Records that one worker takes; larger nodes are cut from distributed counts."""


@dataclass(frozen=True, eq=False, repr=False)
class SparkPublication(Publication):
    """A published Spark table: what may be published of it and what is for checks only.

    Attributes:
        subtrees: how many parts workers finished by themselves.
        verdicts: what the workers found when they verified it.
        published: the records with providers and widths, kept on the workers' disks.
    """

    subtrees: int
    verdicts: tuple[PartVerdict, ...]
    published: Any

    @property
    def frame(self) -> DataFrame:
        """What is published: a Spark frame without provider, in canonical order."""
        names = [*self.source.quasi_identifiers, *self.source.sensitive]
        columns = [self.published[quoted(name)] for name in names]
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
        columns = [self.published[quoted(name)] for name in self.source.quasi_identifiers]
        frame: DataFrame = self.published.groupBy(*columns).count()
        return frame

    @cached_property
    def gcp(self) -> float:
        """The global certainty penalty: the mean width of all cells."""
        from pyspark.sql import functions

        return float(self.published.agg(functions.avg(WIDTH)).first()[0])

    def records(self) -> list[dict[str, Any]]:
        """Collect what is published, row by row."""
        return [row.asDict() for row in self.frame.collect()]

    def summary(self) -> dict[str, Any]:
        """Return rows, groups, suppressed rows and what was lost, JSON-ready."""
        found = self.report()
        measures = ("gcp", "discernibility", "average_class_size", "suppressed")
        return {
            **{name: found[name] for name in ("rows", "groups", "suppressed")},
            "loss": {name: found[name] for name in measures},
        }

    def report(self, path: str | Path | None = None) -> dict[str, Any]:
        """Return what the verification counted; with a path, write it as an HTML page."""
        return _report(self, path)

    def write(self, path: str | Path, formulas: Formulas = "keep") -> Path:
        """Write the published frame as a folder of Parquet (or, ending in .csv, CSV) files.

        Raises:
            InvalidInputError: if the folder exists, or for formulas to escape in Parquet files.
        """
        target = Path(path)
        check_formulas(formulas, target)
        if target.exists():
            raise InvalidInputError(f"{str(target)!r} exists already; choose another folder.")
        writer = (_escaped(self.frame) if formulas == "escape" else self.frame).write
        if target.suffix == ".csv":
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
    """Escape names and texts that a spreadsheet would compute."""
    from pyspark.sql import functions as f

    columns = []
    for name, kind in frame.dtypes:
        column = frame[quoted(name)]
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

    The top of the tree is cut by range and strictly, whatever the recipe's rules say;
    they rule within subtrees. With `method="baseline"`, by range, and neither of the others the
    result is that of the local backend. `progress` is called after every pass that decides the top
    of the tree, and before and after the subtrees are finished and verified.

    Theorem: docs/theory/m-privacy.md
    """
    frame = spark_frame(table)
    from pyspark import StorageLevel

    domains = read_domains(table, frame)
    asked, alone = bound(recipe.constraint, domains), recipe.method == "separate"
    coalition = 0 if alone else recipe.m
    blocks = encoded_blocks(table, frame, domains).persist(StorageLevel.DISK_ONLY)
    published: Any = None
    try:
        router = Router(len(domains.table.providers) if alone else 1)
        measure = _told(measurer(blocks, domains), progress, domains.rows, subtree_rows)
        roots = measure(router, list(range(router.roots)))
        guard = Guard(asked, coalition, domains.table)
        _check_roots(roots, domains, guard, alone)
        leaves = grow(router, roots, measure, domains.axes, guard, subtree_rows)
        splits = recipe.rules.provider_splits and provider_splits_are_sound(asked)
        rules = replace(recipe.rules, provider_splits=splits)
        inside = replace(recipe, constraint=asked, m=coalition, rules=rules)
        if alone:  # a subtree is one provider's already
            inside = replace(inside, method="baseline")
        parts = sent(blocks, domains, router, list(leaves)).repartition(len(leaves), "subtree")
        published = finished(table, frame, parts, domains, inside)
        published = published.persist(StorageLevel.DISK_ONLY)
        if progress is not None:
            progress(0, domains.rows)
        verdicts = part_verdicts(table, published, domains, asked, recipe.m)
        _check_verdicts(verdicts, domains.rows)
        if progress is not None:
            progress(domains.rows, domains.rows)
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


def _told(measure: Measurer, progress: Progress | None, rows: int, most_rows: int) -> Measurer:
    """Return the same function that tells after every pass, of about as many as there will be.

    Nodes are halved until they have at most `most_rows` records.
    """
    if progress is None:
        return measure
    expected = 1 + max(0, ceil(log2(rows / most_rows)))
    passes = count(1)

    def told(router: Router, nodes: list[int]) -> dict[int, Measure]:
        found = measure(router, nodes)
        progress(min(next(passes) * rows // expected, rows), rows)
        return found

    return told


def _check_roots(roots: dict[int, Measure], domains: Domains, guard: Guard, alone: bool) -> None:
    """Refuse a table, or a provider alone, that no generalization makes private."""
    lost = {r: found.size for r, found in roots.items() if not guard.withstand(found.holdings)[0]}
    if lost and not alone:
        refuse_whole(roots[0].holdings.cut(0), domains.rows, guard.constraint, guard.m)
    if lost:
        who = domains.table.providers[min(lost)]
        raise provider_too_small(who, guard.constraint, sum(lost.values()), 0)


def _check_verdicts(verdicts: list[PartVerdict], rows: int) -> None:
    verdict = combined(verdicts)
    counted = sum(part.rows for part in verdicts)
    if counted != rows:
        raise NotPrivateError(
            f"The source had {rows:,} rows when it was read first and {counted:,} when it was "
            "published, so the table is withheld; give a frame that does not change."
        )
    if not verdict.private:
        raise verdict.as_error


def _report(publication: SparkPublication, path: str | Path | None = None) -> dict[str, Any]:
    """Return what the distributed verification counted; with a path, write it as a page."""
    parts = publication.verdicts
    rows, groups = sum(part.rows for part in parts), sum(part.groups for part in parts)
    found: dict[str, Any] = {
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
        shown = {name.replace("_", " "): f"{value:,}" for name, value in found.items()}
        text = page(
            "Published Spark table",
            f"Every group satisfies {publication.constraint} against "
            f"{coalition_text(publication.m)}: verified where its records are.",
            [section("What was counted", facts(shown), anchor="counted")],
        )
        write_page(path, text)
    return found
