"""`Accountant`: what all releases from one series cost together, kept within a budget.

Every release is recorded as a `Spending`. The charges of all of them on each time point are swept
over the series, which bounds the leakage about every time point: for overlapping windows or not, in
any order, chosen adaptively or not. A release that would exceed the budget is refused and not
recorded. With a δ it opens a `GaussianAccountant`.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, Label
from quiltwork.beliefs.secrets import SecretPairs, pairs_from_json, pairs_to_json
from quiltwork.budget.accounting import headroom
from quiltwork.budget.accounting.account import Account
from quiltwork.budget.accounting.gaussian_accountant import GaussianAccountant
from quiltwork.budget.accounting.growth import extended, fits_when_longer
from quiltwork.budget.accounting.series_accountant import SeriesAccountant, read_budget
from quiltwork.budget.accounting.worst_point import LeakageProfile, Secrets, leakage_profile
from quiltwork.budget.spending import HasSpending, Spending, as_spending
from quiltwork.errors import BudgetExceeded, InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    integer,
    privacy_level,
)
from quiltwork.queries import Query

if TYPE_CHECKING:
    from quiltwork.budget.accounting.theorems import Explanation
    from quiltwork.report.charts import LineChart


class Accountant(SeriesAccountant[Account]):
    """The account of one series under given beliefs.

    Args:
        beliefs: one belief or a list; the total holds under each of them.
        length: the number of time points; None for beliefs about fixed rows.
        budget: the most that all releases together may cost; None for no limit.
        episode: how many time points in a row are one secret.
        pairs: the pairs of values that are kept apart, all by default, fixed here; as in
            `calibrate`.
        delta: opens a `GaussianAccountant` for (ε, δ) instead.
        pure: with delta, the largest sum of pure levels beside Gaussian noise.

    Raises:
        InvalidInputError: for invalid arguments, with the offending value.

    >>> from quiltwork.beliefs import MarkovChain
    >>> account = Accountant(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100, budget=2)
    >>> _ = account.spend(dp_epsilon=0.02, start=1, stop=50)
    >>> round(account.epsilon(), 4), account.how_many_more(account.spendings[0])
    (0.0605, 27)
    """

    def __new__(
        cls,
        beliefs: Belief | Sequence[Belief],
        length: int | None = None,
        budget: Number | None = None,
        episode: int = 1,
        pairs: Iterable[tuple[Label, Label]] | None = None,
        delta: Number = 0,
        pure: Number = 0,
    ) -> Any:
        """Open an account of a pure ε, or with delta one of (ε, δ)."""
        if delta != 0 or isinstance(delta, bool):
            if pairs is not None:
                raise UnsupportedError(
                    "An account with delta keeps all values apart; leave pairs out."
                )
            return GaussianAccountant(beliefs, length, budget, episode, delta, pure)
        return super().__new__(cls)

    def __init__(
        self,
        beliefs: Belief | Sequence[Belief],
        length: int | None = None,
        budget: Number | None = None,
        episode: int = 1,
        pairs: Iterable[tuple[Label, Label]] | None = None,
        delta: Number = 0,
        pure: Number = 0,
    ) -> None:
        if pure != 0:
            raise InvalidInputError(
                "pure is a share beside Gaussian noise, and goes with delta; an account without "
                "delta is pure as a whole."
            )
        self._budget = None if budget is None else privacy_level(budget, "budget")
        self._account = Account(Secrets.read(beliefs, length, episode, pairs))
        self._episode = integer(episode, "episode", 1)

    @classmethod
    def of(cls, account: Account, budget: Fraction | None, episode: int) -> Accountant:
        """Return an accountant that continues from an account."""
        accountant: Accountant = object.__new__(cls)
        accountant._account, accountant._budget = account, budget
        accountant._episode = episode
        return accountant

    @property
    def pairs(self) -> SecretPairs | None:
        """The pairs of values of a time point that are kept apart; None for all."""
        return self.secrets.pairs

    @property
    def budget(self) -> Fraction | None:
        """The most that all releases together may cost, exactly; None without a limit."""
        return self._budget

    def _allows(self, account: Account) -> bool:
        return self._budget is None or account.fits(self._budget)

    def _refusal(self, after: Account, added: list[Spending]) -> BudgetExceeded:
        budget = self._need_budget()
        left = float_down(budget - self.exact_epsilon)
        return BudgetExceeded(
            f"This would raise the total from {self.epsilon():.12g} to "
            f"{float_up(after.total):.12g}, above the budget of {float_up(budget):.12g}; "
            f"{left:.12g} is left. Nothing was recorded.",
            partial(headroom.what_fits, self._account, budget, added),
        )

    def leak_under(self, beliefs: Belief | Sequence[Belief]) -> tuple[float, int | None]:
        """Return the leakage of all releases under other beliefs, and the worst time point."""
        other = Accountant(beliefs, self.length, episode=self.episode, pairs=self.pairs)
        other.add_all(self.spendings)
        return other.epsilon(), other._account.worst.node

    @property
    def exact_remaining(self) -> Fraction | None:
        """Budget less total; None without a budget."""
        return None if self._budget is None else self._budget - self.exact_epsilon

    @property
    def remaining(self) -> float | None:
        """Budget less total, rounded down; None without a budget.

        Costs do not add up, so the next release may cost another amount on its own: see
        `largest_next` and `how_many_more`.
        """
        left = self.exact_remaining
        return None if left is None else float_down(left)

    def _need_budget(self) -> Fraction:
        if self._budget is None:
            raise UnsupportedError(
                "This account has no budget, so there is no limit to the next release; open it "
                "with budget=…."
            )
        return self._budget

    def largest_next(self, start: int = 1, stop: int | None = None) -> float:
        """Return the largest dp_epsilon that a release on a window may have and still fit.

        Spending the returned level always fits; infinity if the beliefs leave nothing to protect
        there, 0.0 if nothing fits.

        Raises:
            UnsupportedError: without a budget, or if no theorem lets a release follow.
        """
        last = self.length if stop is None else stop
        return self.largest_factor([Spending.dp(1, start, last)])

    def largest_factor(self, releases: Sequence[HasSpending | Spending]) -> float:
        """Return the largest x such that these releases, with all charges times x, still fit."""
        spendings = [as_spending(release) for release in listed(releases, "releases")]
        return headroom.largest_factor(self._account, self._need_budget(), spendings)

    def smallest_scale(self, query: Query) -> float:
        """Return the smallest noise scale with which a query on its window still fits.

        In integers of the query, per range hi − lo for sums and means. 0.0 if the beliefs leave
        nothing to protect there.

        Raises:
            BudgetExceeded: if no noise is enough.
            UnsupportedError: without a budget, or if no theorem lets a release follow.
        """
        weighted = [(query, Fraction(1))]
        scales = headroom.smallest_scales(self._account, self._need_budget(), weighted, self.length)
        return scales[0]

    def how_many_more(self, release: HasSpending | Spending) -> int | float:
        """Return how many more releases like this one fit; infinity if they cost nothing.

        Raises:
            UnsupportedError: without a budget, or if no theorem lets a release follow.
        """
        return headroom.how_many_more(self._account, self._need_budget(), as_spending(release))

    def leakage(self, start: int = 1, stop: int | None = None) -> float:
        """Return the total for the time points start..stop only, rounded up."""
        last = self.length if stop is None else integer(stop, "stop", 1)
        first = integer(start, "start", 1)
        if not first <= last <= self.length:
            raise InvalidInputError(
                f"The time points {first}..{last} are not within 1..{self.length}."
            )
        part = self._account.with_secrets(replace(self._account.secrets, first=first, last=last))
        return float_up(min(part.total, self.exact_epsilon))

    def extend(self, length: int) -> None:
        """Let the series grow to `length` time points, if its releases still fit the budget.

        Under some beliefs the same releases reveal more in a longer series, so growing is priced
        like a release. An account opened with the final length never needs it.

        Theorem: docs/theory/sweep.md (growing)

        Raises:
            BudgetExceeded: if they do not fit; then nothing was changed.
            InvalidInputError: if the new length is shorter.
            UnsupportedError: for beliefs about fixed rows.
        """
        account, budget = self._account, self._budget

        def limit_exceeded(longer: Account) -> str | None:
            if budget is None or fits_when_longer(account, longer, budget):
                return None
            return f"the budget of {float_down(budget):.9g}"

        self._account = extended(
            account,
            integer(length, "length", 1),
            self.episode,
            limit_exceeded,
            lambda longer: f"{float_up(longer.total):.9g}",
        )

    def profile(self) -> LeakageProfile:
        """Return the leakage about each time point, as runs of time points.

        Theorem: docs/theory/sweep.md
        """
        account = self._account
        return leakage_profile(
            account.secrets, account.usage, account.worst.exact, account.by_theorem_3_6
        )

    def chart(self) -> LineChart:
        """Return a chart of the leakage about each time point, with total and budget."""
        budget = None if self._budget is None else float_down(self._budget)
        return self.profile().chart_beside(self.epsilon(), budget)

    def explain(self) -> Explanation:
        """Return every theorem's bound with its scope, and which of them is the total.

        `print(account.explain())` shows it as text.
        """
        from quiltwork.budget.accounting.theorems import explain

        return explain(self._account)

    def __repr__(self) -> str:
        """Return length, number of releases and budget, without computing the total."""
        count = self._account.count
        limit = "no budget" if self._budget is None else f"budget={float(self._budget):.6g}"
        return f"Accountant({self.length} time points, {count} releases, {limit})"

    def to_body(self) -> dict[str, Any]:
        """Write the account as JSON values; `from_body` computes its total again."""
        pairs = {} if self.pairs is None else {"pairs": pairs_to_json(self.pairs)}
        budget = None if self._budget is None else str(self._budget)
        return {**super().to_body(), "budget": budget, **pairs}

    @classmethod
    def _read(cls, body: Mapping[str, Any], beliefs: tuple[Belief, ...]) -> Accountant:
        pairs = pairs_from_json(body.get("pairs"))
        secrets = Secrets.read(beliefs, body["length"], body["episode"], pairs)
        spendings = [Spending.from_body(row) for row in body["spendings"]]
        # `of` does not warn about a budget of no protection: that happened when it was set.
        return cls.of(Account(secrets).plus(spendings), read_budget(body), body["episode"])
