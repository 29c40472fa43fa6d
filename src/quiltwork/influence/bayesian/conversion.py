"""From the level of a DP mechanism to its Bayesian level and back.

A mechanism that is x-DP for substituting one row is ε-Bayesian DP for
ε = max_i min_Q [(|N_Q|+1)·x + h_Q], N_Q the nearby nodes without i: the same search as for the
influence curve, at influences that hold whatever the adversary knows. Along chains the sweep by
contraction holds against all of them too, and is mostly sharper.

Theorem: docs/theory/bayesian-dp.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, cast, get_args

from quiltwork.arguments import choice
from quiltwork.beliefs import (
    Belief,
    ChainBox,
    CyclicChain,
    DatedChain,
    Gaussian,
    HiddenChain,
    MarkovChain,
    as_beliefs,
)
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    integer,
    privacy_level,
    to_fraction,
)
from quiltwork.influence.bayesian import (
    networks as networks,  # a network answers adversary_families too
)
from quiltwork.influence.bayesian.adversary_quilts import AdversaryBound, Bound
from quiltwork.influence.bayesian.forgetting import sweep_of_hidden
from quiltwork.influence.bayesian.reversible import reversible_level
from quiltwork.influence.belief_bound import number_of_nodes
from quiltwork.influence.calibration_arguments import common_length
from quiltwork.influence.gaussian import known_rows_factor
from quiltwork.influence.quilts.intervals import BestQuilt
from quiltwork.influence.quilts.prices import LeakAt, ScaleFor
from quiltwork.influence.quilts.quilt_bound import default_quilts
from quiltwork.influence.sweep import Levels, Sweepable, largest_factor, sweep_against_known_rows
from quiltwork.influence.sweep.construction import sweep_of
from quiltwork.influence.sweep.leakage import Sweep
from quiltwork.roots import bisect

_SLACK = Fraction(1, 2**39)
_BISECTIONS = 60


def bayesian_dp(
    beliefs: Belief | Sequence[Belief] | None,
    dp_epsilon: Number,
    *,
    length: int | None = None,
    bound: Bound = "tight",
) -> float:
    """Return the Bayesian level of a mechanism that is `dp_epsilon`-DP, rounded up.

    Whatever rows an adversary knows, the answer changes their odds between two values of any
    other row by at most this factor (as a logarithm). Independent rows give `dp_epsilon` itself,
    `Clusters` the largest cluster times it. Gaussian beliefs say something about sums and means of
    clipped numbers only: for them `dp_epsilon` is the level of those. Cost: as `calibrate`.

    Theorem: docs/theory/bayesian-dp.md, docs/theory/gaussian.md

    Args:
        beliefs: one belief, a list (the worst decides), or None for independent rows.
        dp_epsilon: the level for *substituting* one row, > 0; for several releases, the sum.
        length: the number of rows; None for beliefs about fixed rows.
        bound: "tight", or "paper" for Lemmas 2–4 as they are printed.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.

    >>> from quiltwork.beliefs import Clusters
    >>> bayesian_dp(None, 0.3), bayesian_dp(Clusters(["a", "a", "b"]), 0.3)
    (0.3, 0.6)
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> round(bayesian_dp(chain, 0.05, length=1000), 4)
    0.1837
    >>> round(bayesian_dp(chain, 0.05, length=1000, bound="paper"), 4)
    0.9053
    """
    level = privacy_level(dp_epsilon, "dp_epsilon")
    chosen = parse_bound(bound)
    if beliefs is None:
        _check_rows(length)
        return decimal_float_up(level)
    if (factor := _gaussian_factor(beliefs, length)) is not None:
        return decimal_float_up(level * factor)
    seen = adversary_bounds(beliefs, length, chosen)
    return max(min(_leak(one, level), _swept_leak(one, level)) for one in seen)


def leakage_given_past(belief: Belief, dp_epsilon: float, length: int | None) -> float:
    """Return what a `dp_epsilon`-DP mechanism tells of a row to who knows the rows before it.

    Given those rows a chain goes on by its own matrix, so only the right side of the exact sweep
    counts: own level + largest bound to the right, at most the Bayesian level. Rounded up.

    Theorem: docs/theory/max-information.md

    >>> chain = MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    >>> round(leakage_given_past(chain, 0.01, 1000), 4)
    0.0125
    >>> round(bayesian_dp(chain, 0.01, length=1000), 4)
    0.015
    """
    level = bayesian_dp(belief, dp_epsilon, length=length)
    if not isinstance(belief, MarkovChain | CyclicChain | DatedChain | ChainBox) or length is None:
        return level
    sweep = sweep_of(belief, length)
    right = sweep.right.fixed(dp_epsilon) if isinstance(sweep, Sweep) else None
    if right is None:
        return level
    return min(level, (dp_epsilon + float(right.max())) * (1 + 2.0**-50))


def dp_for_bayesian_dp(
    beliefs: Belief | Sequence[Belief] | None,
    epsilon: Number,
    *,
    length: int | None = None,
    bound: Bound = "tight",
) -> float:
    """Return a DP level that makes every mechanism `epsilon`-Bayesian DP, rounded down.

    The largest one that the bound allows; infinite where no row has two possible values.

    Theorem: docs/theory/bayesian-dp.md

    Args:
        beliefs: as in `bayesian_dp`.
        epsilon: what any adversary may learn about a row, > 0.
        length: as in `bayesian_dp`.
        bound: as in `bayesian_dp`.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.

    >>> from quiltwork.beliefs import Clusters
    >>> dp_for_bayesian_dp(None, 0.3), dp_for_bayesian_dp(Clusters(["a", "a", "b"]), 0.3)
    (0.3, 0.15)
    """
    target = privacy_level(epsilon, "epsilon")
    chosen = parse_bound(bound)
    if beliefs is None:
        _check_rows(length)
        return decimal_float_down(target)
    if (factor := _gaussian_factor(beliefs, length)) is not None:
        return decimal_float_down(target / factor)
    seen = adversary_bounds(beliefs, length, chosen)
    return min(max(_allowed(one, target), _swept_level(one, target)) for one in seen)


def _gaussian_factor(beliefs: Any, length: Any) -> Fraction | None:
    """By what levels are multiplied under Gaussian beliefs; None for others."""
    members = as_beliefs(beliefs)
    if not isinstance(members[0], Gaussian):
        return None
    rows = common_length(members, length)
    gaussian = (one for one in members if isinstance(one, Gaussian))
    return max(Fraction(known_rows_factor(one, rows)) for one in gaussian)


def _swept(seen: AdversaryBound) -> Sweepable | None:
    """The sweep against adversaries who know rows; the paper's bound does without."""
    if isinstance(seen.belief, HiddenChain):
        return sweep_of_hidden(seen.belief, seen.length)
    if seen.bound == "paper" or not isinstance(
        seen.belief, MarkovChain | CyclicChain | DatedChain | ChainBox
    ):
        return None
    return sweep_against_known_rows(seen.belief, seen.length)


def _swept_leak(seen: AdversaryBound, level: Fraction) -> float:
    sweep = _swept(seen)
    if sweep is None:
        return math.inf
    levels = Levels.constant(float_up(level), seen.length)
    return sweep.worst(levels, range(1, seen.length + 1)).leak


def _swept_level(seen: AdversaryBound, target: Fraction) -> float:
    sweep = _swept(seen)
    if sweep is None:
        return 0.0
    unit, nodes = Levels.constant(1.0, seen.length), range(1, seen.length + 1)
    return largest_factor(sweep, unit, nodes, float_down(target))[0]


def _check_rows(length: Any) -> None:
    """Refuse what is no number of rows, even where it does not matter."""
    if length is not None:
        integer(length, "length", 1)


def adversary_bounds(beliefs: Any, length: Any, bound: Bound) -> tuple[AdversaryBound, ...]:
    """Return one bound per belief, all for the same number of rows."""
    members = as_beliefs(beliefs)
    rows = common_length(members, length)
    return tuple(AdversaryBound(one, rows, default_quilts(one), bound) for one in members)


def parse_bound(bound: Any) -> Bound:
    """Return a known bound."""
    return cast("Bound", choice(bound, get_args(Bound), "bound"))


def _leak(seen: AdversaryBound, level: Fraction) -> float:
    price = LeakAt(level)
    found = _worst(seen, price)
    if found.influence == 0:
        return decimal_float_up(found.cost * level)
    return min(price.rounded_up(found), _lemma_4_leak(seen, level, price.rounded_up(found)))


def _allowed(seen: AdversaryBound, target: Fraction) -> float:
    price = ScaleFor(target)
    found = _worst(seen, price)
    if found.cost == 0:
        return math.inf
    if found.influence == 0:
        return decimal_float_down(target / found.cost)
    scale = price.rounded_up(found)
    scale *= 1 + _SLACK * target / (target - Fraction(found.influence))
    level, step = float_down(1 / scale), 2.0**-52
    while LeakAt(_read(level)).rounded_up(_worst(seen, LeakAt(_read(level)))) > target:
        level, step = level * (1 - step), step * 2**6
    return max(level, _lemma_4(seen, target))


def _worst(seen: AdversaryBound, price: LeakAt | ScaleFor) -> BestQuilt:
    rows = range(1, seen.length + 1)
    return seen.worst(number_of_nodes, price, rows)[0]


def _read(level: float) -> Fraction:
    return max(Fraction(level), Fraction(str(level)))


def _lemma_4(seen: AdversaryBound, target: Fraction) -> float:
    """What Lemma 4 allows; the tight search contains it, Lemma 2 with 4b does not."""
    chain = seen.belief
    if seen.bound == "tight" or not isinstance(chain, MarkovChain):
        return 0.0
    return reversible_level(chain, target, seen.length)


def _lemma_4_leak(seen: AdversaryBound, level: Fraction, known: float) -> float:
    """The least ε below `known` for which Lemma 4 allows the level, or `known`."""
    high = Fraction(known)
    if _lemma_4(seen, high) < level:
        return known

    def allows(epsilon: Fraction) -> bool:
        return _lemma_4(seen, epsilon) >= level

    return float_up(bisect(allows, Fraction(0), high, _BISECTIONS)[1])


def decimal_float_up(value: Fraction) -> float:
    """Return the nearest float, or the next one if it reads as less than `value`."""
    nearest = float(value)
    return nearest if to_fraction(nearest, "epsilon") >= value else float_up(value)


def decimal_float_down(value: Fraction) -> float:
    """Return the nearest float, or the one before if it reads as more than `value`."""
    nearest = float(value)
    return nearest if to_fraction(nearest, "epsilon") <= value else float_down(value)
