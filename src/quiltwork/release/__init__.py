"""Releases: one private answer with its error bars.

`qw.release(…)` answers a query, `qw.release.preview(…)` tells its error beforehand, and
`qw.release.nonnegative(…)` and its siblings polish an answer at no cost.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from quiltwork.release.answer import release
from quiltwork.release.error_bars import Interval
from quiltwork.release.ledgers import BudgetLedger, Receipt
from quiltwork.release.postprocess import (
    clip,
    consistent,
    nonnegative,
    normalize,
    round_to_integers,
)
from quiltwork.release.previews import Preview, preview
from quiltwork.release.record import Release

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


class _Room(ModuleType):
    """This room and its main function share one public name, so the room can be called."""

    __call__ = staticmethod(release)


__signature__ = inspect.signature(release)
sys.modules[__name__].__class__ = _Room
