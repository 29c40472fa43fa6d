"""Rows of datasets: validated when they are added, and stored as small integer codes.

Only the codes of an upload's states or categories are stored; the file itself is deleted. All
validation happens when rows are added, and errors name a row, never a value, so no refusal of a
question can depend on a row. Rows of different members stay separate: the same subject sent by two
providers is two subjects.
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
from quiltwork.budget.ledger.entries import now
from quiltwork.delimited import rows_of_width, with_csv
from quiltwork.errors import InvalidInputError, StorageError
from quiltwork.exact import counted
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
    """One upload to a dataset: its position among them, its vault file, and the member."""

    dataset: str
    place: int
    file: str
    added_by: str
    added: str
    count: int


_ROWS = TableOf("curator_rows", StoredRows, "dataset, place", unique=("file",))
FEATURE = Feature(
    Schema("rows", (_ROWS,)), files=lambda t: [upload.file for upload in _ROWS.select(t, "1 = 1")]
)
_MAX_CACHED = 16
_adding = threading.Lock()
"""Held while rows are added, as each upload is checked against all before it."""


_DATA = "/v1/datasets/{dataset}/rows"


class Added(Document, frozen=True):
    """The number of rows added, and the dataset's length after them."""

    dataset: str
    rows: int
    length: int | None


@dataclass(frozen=True, eq=False)
class CodedPeople:
    """Rows of a dataset of counts: the codes of each column, and the person of each row."""

    columns: Mapping[str, np.ndarray[Any, Any]]
    subjects: np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class _CodedUpload:
    """The stored part of one upload: arrays of codes, and plain values about them."""

    arrays: Mapping[str, np.ndarray[Any, Any]]
    about: Mapping[str, Any]
    rows: int


Uploads: TypeAlias = list[tuple[_CodedUpload, str]]
"""Uploads in the order in which they were added, each with the member who added it."""
Rows = TypeVar("Rows")


def reaching(data: CodedSequences, point: int | None) -> CodedSequences:
    """Return the subjects whose series reach a time point; all of them if none does.

    Lengths of series are public, so this choice reveals nothing, and a subject whose rows are late
    does not block questions about the others.
    """
    reached = {who: codes for who, codes in data.coded.items() if len(codes) >= (point or 1)}
    return CodedSequences(reached or data.coded)


def series_rows(service: Service, name: str, about: SeriesOf) -> CodedSequences:
    """Return the current rows of a series; 409 if there are none."""
    return _cached(service, name, lambda uploads: _join_series(about, uploads))


def people_rows(service: Service, name: str) -> CodedPeople:
    """Return the current rows of a dataset of counts; 409 if there are none."""
    return _cached(service, name, _join_people)


def _cached(service: Service, name: str, join: Callable[[Uploads], Rows]) -> Rows:
    """Return rows from the cache, or from their files if the uploads changed."""
    files = service.read(lambda t: _files(t, name))
    if not files:
        raise Problem(
            409, "conflict", "The dataset has no rows: none were added yet, or all were deleted."
        )
    cached = service.row_cache.get(name)
    if cached is not None and cached[0] == files:
        return cached[1]  # type: ignore[no-any-return]
    rows = join(_read_uploads(service, files))
    while len(service.row_cache) >= _MAX_CACHED:
        service.row_cache.pop(next(iter(service.row_cache)), None)
    service.row_cache[name] = (files, rows)
    return rows


def _files(t: Transaction, dataset: str) -> list[tuple[str, str]]:
    uploads = _ROWS.select(t, "dataset = ? ORDER BY place", dataset)
    return [(upload.file, upload.added_by) for upload in uploads]


def _read_uploads(service: Service, files: Iterable[tuple[str, str]]) -> Uploads:
    return [(_from_bytes(b"".join(service.vault.read(file))), member) for file, member in files]


@FEATURE.at("POST", _DATA, "data.add", status=201, upload=True)
def _add_rows(call: Call) -> Added:
    """Add rows from a CSV or Parquet file; a series grows by them."""
    dataset = registered(call.service, call.path["dataset"])
    if dataset.deleted or call.service.ledger.status(dataset.name).retired is not None:
        raise _retired()
    with call.file.table() as path:
        if isinstance(dataset.description, SeriesOf):
            upload = _read_series(str(path), dataset.description)
        else:
            upload = _read_people(str(path), dataset.description)
    with _adding:
        return _store(call.service, dataset, upload, call.member)


def _store(service: Service, dataset: Registered, upload: _CodedUpload, by: str) -> Added:
    """Check an upload against those before it, extend the ledger, store and note the rows."""
    from quiltwork.series.releases.data import encode_cells, read_source

    before = service.read(lambda t: _files(t, dataset.name))
    length = None
    if isinstance(dataset.description, SeriesOf):
        uploads = [*_read_uploads(service, before), (upload, by)]
        joined = _join_series(dataset.description, uploads)
        beliefs = beliefs_of(dataset.description)
        source = read_source(joined, beliefs, tuple(beliefs[0].states or ()))
        encode_cells(source, beliefs, histogram(), quietly=True)  # raises what a release would
        length = max(source.lengths)
        required = dataset.description.length or 1
        if length < required:
            raise InvalidInputError(
                f"The longest series has {length:,} time points, but the dataset was registered "
                f"with {required:,}. Send all of them at once."
            )
    # The ledger is extended first, so no question can meet rows that no budget covers yet.
    if length is not None and length > (service.ledger.status(dataset.name).length or length):
        service.ledger.extend(dataset.name, length)
    position = len(before)

    def work(t: Transaction, file: str) -> tuple[str, ...]:
        current = DATASETS.get(t, name=dataset.name)
        if current.deleted:
            raise _retired()  # deleted while this upload was read
        existing = _ROWS.find(t, dataset=dataset.name, place=position)
        if existing is not None and existing.file != file:
            raise Problem(409, "conflict", "Other rows were added meanwhile. Send these again.")
        _ROWS.add(t, StoredRows(dataset.name, position, file, by, now(), upload.rows))
        DATASETS.update(t, {"name": dataset.name}, about={**current.about, "arrived": length})
        t.note("act", f"added {upload.rows} rows", by, dataset.name)
        return ()

    service.store_file(_to_bytes(upload), work)
    return Added(dataset=dataset.name, rows=upload.rows, length=length)


def _retired() -> Problem:
    return Problem(409, "conflict", "The dataset is retired and takes no more rows.")


def _read_series(path: str, about: SeriesOf) -> _CodedUpload:
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
    code_of = {label: code for code, label in enumerate(states)}
    if about.missing == "public":
        code_of[None] = len(states)  # the code of a gap follows those of the states
    arrays = {}
    for number, series in enumerate(coded.values()):
        labels = series.labels.tolist()
        table = np.array([code_of.get(label, -1) for label in labels], dtype=np.int32)
        codes = table[series.codes]
        if unnamed := int((codes < 0).sum()):
            raise InvalidInputError(
                f"{counted(unnamed, 'time point')} of the rows {'has' if unnamed == 1 else 'have'} "
                f"a state that the belief does not name; it names {', '.join(map(str, states))}. "
                "Nothing was stored. Correct them, or register a dataset with another belief."
            )
        arrays[f"codes{number}"] = codes.astype(np.uint8 if len(states) < 255 else np.int32)
    first = next(iter(coded.values()))
    values = {
        "subjects": labels_to_json(coded),
        "starts": [series.start for series in coded.values()],
        "step": read.grid.step,
        "zone": first.origin.zone,
        "local": first.origin.local,
    }
    return _CodedUpload(arrays, values, read.points)


def _join_series(about: SeriesOf, uploads: Uploads) -> CodedSequences:
    """Join uploads into one series for each subject and member.

    Rows that do not follow a subject's earlier rows are refused; where gaps are public, missing
    time points between two uploads become gaps.
    """
    parts: dict[Any, list[np.ndarray[Any, Any]]] = {}
    starts: dict[Any, int | None] = {}
    step = next((upload.about["step"] for upload, _ in uploads if upload.about["step"]), None)
    belief = beliefs_of(about)[0]
    size, public = len(belief.states or ()), about.missing == "public"
    for upload, member in uploads:
        for number, subject in enumerate(labels_from_json(list(upload.about["subjects"]))):
            key, start = (member, subject), upload.about["starts"][number]
            origin_time, earlier = starts.setdefault(key, start), parts.setdefault(key, [])
            if earlier and origin_time is not None and step is not None:
                if start is None:
                    raise InvalidInputError(
                        "The step between these rows is unknown. Send several time points at "
                        "once, or register the series with its step, `every`."
                    )
                offset = start - origin_time - step * sum(map(len, earlier))
                gap, remainder = divmod(offset, step)
                if about.missing == "public" and gap > 0 and not remainder:
                    earlier.append(np.full(gap, size, dtype=earlier[0].dtype))
                    gap = 0
                if gap or remainder or upload.about["step"] != step:
                    raise InvalidInputError(
                        "The first new row must be one step after the subject's last stored row."
                    )
            earlier.append(upload.arrays[f"codes{number}"])
    last = uploads[-1][0].about
    labels = np.empty(size + public, dtype=object)
    labels[:size] = belief.states
    grid = replace(belief.grid or Grid(), step=step)
    origin = Origin(grid, None, len(parts), last["zone"], last["local"])
    series = {}
    for key, pieces in parts.items():
        codes = np.concatenate(pieces)
        recorded = codes < size if public else None
        series[key] = CodedSequence(codes, labels, origin, starts[key], recorded)
    return CodedSequences(series)


def _read_people(path: str, about: CountsOf) -> _CodedUpload:
    """Read rows of people; errors name the row of a cell outside the public categories."""
    code_of = {
        name: {label: code for code, label in enumerate(labels)}
        for name, labels in about.columns.items()
    }

    def read(rows: Iterator[list[str]]) -> _CodedUpload:
        header = next(rows, [])
        missing = [name for name in (*code_of, about.subject or "") if name and name not in header]
        if missing:
            raise InvalidInputError(f"The file has no column {missing[0]!r}.")
        subject_at = None if about.subject is None else header.index(about.subject)
        positions = {name: header.index(name) for name in code_of}
        codes = {name: array("i") for name in code_of}
        subjects: list[str] = []
        for number, row in enumerate(rows_of_width(rows, len(header), "the file"), start=1):
            for name, position in positions.items():
                code = code_of[name].get(row[position])
                if code is None:
                    raise InvalidInputError(
                        f"Row {number}: the cell of column {name!r} is not one of its public "
                        "categories."
                    )
                codes[name].append(code)
            subjects.append("" if subject_at is None else row[subject_at])
        arrays = {f"codes{i}": np.array(codes[name], np.int32) for i, name in enumerate(code_of)}
        values = {"columns": list(code_of), "subjects": subjects}
        return _CodedUpload(arrays, values, len(subjects))

    return with_csv(path, read)


def _join_people(uploads: Uploads) -> CodedPeople:
    names = uploads[0][0].about["columns"]
    columns = {
        name: np.concatenate([upload.arrays[f"codes{i}"] for upload, _ in uploads])
        for i, name in enumerate(names)
    }
    people = [f"{member}/{subject}" for up, member in uploads for subject in up.about["subjects"]]
    return CodedPeople(columns, np.array(people, dtype=object))


def _to_bytes(upload: _CodedUpload) -> bytes:
    file = io.BytesIO()
    about = np.frombuffer(json.dumps({**upload.about, "rows": upload.rows}).encode(), np.uint8)
    np.savez_compressed(file, allow_pickle=False, about=about, **upload.arrays)
    return file.getvalue()


def _from_bytes(content: bytes) -> _CodedUpload:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            about = json.loads(bytes(archive["about"]))
            arrays = {name: archive[name] for name in archive.files if name != "about"}
    except (ValueError, OSError, KeyError):
        raise StorageError("A file of rows is damaged. Restore a backup.") from None
    return _CodedUpload(arrays, about, about["rows"])


@FEATURE.at("DELETE", _DATA, "data.delete", status=204)
def _delete_rows(call: Call) -> None:
    """Delete all rows and retire the dataset; its ledger and releases stay."""
    service, dataset, by = call.service, call.path["dataset"], call.member
    retire(service, dataset, "its rows were deleted", by)

    def work(t: Transaction) -> list[str]:
        files = [file for file, _ in _files(t, dataset)]
        _ROWS.delete(t, dataset=dataset)
        about = {**DATASETS.get(t, name=dataset).about, "arrived": 0}
        DATASETS.update(t, {"name": dataset}, deleted=now(), about=about)
        t.note("act", "deleted all rows", by, dataset)
        return files

    service.delete_files(work)
    service.row_cache.pop(dataset, None)
