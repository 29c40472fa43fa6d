"""Gaussian beliefs: levels per time point or row in, leakage out.

Two true values of a secret are two worlds in which every other number is shifted by a known amount.
A sum of clipped numbers shifts by no more, so the leakage is the spent level times the shift
(`docs/theory/gaussian.md`).
"""

from quiltwork.influence.gaussian.gaussian_bound import GaussianBound, SecretLeakage, no_sum
from quiltwork.influence.gaussian.known_rows import bounded_factor, known_rows_factor
from quiltwork.influence.gaussian.worst_stretch import SumLevels

__all__ = [
    "GaussianBound",
    "SecretLeakage",
    "SumLevels",
    "bounded_factor",
    "known_rows_factor",
    "no_sum",
]
