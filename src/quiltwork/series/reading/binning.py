"""Numbers to states by public edges.

Edges e_1 < … < e_m make the m+1 states below e_1, from e_i up to but not including e_{i+1}, and
from e_m on. They are public: chosen without looking at the protected data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.grids import check_labels, read_edges
from quiltwork.beliefs.states import Label, list_states


@dataclass(frozen=True)
class Bins:
    """Public edges and the labels of the states between them.

    >>> bins = Bins.at([0.5, 2])
    >>> bins.labels
    ('<0.5', '0.5..2', '>=2')
    >>> bins.codes(np.array([0.1, 0.5, 7.0])).tolist()
    [0, 1, 2]
    """

    edges: tuple[float, ...]
    labels: tuple[Label, ...]

    @classmethod
    def at(cls, edges: Sequence[object], labels: Sequence[Label] | None = None) -> Bins:
        """Build bins from increasing finite edges; one label more than edges.

        Raises:
            InvalidInputError: if edges are missing, not increasing or not finite, or labels do
                not fit.
        """
        numbers = read_edges(edges)
        names = _interval_names(numbers) if labels is None else list_states(labels)
        check_labels(numbers, names)
        return cls(numbers, names)

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the state of each value as 0..m; NaN must be dealt with before."""
        return np.searchsorted(np.array(self.edges), values, side="right").astype(np.int64)


def _interval_names(edges: tuple[float, ...]) -> tuple[str, ...]:
    shown = [f"{edge:g}" for edge in edges]
    if len(set(shown)) < len(shown):
        shown = [repr(edge) for edge in edges]
    inner = [f"{a}..{b}" for a, b in pairwise(shown)]
    return (f"<{shown[0]}", *inner, f">={shown[-1]}")
