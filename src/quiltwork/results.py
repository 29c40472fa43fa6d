"""What results share: sentences, a document, a frame, and how they look in a notebook.

| call | gives |
|---|---|
| `explain()` | what it means, in sentences |
| `to_json()` | a document with schema name and version; `from_json` reads those back that can be |
| `to_frame()` | a pandas frame: a row per cell, node or release, or one row |
| `plot(ax=None)` | a figure, for results with something to draw |
| `interval(…, confidence=0.95)` | an `Interval`, `(low, high)` |

Numbers are attributes; a method is what takes arguments. A result says what it holds in `body`, as
JSON values; `schema` is the name and the version of its document. One with something to draw
describes it in `chart()`, which pages draw as SVG and `plot` with matplotlib.
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
    """The ends of an interval; arrays of the value's shape where the value is one."""

    low: Any
    high: Any


class Charted:
    """Something to draw: `chart` describes it, pages and notebooks draw that."""

    def chart(self) -> Chart:
        """Return what there is to draw; a result may take arguments, all with defaults."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, **choices: Any) -> Axes:
        """Draw the chart onto axes, or onto those of a new figure; needs the `plot` extra."""
        from quiltwork.report.figures import draw

        return draw(self.chart(**choices), ax)


class ResultBase:
    """Gives a class what results share; frozen dataclasses need nothing more.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Found(ResultBase):
    ...     scale: float
    ...     quilt: tuple[int, ...]
    >>> found = Found(2.5, (1, 3))
    >>> print(found.explain())
    scale: 2.5
    quilt: 1, 3
    >>> found.to_json()
    '{"kind": "Found", "quilt": [1, 3], "scale": 2.5, "schema": "quiltwork/result", "version": 1}'
    """

    schema: ClassVar[tuple[str, int]] = ("result", 1)
    also: ClassVar[tuple[str, ...]] = ()
    """Properties that are written beside the fields."""

    def body(self) -> dict[str, Any]:
        """Return what it holds as JSON values: of a dataclass, the fields that its repr shows."""
        shown = [one.name for one in fields(self) if one.repr]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in (*shown, *self.also)}

    def explain(self) -> str:
        """Say what it holds, a line for each part."""
        lines = []
        for name, value in self.body().items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            lines.append(f"{name.replace('_', ' ')}: {'–' if shown in (None, '') else shown}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Write it as a document; `quiltwork/result` unless the class has a schema of its own."""
        shared = self.schema == ResultBase.schema
        kind = {"kind": type(self).__name__} if shared else {}
        return files.dump(*self.schema, {**kind, **self.body()})

    def records(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame`."""
        return [self.body()]

    def to_frame(self) -> DataFrame:
        """Return it as a pandas frame; needs the `publish` extra.

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
    """A result with something to draw, which a notebook shows unless that takes long."""

    drawn_at_once: ClassVar[bool] = True


def _picture(result: ResultBase) -> str:
    """Draw the chart of a result that has one, where there is something to draw."""
    if not isinstance(result, ChartedResult) or not result.drawn_at_once:
        return ""
    from quiltwork.report import standalone_svg

    with suppress(UnsupportedError):
        return f'<div style="max-width: 720px">{standalone_svg(result.chart())}</div>'
    return ""


def plain(value: Any) -> Any:
    """Return JSON values for what results hold: fractions as text, infinite numbers as null.

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
        return {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.repr}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | Set):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
