"""Options that the commands on tables share: files to a table, options to constraints.

A single file needs a column that names the provider; several files are one provider each, named
after the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quiltwork.cli.command import (
    argument,
    delimiter_option,
    encoding_option,
    exact_number,
    option,
    option_group,
    split_list,
)
from quiltwork.delimited import DialectOptions
from quiltwork.errors import InvalidInputError

if TYPE_CHECKING:
    from quiltwork.tables.constraints import Constraint
    from quiltwork.tables.input.frames import FileReading
    from quiltwork.tables.table import Table

PROVIDER = "provider"
"""The column that names whose file a record was in, unless a file has such a column."""

backend_option = option(
    "Where to compute; Spark reads Parquet files where its workers are.",
    kind=("local", "spark"),
    default="local",
)
m_option = option("How many providers collude.", default=1)

MAKING = ("provider-aware", "baseline", "separate")
"""How `anonymize` makes groups."""
SPLITS = ("loss", "range", "fitness")


@dataclass(frozen=True)
class ReadingOptions:
    """The options for reading files, as typed; what was not typed is detected."""

    delimiter: str | None = delimiter_option
    encoding: str | None = encoding_option
    na_values: str | None = option(
        "Further words for a missing value: -9,n.d.", "LIST", names="--na"
    )
    rename: tuple[str, ...] = option(
        "What a column is called in some files, and here: AGE=age; repeatable.", "OLD=NEW"
    )
    each: tuple[str, ...] = option(
        "One of these four for one file: north.csv:delimiter=;  repeatable.",
        "FILE:NAME=VALUE",
        names="--in",
    )

    def of(self, files: Sequence[str]) -> list[FileReading]:
        """Return the reading options of each file."""
        from quiltwork.tables.input.frames import FileReading

        possible_files = [*files, *_typed_texts(click.get_current_context().params)]
        for setting in self.each:
            if not any(_setting(setting, file) for file in possible_files):
                raise click.UsageError(
                    "--in must be FILE:NAME=VALUE, where FILE is one of the files and NAME is "
                    f"delimiter, encoding, na or rename, not {setting!r}"
                )
        readings = []
        for file in files:
            settings = [pair for setting in self.each if (pair := _setting(setting, file))]
            by_name = dict(settings)
            words = [*split_list(self.na_values or "")]
            words += [
                word for name, value in settings if name == "na" for word in split_list(value)
            ]
            renamed = [*self.rename, *(value for name, value in settings if name == "rename")]
            dialect = DialectOptions(
                by_name.get("delimiter", self.delimiter),
                encoding=by_name.get("encoding", self.encoding),
                na_values=tuple(words),
            )
            readings.append(FileReading(dialect, _pairs(renamed, "--rename")))
        return readings

    @property
    def is_usual(self) -> bool:
        """Whether no option was typed."""
        return self == ReadingOptions(None, None, None, (), ())


def _typed_texts(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield every text that was typed, except the settings of single files."""
    for name, value in params.items():
        if name != "each":
            yield from (text for text in (value if isinstance(value, tuple) else (value,)) if text)


def _setting(text: str, file: Any) -> tuple[str, str] | None:
    """Parse a setting of `--in`, if it is about the file."""
    # The path as typed, or only the file's name.
    for name in (str(file), Path(str(file)).name):
        if text.startswith(f"{name}:"):
            key, sign, value = text[len(name) + 1 :].partition("=")
            if sign and value and key in ("delimiter", "encoding", "na", "rename"):
                return key, value
    return None


@dataclass(frozen=True)
class TableFiles:
    """The files of a table and the roles of their columns, as typed."""

    files: tuple[str, ...] = argument()
    provider: str | None = option(
        "The provider of each record; without it, several files are one provider each.", "COLUMN"
    )
    quasi: str = option(
        'Quasi-identifiers, separated by commas; "quoted" if a name holds one.', "COLUMNS"
    )
    sensitive: str = option(
        "What must not be inferred; several columns count as their combination.", "COLUMNS"
    )
    subject: str | None = option(
        "The person of each record, if one person can have several records.", "COLUMN"
    )
    missing: str = option(
        "Whether missing values are refused or are a value of their own; missing sensitive values "
        "count for k only.",
        kind=("error", "value"),
        default="error",
    )
    count_missing: bool = option("Missing sensitive values count as a value for l and t too.")
    text: str = option(
        "Columns that are text, whatever they look like; 02410 is text by itself.",
        "COLUMNS",
        default="",
    )
    reading: ReadingOptions = option_group(ReadingOptions)

    def others(self, files: tuple[str, ...]) -> TableFiles:
        """Return other files with the same columns, without providers and subjects."""
        return replace(self, files=files, provider=None, subject=None)


def recipe_from_options(
    split: str | None = option(
        "Cut by the least loss, the widest range (default for baseline), or the paper's score.",
        kind=SPLITS,
    ),
    blind: bool = option("Cut by numbers of records alone, so that the cuts reveal nothing."),
    boxes: str | None = option(
        "Whether a row may fit several boxes; disjoint boxes cost utility, and joint needs them.",
        kind=("overlapping", "disjoint"),
    ),
    relaxed: bool = option("Records with equal values may go to different groups."),
    suppression: Fraction = option(
        "The largest share of rows that may be left out.", "SHARE", default="0"
    ),
) -> dict[str, Any]:
    """Return the options of `anonymize` except the method; only those that were typed."""
    # Untyped options are left out, so that `anonymize` applies its own defaults.
    return {name: chosen for name, chosen in locals().items() if chosen}


def declarations(
    ordinal: tuple[str, ...] = option(
        "A column's values in order, such as grade=low,middle,high; repeatable.", "COLUMN=VALUES"
    ),
    hierarchy: tuple[str, ...] = option(
        "A column's generalizations: CSV lines from value to root; repeatable.", "COLUMN=FILE"
    ),
    level: tuple[str, ...] = option(
        "The level of its hierarchy at which a sensitive column's values are counted, such as "
        "icd=2 for l over chapters; repeatable.",
        "COLUMN=NUMBER",
    ),
) -> dict[str, dict[str, Any]]:
    """Return the declared orders, hierarchies and levels by column, as `Table` takes them."""
    levels = _pairs(level, "--level")
    if not all(number.isdecimal() for number in levels.values()):
        raise click.UsageError("--level must be COLUMN=NUMBER, such as icd=2")
    return {
        "levels": {name: int(number) for name, number in levels.items()},
        "ordinal": {
            name: split_list(values) for name, values in _pairs(ordinal, "--ordinal").items()
        },
        "hierarchies": _pairs(hierarchy, "--hierarchy"),
    }


def sensitive_declarations(
    source: TableFiles, declared: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the declarations of sensitive columns, which published tables have too."""
    # Quasi-identifiers of a published table are texts, so their declarations do not apply.
    names = split_list(source.sensitive)
    return {
        kind: {name: value for name, value in columns.items() if name in names}
        for kind, columns in declared.items()
    }


def _pairs(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Parse NAME=VALUE texts."""
    pairs: dict[str, Any] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise click.UsageError(f"{option} must be COLUMN=…, not {text!r}")
        if name in pairs:
            raise click.UsageError(f"{option} is given twice for {name!r}; give it once")
        pairs[name] = value
    return pairs


def require_provider(source: TableFiles, m: int) -> None:
    """Refuse a single file without a column of providers, unless m = 0."""
    if len(source.files) == 1 and source.provider is None and m > 0:
        raise click.UsageError(
            "name the column of providers with --provider; with --m 0, all rows are one provider's"
        )


def read_table(source: TableFiles, backend: str = "local", **declarations: Any) -> Table:
    """Read the files as a table; `declarations` are orders and hierarchies, as `Table` takes them.

    On Spark, Parquet files become a table that is never collected; other files are read locally.
    """
    from quiltwork.cli.spark_files import all_parquet
    from quiltwork.tables.input.frames import open_frame, open_frames
    from quiltwork.tables.table import Table

    files, provider, as_text = source.files, source.provider, split_list(source.text)
    roles: dict[str, Any] = {
        "subject": source.subject,
        "missing": source.missing,
        "count_missing": source.count_missing,
        **declarations,
    }
    roles["quasi_identifiers"] = _columns(source.quasi, "--quasi")
    roles["sensitive"] = _columns(source.sensitive, "--sensitive")
    if backend == "spark" and all_parquet(files):
        if not source.reading.is_usual:
            raise click.UsageError(
                "--delimiter, --encoding, --na, --rename and --in are for files read locally"
            )
        return _spark_table(files, provider, as_text, roles)
    if len(files) == 1:
        used = _needed(roles, provider)
        frame = open_frame(files[0], as_text, source.reading.of(files)[0], used)
        return Table(frame, provider=provider, **roles)
    parts = _by_provider(files, provider)
    # Providers' files may differ in columns that no option uses.
    needed = _needed(roles, None)
    read = open_frames([*parts.values()], as_text, source.reading.of(files), roles=needed)
    frames = dict(zip(parts, read, strict=True))
    for name, frame in frames.items():  # types of unused columns may differ
        if set(needed) <= set(frame.names):
            frames[name] = frame.only(needed)
    return Table.concat(frames, provider=unused(PROVIDER, needed), **roles)


def _spark_table(
    files: tuple[str, ...], provider: str | None, text: list[str], roles: dict[str, Any]
) -> Table:
    """Return Parquet files as a Spark table."""
    from quiltwork.cli.spark_files import parquet_frame, parquet_of_providers
    from quiltwork.tables.table import Table

    columns = _needed(roles, provider)
    if text:
        raise click.UsageError(
            "--text is for files that are read locally; Parquet files have types"
        )
    if len(files) == 1:
        return Table(parquet_frame(files[0], columns), provider, **roles)
    parts, name = _by_provider(files, provider), unused(PROVIDER, columns)
    return Table(parquet_of_providers(parts, columns, name), name, **roles)


def _needed(roles: dict[str, Any], provider: str | None) -> list[str]:
    """Return the columns that are used, each once."""
    extra = [name for name in (provider, roles["subject"]) if name is not None]
    extra += roles.get("carried", ())
    return list(dict.fromkeys([*roles["quasi_identifiers"], *roles["sensitive"], *extra]))


def _by_provider(files: tuple[str, ...], provider: str | None) -> dict[str, str]:
    """Return each provider's file; providers are named after the files."""
    if provider is not None:
        raise click.UsageError(
            "--provider goes with a single file; several files are one provider each"
        )
    names = [_stem(file) for file in files]
    if len(set(names)) < len(names):
        raise InvalidInputError(
            "Two files have the same name, so their providers would have it too; rename a file."
        )
    return dict(zip(names, files, strict=True))


def unused(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, by appending underscores.

    >>> unused("provider", ["age", "provider"])
    'provider_'
    """
    taken_names = set(taken)
    while name in taken_names:
        name += "_"
    return name


def constraint_from_options(
    k: int | None = option("k-anonymity: records in every group."),
    l: int | None = option("Distinct sensitive values in every group."),  # noqa: E741  (the field's own letter)
    entropy_l: Fraction | None = option("Entropy l-diversity.", "L"),
    recursive_l: str | None = option("Recursive (c, l)-diversity, for example 3,2.", "C,L"),
    t: Fraction | None = option("t-closeness, all values equally far apart.", "T"),
    t_ordered: Fraction | None = option("t-closeness, values in their order.", "T"),
) -> Constraint:
    """Return the conjunction of the constraints that were typed."""
    return join_constraints(locals())


def join_constraints(typed: Mapping[str, Any]) -> Constraint:
    """Return the conjunction of constraints, by the option names of `constraint_from_options`."""
    from quiltwork.tables import constraints as rules

    def recursive(text: str) -> Constraint:
        c, _, number = text.partition(",")
        if not number.strip().isdigit():
            raise click.UsageError("--recursive-l must be C,L, for example 3,2")
        return rules.RecursiveLDiversity(exact_number(c.strip()), int(number))

    kinds: dict[str, Callable[[Any], Constraint]] = {
        "k": rules.KAnonymity,
        "l": rules.LDiversity,
        "entropy_l": rules.EntropyLDiversity,
        "recursive_l": recursive,
        "t": rules.TCloseness,
        "t_ordered": partial(rules.TCloseness, distance="ordered"),
    }
    parts = [kinds[name](value) for name, value in typed.items() if value is not None]
    if not parts:
        raise click.UsageError("give a constraint: --k, --l, --entropy-l, --recursive-l or --t")
    return reduce(and_, parts)


def _columns(text: str, option: str) -> tuple[str, ...]:
    names = tuple(split_list(text))
    if not names:
        raise click.UsageError(f"{option} names no column")
    return names


def _stem(file: str) -> str:
    name = Path(file).name
    for ending in (".gz", ".csv", ".parquet", ".pq"):
        name = name.removesuffix(ending)
    return name
