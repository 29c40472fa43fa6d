"""What is spent on each time point, made into what leaks about it, under every belief.

Chains and trees are swept. Under Gaussian beliefs a release costs as far as numbers move. Rows of
clusters and of networks with cycles have no order to sweep in: each pays for what is charged to its
nearby rows, and for the influence of the quilt around them.

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
"""How far below the largest level of noise a safe one is looked for, where it is not safe."""
_ADD = "Add the release itself, or Spending.of_query(queries.mean(lo, hi), scale, length)."


@dataclass(frozen=True)
class Secrets:
    """Beliefs, the time points first..last that are secret, how many in a row, and which values."""

    bounds: tuple[BeliefBound, ...]
    first: int
    last: int
    episode: int = 1
    pairs: SecretPairs | None = None

    @classmethod
    def read(cls, beliefs: Any, length: Any, episode: Any, pairs: Any = None) -> Secrets:
        """Read what an account is about: every stretch of `episode` time points is a secret.

        With `pairs` only these values of a time point are kept apart.

        Raises:
            InvalidInputError: for arguments that make no sense, with the offending value.
            UnsupportedError: for episodes of rows that are in no order.
        """
        stretch = integer(episode, "episode", 1)
        apart = parse_pairs(pairs, as_beliefs(beliefs), stretch)
        seen = bounds_for(beliefs, length, None, apart)
        if stretch > 1 and any(one.belief.length is not None for one in seen):
            raise UnsupportedError(
                "episode is a number of time points in a row, and these beliefs are about rows in "
                "no order; leave it out."
            )
        points = seen[0].length
        return cls(seen, 1, points, min(stretch, points), apart)

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.bounds[0].length

    @property
    def nodes(self) -> range:
        """The secret time points."""
        return range(self.first, self.last + 1)

    def worst(self, usage: Usage) -> WorstPoint:
        """The time point that leaks most, under the worst belief. O(changes of levels)."""
        if not usage.everything:
            return WorstPoint()
        found = [one.leakage_at(usage, self.nodes, self.episode) for one in self.bounds]
        return max(found, key=lambda one: one.exact)

    def safe_level(self, limit: Fraction) -> Fraction:
        """A level that costs at most `limit` on all time points together; 0 if none is known.

        Whatever spends no more on any time point costs no more. Cost: about that of a total, once
        for each limit.

        Theorem: docs/theory/ledger.md (by levels)
        """
        if limit not in self._safe_levels:
            self._safe_levels[limit] = self._find_safe_level(limit)
        return self._safe_levels[limit]

    @cached_property
    def _safe_levels(self) -> dict[Fraction, Fraction]:
        return {}

    def _find_safe_level(self, limit: Fraction) -> Fraction:
        if limit <= 0 or not all(one.swept for one in self.bounds):
            return Fraction(0)
        most = limit
        for one in self.bounds:
            highest = one.largest_level(self.nodes, self.episode, float_down(limit))
            if highest is not None and math.isfinite(highest):
                most = min(most, Fraction(highest))
        level = Fraction(float_down(most * (1 - 2 * _ROUNDING_OF_SWEEPS)))
        for _ in range(_HALVINGS if level else 0):
            flat = Usage().plus(Spending.dp(level, 1, self.length))
            if self.worst(flat).exact <= limit * (1 - _ROUNDING_OF_SWEEPS):
                return level
            level /= 2
        return Fraction(0)

    def charged(self, spending: Spending, narrowest: Fraction | None) -> Spending:
        """Return a release as it is charged, after others with this narrowest range.

        Under Gaussian beliefs no number moves farther than the farthest, however wide the range,
        when a single one is secret; within a stretch the moves of several add up.

        Raises:
            InvalidInputError: for another range, where none says how much is hidden.
            UnsupportedError: for all but sums and means of clipped numbers.
        """
        beliefs = [one.belief for one in self.bounds if isinstance(one.belief, Gaussian)]
        if not beliefs or not spending.dp_epsilon:
            return spending
        if spending.span is None or spending.per_pair:
            raise no_sum(None, _ADD)
        farthest = [one.farthest for one in beliefs if one.farthest is not None]
        if len(farthest) == len(beliefs) and self.episode == 1:
            span = min(spending.span, max(farthest))
            per_point = spending.per_point * span / spending.span
            return replace(spending, per_point=per_point, span=span)
        if narrowest in (None, spending.span):
            return spending
        raise InvalidInputError(
            f"The releases before were clipped to a range of width {float(narrowest or 0):g}, this "
            f"one to {float(spending.span):g}, and the belief does not say how large a difference "
            f"is hidden by both; give it within=, and {argument('episode', 1)}."
        )


class LeakageRun(NamedTuple):
    """Time points first..last, each of which leaks at most `epsilon`."""

    first: int
    last: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class LeakageProfile(ResultBase):
    """Run j of time points first[j]..last[j] leaks at most epsilon[j]; rounded up."""

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
        """Say where the most leaks."""
        worst = max(self, key=lambda run: run.epsilon)
        return (
            f"At most {worst.epsilon:.6g} leaks about a time point ({worst.first}..{worst.last}); "
            f"{len(self):,} runs of time points leak the same."
        )

    def at(self, node: int) -> float:
        """Return what one time point leaks at most.

        Raises:
            InvalidInputError: if there is no such time point.
        """
        if not 1 <= node <= int(self.last[-1]):
            raise InvalidInputError(f"There is no time point {node!r} in 1..{self.last[-1]}.")
        return float(self.epsilon[np.searchsorted(self.first, node, side="right") - 1])

    def chart_beside(self, total: float, budget: float | None) -> LineChart:
        """Return the leakage of every time point as steps, with total and budget as lines."""
        from quiltwork.report.charts import LineChart, level, steps

        leaked = steps(self.first - 0.5, self.last[-1] + 0.5, self.epsilon)
        lines = [replace(leaked, name="leaked"), level(f"total {total:.4g}", total, [leaked])]
        if budget is not None:
            lines.append(level(f"budget {budget:.4g}", budget, [leaked]))
        return LineChart(
            "What each time point leaks",
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
    """Bound what every secret leaks, `most` at most, and `added` to each. O(changes) or O(rows)."""
    (first, leak), *others = (
        one.profile(usage, secrets.nodes, secrets.episode) for one in secrets.bounds
    )
    for other in others:
        begins = np.union1d(first, other[0])
        rows = (
            values[np.searchsorted(starts, begins, side="right") - 1]
            for starts, values in ((first, leak), other)
        )
        first, leak = begins, np.maximum(*rows)
    leak = np.minimum(leak, float_up(most)) + float_up(added)
    begins = np.flatnonzero(np.append(True, leak[1:] != leak[:-1]))
    last = np.append(first[begins[1:]] - 1, secrets.last)
    return LeakageProfile(first[begins], last, leak[begins])
