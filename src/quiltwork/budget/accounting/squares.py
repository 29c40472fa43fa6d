"""What Gaussian releases spend: squares of levels, added up per time point or per secret.

Under chains and clusters a release of square μ² per time point adds it to every point of its
window, exactly. Under Gaussian beliefs the two worlds of a secret differ by a translation: a
release shifts by so much about each secret, shifts within a release add up, and squares of shifts
over releases do.

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
from quiltwork.budget.accounting.usage import Usage, least_span
from quiltwork.budget.accounting.worst_point import Secrets
from quiltwork.budget.spending import Spending
from quiltwork.exact import float_up, parse_stored_fraction
from quiltwork.influence.gaussian import no_sum
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.tradeoffs.curves import level_of_pure

_UP = 1 + 2.0**-51
_ASK = "Add the release itself, made with noise='gaussian'."


class SquareRun(NamedTuple):
    """Time points first..last, on each of which squares add up to `square`."""

    first: int
    last: int
    square: float


class Squares(Protocol):
    """What some releases spend, in squares of levels."""

    def plus(self, spending: Spending) -> Self:
        """Add a release.

        Raises:
            InvalidInputError: under Gaussian beliefs for another range, where none says how much
                is hidden.
            UnsupportedError: under Gaussian beliefs for all but sums and means of clipped numbers.
        """

    @property
    def most(self) -> Fraction:
        """The largest sum of squares that any secret pays for."""

    def room(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """The largest x such that these fit x times over below a limit; None without one."""

    def runs(self, length: int) -> Sequence[SquareRun]:
        """What secrets pay for, from the first time point to the last."""

    def seen_by(self, secrets: Secrets) -> Self:
        """The same releases in a longer series."""

    def to_body(self) -> dict[str, Any]:
        """Write it as JSON values."""

    def with_body(self, body: Mapping[str, Any]) -> Self:
        """Read what `to_body` wrote, of squares that begin as these.

        Raises:
            ArithmeticError, KeyError, TypeError, ValueError: if it is something else.
        """


@dataclass(frozen=True, eq=False)
class PointSquares:
    """Sums per time point, exactly; what other time points say is in the limit."""

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
        """On the most used time point."""
        if not self.usage.everything:
            return Fraction(0)
        return Fraction(int(self.usage.runs.own.max()), self.usage.denominator)

    def room(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """The least over the runs that they are about."""
        more = reduce(PointSquares.plus, spendings, PointSquares())
        return least_room(limit, self.usage, more.usage)

    def runs(self, length: int) -> Sequence[SquareRun]:
        """Runs of points that are charged alike."""
        runs = self.usage.runs
        inside = int(np.searchsorted(runs.first, length, side="right"))
        ends = [*(int(first) - 1 for first in runs.first[1:inside]), length]
        spent = [float_up(Fraction(int(own), self.usage.denominator)) for own in runs.own[:inside]]
        found = [SquareRun(1, length, 0.0)] if not inside else []
        return found or list(map(SquareRun, map(int, runs.first[:inside]), ends, spent))

    def seen_by(self, secrets: Secrets) -> PointSquares:
        """They are charged to their own points, whatever the length."""
        return self

    def to_body(self) -> dict[str, Any]:
        """Write the sums per time point. O(changes)."""
        return self.usage.to_body()

    def with_body(self, body: Mapping[str, Any]) -> PointSquares:
        """Read what `to_body` wrote."""
        return PointSquares(Usage.from_body(body))


@dataclass(frozen=True, eq=False)
class SecretSquares:
    """Sums per secret of Gaussian beliefs, rounded up: steps that begin at `first`."""

    secrets: Secrets
    narrowest: Fraction | None = None
    first: IntArray = field(default_factory=lambda: np.ones(1, dtype=np.int64))
    square: FloatArray = field(default_factory=lambda: np.zeros(1))
    releases: tuple[Spending, Any] | None = None
    """Those that were added, the latest first: about new points each shifts anew."""

    def plus(self, spending: Spending) -> SecretSquares:
        """Add the squared shift of its answer about every secret, under the worst belief.

        Raises:
            InvalidInputError: for another range, where none says how much is hidden.
            UnsupportedError: for all but sums and means of clipped numbers.
        """
        if spending.composes_by == "squares" and (spending.span is None or spending.per_pair):
            raise no_sum(None, _ASK)
        plain = replace(spending, composes_by="levels", square=Fraction(0))
        charged = self.secrets.charged(plain, self.narrowest)
        moved, episode = Usage().plus(charged), self.secrets.episode
        profiles = [one.profile(moved, self.secrets.nodes, episode) for one in self.secrets.bounds]
        first = np.unique(np.concatenate([begins for begins, _ in profiles]))
        shift = np.max([_at(begins, told, first) for begins, told in profiles], axis=0)
        if spending.composes_by == "levels":
            shift = np.array([level_of_pure(one) for one in shift.tolist()])
        raised = self._raised(first, shift**2 * _UP)
        narrowest = least_span(self.narrowest, charged)
        return replace(raised, narrowest=narrowest, releases=(spending, self.releases))

    def _raised(self, first: IntArray, square: FloatArray) -> SecretSquares:
        begins = np.union1d(self.first, first)
        summed = _at(self.first, self.square, begins) + _at(first, square, begins)
        return replace(self, first=begins, square=summed * _UP)

    @property
    def most(self) -> Fraction:
        """About the worst secret."""
        return Fraction(float(self.square.max()))

    def room(self, limit: Fraction, spendings: Iterable[Spending]) -> Fraction | None:
        """The least over the secrets that they are about."""
        nothing = SecretSquares(self.secrets, self.narrowest)
        more = reduce(SecretSquares.plus, spendings, nothing)
        begins = np.union1d(self.first, more.first)
        spent, asked = (_at(one.first, one.square, begins) for one in (self, more))
        pays = np.flatnonzero(asked > 0)
        factors = [
            (limit - Fraction(float(spent[at]))) / Fraction(float(asked[at]))
            for at in pays.tolist()
        ]
        return min(factors, default=None)

    def runs(self, length: int) -> Sequence[SquareRun]:
        """Runs of secrets that pay alike."""
        ends = [*(self.first[1:] - 1).tolist(), length]
        return list(map(SquareRun, self.first.tolist(), ends, self.square.tolist()))

    def _in_order(self) -> list[Spending]:
        found, history = [], self.releases
        while history is not None:
            spending, history = history
            found.append(spending)
        return found[::-1]

    def seen_by(self, secrets: Secrets) -> SecretSquares:
        """Every release again, with what it tells about the points that are new."""
        return reduce(SecretSquares.plus, self._in_order(), SecretSquares(secrets))

    def to_body(self) -> dict[str, Any]:
        """Write the sums per secret, and the releases. O(releases)."""
        return {
            "first": self.first.tolist(),
            "square": self.square.tolist(),
            "narrowest": None if self.narrowest is None else str(self.narrowest),
            "releases": [one.to_body() for one in self._in_order()],
        }

    def with_body(self, body: Mapping[str, Any]) -> SecretSquares:
        """Read what `to_body` wrote."""
        span = body["narrowest"]
        history: tuple[Spending, Any] | None = None
        for one in body["releases"]:
            history = (Spending.from_body(one), history)
        return SecretSquares(
            self.secrets,
            None if span is None else parse_stored_fraction(span, "narrowest"),
            np.array(body["first"], dtype=np.int64),
            np.array(body["square"], dtype=np.float64),
            history,
        )


def _at(first: IntArray, values: FloatArray, nodes: IntArray) -> FloatArray:
    return np.asarray(values[np.searchsorted(first, nodes, side="right") - 1])


def least_room(limit: Fraction, spent: Usage, more: Usage) -> Fraction | None:
    """The largest x with spent + x·more ≤ limit on every point; None if it charges nothing."""
    runs, left = more.runs, None
    for at in np.flatnonzero(runs.own).tolist():
        first = int(runs.first[at])
        last = int(runs.first[at + 1]) - 1 if at + 1 < len(runs.first) else first
        here = limit - spent.highest(first, last) if spent.everything else limit
        factor = here * more.denominator / int(runs.own[at])
        left = factor if left is None else min(left, factor)
    return left


def squared_level(spending: Spending) -> Fraction:
    """μ² of a release: its own, or of a pure level the least that hides as much.

    A pure level ε is hidden by μ = 2Φ⁻¹(e^ε/(1 + e^ε)), which costs a cap much.
    """
    if spending.composes_by == "squares":
        return spending.square
    level = level_of_pure(float_up(spending.dp_epsilon or Fraction(0)))
    return Fraction(level * level * _UP) if math.isfinite(level) else Fraction(10**100)


def no_squares(secrets: Secrets) -> Squares:
    """Nothing spent yet, under these beliefs."""
    if any(isinstance(one.belief, Gaussian) for one in secrets.bounds):
        return SecretSquares(secrets)
    return PointSquares()
