"""`quiltwork verify`: checks a table of several providers against colluding ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from quiltwork.cli.command import command, option, option_group
from quiltwork.cli.output import emit
from quiltwork.cli.spark_files import at_work
from quiltwork.cli.table_options import (
    MAKING,
    TableFiles,
    backend_option,
    constraint_from_options,
    declarations,
    m_option,
    read_table,
    recipe_from_options,
    require_provider,
    sensitive_declarations,
)
from quiltwork.errors import InvalidInputError
from quiltwork.files import dump

if TYPE_CHECKING:
    from quiltwork.tables.constraints import Constraint
    from quiltwork.tables.providers.originals import PublishedVerdict
    from quiltwork.tables.table import Table
    from quiltwork.tables.verification.max_m import MaxM
    from quiltwork.tables.verification.verdict import Verdict

METHODS = ("exact", "direct", "top-down", "bottom-up", "binary", "adaptive")


@command(
    example="""
    quiltwork verify table.csv --provider hospital --quasi age,zip --sensitive disease --k 3 --m 1
    quiltwork verify a.csv b.csv c.csv --quasi age,zip --sensitive disease --k 3 --l 2
    quiltwork verify all.parquet --provider hospital --quasi age,zip --sensitive disease --k 30 \\
        --m 3 --backend spark
    quiltwork verify published.csv --originals a.csv b.csv c.csv --quasi age,zip \\
        --sensitive disease --k 3 --m 2
    quiltwork verify published.csv --own mine.csv --quasi age,zip --sensitive disease --k 3 \\
        --hierarchy zip=zip.csv
    """
)
def verify(
    source: TableFiles = option_group(TableFiles),
    constraint: Constraint = option_group(constraint_from_options),
    m: int = m_option,
    method: Any = option(
        "The method of verification; all but exact need EG-monotonic constraints. With "
        "--originals, how the table was made: provider-aware, baseline or separate.",
        kind=(*METHODS, *MAKING),
        default="exact",
    ),
    limit: int | None = option("The number of checks within one group after which to give up."),
    own: tuple[str, ...] = option(
        "Your own rows, and those of others if you pool them: what do they reveal about the rest?",
        "FILE",
    ),
    declared: dict[str, Any] = option_group(declarations),
    backend: str = backend_option,
    recipe: dict[str, Any] = option_group(recipe_from_options),
    left_out: int = option(
        "With --own: the number of your rows that were not published.", default=0
    ),
    row_groups: str | None = option(
        "With --own, the file of your rows as published, from the publisher; with --originals, "
        "the folder of all such files.",
        "PATH",
    ),
    originals: bool = option(
        "The first file is the published table, the others are the rows of its providers."
    ),
) -> None:
    """Check a table against colluding providers.

    FILES are CSV or Parquet: one with a column that names providers, or one per provider. Groups
    are the rows with equal quasi-identifiers. With --originals, the first file is a published
    table without providers, verified against the rows of the others; if its boxes overlap, the
    table is made again from these rows, so give the options that `anonymize` was given. With --own,
    the published table is the only file, and the answer is what you can conclude alone. --ordinal
    and --hierarchy define how labels are read. Answers about all providers include the largest m.
    Exit code 1: not private, or not shown to be.
    """
    m_is_given = (
        click.get_current_context().get_parameter_source("m") is not ParameterSource.DEFAULT
    )
    special = own or originals or method != "exact" or limit is not None
    if backend == "spark" and special:
        raise click.UsageError(
            "--backend spark verifies by the exact method only: leave out --own, --originals, "
            "--method and --limit"
        )
    if not originals and (recipe or method in MAKING):
        raise click.UsageError("options on how the table was made go with --originals only")
    if own:
        roles = source.provider is not None or source.subject is not None or originals
        if m_is_given or method != "exact" or len(source.files) > 1 or roles:
            raise click.UsageError(
                "--own goes with one published file, without --provider, --subject, --m, --method "
                "and --originals; for colluding providers, give --own several times"
            )
        private = _verify_own(source, own, declared, constraint, left_out, row_groups)
    elif left_out or (row_groups is not None and not originals):
        raise click.UsageError(
            "--left-out and --row-groups go with --own; --row-groups with --originals"
        )
    elif originals:
        # "exact" is the default of --method, so it says nothing about how the table was made.
        options = recipe if method == "exact" else {"method": method, **recipe}
        allowed = ("exact", *MAKING)
        if len(source.files) < 2 or method not in allowed or source.subject is not None:
            raise click.UsageError(
                "--originals goes with the published file followed by those of the providers, "
                "without --subject; --method is how the table was made"
            )
        private = _verify_originals(source, declared, constraint, m, limit, row_groups, options)
    else:
        private = _verify_table(source, declared, constraint, m, method, limit, backend)
    if not private:
        click.get_current_context().exit(1)


def _verify_own(
    source: TableFiles,
    own: tuple[str, ...],
    declared: dict[str, Any],
    constraint: Constraint,
    left_out: int,
    row_groups: str | None,
) -> bool:
    """Print what providers conclude from the published table and their own rows alone."""
    from quiltwork.tables.providers.own_view import own_view

    # Published tables have sensitive values as they are, but texts for quasi-identifiers.
    of_sensitive = sensitive_declarations(source, declared)
    placed_rows = None
    if row_groups is not None:
        placed_rows = read_table(source.others((row_groups,)), **of_sensitive)
    published, rows = read_table(source, **of_sensitive), read_table(source.others(own), **declared)
    view = own_view(published, rows, constraint, left_out, placed_rows)
    emit(dump("own-view", 3, {**view.body(), "constraint": str(constraint)}), [view.explain()])
    # "Cannot tell" is no confirmation, so it is not exit code 0.
    return view.verdict == "holds"


def _verify_originals(
    source: TableFiles,
    declared: dict[str, Any],
    constraint: Constraint,
    m: int,
    limit: int | None,
    row_groups: str | None,
    options: dict[str, Any],
) -> bool:
    """Print the verdict on a published table against the rows of all its providers."""
    from quiltwork.tables.providers.originals import verify_published
    from quiltwork.tables.verification import LIMIT

    of_sensitive = sensitive_declarations(source, declared)
    published = read_table(source.others(source.files[:1]), **of_sensitive)
    providers = replace(source, files=source.files[1:])
    require_provider(providers, m)
    placed_rows = None
    if row_groups is not None:
        placed_rows = _all_row_groups(source, row_groups, of_sensitive)
    rows = read_table(providers, **declared)
    result = verify_published(
        published, rows, constraint, m, LIMIT if limit is None else limit, placed_rows, options
    )
    lines = [result.explain(), *_largest_lines(result.largest, m)]
    emit(dump("published-verdict", 3, _body(result, result.largest)), lines)
    return result.private is True


def _verify_table(
    source: TableFiles,
    declared: dict[str, Any],
    constraint: Constraint,
    m: int,
    method: Any,
    limit: int | None,
    backend: str,
) -> bool:
    """Print the verdict on a table with its providers, and the largest m."""
    from quiltwork.tables.m_privacy import verify_m_privacy
    from quiltwork.tables.verification import LIMIT
    from quiltwork.tables.verification.max_m import max_m_above

    of_sensitive = sensitive_declarations(source, declared)
    if of_sensitive != declared:
        raise click.UsageError(
            "--ordinal and --hierarchy of quasi-identifiers go with --own and --originals"
        )
    require_provider(source, m)
    table, largest = read_table(source, backend, **of_sensitive), None
    checks = LIMIT if limit is None else limit
    with at_work(backend):
        if backend == "spark":
            from quiltwork.tables.spark.session import on_spark

            table, checks = on_spark(table), 1  # the limit is unused on Spark
        verdict = verify_m_privacy(table, constraint, m, method, checks)
    if backend == "local" and len(table.encoded.providers) > 1:
        # What was just verified need not be verified again.
        largest = max_m_above(table, constraint, checks, verdict.m if verdict.private else -1)
    lines = [verdict.explain(), *_largest_lines(largest, verdict.m)]
    emit(dump("verdict", 1, _body(verdict, largest)), lines)
    return verdict.private


def _largest_lines(largest: MaxM | None, asked: int) -> list[str]:
    """Return the line on the largest m, if it is known."""
    return [] if largest is None else [f"Largest m: {int(largest)}. {largest.explain(asked)}"]


def _body(verdict: Verdict | PublishedVerdict, largest: MaxM | None) -> dict[str, Any]:
    """Return a verdict as JSON values, with the largest m."""
    return {**verdict.body(), "largest": None if largest is None else largest.body()}


def _all_row_groups(source: TableFiles, folder: str, declared: dict[str, Any]) -> Table:
    """Read the row groups of all providers: one CSV file each in a folder."""
    files = sorted(str(path) for path in Path(folder).glob("*.csv"))
    if not files:
        raise InvalidInputError(f"The folder {folder!r} contains no CSV file of row groups.")
    return read_table(replace(source, files=tuple(files), provider=None), **declared)
