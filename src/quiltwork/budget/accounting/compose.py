"""The composition theorems as functions of levels: what several releases cost together.

For an account of actual releases use `Accountant`, which is never worse; these are the theorems of
the paper one by one, each with its hypotheses in its arguments and its scope in its docstring.

Theorem: docs/theory/composition.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.arguments import flag, listed
from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.budget.accounting.account import EXAMPLE
from quiltwork.budget.accounting.divergence import divergence, max_divergence
from quiltwork.budget.spending import HasSpending, Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, shortened, to_fraction
from quiltwork.influence import Calibration, calibrate, max_influence
from quiltwork.queries.base import Query, read_query

__all__ = [
    "FarParallel",
    "divergence",
    "far_parallel",
    "general",
    "influence_between",
    "max_divergence",
    "parallel",
    "same_quilts",
    "sequential",
]

Window = tuple[int, int]


def sequential(
    releases: Iterable[Number | HasSpending | Spending | Calibration], *, mqm: bool | None = None
) -> float:
    """Theorem 3.7: Markov quilt releases from one series cost the sum of their levels.

    Holds for every time point, for MQMExact and MQMApprox in any mixture, and for any release
    priced by the influence curve of quilts.

    Args:
        releases: the releases, what they spent or their calibrations, or the level of each as a
            number.
        mqm: True declares that all numbers are levels of Markov quilt mechanisms (or priced as
            such), which a number does not tell; releases and calibrations say it themselves.

    Raises:
        InvalidInputError: for numbers without mqm=True, and for releases that differ in their
            beliefs, protected time points or lengths.
        UnsupportedError: with mqm=False, and for releases calibrated by "sweep" or
            "optimal-scale": levels of arbitrary Pufferfish mechanisms do not add up.

    >>> sequential([1, 0.5], mqm=True)
    1.5
    """
    if mqm is not None and not flag(mqm, "mqm"):
        raise UnsupportedError(
            "The levels of arbitrary Pufferfish mechanisms do not add up: two releases of level ε "
            "can together exceed 2ε (Theorem 3.4; run it: "
            f"{EXAMPLE}). Bound their divergence and use general(), or use Markov quilt releases."
        )
    given = listed(releases, "releases")
    if mqm is None and not all(_is_calibrated(one) for one in given):
        raise InvalidInputError(
            "A number does not say how its release was calibrated, and only levels of Markov quilt "
            "releases add up: give the releases themselves, or mqm=True if all of them are such."
        )
    return float_up(sum(_levels(given), Fraction(0)))


def same_quilts(
    releases: Iterable[Number | HasSpending | Spending | Calibration], quilts: Sequence[object]
) -> float:
    """Theorem 2.6: K releases with the same quilt sets cost K times the largest level.

    Holds for every time point. Never better than `sequential`.

    Args:
        releases: as in `sequential`.
        quilts: the quilt sets of each release, in any form that can be compared.

    Raises:
        UnsupportedError: if the quilt sets differ.

    >>> same_quilts([1, 0.5], [{5: (3, 8)}, {5: (3, 8)}])
    2.0
    """
    levels, sets = _levels(listed(releases, "releases")), listed(quilts, "quilts")
    if len(sets) != len(levels):
        raise InvalidInputError(
            f"{len(levels)} levels but {len(sets)} quilt sets; give one for each release."
        )
    if not _alike(sets):
        raise UnsupportedError(
            "Theorem 2.6 is about releases with the same quilt sets, and these differ; use "
            "sequential(), which is never worse."
        )
    return float_up(len(levels) * max(levels, default=Fraction(0)))


def parallel(eps_a: Number, eps_b: Number, influence_ab: float, influence_ba: float) -> float:
    """Theorem 3.1: two releases from disjoint windows A before B, for secrets in A or B.

    Says nothing about time points between the windows, which can pay for both releases
    (`python -m quiltwork.reproduce.examples.gap`).

    Args:
        eps_a: the level of the release from A, for secrets in A.
        eps_b: the level of the release from B, for secrets in B.
        influence_ab: e(first of B | last of A), paid by secrets in A; see `influence_between`.
        influence_ba: e(last of A | first of B), paid by secrets in B.

    >>> parallel(1, 0.5, 0.25, 0.125)
    1.25
    """
    a, b = positive_fraction(eps_a, "eps_a"), positive_fraction(eps_b, "eps_b")
    ab, ba = _influence(influence_ab, "influence_ab"), _influence(influence_ba, "influence_ba")
    secrets_in_a = a + b if ab is None else min(a + b, a + ab)
    secrets_in_b = a + b if ba is None else min(a + b, b + ba)
    return float_up(max(secrets_in_a, secrets_in_b))


def influence_between(
    beliefs: Belief | Sequence[Belief], window_a: Window, window_b: Window, length: int
) -> tuple[float, float]:
    """Return Theorem 3.1's two influences for windows A before B: (paid in A, paid in B).

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> [round(e, 4) for e in influence_between(chain, (1, 10), (21, 30), 100)]
    [0.0024, 0.0024]
    """
    _, end = _window(window_a, "window_a")
    begin, _ = _window(window_b, "window_b")
    if begin <= end:
        raise InvalidInputError(
            f"Window A ends at {end} and window B begins at {begin}; they must be disjoint, A "
            "first."
        )
    return (
        max_influence(beliefs, end, (begin,), length),
        max_influence(beliefs, begin, (end,), length),
    )


@dataclass(frozen=True)
class FarParallel:
    """Whether Theorem 3.3 applies, and the level it gives: None where it does not."""

    epsilon: float | None
    two_sided: bool
    far_enough: bool
    reason: str


def far_parallel(
    beliefs: Belief | Sequence[Belief],
    window_a: Window,
    eps_a: Number,
    window_b: Window,
    eps_b: Number,
    *,
    query_a: Query | None = None,
    query_b: Query | None = None,
) -> FarParallel:
    """Theorem 3.3: two MQMApprox releases far apart cost the larger level, for secrets in A or B.

    Both are calibrated with Lemma 2.3 (method="spectral") on their own windows. The two
    conditions are checked: in each window, and under each belief, some active quilt is two-sided;
    and the gap is at least as wide as either window. Says nothing about time points outside the
    windows.

    Args:
        beliefs: one belief or a list.
        window_a: (start, stop) of the first release.
        eps_a: its level.
        window_b: of the second, after it.
        eps_b: its level.
        query_a: what the first one asked, which decides about its quilts; without one, any query
            that moves by the same amount for each time point, as counts and histograms do.
        query_b: what the second one asked.

    Raises:
        UnsupportedError: if Lemma 2.3 does not apply to a belief.
    """
    a, b = positive_fraction(eps_a, "eps_a"), positive_fraction(eps_b, "eps_b")
    (t1, t2), (t3, t4) = _window(window_a, "window_a"), _window(window_b, "window_b")
    far_enough = t3 - t2 >= max(t2 - t1, t4 - t3)
    two_sided = all(
        _has_two_sided(belief, stop - start + 1, level, query)
        for belief in as_beliefs(beliefs)
        for start, stop, level, query in ((t1, t2, a, query_a), (t3, t4, b, query_b))
    )
    if far_enough and two_sided:
        return FarParallel(float_up(max(a, b)), True, True, "both conditions hold")
    missing = [] if two_sided else ["no two-sided active quilt was found in one of the windows"]
    missing += [] if far_enough else ["the gap is shorter than the longer window"]
    return FarParallel(None, two_sided, far_enough, "; ".join(missing))


def _has_two_sided(belief: Belief, points: int, epsilon: Fraction, query: Query | None) -> bool:
    """Look at the node that needs the most noise and at the one in the middle."""
    asked = None if query is None else read_query(query).on(1, points)
    middle = (points + 1) // 2
    return any(
        len(calibrate(belief, points, epsilon, "spectral", asked, secrets).quilt) == 2
        for secrets in (None, (middle, middle))
    )


def general(eps_a: Number, eps_b: Number, divergence: Number) -> float:
    """Theorem 3.6: any two Pufferfish mechanisms cost ε_A + ε_B + 2E.

    Holds for every secret for which E holds: given each secret, the joint law of both answers and
    the product of their laws differ by a factor of e^E at most, in both directions. `divergence`
    in this module computes E for small cases.

    >>> general(1, 1, 0.5)
    3.0
    """
    a, b = positive_fraction(eps_a, "eps_a"), positive_fraction(eps_b, "eps_b")
    return float_up(a + b + 2 * _not_negative(divergence, "divergence"))


def _alike(sets: list[Any]) -> bool:
    try:
        return all(bool(one == sets[0]) for one in sets)
    except (TypeError, ValueError):
        raise InvalidInputError(
            "These quilt sets cannot be compared; give tuples or dicts of plain values."
        ) from None


def _is_calibrated(one: Any) -> bool:
    """Whether it is a release, what one spent, or a calibration: these say how they were made."""
    if isinstance(one, Spending):
        return one.method is not None and one.epsilon is not None
    return hasattr(one, "method") and (hasattr(one, "exact_epsilon") or hasattr(one, "guarantee"))


def _levels(given: list[Any]) -> list[Fraction]:
    """Read numbers, releases and calibrations as levels that composition theorems speak about."""
    released = {(r.belief_digest, r.secrets, r.length) for r in given if hasattr(r, "noisy")}
    if len(released) > 1:
        raise InvalidInputError(
            "The releases differ in their beliefs, in the time points they protect or in the "
            "length of the series; the theorem is about releases that agree in all three."
        )
    return [_level(one, position) for position, one in enumerate(given, start=1)]


def _level(one: Any, position: int) -> Fraction:
    """The level of one of them, if it is one that adds up with others."""
    if not _is_calibrated(one):
        return positive_fraction(one, f"Level {position}")
    if one.method == "sweep":
        raise UnsupportedError(
            f"Release {position} has method='sweep', and what the sweep charges does not add up: "
            "two releases can cost more than the sum of both. An Accountant says what they cost "
            "together; method='exact' has levels that add up (Theorem 3.7)."
        )
    if one.method == "optimal-scale":
        raise UnsupportedError(
            f"Release {position} has method='optimal-scale', whose level holds for it alone and "
            "does not add up with others; an Accountant prices it by its level per substituted "
            f"time point. Why: {EXAMPLE}"
        )
    names = ("exact_epsilon", "guarantee", "epsilon")
    level: Fraction = next(getattr(one, name) for name in names if hasattr(one, name))
    return level


def _influence(value: float, name: str) -> Fraction | None:
    """Read an influence; None stands for infinity."""
    if isinstance(value, float) and value == math.inf:
        return None
    return _not_negative(value, name)


def _not_negative(value: Number, name: str) -> Fraction:
    # Computed influences are binary floats that were rounded up: they are taken as they are.
    fraction = Fraction(value) if isinstance(value, float) and math.isfinite(value) else None
    exact = (
        to_fraction(value, name) if fraction is None else max(fraction, to_fraction(value, name))
    )
    if exact < 0:
        raise InvalidInputError(f"{name} must not be negative, not {shortened(value)}.")
    return exact


def _window(window: Window, name: str) -> Window:
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise InvalidInputError(f"{name} must be (start, stop), not {shortened(window)}.")
    start = integer(window[0], f"The start of {name}", 1)
    return start, integer(window[1], f"The end of {name}", start)
