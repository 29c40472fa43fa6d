"""`quiltwork verify`: does a table of several providers withstand those who collude?"""

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
        "How to verify; all but exact need constraints that hold for larger groups too. With "
        "--originals, how it was made: provider-aware, baseline or separate.",
        kind=(*METHODS, *MAKING),
        default="exact",
    ),
    limit: int | None = option("Checks within one group after which to give up."),
    own: tuple[str, ...] = option(
        "Your own rows, and those of others if you pool them: what do they give away of the rest?",
        "FILE",
    ),
    declared: dict[str, Any] = option_group(declarations),
    backend: str = backend_option,
    recipe: dict[str, Any] = option_group(recipe_from_options),
    left_out: int = option("With --own: rows of yours that were not published.", default=0),
    row_groups: str | None = option(
        "With --own, your rows as published, from the publisher; the folder of all with "
        "--originals.",
        "PATH",
    ),
    originals: bool = option(
        "The first file is published, the others are the providers' rows that it was made of."
    ),
) -> None:
    """Check a table against colluding providers.

    FILES are CSV or Parquet: one with a column that names providers, or one per provider. Groups
    are the rows with equal quasi-identifiers. With --originals the first file is a published table
    without providers, verified against the rows of the others; where its boxes overlap it is made
    again from these, so give the options that `anonymize` was given. With --own it is the only
    file, and the answer is what you can tell alone. --ordinal and --hierarchy say how its labels
    are read. The largest m is part of every answer that is about all providers. Exit code 1: not
    private, or not shown to be.
    """
    from quiltwork.tables.m_privacy import verify_m_privacy
    from quiltwork.tables.providers.originals import verify_published
    from quiltwork.tables.providers.own_view import own_view
    from quiltwork.tables.verification import LIMIT
    from quiltwork.tables.verification.max_m import max_m_above

    bound = LIMIT if limit is None else limit
    m_is_given = (
        click.get_current_context().get_parameter_source("m") is not ParameterSource.DEFAULT
    )
    special = own or originals or method != "exact" or limit is not None
    if backend == "spark" and special:
        raise click.UsageError(
            "--backend spark verifies exactly, for one m: leave --own, --originals, --method and "
            "--limit out"
        )
    if not originals and (recipe or method in MAKING):
        raise click.UsageError("how a table was made is asked with --originals alone")
    if own:
        roles = source.provider is not None or source.subject is not None or originals
        if m_is_given or method != "exact" or len(source.files) > 1 or roles:
            raise click.UsageError(
                "--own goes with one published file, without --provider, --subject, --m, --method "
                "and --originals; pool the rows of those who collude"
            )
        rows = read_table(source.others(own), **declared)
        told = None
        if row_groups is not None:
            told = read_table(
                source.others((row_groups,)), **sensitive_declarations(source, declared)
            )
        shown = read_table(source, **sensitive_declarations(source, declared))
        view = own_view(shown, rows, constraint, left_out, told)
        body = {**view.body(), "constraint": str(constraint)}
        emit(dump("own-view", 3, body), [view.explain()])
        private = view.verdict == "holds"
    elif left_out or (row_groups is not None and not originals):
        raise click.UsageError(
            "--left-out and --row-groups go with --own; --row-groups with --originals"
        )
    elif originals:
        usual = method == "exact"
        named = usual or method in MAKING
        if len(source.files) < 2 or not named or source.subject is not None:
            raise click.UsageError(
                "--originals goes with a published file and then those of the providers, without "
                "--subject; --method says how it was made"
            )
        shown = read_table(
            source.others(source.files[:1]), **sensitive_declarations(source, declared)
        )
        rest = replace(source, files=source.files[1:])
        require_provider(rest, m)
        told = None
        if row_groups is not None:
            told = _all_row_groups(source, row_groups, sensitive_declarations(source, declared))
        made = recipe if usual else {"method": method, **recipe}
        rows = read_table(rest, **declared)
        found = verify_published(shown, rows, constraint, m, bound, told, made)
        lines = [found.explain(), *_largest_lines(found.largest, m)]
        emit(dump("published-verdict", 3, _body(found, found.largest)), lines)
        private = found.private is True
    else:
        secret = sensitive_declarations(source, declared)
        if secret != declared:
            raise click.UsageError(
                "--ordinal and --hierarchy of quasi-identifiers go with --own and --originals"
            )
        require_provider(source, m)
        table = read_table(source, backend, **secret)
        most = None
        with at_work(backend):
            if backend == "spark":
                from quiltwork.tables.spark.session import on_spark

                table, bound = on_spark(table), 1
            verdict = verify_m_privacy(table, constraint, m, method, bound)
        if backend == "local" and len(table.encoded.providers) > 1:
            most = max_m_above(table, constraint, bound, verdict.m if verdict.private else -1)
        lines = [verdict.explain(), *_largest_lines(most, verdict.m)]
        emit(dump("verdict", 1, _body(verdict, most)), lines)
        private = verdict.private
    if not private:
        click.get_current_context().exit(1)


def _largest_lines(largest: MaxM | None, asked: int) -> list[str]:
    """Say the largest m, where it is known who has which rows."""
    return [] if largest is None else [f"Largest m: {int(largest)}. {largest.explain(asked)}"]


def _body(verdict: Verdict | PublishedVerdict, largest: MaxM | None) -> dict[str, Any]:
    return {**verdict.body(), "largest": None if largest is None else largest.body()}


def _all_row_groups(source: TableFiles, folder: str, secret: dict[str, Any]) -> Table:
    """Read the rows of every provider as they were published, a file each."""
    found = sorted(str(path) for path in Path(folder).glob("*.csv"))
    if not found:
        raise InvalidInputError(f"There is no CSV file in the folder {folder!r}.")
    return read_table(replace(source, files=tuple(found), provider=None), **secret)
