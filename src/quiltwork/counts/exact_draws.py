"""Exact sampling from a mechanism whose probabilities are fractions.

Theorem: docs/theory/exact-sampling.md
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from hashlib import sha256
from itertools import accumulate
from typing import Any

from quiltwork.budget.payment import as_payer, pay_and_store
from quiltwork.counts.contributors import parse_private_count
from quiltwork.noise.bits import WORD_BITS, word
from quiltwork.noise.enclosure import of_fraction
from quiltwork.noise.finite_law import SamplingTable, Thresholds
from quiltwork.results import ResultBase


def draw_index(probabilities: Sequence[Fraction]) -> int:
    """Draw an index with exactly these probabilities, which must add up to 1.

    >>> draw_index([Fraction(0), Fraction(1), Fraction(0)])
    1
    """
    sums = [min(total, Fraction(1)) for total in accumulate(probabilities)][:-1]
    # Sums of 0 or 1 separate nothing: such an outcome is impossible, or certain.
    inside = [j for j, total in enumerate(sums) if 0 < total < 1]
    if not inside:
        return next(j for j, probability in enumerate(probabilities) if probability > 0)
    edges = sorted({sums[j] for j in inside})
    thresholds = Thresholds(
        len(edges), lambda j, bits: of_fraction(edges[j], bits), edges.__getitem__
    )
    outcome = SamplingTable(thresholds, WORD_BITS).outcome(word(), word)
    below = edges[outcome - 1] if outcome else Fraction(0)
    return next(j for j, total in enumerate([*sums, Fraction(1)]) if total > below)


class ExactMechanism(ResultBase):
    """A mechanism for counts 0..n given by `exact`, a matrix with one row per count."""

    exact: list[list[Fraction]]

    @property
    def n(self) -> int:
        """The largest count."""
        return len(self.exact) - 1

    def release(
        self,
        count: int,
        ledger: Any = None,
        dataset: str | None = None,
        key: str | None = None,
        analyst: str | None = None,
    ) -> int:
        """Draw one private answer in 0..n; with a ledger it is debited before the draw."""
        value = parse_private_count(count, self.n, ledger)
        self._refuse()
        draw = partial(draw_index, self.exact[value])
        payer = as_payer(ledger, dataset, key, analyst)
        return pay_and_store(payer, self._debit, draw, str, int)

    def _table(self) -> str:
        """A digest of the matrix, so that an idempotency key is bound to this mechanism."""
        return sha256(repr(self.exact).encode()).hexdigest()

    def _refuse(self) -> None:
        """Raise if the mechanism is not private."""

    def _debit(self) -> Any:
        """Return the debit for the ledger."""
        raise NotImplementedError
