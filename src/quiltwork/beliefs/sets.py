"""Finite sets of beliefs: the argument `beliefs` takes one belief or a list of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from quiltwork import files
from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import HiddenChain, MarkovChain
from quiltwork.beliefs.clusters import Clusters
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.dated import DatedChain
from quiltwork.beliefs.documents import field
from quiltwork.beliefs.gaussian import Gaussian, GaussianSeries
from quiltwork.beliefs.gaussian_rows import GaussianRows
from quiltwork.beliefs.grids import Grid, grid_difference
from quiltwork.beliefs.network import Network
from quiltwork.beliefs.states import show_labels
from quiltwork.errors import InvalidInputError

_SET = "belief/set"
_CLASSES: tuple[Any, ...] = (
    *(MarkovChain, CyclicChain, DatedChain, HiddenChain, ChainBox, Clusters, Network),
    *(GaussianSeries, GaussianRows),
)
_KINDS = {kind.schema: kind for kind in _CLASSES}
_WANTED = f"give a belief ({', '.join(kind.__name__ for kind in _CLASSES)}) or a list of them."


def as_beliefs(beliefs: Belief | Sequence[Belief]) -> tuple[Belief, ...]:
    """Return one belief or a list of beliefs as a tuple of at least one.

    Raises:
        InvalidInputError: for an empty list, something that is no belief, and beliefs on
            different states or grids, or of different lengths.

    >>> as_beliefs(Clusters(["a", "a"]))
    (Clusters(2 rows in 1 cluster; largest=2),)
    """
    members = (beliefs,) if isinstance(beliefs, Belief) else _listed(beliefs)
    for position, belief in enumerate(members, start=1):
        if not isinstance(belief, Belief):
            raise InvalidInputError(f"Belief {position} is {type(belief).__name__}; {_WANTED}")
    _check_same_data(members)
    _check_same(members, "states", lambda states: f"the states {show_labels(states)}")
    _check_same(members, "length", lambda length: f"{length} rows")
    _check_same_grid(members)
    return members


def _listed(beliefs: Any) -> tuple[Any, ...]:
    if not isinstance(beliefs, (list, tuple)):
        raise InvalidInputError(f"beliefs is {type(beliefs).__name__}; {_WANTED}")
    if not beliefs:
        raise InvalidInputError(
            "The list of beliefs is empty, and a guarantee needs at least one belief; give one."
        )
    return tuple(beliefs)


def _check_same_data(members: tuple[Belief, ...]) -> None:
    if len({isinstance(belief, Gaussian) for belief in members}) > 1:
        raise InvalidInputError(
            "Gaussian beliefs are about numbers, the others about states; a list must have one "
            "kind only."
        )


def _check_same(members: tuple[Belief, ...], what: str, shown: Callable[[Any], str]) -> None:
    """Raise InvalidInputError for beliefs with different states, or numbers of rows."""
    values = [(i, getattr(belief, what)) for i, belief in enumerate(members, start=1)]
    values = [(i, value) for i, value in values if value is not None]
    for position, value in values[1:]:
        first, expected = values[0]
        if value != expected:
            raise InvalidInputError(
                f"Belief {position} has {shown(value)}, belief {first} has {shown(expected)}; "
                "give all beliefs the same states, in the same order, or rows."
            )


def _check_same_grid(members: tuple[Belief, ...]) -> None:
    common: Grid | None = None
    for position, belief in enumerate(members, start=1):
        if words := grid_difference(common, belief.grid):
            raise InvalidInputError(
                f"Belief {position} was made for {words[1]}, another before it for {words[0]}; "
                "give beliefs about the same time points and states."
            )
        common = belief.grid.completed(common) if belief.grid is not None else common


def beliefs_to_json(beliefs: Belief | Sequence[Belief]) -> str:
    """Return one belief as its own JSON document, several as one of schema `belief/set`."""
    members = as_beliefs(beliefs)
    if len(members) == 1:
        return members[0].to_json()
    return files.dump(_SET, 1, {"beliefs": [json.loads(belief.to_json()) for belief in members]})


def beliefs_from_json(text: str | bytes) -> tuple[Belief, ...]:
    """Return the beliefs that `beliefs_to_json` wrote, as a tuple.

    Raises:
        InvalidInputError: if the text is not JSON, or not beliefs.
    """
    if _schema(text) != _SET:
        return (belief_from_json(text),)
    members = field(files.load(text, _SET, (1,)), "beliefs")
    if not isinstance(members, list):
        raise InvalidInputError("The field 'beliefs' must be a list of documents.")
    return as_beliefs([belief_from_json(json.dumps(member)) for member in members])


def belief_from_json(text: str | bytes) -> Belief:
    """Return the belief of any kind in a JSON document, bit for bit.

    Raises:
        InvalidInputError: if the text is not JSON, or not a single belief.

    >>> belief_from_json(Clusters(["a", "a", "b"]).to_json())
    Clusters(3 rows in 2 clusters; largest=2)
    """
    schema = _schema(text)
    if schema == _SET:
        raise InvalidInputError(
            "This document holds several beliefs; read it with beliefs_from_json."
        )
    if schema not in _KINDS:
        raise InvalidInputError(
            f"A document of schema {schema!r} is not a belief. Schemas of beliefs: "
            f"{', '.join(sorted(_KINDS))}."
        )
    belief: Belief = _KINDS[schema].from_json(text)
    return belief


def _schema(text: str | bytes) -> str:
    document = files.parse(text)
    schema = document.get("schema") if isinstance(document, dict) else None
    return str(schema).removeprefix("quiltwork/")


def digest(members: tuple[Belief, ...]) -> str:
    """Return the SHA-256 of the beliefs' JSON without their sources."""
    content = _claims(json.loads(beliefs_to_json(members)))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _claims(document: Any) -> Any:
    """Return a document without sources, and without unknown grids, as older releases wrote it."""
    if isinstance(document, dict):
        kept = {k: v for k, v in document.items() if k != "sources" and (k, v) != ("grid", None)}
        return {k: _claims(v) for k, v in kept.items()}
    return [_claims(v) for v in document] if isinstance(document, list) else document
