"""Grids: how records became the time points and states that a belief is about.

A chain of hourly states says nothing about quarters of an hour, and its second state means what its
edges made of it. So a belief keeps its grid, and data that are known to be on another are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from quiltwork.arguments import choice, instance, listed
from quiltwork.beliefs.documents import labels_from_json, labels_to_json
from quiltwork.beliefs.states import Label, distinct_labels, show_labels
from quiltwork.errors import InvalidInputError
from quiltwork.exact import integer, to_fraction

Rule: TypeAlias = Literal["mean", "min", "max", "sum", "first", "last"]

_UNITS = {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400}
_SHOWN = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_DURATION = re.compile(r"(\d+)\s*([a-z]+)")


@dataclass(frozen=True)
class Grid:
    """What is known about the time points and states of a belief, or of data; None is unknown.

    Args:
        step: from one time point to the next, in seconds, or a text such as "10min".
        edges: the public edges that turned numbers into states.
        labels: the states in order, where they were declared; with edges, one more than those.
        rule: how the numbers of one step were gathered; only with a step and edges.

    Raises:
        InvalidInputError: for what cannot be a grid.

    >>> Grid(step="1h", edges=(0.5, 2))
    Grid(step=3600, edges=(0.5, 2.0), labels=None, rule=None)
    """

    step: int | None = None
    edges: tuple[float, ...] | None = None
    labels: tuple[Label, ...] | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        """Check the parts and make them plain."""
        step = parse_duration(self.step) if isinstance(self.step, str) else self.step
        read = {
            "step": None if step is None else integer(step, "step", 1),
            "edges": None if self.edges is None else parse_edges(self.edges),
            "labels": None if self.labels is None else distinct_labels(self.labels),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        if self.rule is not None:
            choice(self.rule, get_args(Rule), "rule")
        if self.edges is not None and self.labels is not None:
            check_labels(self.edges, self.labels)

    @property
    def words(self) -> str:
        """The step and the edges, as far as they are known."""
        parts = []
        if self.step is not None:
            parts.append(f"every {duration(self.step)}")
        if self.edges is not None:
            parts.append(f"edges {_numbers(self.edges)}")
        return ", ".join(parts)

    def completed(self, other: Grid | None) -> Grid:
        """Return this grid, with what is unknown taken from the other."""
        if other is None:
            return self
        unknown = [part.name for part in fields(self) if getattr(self, part.name) is None]
        return replace(self, **{name: getattr(other, name) for name in unknown})

    def to_document(self) -> dict[str, Any]:
        """Write the grid as the field `grid` of a belief's JSON."""
        labels = None if self.labels is None else labels_to_json(self.labels)
        edges = None if self.edges is None else list(self.edges)
        return {"step": self.step, "edges": edges, "labels": labels, "rule": self.rule}

    @classmethod
    def from_document(cls, document: Any) -> Grid | None:
        """Read what `to_document` wrote; None, where there is nothing, stays unknown.

        Raises:
            InvalidInputError: if it is no grid.
        """
        if document is None:
            return None
        names = {part.name for part in fields(cls)}
        if not isinstance(document, dict) or not document.keys() <= names:
            raise InvalidInputError(
                f"The grid of a belief has {', '.join(sorted(names))}; the document may have been "
                "edited."
            )
        labels = document.get("labels")
        return cls(**{**document, "labels": None if labels is None else labels_from_json(labels)})


def grid_difference(one: Grid | None, other: Grid | None) -> tuple[str, str] | None:
    """Return how two grids are known to differ, in words; None if they are not known to.

    >>> grid_difference(Grid(step="1h"), Grid(step="15min", edges=(0.5,)))
    ('steps of 1h', 'steps of 15min')
    """
    if one is None or other is None:
        return None
    for part in fields(one):
        left, right = getattr(one, part.name), getattr(other, part.name)
        if left is not None and right is not None and left != right:
            return _SHOWERS[part.name](left), _SHOWERS[part.name](right)
    return None


def require_same_grid(belief: Grid | None, data: Grid | None) -> None:
    """Refuse data that are known to be on another grid than a belief."""
    if words := grid_difference(belief, data):
        raise InvalidInputError(
            f"The belief was made for {words[0]}, but the data are on {words[1]}, about which it "
            "says nothing. Read the data on the belief's grid, or fit a belief on theirs."
        )


def common_grid(grids: Iterable[Grid | None]) -> Grid | None:
    """Return what is known together about sequences that are to be of one grid."""
    known: Grid | None = None
    for grid in grids:
        if grid is None or grid == known:
            continue
        if words := grid_difference(known, grid):
            raise InvalidInputError(
                f"Some sequences are on {words[0]}, others on {words[1]}; fit on sequences of one "
                "grid."
            )
        known = grid.completed(known)
    return known


def grid_suffix(grid: Grid | None) -> str:
    """Return what to add to a belief's name."""
    return "" if grid is None or not grid.words else f"; {grid.words}"


def parse_grid(grid: object) -> Grid | None:
    """Return a grid given by a caller, or None."""
    if grid is None or isinstance(grid, Grid):
        return grid
    raise InvalidInputError(f"grid must be a Grid, not {grid!r}; write Grid(step='1h').")


def parse_edges(edges: Sequence[object]) -> tuple[float, ...]:
    """Return increasing finite numbers, at least one."""
    try:
        numbers = tuple(float(to_fraction(edge, "An edge")) for edge in listed(edges, "edges"))
    except OverflowError:
        raise InvalidInputError("An edge is larger than any float; give a smaller one.") from None
    if not numbers or any(b <= a for a, b in pairwise(numbers)):
        raise InvalidInputError(
            f"Edges must be one or more increasing numbers, not {list(numbers)!r}."
        )
    return numbers


def check_labels(edges: Sequence[float], labels: Sequence[Label]) -> None:
    """Refuse labels that are not one more than the edges, or not distinct."""
    if len(labels) != len(edges) + 1 or len(set(labels)) < len(labels):
        raise InvalidInputError(
            f"{len(edges)} edges make {len(edges) + 1} states, but the labels are "
            f"{list(labels)!r}; give one distinct label for each."
        )


def parse_duration(text: str) -> int:
    """Read a duration such as `10min`, `1h`, `30s` or `1d`.

    >>> parse_duration("10min")
    600
    """
    found = _DURATION.fullmatch(instance(text, str, "A duration").strip().lower())
    if not found or found[2] not in _UNITS or int(found[1]) == 0:
        raise InvalidInputError(
            f"Cannot read the duration {text!r}; write for example 30s, 10min, 1h or 1d."
        )
    return int(found[1]) * _UNITS[found[2]]


def duration(seconds: int) -> str:
    """Write a duration as `parse_duration` reads it.

    >>> duration(900), duration(7200), duration(90)
    ('15min', '2h', '90s')
    """
    unit, size = next((unit, size) for unit, size in _SHOWN if seconds % size == 0)
    return f"{seconds // size}{unit}"


def _numbers(edges: tuple[float, ...], most: int = 6) -> str:
    shown = ", ".join(f"{edge:g}" for edge in edges[:most])
    return shown if len(edges) <= most else f"{shown}, … ({len(edges)} in all)"


_SHOWERS: dict[str, Any] = {
    "step": lambda step: f"steps of {duration(step)}",
    "edges": lambda edges: f"the edges {', '.join(map(repr, edges))}",
    "labels": lambda labels: f"the states {show_labels(labels, most=12)}",
    "rule": lambda rule: f"the {rule} of each step",
}
