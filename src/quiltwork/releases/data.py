"""Protected data as encoded sequences: one, or one per independent subject.

Everything that can be wrong with the data is found here, before anything is spent. Cost: one pass.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quiltwork.beliefs import Belief, split_sequences
from quiltwork.beliefs.sequences import encode, read_labels
from quiltwork.errors import InvalidInputError
from quiltwork.queries.base import IntArray, Query, States
from quiltwork.queries.cells import OverStates


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded sequences; `alphabet[code]` is the label.

    `states` are the public labels, () where neither belief nor query names any; then the alphabet
    is what the data contain and stays inside.
    """

    codes: tuple[IntArray, ...]
    alphabet: States
    states: States
    source: tuple[Any, ...]

    @property
    def lengths(self) -> list[int]:
        """The length of each sequence."""
        return [len(codes) for codes in self.codes]


def read_data(data: Any, members: tuple[Belief, ...], query: Query) -> Encoded:
    """Encode `data` by the beliefs' states and check that the query can be asked about it.

    Raises:
        InvalidInputError: for empty data, missing values, unknown states, a wrong number of rows
            and queries that do not fit the states.
    """
    states = public_states(members, query)
    sequences = split_sequences(_read_paths(data, states))
    _check_rows(sequences, members)
    if states is None:
        (codes, alphabet) = read_labels(sequences[0])
        _check_observed(query, alphabet)
        return Encoded((codes,), alphabet, (), sequences)
    query.check(states)
    encoded = tuple(
        _encode(sequence, states, position if len(sequences) > 1 else None)
        for position, sequence in enumerate(sequences, start=1)
    )
    for belief in members:
        for codes in encoded:
            belief.check_codes(codes)
    return Encoded(encoded, states, states, sequences)


def check_query(query: Any) -> None:
    """Refuse what is no query."""
    if not isinstance(query, Query):
        raise InvalidInputError(
            f"The query must come from qw.queries, such as queries.histogram(), not {query!r}."
        )


def public_states(members: tuple[Belief, ...], query: Query) -> States | None:
    """Return the states named by the beliefs or the query.

    None means that rows can be anything and the query needs no list of them.

    Raises:
        InvalidInputError: if the query has a cell per state and nobody names the states.
    """
    for belief in members:
        if belief.states is not None:
            return belief.states
    if not isinstance(query, OverStates):
        return None
    if query.states is None:
        raise InvalidInputError(
            f"{type(members[0]).__name__} names no states, and the cells of a release must not "
            f"depend on the data; write queries.{query.kind}(states=[…])."
        )
    return query.states


def fixed_length(members: tuple[Belief, ...]) -> int | None:
    """Return how many rows the beliefs are about, or None if any number."""
    return next((b.length for b in members if b.length is not None), None)


def _read_paths(data: Any, states: States | None) -> Any:
    """Replace paths by what is in the files; text inside a list is a label, not a path."""
    if isinstance(data, (str, os.PathLike)):
        from quiltwork.series import read_states

        return read_states(data, states=states)
    if isinstance(data, Mapping):
        return {name: _read_paths(part, states) for name, part in data.items()}
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], os.PathLike):
        return [_read_paths(part, states) for part in data]
    return data


def _check_rows(sequences: tuple[Any, ...], members: tuple[Belief, ...]) -> None:
    rows = fixed_length(members)
    if rows is None:
        return
    if len(sequences) > 1:
        raise InvalidInputError(
            f"The data are {len(sequences)} sequences, but the belief is about {rows} rows of one; "
            "release each with its own belief."
        )
    found = len(sequences[0]) if hasattr(sequences[0], "__len__") else 1
    if found != rows:
        raise InvalidInputError(
            f"The belief is about {rows} rows, the data have {found}; give one row of data for "
            "each row of the belief, in the same order."
        )


def _encode(sequence: Any, states: States, subject: int | None) -> IntArray:
    try:
        return encode(sequence, states)
    except InvalidInputError as error:
        if subject is None:
            raise
        raise InvalidInputError(f"Subject {subject}: {error}") from None


def _check_observed(query: Query, alphabet: States) -> None:
    """Values are checked as states would be; a count of something absent is simply 0."""
    if query.kind != "count":
        query.check(alphabet)
