"""Releases: one private answer with its error bars.

`qw.release(…)` answers a query, `qw.preview(…)` tells its error beforehand, and
`qw.releases.nonnegative(…)` and its siblings polish an answer at no cost.
"""

from __future__ import annotations

from quiltwork.releases.answer import release
from quiltwork.releases.error_bars import Interval
from quiltwork.releases.ledgers import BudgetLedger, Receipt
from quiltwork.releases.postprocess import (
    clip,
    consistent,
    nonnegative,
    normalize,
    round_to_integers,
)
from quiltwork.releases.previews import Preview, preview
from quiltwork.releases.record import Release

__all__ = [
    "BudgetLedger",
    "Interval",
    "Preview",
    "Receipt",
    "Release",
    "clip",
    "consistent",
    "nonnegative",
    "normalize",
    "preview",
    "release",
    "round_to_integers",
]
