"""Gaussian noise for releases to come: what they spend of the caps at one common scale.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from quiltwork.budget.accounting.gaussian_account import GaussianAccount, shown_share
from quiltwork.budget.accounting.schedule import Planned
from quiltwork.budget.spending import Spending
from quiltwork.errors import BudgetExceeded, UnsupportedError
from quiltwork.exact import Number, float_down, float_up, positive_fraction
from quiltwork.queries import Query

_NOTHING = Fraction(1, 10**24)


def gaussian_scales(
    account: GaussianAccount, planned: Sequence[Planned]
) -> tuple[list[float], list[Spending]]:
    """The least σ, in proportion to 1/weight, with which queries fit together; and what they spend.

    Raises:
        BudgetExceeded: if nothing is left for them.
        UnsupportedError: for queries without Gaussian noise, and where nothing is hidden.
    """
    length = account.secrets.length
    for one in planned:
        if one.query.mechanism == "exponential":
            raise UnsupportedError(
                f"A query of kind {one.query.kind!r} chooses a label by the exponential mechanism, "
                "which has no Gaussian noise; plan it without delta."
            )
    at_one = [planned_squares(one.query, 1 / one.weight, length) for one in planned]
    factor = account.times_more(at_one)
    if factor is None:
        raise UnsupportedError(
            "Under these beliefs the queries have nothing to hide, so no noise is needed and "
            "there is nothing to plan."
        )
    if factor < _NOTHING:
        raise BudgetExceeded(
            f"{shown_share(account.used)} of the squares that a time point may spend is used: "
            "nothing is left for a release of any noise this package draws."
        )
    common, more = 1 / math.sqrt(float_down(factor)) * (1 + 2.0**-50), 2.0**-40
    while True:  # the grid of numbers, whose step is charged, depends on the noise
        scales = [float_up(Fraction(common) / one.weight) for one in planned]
        spendings = [
            planned_squares(one.query, scale, length, one.label)
            for one, scale in zip(planned, scales, strict=True)
        ]
        if account.plus(spendings).fits():
            return scales, spendings
        common, more = common * (1 + more), 4 * more


def planned_squares(query: Query, sigma: Number, length: int, label: str = "") -> Spending:
    """What the answer to a query with this σ spends, the grid of numbers included."""
    wanted = positive_fraction(sigma, "scale")
    fine = query.refined(wanted, query.points(length))
    return Spending.of_gaussian(fine, wanted * fine.subdivision, length, label=label)
