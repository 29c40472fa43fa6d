"""`anonymize_spark`: the route of `anonymize` for tables larger than one machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quiltwork.errors import InvalidInputError, NotPrivateError
from quiltwork.publishing.constraints.base import Constraint
from quiltwork.publishing.guards import guard_for
from quiltwork.publishing.mondrian import Rules, Split
from quiltwork.publishing.spark.blocks import encoded_blocks
from quiltwork.publishing.spark.domains import Domains, bound, quoted, read_domains
from quiltwork.publishing.spark.finish import WIDTH, Plan, finished
from quiltwork.publishing.spark.passes import measurer, sent
from quiltwork.publishing.spark.session import spark_frame
from quiltwork.publishing.spark.tree import Measure, Router, grow, is_private
from quiltwork.publishing.spark.verification import PartVerdict, combined, part_verdicts
from quiltwork.publishing.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBTREE_ROWS = 500_000
"""Records that one worker takes; larger nodes are cut from distributed counts."""


@dataclass(frozen=True, eq=False, repr=False)
class SparkPublication:
    """A published Spark table: what may be published of it and what is for checks only.

    Attributes:
        source: the table as it was given. Never publish it.
        constraint: what every group fulfils, in words.
        m: how many colluding providers it withstands.
        method: how it was made.
        subtrees: how many parts workers finished by themselves.
        verdicts: what the workers found when they verified it.
        published: the records with providers and widths, kept on the workers' disks.
    """

    source: Table
    constraint: str
    m: int
    method: str
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
        return Table(
            self.published.drop(WIDTH),
            self.source.provider,
            self.source.quasi_identifiers,
            self.source.sensitive,
            ordinal={n: v for n, v in self.source.ordinal.items() if n in self.source.sensitive},
            missing="value",
        )

    @property
    def groups(self) -> DataFrame:
        """The groups with their numbers of records, as a Spark frame."""
        columns = [self.published[quoted(name)] for name in self.source.quasi_identifiers]
        frame: DataFrame = self.published.groupBy(*columns).count()
        return frame

    @property
    def suppressed(self) -> int:
        """How many rows of the source are not published: none."""
        return 0

    @cached_property
    def gcp(self) -> float:
        """The global certainty penalty: the mean width of all cells."""
        from pyspark.sql import functions

        return float(self.published.agg(functions.avg(WIDTH)).first()[0])

    def report(self, path: str | Path | None = None) -> dict[str, Any]:
        """Return what the verification counted; with a path, write it as an HTML page."""
        from quiltwork.publishing.tables_report import spark_report

        return spark_report(self, path)

    def write(self, path: str | Path) -> Path:
        """Write the published frame as a folder of Parquet (or, ending in .csv, CSV) files.

        Raises:
            InvalidInputError: if the folder exists.
        """
        target = Path(path)
        if target.exists():
            raise InvalidInputError(f"{str(target)!r} exists already; choose another folder.")
        writer = self.frame.write
        if target.suffix == ".csv":
            writer.option("header", True).csv(str(target))
        else:
            writer.parquet(str(target))
        return target

    def unpersist(self) -> None:
        """Free the space on the workers' disks."""
        self.published.unpersist()

    def __repr__(self) -> str:
        """Say how large it is."""
        rows = sum(part.rows for part in self.verdicts)
        groups = sum(part.groups for part in self.verdicts)
        return f"SparkPublication({rows} rows, {groups} groups, {self.subtrees} subtrees)"


def anonymize_spark(
    table: Table,
    constraint: Constraint,
    m: int,
    method: str,
    *,
    split: Split = "range",
    relaxed: bool = False,
    subtree_rows: int = SUBTREE_ROWS,
) -> SparkPublication:
    """Anonymize on Spark; see `anonymize`. The driver receives aggregates only.

    The top of the tree is cut by range and strictly, whatever `split` and `relaxed` say; they rule
    within subtrees. With `method="baseline"` the result is that of the local backend.

    Raises:
        NotPrivateError: if not even one group of all rows is m-private, or the finished table
            does not pass its verification.
        UnsupportedError: with a subject column, or too many values or providers.

    Theorem: m-privacy
    """
    from pyspark import StorageLevel

    frame = spark_frame(table)
    domains = read_domains(table, frame)
    asked = bound(constraint, domains)
    alone = method == "separate"
    coalition = 0 if alone else m
    blocks = encoded_blocks(table, frame, domains).persist(StorageLevel.DISK_ONLY)
    try:
        router = Router(len(domains.providers) if alone else 1)
        measure = measurer(blocks, domains)
        roots = measure(router, list(range(router.roots)))
        _check_roots(roots, domains, asked, coalition, alone)
        smallest = guard_for(_nothing(domains), asked, coalition).smallest
        leaves = grow(
            router, roots, measure, domains.places, asked, coalition, smallest, subtree_rows
        )
        rules = Rules(method == "provider-aware", split, relaxed)
        plan = Plan(asked, coalition, method, rules)
        parts = sent(blocks, domains, router).repartition(len(leaves), "subtree")
        published = finished(table, frame, parts, domains, plan).persist(StorageLevel.DISK_ONLY)
        verdicts = part_verdicts(table, published, domains, asked, m)
    finally:
        blocks.unpersist()
    _check_verdicts(verdicts, domains)
    words = str(constraint)
    return SparkPublication(table, words, m, method, len(leaves), tuple(verdicts), published)


def _nothing(domains: Domains) -> Any:
    import numpy as np

    none = np.zeros(0, dtype=np.int32)
    return domains.encoded(domains.quasi, none, none)


def _check_roots(
    roots: dict[int, Measure], domains: Domains, constraint: Constraint, m: int, alone: bool
) -> None:
    for root, measure in roots.items():
        if is_private(measure, constraint, m):
            continue
        if alone:
            raise NotPrivateError(
                f"Provider {domains.providers[root]!r} alone cannot fulfil {constraint}; "
                "anonymize together (method='provider-aware')."
            )
        raise NotPrivateError(
            f"Even one group of all {domains.rows:,} rows does not withstand {m} colluding "
            f"providers under {constraint}; ask for less (a smaller m, k or l) or add records."
        )


def _check_verdicts(verdicts: list[PartVerdict], domains: Domains) -> None:
    verdict = combined(verdicts)
    counted = sum(part.rows for part in verdicts)
    if counted != domains.rows:
        raise NotPrivateError(
            f"The source had {domains.rows:,} rows when it was read first and {counted:,} when it "
            "was published, so the table is withheld; give a frame that does not change."
        )
    if not verdict.private:
        raise NotPrivateError(
            "The anonymized table did not pass its verification, so it is withheld. "
            f"{verdict.explain()}"
        )
