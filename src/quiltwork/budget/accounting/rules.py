"""Which releases may follow which, and the sentences that refuse the others.

A combination of releases is accepted only if a theorem prices it. Releases with a level for
substituting one time point compose by joint quilts; a Pufferfish mechanism without one composes
by Theorem 3.6, with a bound E on how much it depends on everything before; anything else stays
alone, for Theorem 3.4 shows two mechanisms of level ε that together exceed 2ε.

Theorem: composition
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quiltwork.beliefs import Belief
from quiltwork.budget.spending import Composition, Spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError

EXAMPLE = "python -m quiltwork.reproduce.examples.theorem_3_4"


def check_composition(before: int, last: Composition | None, spending: Spending) -> None:
    """Refuse a release that no theorem combines with the `before` ones.

    The latest of them composes by `last`.

    Raises:
        UnsupportedError: saying which theorem is missing, with the example that shows why.
    """
    if last == "nothing":
        raise UnsupportedError(
            "A release without a level for substituting one time point was made from these data, "
            "and no theorem combines it with another one: nothing can follow. Cap its DP level "
            f"next time (dp_epsilon=…). Why: {EXAMPLE}"
        )
    if before and spending.composes_by == "nothing":
        raise UnsupportedError(
            "This release has no level for substituting one time point, so no theorem combines it "
            f"with the {before} before it; cap its DP level, or bound its divergence from "
            f"them (Theorem 3.6). Why: {EXAMPLE}"
        )
    if last == "general" and spending.composes_by == "levels":
        raise UnsupportedError(
            "The release before was combined by Theorem 3.6, whose E was bounded against what had "
            "been released until then; after it, only releases with an E of their own can follow."
        )


def check_window(spending: Spending, length: int) -> None:
    """Refuse a window outside the series.

    Raises:
        InvalidInputError: naming both.
    """
    if spending.stop > length:
        raise InvalidInputError(
            f"The window {spending.start}..{spending.stop} does not fit a series of {length} time "
            "points; windows are 1-based and inclusive."
        )


def check_growth(beliefs: Sequence[Belief], length: int, new: int) -> None:
    """Refuse to let a series of `length` time points grow to `new` ones.

    Raises:
        InvalidInputError: if the new length is shorter.
        UnsupportedError: for beliefs about fixed rows.
    """
    if new < length:
        raise InvalidInputError(f"The series has {length} time points and cannot shrink to {new}.")
    if any(belief.length is not None for belief in beliefs):
        raise UnsupportedError(
            "These beliefs are about fixed rows, so the series cannot grow; open a new account "
            "with beliefs about all rows."
        )


def by_theorem_3_6(spending: Spending) -> Fraction:
    """What a release without joint quilts adds: ε + 2E, or ε if it is alone; 0 for the others."""
    if spending.composes_by == "levels" or spending.epsilon is None:
        return Fraction(0)
    return spending.epsilon + 2 * (spending.divergence or Fraction(0))


def exceeded(now: float, after: float, budget: float, left: float) -> BudgetExceeded:
    """The refusal of a release that does not fit."""
    return BudgetExceeded(
        f"This would raise the total from {now:.12g} to {after:.12g}, above the budget of "
        f"{budget:.12g}; {left:.12g} is left. Nothing was recorded. Ask for more noise or a "
        "shorter window: largest_next() says what fits."
    )


def nothing_left(now: float, budget: float) -> BudgetExceeded:
    """The refusal of anything more, whatever its noise."""
    return BudgetExceeded(
        f"What was released before costs {now:.12g}, and the budget is {budget:.12g}: nothing "
        "is left for a release of any noise this package draws."
    )
