"""Every bound on an account, with its theorem and its scope, and the one that won.

Only bounds for every time point can be the total. Theorems 3.1 and 3.3 speak of secrets inside two
windows; between the windows more can leak (`python -m quiltwork.reproduce.examples.gap`), so they
are shown with their scope and never lower the total.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.budget.accounting import theorems
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.theorems import EVERYWHERE, Bound
from quiltwork.exact import float_up
from quiltwork.results import ResultBase, plain


@dataclass(frozen=True)
class Explanation(ResultBase):
    """The total of an account and all that was considered; `print` it, or read `bounds`."""

    epsilon: float
    bounds: tuple[Bound, ...]

    @property
    def winner(self) -> Bound:
        """The bound that is the total."""
        return next(bound for bound in self.bounds if bound.won)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per bound."""
        return [plain(bound) for bound in self.bounds]

    def explain(self) -> str:
        """Show a line per bound, the winner marked."""
        return str(self)

    def __str__(self) -> str:
        """Show a line per bound, the winner marked."""
        width = max(len(bound.theorem) for bound in self.bounds)
        lines = [f"total ε = {self.epsilon:.9g}, for every time point"]
        for bound in self.bounds:
            mark = "*" if bound.won else " "
            value = "      –" if bound.epsilon is None else f"{bound.epsilon:7.6g}"
            scope = "" if bound.epsilon is None else f" {bound.scope};"
            lines.append(f"{mark} {bound.theorem:<{width}} {value} {scope} {bound.note}".rstrip())
        return "\n".join(lines)


def explain(account: Account) -> Explanation:
    """Compute every bound. O(distinct windows) calibrations beside the account's own total."""
    bounds = [theorem(account) for theorem in theorems.ALL]
    total = float_up(account.total)
    everywhere = [b for b in bounds if b.epsilon is not None and b.scope == EVERYWHERE]
    winner = min(everywhere, key=lambda bound: float(bound.epsilon or 0.0))
    marked = tuple(theorems.mark(bound, bound is winner) for bound in bounds)
    return Explanation(min(total, float(winner.epsilon or Fraction(0))), marked)
