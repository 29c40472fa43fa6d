"""Write results as figures, CSV, an HTML page, and Markdown for the documentation."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

from papers.result import Row, Sheet, Value
from papers.runner import Reproduction
from quiltwork import files
from quiltwork.report import (
    Html,
    code,
    figure,
    folded,
    joined,
    link,
    page,
    paragraph,
    section,
    standalone_svg,
    table,
)
from quiltwork.report.figures import available, png

LONG = 20
"""Longer tables are folded on the page, and longer sheets are written as files only."""
HEADER = ("quantity", "published", "ours", "difference", "unit", "note")


def write_all(outcomes: Sequence[Reproduction], folder: Path) -> list[Path]:
    """Write figures, CSV and `index.html`; return the paths, the page first."""
    contents = {folder / "index.html": _index(outcomes).encode()}
    for outcome in outcomes:
        contents |= _tables(outcome, folder) | _drawings(outcome, folder) | _images(outcome, folder)
    return _write_files(contents)


def write_docs(outcomes: Iterable[Reproduction], folder: Path) -> list[Path]:
    """Write `<name>.md` with its SVG figures, for the documentation to include."""
    contents: dict[Path, bytes] = {}
    for outcome in outcomes:
        contents[folder / f"{outcome.experiment.name}.md"] = _markdown(outcome).encode()
        contents |= _drawings(outcome, folder)
    return _write_files(contents)


def _tables(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    stem = outcome.experiment.name
    contents = {folder / f"{stem}.csv": _csv(HEADER, map(_cells, outcome.result.rows)).encode()}
    for sheet in outcome.result.sheets:
        contents[folder / f"{stem}-{sheet.name}.csv"] = _csv(sheet.header, sheet.rows).encode()
    return contents


def _drawings(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    return {
        folder / f"{outcome.experiment.name}-{drawing.name}.svg": standalone_svg(
            drawing.chart
        ).encode()
        for drawing in outcome.result.figures
    }


def _images(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    """Draw the PNG files, which need the `plot` extra."""
    if not available():
        return {}
    stem = outcome.experiment.name
    figures = outcome.result.figures
    return {folder / f"{stem}-{drawing.name}.png": png(drawing.chart) for drawing in figures}


def _write_files(contents: dict[Path, bytes]) -> list[Path]:
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, content)
    return list(contents)


def _cells(row: Row) -> tuple[Value, ...]:
    published = "" if row.published is None else row.published
    return (row.quantity, published, row.ours, row.comparison(), row.unit, row.note)


def _texts(row: Row) -> tuple[str, ...]:
    """Return the cells as text for people; `_cells` keeps every digit for CSV."""
    texts = (row.published_text(), row.ours_text(), row.comparison())
    return (row.quantity, *texts, row.unit, row.note)


def _used_columns(rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the columns that some row fills; notes are often empty."""
    return [i for i in range(len(HEADER)) if any(row[i] for row in rows)]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def _index(outcomes: Sequence[Reproduction]) -> str:
    sizes = {outcome.size for outcome in outcomes}
    lead = (
        "Published values beside the ones computed by this package. Where they differ, the note "
        "says why."
    )
    footer = f"Sizes: {', '.join(sorted(sizes)) or 'none'}."
    return page("Reproduction", lead, [_section(outcome) for outcome in outcomes], footer)


def _section(outcome: Reproduction) -> Html:
    stem = outcome.experiment.name
    parameters = ", ".join(
        f"{name} = {value:,}" for name, value in outcome.experiment.parameters(outcome.size).items()
    )
    texts = [_texts(row) for row in outcome.result.rows]
    used = _used_columns(texts)
    downloads = [f"{stem}.csv", *(f"{stem}-{sheet.name}.csv" for sheet in outcome.result.sheets)]
    values = table(
        f"{outcome.experiment.item} ({outcome.size}"
        f"{': ' + parameters if parameters else ''}; {outcome.seconds:.3g} s)",
        [HEADER[i] for i in used],
        [[row[i] for i in used] for row in texts],
    )
    return section(
        outcome.experiment.title,
        paragraph(outcome.result.summary),
        *_values_and_figures(
            values, len(texts), [figure(drawing.chart) for drawing in outcome.result.figures]
        ),
        *(table(sheet.name, sheet.header, _digits(sheet)) for sheet in _short_sheets(outcome)),
        paragraph(joined([Html("Files:"), *(link(name, name) for name in downloads)])),
        paragraph("To compute it again:"),
        code(f"make reproduce ONLY={stem}{_flag(outcome)}"),
        anchor=stem,
    )


def _values_and_figures(values: Html, rows: int, figures: list[Html]) -> list[Html]:
    """Put a short table before its figures; fold a long one away after them."""
    if rows <= LONG:
        return [values, *figures]
    return [*figures, folded(f"All {rows} values", values)]


def _flag(outcome: Reproduction) -> str:
    return " FULL=1" if outcome.size == "full" else ""


def _markdown(outcome: Reproduction) -> str:
    stem = outcome.experiment.name
    rows = [_texts(row) for row in outcome.result.rows]
    used = _used_columns(rows)
    lines = [
        f"<!-- Written by: make reproduce ONLY={stem}{_flag(outcome)} DOCS=1; do not edit. -->",
        "",
        outcome.result.summary,
        "",
        _markdown_row([HEADER[i] for i in used]),
        _markdown_row(["---"] * len(used)),
        *(_markdown_row([row[i] for i in used]) for row in rows),
        "",
    ]
    for sheet in _short_sheets(outcome):
        lines += [_markdown_row(sheet.header), _markdown_row(["---"] * len(sheet.header))]
        lines += [*map(_markdown_row, _digits(sheet)), ""]
    for drawing in outcome.result.figures:
        lines += [f"![{drawing.chart.title}]({stem}-{drawing.name}.svg)", ""]
    lines += [f"Again: `make reproduce ONLY={stem}{_flag(outcome)}`", ""]
    return "\n".join(lines)


def _short_sheets(outcome: Reproduction) -> list[Sheet]:
    return [sheet for sheet in outcome.result.sheets if len(sheet.rows) <= LONG]


def _digits(sheet: Sheet) -> list[list[str]]:
    """Return a sheet's cells with four digits, for people."""
    return [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in sheet.rows
    ]


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
