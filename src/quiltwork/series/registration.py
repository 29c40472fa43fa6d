"""Registered data: the owner's rows are validated once, and no later release refuses them.

The ledger keeps a *mark* for each dataset: a salted digest of the files' paths, sizes and times of
change, the public options by which they are read, the first moment, and the pattern of public gaps.
Every release states when its window begins, so the first moment is public. The mark holds no
digest of the rows: anybody could find a short series by trying all of them. Files that have changed
get another mark, and a release refuses them before a row is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.beliefs.cyclic import require_aligned
from quiltwork.budget.payment import as_payer
from quiltwork.budget.persons import PEOPLE
from quiltwork.delimited import DialectOptions, rows_of_width, with_csv
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries import histogram
from quiltwork.series.reading.read import Series, read_series
from quiltwork.series.releases.data import encode_cells, read_source, states_are_all
from quiltwork.series.releases.gap_patterns import with_pattern, without_pattern
from quiltwork.series.releases.protection import any_series
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.budget import Ledger

_DEFAULTS: tuple[Any, ...] = ("error", None, (), [])
_NOT_READING = ("beliefs",)
_BEGINNING = "first time point"
"""Key, beside the reading options, of the moment at which all sequences begin."""


def register_series(
    ledger: Ledger, dataset: str, source: Any, value: str, **options: Any
) -> Series:
    """Validate files as series of a dataset's beliefs, and register them as its data.

    Errors in rows are reported here, to the owner. From then on `read_registered`, and
    `quiltwork release` with this ledger, accept these files alone, unchanged and read with the same
    options. A dataset of people has no states of its own: name the public ones with `states`.

    Args:
        ledger: the ledger of the dataset.
        dataset: its name.
        source: a path, a folder or a pattern of files.
        value: the column with states or numbers.
        options: as for `read_series`.

    Raises:
        InvalidInputError: as `read_series` and `release` do, for a series that is longer than the
            dataset, and for beliefs about the time of day that were made for another first moment.
        UnsupportedError: for anything but files, and for beliefs without states.
    """
    as_payer(ledger, dataset)
    mark = _mark(source, value, options, secrets.token_hex(8))
    status = ledger.status(dataset)
    beliefs, people = status.beliefs, status.beliefs == (PEOPLE,)
    if people:
        beliefs = (any_series(options.get("states")),)
    if not states_are_all(beliefs):
        raise UnsupportedError(
            "Data are registered for beliefs that name their states; other rows are never refused "
            "where a ledger pays."
        )
    series = read_series(source, value, **{**options, "states": None, "beliefs": beliefs})
    if not people and max(series.lengths) > (status.length or 0):
        raise InvalidInputError(
            f"The series has {max(series.lengths):,} time points, dataset {dataset!r} has "
            f"{status.length:,}; extend the dataset first."
        )
    validated = read_source(series.data, beliefs, None)
    require_aligned(beliefs, validated.sequences)
    encode_cells(validated, beliefs, histogram())
    pattern = with_pattern(mark, series.data.coded.values())
    reading = json.loads(_reading_text(value, options))
    starts = {sequence.start for sequence in series.data.coded.values()}
    if len(starts) == 1 and (start := starts.pop()) is not None and series.grid.step is not None:
        reading[_BEGINNING] = series.clock.written(start)
    ledger.register(dataset, f"{pattern} {json.dumps(reading, sort_keys=True)}")
    return series


def register_rows(
    ledger: Ledger, dataset: str, path: str, options: Mapping[str, str | None]
) -> int:
    """Validate the rows of a file for `quiltwork count`, register it, and return their number."""
    as_payer(ledger, dataset)
    mark = _mark(path, "", options, secrets.token_hex(8))
    dialect = DialectOptions(options["delimiter"], encoding=options["encoding"], by_rows=False)
    rows = with_csv(
        path,
        lambda reader: sum(1 for _ in rows_of_width(reader, len(next(reader, [])), path)),
        dialect,
    )
    ledger.register(dataset, mark)
    return rows


def read_registered(
    ledger: Ledger, dataset: str, source: Any, value: str, **options: Any
) -> Series:
    """Read files as `read_series` does; if the dataset has registered files, only those.

    Raises:
        InvalidInputError: if they are not the registered files, or are read with other options.
    """
    as_payer(ledger, dataset)
    refuse_unregistered(ledger, dataset, source, value, options)
    return read_series(source, value, **options)


def refuse_unregistered(
    ledger: Ledger, dataset: str, source: Any, value: str, options: Mapping[str, Any]
) -> None:
    """Refuse all but the registered files, if there are any, read with the registered options.

    The refusal depends on file metadata and public options, never on a row.
    """
    mark = ledger.registered(dataset)
    if mark is None:
        return
    salt = mark.partition(":")[0]
    if without_pattern(mark) == _mark(source, value, options, salt):
        return
    registered = registered_reading(ledger, dataset)
    if registered:
        _refuse_other_reading(dataset, registered, json.loads(_reading_text(value, options)))
    raise InvalidInputError(
        f"These are not the files registered for dataset {dataset!r}, or they were changed or "
        "are to be read in another way; whoever owns them registers them again (quiltwork "
        "ledger register)."
    )


def registered_reading(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """Return the options that a dataset's files were registered with, defaults left out.

    Empty if no series is registered. A number is written as text, as `str` writes it.
    """
    stored = _stored_with_mark(ledger, dataset)
    return {name: option for name, option in stored.items() if name != _BEGINNING}


def registered_beginning(ledger: Ledger, dataset: str) -> str | None:
    """Return when the registered series begin, in ISO 8601; None if unknown or not together."""
    return _stored_with_mark(ledger, dataset).get(_BEGINNING)


def _stored_with_mark(ledger: Ledger, dataset: str) -> dict[str, Any]:
    text = (ledger.registered(dataset) or "").partition(" ")[2]
    return dict(json.loads(text)) if text else {}


def _refuse_other_reading(
    dataset: str, registered: Mapping[str, Any], requested: Mapping[str, Any]
) -> None:
    for name in sorted({*registered, *requested}):
        if registered.get(name) != requested.get(name):
            then, now = (
                argument(name, options[name]) if name in options else f"no {argument(name)}"
                for options in (registered, requested)
            )
            raise InvalidInputError(
                f"The files of dataset {dataset!r} were registered with {then}, and are now to be "
                f"read with {now}. Read them as they were registered, or register them again "
                "(quiltwork ledger register)."
            )


def _chosen(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say how to read, where they are not the defaults."""
    return {
        name: option
        for name, option in options.items()
        if option not in _DEFAULTS and name not in _NOT_READING
    }


def _reading_text(value: str, options: Mapping[str, Any]) -> str:
    return json.dumps({"value": value, **_chosen(options)}, default=str, sort_keys=True)


def _mark(source: Any, value: str, options: Mapping[str, Any], salt: str) -> str:
    if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
        raise UnsupportedError("Only files are registered: give a path, a folder or a pattern.")
    versions = []
    for path in files.expand_files(os.fspath(source)):
        try:
            metadata = os.stat(path)
        except OSError:
            raise InvalidInputError(f"There is no file {path!r}.") from None
        # Setting the time of modification back changes the time of the inode.
        times = [metadata.st_mtime_ns, metadata.st_ctime_ns]
        versions.append([os.path.realpath(path), metadata.st_size, *times, metadata.st_ino])
    text = json.dumps([salt, versions, value, _chosen(options)], default=str, sort_keys=True)
    return f"{salt}:{hashlib.sha256(text.encode()).hexdigest()}"
