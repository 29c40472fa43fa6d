"""Secrets: the protected time points, and the secret pairs of their values.

`secrets=(start, stop)` selects time points, `pairs=[(a, b), …]` secret pairs as in Definition 2.1
of Pufferfish: an output cannot tell whether the value was a or b, while other values may become
known. A pair that is not listed is protected by a chain of listed ones only: (a, b) and (b, c) at ε
each protect (a, c) at 2ε.

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
    """Return the protected nodes, start..stop inclusive, or all of them.

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
    """Return the secret pairs of values, each once, in the order of the states; None for all.

    Raises:
        InvalidInputError: for anything but pairs of different states of every belief.
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
                f"Secret pairs are pairs of states of a time point, and this belief is about "
                f"{about}; leave pairs out."
            )
    if episode > 1:
        raise UnsupportedError(
            f"Secret pairs are values of one time point, but with episode={episode} a secret is "
            f"{episode} time points in a row; leave out pairs or episode."
        )
    distinct = {_parse_pair(pair, beliefs) for pair in listed(pairs, "pairs")}
    if not distinct:
        raise InvalidInputError("pairs is empty, so nothing would be protected; name at least one.")
    states = list(beliefs[0].states or ())
    return tuple(sorted(distinct, key=lambda pair: (states.index(pair[0]), states.index(pair[1]))))


def _parse_pair(pair: Any, beliefs: Sequence[Belief]) -> tuple[Label, Label]:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InvalidInputError(f"A secret pair is two states (a, b), not {shortened(pair)}.")
    labels = [parse_label(state, "A state of a secret pair") for state in pair]
    for belief in beliefs:
        for label in labels:
            if label not in (belief.states or ()):
                raise InvalidInputError(
                    f"{shortened(label)} in a secret pair is not a state of the belief; its states "
                    f"are {', '.join(map(str, belief.states or ()))}."
                )
    order = {label: (beliefs[0].states or ()).index(label) for label in labels}
    if len(order) == 1:
        raise InvalidInputError(
            f"A secret pair has {shortened(labels[0])} twice; give two different states."
        )
    first, second = sorted(order, key=order.__getitem__)
    return first, second


def secret_pair_matrix(
    pairs: SecretPairs | None, states: Sequence[Label] | None
) -> BoolArray | None:
    """Return (k, k) which pairs of states are secret, symmetric; None for all of them."""
    if pairs is None or states is None:
        return None
    index = {label: i for i, label in enumerate(states)}
    secret = np.zeros((len(index), len(index)), dtype=np.bool_)
    for a, b in pairs:
        secret[index[a], index[b]] = secret[index[b], index[a]] = True
    return secret


def pairs_to_json(pairs: SecretPairs | None) -> list[Any] | None:
    """Return secret pairs as JSON values, labels with their types as in beliefs."""
    return None if pairs is None else [labels_to_json(pair) for pair in pairs]


def pairs_from_json(written: Any) -> list[tuple[Label, ...]] | None:
    """Return the pairs that `pairs_to_json` wrote; `parse_pairs` checks them against beliefs."""
    return None if written is None else [tuple(labels_from_json(pair)) for pair in written]
