"""`quiltwork compare`: several candidate tables of the same records, risk against utility."""

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
from quiltwork.cli.output import check_targets, deliver, pictures, progress, text_table
from quiltwork.cli.table_options import (
    MAKING,
    SPLITS,
    TableFiles,
    constraint_of,
    declarations,
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
    """Return the values to choose from, by option; those that were not typed are left out."""
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
    `anonymize` makes it; those that cannot be made are named. Shown are how many people a recipient
    recognises, how many sensitive values it guesses, and the error of random range queries.
    """
    from quiltwork.errors import NotPrivateError
    from quiltwork.tables.anonymization import anonymize
    from quiltwork.tables.comparison import compare as measured

    require_provider(source, max(varied["m"]))
    check_targets(None, None, plot, (*source.files, *declared["hierarchies"].values()))
    table = read_table(source, **declared)
    made, refused = {}, {}
    with progress([*product(*varied.values())], "Anonymizing") as each:
        for values in each:
            chosen = dict(zip(varied, values, strict=True))
            several = [n for n, all_ in varied.items() if len(all_) > 1] or ["m"]
            name = ", ".join(
                v if n in ("method", "split") else f"{n}={float(v):g}"
                for n, v in chosen.items()
                if n in several
            )
            constraint = constraint_of({n: chosen.pop(n) for n in "klt" if n in chosen})
            try:
                made[name] = anonymize(table, constraint, **chosen)
            except NotPrivateError as error:
                refused[name] = str(error)
    if not made:
        raise NotPrivateError(next(iter(refused.values())))
    found = measured(table, made)
    header = ["table", "groups", "left out", "recognised", "guessed", "GCP", "query error"]
    rows = [
        (
            one.name,
            f"{one.groups:,}",
            f"{one.suppressed:,}",
            percent(one.recognised, 2),
            percent(one.guessed),
            f"{one.gcp:.3f}",
            f"{one.error:.3f}",
        )
        for one in found.candidates
    ]
    lines = [*text_table(header, rows), *(f"{name}: {why}" for name, why in refused.items())]
    deliver(found.to_json(), lines, pictures(found, None, plot))


def _listed(name: str, text: str) -> list[Any]:
    """Read the values of an option, each once."""
    kind, found = _CHOICES[name], list(dict.fromkeys(split_list(text)))
    try:
        values = [one if isinstance(kind, tuple) else kind(one) for one in found]
    except ValueError:
        values = []
    if not values or (isinstance(kind, tuple) and not {*values} <= {*kind}):
        what = f"of {', '.join(kind)}" if isinstance(kind, tuple) else "of numbers"
        raise click.UsageError(f"--{name} is a list {what}, separated by commas, not {text!r}")
    return values
