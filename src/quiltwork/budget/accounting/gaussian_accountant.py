"""`GaussianAccountant`: the account of (ε, δ) that `Accountant(…, delta=…)` opens.

With a budget the caps are fixed when it is opened, the proven claim is the whole (ε, δ) from the
first release on, and the used share of the caps is counted. Without a budget the releases are a
plan fixed beforehand, and the total is the cost of that plan.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief
from quiltwork.budget.accounting.caps import GaussianBudget
from quiltwork.budget.accounting.gaussian_account import (
    GaussianAccount,
    format_share,
    noise_that_fits,
)
from quiltwork.budget.accounting.growth import check_length, extended, of_length
from quiltwork.budget.accounting.series_accountant import SeriesAccountant, read_budget
from quiltwork.budget.accounting.squares import SquareRun
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    integer,
    parse_stored_fraction,
    privacy_level,
    proper_fraction,
    to_fraction,
)
from quiltwork.queries import Query
from quiltwork.results import ChartedResult

if TYPE_CHECKING:
    from quiltwork.report.charts import LineChart

_DOWN = 1 - 2.0**-50
_SMALLEST_USEFUL = Fraction(1, 10**8)
"""Below this factor a release would need more than 10⁴ times its noise: nothing fits."""


@dataclass(frozen=True)
class SquaresUsed(ChartedResult):
    """The squares of levels spent on each time point, beside the cap.

    Attributes:
        epsilon: ε of the proven claim so far.
        delta: δ of the proven claim.
        budget: ε of the claim from the first release on; None for a plan.
        level: μ of all Gaussian releases together on the worst time point; rounded up.
        cap: the largest μ allowed on every time point; None without a budget.
        alone: the cap if time points were independent.
        pure: the sum of pure levels on the worst time point, charged to the share for them.
        pure_share: that share.
        used: the largest used share of a cap.
        node: a time point that spends most.
        method: how the cap was computed.
        runs: time points first..last, and the sum of squares on each of them.
        length: the only length that the cap holds for; None if it holds for every length.
    """

    schema = ("squares-used", 1)

    epsilon: float
    delta: float
    budget: float | None
    level: float
    cap: float | None
    alone: float | None
    pure: float
    pure_share: float
    used: float
    node: int
    method: str | None
    runs: tuple[SquareRun, ...]
    length: int | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run."""
        return [run._asdict() for run in self.runs]

    def shares(self) -> list[float]:
        """Return the share of the cap that each run uses; 0 without a budget."""
        most = math.inf if self.cap is None else self.cap**2 * _DOWN
        return [min(1.0, run.square / most) for run in self.runs]

    def explain(self) -> str:
        """Return sentences about the claim, the used share, and the origin of the cap."""
        delta = f"and δ = {self.delta:g}"
        if self.budget is None or self.cap is None:
            return (
                f"As a plan fixed beforehand these releases keep ε = {self.epsilon:.6g} {delta}; "
                "if later ones were chosen by earlier answers, they would not. Most is spent on "
                f"time point {self.node:,}, a level of {self.level:.6g}, and every point from the "
                "first to the last that is used is charged like it."
            )
        lines = [
            f"All releases together keep ε = {self.budget:.6g} {delta}, whatever is released next "
            "within the caps.",
            f"Squares of Gaussian levels may add up to {self.cap:.6g}² on every time point (method "
            f"{self.method}; {self.alone or 0:.6g}² if time points were independent). Used: "
            f"{self.level:.6g}², {100 * self.used:.4g} %, on time point {self.node:,}.",
        ]
        if self.length is not None:
            lines.append(
                f"This cap is for {self.length:,} time points: after the first release the series "
                "cannot grow."
            )
        if self.pure_share:
            lines.append(
                f"Pure levels may add up to {self.pure_share:.6g}; {self.pure:.6g} is used."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the explanation."""
        return self.explain()

    def chart(self) -> LineChart:
        """Return the squares on each time point, with the cap as a line."""
        from dataclasses import replace

        from quiltwork.report.charts import LineChart, level, steps

        ends = [run.first - 0.5 for run in self.runs], self.runs[-1].last + 0.5
        spent = replace(steps(*ends, [run.square for run in self.runs]), name="spent")
        lines = [spent]
        if self.cap is not None:
            lines.append(level(f"cap {self.cap**2:.4g}", self.cap**2, [spent]))
        return LineChart(
            "What Gaussian releases spend on each time point",
            f"Squares of levels add up; {100 * self.used:.4g} % of the cap is used.",
            "time point",
            "μ²",
            tuple(lines),
        )


class GaussianAccountant(SeriesAccountant[GaussianAccount]):
    """The account of one series under given beliefs, for (ε, δ); `Accountant` opens it.

    Args:
        beliefs: one belief or a list; the claim holds under each of them.
        length: the number of time points; None for beliefs about fixed rows.
        budget: ε of the claim; None for a plan fixed beforehand.
        episode: how many time points in a row are one secret.
        delta: δ of the claim.
        pure: the largest sum of pure levels on a time point, kept beside Gaussian noise; with 0
            a pure level is charged as the least Gaussian level that hides as much.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.
        UnsupportedError: for networks, which have no order in time.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> account = GaussianAccountant(chain, length=100, budget=1, delta=1e-6)
    >>> _ = account.spend(rho=0.001, start=1, stop=50)
    >>> account.epsilon(), round(account.used, 3), round(account.largest_next(51), 4)
    (1.0, 0.396, 0.0711)
    """

    def __init__(
        self,
        beliefs: Belief | Sequence[Belief],
        length: int | None = None,
        budget: Number | None = None,
        episode: int = 1,
        delta: Number = 0,
        pure: Number = 0,
    ) -> None:
        level = None if budget is None else privacy_level(budget, "budget")
        exact_delta, pure_share = proper_fraction(delta, "delta"), to_fraction(pure, "pure")
        if pure_share < 0:
            raise InvalidInputError(f"pure must not be negative, not {pure!r}.")
        secrets = Secrets.read(beliefs, length, episode)
        claim = GaussianBudget.compute(secrets, level, exact_delta, pure_share)
        self._episode = integer(episode, "episode", 1)
        self._account = GaussianAccount.empty(secrets, claim)

    @classmethod
    def of(cls, account: GaussianAccount, episode: int) -> GaussianAccountant:
        """Return an accountant that continues from an account."""
        accountant = cls.__new__(cls)
        accountant._account, accountant._episode = account, episode
        return accountant

    @property
    def budget(self) -> Fraction | None:
        """ε of the claim, exactly; None for a plan fixed beforehand."""
        return self._account.gaussian.budget

    @property
    def delta(self) -> Fraction:
        """δ of the claim."""
        return self._account.gaussian.delta

    @property
    def used(self) -> float:
        """The largest used share of a cap, rounded up."""
        return float_up(self._account.used)

    @property
    def remaining(self) -> float | None:
        """The unused share of the caps where most is used, rounded down; None without a budget."""
        return None if self.budget is None else float_down(1 - self._account.used)

    def leak_under(self, beliefs: Belief | Sequence[Belief]) -> tuple[float, int | None]:
        """Return ε of these releases under other beliefs, as a plan, and the worst time point."""
        other = GaussianAccountant(beliefs, self.length, None, self.episode, self.delta)
        other.add_all(self.spendings)
        return other.epsilon(), other._account.worst_node

    def _allows(self, account: GaussianAccount) -> bool:
        return account.fits()

    def _refusal(self, after: GaussianAccount, added: list[Spending]) -> BudgetExceeded:
        budget = float_up(self.budget or Fraction(0))
        return BudgetExceeded(
            f"This would raise what is used of ε = {budget:g} and δ = {float(self.delta):g} from "
            f"{format_share(self._account.used)} to {format_share(after.used)} of the squares that "
            "a time point may spend. Nothing was recorded.",
            partial(noise_that_fits, self._account, added),
        )

    def _times_more(self, spendings: Sequence[Spending]) -> Fraction | None:
        if self.budget is None:
            raise UnsupportedError(
                "This account has no budget, so there is no limit to the next release; open it "
                "with budget=…."
            )
        self.after(*spendings)
        return self._account.times_more(spendings)

    def largest_next(self, start: int = 1, stop: int | None = None) -> float:
        """Return the largest Gaussian level μ that a release on a window may have and still fit.

        Spending it as `gdp` always fits; infinity if the beliefs leave nothing to protect there.

        Raises:
            UnsupportedError: without a budget.
        """
        last = self.length if stop is None else stop
        factor = self._times_more([Spending.gaussian(start, last, gdp=1)])
        return math.inf if factor is None else math.sqrt(float_down(factor)) * _DOWN

    def largest_factor(self, releases: Sequence[HasSpending | Spending]) -> float:
        """Return the largest x such that these releases fit x times over; rounded down."""
        spendings = [as_spending(release) for release in listed(releases, "releases")]
        factor = self._times_more(spendings)
        return math.inf if factor is None else float_down(factor)

    def smallest_scale(self, query: Query) -> float:
        """Return the least σ with which a query on its window still fits, in its integers.

        0.0 if the beliefs leave nothing to protect there.

        Raises:
            BudgetExceeded: if no noise is enough.
            UnsupportedError: without a budget.
        """
        factor = self._times_more([Spending.of_gaussian(query, 1, self.length)])
        if factor is None:
            return 0.0
        if factor < _SMALLEST_USEFUL:
            raise BudgetExceeded(
                f"{format_share(self._account.used)} of the squares that a time point may spend is "
                "used: nothing is left for a release of any noise this package draws."
            )
        return 1 / (math.sqrt(float_down(factor)) * _DOWN) * (1 + 2.0**-50)

    def how_many_more(self, release: HasSpending | Spending) -> int | float:
        """Return how many more releases like this one fit; infinity if they cost nothing."""
        factor = self._times_more([as_spending(release)])
        return math.inf if factor is None else math.floor(factor)

    def extend(self, length: int) -> None:
        """Let the series grow: free under a cap for series of every length.

        Under a cap for one length it may grow before the first release, which lowers the cap.
        Afterwards it may not: choosing by answers between two caps would exceed δ.

        Raises:
            BudgetExceeded: if the releases exceed the caps of a longer series; nothing changes.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows, and under a cap for one length after the
                first release.
        """
        account, points = self._account, integer(length, "length", 1)
        claim = account.gaussian
        if not account.count and claim.cap is not None and not claim.cap.unlimited:
            check_length(self.beliefs, self.length, points)
            secrets = of_length(account.secrets, points, self.episode)
            parts = claim.budget, claim.delta, claim.pure
            self._account = GaussianAccount.empty(secrets, GaussianBudget.compute(secrets, *parts))
            return
        self._account = extended(
            account,
            points,
            self.episode,
            lambda longer: None if longer.fits() else "the squares that a secret may spend",
            lambda account: format_share(account.used),
        )

    def profile(self) -> SquaresUsed:
        """Return the squares spent on each time point, beside the cap."""
        account = self._account
        cap, pure = account.gaussian.cap, account.gaussian.pure
        return SquaresUsed(
            epsilon=self.epsilon(),
            delta=float(self.delta),
            budget=None if self.budget is None else float_up(self.budget),
            level=math.sqrt(float_up(account.square)) * (1 + 2.0**-50),
            cap=None if cap is None else cap.level,
            alone=None if cap is None else cap.alone,
            pure=float_up(account.level),
            pure_share=float_down(pure),
            used=self.used,
            node=account.worst_node,
            method=None if cap is None else cap.method,
            runs=account.runs,
            length=None if cap is None or cap.unlimited else self.length,
        )

    def explain(self) -> SquaresUsed:
        """Return the claim, the used squares and the cap; `print(account.explain())` shows them."""
        return self.profile()

    def chart(self) -> LineChart:
        """Return a chart of the squares on each time point, with the cap."""
        return self.profile().chart()

    def __repr__(self) -> str:
        """Return length, number of releases and claim, without computing the total."""
        limit = "no budget" if self.budget is None else f"budget={float(self.budget):.6g}"
        return (
            f"GaussianAccountant({self.length} time points, {self._account.count} releases, "
            f"{limit}, delta={float(self.delta):g})"
        )

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values; `from_body` computes its caps again."""
        claim = self._account.gaussian
        budget = None if claim.budget is None else str(claim.budget)
        body = {"budget": budget, "delta": str(claim.delta), "pure": str(claim.pure)}
        return {**super().to_body(), **body}

    @classmethod
    def _read(cls, body: Mapping[str, Any], beliefs: tuple[Belief, ...]) -> GaussianAccountant:
        delta, pure = (parse_stored_fraction(body[name], name) for name in ("delta", "pure"))
        secrets = Secrets.read(beliefs, body["length"], body["episode"])
        claim = GaussianBudget.compute(secrets, read_budget(body), delta, pure)
        spendings = [Spending.from_body(row) for row in body["spendings"]]
        return cls.of(GaussianAccount.empty(secrets, claim).plus(spendings), body["episode"])
