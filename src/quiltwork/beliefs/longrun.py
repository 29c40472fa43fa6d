"""What the transition matrix alone decides: classes, period, stationary distribution, gaps.

Each property is computed on first use, kept, and defined for reducible, periodic and absorbing
matrices too.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from quiltwork.beliefs import stationary as _stationary
from quiltwork.beliefs import structure
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray, frozen
from quiltwork.beliefs.states import Label, show_labels
from quiltwork.errors import InvalidInputError, UnsupportedError


class LongRun:
    """The properties of a chain that do not depend on its start."""

    transition: FloatArray
    states: tuple[Label, ...]

    @property
    def size(self) -> int:
        """The number of states k."""
        return len(self.transition)

    @cached_property
    def possible(self) -> BoolArray:
        """Which transitions have positive probability."""
        return frozen(self.transition > 0)

    @cached_property
    def recurrent_classes(self) -> tuple[IntArray, ...]:
        """The closed communicating classes, as sorted state indices. O(k³ log k)."""
        return tuple(frozen(found) for found in structure.recurrent_classes(self.possible))

    @cached_property
    def is_irreducible(self) -> bool:
        """Whether every state can be reached from every other."""
        return len(self.recurrent_classes[0]) == self.size

    @cached_property
    def period(self) -> int:
        """The period of the recurrent part: the least common multiple over its classes.

        1 for absorbing chains; transient states do not matter.
        """
        blocks = (self.possible[np.ix_(found, found)] for found in self.recurrent_classes)
        return int(np.lcm.reduce([structure.class_period(block) for block in blocks]))

    @property
    def is_aperiodic(self) -> bool:
        """Whether `period` is 1."""
        return self.period == 1

    @property
    def absorbing_states(self) -> tuple[Label, ...]:
        """The labels of the states that are never left."""
        stays = self.possible.sum(axis=1) == 1
        return tuple(self.states[x] for x in np.flatnonzero(stays & self.possible.diagonal()))

    @cached_property
    def recurrent_class(self) -> IntArray:
        """The only closed class, as sorted state indices.

        Raises:
            InvalidInputError: if there are several.
        """
        classes = self.recurrent_classes
        if len(classes) > 1:
            groups = " and ".join(
                "{" + show_labels(tuple(self.states[x] for x in found)) + "}"
                for found in classes[:2]
            )
            raise InvalidInputError(
                f"This chain has {len(classes)} recurrent classes (it never leaves {groups}), so "
                "its stationary distribution is not unique; give initial= a distribution or 'any'."
            )
        return classes[0]

    @cached_property
    def stationary(self) -> FloatArray:
        """The distribution π = πP; 0 on transient states. O(k³), by GTH elimination.

        A periodic chain has one too, although its marginals need not approach it.

        Theorem: docs/theory/stationary-distribution.md

        Raises:
            InvalidInputError: if there are several recurrent classes, hence many such π.
        """
        found = self.recurrent_class
        result = np.zeros(self.size)
        block = self.transition[np.ix_(found, found)]
        result[found] = _stationary.irreducible_stationary(block)
        return frozen(result)

    @cached_property
    def second_singular_value(self) -> float:
        """An upper bound on σ₂ of D^½·P·D^−½, D = diag(π); 1.0 for reducible chains. O(k³).

        ‖P^n f‖ ≤ σ₂^n·‖f‖ in L²(π) for every f of mean 0, reversible or not.

        Theorem: docs/theory/stationary-distribution.md
        """
        if not self.is_irreducible:
            return 1.0
        return _stationary.second_singular_value(self.transition, self.stationary)

    @property
    def eigengap(self) -> float:
        """The eigen-gap of P·P*, rounded down; 0.0 for reducible and for periodic chains.

        Exactly one eigenvalue 1 is dropped, so a repeated eigenvalue 1 gives 0.

        Theorem: docs/theory/stationary-distribution.md
        """
        sigma = self.second_singular_value
        return _rounded_down((1 - sigma) * (1 + sigma))

    @property
    def reversible_eigengap(self) -> float:
        """2·(1 − |λ|), |λ| the second largest modulus of an eigenvalue of P, rounded down.

        Theorem: docs/theory/stationary-distribution.md

        Raises:
            UnsupportedError: if the chain is not reversible; `eigengap` holds for every chain.
        """
        if not self.is_reversible:
            raise UnsupportedError(
                "This chain is not reversible, so the eigenvalues of P alone do not bound how "
                "fast it forgets; use eigengap, the gap of P·P*."
            )
        return _rounded_down(2 * (1 - self.second_singular_value))

    @cached_property
    def is_reversible(self) -> bool:
        """Whether π(x)·P(x, y) = π(y)·P(y, x) up to a relative 1e-9; False if reducible."""
        if not self.is_irreducible:
            return False
        flow = self.stationary[:, np.newaxis] * self.transition
        return bool(np.allclose(flow, flow.T, rtol=1e-9, atol=0.0))


def _rounded_down(gap: float) -> float:
    """A gap two floats lower, and never below 0."""
    return max(0.0, math.nextafter(math.nextafter(gap, -1), -1))
