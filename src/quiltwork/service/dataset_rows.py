"""Rows of datasets: checked when they are added, kept as small codes, and read from then on.

What is kept of an upload are the codes of its states or categories; the file itself is forgotten.
Everything that can be wrong with rows is found when they are added and told to who adds them, by
place, so that nothing at the time of a question depends on a row. Rows of different members are
apart: the same subject sent by two providers is two subjects.
"""

from __future__ import annotations

import io
import json
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from quiltwork.beliefs import Grid
from quiltwork.beliefs.documents import labels_from_json, labels_to_json
from quiltwork.beliefs.origins import CodedSequence, CodedSequences, Origin
from quiltwork.budget.ledger.log import now
from quiltwork.delimited import rows_of_width, with_csv
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.queries import histogram
from quiltwork.service.datasets import (
    DATASETS,
    CountsOf,
    Registered,
    SeriesOf,
    beliefs_of,
    registered,
    retire,
)
from quiltwork.service.problems import Problem
from quiltwork.service.routes import Call, Feature, Service
from quiltwork.service.storage import Schema, TableOf, Transaction
from quiltwork.service.structs import Document


@dataclass(frozen=True)
class StoredRows:
    """One upload to a dataset, at its place among them: in which file, by whom."""

    dataset: str
    place: int
    file: str
    added_by: str
    added: str
    count: int


_ROWS = TableOf("curator_rows", StoredRows, "dataset, place", unique=("file",))
FEATURE = Feature(
    Schema("rows", (_ROWS,)), files=lambda t: [one.file for one in _ROWS.all(t, "1 = 1")]
)
_MOST_LOADED = 16
_adding = threading.Lock()
"""Rows are added by one thread at a time: each is checked against those before."""


_DATA = "/v1/datasets/{dataset}/rows"


class Added(Document, frozen=True):
    """What was added: so many rows, and how long the dataset is now."""

    dataset: str
    rows: int
    length: int | None


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows of a dataset of counts: the code of each column, and whose row it is."""

    columns: Mapping[str, np.ndarray[Any, Any]]
    subjects: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class _Piece:
    """What is kept of one upload: arrays and plain values."""

    arrays: Mapping[str, np.ndarray[Any, Any]]
    about: Mapping[str, Any]
    rows: int


Pieces: TypeAlias = list[tuple[_Piece, str]]
"""What was added, in order, each with who did."""
Rows = TypeVar("Rows")


def reaching(data: CodedSequences, point: int | None) -> CodedSequences:
    """Return the subjects that have come as far as a time point; all of them if none has.

    How long series are is public. So who has sent little holds up no question about what others
    have sent.
    """
    far = {who: one for who, one in data.coded.items() if len(one) >= (point or 1)}
    return CodedSequences(far or data.coded)


def series_rows(service: Service, name: str, about: SeriesOf) -> CodedSequences:
    """Return the rows of a series, as they are now; 409 if there are none."""
    return _loaded(service, name, lambda pieces: _series(about, pieces))


def counted_rows(service: Service, name: str) -> Counted:
    """Return the rows of a dataset of counts, as they are now; 409 if there are none."""
    return _loaded(service, name, _counted)


def _loaded(service: Service, name: str, join: Callable[[Pieces], Rows]) -> Rows:
    """Return rows from memory, or from their files if others were added since."""
    files = service.read(lambda t: _files(t, name))
    if not files:
        raise Problem(409, "conflict", "The dataset has no rows: none were added, or all deleted.")
    known = service.loaded.get(name)
    if known is not None and known[0] == files:
        return known[1]  # type: ignore[no-any-return]
    rows = join(_pieces(service, files))
    while len(service.loaded) >= _MOST_LOADED:
        service.loaded.pop(next(iter(service.loaded)), None)
    service.loaded[name] = (files, rows)
    return rows


def _files(t: Transaction, dataset: str) -> list[tuple[str, str]]:
    return [(one.file, one.added_by) for one in _ROWS.all(t, "dataset = ? ORDER BY place", dataset)]


def _pieces(service: Service, files: Iterable[tuple[str, str]]) -> Pieces:
    return [(_unpacked(b"".join(service.vault.read(file))), who) for file, who in files]


@FEATURE.at("POST", _DATA, "data.add", status=201, upload=True)
def _add_rows(call: Call) -> Added:
    """Add rows from a CSV or Parquet file; a series grows by them."""
    found = registered(call.service, call.path["dataset"])
    if found.deleted or call.service.ledger.status(found.name).retired is not None:
        raise _retired()
    with call.sent.table() as path:
        if isinstance(found.holds, SeriesOf):
            piece = _read_series(str(path), found.holds)
        else:
            piece = _read_counts(str(path), found.holds)
    with _adding:
        return _keep(call.service, found, piece, call.who)


def _keep(service: Service, found: Registered, piece: _Piece, by: str) -> Added:
    """Check a piece with those before it, write it, note it, and let the ledger grow."""
    from quiltwork.series.releases.data import encode_cells, read_source

    before = service.read(lambda t: _files(t, found.name))
    length = None
    if isinstance(found.holds, SeriesOf):
        whole = _series(found.holds, [*_pieces(service, before), (piece, by)])
        believed = beliefs_of(found.holds)
        source = read_source(whole, believed, tuple(believed[0].states or ()))
        encode_cells(source, believed, histogram(), quietly=True)  # what a release would refuse
        length = max(source.lengths)
        least = found.holds.length or 1  # the ledger may be ahead of the rows
        if length < least:
            raise InvalidInputError(
                f"The longest series has {length:,} time points, and {least:,} were registered."
            )
    # The ledger first: a question never meets rows that it knows not of.
    if length is not None and length > (service.ledger.status(found.name).length or length):
        service.ledger.extend(found.name, length)
    place = len(before)

    def work(t: Transaction, file: str) -> tuple[str, ...]:
        about = DATASETS.named(t, name=found.name)
        if about.deleted:
            raise _retired()  # while these were read
        taken = _ROWS.one(t, dataset=found.name, place=place)
        if taken is not None and taken.file != file:
            raise Problem(409, "conflict", "Somebody else has just added rows; send these again.")
        _ROWS.add(t, StoredRows(found.name, place, file, by, now(), piece.rows))
        DATASETS.update(t, {"name": found.name}, about={**about.about, "arrived": length})
        t.note("act", f"added {piece.rows} rows", by, found.name)
        return ()

    service.keep(_packed(piece), work)
    return Added(dataset=found.name, rows=piece.rows, length=length)


def _retired() -> Problem:
    return Problem(409, "conflict", "The dataset is retired, and takes no more rows.")


def _read_series(path: str, about: SeriesOf) -> _Piece:
    from quiltwork.series import read_series

    read = read_series(
        path,
        about.value,
        time=about.time,
        subject=about.subject,
        every=about.every,
        timezone=about.timezone,
        missing=about.missing,
        missing_state=about.missing_state,
        na_values=about.na_values,
        beliefs=beliefs_of(about),
    )
    coded = read.data.coded
    states = list(beliefs_of(about)[0].states or ())
    place = {label: code for code, label in enumerate(states)}
    if about.missing == "public":
        place[None] = len(states)  # the code of a gap, after those of the states
    arrays = {}
    for number, one in enumerate(coded.values()):
        table = np.array([place.get(label, -1) for label in one.labels.tolist()], dtype=np.int32)
        codes = table[one.codes]
        if (codes < 0).any():
            raise InvalidInputError("Some rows have a state that the belief does not name.")
        arrays[f"codes{number}"] = codes.astype(np.uint8 if len(states) < 255 else np.int32)
    first = next(iter(coded.values()))
    shown = {
        "subjects": labels_to_json(coded),
        "starts": [one.start for one in coded.values()],
        "step": read.grid.step,
        "zone": first.origin.zone,
        "local": first.origin.local,
    }
    return _Piece(arrays, shown, read.points)


def _series(about: SeriesOf, pieces: Pieces) -> CodedSequences:
    """Put pieces together, each subject's rows in the order in which they were added.

    Rows that do not follow those before are refused.
    """
    parts: dict[Any, list[np.ndarray[Any, Any]]] = {}
    starts: dict[Any, int | None] = {}
    step = next((piece.about["step"] for piece, _ in pieces if piece.about["step"]), None)
    believed = beliefs_of(about)[0]
    size, public = len(believed.states or ()), about.missing == "public"
    for piece, who in pieces:
        for number, subject in enumerate(labels_from_json(list(piece.about["subjects"]))):
            key, start = (who, subject), piece.about["starts"][number]
            begun, before = starts.setdefault(key, start), parts.setdefault(key, [])
            if before and begun is not None and step is not None:
                if start is None:
                    raise InvalidInputError(
                        "These rows do not say how far apart their times are: send several time "
                        "points at once, or register the series with its step, `every`."
                    )
                late, odd = divmod(start - begun - step * sum(map(len, before)), step)
                if about.missing == "public" and late > 0 and not odd:
                    before.append(np.full(late, size, dtype=before[0].dtype))
                    late = 0
                if late or odd or piece.about["step"] != step:
                    raise InvalidInputError(
                        "The first of these rows is not the time point after the last one there is."
                    )
            before.append(piece.arrays[f"codes{number}"])
    last = pieces[-1][0].about
    labels = np.empty(size + public, dtype=object)
    labels[:size] = believed.states
    grid = replace(believed.grid or Grid(), step=step)
    origin = Origin(grid, None, len(parts), last["zone"], last["local"])
    found = {}
    for key, some in parts.items():
        codes = np.concatenate(some)
        recorded = codes < size if public else None
        found[key] = CodedSequence(codes, labels, origin, starts[key], recorded)
    return CodedSequences(found)


def _read_counts(path: str, about: CountsOf) -> _Piece:
    """Read rows of people; a cell outside the public categories is refused by its place."""
    tables = {
        name: {label: code for code, label in enumerate(labels)}
        for name, labels in about.columns.items()
    }

    def read(rows: Iterator[list[str]]) -> _Piece:
        header = next(rows, [])
        missing = [name for name in (*tables, about.subject or "") if name and name not in header]
        if missing:
            raise InvalidInputError(f"The file has no column {missing[0]!r}.")
        whose = None if about.subject is None else header.index(about.subject)
        places = {name: header.index(name) for name in tables}
        codes = {name: array("i") for name in tables}
        subjects: list[str] = []
        for number, row in enumerate(rows_of_width(rows, len(header), "the file"), start=1):
            for name, place in places.items():
                code = tables[name].get(row[place])
                if code is None:
                    raise InvalidInputError(
                        f"Row {number}: the cell of {name!r} is none of its public categories."
                    )
                codes[name].append(code)
            subjects.append("" if whose is None else row[whose])
        arrays = {f"codes{i}": np.array(codes[name], np.int32) for i, name in enumerate(tables)}
        return _Piece(arrays, {"columns": list(tables), "subjects": subjects}, len(subjects))

    return with_csv(path, read)


def _counted(found: Pieces) -> Counted:
    names = found[0][0].about["columns"]
    columns = {
        name: np.concatenate([piece.arrays[f"codes{i}"] for piece, _ in found])
        for i, name in enumerate(names)
    }
    whose = [f"{who}/{subject}" for piece, who in found for subject in piece.about["subjects"]]
    return Counted(columns, np.array(whose, dtype=object))


def _packed(piece: _Piece) -> bytes:
    file = io.BytesIO()
    about = np.frombuffer(json.dumps({**piece.about, "rows": piece.rows}).encode(), np.uint8)
    np.savez_compressed(file, allow_pickle=False, about=about, **piece.arrays)
    return file.getvalue()


def _unpacked(content: bytes) -> _Piece:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            about = json.loads(bytes(found["about"]))
            arrays = {name: found[name] for name in found.files if name != "about"}
    except (ValueError, OSError, KeyError):
        raise StorageError("A file of rows is damaged; restore a backup.") from None
    return _Piece(arrays, about, about["rows"])


@FEATURE.at("DELETE", _DATA, "data.delete", status=204)
def _delete_rows(call: Call) -> None:
    """Delete all rows and retire the dataset; its ledger and releases stay."""
    service, dataset, by = call.service, call.path["dataset"], call.who
    retire(service, dataset, "its rows were deleted", by)

    def work(t: Transaction) -> list[str]:
        files = [file for file, _ in _files(t, dataset)]
        _ROWS.delete(t, dataset=dataset)
        about = {**DATASETS.named(t, name=dataset).about, "arrived": 0}
        DATASETS.update(t, {"name": dataset}, deleted=now(), about=about)
        t.note("act", "deleted all rows", by, dataset)
        return files

    service.forget(work)
    service.loaded.pop(dataset, None)
