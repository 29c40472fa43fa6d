"""Public gaps: time points without a record, whose position is public and whose state is secret.

`missing="public"` asserts that the gaps are independent of the states. Then the recorded states
have the law of the whole chain at these time points, and a release without the gaps is a release of
the whole series that gives them weight 0. So every guarantee of the whole series holds, for the
states in gaps too. Fits count neighbouring recorded points, and nothing across a gap.

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
    """Return the assumption behind public gaps, in words."""
    return (
        "Gaps are treated as public and independent of the states, as after an outage or with a "
        "flat battery. Where people switch a device off as they leave, that is false; then use "
        f"{argument('missing', 'state')}."
    )


def recorded_runs(sequences: Iterable[Any]) -> tuple[Any, ...]:
    """Return the recorded runs of sequences with public gaps, and other sequences unchanged.

    >>> recorded_runs([[0, 1, 1]])
    ([0, 1, 1],)
    """
    runs: list[Any] = []
    for sequence in sequences:
        coded = gapped_sequence(sequence)
        if coded is None or coded.recorded is None:
            runs.append(sequence)
        else:
            runs += [coded.part(a, b) for a, b in runs_of(coded.recorded)]
    return tuple(runs)


def runs_of(recorded: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the runs of recorded points as (begin, end) from 0, end excluded.

    >>> runs_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    turns = np.flatnonzero(np.diff(recorded, prepend=False, append=False))
    return list(zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True))
