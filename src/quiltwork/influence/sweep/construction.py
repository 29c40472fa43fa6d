"""The sweep of each kind of belief: which timeline and which two sides it has."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from quiltwork.beliefs import ChainBox, CyclicChain, DatedChain, HiddenChain, MarkovChain
from quiltwork.beliefs.secrets import SecretPairs, secret_pair_matrix
from quiltwork.errors import UnsupportedError
from quiltwork.influence.diameters import cycle_diameters, diameters
from quiltwork.influence.sweep.leakage import SHORT, Sweep
from quiltwork.influence.sweep.noise import Sweepable
from quiltwork.influence.sweep.step import ContractionSide, ExactSide
from quiltwork.influence.timeline import Timeline, cyclic_timeline, dated_timeline, timeline_of

_MOST_WEIGHTED = 64
"""Up to this many states have a bound per pair from any start: a step takes k⁴ operations."""


@singledispatch
def sweep_of(
    belief: Any, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweepable:
    """Return the sweep of a belief about a series of this length, for secrets of `episode` nodes.

    Args:
        belief: a chain, box of chains, or network that is a tree.
        length: of the series.
        episode: the number of consecutive nodes that form one secret.
        pairs: the pairs of values that are secret; all by default.

    Raises:
        UnsupportedError: for beliefs that cannot be swept, and for episodes of rows in no order.
    """
    raise UnsupportedError(f"A sweep needs a chain or a tree, and {type(belief).__name__} is none.")


@sweep_of.register(MarkovChain)
def _(
    belief: MarkovChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    timeline = timeline_of(belief, length, secret_pairs=secret_pair_matrix(pairs, belief.states))
    return _swept(timeline, _contraction(belief, timeline), length, episode)


@sweep_of.register(HiddenChain)
def _(
    belief: HiddenChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    secret = secret_pair_matrix(pairs, belief.states)
    timeline = timeline_of(belief.inner, length, np.asarray(belief.shown), secret)
    return _swept(timeline, _contraction(belief.inner, timeline), length, episode)


@sweep_of.register(CyclicChain)
def _(
    belief: CyclicChain, length: int, episode: int = 1, pairs: SecretPairs | None = None
) -> Sweep:
    timeline = cyclic_timeline(belief, length, secret_pair_matrix(pairs, belief.states))
    return _swept(timeline, _contraction(belief, timeline), length, episode)


@sweep_of.register(DatedChain)
def _(belief: DatedChain, length: int, episode: int = 1, pairs: SecretPairs | None = None) -> Sweep:
    timeline = dated_timeline(belief, length, secret_pair_matrix(pairs, belief.states))
    return _swept(timeline, _contraction(belief, timeline), length, episode)


def _swept(timeline: Timeline, contraction: ContractionSide, length: int, episode: int) -> Sweep:
    """The sweep of a timeline by the exact program, or by contraction for independent nodes."""
    # nothing is carried from node to node, so contraction by 0 is exact
    if timeline.independent:
        return Sweep(timeline, contraction, contraction, length, episode)
    right = ExactSide(timeline, to_left=False)
    left = (
        contraction
        if _only_coarse(timeline, contraction, length)
        else ExactSide(timeline, to_left=True)
    )
    return Sweep(timeline, left, right, length, episode, contraction)


def _only_coarse(timeline: Timeline, contraction: ContractionSide, length: int) -> bool:
    """Whether the left side has one number for all pairs.

    So it is from any start, for many states, for long series of chains that never forget, and for
    cyclic chains whose first nodes have more possible states than later ones.
    """
    if timeline.laws is not None:
        return False
    shrinks = not (timeline.possible.all() and timeline.late_possible.all())
    forgets = length <= SHORT or bool(contraction.diameters)
    if timeline.order is not None:  # swept node by node
        return timeline.size > _MOST_WEIGHTED
    return timeline.size > _MOST_WEIGHTED or not forgets or (timeline.period > 1 and shrinks)


@sweep_of.register(ChainBox)
def _(belief: ChainBox, length: int, episode: int = 1, pairs: SecretPairs | None = None) -> Sweep:
    size, secret = belief.size, secret_pair_matrix(pairs, belief.states)
    nothing = np.empty((0, size), dtype=np.bool_)
    distinguishable = ~np.eye(size, dtype=np.bool_)
    timeline = Timeline(np.array([belief.upper]), None, nothing, None, 0.0, distinguishable, secret)
    side = ContractionSide(tuple(diameters(belief)), size)
    return Sweep(timeline, side, side, length, episode)


def sweep_against_known_rows(
    belief: MarkovChain | CyclicChain | DatedChain | ChainBox, length: int
) -> Sweepable:
    """Return a sweep that holds for adversaries who know any other rows.

    Knowing a row multiplies kernels by vectors, which leaves cross-ratios unchanged.
    """
    if isinstance(belief, ChainBox):
        return sweep_of(belief, length)
    if isinstance(belief, DatedChain):
        timeline = dated_timeline(belief, length)
    elif isinstance(belief, CyclicChain):
        timeline = cyclic_timeline(belief, length)
    else:
        timeline = timeline_of(belief, length)
    side = _contraction(belief, timeline)
    return Sweep(timeline, side, side, length)


def _contraction(
    belief: MarkovChain | CyclicChain | DatedChain, timeline: Timeline
) -> ContractionSide:
    """The contraction of a chain on the states it can take, for every start."""
    if timeline.independent:
        return ContractionSide(((1, 0.0),), timeline.size)
    if isinstance(belief, DatedChain) or (
        isinstance(belief, MarkovChain) and timeline.size == belief.size
    ):
        return ContractionSide(tuple(diameters(belief)), timeline.size)
    return ContractionSide(tuple(cycle_diameters(timeline.steps)), timeline.size)


@singledispatch
def can_be_swept(belief: Any) -> bool:
    """Whether `sweep_of` supports this belief."""
    return isinstance(belief, MarkovChain | CyclicChain | DatedChain | HiddenChain | ChainBox)
