"""The matrix of the geometric mechanism: the probability of every answer to every count.

G[i, r] = v[r]·α^|i−r|: powers of α by distance, times one weight per column. The weights of the two
end columns collect the tails that clipping moves there.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def geometric_matrix(n: int, alpha: Fraction, exact: bool = False) -> NDArray[Any]:
    """Return G, (n+1)×(n+1), as floats or with `exact` as Fractions. O(n²)."""
    import numpy as np

    base = alpha if exact else float(alpha)
    powers = np.array([base**d for d in range(n + 1)])
    distance = abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    matrix: NDArray[Any] = powers[distance] * column_weights(n, alpha, exact)
    return matrix


def column_weights(n: int, alpha: Fraction, exact: bool = False) -> NDArray[Any]:
    """Return v with G[i, r] = v[r]·α^|i−r|: 1/(1+α) at both ends, (1−α)/(1+α) between."""
    import numpy as np

    end, middle = 1 / (1 + alpha), (1 - alpha) / (1 + alpha)
    weights = np.empty(n + 1, dtype=object if exact else np.float64)
    weights[:] = middle if exact else float(middle)
    weights[[0, -1]] = end if exact else float(end)
    return weights
