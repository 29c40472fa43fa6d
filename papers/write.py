"""Results as files: figures, CSV, one HTML page, and pieces that the documentation includes."""

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
"""Tables with more rows than this are folded on the page, and sheets are files only."""
HEADER = ("quantity", "published", "ours", "difference", "unit", "note")


def write_all(outcomes: Sequence[Reproduction], folder: Path) -> list[Path]:
    """Write figures, CSV and `index.html`; return the paths, the page first."""
    pieces = {folder / "index.html": _index(outcomes).encode()}
    for one in outcomes:
        pieces |= _tables(one, folder) | _drawings(one, folder) | _images(one, folder)
    return _written(pieces)


def write_docs(outcomes: Iterable[Reproduction], folder: Path) -> list[Path]:
    """Write `<name>.md` with its SVG figures, for the documentation to include."""
    pieces: dict[Path, bytes] = {}
    for one in outcomes:
        pieces[folder / f"{one.experiment.name}.md"] = _markdown(one).encode()
        pieces |= _drawings(one, folder)
    return _written(pieces)


def _tables(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    stem = outcome.experiment.name
    pieces = {folder / f"{stem}.csv": _csv(HEADER, map(_cells, outcome.result.rows)).encode()}
    for sheet in outcome.result.sheets:
        pieces[folder / f"{stem}-{sheet.name}.csv"] = _csv(sheet.header, sheet.rows).encode()
    return pieces


def _drawings(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    return {
        folder / f"{outcome.experiment.name}-{one.name}.svg": standalone_svg(one.chart).encode()
        for one in outcome.result.figures
    }


def _images(outcome: Reproduction, folder: Path) -> dict[Path, bytes]:
    """Draw the PNG files, which need the `plot` extra."""
    if not available():
        return {}
    stem = outcome.experiment.name
    figures = outcome.result.figures
    return {folder / f"{stem}-{one.name}.png": png(one.chart) for one in figures}


def _written(pieces: dict[Path, bytes]) -> list[Path]:
    for path, content in pieces.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, content)
    return list(pieces)


def _cells(row: Row) -> tuple[Value, ...]:
    published = "" if row.published is None else row.published
    return (row.quantity, published, row.ours, row.comparison(), row.unit, row.note)


def _shown(row: Row) -> tuple[str, ...]:
    """Return the cells as text for people; `_cells` keeps every digit for CSV."""
    shown = (row.published_text(), row.ours_text(), row.comparison())
    return (row.quantity, *shown, row.unit, row.note)


def _used_columns(rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Leave out columns that no row fills, such as notes."""
    return [i for i in range(len(HEADER)) if any(row[i] for row in rows)]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def _index(outcomes: Sequence[Reproduction]) -> str:
    sizes = {one.size for one in outcomes}
    lead = (
        "Published values beside the ones computed by this package. Where they differ, the note "
        "says why."
    )
    footer = f"Sizes: {', '.join(sorted(sizes)) or 'none'}."
    return page("Reproduction", lead, [_section(one) for one in outcomes], footer)


def _section(outcome: Reproduction) -> Html:
    stem = outcome.experiment.name
    parameters = ", ".join(
        f"{name} = {value:,}" for name, value in outcome.experiment.parameters(outcome.size).items()
    )
    shown = [_shown(row) for row in outcome.result.rows]
    used = _used_columns(shown)
    downloads = [f"{stem}.csv", *(f"{stem}-{sheet.name}.csv" for sheet in outcome.result.sheets)]
    values = table(
        f"{outcome.experiment.item} ({outcome.size}"
        f"{': ' + parameters if parameters else ''}; {outcome.seconds:.3g} s)",
        [HEADER[i] for i in used],
        [[row[i] for i in used] for row in shown],
    )
    return section(
        outcome.experiment.title,
        paragraph(outcome.result.summary),
        *_in_order(values, len(shown), [figure(one.chart) for one in outcome.result.figures]),
        *(table(sheet.name, sheet.header, _digits(sheet)) for sheet in _short_sheets(outcome)),
        paragraph(joined([Html("Files:"), *(link(name, name) for name in downloads)])),
        paragraph("To compute it again:"),
        code(f"make reproduce ONLY={stem}{_flag(outcome)}"),
        anchor=stem,
    )


def _in_order(values: Html, rows: int, figures: list[Html]) -> list[Html]:
    """Put a short table before its figures; fold a long one away after them."""
    if rows <= LONG:
        return [values, *figures]
    return [*figures, folded(f"All {rows} values", values)]


def _flag(outcome: Reproduction) -> str:
    return " FULL=1" if outcome.size == "full" else ""


def _markdown(outcome: Reproduction) -> str:
    stem = outcome.experiment.name
    rows = [_shown(row) for row in outcome.result.rows]
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
