"""The simple routes to a private count, and what a consumer loses on each.

Noise of a calibrated scale, clipped to 0..n and remapped for the consumer. Clipping and remapping
are post-processing, so the level is that of the noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quiltwork.beliefs import Belief
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.errors import QuiltworkWarning
from quiltwork.exact import Number, positive_fraction
from quiltwork.influence import calibrate
from quiltwork.noise import TwoSidedGeometric
from quiltwork.queries import Query


@dataclass(frozen=True)
class Route:
    """One route: its noise and what the consumer loses.

    Attributes:
        scale: of the geometric noise.
        face_loss: with the answer taken as it is, outside 0..n too (absolute error of the noise).
        loss: with the answer clipped and optimally remapped.
    """

    scale: float
    face_loss: float
    loss: float


def geometric_route(
    beliefs: Belief | Sequence[Belief],
    length: int,
    epsilon: Number,
    user: Consumer,
    query: Query,
    method: str = "optimal-scale",
) -> Route:
    """Calibrate geometric noise by a method, remap it, and return the consumer's loss."""
    level = positive_fraction(epsilon, "epsilon")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuiltworkWarning)
        found = calibrate(beliefs, length, level, method, query)
    start, stop = query.window(length)
    return remapped(found.exact_scale, stop - start + 1, user)


def remapped(scale: Fraction, n: int, user: Consumer) -> Route:
    """The consumer's loss under geometric noise of this scale on a count in 0..n."""
    law = TwoSidedGeometric.from_scale(scale)
    table = clipped_table(law.alpha, n)
    answers = np.arange(n + 1)
    losses = user.loss.table(answers[:, None], answers[None])
    weighted = user.probabilities(n)[:, None] * table
    best = float((weighted.T @ losses).min(axis=1).sum())
    return Route(float(scale), law.expected_absolute, best)


def clipped_table(alpha: float, n: int) -> FloatArray:
    """P(answer | count) of geometric noise clipped to 0..n.

    >>> clipped_table(0.5, 1).round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    distance = np.abs(np.subtract.outer(np.arange(n + 1), np.arange(n + 1)))
    table = (1 - alpha) / (1 + alpha) * alpha ** distance.astype(np.float64)
    edge = 1 / (1 + alpha) * alpha ** np.arange(n + 1, dtype=np.float64)
    table[:, 0], table[:, -1] = edge, edge[::-1]
    if n == 0:
        table[:] = 1.0
    return np.asarray(table)
