"""`quiltwork risk`: what a table reveals, alone or together with an earlier release."""

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
        "An earlier release about the same people: whom do both pin down together?", "FILE"
    ),
    original: tuple[str, ...] = option(
        "The records behind the table: how well does a learner guess within its groups?", "FILE"
    ),
    declared: dict[str, Any] = option_group(declarations),
    target: str | None = option("Also write a page with plots.", "FILE", names="--report"),
) -> None:
    """Measure what a table reveals as it stands.

    FILES are CSV or Parquet, published or not; several count as one table. With --against, people
    are matched by --subject where both tables have that column, else by overlapping groups. With
    --original the deFinetti attack is carried out and scored. --ordinal and --hierarchy say how
    labels are read.
    """
    from quiltwork.tables.risk import assess, definetti_of_texts
    from quiltwork.tables.risk.report_page import report

    read = [*source.files, *original, *declared["hierarchies"].values(), *filter(None, [against])]
    check_targets(None, target, None, read)
    secret = sensitive_declarations(source, declared)
    if secret != declared and not (against or original):
        raise click.UsageError(
            "--hierarchy and --ordinal of quasi-identifiers go with --against or --original"
        )
    table = read_table(source, **secret)
    compared = None if against is None else _compared(table, against, source, declared)
    learned = None
    if original:
        learned = definetti_of_texts(table, read_table(source.others(original), **declared))
    found = assess(table, compared, learned)
    body = found.body()
    lines = _lines(found)
    if target is not None:
        written = report(found, ", ".join(Path(file).name for file in source.files)).write(target)
        body["html"] = str(written)
        lines += ["", f"The page is in {written}."]
    emit(dump("risk", 2, body), lines)


def _compared(
    table: Table, against: str, source: TableFiles, declared: dict[str, dict[str, Any]]
) -> Intersection:
    from quiltwork.tables.input.frames import open_frame
    from quiltwork.tables.risk import intersection
    from quiltwork.tables.table import Table

    frame = open_frame(against, split_list(source.text), *source.reading.of([against]))
    shared = table.subject is not None and table.subject in frame.names
    earlier = Table(
        frame,
        None,
        table.quasi_identifiers,
        table.sensitive,
        subject=table.subject if shared else None,
        ordinal=table.ordinal,
        hierarchies=table.hierarchies,
        missing=table.missing,
        levels=table.levels,
        count_missing=table.count_missing,
    )
    labels = (
        {name: one for name, one in declared[what].items() if name in table.quasi_identifiers}
        for what in ("ordinal", "hierarchies")
    )
    return intersection(earlier, table, *labels)


def _lines(found: Assessment) -> list[str]:
    models, known = found.models, found.reidentification
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
        ("highest re-identification risk", percent(known.highest, 2)),
        ("mean re-identification risk", percent(known.mean, 2)),
        ("unique people", f"{known.unique}"),
    ]
    for one in found.disclosures:
        told = f"{percent(one.mean)} (without groups {percent(one.base)})"
        rows.append((f"best guess of {one.attribute}", told))
        rows.append((f"records certain in {one.attribute}", f"{one.certain}"))
    lines = [f"{counted(found.rows, 'record')} in {counted(known.groups, 'group')}", ""]
    lines += text_table(["measure", "value"], rows)
    lines += ["", "Attacks on the table:"]
    return lines + [f"- {one.attack} ({one.decided}): {one.found}" for one in found.attacks]
