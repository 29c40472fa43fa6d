"""Which time points are protected, and which of their values are kept apart.

`secrets=(start, stop)` names time points, `pairs=[(a, b), …]` secret pairs as in Definition 2.1 of
Pufferfish: nobody learns whether a value was a or b, while other values may become known. A pair
that is not named is protected only as far as named ones lead from one to the other: (a, b) and
(b, c) at ε each keep a and c apart at 2ε.

Theorem: docs/theory/sweep.md (secret pairs)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from quiltwork.arguments import listed
from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.documents import labels_from_json, labels_to_json
from quiltwork.beliefs.matrices import BoolArray
from quiltwork.beliefs.states import Label, parse_label
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer, shortened

SecretPairs: TypeAlias = tuple[tuple[Label, Label], ...]


def parse_secrets(secrets: Any, length: int) -> range:
    """Return the protected nodes: start..stop inclusive, or all.

    >>> parse_secrets((2, 4), 9)
    range(2, 5)
    """
    if secrets is None:
        return range(1, length + 1)
    if not isinstance(secrets, (list, tuple)) or len(secrets) != 2:
        raise InvalidInputError(
            f"secrets must be (start, stop), the first and the last protected time point, not "
            f"{shortened(secrets)}."
        )
    start = integer(secrets[0], "The first protected time point", 1)
    stop = integer(secrets[1], "The last protected time point", start)
    if stop > length:
        raise InvalidInputError(
            f"The last protected time point is {stop}, but the series has {length}."
        )
    return range(start, stop + 1)


def parse_pairs(pairs: Any, beliefs: Sequence[Belief], episode: int = 1) -> SecretPairs | None:
    """Return the secret pairs of values, each once and in the order of the states; None for all.

    Raises:
        InvalidInputError: for anything but pairs of different states that every belief knows.
        UnsupportedError: for beliefs that are not about a series of states, and for episodes.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.8, 0.2], [0.3, 0.7]], states=["home", "away"])
    >>> parse_pairs([("away", "home"), ("home", "away")], [chain])
    (('home', 'away'),)
    """
    if pairs is None:
        return None
    for belief in beliefs:
        if belief.states is None or belief.length is not None:
            about = "rows in no order" if belief.length is not None else "numbers"
            raise UnsupportedError(
                f"pairs are two states of a time point each, and this belief is about {about}; "
                "leave pairs out."
            )
    if episode > 1:
        raise UnsupportedError(
            f"pairs are values of one time point, and stretches of {episode} are one secret here; "
            "leave out pairs or episode."
        )
    found = {_read_pair(pair, beliefs) for pair in listed(pairs, "pairs")}
    if not found:
        raise InvalidInputError("pairs is empty, so nothing would be protected; name at least one.")
    states = list(beliefs[0].states or ())
    return tuple(sorted(found, key=lambda pair: (states.index(pair[0]), states.index(pair[1]))))


def _read_pair(pair: Any, beliefs: Sequence[Belief]) -> tuple[Label, Label]:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InvalidInputError(f"A secret pair is two states (a, b), not {shortened(pair)}.")
    labels = [parse_label(one, "A state of a secret pair") for one in pair]
    for belief in beliefs:
        for label in labels:
            if label not in (belief.states or ()):
                raise InvalidInputError(
                    f"{shortened(label)} of a secret pair is no state of the belief; there are "
                    f"{', '.join(map(str, belief.states or ()))}."
                )
    places = {label: (beliefs[0].states or ()).index(label) for label in labels}
    if len(places) == 1:
        raise InvalidInputError(
            f"A secret pair names {shortened(labels[0])} twice; name two states."
        )
    first, second = sorted(places, key=places.__getitem__)
    return first, second


def secret_pair_matrix(
    pairs: SecretPairs | None, states: Sequence[Label] | None
) -> BoolArray | None:
    """(k, k) which states are kept apart, both ways; None for all of them."""
    if pairs is None or states is None:
        return None
    place = {label: index for index, label in enumerate(states)}
    kept = np.zeros((len(place), len(place)), dtype=np.bool_)
    for a, b in pairs:
        kept[place[a], place[b]] = kept[place[b], place[a]] = True
    return kept


def pairs_to_json(pairs: SecretPairs | None) -> list[Any] | None:
    """Write secret pairs as JSON values, labels with their types as in beliefs."""
    return None if pairs is None else [labels_to_json(pair) for pair in pairs]


def pairs_from_json(written: Any) -> list[tuple[Label, ...]] | None:
    """Read what `pairs_to_json` wrote; `parse_pairs` checks it against the beliefs."""
    return None if written is None else [tuple(labels_from_json(pair)) for pair in written]
