"""The answer every search for the worst node gives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Worst:
    """The node with the largest leakage, its best quilt and the bound they give.

    `exact` bounds the leakage of every node from above. `missing` is how much lower it could be
    if quilts beyond the reach of the families were tried too.
    """

    exact: Fraction
    node: int | None = None
    quilt: tuple[int, ...] = ()
    influence: float = 0.0
    missing: float = 0.0
