"""Distributed verification: every group of a Spark table, where its records are.

Records with equal quasi-identifiers are sent to one worker, which counts them again and runs the
exact verification of the local backend; the driver receives one verdict per partition. Nothing of
the partition tree is used.

Theorem: docs/theory/m-privacy.md
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.exact import integer
from quiltwork.tables.constraints.constraint import Constraint, as_constraint
from quiltwork.tables.encoding import group_rows
from quiltwork.tables.group import count_groups
from quiltwork.tables.spark.domains import Domains, bound, read_domains
from quiltwork.tables.spark.session import mapped, quoted, with_this_package
from quiltwork.tables.table import Table
from quiltwork.tables.verification import Verdict, verify_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERDICT_SCHEMA = "verdict binary"
ROWS_PER_PARTITION = 200_000


@dataclass(frozen=True)
class PartVerdict:
    """What one worker found.

    Attributes:
        verdict: of the exact verification.
        rows: the records it counted.
        groups: the groups they form.
        smallest: the records of the smallest of them.
        fewest_values: the fewest sensitive values of one of them.
        squares: Σ size² over its groups.
    """

    verdict: Verdict
    rows: int
    groups: int
    smallest: int
    fewest_values: int
    squares: int


@with_this_package()
def verify_spark(table: Table, constraint: Constraint | Callable[..., bool], m: int) -> Verdict:
    """Verify a Spark table against every coalition of at most m providers.

    Theorem: docs/theory/m-privacy.md
    """
    size = integer(m, "m", 0)
    domains = read_domains(table, table.frame)
    asked = bound(as_constraint(constraint), domains)
    return combined(part_verdicts(table, table.frame, domains, asked, size))


def combined(parts: list[PartVerdict]) -> Verdict:
    """Return the verdict on the whole: the first breach in the order of groups, if there is one.

    A proven breach comes before a group that stays undecided; a missing value before others.
    """
    broken = sorted((p.verdict for p in parts if not p.verdict.private), key=_place)
    checks = sum(part.verdict.checks for part in parts)
    return replace(broken[0] if broken else parts[0].verdict, checks=checks)


def _place(verdict: Verdict) -> tuple[Any, ...]:
    values = [(value is not None, value) for value in verdict.group]
    return (not verdict.settled, values)


def part_verdicts(
    table: Table, frame: DataFrame, domains: Domains, constraint: Constraint, m: int
) -> list[PartVerdict]:
    """Verify every group of a Spark frame; `constraint` is bound to the whole table."""
    known = [frame[quoted(name)] for name in table.quasi_identifiers]
    owner = [] if table.provider is None else [table.provider]
    names = [*table.quasi_identifiers, *owner, *table.sensitive]
    chosen = frame.select(*(frame[quoted(name)] for name in names))
    workers = max(1, -(-domains.rows // ROWS_PER_PARTITION))
    together = chosen.repartition(workers, *known)
    found = mapped(together, _verifier(table, domains, constraint, m), VERDICT_SCHEMA)
    # Written by the workers of this very call, from aggregates of their groups.
    return [pickle.loads(row["verdict"]) for row in found.collect()]  # noqa: S301


def _verifier(
    table: Table, domains: Domains, constraint: Constraint, m: int
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    roles = (table.provider, table.quasi_identifiers, table.sensitive)

    def verify(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        received = list(batches)
        if any(batch.num_rows for batch in received):
            verdict = _verified(pa.Table.from_batches(received), roles, domains, constraint, m)
            yield pa.RecordBatch.from_pydict({"verdict": pa.array([pickle.dumps(verdict)])})

    return verify


def _verified(
    rows: Any,
    roles: tuple[str | None, tuple[str, ...], tuple[str, ...]],
    domains: Domains,
    constraint: Constraint,
    m: int,
) -> PartVerdict:
    from quiltwork.tables.spark.blocks import CodeReader

    provider, quasi, sensitive = roles
    local = Table(rows, provider, quasi, sensitive, missing="value")
    reader = CodeReader(domains)
    columns = [rows.column(name).combine_chunks() for name in sensitive]
    secrets = reader.sensitive(columns).astype(np.int32)
    owners = np.zeros(rows.num_rows, dtype=np.int32)
    if provider is not None:
        owners = reader.provider(rows.column(provider).combine_chunks()).astype(np.int32)
    own = local.encoded  # its codes of quasi-identifiers are enough to tell groups apart
    local.__dict__["encoded"] = domains.encoded(own.quasi, owners, secrets)
    groups = local.groups
    counts = count_groups(local.encoded, groups.labels, groups.count)
    sizes = np.bincount(groups.labels, minlength=groups.count)
    pairs = group_rows([groups.labels, secrets], [groups.count, len(domains.sensitive_values)])
    values = np.bincount(groups.labels[pairs.first], minlength=groups.count)
    return PartVerdict(
        verdict=verify_counts((local.encoded, local.group_values), counts, constraint, m),
        rows=rows.num_rows,
        groups=groups.count,
        smallest=int(sizes.min()),
        fewest_values=int(values.min()),
        squares=int((sizes.astype(object) ** 2).sum()),
    )
