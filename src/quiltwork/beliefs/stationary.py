"""Stationary distribution, time reversal and spectral gap of a transition matrix.

The stationary distribution comes from the Grassmann–Taksar–Heyman elimination, which never
subtracts: every entry, however small, has a relative error of at most about 2k³·2⁻⁵³
(`docs/theory/stationary-distribution.md`). The gap comes from a singular value with that error
added, so that it is never too large.
"""

from __future__ import annotations

import math

import numpy as np

from quiltwork.beliefs.evolution import ordered_product
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.errors import UnsupportedError

_UNIT_ROUNDOFF = 2.0**-53


def irreducible_stationary(transition: FloatArray) -> FloatArray:
    """Return π = πP of an irreducible matrix by GTH elimination. O(k³) time, O(k²) memory.

    Theorem: docs/theory/stationary-distribution.md

    >>> irreducible_stationary(np.array([[0.9, 0.1], [0.4, 0.6]]))
    array([0.8, 0.2])
    """
    size = len(transition)
    work = np.array(transition)
    with np.errstate(all="ignore"):
        # GTH divides by the sum of the other entries instead of 1 − P(x, x): no subtraction, so
        # every entry of π is accurate relative to its own size.
        for last in range(size - 1, 0, -1):
            work[:last, last] /= work[last, :last].sum()
            work[:last, :last] += np.outer(work[:last, last], work[last, :last])
        weights = np.ones(size)
        for state in range(1, size):
            weights[state] = ordered_product(weights[:state], work[:state, state])
        weights /= weights.sum()
    # An irreducible chain has π > 0, so a zero is an underflow.
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise UnsupportedError(
            "The stationary probabilities of this chain differ by more than a float can hold "
            "(a factor of 1e300); give the initial distribution yourself, or initial='any'."
        )
    return weights


def relative_error(size: int) -> float:
    """Return a bound on the relative error of each entry that `irreducible_stationary` returns."""
    return 4.0 * size**3 * _UNIT_ROUNDOFF


def time_reversal(transition: FloatArray, stationary: FloatArray) -> FloatArray:
    """Return P*(x, y) = π(y)·P(y, x)/π(x), with rows divided by their sums. O(k²)."""
    joint = (stationary[:, np.newaxis] * transition).T
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def second_singular_value(transition: FloatArray, stationary: FloatArray) -> float:
    """Return an upper bound on the second singular value of D^½·P·D^−½, D = diag(π). O(k³).

    Its square is the second largest eigenvalue of P·P*, with multiplicity: removing √π·√πᵀ takes
    out exactly one eigenvalue 1, so no tolerance decides which eigenvalues "are" 1. Rounded up to a
    multiple of 2^-45, since the last digits of the norm are those of this machine's library.

    Theorem: docs/theory/stationary-distribution.md
    """
    size = len(transition)
    root = np.sqrt(stationary)
    symmetrized = root[:, np.newaxis] * transition / root
    norm = float(np.linalg.norm(symmetrized - np.outer(root, root), ord=2))
    # Errors of π in both factors, and of the library's singular value.
    margin = 2 * relative_error(size) + 64 * size * _UNIT_ROUNDOFF
    return min(1.0, math.ceil((norm + margin) * 2.0**45) * 2.0**-45)
