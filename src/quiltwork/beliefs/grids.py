"""`Grid`: the step, edges and labels that turned records into time points and states.

A chain of hourly states does not apply to quarters of an hour, and its second state is defined by
the edges of the binning. So a belief stores its grid, and data on another grid are refused.
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
    """The step and the binning of a belief or of data; None for unknown parts.

    Args:
        step: the time between neighbouring time points, in seconds, or a text such as "10min".
        edges: the public edges that turn numbers into states.
        labels: the states in order, where declared; with edges, one more than those.
        rule: the aggregation of the numbers within a step; only with a step and edges.

    Raises:
        InvalidInputError: for an invalid part.

    >>> Grid(step="1h", edges=(0.5, 2))
    Grid(step=3600, edges=(0.5, 2.0), labels=None, rule=None)
    """

    step: int | None = None
    edges: tuple[float, ...] | None = None
    labels: tuple[Label, ...] | None = None
    rule: Rule | None = None

    def __post_init__(self) -> None:
        """Validate the parts and convert them to plain values."""
        step = parse_duration(self.step) if isinstance(self.step, str) else self.step
        parsed = {
            "step": None if step is None else integer(step, "step", 1),
            "edges": None if self.edges is None else parse_edges(self.edges),
            "labels": None if self.labels is None else distinct_labels(self.labels),
        }
        for name, value in parsed.items():
            object.__setattr__(self, name, value)
        if self.rule is not None:
            choice(self.rule, get_args(Rule), "rule")
        if self.edges is not None and self.labels is not None:
            check_labels(self.edges, self.labels)

    @property
    def words(self) -> str:
        """The step and the edges in words, as far as they are known."""
        parts = []
        if self.step is not None:
            parts.append(f"every {duration(self.step)}")
        if self.edges is not None:
            parts.append(f"edges {_numbers(self.edges)}")
        return ", ".join(parts)

    def completed(self, other: Grid | None) -> Grid:
        """Return this grid, with unknown parts taken from the other."""
        if other is None:
            return self
        unknown = [part.name for part in fields(self) if getattr(self, part.name) is None]
        return replace(self, **{name: getattr(other, name) for name in unknown})

    def to_document(self) -> dict[str, Any]:
        """Return the grid as JSON values, the field `grid` of a belief's document."""
        labels = None if self.labels is None else labels_to_json(self.labels)
        edges = None if self.edges is None else list(self.edges)
        return {"step": self.step, "edges": edges, "labels": labels, "rule": self.rule}

    @classmethod
    def from_document(cls, document: Any) -> Grid | None:
        """Return the grid that `to_document` wrote; None for None.

        Raises:
            InvalidInputError: if it is not a grid.
        """
        if document is None:
            return None
        names = {part.name for part in fields(cls)}
        if not isinstance(document, dict) or not document.keys() <= names:
            raise InvalidInputError(
                f"The grid of a belief has the fields {', '.join(sorted(names))}; the document may "
                "have been edited."
            )
        labels = document.get("labels")
        return cls(**{**document, "labels": None if labels is None else labels_from_json(labels)})


def grid_difference(one: Grid | None, other: Grid | None) -> tuple[str, str] | None:
    """Return a known difference of two grids, in words for each; None if there is none.

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
    """Raise InvalidInputError for data that are known to be on another grid than a belief."""
    if words := grid_difference(belief, data):
        raise InvalidInputError(
            f"The belief was made for {words[0]}, but the data are on {words[1]}, to which it does "
            "not apply. Read the data on the belief's grid, or fit a belief on theirs."
        )


def common_grid(grids: Iterable[Grid | None]) -> Grid | None:
    """Return the grid that all sequences share, combined from their known parts."""
    common: Grid | None = None
    for grid in grids:
        if grid is None or grid == common:
            continue
        if words := grid_difference(common, grid):
            raise InvalidInputError(
                f"Some sequences are on {words[0]}, others on {words[1]}; fit on sequences of one "
                "grid."
            )
        common = grid.completed(common)
    return common


def grid_suffix(grid: Grid | None) -> str:
    """Return the part of a belief's repr about its grid."""
    return "" if grid is None or not grid.words else f"; {grid.words}"


def grid_words(grid: Grid | None) -> str:
    """Return the part of a belief's summary about its grid."""
    return "" if grid is None or not grid.words else f", {grid.words}"


def parse_grid(grid: object) -> Grid | None:
    """Return an argument that must be a Grid or None."""
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
    """Raise InvalidInputError unless there is one distinct label more than edges."""
    if len(labels) != len(edges) + 1 or len(set(labels)) < len(labels):
        raise InvalidInputError(
            f"{len(edges)} edges make {len(edges) + 1} states, but the labels are "
            f"{list(labels)!r}; give one distinct label for each."
        )


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as `10min`, `1h`, `30s` or `1d`.

    >>> parse_duration("10min")
    600
    """
    match = _DURATION.fullmatch(instance(text, str, "A duration").strip().lower())
    if not match or match[2] not in _UNITS or int(match[1]) == 0:
        raise InvalidInputError(
            f"Cannot read the duration {text!r}; write for example 30s, 10min, 1h or 1d."
        )
    return int(match[1]) * _UNITS[match[2]]


def duration(seconds: int) -> str:
    """Return seconds as a duration in words, such as `15min`.

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
