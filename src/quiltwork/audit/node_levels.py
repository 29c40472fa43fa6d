"""What each node leaks: the largest log-likelihood ratio of the noisy outputs between its states.

With Laplace or geometric noise the ratio is monotone between neighbouring values of the statistic
and constant beyond them, so the integers (for several statistics: their product grid) are the only
outputs to look at, and both kinds of noise leak the same. Noise is applied to laws by one pass in
each direction per statistic, in logarithms where floats would underflow; constants that cancel
between two states are left out. NodeLevels are rounded up by a proven margin.

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

from quiltwork.audit.additive import Joint
from quiltwork.audit.episodes import block_chain, block_statistic
from quiltwork.audit.inner import Followed, InnerChain, inner_chain
from quiltwork.audit.laws import NodeLaw, check_cost, float_laws, log_laws, marginals, supports
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray

_UNIT = 2.0**-53
_BLOCK = 1 << 21
_RAREST = 1e-50
_SMALLEST = 1e-200
_LARGEST_EXPONENT = 745
_FASTEST = 10**300
Rate: TypeAlias = float | FloatArray
"""How fast noise falls, 1/scale: one number, or one per node in a shape that broadcasts."""


@dataclass(frozen=True, eq=False)
class LawBlock:
    """The laws of some nodes, of shape (codes, nodes, states), as numbers or as logarithms."""

    nodes: IntArray
    weights: FloatArray
    possible: BoolArray
    logs: bool

    def only(self, keep: BoolArray) -> LawBlock:
        """The same for some of the nodes."""
        return LawBlock(self.nodes[keep], self.weights[:, keep], self.possible[keep], self.logs)


@dataclass(frozen=True, eq=False)
class NodeLevels:
    """What each node leaks (rounded up), and where: the code of the output and the two states.

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
    """One belief's laws at some nodes of a statistic that is asked of the states it shows.

    With an `episode` nodes are blocks of so many time points, `length` of them.
    """

    belief: Followed
    length: int
    asked: Joint
    nodes: range
    episode: int = 1

    @cached_property
    def chain(self) -> InnerChain:
        """The belief as a chain of inner states, or of blocks of them."""
        chain = inner_chain(self.belief)
        return chain if self.episode == 1 else block_chain(chain, self.episode)

    @cached_property
    def statistic(self) -> Joint:
        """The statistic as one of the inner states, or of blocks of them."""
        chain = inner_chain(self.belief)
        found = self.asked if chain.plain else self.asked.over(chain.shown)
        return found if self.episode == 1 else block_statistic(found, chain.size, self.episode)

    @cached_property
    def in_floats(self) -> bool:
        """Whether no possible state is so rare that floats could lose it.

        Raises:
            TooLargeError: if the laws are out of reach.
        """
        check_cost(self.chain, self.length, self.statistic, self.nodes)
        pairs = zip(
            marginals(self.chain, self.length), supports(self.chain, self.length), strict=True
        )
        return all(float(m[s].min()) >= _RAREST for m, s in pairs)

    def blocks(self, logs: bool) -> Iterator[LawBlock]:
        """The laws of the nodes that have two or more possible states."""
        make = log_laws if logs else float_laws
        found = make(self.chain, self.length, self.statistic, self.nodes)
        uncertain = (law for law in found if law.possible.sum() > 1)
        room = max(1, _BLOCK // (self.statistic.cells * self.chain.size))
        while batch := list(islice(uncertain, room)):
            yield _block(batch, logs)

    @property
    def margin(self) -> float:
        """How far float arithmetic may bring a log-ratio below the truth, at most."""
        k, statistic = self.chain.size, self.statistic
        passes = self.length * (3 * k + 14) + statistic.cells
        noise = sum(4 * size + _LARGEST_EXPONENT for size in statistic.sizes)
        return 4 * _UNIT * (passes + noise + 16)

    def log_margin(self, magnitude: float) -> float:
        """The same for logarithms of this magnitude."""
        statistic = self.statistic
        steps = self.length * (self.chain.size + 3) + 8 * statistic.cells + 2 * sum(statistic.sizes)
        return 16 * _UNIT * steps * (1 + magnitude)


def levels(laws: Laws, logs: bool = False) -> Iterator[NodeLevels]:
    """What each uncertain node leaks, block by block; in `logs` also where floats do not do."""
    rates = tuple(rate(scale) for scale in laws.statistic.scales)
    if not logs and laws.in_floats and all(np.isfinite(rates)):
        found = []
        for block in laws.blocks(logs=False):
            level = block_levels(block, laws, rates)
            if level is None:
                break
            found.append(level)
        else:
            yield from found
            return
    for block in laws.blocks(logs=True):
        level = block_levels(block, laws, rates)
        if level is not None:
            yield level


def block_levels(block: LawBlock, laws: Laws, rates: Sequence[Rate]) -> NodeLevels | None:
    """The levels of a block, or None where an output is too improbable for its floats."""
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
    """An output that only some states can give leaks ∞; one that none can give is skipped."""
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
    """Smooth laws of shape (number of codes, …) along every statistic."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, speed in enumerate(rates):
        shaped = np.moveaxis(_along_first(np.moveaxis(shaped, axis, 0), speed), 0, axis)
    return shaped.reshape(law.shape)


def _along_first(law: FloatArray, speed: Rate) -> FloatArray:
    ratio = np.exp(-np.asarray(speed))
    forwards = np.array(law)
    backwards = np.zeros_like(forwards)
    for w in range(1, len(law)):
        forwards[w] += ratio * forwards[w - 1]
    for w in range(len(law) - 2, -1, -1):
        np.add(backwards[w + 1], law[w + 1], out=backwards[w])
        backwards[w] *= ratio
    return forwards + backwards


def smoothed_logs(law: FloatArray, sizes: tuple[int, ...], rates: tuple[Rate, ...]) -> FloatArray:
    """The same for logarithms of laws, −∞ for what is impossible; without noise nothing moves."""
    shaped = law.reshape(*sizes, *law.shape[1:])
    for axis, speed in enumerate(rates):
        if not np.all(np.isinf(speed)):
            shaped = np.moveaxis(_logs_along_first(np.moveaxis(shaped, axis, 0), speed), 0, axis)
    return shaped.reshape(law.shape)


def _logs_along_first(law: FloatArray, speed: Rate) -> FloatArray:
    forwards = np.array(law)
    backwards = np.full_like(forwards, -np.inf)
    for w in range(1, len(law)):
        forwards[w] = np.logaddexp(forwards[w], forwards[w - 1] - speed)
    for w in range(len(law) - 2, -1, -1):
        backwards[w] = np.logaddexp(backwards[w + 1], law[w + 1]) - speed
    return np.logaddexp(forwards, backwards)
