"""Max-information: how much the answers of a private algorithm can reveal about its rows.

If the β-approximate max-information of rows and answers is k bits, then any event about rows and
adaptively chosen questions is at most 2^k times as likely as for questions fixed in advance, plus
β.

Theorem: docs/theory/max-information.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from quiltwork.arguments import choice
from quiltwork.beliefs import Belief
from quiltwork.exact import Number, float_up, integer, privacy_level
from quiltwork.holdout.guarantee import (
    bayesian_epsilon,
    max_information,
    parse_share,
    squared_leakages,
)

_UP = 1 + 2.0**-40


def max_information_bound(
    dp_epsilon: Number,
    rows: int,
    beta: Number,
    beliefs: Belief | Sequence[Belief] | None = None,
    bound: Literal["tight", "paper"] = "tight",
) -> float:
    """Return an upper bound on an algorithm's max-information, in bits.

    Args:
        dp_epsilon: its privacy level for replacing one row.
        rows: the number of rows.
        beta: the failure probability β.
        beliefs: how rows depend on each other; None for independent rows.
        bound: "tight", or "paper" for Theorem 3 of the paper, from the level of Bayesian DP.

    Raises:
        InvalidInputError: for values out of range, with the offending value.
        UnsupportedError: for Gaussian beliefs.

    >>> round(max_information_bound(0.1, 100, 0.05), 3)
    1.946
    >>> round(max_information_bound(0.1, 100, 0.05, bound="paper"), 3)
    6.804

    Theorem: docs/theory/max-information.md
    """
    level = float_up(privacy_level(dp_epsilon, "dp_epsilon"))
    size, failure = integer(rows, "rows", 1), parse_share(beta, "beta")
    if choice(bound, ("tight", "paper"), "bound") == "tight":
        return max_information(squared_leakages(beliefs, level, size), failure)
    return max_information_of_paper(bayesian_epsilon(beliefs, level, size), size, failure) * _UP


def max_information_of_paper(epsilon: float, rows: int, beta: float) -> float:
    """Return Theorem 3 of the paper, in bits: (2ε²n + ε√(2n·ln(2/β)))·log₂e."""
    width = epsilon * math.sqrt(2 * rows * math.log(2 / beta))
    return (2 * epsilon**2 * rows + width) / math.log(2)
