"""A chain as the f-sweep uses it: the transition kernels to either side of a time point.

To the right a kernel is the transition matrix, to the left P(X_t | X_{t+1}). From a given start the
laws of the first nodes are computed one by one, until they are close to their limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quiltwork.beliefs import ChainBox, CyclicChain, HiddenChain, MarkovChain
from quiltwork.beliefs.stationary import relative_error
from quiltwork.errors import QuiltworkError
from quiltwork.influence.diameters import diameters
from quiltwork.influence.kernel import product
from quiltwork.influence.ratios import product_margin
from quiltwork.influence.tradeoffs.curves import FloatArray

MOST_STATES = 16
"""Above this, the curves of all pairs of states take too long."""
_FOLLOWED = 2048
"""Laws of at most this many nodes are computed one by one."""
_CLOSE = 1e-9
_STEPS = 16
FORGETS_NOTHING = 1e4
"""Chains that take this many steps to forget count as chains that never do."""


@dataclass(frozen=True, eq=False)
class ChainKernels:
    """Kernels by phase; node t has phase (t − 1) mod period.

    Attributes:
        right: (period, k, k) rows P(X_{t+1} | X_t = x); None if only the spread is known.
        left: (period, k, k) rows P(X_t | X_{t+1} = x) of late nodes t, by the phase of t; None if
            only the spread is known.
        first: (n, k, k) the same for nodes 1..n, whose laws are computed one by one.
        possible: (n, k) the possible states of nodes 1..n.
        late: (period, k) the possible states of later nodes.
        margin: the relative error of entries of kernels to the left.
        apart: (k, k) the pairs of states that are distinguishable; only these are secret.
        diameter: of the cross-ratios of one matrix, for any start, matrices or known rows.
    """

    right: FloatArray | None
    left: FloatArray | None
    first: FloatArray
    possible: NDArray[np.uint8]
    late: NDArray[np.uint8]
    margin: float
    apart: NDArray[np.uint8]
    diameter: float

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.apart)

    @property
    def period(self) -> int:
        """The number of nodes after which the kernels repeat."""
        return len(self.late)

    @property
    def independent(self) -> bool:
        """Whether time points are independent."""
        return self.right is not None and bool((self.right == self.right[:, :1]).all())

    @property
    def reversible(self) -> bool:
        """Whether bounds to the left are bounds to the right: late kernels agree up to
        the margin.
        """
        if self.right is None or self.left is None:
            return self.right is None and self.left is None
        difference = np.abs(self.right - self.left)
        return self.period == 1 and bool((difference <= self.margin * (self.left / 2)).all())

    @property
    def has_no_secret(self) -> bool:
        """Whether no node has two possible, distinguishable states."""
        possible = np.concatenate([self.possible, self.late])
        return not (possible[:, :, None] & possible[:, None] & self.apart).any()

    def left_from(self, node: int) -> FloatArray | None:
        """The kernel from node + 1 back to `node`."""
        if node <= len(self.first):
            return np.asarray(self.first[node - 1])
        return None if self.left is None else np.asarray(self.left[(node - 1) % self.period])

    def possible_at(self, node: int) -> NDArray[np.uint8]:
        """The possible states of a node."""
        if node <= len(self.possible):
            return np.asarray(self.possible[node - 1])
        return np.asarray(self.late[(node - 1) % self.period])

    @property
    def mixing_steps(self) -> float:
        """About how many steps it takes to forget: 1/(1 − τ), with τ the total variation left by
        one step.
        """
        if self.right is None:
            contraction = math.tanh(self.diameter / 4)
        else:
            power: FloatArray = np.eye(self.size)
            steps = self.period * -(-_STEPS // self.period)
            for step in range(steps):
                power = product(power, self.right[step % self.period])
            distance = np.abs(power[:, None] - power[None]).sum(axis=2).max() / 2
            contraction = max(float(distance), 0.0) ** (1 / steps)
        return 1 / max(1 - contraction, 1 / FORGETS_NOTHING)


@singledispatch
def kernels_of(belief: Any, length: int) -> ChainKernels | None:
    """The kernels of a belief about a series of this length; None if the f-sweep does not support
    it.
    """
    return None


@kernels_of.register
def _(belief: MarkovChain, length: int) -> ChainKernels:
    return _of_matrices(belief, np.asarray(belief.transition)[np.newaxis], length)


@kernels_of.register
def _(belief: HiddenChain, length: int) -> ChainKernels | None:
    inner = kernels_of(belief.inner, length)
    if inner is None:
        return None
    shown = np.asarray(belief.shown)
    apart = np.not_equal.outer(shown, shown).astype(np.uint8)
    return ChainKernels(
        *(inner.right, inner.left, inner.first, inner.possible, inner.late, inner.margin),
        *(apart, math.inf),
    )


@kernels_of.register
def _(belief: CyclicChain, length: int) -> ChainKernels:
    return _of_matrices(belief, np.asarray(belief.matrices), length)


@kernels_of.register
def _(belief: ChainBox, length: int) -> ChainKernels:
    size = belief.size
    nothing = np.empty((0, size, size))
    every = np.ones((1, size), dtype=np.uint8)
    return ChainKernels(
        *(None, None, nothing, every[:0], every, 0.0, _all_pairs(size), _one_step(belief))
    )


def _all_pairs(size: int) -> NDArray[np.uint8]:
    """All pairs of different states."""
    return (1 - np.eye(size)).astype(np.uint8)


def _one_step(belief: Any) -> float:
    """The diameter of one matrix."""
    return next((diameter for steps, diameter in diameters(belief) if steps == 1), math.inf)


def _of_matrices(
    belief: MarkovChain | CyclicChain, matrices: FloatArray, length: int
) -> ChainKernels:
    """The kernels of a chain given by the matrices of a period."""
    size, period = matrices.shape[1], len(matrices)
    apart, no_kernels = _all_pairs(size), np.empty((0, size, size))
    all_states = np.ones((period, size), dtype=np.uint8)
    from_any = ChainKernels(
        *(matrices, None, no_kernels, all_states[:0], all_states, 0.0, apart, _one_step(belief))
    )
    if isinstance(belief.initial, str) and belief.initial == "any":
        return from_any
    settled = _settled_laws(belief)
    turn_error = 0.0 if period == 1 else (2 * size + 1) * float(product_margin(period, size))
    error = 4 * relative_error(size) + 2 * turn_error
    if isinstance(belief.initial, str):
        assert settled is not None  # noqa: S101  (a stationary start has its laws)
        left: FloatArray | None = _reversed(settled, matrices)
        late = (settled > 0).astype(np.uint8)
        return ChainKernels(matrices, left, no_kernels, late[:0], late, error, apart, math.inf)
    first, possible, slack = _followed(belief, matrices, settled, length)
    if slack is None:
        return from_any
    late_laws = settled if settled is not None and len(first) < length - 1 else None
    left = None if late_laws is None else _reversed(late_laws, matrices)
    late = (
        possible[-1:].repeat(period, axis=0)
        if late_laws is None
        else (late_laws > 0).astype(np.uint8)
    )
    # each kernel entry is a ratio of two laws
    margin = error + 2 * slack + 2 * float(product_margin(len(first) + 1, size))
    return ChainKernels(matrices, left, first, possible, late, margin, apart, math.inf)


def _settled_laws(belief: MarkovChain | CyclicChain) -> FloatArray | None:
    """(period, k) the limits of the laws; None if there are none."""
    try:
        if isinstance(belief, MarkovChain):
            return np.asarray(belief.stationary)[np.newaxis]
        return np.asarray(belief.laws)
    except QuiltworkError:
        return None


def _followed(
    belief: MarkovChain | CyclicChain,
    matrices: FloatArray,
    settled: FloatArray | None,
    length: int,
) -> tuple[FloatArray, NDArray[np.uint8], float | None]:
    """Kernels to the left of the first nodes, their states, and the distance of the last law from
    its limit; None for the distance after too many nodes.
    """
    kernels: list[FloatArray] = []
    possible: list[NDArray[np.bool_]] = []
    for node, (law, states) in enumerate(_laws(belief, matrices), 1):
        possible.append(states)
        if node == length:
            return _stack(kernels, len(law)), np.array(possible, dtype=np.uint8), 0.0
        if settled is not None:
            limit = settled[(node - 1) % len(matrices)]
            if bool((states == (limit > 0)).all()):
                distance = float(np.abs(np.log(law[states] / limit[states])).max())
                if distance <= _CLOSE:
                    early = np.array(possible[:-1], dtype=np.uint8).reshape(-1, len(law))
                    return _stack(kernels, len(law)), early, distance
        if node > _FOLLOWED:
            break
        kernels.append(_reversed_once(law, matrices[(node - 1) % len(matrices)]))
    return _stack([], matrices.shape[1]), np.array([], dtype=np.uint8), None


def _stack(kernels: list[FloatArray], size: int) -> FloatArray:
    return np.array(kernels).reshape(-1, size, size)


def _laws(
    belief: MarkovChain | CyclicChain, matrices: FloatArray
) -> Iterator[tuple[FloatArray, NDArray[np.bool_]]]:
    """Yield the laws and possible states of the nodes."""
    law, states = np.asarray(belief.start), np.asarray(belief.support(1))
    node = 0
    while True:
        yield law, states
        step = matrices[node % len(matrices)]
        law, states = product(law, step), (states[:, None] & (step > 0)).any(axis=0)
        # possible states keep a positive mass, also where floats underflow
        law = np.where(states, np.maximum(law, 1e-300), 0.0)
        node += 1


def _reversed(laws: FloatArray, matrices: FloatArray) -> FloatArray:
    return np.array([_reversed_once(law, step) for law, step in zip(laws, matrices, strict=True)])


def _reversed_once(law: FloatArray, step: FloatArray) -> FloatArray:
    """P(X_t = z | X_{t+1} = x); rows of states that cannot follow are 0 and never read."""
    joint = (law[:, None] * step).T
    total = joint.sum(axis=1, keepdims=True)
    rows: FloatArray = np.zeros_like(joint)
    np.divide(joint, total, out=rows, where=total > 0)
    return rows
