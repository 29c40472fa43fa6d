"""Whole numbers under linear constraints: found, proven not to exist, or given up on.

SciPy's HiGHS searches; what it finds is checked here in whole numbers before it counts. It is given
up after a number of steps, not of seconds, so that the same question has the same answer.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.errors import UnsupportedError

MOST_UNKNOWNS = 200_000
MOST_STEPS = 2_000

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """Unknowns 0 ≤ x ≤ upper with low ≤ matrix · x ≤ high.

    Attributes:
        matrix: sparse, one row for each constraint.
    """

    matrix: Any
    low: Ints
    high: Ints
    upper: Ints

    def cheapest(self, cost: Ints) -> Ints | None:
        """Return the whole numbers that cost least; None if there are none at all.

        Raises:
            UnsupportedError: if that is too much to search.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        if len(cost) > MOST_UNKNOWNS:
            raise UnsupportedError(f"{len(cost):,} unknowns are too many to search.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that options were passed on
            found = milp(
                cost,
                integrality=np.ones(len(cost)),
                bounds=Bounds(np.zeros(len(cost)), self.upper.astype(np.float64)),
                constraints=LinearConstraint(self.matrix, self.low, self.high),
                options={"node_limit": MOST_STEPS, "mip_rel_gap": 0.0},
            )
        if found.status == 2:
            return None
        if found.status != 0:
            raise UnsupportedError(f"{len(cost):,} unknowns were searched without a result.")
        numbers: Ints = np.rint(found.x).astype(np.int64)
        if not self.allows(numbers):
            raise UnsupportedError("What was found does not hold in whole numbers.")
        return numbers

    def allows(self, numbers: Ints) -> bool:
        """Tell whether whole numbers keep every constraint."""
        sums = self.matrix.astype(np.int64) @ numbers
        inside = (numbers >= 0) & (numbers <= self.upper)
        return bool(inside.all() and (sums >= self.low).all() and (sums <= self.high).all())
