"""Series in the files of a folder, read and counted by Spark workers.

Every task reads files with `read_series`, so the answers are the same as on one machine. The driver
receives the public length and start of each series, and later the sum of the answers, to which
noise is added once. Files are read twice and must not change in between.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.beliefs import as_beliefs
from quiltwork.beliefs.origins import CodedSequence, CodedSequences, Origin, real_path
from quiltwork.beliefs.sequences import encode
from quiltwork.beliefs.states import Label
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.series.reading.columns import FILE_NAME
from quiltwork.series.reading.read import Series, read_series, warn_of_holes

Evaluate = Callable[[Any, tuple[Label, ...]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class DistantSequence(CodedSequence):
    """A sequence whose states stay with the workers; only length and start are known here."""

    length: int = 0

    def __len__(self) -> int:
        """The number of time points."""
        return self.length


class Fleet(CodedSequences):
    """Sequences by subject that stay with the workers; `total` adds up a query's answers."""

    def __init__(self, coded: dict[Any, CodedSequence], files_of: Any, task: _Task) -> None:
        """Store what is public, and the task that reads the rest."""
        super().__init__(coded)
        self._files = files_of
        self._task = task

    def __getitem__(self, subject: Any) -> NDArray[Any]:
        """Refuse: the labels stay with the workers."""
        raise UnsupportedError(
            "Series on Spark are not brought here; release from them, or read some with "
            "read_series."
        )

    def __repr__(self) -> str:
        """Show the number of series."""
        return f"<{len(self)} series on Spark>"

    def check(self, states: tuple[Label, ...]) -> None:
        """Refuse time points with an unknown state, before anything is spent."""
        task = self._task
        refused = self._files.map(lambda path: task.refusal(path, states)).filter(bool).take(1)
        if refused:
            raise InvalidInputError(refused[0])

    def total(self, evaluate: Evaluate, states: tuple[Label, ...]) -> NDArray[Any]:
        """Return the sum of the answers of all series."""
        task = self._task
        found: NDArray[Any] = self._files.map(
            lambda path: task.answer(path, evaluate, states)
        ).reduce(np.add)
        return found


@dataclass(frozen=True)
class _Task:
    """A worker's task for one file; errors are returned as text, without a traceback."""

    value: str
    options: dict[str, Any]

    def read(self, path: str) -> Series:
        return read_series(path, self.value, **self.options)

    def outline(self, path: str) -> Series | str:
        """Return a series with the lengths of its sequences, without their states."""
        try:
            read = self.read(path)
        except InvalidInputError as error:
            return f"{path}: {error}"
        outlines: dict[Any, CodedSequence] = {
            key: DistantSequence(
                *(one.codes[:0].copy(), one.labels, one.origin, one.start, one.recorded),
                length=len(one),
            )
            for key, one in read.data.coded.items()
        }
        return replace(read, data=CodedSequences(outlines))

    def refusal(self, path: str, states: tuple[Label, ...]) -> str | None:
        try:
            for one in self.read(path).data.coded.values():
                encode(one, states)
        except InvalidInputError as error:
            return f"{path}: {error}"
        return None

    def answer(self, path: str, evaluate: Evaluate, states: tuple[Label, ...]) -> NDArray[Any]:
        codes = [encode(one, states) for one in self.read(path).data.coded.values()]
        return np.asarray(reduce(np.add, [evaluate(one, states) for one in codes]))


def read_fleet(session: Any, source: Any, value: str, **options: Any) -> Series:
    """Read series as `read_series` does, on a Spark session; their states stay with the workers.

    Args:
        session: a `pyspark.sql.SparkSession`, whose workers can read the files.
        source: a folder or a pattern of files, each with series of its own.
        value: as for `read_series`.
        options: as for `read_series`; `subject` has "filename" in it, and states are known by
            `edges`, `states` or `beliefs`.

    Raises:
        InvalidInputError: as `read_series` does, naming the file.
    """
    names = options.get("subject")
    if FILE_NAME not in ([names] if isinstance(names, str) else list(names or [])):
        raise InvalidInputError(
            f"On Spark each file is read on its own: add {FILE_NAME!r} to what tells subjects "
            "apart (subject, --subject)."
        )
    believed = options.get("beliefs") or ()
    known = believed and all(one.states is not None for one in as_beliefs(believed))
    if not known and options.get("edges") is None and options.get("states") is None:
        raise InvalidInputError("On Spark states must be known: by edges, states or beliefs.")
    paths = files.expand_files(os.fspath(source))
    task = _Task(value, options)
    places = session.sparkContext.parallelize(paths, min(len(paths), _tasks(session)))
    outlines: Sequence[Series | str] = places.map(task.outline).collect()
    read = []
    for one in outlines:
        if isinstance(one, str):
            raise InvalidInputError(one)
        read.append(one)
    return _together(read, source, places, task)


def _tasks(session: Any) -> int:
    return 4 * int(session.sparkContext.defaultParallelism)


def _together(read: Sequence[Series], source: Any, places: Any, task: _Task) -> Series:
    first, grids = read[0], {one.grid for one in read}
    grid = first.grid if len(grids) == 1 else replace(first.grid, step=None)
    steps = sorted(one.step for one in grids if one.step is not None)
    uneven = len(steps) > 1 and not any(
        step % steps[0] for step in steps
    )  # a series of few records shows a multiple of the step
    holes = steps[0] if uneven else next((one.holes for one in read if one.holes), None)
    pause = next((one.pause for one in read if one.pause), None)
    warn_of_holes(replace(first, holes=holes, pause=pause), "error")
    sequences = [pair for one in read for pair in one.data.coded.items()]
    origin = Origin(grid, real_path(source), len(sequences), first.clock.zone, first.clock.local)
    coded = {
        key: replace(one, origin=origin, start=one.start if len(grids) == 1 else None)
        for key, one in sequences
    }
    if len(coded) < len(sequences):
        raise InvalidInputError(
            "A subject is in several files; files that name subjects must have names of their own."
        )
    return replace(
        first,
        data=Fleet(coded, places, task),
        points=sum(one.points for one in read),
        missing=sum(one.missing for one in read),
        grid=grid,
        reading=next((one.reading for one in read if one.reading), ""),
    )
