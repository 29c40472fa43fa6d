"""Powers of a transition matrix and their log-ratios, at the distances that are asked for.

R_d[x, x'] = max_z log P^d(x, z)/P^d(x', z) is what X_{i+d} betrays about X_i, and
G_d[x, x'] = max_z log P^d(z, x)/P^d(z, x') the part of X_{i−d} that does not depend on the node.
O(k³ log d) for a distance, whatever the others.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.structure import boolean_product
from quiltwork.caching import cached_by_owner
from quiltwork.influence.kernel import product
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.ratios import BoolArray, equal_rows, row_ratios, with_margin

_KEPT_ENTRIES = 1 << 25
_BATCH_ENTRIES = 1 << 22

Power = tuple[FloatArray, BoolArray | None]


class Powers:
    """Log-ratios of P^d for any d; what was computed is kept, up to 256 MB. Safe in threads."""

    def __init__(self, transition: FloatArray) -> None:
        self.size = len(transition)
        self._same = equal_rows(transition)
        possible = transition > 0
        self._squares: list[Power] = [(transition, None if possible.all() else possible)]
        self._kept: dict[tuple[int, bytes], FloatArray] = {}
        self._lock = Lock()

    def forward(self, distances: IntArray) -> FloatArray:
        """Return R_d for each distance, rounded up; exactly 0 between equal rows of P."""

        def ratios(values: FloatArray, positive: BoolArray | None, steps: IntArray) -> FloatArray:
            found = with_margin(row_ratios(values, positive), steps, self.size)
            found[:, self._same] = 0.0
            return found

        return self._look_up(distances, b"", ratios)

    def backward(self, distances: IntArray, support: BoolArray) -> FloatArray:
        """Return G_d over z in `support` for each distance, rounded up."""

        def ratios(values: FloatArray, positive: BoolArray | None, steps: IntArray) -> FloatArray:
            columns = values[:, support].transpose(0, 2, 1)
            known = None if positive is None else positive[:, support].transpose(0, 2, 1)
            return with_margin(row_ratios(columns, known), steps, self.size)

        return self._look_up(distances, support.tobytes(), ratios)

    def _look_up(
        self,
        distances: IntArray,
        kind: bytes,
        ratios: Callable[[FloatArray, BoolArray | None, IntArray], FloatArray],
    ) -> FloatArray:
        if not len(distances):
            return np.empty((0, self.size, self.size))
        with self._lock:
            missing = sorted({d for d in distances.tolist() if (d, kind) not in self._kept})
            if (len(self._kept) + len(missing)) * self.size**2 > _KEPT_ENTRIES:
                self._kept.clear()
                missing = sorted(set(distances.tolist()))
            step = max(1, _BATCH_ENTRIES // self.size**2)
            for first in range(0, len(missing), step):
                batch = missing[first : first + step]
                steps = np.array(batch)[:, np.newaxis, np.newaxis]
                found = ratios(*self._stacked(batch), steps)
                self._kept.update(((d, kind), found[i]) for i, d in enumerate(batch))
            return np.stack([self._kept[d, kind] for d in distances.tolist()])

    def _stacked(self, distances: list[int]) -> Power:
        powers = [self._power(d) for d in distances]
        values = np.stack([value for value, _ in powers])
        supports = [support for _, support in powers if support is not None]
        return values, np.stack(supports) if supports else None

    def _power(self, exponent: int) -> Power:
        """P^exponent by squaring; the squares are kept, and the result is always the same."""
        while len(self._squares) < exponent.bit_length():
            self._squares.append(_product(self._squares[-1], self._squares[-1]))
        bits = [j for j in range(exponent.bit_length()) if exponent >> j & 1]
        result = self._squares[bits[0]]
        for j in bits[1:]:
            result = _product(result, self._squares[j])
        return result


def _product(one: Power, other: Power) -> Power:
    (value, support), (more, further) = one, other
    if support is None or further is None:
        return product(value, more), None
    return product(value, more), boolean_product(support, further)


@cached_by_owner
def powers_of(chain: MarkovChain) -> Powers:
    """Return the powers of a chain's matrix, kept as long as the chain."""
    return Powers(chain.transition)
