"""`quiltwork compare`: candidate tables of the same records side by side, risk against utility."""

from __future__ import annotations

from itertools import product
from typing import Any

import click

from quiltwork.cli.command import (
    command,
    exact_number,
    option,
    option_group,
    plot_option,
    split_list,
)
from quiltwork.cli.output import check_targets, deliver, progress, report_and_chart, text_table
from quiltwork.cli.table_options import (
    MAKING,
    SPLITS,
    TableFiles,
    declarations,
    join_constraints,
    read_table,
    require_provider,
)
from quiltwork.exact import percent

_CHOICES: dict[str, Any] = {"k": int, "l": int, "t": exact_number, "m": int}
_CHOICES |= {"suppression": exact_number, "method": MAKING, "split": SPLITS}


def candidate_choices(
    k: str | None = option("k-anonymity: records in every group.", "LIST"),
    l: str | None = option("Distinct sensitive values in every group.", "LIST"),  # noqa: E741
    t: str | None = option("t-closeness, all values equally far apart.", "LIST"),
    m: str = option("How many providers may collude.", "LIST"),
    suppression: str = option("Shares of rows that may be left out.", "LIST", default="0"),
    method: str = option("provider-aware, baseline, separate.", "LIST", default="provider-aware"),
    split: str | None = option("loss, range, fitness.", "LIST"),
) -> dict[str, list[Any]]:
    """Return the values of each option that was typed."""
    # Options have the names of `anonymize`'s arguments, which `compare` passes on.
    return {name: _listed(name, text) for name, text in locals().items() if text is not None}


@command(
    example="""
    quiltwork compare a.csv b.csv c.csv --quasi age,zip --sensitive disease \\
        --k 3,5,10 --l 2 --m 1 --plot candidates.svg
    quiltwork compare all.parquet --provider hospital --quasi age,zip --sensitive disease \\
        --k 30 --l 2,4 --m 0,1,3 --method baseline,provider-aware --plot candidates.png
    """
)
def compare(
    source: TableFiles = option_group(TableFiles),
    varied: dict[str, list[Any]] = option_group(candidate_choices),
    declared: dict[str, Any] = option_group(declarations),
    plot: str | None = plot_option,
) -> None:
    """Compare candidate tables before one is published.

    Each option takes one value or several, and every combination is a candidate, made as
    `anonymize` makes it; those that cannot be made are listed with the reason. For each candidate
    it prints the share of people that a recipient recognises, the share of sensitive values that
    it guesses, and the error of random range queries.
    """
    from quiltwork.errors import NotPrivateError
    from quiltwork.tables.anonymization import anonymize
    from quiltwork.tables.comparison import compare as measured

    require_provider(source, max(varied["m"]))
    check_targets(None, None, plot, (*source.files, *declared["hierarchies"].values()))
    table = read_table(source, **declared)
    tables, refused = {}, {}
    with progress([*product(*varied.values())], "Anonymizing") as each:
        for values in each:
            chosen = dict(zip(varied, values, strict=True))
            # Candidates are named by what distinguishes them.
            varying = [n for n, all_ in varied.items() if len(all_) > 1] or ["m"]
            name = ", ".join(
                v if n in ("method", "split") else f"{n}={float(v):g}"
                for n, v in chosen.items()
                if n in varying
            )
            constraint = join_constraints({n: chosen.pop(n) for n in "klt" if n in chosen})
            try:
                tables[name] = anonymize(table, constraint, **chosen)
            # A combination that is impossible is part of the answer, not a failure of the command.
            except NotPrivateError as error:
                refused[name] = str(error)
    if not tables:
        raise NotPrivateError(next(iter(refused.values())))
    comparison = measured(table, tables)
    header = ["table", "groups", "left out", "recognised", "guessed", "GCP", "query error"]
    rows = [
        (
            candidate.name,
            f"{candidate.groups:,}",
            f"{candidate.suppressed:,}",
            percent(candidate.recognised, 2),
            percent(candidate.guessed),
            f"{candidate.gcp:.3f}",
            f"{candidate.error:.3f}",
        )
        for candidate in comparison.candidates
    ]
    lines = [*text_table(header, rows), *(f"{name}: {why}" for name, why in refused.items())]
    deliver(comparison.to_json(), lines, report_and_chart(comparison, None, plot))


def _listed(name: str, text: str) -> list[Any]:
    """Parse the values of an option, each once."""
    kind, words = _CHOICES[name], list(dict.fromkeys(split_list(text)))
    try:
        values = [word if isinstance(kind, tuple) else kind(word) for word in words]
    except ValueError:
        values = []
    if not values or (isinstance(kind, tuple) and not {*values} <= {*kind}):
        expected = f"of {', '.join(kind)}" if isinstance(kind, tuple) else "of numbers"
        raise click.UsageError(
            f"--{name} must be a list {expected}, separated by commas, not {text!r}"
        )
    return values
