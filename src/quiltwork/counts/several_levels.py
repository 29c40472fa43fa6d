"""One count for several recipients at different privacy levels, safe against collusion.

With independent noise, recipients could average it away. Here the least private answer is drawn
first and each further one is made from the one before: with ratios α ≤ β, adding nothing with
probability ρ = α(1−β)²/(β(1−α)²) and β-geometric noise otherwise turns α-geometric noise exactly
into β-geometric noise. All answers are post-processing of the first, so colluding recipients learn
no more than the least private of them, and the release costs that level once. One draw per level.

Theorem: docs/theory/several-levels.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from quiltwork import files
from quiltwork.arguments import listed
from quiltwork.budget.payment import as_payer, pay_and_store
from quiltwork.counts.alpha_levels import parse_level
from quiltwork.counts.contributors import parse_private_count
from quiltwork.counts.exact_draws import draw_index
from quiltwork.counts.geometric_mechanism import GeometricMechanism
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number, parse_stored_fraction
from quiltwork.noise import TwoSidedGeometric
from quiltwork.results import ResultBase


@dataclass(frozen=True)
class LevelledCount(ResultBase):
    """One count released at several levels.

    Attributes:
        n: the largest possible count.
        alphas: the levels, least private first.
        noisy: the unbounded answer of each level, in the same order.
        dp_epsilon: the privacy loss of all of them together: that of the first.
    """

    schema = ("levelled-count", 1)

    n: int
    alphas: tuple[Fraction, ...]
    noisy: tuple[int, ...]
    dp_epsilon: Fraction

    @property
    def values(self) -> tuple[int, ...]:
        """The answers clipped to 0..n, one per recipient."""
        return tuple(min(max(value, 0), self.n) for value in self.noisy)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per level."""
        pairs = zip(self.alphas, self.values, strict=True)
        return [{"alpha": str(alpha), "value": value} for alpha, value in pairs]

    @classmethod
    def from_json(cls, text: str | bytes) -> LevelledCount:
        """Read the answers back from `to_json`."""
        body = files.load(text, "levelled-count", (1,))
        return cls(
            body["n"],
            tuple(parse_stored_fraction(alpha, "alpha") for alpha in body["alphas"]),
            tuple(body["noisy"]),
            parse_stored_fraction(body["dp_epsilon"], "dp_epsilon"),
        )


def release_levels(
    count: int,
    n: int,
    alphas: Sequence[Number] | None = None,
    epsilons: Sequence[Number] | None = None,
    ledger: Any = None,
    dataset: str | None = None,
    key: str | None = None,
    analyst: str | None = None,
) -> LevelledCount:
    """Release one count at several levels; only the least private one is debited.

    Levels are given from the least private to the most private: rising `alphas` or falling
    `epsilons`. With a ledger, a count above n counts as n, as in `GeometricMechanism`.

    Raises:
        InvalidInputError: if levels are missing, out of order or outside (0, 1).

    >>> answer = release_levels(40, 100, epsilons=[2, 1, 0.5])
    >>> len(answer.values), float(answer.dp_epsilon)
    (3, 2.0)

    Theorem: docs/theory/several-levels.md
    """
    levels = _parse_levels(alphas, epsilons)
    first = GeometricMechanism(n, alpha=levels[0][0])
    ratios, cost = tuple(ratio for ratio, _ in levels), levels[0][1]
    assert cost is not None  # noqa: S101  (α = 0 was refused)

    def draw() -> LevelledCount:
        noisy = [first.release(value, unbounded=True)]
        for before, after in pairwise(ratios):
            noisy.append(noisy[-1] + draw_step(before, after))
        return LevelledCount(first.n, ratios, tuple(noisy), cost)

    value = parse_private_count(count, first.n, ledger)
    for ratio in ratios:
        TwoSidedGeometric.from_alpha(ratio)  # rejects a ratio too near 1 before anything is debited

    def record() -> dict[str, Any]:
        return {
            "mechanism": "geometric at several levels",
            "n": first.n,
            "alphas": [str(ratio) for ratio in ratios],
            "dp_epsilon": str(cost),
        }

    payer = as_payer(ledger, dataset, key, analyst)
    return pay_and_store(payer, record, draw, LevelledCount.to_json, LevelledCount.from_json)


def nothing_added(before: Fraction, after: Fraction) -> Fraction:
    """Return ρ, the probability that the step from ratio `before` to `after` adds no noise.

    >>> nothing_added(Fraction(1, 4), Fraction(1, 2))
    Fraction(2, 9)
    """
    return before * (1 - after) ** 2 / (after * (1 - before) ** 2)


def draw_step(before: Fraction, after: Fraction) -> int:
    """Draw the noise that turns `before`-geometric noise into `after`-geometric noise."""
    stay = nothing_added(before, after)
    if draw_index([stay, 1 - stay]) == 0:
        return 0
    return TwoSidedGeometric.from_alpha(after).draw_one()


def _parse_levels(
    alphas: Sequence[Number] | None, epsilons: Sequence[Number] | None
) -> list[tuple[Fraction, Fraction | None]]:
    if (alphas is None) == (epsilons is None):
        raise InvalidInputError("Give the levels once: alphas=[…] or epsilons=[…].")
    if alphas is not None:
        levels = [parse_level(alpha, None) for alpha in listed(alphas, "alphas")]
    else:
        levels = [parse_level(None, epsilon) for epsilon in listed(epsilons, "epsilons")]
    if not levels or any(not 0 < ratio < 1 for ratio, _ in levels):
        raise InvalidInputError("Give at least one level, each with 0 < alpha < 1.")
    if any(before > after for (before, _), (after, _) in pairwise(levels)):
        raise InvalidInputError(
            "List the levels from the least private to the most private: rising alphas or "
            "falling epsilons."
        )
    return levels
