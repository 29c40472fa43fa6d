"""Registered data: rows are checked once, by their owner, and no release refuses them later.

A ledger keeps a mark: a salted digest of where the files are, how large they are, when they and
what is noted about them were last changed, and how they are to be read; of nothing that is in
them, since who tries all short series would find the one. Files that were changed have another
mark, and are refused by one sentence before a row is looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quiltwork import files
from quiltwork.budget.payment import read_payer
from quiltwork.budget.people import PEOPLE
from quiltwork.delimited import GivenDialect, even_rows, with_csv
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.queries import histogram
from quiltwork.series.reading.read import Series, read_series
from quiltwork.series.releases.data import encode_cells, read_source, states_are_all
from quiltwork.series.releases.gap_patterns import with_pattern, without_pattern
from quiltwork.series.releases.protection import any_series

if TYPE_CHECKING:
    from quiltwork.budget import Ledger

_PLAIN: tuple[Any, ...] = ("error", None, (), [])
_NOT_READING = ("beliefs",)


def register_series(
    ledger: Ledger, dataset: str, source: Any, value: str, **options: Any
) -> Series:
    """Read files as `read_series` does, under the beliefs of a dataset, and register them for it.

    What is wrong with a row is told here, to who registers. From then on `read_registered`, and
    `quiltwork release` with this ledger, take these files, unchanged and read in this way. A
    dataset of people knows no states: name the public ones with `states`.

    Raises:
        InvalidInputError: as `read_series` and `release` do, and for a series that is longer than
            the dataset.
        UnsupportedError: for what is no file, and for beliefs without states.
    """
    read_payer(ledger, dataset)
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
    encode_cells(read_source(series.data, beliefs, None), beliefs, histogram())
    ledger.register(dataset, with_pattern(mark, series.data.coded.values()))
    return series


def register_rows(
    ledger: Ledger, dataset: str, path: str, options: Mapping[str, str | None]
) -> int:
    """Check the rows of a file for counts, `quiltwork count`, and register it; return how many."""
    read_payer(ledger, dataset)
    mark = _mark(path, "", options, secrets.token_hex(8))
    given = GivenDialect(options["delimiter"], encoding=options["encoding"], by_rows=False)
    rows = with_csv(
        path, lambda reader: sum(1 for _ in even_rows(reader, len(next(reader, [])), path)), given
    )
    ledger.register(dataset, mark)
    return rows


def read_registered(
    ledger: Ledger, dataset: str, source: Any, value: str, **options: Any
) -> Series:
    """Read files as `read_series` does; if a dataset has registered ones, these and no others.

    Raises:
        InvalidInputError: by one sentence, if they are not the registered ones, or are to be read
            in another way.
    """
    read_payer(ledger, dataset)
    refuse_unregistered(ledger, dataset, source, value, options)
    return read_series(source, value, **options)


def refuse_unregistered(
    ledger: Ledger, dataset: str, source: Any, value: str, options: Mapping[str, Any]
) -> None:
    """Refuse all but the registered files, if there are any, read in the registered way."""
    known = ledger.registered(dataset)
    salt = "" if known is None else known.partition(":")[0]
    if known is not None and without_pattern(known) != _mark(source, value, options, salt):
        raise InvalidInputError(
            f"These are not the files registered for dataset {dataset!r}, or they were changed or "
            "are to be read in another way; whoever owns them registers them again (quiltwork "
            "ledger register)."
        )


def _mark(source: Any, value: str, options: Mapping[str, Any], salt: str) -> str:
    if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
        raise UnsupportedError("Only files are registered: give a path, a folder or a pattern.")
    places = []
    for path in files.listed_files(os.fspath(source)):
        try:
            found = os.stat(path)
        except OSError:
            raise InvalidInputError(f"There is no file {path!r}.") from None
        times = [found.st_mtime_ns, found.st_ctime_ns]  # who puts the first back moves the second
        places.append([os.path.realpath(path), found.st_size, *times, found.st_ino])
    told = {
        name: option
        for name, option in options.items()
        if option not in _PLAIN and name not in _NOT_READING
    }
    text = json.dumps([salt, places, value, told], default=str, sort_keys=True)
    return f"{salt}:{hashlib.sha256(text.encode()).hexdigest()}"
