"""Finite sets of beliefs: any argument `beliefs` takes one belief or a list of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from quiltwork import files
from quiltwork.beliefs.belief import Belief
from quiltwork.beliefs.box import ChainBox
from quiltwork.beliefs.chain import MarkovChain
from quiltwork.beliefs.clusters import Clusters
from quiltwork.beliefs.cyclic import CyclicChain
from quiltwork.beliefs.dated import DatedChain
from quiltwork.beliefs.documents import field
from quiltwork.beliefs.gaussian import Gaussian, GaussianSeries
from quiltwork.beliefs.gaussian_rows import GaussianRows
from quiltwork.beliefs.grids import Grid, grid_difference
from quiltwork.beliefs.hidden import HiddenChain
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
            "The list of beliefs is empty, and a guarantee under no belief says nothing; give at "
            "least one."
        )
    return tuple(beliefs)


def _check_same_data(members: tuple[Belief, ...]) -> None:
    if len({isinstance(belief, Gaussian) for belief in members}) > 1:
        raise InvalidInputError(
            "Gaussian beliefs are about numbers, the others about states; a list must be of one "
            "kind."
        )


def _check_same(members: tuple[Belief, ...], what: str, shown: Callable[[Any], str]) -> None:
    """Refuse beliefs that are about other states, or numbers of rows, than the first that says."""
    known = [(i, getattr(one, what)) for i, one in enumerate(members, start=1)]
    known = [(i, value) for i, value in known if value is not None]
    for position, value in known[1:]:
        if value != known[0][1]:
            raise InvalidInputError(
                f"Belief {position} has {shown(value)}, belief {known[0][0]} has "
                f"{shown(known[0][1])}; give all beliefs the same states, in "
                "the same order, or rows."
            )


def _check_same_grid(members: tuple[Belief, ...]) -> None:
    known: Grid | None = None
    for position, belief in enumerate(members, start=1):
        if words := grid_difference(known, belief.grid):
            raise InvalidInputError(
                f"Belief {position} was made for {words[1]}, another before it for {words[0]}; "
                "give beliefs about the same time points and states."
            )
        known = belief.grid.completed(known) if belief.grid is not None else known


def beliefs_to_json(beliefs: Belief | Sequence[Belief]) -> str:
    """Write one belief as its own document, several as one of schema `quiltwork/belief/set`."""
    members = as_beliefs(beliefs)
    if len(members) == 1:
        return members[0].to_json()
    return files.dump(_SET, 1, {"beliefs": [json.loads(belief.to_json()) for belief in members]})


def beliefs_from_json(text: str | bytes) -> tuple[Belief, ...]:
    """Read what `beliefs_to_json` wrote; a single belief comes as a tuple of one."""
    if _schema(text) != _SET:
        return (belief_from_json(text),)
    members = field(files.load(text, _SET, (1,)), "beliefs")
    if not isinstance(members, list):
        raise InvalidInputError("The field 'beliefs' must be a list of documents.")
    return as_beliefs([belief_from_json(json.dumps(member)) for member in members])


def belief_from_json(text: str | bytes) -> Belief:
    """Read one belief of any kind back from its JSON, bit for bit.

    Raises:
        InvalidInputError: if the text is no JSON or no single belief.
    """
    schema = _schema(text)
    if schema == _SET:
        raise InvalidInputError(
            "This document holds several beliefs; read it with beliefs_from_json."
        )
    if schema not in _KINDS:
        raise InvalidInputError(
            f"A document of schema {schema!r} is not a belief; known are "
            f"{', '.join(sorted(_KINDS))}."
        )
    belief: Belief = _KINDS[schema].from_json(text)
    return belief


def _schema(text: str | bytes) -> str:
    document = files.parse(text)
    found = document.get("schema") if isinstance(document, dict) else None
    return str(found).removeprefix("quiltwork/")


def digest(members: tuple[Belief, ...]) -> str:
    """Return the SHA-256 of what the beliefs' JSON claims: not where they came from."""
    content = _claims(json.loads(beliefs_to_json(members)))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _claims(document: Any) -> Any:
    """Leave out sources, and grids that are unknown, which older releases did not mention."""
    if isinstance(document, dict):
        told = {k: v for k, v in document.items() if k != "sources" and (k, v) != ("grid", None)}
        return {k: _claims(v) for k, v in told.items()}
    return [_claims(v) for v in document] if isinstance(document, list) else document
