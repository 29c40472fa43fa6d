"""`quiltwork verify`: does a table of several providers withstand those who collude?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from quiltwork.cli.command import command, option
from quiltwork.cli.output import emit
from quiltwork.cli.tables import (
    TableFiles,
    backend_option,
    constraint_options,
    declaration_options,
    m_option,
    read_table,
    require_provider,
    table_options,
)
from quiltwork.files import dump

if TYPE_CHECKING:
    from quiltwork.tables.constraints import Constraint
    from quiltwork.tables.table import Table

METHODS = ("exact", "direct", "top-down", "bottom-up", "binary", "adaptive")


@command(
    example="""
    quiltwork verify table.csv --provider hospital --quasi age,zip --sensitive disease --k 3 --m 1
    quiltwork verify a.csv b.csv c.csv --quasi age,zip --sensitive disease --k 3 --l 2 --max-m
    quiltwork verify all.parquet --provider hospital --quasi age,zip --sensitive disease --k 30 \\
        --m 3 --backend spark
    quiltwork verify published.csv --own mine.csv --quasi age,zip --sensitive disease --k 3 \\
        --hierarchy zip=zip.csv
    """
)
@table_options
@constraint_options
@m_option
@option("--max-m", "Find the largest m instead.", bool, into="largest")
@option(
    "--method",
    "How to verify; all but exact need constraints that hold for larger groups too.",
    METHODS,
    default="exact",
)
@option("--limit", "Checks within one group after which to give up.", int)
@option(
    "--own FILE",
    "Your own rows, and those of others if you pool them: what do they give away of the rest?",
    multiple=True,
)
@declaration_options()
@backend_option
@option("--others", "With --own: colluding providers without rows.", int, default=0)
@option("--at-most", "With --others: how many records of a group each has.", int)
def verify(
    source: TableFiles,
    constraint: Constraint,
    m: int,
    largest: bool,
    method: str,
    limit: int | None,
    own: tuple[str, ...],
    declared: dict[str, Any],
    backend: str,
    others: int,
    at_most: int | None,
) -> None:
    """Check a table against colluding providers.

    FILES are CSV or Parquet: one with a column that names providers, or one per provider. Groups
    are the rows with equal quasi-identifiers. With --own the file is a published table without
    providers, and the answer is what you could learn from it; --ordinal and --hierarchy say how its
    labels are read. Exit code 1: not private, or not shown to be, as for rows that are not found.
    """
    from quiltwork.tables.verification import LIMIT

    bound = LIMIT if limit is None else limit
    m_is_given = (
        click.get_current_context().get_parameter_source("m") is not ParameterSource.DEFAULT
    )
    if largest and m_is_given:
        raise click.UsageError("--max-m finds the largest m; leave --m out")
    if backend == "spark" and (own or largest or method != "exact" or limit is not None):
        raise click.UsageError(
            "--backend spark verifies exactly, for one m: leave --own, --max-m, --method and "
            "--limit out"
        )
    if own:
        roles = source.provider is not None or source.subject is not None
        if m_is_given or largest or method != "exact" or len(source.files) > 1 or roles:
            raise click.UsageError(
                "--own goes with one published file, without --provider, --subject, --m, --max-m "
                "and --method; pool the rows of those who collude, or say --others"
            )
        if bool(others) != (at_most is not None):
            raise click.UsageError(
                "--others and --at-most go together: how many providers whose rows are not here, "
                "and how many records of one group each of them has at most"
            )
        rows = read_table(source.others(own), **declared)
        private = _own(read_table(source), rows, constraint, others, at_most)
    else:
        if others or at_most is not None or any(declared.values()):
            raise click.UsageError("--others, --at-most, --ordinal and --hierarchy go with --own")
        require_provider(source, 1 if largest else m)
        table = read_table(source, backend)
        if backend == "spark":
            private = _on_spark(table, constraint, m)
        elif largest:
            private = _largest(table, constraint, bound)
        else:
            private = _verdict(table, constraint, m, method, bound)
    if not private:
        click.get_current_context().exit(1)


def _verdict(table: Table, constraint: Constraint, m: int, method: Any, limit: int) -> bool:
    from quiltwork.tables.verification import verify_m_privacy

    found = verify_m_privacy(table, constraint, m, method, limit)
    emit(found.to_json(), [found.explain()])
    return found.private


def _on_spark(table: Table, constraint: Constraint, m: int) -> bool:
    from quiltwork.cli.tables_spark import spark_at_work
    from quiltwork.tables.spark.session import on_spark

    with spark_at_work():
        return _verdict(on_spark(table), constraint, m, "exact", 1)


def _largest(table: Table, constraint: Constraint, limit: int) -> bool:
    from quiltwork.tables.verification.verify import max_m

    found = max_m(table, constraint, limit)
    breach = found.breach
    body = {
        "max_m": int(found),
        "constraint": str(constraint),
        "coalition": [] if breach is None else [str(p) for p in breach.coalition],
        "group": [] if breach is None else [str(v) for v in breach.group],
        "left_size": None if breach is None else breach.left_size,
        "mending_k": found.mending_k,
    }
    emit(dump("max-m", 1, body), [found.explain()])
    return found >= 0


def _own(
    published: Table, rows: Table, constraint: Constraint, others: int, at_most: int | None
) -> bool:
    from quiltwork.tables.provider_side import own_view

    view = own_view(published, rows, constraint, others, at_most)
    body = {**view.body(), "constraint": str(constraint), "others": others}
    emit(dump("own-view", 1, body), [view.explain()])
    return view.withstood is True
