"""`Belief`, the base class of all beliefs: states, length, grid, sources of a fit, JSON."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quiltwork import files
from quiltwork.beliefs.calendars import Calendar
from quiltwork.beliefs.documents import field, labels_from_json, labels_to_json
from quiltwork.beliefs.grids import Grid, grid_suffix, grid_words
from quiltwork.beliefs.matrices import FloatArray, IntArray, frozen
from quiltwork.beliefs.sequences import encode, label_array, split_sequences
from quiltwork.beliefs.sources import NO_SOURCES, Sources
from quiltwork.beliefs.states import Label, list_labels, show_labels
from quiltwork.exact import counted, integer

_LONGEST_SAMPLE = 10**9
Initial: TypeAlias = "FloatArray | Literal['stationary', 'any']"
_START_WORDS = {
    "stationary": "its long-run distribution",
    "any": "any of them",
    "given": "a given distribution",
}


class Belief:
    """A distribution of the data that an adversary may assume; immutable, comparable by value.

    `states` is None for beliefs about rows of any kind, `length` is None for series of any length,
    `grid` is None where step and binning are unspecified. `sources` identifies the data of a fit.
    """

    states: tuple[Label, ...] | None
    length: int | None
    grid: Grid | None = None
    sources: Sources = NO_SOURCES

    schema: ClassVar[str]

    def summary(self) -> str:
        """Return the belief in words, as a noun phrase for reports and messages.

        >>> from quiltwork import MarkovChain
        >>> MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any", ["rest", "walk"]).summary()
        'a Markov chain of 2 states (rest, walk), started in any of them'
        """
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the belief as a JSON document, which `belief_from_json` reads back."""
        return files.dump(self.schema, 1, self._written())

    def _written(self) -> dict[str, Any]:
        """Return the body of its document: the fields that the class declares."""
        fields = zip(type(self).__annotations__, self.__getstate__(), strict=True)
        return {name: _to_json(name, value) for name, value in fields}

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the belief that `to_json` wrote, bit for bit.

        Raises:
            InvalidInputError: if the document is damaged, or another belief's.
        """
        constructor: Any = cls
        belief: Self = constructor(**cls._arguments(files.load(text, cls.schema, (1,))))
        return belief

    @classmethod
    def _arguments(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Return the constructor's arguments from a document: the declared fields."""
        return {name: parse_stored_field(document, name) for name in cls.__annotations__}

    def check_codes(self, codes: Any) -> None:
        """Raise InvalidInputError for state indices that the belief excludes."""

    def allows(self, codes: Any) -> bool:
        """Return whether encoded data have positive probability; True where unknown."""
        return True

    def fitted_on(self, data: Any) -> bool:
        """Return whether `data` are recognized as data that this belief was fitted on.

        `data` is one sequence or several, as in `MarkovChain.fit`, or the path of a file.
        Recognized are the same object in memory, arrays that share memory, and a file at the same
        path; never copies. The result does not depend on any value, and False proves nothing.
        """
        return any(map(self.sources.include, split_sequences(data)))

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same class and fields; sources do not count."""
        return isinstance(other, Belief) and type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        """Return a hash that agrees with `==`."""
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        fields = zip(type(self).__annotations__, self.__getstate__(), strict=True)
        return tuple(
            (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
            for name, value in fields
            if name != "sources"
        )

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the declared fields, in order; pickling and JSON use them alone."""
        return tuple(getattr(self, name) for name in type(self).__annotations__)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Set the fields, arrays read-only."""
        for name, value in zip(type(self).__annotations__, state, strict=True):
            field_value = frozen(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, field_value)


def _to_json(name: str, value: Any) -> Any:
    if name == "states":
        return labels_to_json(value)
    if isinstance(value, (Grid, Calendar)):
        return value.to_document()
    if isinstance(value, Sources):
        return sorted(value.files)
    return value.tolist() if isinstance(value, np.ndarray) else value


def parse_stored_field(document: dict[str, Any], name: str) -> Any:
    """Return a field of a belief's document; grid, calendar and sources may be absent."""
    if name == "grid":
        return Grid.from_document(document.get(name))
    if name == "calendar":
        return Calendar.from_document(document.get(name))
    if name == "sources":
        return Sources.from_document(document.get(name, []))
    value = field(document, name)
    return labels_from_json(value) if name == "states" else value


class StateBelief(Belief):
    """A belief about a series of states."""

    states: tuple[Label, ...]
    length = None

    @property
    def size(self) -> int:
        """The number of states k."""
        return len(self.states)

    def encode(self, sequence: Any) -> IntArray:
        """Return a list, array or pandas or Polars series as state indices 0..k−1.

        Raises:
            InvalidInputError: for empty data, and naming the first position (1-based) that holds
                a missing value or an unknown state.
        """
        return encode(sequence, self.states)

    def _summarized(self, kind: str, more: str = "", initial: Initial | None = None) -> str:
        """Return kind, states, start and grid in words."""
        begins = ""
        if initial is not None:
            start = initial if isinstance(initial, str) else "given"
            begins = f", started in {_START_WORDS[start]}"
        return (
            f"{kind} of {counted(self.size, 'state')} ({list_labels(self.states)}){more}{begins}"
            f"{grid_words(self.grid)}"
        )

    def _words(self, more: str, initial: Initial | None = None) -> str:
        """Return states, start and grid for a repr, without the matrices."""
        begins = ""
        if initial is not None:
            begins = f"; initial={initial!r}" if isinstance(initial, str) else "; initial=given"
        noun = "state" if self.size == 1 else "states"
        return (
            f"{type(self).__name__}({self.size} {noun}: {show_labels(self.states)}{more}{begins}"
            f"{grid_suffix(self.grid)}"
        )


class SimulatedBelief(StateBelief):
    """A belief with a single distribution, from which a series can be simulated."""

    def sample(self, length: int, seed: int | None = None) -> NDArray[Any]:
        """Return a simulated series of labels; the seed is for simulation, never for noise.

        About 0.3 s per million steps. The array has the labels' own type, or object if mixed.

        Raises:
            UnsupportedError: for initial="any".

        >>> from quiltwork import MarkovChain
        >>> MarkovChain([[0.0, 1.0], [1.0, 0.0]], initial=[1, 0]).sample(4, seed=0)
        array([0, 1, 0, 1])
        """
        steps = integer(length, "length", 1, _LONGEST_SAMPLE)
        seed = None if seed is None else integer(seed, "seed", 0)
        return label_array(self.states)[self._simulated(steps, seed)]

    def _simulated(self, steps: int, seed: int | None) -> IntArray:
        """Return simulated state indices."""
        raise NotImplementedError
