"""Products whose digits do not depend on the machine: summed in the order of the inner index.

The same digits as those of the kernel's products, on which this room may not rest; matrices here
are few and small. Cost: O(rows · inner · columns), in as many calls of NumPy as the inner index
has values.
"""

from __future__ import annotations

import numpy as np

from quiltwork.beliefs.matrices import FloatArray


def ordered_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """left @ right for a vector or a matrix on the left and a matrix or a vector on the right.

    >>> ordered_product(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.4, 0.6]]))
    array([0.65, 0.35])
    """
    result = np.zeros((*left.shape[:-1], *right.shape[1:]))
    for m in range(len(right)):
        result += np.multiply.outer(left[..., m], right[m])
    return result
