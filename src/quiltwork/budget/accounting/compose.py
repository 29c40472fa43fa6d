"""The composition theorems as functions of levels: the joint cost of several releases.

For an account of actual releases use `Accountant`, which is never worse. These are the theorems of
the paper one by one, each with its hypotheses as arguments and its scope in the docstring.

Theorem: docs/theory/composition.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from quiltwork.arguments import flag, listed
from quiltwork.beliefs import Belief, MarkovChain, as_beliefs
from quiltwork.budget.accounting.account import EXAMPLE
from quiltwork.budget.accounting.divergence import count_divergence
from quiltwork.budget.spending import HasSpending, Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, shortened, to_fraction
from quiltwork.influence import Calibration, calibrate, max_influence
from quiltwork.wording import argument

__all__ = [
    "count_divergence",
    "distant",
    "general",
    "influence_between",
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
        releases: the releases, their spendings or calibrations, or the level of each as a number.
        mqm: True declares that all numbers are levels of Markov quilt mechanisms (or priced as
            such); releases and calibrations record it themselves.

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
            "can together exceed 2ε (Theorem 3.4; see "
            f"{EXAMPLE}). Bound their divergence and use general(), or use Markov quilt releases."
        )
    items = listed(releases, "releases")
    if mqm is None and not all(_is_calibrated(item) for item in items):
        raise InvalidInputError(
            "A number does not show how its release was calibrated, and only levels of Markov "
            "quilt releases add up: give the releases themselves, or mqm=True if all of them are "
            "such."
        )
    return float_up(sum(_levels(items), Fraction(0)))


def same_quilts(releases: Iterable[Number | HasSpending | Spending | Calibration]) -> float:
    """Theorem 2.6: K releases whose quilts come from the same sets cost K times the largest level.

    The sets are fixed beforehand, one for each time point; levels may differ. Holds for every time
    point, and is never below `sequential`, which asks for less: it is the first paper's theorem.

    Raises:
        InvalidInputError: for invalid levels.
        UnsupportedError: for releases calibrated by "sweep" or "optimal-scale".

    >>> same_quilts([0.25, 0.5, 0.25])
    1.5
    """
    levels = _levels(listed(releases, "releases"))
    return float_up(len(levels) * max(levels, default=Fraction(0)))


def distant(
    eps_a: Number,
    eps_b: Number,
    beliefs: Belief | Sequence[Belief],
    window_a: Window,
    window_b: Window,
    length: int,
) -> float:
    """Theorem 3.3: MQMApprox releases from windows far apart cost the larger of their levels.

    Holds for secrets in A or B, as Theorem 3.1 does. Each release is calibrated for its window
    alone, by `calibrate(belief, points of the window, level, "spectral")`. Cost: as these.

    Args:
        eps_a: the level of the release from A.
        eps_b: the level of the release from B.
        beliefs: one chain or several.
        window_a: the first and the last time point of A.
        window_b: those of B, which comes later.
        length: of the series.

    Raises:
        InvalidInputError: for invalid levels and windows.
        UnsupportedError: where the theorem does not apply: the windows are nearer to each other
            than the longer one is long, or under a belief no time point of a window has an active
            quilt with an end on both sides.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.65, 0.35], [0.4, 0.6]])
    >>> distant(2, 3, chain, (1, 30), (61, 90), 90)
    3.0
    """
    levels = [positive_fraction(eps_a, "eps_a"), positive_fraction(eps_b, "eps_b")]
    windows = _two_windows(window_a, window_b, length)
    (first_a, last_a), (first_b, last_b) = windows
    distance, least = first_b - last_a, max(last_a - first_a, last_b - first_b)
    if distance < least:
        raise UnsupportedError(
            f"The windows are {distance} time points apart; Theorem 3.3 needs {least}, as many as "
            "the longer one has steps. Theorem 3.1 (parallel) or an Accountant take any distance."
        )
    for belief in as_beliefs(beliefs):
        if not isinstance(belief, MarkovChain):
            raise UnsupportedError(
                "Theorem 3.3 is about MQMApprox on chains, with one matrix each; an Accountant "
                "takes other beliefs."
            )
        for level, (first, last) in zip(levels, windows, strict=True):
            _require_quilt_on_both_sides(belief, level, first, last)
    return float_up(max(levels))


def _require_quilt_on_both_sides(
    chain: MarkovChain, level: Fraction, first: int, last: int
) -> None:
    """Refuse a window without a time point whose active quilt has an end before and after it."""
    calibration = calibrate(chain, last - first + 1, level, "spectral")
    if not any(len(active.quilt) == 2 for active in calibration.active_quilts()):
        raise UnsupportedError(
            f"At this level no time point of {first}..{last} has an active quilt on both sides, "
            "which Theorem 3.3 needs: take longer windows or higher levels, or Theorem 3.1."
        )


def parallel(eps_a: Number, eps_b: Number, influence_ab: float, influence_ba: float) -> float:
    """Theorem 3.1: two releases from disjoint windows A before B, for secrets in A or B.

    It does not cover time points between the windows, about which both releases can leak
    (`docs/theory/composition.md`).

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
    (_, end), (begin, _) = _two_windows(window_a, window_b, length)
    return (
        max_influence(beliefs, end, (begin,), length),
        max_influence(beliefs, begin, (end,), length),
    )


def general(eps_a: Number, eps_b: Number, divergence: Number) -> float:
    """Theorem 3.6: any two Pufferfish mechanisms cost ε_A + ε_B + 2E.

    Holds for every secret for which E holds: given each secret, the joint law of both answers and
    the product of their laws differ by a factor of e^E at most, in both directions. For two noisy
    counts on a chain `count_divergence` computes it.

    >>> general(1, 1, 0.5)
    3.0
    """
    a, b = positive_fraction(eps_a, "eps_a"), positive_fraction(eps_b, "eps_b")
    return float_up(a + b + 2 * _not_negative(divergence, "divergence"))


def _is_calibrated(item: Any) -> bool:
    """Whether an item records its calibration method: a release, a spending, or a calibration."""
    if isinstance(item, Spending):
        return item.method is not None and item.epsilon is not None
    has_level = hasattr(item, "exact_epsilon") or hasattr(item, "guarantee")
    return hasattr(item, "method") and has_level


def _levels(items: list[Any]) -> list[Fraction]:
    """Return the levels of numbers, releases and calibrations that composition theorems cover."""
    settings = {(r.belief_digest, r.secrets, r.length) for r in items if hasattr(r, "noisy")}
    if len(settings) > 1:
        raise InvalidInputError(
            "The releases differ in their beliefs, in the time points they protect or in the "
            "length of the series; the theorem is about releases that agree in all three."
        )
    return [_level(item, position) for position, item in enumerate(items, start=1)]


def _level(item: Any, position: int) -> Fraction:
    """Return the level of an item, if such levels add up."""
    if not _is_calibrated(item):
        return positive_fraction(item, f"Level {position}")
    if item.method == "sweep":
        raise UnsupportedError(
            f"Release {position} has {argument('method', 'sweep')}, and levels of the sweep do "
            "not add up: two releases can cost more than the sum of both. Use an Accountant for "
            f"their joint cost, or {argument('method', 'exact')}, whose levels add up (Theorem "
            "3.7)."
        )
    if item.method == "optimal-scale":
        raise UnsupportedError(
            f"Release {position} has {argument('method', 'optimal-scale')}, whose level holds for "
            "it alone and does not add up with others; an Accountant prices it by its level per "
            f"substituted time point. Why: {EXAMPLE}"
        )
    names = ("exact_epsilon", "guarantee", "epsilon")
    level: Fraction = next(getattr(item, name) for name in names if hasattr(item, name))
    return level


def _influence(value: float, name: str) -> Fraction | None:
    """Parse an influence; None stands for infinity."""
    if isinstance(value, float) and value == math.inf:
        return None
    return _not_negative(value, name)


def _not_negative(value: Number, name: str) -> Fraction:
    exact = to_fraction(value, name)
    if isinstance(value, float):
        # Computed influences were rounded up as binary floats; their decimals may be below that.
        exact = max(exact, Fraction(value))
    if exact < 0:
        raise InvalidInputError(f"{name} must not be negative, not {shortened(value)}.")
    return exact


def _two_windows(window_a: Window, window_b: Window, length: int) -> tuple[Window, Window]:
    a, b = _window(window_a, "window_a"), _window(window_b, "window_b")
    if b[0] <= a[1]:
        raise InvalidInputError(
            f"Window A ends at {a[1]} and window B begins at {b[0]}; they must be disjoint, "
            "A first."
        )
    if b[1] > integer(length, "length", 1):
        raise InvalidInputError(
            f"Window B ends at {b[1]}, but the series has {length} time points."
        )
    return a, b


def _window(window: Window, name: str) -> Window:
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise InvalidInputError(f"{name} must be (start, stop), not {shortened(window)}.")
    start = integer(window[0], f"The start of {name}", 1)
    return start, integer(window[1], f"The end of {name}", start)
