"""Gaps that are public: time points without a record, of which the state alone is concealed.

`missing="public"` claims that when a series was silent says nothing about its states. Then the law
of the recorded states is that of the whole chain at these time points, and a release that leaves
gaps out is one of the whole series that gives them no weight. So every guarantee of the whole
series holds as it is, of gaps too. Fits count neighbouring recorded points; there is nothing to
count across a gap.

Theorem: docs/theory/public-gaps.md
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.origins import gapped_sequence
from quiltwork.wording import argument


def silence_claim() -> str:
    """Say what is claimed by leaving gaps out."""
    return (
        "When a series was silent is taken as public and as saying nothing about its states: "
        "outages, a flat battery. Where people switch off as they leave, that is false; then "
        f"{argument('missing', 'state')} is right."
    )


def recorded_runs(sequences: Iterable[Any]) -> tuple[Any, ...]:
    """Return sequences without public gaps: a sequence that has some, run by run; others as is.

    >>> recorded_runs([[0, 1, 1]])
    ([0, 1, 1],)
    """
    found: list[Any] = []
    for sequence in sequences:
        coded = gapped_sequence(sequence)
        if coded is None or coded.recorded is None:
            found.append(sequence)
        else:
            found += [coded.part(a, b) for a, b in runs_of(coded.recorded)]
    return tuple(found)


def runs_of(recorded: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where recorded points are in a row, as (begin, end) from 0, the end not included.

    >>> runs_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    turns = np.flatnonzero(np.diff(recorded, prepend=False, append=False))
    return list(zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True))
