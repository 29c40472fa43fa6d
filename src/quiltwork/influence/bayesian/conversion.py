"""Conversion between the level of a DP mechanism and its Bayesian level.

A mechanism that is x-DP for substituting one row is ε-Bayesian DP for
ε = max_i min_Q [(|N_Q|+1)·x + h_Q], N_Q the nearby nodes without i: the same search as for the
influence curve, with influences that hold for any known rows. Along chains the sweep by contraction
holds against all these adversaries too, and is mostly sharper.

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
    `Clusters` the largest cluster times it. Gaussian beliefs support only sums and means of clipped
    numbers: for them `dp_epsilon` is the level of those. Cost: as `calibrate`.

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
    parsed_bound = parse_bound(bound)
    if beliefs is None:
        _check_length(length)
        return decimal_float_up(level)
    if (factor := _gaussian_factor(beliefs, length)) is not None:
        return decimal_float_up(level * factor)
    bounds = adversary_bounds(beliefs, length, parsed_bound)
    return max(
        min(_leak(belief_bound, level), _swept_leak(belief_bound, level)) for belief_bound in bounds
    )


def leakage_given_past(belief: Belief, dp_epsilon: float, length: int | None) -> float:
    """Return the leakage of a `dp_epsilon`-DP mechanism about a row, given the rows before it.

    Given those rows a chain continues by its own matrix, so only the right side of the exact sweep
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
    right_bounds = sweep.right.fixed(dp_epsilon) if isinstance(sweep, Sweep) else None
    if right_bounds is None:
        return level
    # the sum of two floats is off by at most one rounding
    return min(level, (dp_epsilon + float(right_bounds.max())) * (1 + 2.0**-50))


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
    parsed_bound = parse_bound(bound)
    if beliefs is None:
        _check_length(length)
        return decimal_float_down(target)
    if (factor := _gaussian_factor(beliefs, length)) is not None:
        return decimal_float_down(target / factor)
    bounds = adversary_bounds(beliefs, length, parsed_bound)
    return min(
        max(_allowed(belief_bound, target), _swept_level(belief_bound, target))
        for belief_bound in bounds
    )


def _gaussian_factor(beliefs: Any, length: Any) -> Fraction | None:
    """The factor on levels under Gaussian beliefs; None for other beliefs."""
    parsed = as_beliefs(beliefs)
    if not isinstance(parsed[0], Gaussian):
        return None
    rows = common_length(parsed, length)
    gaussian = (belief for belief in parsed if isinstance(belief, Gaussian))
    return max(Fraction(known_rows_factor(belief, rows)) for belief in gaussian)


def _swept(bound: AdversaryBound) -> Sweepable | None:
    """The sweep against adversaries who know rows; None for the paper's bound."""
    if isinstance(bound.belief, HiddenChain):
        return sweep_of_hidden(bound.belief, bound.length)
    if bound.bound == "paper" or not isinstance(
        bound.belief, MarkovChain | CyclicChain | DatedChain | ChainBox
    ):
        return None
    return sweep_against_known_rows(bound.belief, bound.length)


def _swept_leak(bound: AdversaryBound, level: Fraction) -> float:
    """The leakage by the sweep, +inf without one."""
    sweep = _swept(bound)
    if sweep is None:
        return math.inf
    levels = Levels.constant(float_up(level), bound.length)
    return sweep.worst(levels, range(1, bound.length + 1)).leak


def _swept_level(bound: AdversaryBound, target: Fraction) -> float:
    """The largest level by the sweep, 0 without one."""
    sweep = _swept(bound)
    if sweep is None:
        return 0.0
    unit, nodes = Levels.constant(1.0, bound.length), range(1, bound.length + 1)
    return largest_factor(sweep, unit, nodes, float_down(target))[0]


def _check_length(length: Any) -> None:
    """Check the number of rows, even where it does not matter."""
    if length is not None:
        integer(length, "length", 1)


def adversary_bounds(beliefs: Any, length: Any, bound: Bound) -> tuple[AdversaryBound, ...]:
    """Return one bound per belief, all for the same number of rows."""
    members = as_beliefs(beliefs)
    rows = common_length(members, length)
    return tuple(AdversaryBound(belief, rows, default_quilts(belief), bound) for belief in members)


def parse_bound(bound: Any) -> Bound:
    """Return a known bound."""
    return cast("Bound", choice(bound, get_args(Bound), "bound"))


def _leak(bound: AdversaryBound, level: Fraction) -> float:
    """The leakage by quilts, or by Lemma 4 if that is less."""
    price = LeakAt(level)
    worst = _worst(bound, price)
    if worst.influence == 0:
        return decimal_float_up(worst.cost * level)
    return min(price.rounded_up(worst), _lemma_4_leak(bound, level, price.rounded_up(worst)))


def _allowed(bound: AdversaryBound, target: Fraction) -> float:
    """The largest level by quilts, or by Lemma 4 if that is more."""
    price = ScaleFor(target)
    worst = _worst(bound, price)
    if worst.cost == 0:
        return math.inf
    if worst.influence == 0:
        return decimal_float_down(target / worst.cost)
    scale = price.rounded_up(worst)
    scale *= 1 + _SLACK * target / (target - Fraction(worst.influence))
    level, step = float_down(1 / scale), 2.0**-52
    while (
        LeakAt(_decimal_value(level)).rounded_up(_worst(bound, LeakAt(_decimal_value(level))))
        > target
    ):
        # the two searches round apart: step down until the level passes its own check
        level, step = level * (1 - step), step * 2**6
    return max(level, _lemma_4_level(bound, target))


def _worst(bound: AdversaryBound, price: LeakAt | ScaleFor) -> BestQuilt:
    """The worst node by quilts."""
    rows = range(1, bound.length + 1)
    return bound.worst(number_of_nodes, price, rows)[0]


def _decimal_value(level: float) -> Fraction:
    """The level, or its decimal text if that is more."""
    return max(Fraction(level), Fraction(str(level)))


def _lemma_4_level(bound: AdversaryBound, target: Fraction) -> float:
    """The level by Lemma 4; 0 where the tight search contains it."""
    chain = bound.belief
    if bound.bound == "tight" or not isinstance(chain, MarkovChain):
        return 0.0
    return reversible_level(chain, target, bound.length)


def _lemma_4_leak(bound: AdversaryBound, level: Fraction, leak: float) -> float:
    """The least ε below `leak` for which Lemma 4 allows the level, or `leak`."""
    high = Fraction(leak)
    if _lemma_4_level(bound, high) < level:
        return leak

    def allows(epsilon: Fraction) -> bool:
        return _lemma_4_level(bound, epsilon) >= level

    return float_up(bisect(allows, Fraction(0), high, _BISECTIONS)[1])


def decimal_float_up(value: Fraction) -> float:
    """Return the nearest float, or the next one if its decimal text is below `value`."""
    nearest = float(value)
    return nearest if to_fraction(nearest, "epsilon") >= value else float_up(value)


def decimal_float_down(value: Fraction) -> float:
    """Return the nearest float, or the one before if its decimal text is above `value`."""
    nearest = float(value)
    return nearest if to_fraction(nearest, "epsilon") <= value else float_down(value)
