"""`Squares`: sums of squared levels of Gaussian releases, per time point or per secret.

Under chains and clusters a release of square μ² per time point adds it to every point of its
window, exactly. Under Gaussian beliefs the two worlds of a secret differ by a translation, which
shifts each answer by a known amount: shifts within a release add up, and over releases their
squares do.

Theorem: docs/theory/f-sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from quiltwork.beliefs import Gaussian
from quiltwork.budget.accounting.account import History, releases_in
from quiltwork.budget.accounting.usage import Usage, least_span
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up, parse_stored_fraction
from quiltwork.influence.gaussian import no_sum
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.tradeoffs.curves import level_of_pure

_UP = 1 + 2.0**-51
_REMEDY = "Add the release itself, made with noise='gaussian'."


class SquareRun(NamedTuple):
    """Time points first..last with the same sum of squares."""

    first: int
    last: int
    square: float


class Squares(Protocol):
    """Sums of squared levels of releases."""

    def plus(self, spending: Spending) -> Self:
        """Add a release.

        Raises:
            InvalidInputError: under Gaussian beliefs for another range than before, where no
                `within` of the belief says how large a difference is hidden.
            UnsupportedError: under Gaussian beliefs for all but sums and means of clipped numbers.
        """

    @property
    def most(self) -> Fraction:
        """The largest sum of squares of any secret."""

    def times_more(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """Return the largest x such that these fit x times over below a limit; None if free."""

    def runs(self, length: int) -> Sequence[SquareRun]:
        """Return the sums from the first time point to the last."""

    def with_secrets(self, secrets: Secrets) -> Self:
        """Return the same releases for a longer series."""

    def to_body(self) -> dict[str, Any]:
        """Write the sums as JSON values."""

    def restored(self, body: Mapping[str, Any]) -> Self:
        """Read what `to_body` wrote, given empty squares of the same kind.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: for anything else.
        """


@dataclass(frozen=True, eq=False)
class PointSquares:
    """Sums per time point, exactly; the cap covers what other time points reveal."""

    usage: Usage = field(default_factory=Usage)

    def plus(self, spending: Spending) -> PointSquares:
        """Add its square to every point of its window."""
        square = squared_level(spending)
        charged = replace(
            spending,
            composes_by="levels",
            per_point=square,
            per_pair=Fraction(0),
            once=Fraction(0),
            square=Fraction(0),
        )
        return PointSquares(self.usage.plus(charged))

    @property
    def most(self) -> Fraction:
        """The largest sum on a time point."""
        if not self.usage.total_charge:
            return Fraction(0)
        return Fraction(int(self.usage.runs.own.max()), self.usage.denominator)

    def times_more(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """Return the least factor over the time points of their windows."""
        more = reduce(PointSquares.plus, spendings, PointSquares())
        return largest_multiple(limit, self.usage, more.usage)

    def runs(self, length: int) -> Sequence[SquareRun]:
        """Return runs of time points that are charged alike."""
        runs = self.usage.runs
        inside = int(np.searchsorted(runs.first, length, side="right"))
        if not inside:
            return [SquareRun(1, length, 0.0)]
        ends = [*(int(first) - 1 for first in runs.first[1:inside]), length]
        spent = [float_up(Fraction(int(own), self.usage.denominator)) for own in runs.own[:inside]]
        return list(map(SquareRun, map(int, runs.first[:inside]), ends, spent))

    def with_secrets(self, secrets: Secrets) -> PointSquares:
        """Return the same sums: they belong to their own time points, whatever the length."""
        return self

    def to_body(self) -> dict[str, Any]:
        """Write the sums per time point. O(changes)."""
        return self.usage.to_body()

    def restored(self, body: Mapping[str, Any]) -> PointSquares:
        """Read what `to_body` wrote."""
        return PointSquares(Usage.from_body(body))


@dataclass(frozen=True, eq=False)
class SecretSquares:
    """Sums per secret of Gaussian beliefs, rounded up; `square[j]` holds from `first[j]` on."""

    secrets: Secrets
    narrowest: Fraction | None = None
    first: IntArray = field(default_factory=lambda: np.ones(1, dtype=np.int64))
    square: FloatArray = field(default_factory=lambda: np.zeros(1))
    history: History = None
    """All releases: a longer series has new secrets, whose shifts are computed from these."""

    def plus(self, spending: Spending) -> SecretSquares:
        """Add the squared shift of the answer for every secret, under the worst belief.

        Raises:
            InvalidInputError: for another range than before, where no `within` of the belief says
                how large a difference is hidden.
            UnsupportedError: for all but sums and means of clipped numbers.
        """
        if spending.composes_by == "squares" and (spending.span is None or spending.per_pair):
            raise no_sum(None, _REMEDY)
        plain = replace(spending, composes_by="levels", square=Fraction(0))
        charged = self.secrets.charged(plain, self.narrowest)
        usage, episode = Usage().plus(charged), self.secrets.episode
        profiles = [
            bound.profile(usage, self.secrets.nodes, episode) for bound in self.secrets.bounds
        ]
        first = np.unique(np.concatenate([starts for starts, _ in profiles]))
        shift = np.max([_at(starts, shifts, first) for starts, shifts in profiles], axis=0)
        if spending.composes_by == "levels":
            shift = np.array([level_of_pure(level) for level in shift.tolist()])
        raised = self._raised(first, shift**2 * _UP)
        narrowest = least_span(self.narrowest, charged)
        return replace(raised, narrowest=narrowest, history=(spending, self.history))

    def _raised(self, first: IntArray, square: FloatArray) -> SecretSquares:
        starts = np.union1d(self.first, first)
        summed = _at(self.first, self.square, starts) + _at(first, square, starts)
        return replace(self, first=starts, square=summed * _UP)

    @property
    def most(self) -> Fraction:
        """The largest sum of any secret."""
        return Fraction(float(self.square.max()))

    def times_more(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """Return the least factor over the secrets that they shift."""
        empty = SecretSquares(self.secrets, self.narrowest)
        more = reduce(SecretSquares.plus, spendings, empty)
        starts = np.union1d(self.first, more.first)
        spent, added = (_at(squares.first, squares.square, starts) for squares in (self, more))
        factors = [
            (limit - Fraction(float(spent[j]))) / Fraction(float(added[j]))
            for j in np.flatnonzero(added > 0).tolist()
        ]
        return min(factors, default=None)

    def runs(self, length: int) -> Sequence[SquareRun]:
        """Return runs of secrets with the same sum."""
        ends = [*(self.first[1:] - 1).tolist(), length]
        return list(map(SquareRun, self.first.tolist(), ends, self.square.tolist()))

    def with_secrets(self, secrets: Secrets) -> SecretSquares:
        """Add every release again, for the secrets of a longer series."""
        return reduce(SecretSquares.plus, releases_in(self.history), SecretSquares(secrets))

    def to_body(self) -> dict[str, Any]:
        """Write the sums per secret, and the releases. O(releases)."""
        return {
            "first": self.first.tolist(),
            "square": self.square.tolist(),
            "narrowest": None if self.narrowest is None else str(self.narrowest),
            "releases": [spending.to_body() for spending in releases_in(self.history)],
        }

    def restored(self, body: Mapping[str, Any]) -> SecretSquares:
        """Read what `to_body` wrote."""
        span = body["narrowest"]
        history: History = None
        for row in body["releases"]:
            history = (Spending.from_body(row), history)
        return SecretSquares(
            self.secrets,
            None if span is None else parse_stored_fraction(span, "narrowest"),
            np.array(body["first"], dtype=np.int64),
            np.array(body["square"], dtype=np.float64),
            history,
        )


def _at(first: IntArray, values: FloatArray, nodes: IntArray) -> FloatArray:
    return np.asarray(values[np.searchsorted(first, nodes, side="right") - 1])


def largest_multiple(limit: Fraction, spent: Usage, more: Usage) -> Fraction | None:
    """Return the largest x with spent + x·more ≤ limit on every point; None if `more` is 0."""
    runs, least = more.runs, None
    for run in np.flatnonzero(runs.own).tolist():
        first = int(runs.first[run])
        last = int(runs.first[run + 1]) - 1 if run + 1 < len(runs.first) else first
        left = limit - spent.max_point_charge(first, last) if spent.total_charge else limit
        factor = left * more.denominator / int(runs.own[run])
        least = factor if least is None else min(least, factor)
    return least


def squared_level(spending: Spending) -> Fraction:
    """Return μ² of a release; for a pure level that of the least μ that hides as much.

    A pure level ε is hidden by μ = 2Φ⁻¹(e^ε/(1 + e^ε)), which uses much of a cap.
    """
    if spending.composes_by == "squares":
        return spending.square
    level = level_of_pure(float_up(spending.dp_epsilon or Fraction(0)))
    return Fraction(level * level * _UP) if math.isfinite(level) else Fraction(10**100)


def empty_squares(secrets: Secrets) -> Squares:
    """Return the sums of no releases, of the kind that these beliefs need."""
    if any(isinstance(bound.belief, Gaussian) for bound in secrets.bounds):
        return SecretSquares(secrets)
    return PointSquares()
