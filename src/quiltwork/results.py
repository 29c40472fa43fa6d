"""Base classes of results: an explanation, a JSON document, a frame, and a notebook view.

| call | gives |
|---|---|
| `explain()` | its meaning in sentences |
| `to_json()` | a document with schema name and version; some classes read it with `from_json` |
| `to_frame()` | a pandas frame: a row per cell, node or release, or one row |
| `plot(ax=None)` | a figure, for results with something to draw |
| `interval(…, confidence=0.95)` | an `Interval`, `(low, high)` |

Numbers are attributes; methods take arguments. `body` returns a result's content as JSON values;
`schema` is the name and the version of its document. `chart()` describes a picture, which pages
draw as SVG and `plot` with matplotlib.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from quiltwork import files
from quiltwork.errors import UnsupportedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from quiltwork.report.charts import Chart


class Interval(NamedTuple):
    """The ends of an interval; arrays of the value's shape if the value is an array."""

    low: Any
    high: Any


class Charted:
    """A result with a picture: `chart` describes it, pages and notebooks draw it."""

    def chart(self) -> Chart:
        """Return the description of the picture; arguments, if any, have defaults."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, **choices: Any) -> Axes:
        """Draw the chart onto axes, or onto those of a new figure; needs the `plot` extra."""
        from quiltwork.report.figures import draw

        return draw(self.chart(**choices), ax)


class ResultBase:
    """Adds the methods of results to a class; frozen dataclasses need nothing more.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Noise(ResultBase):
    ...     scale: float
    ...     quilt: tuple[int, ...]
    >>> result = Noise(2.5, (1, 3))
    >>> print(result.explain())
    scale: 2.5
    quilt: 1, 3
    >>> result.to_json()
    '{"kind": "Noise", "quilt": [1, 3], "scale": 2.5, "schema": "quiltwork/result", "version": 1}'
    """

    schema: ClassVar[tuple[str, int]] = ("result", 1)
    also: ClassVar[tuple[str, ...]] = ()
    """The properties that are written beside the fields."""

    def body(self) -> dict[str, Any]:
        """Return the content as JSON values: of a dataclass, the fields that its repr shows."""
        shown = [field.name for field in fields(self) if field.repr]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in (*shown, *self.also)}

    def explain(self) -> str:
        """Describe the content, one line for each part."""
        lines = []
        for name, value in self.body().items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            lines.append(f"{name.replace('_', ' ')}: {'–' if shown in (None, '') else shown}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Write a JSON document; its schema is `quiltwork/result` unless the class has its own."""
        shared = self.schema == ResultBase.schema
        kind = {"kind": type(self).__name__} if shared else {}
        return files.dump(*self.schema, {**kind, **self.body()})

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame`."""
        return [self.body()]

    def to_frame(self) -> DataFrame:
        """Return the records as a pandas frame; needs the `publish` extra.

        Raises:
            UnsupportedError: without pandas.
        """
        try:
            import pandas
        except ImportError:
            raise UnsupportedError(
                "Frames need pandas: install it with pip install 'quiltwork[publish]'."
            ) from None
        return pandas.DataFrame(self.records())

    def _repr_html_(self) -> str:
        """Show the explanation in a notebook, below the picture of a result that has a chart."""
        return (
            f"<strong>{type(self).__name__}</strong>{_picture(self)}"
            f'<div style="white-space: pre-wrap">{html.escape(self.explain())}</div>'
        )


class ChartedResult(Charted, ResultBase):
    """A result with a picture, which a notebook shows unless drawing takes long."""

    drawn_at_once: ClassVar[bool] = True


def _picture(result: ResultBase) -> str:
    """Return a result's chart as HTML; empty for results without one."""
    if not isinstance(result, ChartedResult) or not result.drawn_at_once:
        return ""
    from quiltwork.report import standalone_svg

    with suppress(UnsupportedError):
        return f'<div style="max-width: 720px">{standalone_svg(result.chart())}</div>'
    return ""


def plain(value: Any) -> Any:
    """Return the value as JSON values: fractions as text, infinite numbers as null.

    >>> plain({"scale": Fraction(1, 3), "nodes": (1, 2), "leakage": math.inf})
    {'scale': '1/3', 'nodes': [1, 2], 'leakage': None}
    """
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, ResultBase):
        return value.body()
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name)) for field in fields(value) if field.repr
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
