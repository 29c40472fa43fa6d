"""`GaussianAccountant`: what `Accountant(…, delta=…)` opens, an account of (ε, δ).

With a budget the caps are fixed when it is opened, the proven claim is the whole (ε, δ) from the
first debit on, and what is counted is the share of the caps that is used. Without a budget the
releases are a plan that was fixed beforehand, and the total is what that plan costs.

Theorem: docs/theory/f-sweep.md (no filter on what was reached)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, Label, beliefs_from_json, beliefs_to_json
from quiltwork.budget.accounting.gaussian_account import (
    GaussianAccount,
    Room,
    noise_that_fits,
    shown_share,
    worst_run,
)
from quiltwork.budget.accounting.growth import check_growth
from quiltwork.budget.accounting.squares import SquareRun
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    integer,
    privacy_level,
    proper_fraction,
    to_fraction,
    written_fraction,
)
from quiltwork.queries import Query
from quiltwork.results import Charted, ChartedResult

if TYPE_CHECKING:
    from quiltwork.report.charts import LineChart

_DOWN = 1 - 2.0**-50
_NOTHING = Fraction(1, 10**8)
"""A release that needs more than 10⁴ times its noise does not fit, for a person."""


@dataclass(frozen=True)
class SquaresUsed(ChartedResult):
    """What is spent on each time point, beside what each may spend.

    Attributes:
        epsilon: the proven claim so far, with …
        delta: … this chance that is left.
        budget: ε of the claim from the first release on; None for a plan.
        level: μ that the worst time point pays for, all Gaussian releases together; rounded up.
        cap: μ that each of them may pay for; None without a budget.
        alone: what the cap would be if no time point said anything about another.
        pure: the sum of pure levels on the worst time point, out of a share for them.
        pure_share: that share.
        used: the share of the caps that is used where most is.
        node: a time point that pays most.
        method: how the cap was found.
        runs: time points first..last, and the squares that each of them pays for.
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

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run."""
        return [run._asdict() for run in self.runs]

    def shares(self) -> list[float]:
        """Return the share of its cap that each run uses; 0 without a budget."""
        most = math.inf if self.cap is None else self.cap**2 * _DOWN
        return [min(1.0, one.square / most) for one in self.runs]

    def explain(self) -> str:
        """Say what is claimed, what is used, and where the cap comes from."""
        left = f"and δ = {self.delta:g}"
        if self.budget is None or self.cap is None:
            return (
                f"As a plan fixed beforehand these releases keep ε = {self.epsilon:.6g} {left}; "
                "chosen by what came out they would not. Most is spent on time point "
                f"{self.node:,}, a level of {self.level:.6g}."
            )
        lines = [
            f"All releases together keep ε = {self.budget:.6g} {left}, whatever is asked next "
            "within the caps.",
            f"Squares of Gaussian levels may add up to {self.cap:.6g}² on every time point (method "
            f"{self.method}; {self.alone or 0:.6g}² if they said nothing about each other). Used: "
            f"{self.level:.6g}², {100 * self.used:.4g} %, on time point {self.node:,}.",
        ]
        if self.pure_share:
            lines.append(
                f"Pure levels may add up to {self.pure_share:.6g}; {self.pure:.6g} is used."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        """Say it as text."""
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


class GaussianAccountant(Charted):
    """The account of one series under given beliefs, for (ε, δ); `Accountant` opens it.

    Args:
        beliefs: one belief or a list; the claim holds under each of them.
        length: the number of time points; None for beliefs about fixed rows.
        budget: ε of the claim; None for a plan fixed beforehand.
        episode: how many time points in a row are one secret.
        delta: δ of the claim.
        pure: what pure levels of releases without Gaussian noise may add up to on a time point;
            0 charges them with the least Gaussian level that hides as much.

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
        left, share = proper_fraction(delta, "delta"), to_fraction(pure, "pure")
        if share < 0:
            raise InvalidInputError(f"pure must not be negative, not {pure!r}.")
        secrets = Secrets.read(beliefs, length, episode)
        self._episode = integer(episode, "episode", 1)
        self._account = GaussianAccount.empty(secrets, Room.of(secrets, level, left, share))

    @classmethod
    def of(cls, account: GaussianAccount, episode: int) -> GaussianAccountant:
        """Go on from an account that is kept elsewhere."""
        found = cls.__new__(cls)
        found._account, found._episode = account, episode
        return found

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """The beliefs under which the claim holds."""
        return tuple(bound.belief for bound in self.secrets.bounds)

    @property
    def secrets(self) -> Secrets:
        """What the account is about: beliefs, time points, and how many in a row."""
        return self._account.secrets

    @property
    def episode(self) -> int:
        """How many time points in a row are one secret."""
        return self._episode

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states of the beliefs; None where they are about rows of any kind."""
        return next((b.states for b in self.beliefs if b.states is not None), None)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.secrets.length

    @property
    def budget(self) -> Fraction | None:
        """ε of the claim, exactly; None for a plan fixed beforehand."""
        return self._account.room.budget

    @property
    def delta(self) -> Fraction:
        """δ of the claim."""
        return self._account.room.delta

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The releases recorded, in order."""
        return self._account.spendings

    @property
    def exact_epsilon(self) -> Fraction:
        """The proven ε as a fraction."""
        return self._account.total

    def epsilon(self) -> float:
        """Return the proven ε: with a budget all of it from the first debit on; rounded up.

        Without a budget that of a plan fixed beforehand.

        Theorem: docs/theory/f-sweep.md (no filter on what was reached)
        """
        return float_up(self.exact_epsilon)

    @property
    def used(self) -> float:
        """The share of the caps that is used, where most is; rounded up."""
        return float_up(self._account.used)

    @property
    def remaining(self) -> float | None:
        """The share of the caps that is left where most is used, rounded down; None without any."""
        return None if self.budget is None else float_down(1 - self._account.used)

    def level_kept(self) -> float:
        """The claim under the beliefs of this account."""
        return self.epsilon()

    def leak_under(self, beliefs: Belief | Sequence[Belief]) -> tuple[float, int | None]:
        """Return ε of these releases under other beliefs, as a plan, and a point that pays most."""
        other = GaussianAccountant(beliefs, self.length, None, self.episode, self.delta)
        other.add_all(self.spendings)
        return other.epsilon(), worst_run(other._account)

    def for_audit(self) -> None:
        """Nothing that the exact audit takes: an account keeps levels, not queries."""

    def spend(
        self,
        dp_epsilon: Number | None = None,
        start: int = 1,
        stop: int | None = None,
        label: str = "",
        *,
        rho: Number | None = None,
        gdp: Number | None = None,
    ) -> Spending:
        """Record a release of some level for substituting one time point of a window.

        Args:
            dp_epsilon: of a mechanism with a pure level; out of the share for them, else charged
                with the least Gaussian level that hides as much, which is dear.
            start: the first time point used.
            stop: the last; None for the end of the series.
            label: a name for people.
            rho: of Gaussian noise, ρ = μ²/2.
            gdp: μ of Gaussian noise, or of anything that Gaussian noise of this level hides.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad level or window, and for more than one level.
        """
        last = self.length if stop is None else stop
        return self.add(
            stated_spending(start, last, label, dp_epsilon=dp_epsilon, rho=rho, gdp=gdp)
        )

    def add(self, release: HasSpending | Spending) -> Spending:
        """Record a release made by `qw.release`, or a spending; return what was recorded.

        Raises:
            BudgetExceeded: if it does not fit; then nothing was recorded.
            InvalidInputError: for a bad window.
            UnsupportedError: for a release without a level for substituting one time point.
        """
        spending = as_spending(release)
        self.add_all([spending])
        return spending

    def add_all(self, releases: Iterable[HasSpending | Spending]) -> None:
        """Record several releases together, or none of them if they do not fit."""
        added = [as_spending(release) for release in listed(releases, "releases")]
        after = self.after(*added)
        if not after.fits():
            end = partial(noise_that_fits, self._account, added)
            raise BudgetExceeded(self._refusal(after), end)
        self._account = after

    def _refusal(self, after: GaussianAccount) -> str:
        budget = float_up(self.budget or Fraction(0))
        return (
            f"This would raise what is used of ε = {budget:g} and δ = {float(self.delta):g} from "
            f"{shown_share(self._account.used)} to {shown_share(after.used)} of the squares that a "
            "time point may spend. Nothing was recorded."
        )

    def cost_after(self, *releases: HasSpending | Spending) -> float:
        """Return what the proven ε would be after these releases, recording nothing."""
        return float_up(self.after(*releases).total)

    def fits(self, *releases: HasSpending | Spending) -> bool:
        """Tell whether these releases together would fit, recording nothing."""
        return self.after(*releases).fits()

    def after(self, *releases: HasSpending | Spending) -> GaussianAccount:
        """Return the account with these releases, recording nothing and asking no budget."""
        return self._account.plus(as_spending(release) for release in releases)

    def record(self, *releases: HasSpending | Spending) -> None:
        """Record releases that were granted elsewhere, whatever the budget says."""
        self._account = self.after(*releases)

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
        if factor < _NOTHING:
            raise BudgetExceeded(
                f"{shown_share(self._account.used)} of the squares that a time point may spend is "
                "used: nothing is left for a release of any noise this package draws."
            )
        return 1 / (math.sqrt(float_down(factor)) * _DOWN) * (1 + 2.0**-50)

    def how_many_more(self, release: HasSpending | Spending) -> int | float:
        """Return how many more releases like this one fit; infinity if they cost nothing."""
        factor = self._times_more([as_spending(release)])
        return math.inf if factor is None else math.floor(factor)

    def extend(self, length: int) -> None:
        """Let the series grow: free under a cap for series of every length.

        Raises:
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows, and where the cap is that of a length.
        """
        new = integer(length, "length", 1)
        check_growth(self.beliefs, self.length, new)
        secrets = Secrets.read(self.beliefs, new, self.episode)
        grown = self._account.seen_by(secrets)
        if not grown.fits():
            raise BudgetExceeded(
                f"In a series of {new:,} time points what was released would use "
                f"{shown_share(grown.used)} of the squares that a secret may spend. Nothing was "
                "changed."
            )
        self._account = grown

    def profile(self) -> SquaresUsed:
        """Return what is spent on each time point, beside what each may spend."""
        account = self._account
        cap, pure = account.room.cap, account.room.pure
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
            node=worst_run(account),
            method=None if cap is None else cap.method,
            runs=account.runs,
        )

    def explain(self) -> SquaresUsed:
        """Return the claim, what is used and the cap; `print(account.explain())` shows it."""
        return self.profile()

    def chart(self) -> LineChart:
        """Describe the squares on each time point, with the cap."""
        return self.profile().chart()

    def __repr__(self) -> str:
        """Name what is kept, without computing the total."""
        limit = "no budget" if self.budget is None else f"budget={float(self.budget):.6g}"
        return (
            f"GaussianAccountant({self.length} time points, {self._account.count} releases, "
            f"{limit}, delta={float(self.delta):g})"
        )

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values; `from_body` computes its caps again."""
        room = self._account.room
        return {
            "beliefs": json.loads(beliefs_to_json(self.beliefs)),
            "length": self.length,
            "budget": None if room.budget is None else str(room.budget),
            "delta": str(room.delta),
            "pure": str(room.pure),
            "episode": self.episode,
            "spendings": [spending.to_body() for spending in self.spendings],
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> GaussianAccountant:
        """Read what `to_body` wrote.

        Raises:
            InvalidInputError: if a field is missing or damaged.
        """
        try:
            beliefs = beliefs_from_json(json.dumps(body["beliefs"]))
            budget = None if body["budget"] is None else written_fraction(body["budget"], "budget")
            delta, pure = (written_fraction(body[name], name) for name in ("delta", "pure"))
            spendings = [Spending.from_body(one) for one in body["spendings"]]
            secrets = Secrets.read(beliefs, body["length"], body["episode"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"Not an account: {error}.") from None
        account = GaussianAccount.empty(secrets, Room.of(secrets, budget, delta, pure))
        return cls.of(account.plus(spendings), body["episode"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as `to_body`."""
        return type(self).from_body, (self.to_body(),)


def stated_spending(
    start: int,
    stop: int,
    label: str,
    *,
    dp_epsilon: Number | None = None,
    rho: Number | None = None,
    gdp: Number | None = None,
) -> Spending:
    """Read a release that somebody states the level of, in one of three ways.

    Raises:
        InvalidInputError: for none of them, or several, and for a bad level or window.
    """
    if sum(one is not None for one in (dp_epsilon, rho, gdp)) != 1:
        raise InvalidInputError("Give one of dp_epsilon=, rho= and gdp=.")
    if dp_epsilon is not None:
        return Spending.dp(dp_epsilon, start, stop, label)
    return Spending.gaussian(start, stop, rho=rho, gdp=gdp, label=label)
