"""The rows of a series as far as they have arrived, and the clock they are on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quiltwork.beliefs.origins import CodedSequences
from quiltwork.errors import InvalidInputError
from quiltwork.service.dataset_rows import series_rows
from quiltwork.service.datasets import SeriesOf, registered
from quiltwork.service.problems import Problem

if TYPE_CHECKING:
    from quiltwork.service.routes import Service


@dataclass(frozen=True)
class DataClock:
    """When time point 1 is, the seconds to the next, and whether clocks or UTC show them."""

    begins: datetime
    step: int
    local: bool


def series_of(service: Service, dataset: str) -> CodedSequences:
    """Return the rows of a series; counts are refused, and with 409 a series without rows."""
    found = registered(service, dataset)
    if not isinstance(found.about, SeriesOf):
        raise InvalidInputError("Only series are published by a schedule, not counts.")
    return series_rows(service, dataset, found.about)


def have_arrived(service: Service, dataset: str, point: int, *, late: bool) -> bool:
    """Whether every subject has come as far as a time point; once it is late, whether any has."""
    try:
        arrived = [len(one) >= point for one in series_of(service, dataset).coded.values()]
    except Problem:
        return False  # there are no rows
    return any(arrived) if late else all(arrived)


def data_clock(service: Service, dataset: str) -> DataClock | None:
    """Return the clock of a series, if its rows have arrived with regular times; else None.

    Subjects that begin at different times are refused: no day is theirs alike.
    """
    if not have_arrived(service, dataset, 1, late=True):
        return None
    coded = series_of(service, dataset).coded.values()
    found = {(one.start, one.origin.grid.step, one.origin.local) for one in coded}
    if len({start for start, _, _ in found}) > 1:
        raise InvalidInputError(
            "The subjects of this series begin at different times, so no window is the same day "
            "for all of them."
        )
    start, step, local = found.pop()
    if start is None or step is None:
        return None
    return DataClock(datetime.fromtimestamp(start, UTC), step, local)
