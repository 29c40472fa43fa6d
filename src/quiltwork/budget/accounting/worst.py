"""The answer every search for the worst time point gives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Worst:
    """The time point that leaks most; `exact` bounds the leakage of every other, too.

    For a chain `own` is spent on it, and its neighbours add `before` and `after`; for rows of
    clusters and networks everything nearby is paid for, and the `quilt` adds `after`.
    """

    exact: Fraction
    node: int | None = None
    own: float = 0.0
    before: float = 0.0
    after: float = 0.0
    quilt: tuple[int, ...] = ()
