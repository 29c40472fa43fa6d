"""The leakage of each node: the largest log-likelihood ratio of a noisy output between its states.

With Laplace or geometric noise the ratio is monotone between neighbouring values of the statistic
and constant beyond them, so its maximum is at an integer (for several statistics: on the product
grid), and both kinds of noise leak the same. Noise is applied to laws by one pass in each direction
per statistic, in logarithms where floats would underflow; constants that cancel between two states
are left out. Levels are rounded up by a proven margin.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TypeAlias

import numpy as np

from quiltwork.audit.additive import JointStatistic
from quiltwork.audit.episodes import block_chain, block_statistic
from quiltwork.audit.inner import InnerChain, TractableChain, inner_chain
from quiltwork.audit.laws import NodeLaw, check_cost, float_laws, log_laws, marginals, supports
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray

_UNIT = 2.0**-53
_BLOCK = 1 << 21
"""Numbers of a block of nodes: 16 MB."""
_RAREST = 1e-50
_SMALLEST = 1e-200
"""With states and densities above these, underflow loses less than 1e-60 (theorem, part 3)."""
_LARGEST_EXPONENT = 745
_FASTEST = 10**300
Rate: TypeAlias = float | FloatArray
"""The decay rate of noise, 1/scale: one number, or one per node in a shape that broadcasts."""


@dataclass(frozen=True, eq=False)
class LawBlock:
    """The laws of some nodes, of shape (codes, nodes, states): probabilities or logarithms."""

    nodes: IntArray
    weights: FloatArray
    possible: BoolArray
    logs: bool

    def only(self, keep: BoolArray) -> LawBlock:
        """Return the block of some of the nodes."""
        return LawBlock(self.nodes[keep], self.weights[:, keep], self.possible[keep], self.logs)


@dataclass(frozen=True, eq=False)
class NodeLevels:
    """The leakage of each node, rounded up, with the output code and the two states.

    The true levels lie at most twice `margin` below.
    """

    nodes: IntArray
    leak: FloatArray
    code: IntArray
    likelier: IntArray
    rarer: IntArray
    margin: float


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of a statistic of the shown states at some nodes, under one belief.

    With an `episode` above 1, nodes are blocks of so many time points, `length` of them.
    """

    belief: TractableChain
    length: int
    of_states: JointStatistic
    nodes: range
    episode: int = 1

    @cached_property
    def chain(self) -> InnerChain:
        """The chain of inner states, or of blocks of them."""
        chain = inner_chain(self.belief)
        return chain if self.episode == 1 else block_chain(chain, self.episode)

    @cached_property
    def statistic(self) -> JointStatistic:
        """The statistic as a function of inner states, or of blocks of them."""
        chain = inner_chain(self.belief)
        inner = self.of_states if chain.plain else self.of_states.of_inner_states(chain.shown)
        return inner if self.episode == 1 else block_statistic(inner, chain.size, self.episode)

    @cached_property
    def in_floats(self) -> bool:
        """Whether every possible state is likely enough for floats.

        Raises:
            TooLargeError: if the laws are out of reach.
        """
        check_cost(self.chain, self.length, self.statistic, self.nodes)
        pairs = zip(
            marginals(self.chain, self.length), supports(self.chain, self.length), strict=True
        )
        return all(float(m[s].min()) >= _RAREST for m, s in pairs)

    def blocks(self, logs: bool) -> Iterator[LawBlock]:
        """Yield the laws of the nodes that have two or more possible states."""
        compute = log_laws if logs else float_laws
        laws = compute(self.chain, self.length, self.statistic, self.nodes)
        uncertain = (law for law in laws if law.possible.sum() > 1)
        room = max(1, _BLOCK // (self.statistic.cells * self.chain.size))
        while batch := list(islice(uncertain, room)):
            yield _block(batch, logs)

    @property
    def margin(self) -> float:
        """A bound on the rounding error of a log-ratio in floats."""
        k, statistic = self.chain.size, self.statistic
        passes = self.length * (3 * k + 14) + statistic.cells
        noise = sum(4 * size + _LARGEST_EXPONENT for size in statistic.sizes)
        return 4 * _UNIT * (passes + noise + 16)

    def log_margin(self, magnitude: float) -> float:
        """Return the bound for logarithms of this magnitude."""
        statistic = self.statistic
        steps = self.length * (self.chain.size + 3) + 8 * statistic.cells + 2 * sum(statistic.sizes)
        return 16 * _UNIT * steps * (1 + magnitude)


def levels(laws: Laws, logs: bool = False) -> Iterator[NodeLevels]:
    """Yield the leakage of each uncertain node, block by block; in logarithms where needed."""
    rates = tuple(rate(scale) for scale in laws.statistic.scales)
    if not logs and laws.in_floats and all(np.isfinite(rates)):
        levels_in_floats = []
        for block in laws.blocks(logs=False):
            level = block_levels(block, laws, rates)
            if level is None:  # an output is too improbable: all blocks again, in logarithms
                break
            levels_in_floats.append(level)
        else:
            yield from levels_in_floats
            return
    for block in laws.blocks(logs=True):
        level = block_levels(block, laws, rates)
        if level is not None:
            yield level


def block_levels(block: LawBlock, laws: Laws, rates: Sequence[Rate]) -> NodeLevels | None:
    """Return the leakage of a block's nodes; None where an output is too improbable for floats."""
    measure = _log_spread if block.logs else _ratio_spread
    return measure(block, laws, tuple(rates))


def _ratio_spread(block: LawBlock, laws: Laws, rates: tuple[Rate, ...]) -> NodeLevels | None:
    density = smoothed(block.weights, laws.statistic.sizes, rates)
    high = np.where(block.possible, density, 0.0)
    low = np.where(block.possible, density, np.inf)
    bottom = low.min(axis=2)
    if not float(bottom.min()) >= _SMALLEST:
        return None
    ratio = high.max(axis=2) / bottom
    code, at = ratio.argmax(axis=0), np.arange(len(block.nodes))
    leak = np.log(ratio[code, at]) + laws.margin
    likelier, rarer = high[code, at].argmax(axis=1), low[code, at].argmin(axis=1)
    return NodeLevels(block.nodes, leak, code, likelier, rarer, laws.margin)


def _log_spread(block: LawBlock, laws: Laws, rates: tuple[Rate, ...]) -> NodeLevels:
    """Return levels from logarithms: ∞ for an output that only some states allow."""
    sizes = laws.statistic.sizes
    density = smoothed_logs(block.weights, sizes, rates)
    high = np.where(block.possible, density, -np.inf)
    low = np.where(block.possible, density, np.inf)
    top, bottom = high.max(axis=2), low.min(axis=2)
    spread = np.subtract(top, bottom, where=top > -np.inf, out=np.zeros_like(top))
    code, at = spread.argmax(axis=0), np.arange(len(block.nodes))
    finite = np.abs(block.weights[np.isfinite(block.weights)]).max(initial=0.0)
    noise = [np.where(np.isinf(r), 0.0, r).max() * n for r, n in zip(rates, sizes, strict=True)]
    margin = laws.log_margin(float(finite) + sum(map(float, noise)))
    leak = spread[code, at] + margin
    likelier, rarer = high[code, at].argmax(axis=1), low[code, at].argmin(axis=1)
    return NodeLevels(block.nodes, leak, code, likelier, rarer, margin)


def _block(batch: list[NodeLaw], logs: bool) -> LawBlock:
    return LawBlock(
        np.array([law.node for law in batch], dtype=np.int64),
        np.ascontiguousarray(np.stack([law.weights for law in batch]).transpose(2, 0, 1)),
        np.stack([law.possible for law in batch]),
        logs,
    )


def rate(scale: Fraction) -> float:
    """Return 1/scale to the nearest float; infinite without noise, or almost."""
    if not scale or 1 / scale > _FASTEST:
        return math.inf
    return float(1 / scale)


def smoothed(law: FloatArray, sizes: tuple[int, ...], rates: tuple[Rate, ...]) -> FloatArray:
    """Return laws of shape (codes, …) convolved with the noise of every statistic."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, decay in enumerate(rates):
        shaped = np.moveaxis(_along_first(np.moveaxis(shaped, axis, 0), decay), 0, axis)
    return shaped.reshape(law.shape)


def _along_first(law: FloatArray, decay: Rate) -> FloatArray:
    ratio = np.exp(-np.asarray(decay))
    forwards = np.array(law)
    backwards = np.zeros_like(forwards)
    for w in range(1, len(law)):
        forwards[w] += ratio * forwards[w - 1]
    for w in range(len(law) - 2, -1, -1):
        np.add(backwards[w + 1], law[w + 1], out=backwards[w])
        backwards[w] *= ratio
    return forwards + backwards


def smoothed_logs(law: FloatArray, sizes: tuple[int, ...], rates: tuple[Rate, ...]) -> FloatArray:
    """Return log-laws convolved with the noise; an infinite rate is no noise."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, decay in enumerate(rates):
        if not np.all(np.isinf(decay)):
            shaped = np.moveaxis(_logs_along_first(np.moveaxis(shaped, axis, 0), decay), 0, axis)
    return shaped.reshape(law.shape)


def _logs_along_first(law: FloatArray, decay: Rate) -> FloatArray:
    forwards = np.array(law)
    backwards = np.full_like(forwards, -np.inf)
    for w in range(1, len(law)):
        forwards[w] = np.logaddexp(forwards[w], forwards[w - 1] - decay)
    for w in range(len(law) - 2, -1, -1):
        backwards[w] = np.logaddexp(backwards[w + 1], law[w + 1]) - decay
    return np.logaddexp(forwards, backwards)
