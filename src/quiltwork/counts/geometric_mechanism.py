"""The geometric mechanism: a count plus two-sided geometric noise, unbounded or clipped to 0..n.

The clipped form G answers 0 for everything below 0 and n for everything above n. For every prior
and every monotone loss, some remap of G is an optimal α-private mechanism (`remaps.remap`).
Construction is O(1); the (n+1)×(n+1) matrix is only built on request.

Theorem: docs/theory/geometric-mechanism.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import flag
from quiltwork.budget.payment import as_payer, pay_and_store
from quiltwork.counts.alpha_levels import alpha_for_epsilon, parse_level
from quiltwork.counts.contributors import belief_digest, parse_private_count, substitution_level
from quiltwork.counts.geometric_matrix import geometric_matrix
from quiltwork.errors import InvalidInputError, NotPrivateError, UnsupportedError
from quiltwork.exact import Number, integer
from quiltwork.noise import TwoSidedGeometric
from quiltwork.noise.bits import signs
from quiltwork.results import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from quiltwork.counts.consumers.consumer import Consumer
    from quiltwork.counts.remaps.remap import Remap

_LARGEST_FLOAT_MATRIX = 10_000
_LARGEST_EXACT_MATRIX = 1_000


@dataclass(frozen=True, init=False)
class GeometricMechanism:
    """A count query over n people at privacy level α, or ε = −ln α.

    Neighbouring data differ in one person's row, replaced, added or removed, so the sensitivity is
    1. `beliefs` are for people who depend on each other (households as `Clusters`, a `MarkovChain`
    over n time points, …): the level then bounds what an adversary with these beliefs learns about
    one person, and `alpha` is the noise that this takes.

    Attributes:
        n: the largest possible count.
        alpha: the exact ratio of neighbouring noise probabilities.
        epsilon: the requested level; None at α = 0.
        dp_epsilon: the differential privacy level of one release for substituting one person;
            smaller than `epsilon` under `beliefs`.
        belief_digest: of `beliefs`, if given: a ledger compares it with the dataset's.

    >>> g = GeometricMechanism(2, alpha=Fraction(1, 2))
    >>> print(*g.matrix(exact=True)[0])
    2/3 1/6 1/6
    >>> 0 <= g.release(1) <= 2
    True

    Theorem: docs/theory/geometric-mechanism.md
    """

    n: int
    alpha: Fraction
    epsilon: Fraction | None
    dp_epsilon: Fraction | None
    belief_digest: str | None = field(default=None, repr=False)

    def __init__(
        self,
        n: int,
        alpha: Number | None = None,
        epsilon: Number | None = None,
        beliefs: Any = None,
    ) -> None:
        people = integer(n, "n", 1)
        ratio, level = parse_level(alpha, epsilon)
        dp_level, digest = level, None
        if beliefs is not None and level is not None:
            dp_level = substitution_level(beliefs, people, level)
            ratio = alpha_for_epsilon(dp_level) if dp_level else Fraction(1)
            digest = belief_digest(beliefs)
        object.__setattr__(self, "n", people)
        object.__setattr__(self, "alpha", ratio)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "dp_epsilon", dp_level)
        object.__setattr__(self, "belief_digest", digest)

    @cached_property
    def noise(self) -> TwoSidedGeometric:
        """The distribution of the noise of a release."""
        return TwoSidedGeometric.from_alpha(self.alpha)

    def matrix(self, exact: bool = False) -> NDArray[Any]:
        """Return G: entry [i, r] is the probability of answer r when the count is i.

        With `exact`, entries are Fractions for the rational α in use. At α = 0 it is the identity;
        at α = 1 every row is a fair coin between 0 and n. Cost: (n+1)² entries.

        Raises:
            UnsupportedError: above n = 10,000 (exact: 1,000).
        """
        exact = flag(exact, "exact")
        limit = _LARGEST_EXACT_MATRIX if exact else _LARGEST_FLOAT_MATRIX
        if self.n > limit:
            raise UnsupportedError(
                f"The matrix for n = {self.n} has {(self.n + 1) ** 2:.2g} entries; ask for single "
                f"entries with probability(count, response), or take n up to {limit}."
            )
        return geometric_matrix(self.n, self.alpha, exact)

    def probability(self, count: int, response: int, unbounded: bool = False) -> Fraction:
        """Return the exact probability of one response to one count.

        >>> GeometricMechanism(5, alpha=0.5).probability(2, 0)
        Fraction(1, 6)
        """
        value, answer = (
            parse_private_count(count, self.n, None),
            integer(response, "response", -(2**62)),
        )
        if flag(unbounded, "unbounded"):
            self._refuse_unbounded_coin()
        elif not 0 <= answer <= self.n:
            return Fraction(0)
        # The clipped ends collect the tails: Σ_{d≥D} α^d = α^D/(1−α) cancels the factor 1−α.
        at_end = not unbounded and answer in (0, self.n)
        numerator = 1 if at_end else 1 - self.alpha
        return numerator / (1 + self.alpha) * self.alpha ** abs(value - answer)

    def release(
        self,
        count: int,
        unbounded: bool = False,
        ledger: Any = None,
        dataset: str | None = None,
        key: str | None = None,
        analyst: str | None = None,
    ) -> int:
        """Draw one private answer: an integer in 0..n, or with `unbounded` the count plus noise.

        With a ledger, `dp_epsilon` is debited from `dataset` before the draw, and a count above n
        counts as n, because an error would leak it without a debit.

        Raises:
            NotPrivateError: at α = 0, which would publish the count itself.
            InvalidInputError: if the count is not an integer in 0..n, or alpha is too near 1.
        """
        unbounded = flag(unbounded, "unbounded")
        value = parse_private_count(count, self.n, ledger)
        if self.alpha == 0 or self.dp_epsilon is None:
            raise NotPrivateError(
                "alpha = 0 adds no noise and would publish the count itself; give alpha > 0."
            )
        if unbounded:
            self._refuse_unbounded_coin()
        if self.alpha < 1:
            _ = self.noise  # rejects an alpha too near 1 before anything is debited

        def record() -> dict[str, Any]:
            return {
                "mechanism": "geometric",
                "n": self.n,
                "alpha": str(self.alpha),
                "unbounded": unbounded,
                "dp_epsilon": str(self.dp_epsilon),
                "belief_digest": self.belief_digest,
                **({} if self.belief_digest is None else {"length": self.n}),
            }

        payer = as_payer(ledger, dataset, key, analyst)
        return pay_and_store(payer, record, lambda: self._draw(value, unbounded), str, int)

    def _draw(self, value: int, unbounded: bool) -> int:
        if self.alpha == 1:
            return self.n if signs(1)[0] else 0
        answer = value + self.noise.draw_one()
        return answer if unbounded else min(max(answer, 0), self.n)

    def interval(self, released: int, confidence: Number = 0.95) -> Interval:
        """Return a confidence interval for the count, within 0..n.

        Valid for a clipped and an unbounded answer alike, whatever the count.

        >>> GeometricMechanism(100, alpha=0.5).interval(40)
        Interval(low=36, high=44)
        """
        answer = min(max(integer(released, "released", -(2**62)), 0), self.n)
        if self.alpha == 1:
            return Interval(0, self.n)
        reach = self.noise.quantile(confidence)
        return Interval(max(0, answer - reach), min(self.n, answer + reach))

    def remap(self, consumer: Consumer) -> Remap:
        """Return the consumer's optimal remap of the clipped answers.

        >>> from quiltwork.counts import Consumer
        >>> GeometricMechanism(3, alpha=0.5).remap(Consumer([0.5, 0, 0, 0.5])).mapping
        (0, 0, 3, 3)

        Theorem: docs/theory/geometric-mechanism.md
        """
        from quiltwork.counts.remaps.remap import optimal_remap

        return optimal_remap(self.n, self.alpha, consumer)

    def _refuse_unbounded_coin(self) -> None:
        if self.alpha == 1:
            raise InvalidInputError(
                "alpha = 1 would spread noise evenly over all integers, which no distribution "
                "does. Release the clipped answer in 0..n, or give alpha < 1."
            )
