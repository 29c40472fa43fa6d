"""What each node leaks: the largest log-likelihood ratio of the noisy outputs between its states.

With Laplace or geometric noise the ratio is monotone between neighbouring values of the statistic
and constant beyond them, so the integers (for several statistics: their product grid) are the only
outputs to look at, and both kinds of noise leak the same. Levels are rounded up by a proven margin.

Theorem: exact-leakage
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from quiltwork.audit.laws import NodeLaw, check_cost, float_laws, marginals, supports
from quiltwork.audit.logarithms import log_laws
from quiltwork.audit.smoothing import Rate, rate, smoothed, smoothed_logs
from quiltwork.audit.statistics import Joint
from quiltwork.beliefs import MarkovChain
from quiltwork.beliefs.matrices import BoolArray, FloatArray, IntArray

_UNIT = 2.0**-53
_BLOCK = 1 << 21
_RAREST = 1e-50
_SMALLEST = 1e-200
_LARGEST_EXPONENT = 745


@dataclass(frozen=True, eq=False)
class Block:
    """The laws of some nodes, of shape (codes, nodes, states), as numbers or as logarithms."""

    nodes: IntArray
    weights: FloatArray
    possible: BoolArray
    logs: bool

    def only(self, keep: BoolArray) -> Block:
        """The same for some of the nodes."""
        return Block(self.nodes[keep], self.weights[:, keep], self.possible[keep], self.logs)


@dataclass(frozen=True, eq=False)
class Levels:
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
    """One belief's laws of a statistic at some nodes."""

    chain: MarkovChain
    length: int
    statistic: Joint
    nodes: range

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

    def blocks(self, logs: bool) -> Iterator[Block]:
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


def levels(laws: Laws) -> Iterator[Levels]:
    """What each uncertain node leaks, block by block; in logarithms where floats do not do."""
    rates = tuple(rate(scale) for scale in laws.statistic.scales)
    if laws.in_floats and all(np.isfinite(rates)):
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


def block_levels(block: Block, laws: Laws, rates: Sequence[Rate]) -> Levels | None:
    """The levels of a block, or None where an output is too improbable for its floats."""
    measure = _log_spread if block.logs else _ratio_spread
    return measure(block, laws, tuple(rates))


def _ratio_spread(block: Block, laws: Laws, rates: tuple[Rate, ...]) -> Levels | None:
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
    return Levels(block.nodes, leak, code, likelier, rarer, laws.margin)


def _log_spread(block: Block, laws: Laws, rates: tuple[Rate, ...]) -> Levels:
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
    return Levels(block.nodes, leak, code, likelier, rarer, margin)


def _block(batch: list[NodeLaw], logs: bool) -> Block:
    return Block(
        np.array([law.node for law in batch], dtype=np.int64),
        np.ascontiguousarray(np.stack([law.weights for law in batch]).transpose(2, 0, 1)),
        np.stack([law.possible for law in batch]),
        logs,
    )
