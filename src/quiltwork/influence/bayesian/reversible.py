"""Lemma 4: the level for a reversible chain in closed form, from its gap and its rarest state.

With g = 1 − |λ₂| and ρ = min π, X_{i±d} has little influence once δ_d = e^(−gd)/ρ is small: at most
s_d = log((1+δ_d)/(1−δ_d)) on the right and 2·s_d on the left. The paper's constant c is s_d/ε, so
choosing the best c is choosing the best distance d.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

import math
from fractions import Fraction

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.exact import float_down

_UP = 1 + 2.0**-40
_DOWN = 1 - 2.0**-40
_MOST_DISTANCES = 1 << 20


def reversible_level(chain: MarkovChain, epsilon: Fraction, length: int) -> float:
    """Return Lemma 4's DP level for ε-Bayesian DP with the best constant c, rounded down.

    That is min{(1−6c)ε/(2d−1), (1/3−2c)ε/(d+s)}, which needs length ≥ 2d; 0 where the lemma says
    nothing. O(k³ + distances).

    Theorem: docs/theory/bayesian-dp.md

    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> round(reversible_level(chain, Fraction(1), length=1000), 5)
    0.01378
    """
    if not (chain.is_reversible and chain.is_aperiodic):
        return 0.0
    target = float_down(epsilon)
    gap = max(0.0, (1 - chain.second_singular_value) * _DOWN)
    rarest = float(chain.stationary.min()) * (1 - relative_error(chain.size))
    most = min(length // 2, _MOST_DISTANCES)
    side = _paper_side(target, gap, rarest)
    best = 0.0
    for distance in range(_first_distance(gap, rarest, most), most + 1):
        # levels only fall with the distance from here on
        if target / (2 * distance - 1) <= best:
            break
        room = (target - 6 * _silence(gap, rarest, distance)) * _DOWN
        level = min(room / (2 * distance - 1), room / 3 / (distance + side))
        best = max(best, level * _DOWN)
    return best


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
