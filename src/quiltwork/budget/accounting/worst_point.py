"""`Secrets`: from the charges of each time point to the leakage about it, under every belief.

Chains and trees are swept. Under Gaussian beliefs a release costs as much as a hidden difference
moves it. Rows of clusters and of networks with cycles have no order to sweep in: each pays for the
charges of its nearby rows, and for the influence of the quilt around them.

Theorem: docs/theory/sweep.md, docs/theory/gaussian.md, docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quiltwork.beliefs import Gaussian, as_beliefs
from quiltwork.beliefs.secrets import SecretPairs, parse_pairs
from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.spending import Spending
from quiltwork.caching import cached_property
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_down, float_up, integer
from quiltwork.influence.belief_bound import BeliefBound, WorstPoint
from quiltwork.influence.calibration_arguments import bounds_for
from quiltwork.influence.gaussian import no_sum
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.results import ResultBase
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.report.charts import LineChart

_ROUNDING_OF_SWEEPS = Fraction(1, 2**26)
_HALVINGS = 40
"""Halvings of a candidate level before the search for a safe level gives up."""
_REMEDY = "Add the release itself, or Spending.of_query(queries.mean(lo, hi), scale, length)."


@dataclass(frozen=True)
class Secrets:
    """What is protected, and against whom.

    Attributes:
        bounds: the leakage bound of each belief that an adversary may hold.
        first: the first secret time point.
        last: the last.
        episode: how many time points in a row are one secret.
        pairs: the pairs of values that are kept apart; None for all.
    """

    bounds: tuple[BeliefBound, ...]
    first: int
    last: int
    episode: int = 1
    pairs: SecretPairs | None = None

    @classmethod
    def read(cls, beliefs: Any, length: Any, episode: Any, pairs: Any = None) -> Secrets:
        """Parse the arguments of an account: every `episode` time points in a row are a secret.

        With `pairs` only these values of a time point are kept apart.

        Raises:
            InvalidInputError: for invalid arguments, with the offending value.
            UnsupportedError: for episodes of rows that are in no order.
        """
        size = integer(episode, "episode", 1)
        apart = parse_pairs(pairs, as_beliefs(beliefs), size)
        bounds = bounds_for(beliefs, length, None, apart)
        if size > 1 and any(bound.belief.length is not None for bound in bounds):
            raise UnsupportedError(
                "episode is a number of time points in a row, and these beliefs are about rows in "
                "no order; leave it out."
            )
        points = bounds[0].length
        return cls(bounds, 1, points, min(size, points), apart)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.bounds[0].length

    @property
    def nodes(self) -> range:
        """The secret time points."""
        return range(self.first, self.last + 1)

    def worst(self, usage: Usage) -> WorstPoint:
        """Return the time point that leaks most, under the worst belief. O(changes of levels)."""
        if not usage.total_charge:
            return WorstPoint()
        leakages = [bound.leakage_at(usage, self.nodes, self.episode) for bound in self.bounds]
        return max(leakages, key=lambda leakage: leakage.exact)

    def safe_level(self, limit: Fraction) -> Fraction:
        """Return a level that costs at most `limit` on every time point at once; 0 if unknown.

        Releases that spend no more than it on any time point cost no more. Cost: about that of a
        total, once for each limit.

        Theorem: docs/theory/ledger.md (by levels)
        """
        if limit not in self._safe_levels:
            self._safe_levels[limit] = self._find_safe_level(limit)
        return self._safe_levels[limit]

    @cached_property
    def _safe_levels(self) -> dict[Fraction, Fraction]:
        return {}

    def _find_safe_level(self, limit: Fraction) -> Fraction:
        if limit <= 0 or not all(bound.swept for bound in self.bounds):
            return Fraction(0)
        candidate = limit
        for bound in self.bounds:
            largest = bound.largest_level(self.nodes, self.episode, float_down(limit))
            if largest is not None and math.isfinite(largest):
                candidate = min(candidate, Fraction(largest))
        # The candidate is a floating-point estimate; the sweep below proves a level or halves it.
        level = Fraction(float_down(candidate * (1 - 2 * _ROUNDING_OF_SWEEPS)))
        for _ in range(_HALVINGS if level else 0):
            flat = Usage().plus(Spending.dp(level, 1, self.length))
            if self.worst(flat).exact <= limit * (1 - _ROUNDING_OF_SWEEPS):
                return level
            level /= 2
        return Fraction(0)

    def charged(self, spending: Spending, narrowest: Fraction | None) -> Spending:
        """Return a release as it is charged, after others with this narrowest range.

        Under Gaussian beliefs with a hidden distance (`within`), a single secret number moves an
        answer by no more than that distance, however wide the range; in an episode moves add up.

        Raises:
            InvalidInputError: for another range, where no belief has a `within`.
            UnsupportedError: for all but sums and means of clipped numbers.
        """
        beliefs = [bound.belief for bound in self.bounds if isinstance(bound.belief, Gaussian)]
        if not beliefs or not spending.dp_epsilon:
            return spending
        if spending.span is None or spending.per_pair:
            raise no_sum(None, _REMEDY)
        farthest = [belief.farthest for belief in beliefs if belief.farthest is not None]
        if len(farthest) == len(beliefs) and self.episode == 1:
            span = min(spending.span, max(farthest))
            per_point = spending.per_point * span / spending.span
            return replace(spending, per_point=per_point, span=span)
        if narrowest in (None, spending.span):
            return spending
        raise InvalidInputError(
            f"Earlier releases were clipped to a range of width {float(narrowest or 0):g}, this "
            f"one to {float(spending.span):g}, and the belief does not state how large a "
            f"difference both hide; give it within=, and {argument('episode', 1)}."
        )


class LeakageRun(NamedTuple):
    """Time points first..last, each of which leaks at most `epsilon`."""

    first: int
    last: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class LeakageProfile(ResultBase):
    """The leakage about every time point: epsilon[j] for each of first[j]..last[j]; rounded up.

    >>> import quiltwork as qw
    >>> account = qw.Accountant(qw.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100)
    >>> _ = account.spend(0.1, start=50, stop=50)
    >>> profile = account.profile()
    >>> profile.at(50), round(profile.at(52), 4)
    (0.1, 0.0256)
    """

    first: IntArray
    last: IntArray
    epsilon: FloatArray

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.first)

    def __iter__(self) -> Iterator[LeakageRun]:
        """The runs in order."""
        for first, last, epsilon in zip(self.first, self.last, self.epsilon, strict=True):
            yield LeakageRun(int(first), int(last), float(epsilon))

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run."""
        return [run._asdict() for run in self]

    def explain(self) -> str:
        """Return a sentence with the largest leakage and where it is."""
        worst = max(self, key=lambda run: run.epsilon)
        return (
            f"The leakage about a time point is at most {worst.epsilon:.6g} "
            f"({worst.first}..{worst.last}); there are {len(self):,} runs of equal leakage."
        )

    def at(self, node: int) -> float:
        """Return the leakage about one time point.

        Raises:
            InvalidInputError: if there is no such time point.
        """
        if not 1 <= node <= int(self.last[-1]):
            raise InvalidInputError(f"There is no time point {node!r} in 1..{self.last[-1]}.")
        return float(self.epsilon[np.searchsorted(self.first, node, side="right") - 1])

    def chart_beside(self, total: float, budget: float | None) -> LineChart:
        """Return a chart: leakage by time point as steps, total and budget as lines."""
        from quiltwork.report.charts import LineChart, level, steps

        leakage = steps(self.first - 0.5, self.last[-1] + 0.5, self.epsilon)
        lines = [replace(leakage, name="leakage"), level(f"total {total:.4g}", total, [leakage])]
        if budget is not None:
            lines.append(level(f"budget {budget:.4g}", budget, [leakage]))
        return LineChart(
            "Leakage about each time point",
            f"All releases together leak {total:.4g} about the worst time point.",
            "time point",
            "ε",
            tuple(lines),
        )

    def values(self) -> FloatArray:
        """Return one entry per time point."""
        return np.repeat(self.epsilon, self.last - self.first + 1)


def leakage_profile(
    secrets: Secrets, usage: Usage, most: Fraction, added: Fraction
) -> LeakageProfile:
    """Bound the leakage about every secret by `most`, plus `added`. O(changes) or O(rows)."""
    (first, leakage), *others = (
        bound.profile(usage, secrets.nodes, secrets.episode) for bound in secrets.bounds
    )
    for other in others:
        merged = np.union1d(first, other[0])
        rows = (
            values[np.searchsorted(starts, merged, side="right") - 1]
            for starts, values in ((first, leakage), other)
        )
        first, leakage = merged, np.maximum(*rows)
    leakage = np.minimum(leakage, float_up(most)) + float_up(added)
    runs = np.flatnonzero(np.append(True, leakage[1:] != leakage[:-1]))
    last = np.append(first[runs[1:]] - 1, secrets.last)
    return LeakageProfile(first[runs], last, leakage[runs])
