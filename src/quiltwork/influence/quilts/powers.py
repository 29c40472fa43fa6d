"""Powers of a transition matrix and their log-ratios, at the distances in use.

R_d[x, x'] = max_z log P^d(x, z)/P^d(x', z) is the influence of X_{i+d} on X_i, and
G_d[x, x'] = max_z log P^d(z, x)/P^d(z, x') the part of that of X_{i−d} that does not depend on the
node. O(k³ log d) per distance.
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

_CACHED_ENTRIES = 1 << 25
_BATCH_ENTRIES = 1 << 22

Power = tuple[FloatArray, BoolArray | None]


class Powers:
    """Log-ratios of P^d for any d, with a cache of up to 256 MB. Thread-safe."""

    def __init__(self, transition: FloatArray) -> None:
        self.size = len(transition)
        self._equal_rows = equal_rows(transition)
        possible = transition > 0
        self._squares: list[Power] = [(transition, None if possible.all() else possible)]
        self._cache: dict[tuple[int, bytes], FloatArray] = {}
        self._lock = Lock()

    def forward(self, distances: IntArray) -> FloatArray:
        """Return R_d for each distance, rounded up; exactly 0 between equal rows of P."""

        def ratios(values: FloatArray, positive: BoolArray | None, steps: IntArray) -> FloatArray:
            bounds = with_margin(row_ratios(values, positive), steps, self.size)
            bounds[:, self._equal_rows] = 0.0
            return bounds

        return self._look_up(distances, b"", ratios)

    def backward(self, distances: IntArray, support: BoolArray) -> FloatArray:
        """Return G_d over z in `support` for each distance, rounded up."""

        def ratios(values: FloatArray, positive: BoolArray | None, steps: IntArray) -> FloatArray:
            columns = values[:, support].transpose(0, 2, 1)
            possible = None if positive is None else positive[:, support].transpose(0, 2, 1)
            return with_margin(row_ratios(columns, possible), steps, self.size)

        return self._look_up(distances, support.tobytes(), ratios)

    def _look_up(
        self,
        distances: IntArray,
        kind: bytes,
        ratios: Callable[[FloatArray, BoolArray | None, IntArray], FloatArray],
    ) -> FloatArray:
        """Return cached log-ratios, and compute missing ones in batches."""
        if not len(distances):
            return np.empty((0, self.size, self.size))
        with self._lock:
            missing = sorted({d for d in distances.tolist() if (d, kind) not in self._cache})
            if (len(self._cache) + len(missing)) * self.size**2 > _CACHED_ENTRIES:
                # dropping everything is rare, and simpler than an order of use
                self._cache.clear()
                missing = sorted(set(distances.tolist()))
            step = max(1, _BATCH_ENTRIES // self.size**2)
            for first in range(0, len(missing), step):
                batch = missing[first : first + step]
                steps = np.array(batch)[:, np.newaxis, np.newaxis]
                computed = ratios(*self._stacked(batch), steps)
                self._cache.update(((d, kind), computed[i]) for i, d in enumerate(batch))
            return np.stack([self._cache[d, kind] for d in distances.tolist()])

    def _stacked(self, distances: list[int]) -> Power:
        """The powers of these distances as one array, with their supports."""
        powers = [self._power(d) for d in distances]
        values = np.stack([value for value, _ in powers])
        supports = [support for _, support in powers if support is not None]
        return values, np.stack(supports) if supports else None

    def _power(self, exponent: int) -> Power:
        """P^exponent from cached squares, always by the same products."""
        # always the same products, whatever was asked before: equal questions get equal digits
        while len(self._squares) < exponent.bit_length():
            self._squares.append(_product(self._squares[-1], self._squares[-1]))
        bits = [j for j in range(exponent.bit_length()) if exponent >> j & 1]
        result = self._squares[bits[0]]
        for j in bits[1:]:
            result = _product(result, self._squares[j])
        return result


def _product(left: Power, right: Power) -> Power:
    """The product of two powers with its support."""
    (left_value, left_support), (right_value, right_support) = left, right
    if left_support is None or right_support is None:
        return product(left_value, right_value), None
    return product(left_value, right_value), boolean_product(left_support, right_support)


@cached_by_owner
def powers_of(chain: MarkovChain) -> Powers:
    """Return the powers of a chain's matrix, cached as long as the chain exists."""
    return Powers(chain.transition)
