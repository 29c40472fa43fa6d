"""Theorem 6.1: among mechanisms with answers 0..n, only G serves every consumer, up to renaming.

The witness is the consumer with a uniform prior and binary loss. With v the column weights of G,
Σ_i v[i]·α^|i−r| = 1 for every r, so any α-private x has Σ_r x[r][r] ≤ Σ v, with equality only for
G (α < 1). Cost: O(n²) fractions.

Theorem: geometric-mechanism, *Uniqueness*.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.levels import read_alpha
from quiltwork.counts.optimality.derivation import best_remap
from quiltwork.counts.optimality.exact_matrix import read_matrix
from quiltwork.errors import InvalidInputError
from quiltwork.exact import Number


@dataclass(frozen=True)
class Comparison:
    """How a mechanism x with answers 0..n compares with G.

    Attributes:
        permutation: p with p∘x = G, as the answer that each of x's answers stands for; None if
            there is none.
        loss: what the witness consumer loses with its best remap of x.
        best: what it loses with G, the least possible.
    """

    permutation: tuple[int, ...] | None
    loss: Fraction
    best: Fraction

    @property
    def universal(self) -> bool:
        """Whether x can serve every consumer optimally."""
        return self.permutation is not None


def compare_with_geometric(matrix: Any, alpha: Number) -> Comparison:
    """Say whether x is G up to a permutation of its answers; if not, the witness loses by it.

    >>> g = GeometricMechanism(2, alpha=0.5).matrix(exact=True)
    >>> compare_with_geometric(g[:, [1, 0, 2]], 0.5).permutation
    (1, 0, 2)

    Theorem: geometric-mechanism
    """
    x, level = read_matrix(matrix), read_alpha(alpha)
    if level == 1:
        raise InvalidInputError("At alpha = 1 every mechanism is as good as any: take alpha < 1.")
    if len(x[0]) != len(x):
        raise InvalidInputError("The mechanism must answer in 0..n: give a square matrix.")
    n = len(x) - 1
    columns = list(
        zip(*GeometricMechanism(n, alpha=level).matrix(exact=True).tolist(), strict=True)
    )
    own = list(zip(*x, strict=True))
    witness = Consumer("uniform", "binary")
    _, loss = best_remap(x, witness)
    same = sorted(own) == sorted(columns)
    permutation = tuple(columns.index(column) for column in own) if same else None
    return Comparison(permutation, loss, 1 - least_error_weight(n, level) / (n + 1))


def least_error_weight(n: int, alpha: Fraction) -> Fraction:
    """Return Σ v, the largest trace of an α-private mechanism with answers 0..n."""
    return sum(GeometricMechanism(n, alpha=alpha).column_weights(exact=True).tolist(), Fraction(0))
