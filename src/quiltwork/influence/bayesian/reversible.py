"""Lemma 4: the level for a reversible chain in closed form, from its gap and its rarest state.

With g = 1 − |λ₂| and ρ = min π, X_{i±d} betrays little once δ_d = e^(−gd)/ρ is small: its influence
is at most s_d = log((1+δ_d)/(1−δ_d)) on the right and 2·s_d on the left. The paper's constant c is
s_d/ε, so choosing the best c is choosing the best distance d.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, float_down, integer, positive_fraction
from quiltwork.influence.bayesian.families import Bound

_UP = 1 + 2.0**-40
_DOWN = 1 - 2.0**-40
_MOST_DISTANCES = 1 << 20


@dataclass(frozen=True)
class ReversibleLevel:
    """What Lemma 4 gives.

    Attributes:
        level: the DP level that suffices, rounded down; 0 if the lemma says nothing at this
            length.
        distance: the best d: quilts lie d nodes away on both sides; 0 if there is none.
        constant: the paper's c for this d.
        gap: g, rounded down.
        rarest: ρ, rounded down.
    """

    level: float
    distance: int
    constant: float
    gap: float
    rarest: float


def reversible_level(
    chain: MarkovChain, epsilon: Number, length: int, bound: Bound = "tight"
) -> ReversibleLevel:
    """Return Lemma 4's DP level for ε-Bayesian DP, its constant chosen best. O(k³ + distances).

    "paper" is min{(1−6c)ε/(2d−1), (1/3−2c)ε/(d+s)}; "tight" (1−4c)ε/(2d−1), by the projective
    influence. Both need length ≥ 2d.

    Theorem: docs/theory/bayesian-dp.md

    Raises:
        UnsupportedError: unless the chain is reversible, irreducible and aperiodic.

    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> found = reversible_level(chain, 1, length=1000)
    >>> found.distance, round(found.level, 5)
    (11, 0.03983)
    """
    target = float_down(positive_fraction(epsilon, "epsilon"))
    points = integer(length, "length", 1)
    if not (chain.is_reversible and chain.is_aperiodic):
        raise UnsupportedError(
            "Lemma 4 holds for reversible, irreducible and aperiodic chains, and this one is not; "
            "use bayesian_dp or dp_for_bayesian_dp, which hold for every chain."
        )
    gap = max(0.0, (1 - chain.second_singular_value) * _DOWN)
    rarest = float(chain.stationary.min()) * (1 - relative_error(chain.size))
    most = min(points // 2, _MOST_DISTANCES)
    side = _paper_side(target, gap, rarest) if bound == "paper" else math.nan
    best = ReversibleLevel(0.0, 0, 0.0, gap, rarest)
    for distance in range(_first_distance(gap, rarest, most), most + 1):
        if target / (2 * distance - 1) <= best.level:
            break
        silence = _silence(gap, rarest, distance)
        level = _level(target, distance, silence, side, bound)
        if level > best.level:
            best = ReversibleLevel(level, distance, silence / target, gap, rarest)
    return best


def _level(target: float, distance: int, silence: float, side: float, bound: Bound) -> float:
    room = (target - (6 if bound == "paper" else 4) * silence) * _DOWN
    level = room / (2 * distance - 1)
    if bound == "paper":
        level = min(level, room / 3 / (distance + side))
    return max(level * _DOWN, 0.0)


def _first_distance(gap: float, rarest: float, most: int) -> int:
    """The first d with δ_d < 1, or beyond `most`."""
    if gap <= 0:
        return most + 1
    return max(1, min(most + 1, math.ceil(-math.log(rarest) / gap)))


def _silence(gap: float, rarest: float, distance: int) -> float:
    """s_d, rounded up; +inf where δ_d is not below 1."""
    share = math.exp(-gap * distance) * _UP / rarest
    return math.inf if share >= 1 else math.log1p(2 * share / (1 - share)) * _UP


def _paper_side(target: float, gap: float, rarest: float) -> float:
    """The paper's s, rounded up."""
    if gap <= 0:
        return math.inf
    return math.ceil(math.log(1 / (rarest * math.tanh(target / 12))) / gap * _UP)
