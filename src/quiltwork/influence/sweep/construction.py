"""Which beliefs can be swept, and by which sides."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.beliefs import ChainBox, CyclicChain, DatedChain, HiddenChain, MarkovChain
from quiltwork.beliefs.secrets import SecretPairs, kept_apart
from quiltwork.errors import UnsupportedError
from quiltwork.influence.diameters import cycle_diameters, diameters
from quiltwork.influence.sweep.horizon import SHORT
from quiltwork.influence.sweep.leakage import Sweep
from quiltwork.influence.sweep.noise import Sweepable
from quiltwork.influence.sweep.step import Contracted, Exact
from quiltwork.influence.timeline import Timeline, cyclic_timeline, dated_timeline, timeline_of

_MOST_WEIGHTED = 64
"""So many states have a bound per pair from any start: a step takes k⁴ operations."""


@singledispatch
def sweep_of(
    belief: Any, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweepable:
    """Return the sweep of a belief about a series of this length, for secrets of `episode` nodes.

    With `pairs` only these values are kept apart; all of them otherwise.

    Raises:
        UnsupportedError: for beliefs that cannot be swept, and for episodes of rows in no order.
    """
    raise UnsupportedError(f"A sweep needs a chain or a tree, and {type(belief).__name__} is none.")


@sweep_of.register(MarkovChain)
def _(
    belief: MarkovChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    walk = timeline_of(belief, length, kept=kept_apart(pairs, belief.states))
    return _swept(walk, _contraction(belief, walk), length, episode)


@sweep_of.register(HiddenChain)
def _(
    belief: HiddenChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    kept = kept_apart(pairs, belief.states)
    walk = timeline_of(belief.inner, length, np.asarray(belief.shown), kept)
    return _swept(walk, _contraction(belief.inner, walk), length, episode)


@sweep_of.register(CyclicChain)
def _(
    belief: CyclicChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    walk = cyclic_timeline(belief, length, kept_apart(pairs, belief.states))
    return _swept(walk, _contraction(belief, walk), length, episode)


@sweep_of.register(DatedChain)
def _(belief: DatedChain, length: int, episode: int = 1, pairs: SecretPairs | None = None) -> Sweep:
    walk = dated_timeline(belief, length, kept_apart(pairs, belief.states))
    return _swept(walk, _contraction(belief, walk), length, episode)


def _swept(walk: Timeline, coarse: Contracted, length: int, episode: int) -> Sweep:
    """Sweep a walk by the exact program, or by contraction where that is all there is to know."""
    if walk.independent:
        return Sweep(walk, coarse, coarse, length, episode)
    right = Exact(walk, to_left=False)
    left = coarse if _only_coarse(walk, coarse, length) else Exact(walk, to_left=True)
    return Sweep(walk, left, right, length, episode, coarse)


def _only_coarse(walk: Timeline, coarse: Contracted, length: int) -> bool:
    """Whether one number has to do for all pairs on the left.

    From any start: of many states, of long series that never forget theirs, and of days whose
    first ones have more states than later ones.
    """
    if walk.laws is not None:
        return False
    shrinks = not (walk.possible.all() and walk.late_possible.all())
    forgets = length <= SHORT or bool(coarse.diameters)
    if walk.order is not None:  # swept node by node
        return walk.size > _MOST_WEIGHTED
    return walk.size > _MOST_WEIGHTED or not forgets or (walk.period > 1 and shrinks)


@sweep_of.register(ChainBox)
def _(belief: ChainBox, length: int, episode: int = 1, pairs: SecretPairs | None = None) -> Sweep:
    size, kept = belief.size, kept_apart(pairs, belief.states)
    nothing = np.empty((0, size), dtype=np.bool_)
    tells = ~np.eye(size, dtype=np.bool_)
    walk = Timeline(np.array([belief.upper]), None, nothing, None, 0.0, tells, kept)
    side = Contracted(tuple(diameters(belief)), size)
    return Sweep(walk, side, side, length, episode)


def sweep_against_known_rows(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, length: int
) -> Sweepable:
    """Return a sweep that holds whatever other rows an adversary knows.

    Knowing a row multiplies kernels by vectors, which no cross-ratio feels.
    """
    if isinstance(belief, ChainBox):
        return sweep_of(belief, length)
    if isinstance(belief, DatedChain):
        walk = dated_timeline(belief, length)
    elif isinstance(belief, CyclicChain):
        walk = cyclic_timeline(belief, length)
    else:
        walk = timeline_of(belief, length)
    side = _contraction(belief, walk)
    return Sweep(walk, side, side, length)


def _contraction(belief: MarkovChain | CyclicChain | DatedChain, walk: Timeline) -> Contracted:
    """How fast a chain forgets on the states that it can be in, whatever its start."""
    if walk.independent:
        return Contracted(((1, 0.0),), walk.size)
    if isinstance(belief, DatedChain) or (
        isinstance(belief, MarkovChain) and walk.size == belief.size
    ):
        return Contracted(tuple(diameters(belief)), walk.size)
    return Contracted(tuple(cycle_diameters(walk.steps)), walk.size)


@singledispatch
def can_be_swept(belief: Any) -> bool:
    """Whether `sweep_of` knows this belief."""
    return isinstance(belief, MarkovChain | CyclicChain | DatedChain | HiddenChain | ChainBox)
