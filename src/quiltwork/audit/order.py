"""An order of the states in which every answer of a release rises or falls.

Under such an order the extreme outputs tell most if the chain, tilted by what it adds to the
answers, never moves down when it starts higher: `Order.rises`. Chains without negative 2×2 minors
(totally positive of order 2; two states with P₀₀ ≥ P₁₀) do so whatever the noise.

Theorem: exact-leakage
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quiltwork.audit.laws import dyadic
from quiltwork.beliefs.matrices import FloatArray, IntArray

_MOST_STATES = 16
_DIGITS = 12
_CHUNK = 1 << 14
_LOWEST = -150.0
_LEAST_LOSS = -1e-150


@dataclass(frozen=True, eq=False)
class Order:
    """The states from the lowest to the highest.

    Attributes:
        states: their positions.
        signs: per answer 1 if it rises with the state, −1 if it falls.
        minors: P(x,z)·P(x',z') − P(x,z')·P(x',z) for x < x' (rows) and z < z' (columns).
    """

    states: IntArray
    signs: tuple[int, ...]
    minors: FloatArray

    @property
    def always(self) -> bool:
        """Whether no minor is negative, so that every tilt moves up."""
        return not (self.minors < 0).any()

    def rises(self, logs: FloatArray, tolerance: float, backwards: bool = False) -> bool:
        """Whether P(x, ·) tilted by each vector moves up with x: in stochastic order.

        Σ minor·y(z)·y(z') over z ≤ j < z' must not be negative, for all j and x < x'.

        Args:
            logs: the logarithms of the vectors y, one per row, in the chain's own order of states.
            tolerance: the relative error of every product y(z)·y(z'). Vectors so uneven that
                products could underflow do not rise.
            backwards: for the chain run backwards, P(·, x) instead of P(x, ·).

        Cost: O(k⁴) per vector and j.
        """
        minors = self.minors.T if backwards else self.minors
        doubtful = minors[(minors < 0).any(axis=1)]
        gains, losses = np.maximum(doubtful, 0.0), np.maximum(-doubtful, 0.0)
        low, high = np.triu_indices(len(self.states), 1)
        for first in range(0, len(logs), _CHUNK):
            part = logs[first : first + _CHUNK, self.states]
            part = part - part.max(axis=1, keepdims=True)
            if part[part > -np.inf].min() < _LOWEST:
                return False
            y = np.exp(part)
            products = y[:, low] * y[:, high]
            for j in range(len(self.states) - 1):
                across = (low <= j) & (j < high)
                gained = products[:, across] @ gains[:, across].T
                lost = products[:, across] @ losses[:, across].T
                if (lost * (1 + tolerance) > gained * (1 - tolerance)).any():
                    return False
        return True


def find_order(transition: FloatArray, answers: Sequence[IntArray]) -> Order | None:
    """Return the order in which answers and chain can rise together; None if there is none.

    If the chain keeps the order, then with an answer v also P·v, P²·v, … rise, so they sort the
    states; what is still tied then stays as it is.

    Args:
        transition: the matrix P.
        answers: per answer, what each state adds to it.

    >>> find_order(np.array([[0.9, 0.1], [0.4, 0.6]]), [np.array([1, 0])]).states.tolist()
    [1, 0]
    """
    k = len(transition)
    varied = [v for v in answers if np.ptp(v) > 0]
    if not varied:
        return Order(np.arange(k), (1,) * len(answers), np.zeros((0, 0)))
    if k > _MOST_STATES:
        return None
    keys = [varied[0] / np.abs(varied[0]).max()]
    for _ in range(k - 1):
        keys.append(transition @ keys[-1])
    states = np.lexsort([np.round(key, _DIGITS) for key in reversed(keys)])
    signs = [_sign(v[states]) for v in answers]
    if 0 in signs:
        return None
    return Order(states, tuple(signs), _minors(transition[np.ix_(states, states)]))


def _sign(values: IntArray) -> int:
    steps = np.diff(values)
    return 1 if (steps >= 0).all() else -1 if (steps <= 0).all() else 0


def _minors(matrix: FloatArray) -> FloatArray:
    """All 2×2 minors, their signs exact: floats are dyadic, so they are computed in integers."""
    whole = dyadic(matrix)
    low, high = np.triu_indices(len(matrix), 1)
    main = whole[np.ix_(low, low)] * whole[np.ix_(high, high)]
    other = whole[np.ix_(low, high)] * whole[np.ix_(high, low)]
    largest = int(whole.max()) ** 2
    return np.array(
        [[_share(int(m), largest) for m in row] for row in main - other], dtype=np.float64
    ).reshape(main.shape)


def _share(minor: int, largest: int) -> float:
    """A minor as a float; a negative one is never lost to underflow."""
    return min(minor / largest, _LEAST_LOSS) if minor < 0 else minor / largest
