"""Episodes as single secrets: the chain of blocks, whose states are w states in a row.

The blocks (X_t, …, X_{t+w−1}) of a chain are a chain again, and an additive statistic of the chain
is one of the blocks: the first block contributes all its steps, each further block its last step.
The exact law of an answer given an episode is then the law given a node of the block chain.

Theorem: docs/theory/exact-leakage.md (Episodes)
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from quiltwork.audit.additive import AdditiveStatistic, JointStatistic
from quiltwork.audit.inner import InnerChain
from quiltwork.beliefs.matrices import IntArray
from quiltwork.errors import UnsupportedError

_MOST_BLOCKS = 4096


def block_chain(chain: InnerChain, width: int) -> InnerChain:
    """Return the chain of blocks of `width` consecutive inner states; O(n^(2·width)) numbers.

    Raises:
        UnsupportedError: if there are more than 4,096 blocks.
    """
    paths, step = _paths(chain.size, width), np.arange(1, width)
    start, begins = chain.start[paths[:, 0]], chain.begins[paths[:, 0]]
    for at in step:
        phase = chain.phase(int(at) + 1)
        start = start * chain.matrices[phase][paths[:, at - 1], paths[:, at]]
        begins = begins & chain.possible[phase][paths[:, at - 1], paths[:, at]]
    # [x, y]: block x leads to block y if y begins with what x ends with
    follows = (paths[:, None, 1:] == paths[None, :, :-1]).all(axis=2)
    steps = chain.matrices[:, paths[:, -1]][:, :, paths[:, -1]]
    matrices = np.roll(np.where(follows, steps, 0.0), -(width - 1), axis=0)
    labels = tuple(product(chain.states, repeat=width))
    digits = len(chain.states) ** np.arange(width - 1, -1, -1)
    return InnerChain(matrices, start, begins, chain.shown[paths] @ digits, labels)


def block_statistic(statistic: JointStatistic, size: int, width: int) -> JointStatistic:
    """Return a statistic of a chain of `size` inner states as one of its blocks."""
    paths = _paths(size, width)
    parts = tuple(_block_part(part, paths, width) for part in statistic.parts)
    return JointStatistic(parts, statistic.scales)


def _block_part(part: AdditiveStatistic, paths: IntArray, width: int) -> AdditiveStatistic:
    start = part.start[paths[:, 0]]
    for at in range(1, width):
        if part.first <= at + 1 <= part.last:
            start = start + part.gain[paths[:, at - 1], paths[:, at]]
    gain = part.gain[np.ix_(paths[:, -1], paths[:, -1])]
    first, last = max(part.first - width + 1, 2), part.last - width + 1
    return replace(part, start=start, gain=gain, first=first, last=last)


def _paths(size: int, width: int) -> IntArray:
    """Return all sequences of `width` inner states, one per row; the last changes fastest."""
    if size**width > _MOST_BLOCKS:
        raise UnsupportedError(
            f"{width} time points of {size} states each have {size**width:,} possible sequences, "
            f"more than the {_MOST_BLOCKS:,} of an exact audit; take a shorter episode. calibrate "
            "and Accountant bound episodes of any length."
        )
    return np.array(list(product(range(size), repeat=width)), dtype=np.int64)
