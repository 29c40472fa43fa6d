"""What all beliefs share: labels, an optional length, and the memory of the data they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from quiltwork.beliefs.states import Label


class Belief(ABC):
    """One thing an adversary may believe about the data; immutable and comparable by value.

    `states` is None where the belief is about rows of any kind, `length` is None where it fits a
    series of any length. `fingerprints` are those of the sequences it was fitted on, if any.
    """

    states: tuple[Label, ...] | None
    length: int | None
    fingerprints: frozenset[str]

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
        """Return whether one of the sequences in `data` is one this belief was fitted on.

        `data` is one sequence or several, as in `MarkovChain.fit`. Only equal sequences are
        recognised, not parts of them: a missing warning proves nothing.
        """
        if not self.fingerprints:
            return False
        from quiltwork.beliefs.fingerprints import fingerprint
        from quiltwork.beliefs.sequences import split_sequences

        return any(fingerprint(values) in self.fingerprints for values in split_sequences(data))
