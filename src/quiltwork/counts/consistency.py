"""Free consistency: released counts that are no longer negative and add up to a public total.

Post-processing costs no privacy. The weighted projection moves each cell in proportion to the
variance of its noise, then rounds to integers by largest remainders. Cost: O(cells · log cells).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def project(noisy: Sequence[int], variances: Sequence[float], total: int | None) -> tuple[int, ...]:
    """Return integers ≥ 0 closest to the noisy ones that add up to `total` if there is one.

    >>> project([5, -1, 3], [2.0, 2.0, 2.0], total=6)
    (4, 0, 2)
    """
    if total is None:
        return tuple(max(0, int(value)) for value in noisy)
    import numpy as np

    values = np.asarray(noisy, dtype=np.float64)
    spread = np.maximum(np.asarray(variances, dtype=np.float64), 1e-12)
    shares = np.maximum(values - shift_to_total(values, spread, total) * spread, 0.0)
    return round_to_total(shares, total)


def shift_to_total(values: NDArray[np.float64], spread: NDArray[np.float64], total: int) -> float:
    """Return t with Σ max(0, values − t·spread) = total, by sorting where cells hit 0."""
    import numpy as np

    order = np.argsort(-values / spread, kind="stable")
    sums, weights = np.cumsum(values[order]), np.cumsum(spread[order])
    candidates = (sums - total) / weights
    positive = values[order] / spread[order] > candidates
    last = int(np.flatnonzero(positive)[-1]) if positive.any() else 0
    return float(candidates[last])


def round_to_total(shares: NDArray[np.float64], total: int) -> tuple[int, ...]:
    """Round to integers that add up to `total`: largest remainders first, ties to earlier cells."""
    import numpy as np

    floors = [math.floor(share) for share in (shares + 1e-9).tolist()]
    order = np.argsort(-(shares - np.array(floors, dtype=np.float64)), kind="stable").tolist()
    missing = total - sum(floors)  # more than one per cell only where floats skip integers
    each, rest = divmod(max(missing, 0), len(floors))
    for place, index in enumerate(order):
        floors[index] += each + (place < rest)
    while missing < 0:
        room = [index for index in reversed(order) if floors[index] > 0]
        each = max(1, -missing // len(room))
        for index in room:
            taken = min(each, floors[index], -missing)
            floors[index] -= taken
            missing += taken
    return tuple(floors)
