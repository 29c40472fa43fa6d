"""`InnerChain`: the chains of all beliefs in one form, for exact laws.

It has inner states, a matrix per step, and the state that each inner state shows. A Markov chain
shows its own states and has one matrix; a cyclic chain has one per phase; memory, durations and
hidden states show a function of the inner state. Secrets and queries are about shown states: the
law given a shown state is a mixture of the laws given the inner states behind it, so the dynamic
program needs one more sum and nothing else.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from quiltwork.beliefs import CyclicChain, DatedChain, HiddenChain, Label, MarkovChain, as_beliefs
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray
from quiltwork.errors import UnsupportedError

TractableChain: TypeAlias = MarkovChain | CyclicChain | DatedChain | HiddenChain


@dataclass(frozen=True, eq=False)
class InnerChain:
    """A chain of inner states.

    Attributes:
        matrices: of shape (period, n, n); the step that arrives at node t uses (t − 2) mod period.
        start: the law of the first inner state.
        begins: which inner states the first can be.
        shown: the index of the state that each inner state shows.
        states: the labels of the shown states.
        order: the matrix index of the step that leaves a node, for series that follow a local
            clock; None where the matrices repeat.
    """

    matrices: FloatArray
    start: FloatArray
    begins: BoolArray
    shown: IntArray
    states: tuple[Label, ...]
    order: Callable[[int], int] | None = None

    @property
    def size(self) -> int:
        """The number of inner states n."""
        return len(self.start)

    @property
    def period(self) -> int:
        """The number of matrices."""
        return len(self.matrices)

    @property
    def noun(self) -> str:
        """The word for its states in messages."""
        return "states" if self.plain else "inner states"

    @cached_property
    def plain(self) -> bool:
        """Whether every inner state is the state it shows."""
        return bool(np.array_equal(self.shown, np.arange(len(self.states))))

    @cached_property
    def possible(self) -> BoolArray:
        """Which steps have positive probability, per matrix."""
        return np.asarray(self.matrices > 0)

    def phase(self, t: int) -> int:
        """Return the index of the matrix that leads to node t."""
        return (t - 2) % self.period if self.order is None else self.order(t - 1)

    def summed(self, rows: Any, add: Callable[[Any], Any]) -> Any:
        """Return rows per shown state: those of the inner states behind it, reduced by `add`."""
        if self.plain:
            return rows
        return np.array([add(rows[self.shown == state]) for state in range(len(self.states))])


def inner_chain(belief: TractableChain) -> InnerChain:
    """Return the inner chain of a belief with a known start."""
    states = belief.states
    if isinstance(belief, HiddenChain):
        inner, shown = belief.inner, np.asarray(belief.shown)
        return InnerChain(inner.transition[None], inner.start, inner.support(1), shown, states)
    own, order = np.arange(len(states)), None
    if isinstance(belief, DatedChain):
        order = belief.phase_of
    matrices = belief.transition[None] if isinstance(belief, MarkovChain) else belief.matrices
    return InnerChain(matrices, belief.start, belief.support(1), own, states, order)


def require_tractable(beliefs: Any) -> tuple[TractableChain, ...]:
    """Return beliefs with exact laws: chains of every kind with a known start.

    Raises:
        UnsupportedError: for other beliefs, and for initial="any".
    """
    return _known_starts(beliefs, (MarkovChain, CyclicChain, DatedChain, HiddenChain), "chains")


def require_markov_chains(beliefs: Any) -> tuple[MarkovChain, ...]:
    """Return beliefs that are MarkovChains with a known start."""
    return _known_starts(beliefs, (MarkovChain,), "MarkovChains")


def _known_starts(beliefs: Any, kinds: tuple[type, ...], names: str) -> tuple[Any, ...]:
    members = as_beliefs(beliefs)
    for position, belief in enumerate(members, start=1):
        if not isinstance(belief, kinds):
            raise UnsupportedError(
                f"Belief {position} is a {type(belief).__name__}. Exact laws need one chain or a "
                f"finite list of {names}; use calibrate or influence_curve for bounds."
            )
        initial = getattr(belief, "initial", None)
        if isinstance(initial, str) and initial == "any":
            raise UnsupportedError(
                f"Belief {position} has initial='any', every start at once, and exact laws need "
                "one. Give initial= a distribution or 'stationary', or list several chains."
            )
    return members
