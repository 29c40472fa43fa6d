"""Sequences kept as small codes, which look like arrays of labels when somebody asks.

A time point takes one byte where there are up to 127 states. Readers hand out such sequences, and
whoever counts or fits takes the codes (`factorize`); labels are made for those who look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs.origins import Origin, note, note_codes, note_start
from quiltwork.beliefs.states import Label


@dataclass(frozen=True, eq=False)
class CodedSequence(Sequence[Label]):
    """A sequence of labels: `labels[code]` for each of the codes.

    Attributes:
        codes: whole numbers of few bytes, from 0.
        labels: an array of labels.
        origin: on which grid, and from which file, it was read.
        start: when the first time point is, in seconds, if times are regular.
    """

    codes: NDArray[Any]
    labels: NDArray[Any]
    origin: Origin
    start: int | None = None

    def __len__(self) -> int:
        """The number of time points."""
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        """Return a label, or the labels of a slice."""
        return self.labels[self.codes[place]]

    def __iter__(self) -> Iterator[Any]:
        """Go through the labels."""
        return iter(self.array().tolist())

    def array(self) -> NDArray[Any]:
        """Return the labels as an array that keeps where it comes from."""
        array = np.asarray(self.labels[self.codes])
        note([array], self.origin)
        note_codes(array, self.codes)
        if self.start is not None:
            note_start(array, self.start)
        return array

    def factorized(self) -> tuple[NDArray[np.int64], list[Any]]:
        """Return codes of the labels that occur, and these."""
        present = np.zeros(len(self.labels), dtype=np.bool_)
        present[self.codes] = True
        labels = self.labels.tolist()
        if present.all():
            return self.codes.astype(np.int64), labels
        table = np.cumsum(present, dtype=np.int64) - 1
        return table[self.codes], [
            label for label, is_there in zip(labels, present, strict=True) if is_there
        ]


class CodedSequences(Mapping[Any, NDArray[Any]]):
    """Subject → array of labels, made when it is asked for; `coded` holds what they are made of."""

    def __init__(self, coded: dict[Any, CodedSequence]) -> None:
        """Keep the sequences."""
        self.coded = coded

    def __getitem__(self, subject: Any) -> NDArray[Any]:
        """Return the labels of a subject."""
        return self.coded[subject].array()

    def __iter__(self) -> Iterator[Any]:
        """Go through the subjects."""
        return iter(self.coded)

    def __len__(self) -> int:
        """The number of subjects."""
        return len(self.coded)

    def __repr__(self) -> str:
        """Show them as a dict would."""
        return repr(dict(self))
