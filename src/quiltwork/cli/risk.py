"""`quiltwork risk`: measures what a table reveals, alone or together with an earlier release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import command, option, option_group, split_list
from quiltwork.cli.output import check_targets, emit, text_table
from quiltwork.cli.table_options import (
    TableFiles,
    declarations,
    read_table,
    sensitive_declarations,
)
from quiltwork.exact import counted, percent
from quiltwork.files import dump

if TYPE_CHECKING:
    from quiltwork.tables.risk import Assessment, Intersection
    from quiltwork.tables.table import Table


@command(
    example="""
    quiltwork risk published.csv --quasi age,zip --sensitive disease
    quiltwork risk published.parquet --quasi age,zip --sensitive disease --against earlier.parquet
    quiltwork risk published.csv --quasi age,zip --sensitive disease --report risk.html \\
        --original a.csv --original b.csv
    """
)
def risk(
    source: TableFiles = option_group(TableFiles),
    against: str | None = option(
        "An earlier release about the same people: which people do both pin down together?", "FILE"
    ),
    original: tuple[str, ...] = option(
        "The original records: how well does a trained model guess within the groups?", "FILE"
    ),
    declared: dict[str, Any] = option_group(declarations),
    target: str | None = option("Also write an HTML report with plots.", "FILE", names="--report"),
) -> None:
    """Measure what a table reveals as it stands.

    FILES are CSV or Parquet, published or not; several count as one table. With --against, people
    are matched by --subject if both tables have that column, else by overlapping groups. With
    --original, the deFinetti attack is carried out and scored. --ordinal and --hierarchy define
    how labels are read.
    """
    from quiltwork.tables.risk import assess, definetti_of_texts
    from quiltwork.tables.risk.report_page import report

    read = [*source.files, *original, *declared["hierarchies"].values(), *filter(None, [against])]
    check_targets(None, target, None, read)
    of_sensitive = sensitive_declarations(source, declared)
    # Declarations of quasi-identifiers are used only to match people between tables.
    if of_sensitive != declared and not (against or original):
        raise click.UsageError(
            "--hierarchy and --ordinal of quasi-identifiers go with --against or --original"
        )
    table = read_table(source, **of_sensitive)
    compared = None if against is None else _compared(table, against, source, declared)
    learned = None
    if original:
        learned = definetti_of_texts(table, read_table(source.others(original), **declared))
    result = assess(table, compared, learned)
    body = result.body()
    lines = _lines(result)
    if target is not None:
        page = report(result, ", ".join(Path(file).name for file in source.files)).write(target)
        body["html"] = str(page)
        lines += ["", f"Wrote the report to {page}."]
    emit(dump("risk", 2, body), lines)


def _compared(
    table: Table, against: str, source: TableFiles, declared: dict[str, dict[str, Any]]
) -> Intersection:
    """Return the comparison with an earlier release."""
    from quiltwork.tables.input.frames import open_frame
    from quiltwork.tables.risk import intersection
    from quiltwork.tables.table import Table

    frame = open_frame(against, split_list(source.text), source.reading.of([against])[0])
    has_subject = table.subject is not None and table.subject in frame.names
    earlier = Table(
        frame,
        None,
        table.quasi_identifiers,
        table.sensitive,
        subject=table.subject if has_subject else None,
        ordinal=table.ordinal,
        hierarchies=table.hierarchies,
        missing=table.missing,
        levels=table.levels,
        count_missing=table.count_missing,
    )
    labels = (
        {name: value for name, value in declared[kind].items() if name in table.quasi_identifiers}
        for kind in ("ordinal", "hierarchies")
    )
    return intersection(earlier, table, *labels)


def _lines(result: Assessment) -> list[str]:
    """Return the lines to print about an assessment."""
    models, linkage = result.models, result.reidentification
    recursive = "none" if models.recursive_c is None else f"c = {models.recursive_c}"
    rows = [
        ("k-anonymity", str(models.k)),
        ("(alpha, k)-anonymity", f"alpha = {models.alpha:.4f}"),
        ("distinct l-diversity", str(models.distinct_l)),
        ("entropy l-diversity", f"{models.entropy_l:.3f}"),
        ("recursive (c, l)-diversity", recursive),
        ("t-closeness", f"{models.t:.4f}"),
        ("beta-likeness", f"{models.beta:.3f}"),
        ("enhanced beta-likeness", f"{models.enhanced_beta:.3f}"),
        ("delta-disclosure", f"{models.delta:.3f}"),
        ("highest re-identification risk", percent(linkage.highest, 2)),
        ("mean re-identification risk", percent(linkage.mean, 2)),
        ("unique people", f"{linkage.unique}"),
    ]
    for disclosure in result.disclosures:
        share = f"{percent(disclosure.mean)} (without groups {percent(disclosure.base)})"
        rows.append((f"best guess of {disclosure.attribute}", share))
        rows.append((f"records certain in {disclosure.attribute}", f"{disclosure.certain}"))
    lines = [f"{counted(result.rows, 'record')} in {counted(linkage.groups, 'group')}", ""]
    lines += text_table(["measure", "value"], rows)
    if result.unit_note:
        lines += ["", result.unit_note]
    lines += ["", "Attacks on the table:"]
    return lines + [
        f"- {attack.attack} ({attack.decided}): {attack.found}" for attack in result.attacks
    ]
