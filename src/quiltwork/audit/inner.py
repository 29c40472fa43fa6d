"""Beliefs as the audit follows them: a chain of inner states, a matrix per step, what each shows.

A plain chain shows its own states and has one matrix; a cyclic chain has one per phase; memory,
durations and hidden states show a function of the inner state. Secrets and queries are about shown
states: the law given that a node shows a is that of the inner states which show a, mixed by how
likely each is, so nothing but a sum is added to the dynamic program.

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

Followed: TypeAlias = MarkovChain | CyclicChain | DatedChain | HiddenChain


@dataclass(frozen=True, eq=False)
class InnerChain:
    """A chain of inner states.

    Attributes:
        matrices: of shape (period, n, n); the step that arrives at node t uses (t − 2) mod period.
        start: the law of the first inner state …
        begins: … and which ones it can be.
        shown: the position of the state that each inner state shows.
        states: the labels of the states that are shown.
        order: which matrix leaves a node, where that follows a clock; else they repeat.
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
        """After how many steps the matrices repeat."""
        return len(self.matrices)

    @property
    def noun(self) -> str:
        """What its states are called."""
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
        """Which matrix leads to node t."""
        return (t - 2) % self.period if self.order is None else self.order(t - 1)

    def summed(self, rows: Any, add: Callable[[Any], Any]) -> Any:
        """Gather rows per inner state into rows per shown state by `add`; nothing adds to none."""
        if self.plain:
            return rows
        return np.array([add(rows[self.shown == state]) for state in range(len(self.states))])


def inner_chain(belief: Followed) -> InnerChain:
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


def followed(beliefs: Any) -> tuple[Followed, ...]:
    """Read beliefs whose laws can be followed: chains of every kind with a known start."""
    return _known_starts(beliefs, (MarkovChain, CyclicChain, DatedChain, HiddenChain), "chains")


def single_chains(beliefs: Any) -> tuple[MarkovChain, ...]:
    """Read beliefs that are plain chains with a known start."""
    return _known_starts(beliefs, (MarkovChain,), "MarkovChains")


def _known_starts(beliefs: Any, kinds: tuple[type, ...], names: str) -> tuple[Any, ...]:
    members = as_beliefs(beliefs)
    for position, belief in enumerate(members, start=1):
        if not isinstance(belief, kinds):
            raise UnsupportedError(
                f"Belief {position} is a {type(belief).__name__}; this is computed exactly, which "
                f"is possible for one chain or a finite list of {names}. Use calibrate or "
                "influence_curve for it."
            )
        initial = getattr(belief, "initial", None)
        if isinstance(initial, str) and initial == "any":
            raise UnsupportedError(
                f"Belief {position} has initial='any', every start at once; the exact leakage "
                "needs one. Give initial= a distribution or 'stationary', or list several chains."
            )
    return members
