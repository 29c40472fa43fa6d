"""What all beliefs share: labels, perhaps a length and a grid, and where a fit had its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from quiltwork.beliefs.grids import Grid
from quiltwork.beliefs.sources import NOWHERE, Sources
from quiltwork.beliefs.states import Label


class Belief(ABC):
    """One thing an adversary may believe about the data; immutable and comparable by value.

    `states` is None where the belief is about rows of any kind, `length` is None where it fits a
    series of any length, `grid` is None where nobody said which time points and states are meant.
    `sources` is where the sequences were that it was fitted on, if any.
    """

    states: tuple[Label, ...] | None
    length: int | None
    grid: Grid | None = None
    sources: Sources = NOWHERE

    @abstractmethod
    def to_json(self) -> str:
        """Write the belief as a document that `belief_from_json` reads back exactly."""

    def check_codes(self, codes: Any) -> None:  # noqa: B027  (most beliefs refuse nothing)
        """Refuse encoded data that the belief says cannot be; indices into `states`.

        Raises:
            InvalidInputError: naming the position.
        """

    def allows(self, codes: Any) -> bool:
        """Return whether encoded data can occur at all, by supports; True where unknown."""
        return True

    def fitted_on(self, data: Any) -> bool:
        """Return whether `data` are noticed to be, or to overlap, what this belief was fitted on.

        `data` is one sequence or several, as in `MarkovChain.fit`, or the path of a file. Noticed
        are the same object in memory, arrays that share some, and a file at the same path; never
        copies. It does not depend on any value, and False proves nothing.
        """
        from quiltwork.beliefs.sequences import split_sequences

        return any(map(self.sources.include, split_sequences(data)))
