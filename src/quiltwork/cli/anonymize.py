"""`quiltwork anonymize`: publishes the records of several providers in groups they cannot undo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import command, option, option_group, split_list
from quiltwork.cli.output import as_json, check_targets, emit, note, progress
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
)
from quiltwork.errors import InvalidInputError
from quiltwork.exact import counted, percent
from quiltwork.files import dump

if TYPE_CHECKING:
    from quiltwork.tables.constraints import Constraint
    from quiltwork.tables.publishing.writing import Formulas


@command(
    example="""
    quiltwork anonymize a.csv b.csv c.csv --quasi age,zip --sensitive disease \\
        --k 3 --l 2 --m 1 --output published.csv
    quiltwork anonymize all.parquet --provider hospital --quasi age,zip,sex --sensitive disease \\
        --k 30 --l 4 --m 3 --hierarchy zip=zip.csv --report report.html \\
        --output published.parquet
    quiltwork anonymize large.parquet --provider hospital --quasi age,zip --sensitive disease \\
        --k 30 --l 4 --m 3 --backend spark --output published.parquet
    """
)
def anonymize(
    source: TableFiles = option_group(TableFiles),
    constraint: Constraint = option_group(constraint_from_options),
    m: int = m_option,
    method: Any = option(
        "Cut between providers too where it helps, never (baseline), or each alone (separate).",
        kind=MAKING,
        default="provider-aware",
    ),
    recipe: dict[str, Any] = option_group(recipe_from_options),
    declared: dict[str, Any] = option_group(declarations),
    carry: str = option(
        "Further columns to publish as they are; whoever knows them recognises the record.",
        "COLUMNS",
        default="",
    ),
    backend: Any = backend_option,
    output: str = option(
        "The published table: .csv or .parquet; - prints CSV; with --backend spark, a new folder.",
        "FILE",
        names="-o --output",
    ),
    escape_formulas: bool = option(
        "Put an apostrophe before texts such as =1+1, which a spreadsheet would evaluate."
    ),
    report: str | None = option("Also write an HTML report on risks and information loss.", "FILE"),
    row_groups: str | None = option(
        "A new folder for the row groups: each provider's own rows as published, for it alone.",
        "FOLDER",
    ),
) -> None:
    """Anonymize the records of several providers.

    FILES are CSV or Parquet: one per provider, or one with a column that names providers. In the
    published table, every group of rows with equal quasi-identifiers satisfies the constraint,
    whichever m providers pool their own records. Only quasi-identifiers, sensitive columns and
    those of --carry are published. Exit code 1: no such table was found, and nothing is written.
    """
    from quiltwork.tables.anonymization import anonymize as run
    from quiltwork.tables.publishing.for_providers import write_row_groups
    from quiltwork.tables.publishing.writing import check_ending, check_formulas

    require_provider(source, m)
    formulas: Formulas = "escape" if escape_formulas else "keep"
    printed = output == "-"
    if printed and (backend == "spark" or as_json()):
        raise click.UsageError(
            "-o - prints the table: use it with --backend local and without --json"
        )
    # Paths and options are checked before the computation, so that no work is lost.
    check_formulas(formulas, check_ending("-.csv" if printed else output))
    # Before the long computation, so that a bad path costs nothing.
    check_targets(
        None if printed else output,
        report,
        None,
        (*source.files, *declared["hierarchies"].values()),
    )
    if backend == "spark" and Path(output).exists():
        raise InvalidInputError(f"{output!r} already exists; choose another folder.")
    if row_groups is not None and (backend == "spark" or Path(row_groups).exists()):
        raise click.UsageError("--row-groups must be a new folder, with --backend local")
    carried = split_list(carry)
    table = read_table(source, backend, carried=carried, **declared)
    with at_work(backend):
        with progress(1 if table.kind == "spark" else table.encoded.rows, "Anonymizing") as bar:

            def advance(done: int, total: int) -> None:
                bar.length = total  # a second phase starts it again
                bar.update(done - bar.pos)

            publication = run(table, constraint, m, method, backend, progress=advance, **recipe)
        with _written(output) as target:
            publication.write(target, formulas)
        if report is not None:
            publication.report(report)
        body = publication.summary()
        if row_groups is not None:
            write_row_groups(publication, row_groups, formulas)
    body |= {
        "constraint": publication.constraint,
        "m": publication.m,
        "method": publication.method,
        "output": output,
    }
    if carried:
        body["carried"] = carried
    lines = _lines(body, publication.about_providers, (report, row_groups))
    if printed:
        for line in lines:
            note(line)
        return
    emit(dump("anonymized", 1, body), lines)


@contextmanager
def _written(output: str) -> Iterator[str]:
    """Yield the path to write the table to; for `-`, a temporary file that is then printed."""
    if output != "-":
        yield output
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "published.csv")
        yield str(path)
        click.echo(path.read_bytes(), nl=False)


def _lines(
    body: dict[str, Any], about_providers: Iterable[str], written: Iterable[str | None]
) -> Iterator[str]:
    """Yield the lines to print about the published table."""
    left_out = f", {body['suppressed']:,} left out" if body["suppressed"] else ""
    loss, m = body["loss"], body["m"]
    any_coalition = f"whichever {m} providers collude"
    against = {0: "against outsiders", 1: "whichever provider looks"}.get(m, any_coalition)
    yield (
        f"{counted(body['rows'], 'row')} in {counted(body['groups'], 'group')}{left_out}: "
        f"{body['constraint']}, {against} (verified)."
    )
    yield f"Ranges cover {percent(loss['gcp'])} of their columns on average (GCP)."
    size, discernibility = loss["average_class_size"], loss["discernibility"]
    yield f"{size:.1f} records per group; discernibility {discernibility:,}."
    yield from about_providers
    if "carried" in body:
        listed = ", ".join(body["carried"])
        yield f"Published as they are, without any protection: {listed}."
    for path in (body["output"], *written):
        if path is not None and path != "-":
            yield f"wrote {path}"
