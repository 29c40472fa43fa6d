"""What one chapter of the demonstration shows: in the terminal, on the page and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quiltwork.report import Html


@dataclass(frozen=True)
class Chapter:
    """`lines` for the terminal, `parts` for the page, `data` for `--json`."""

    name: str
    title: str
    lines: tuple[str, ...]
    parts: tuple[Html, ...]
    data: Mapping[str, Any]
