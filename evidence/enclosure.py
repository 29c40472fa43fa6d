"""The exact leakage in integers alone: an enclosure of ε* that rests on no floating point.

A chain's floats are dyadic rationals, so the laws are exact; the noise enters through integer
enclosures of e^(−1/scale), rounded outwards at every step. Cost: the dynamic program on integers
of about 60 bits per time point; seconds at a hundred time points with two states.

The independent side of `audit.leakage`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.audit.additive import JointStatistic, joint
from quiltwork.audit.inner import require_tractable
from quiltwork.audit.laws import NodeLaw, Weights, integer_laws
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief
from quiltwork.beliefs.secrets import parse_secrets
from quiltwork.errors import UnsupportedError
from quiltwork.exact import float_down, float_up, integer
from quiltwork.noise.enclosure import Enclosure, exp_minus
from quiltwork.queries import Query

_GUARD_BITS = 128
_MOST_BITS = 1 << 16
_LOG_ERROR = 2.0**-50


@dataclass(frozen=True)
class Bracket:
    """Two numbers with ε* between them."""

    lower: float
    upper: float


def enclose(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    secrets: tuple[int, int] | None = None,
) -> Bracket:
    """Return a rigorous enclosure of the exact leakage; arguments as for `leakage`, noise > 0.

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> found = enclose(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 8, [(queries.count(1), 2)])
    >>> found.upper - found.lower < 1e-12
    True
    """
    chains = require_tractable(beliefs)
    points = integer(length, "length", 1)
    nodes = parse_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    bits = _bits(statistic)
    ratios = [exp_minus(1 / scale, bits) for scale in statistic.scales]
    every = [Laws(chain, points, statistic, nodes) for chain in chains]
    found = [
        node_bracket(law, laws.statistic.sizes, ratios, bits)
        for laws in every
        for law in integer_laws(laws.chain, points, laws.statistic, nodes)
    ]
    return Bracket(max(one.lower for one in found), max(one.upper for one in found))


def node_bracket(
    law: NodeLaw, sizes: tuple[int, ...], ratios: Sequence[Enclosure], bits: int
) -> Bracket:
    """Enclose what one node leaks."""
    rows = [row for row, possible in zip(law.weights, law.possible, strict=True) if possible]
    if len(rows) < 2:
        return Bracket(0.0, 0.0)
    enclosed = [_smoothed(row, sizes, ratios, bits) for row in rows]
    low, high = (np.stack([pair[side] for pair in enclosed]) for side in (0, 1))
    upper = max(_quotients(high.max(axis=0), low.min(axis=0)))
    lower = max(_quotients(low.max(axis=0), high.min(axis=0)))
    return Bracket(log_down(max(lower, Fraction(1))), log_up(upper))


def log_up(value: Fraction) -> float:
    """A float at or above log(value), value ≥ 1."""
    found = math.log(float_up(value))
    return found + (found + 1) * _LOG_ERROR


def log_down(value: Fraction) -> float:
    """A float at or below log(value), value ≥ 1."""
    found = math.log(float_down(value))
    return max(0.0, found - (found + 1) * _LOG_ERROR)


def _bits(statistic: JointStatistic) -> int:
    if not all(statistic.scales):
        raise UnsupportedError("The enclosure needs noise; without it use audit.leakage.")
    pairs = zip(statistic.sizes, statistic.scales, strict=True)
    exponent = sum((size / scale for size, scale in pairs), Fraction(0))
    if exponent > _MOST_BITS:
        raise UnsupportedError(
            f"The noise is so small that an enclosure needs {math.ceil(exponent)} digits and "
            "more; use audit.leakage."
        )
    return _GUARD_BITS + 2 * math.ceil(exponent)


def _smoothed(
    row: Weights, sizes: tuple[int, ...], ratios: Sequence[Enclosure], bits: int
) -> tuple[Weights, Weights]:
    total = int(row.sum())
    scaled = [int(weight) << bits for weight in row]
    low = np.array([weight // total for weight in scaled], dtype=object).reshape(sizes)
    high = np.array([-(-weight // total) for weight in scaled], dtype=object).reshape(sizes)
    for axis, (below, above) in enumerate(ratios):
        low = _along(low, axis, lambda part, r=below: (part * r) >> bits)
        high = _along(high, axis, lambda part, r=above: -((-part * r) >> bits))
    return low.ravel(), high.ravel()


def _along(law: Weights, axis: int, damp: Any) -> Weights:
    first = np.moveaxis(law, axis, 0)
    forwards, backwards = np.array(first), np.zeros_like(first)
    for w in range(1, len(first)):
        forwards[w] = forwards[w] + damp(forwards[w - 1])
    for w in range(len(first) - 2, -1, -1):
        backwards[w] = damp(backwards[w + 1] + first[w + 1])
    return np.moveaxis(forwards + backwards, 0, axis)


def _quotients(tops: Weights, bottoms: Weights) -> Iterator[Fraction]:
    for top, bottom in zip(tops, bottoms, strict=True):
        yield Fraction(int(top), int(bottom))
