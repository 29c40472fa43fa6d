"""Stretches of time as single secrets: a chain of blocks, whose states are w states in a row.

The blocks (X_t, …, X_{t+w−1}) of a chain are a chain again, and what adds up over the steps of the
one adds up over those of the other: the first block brings all that its points add, and each step
what its new point adds. The exact law of an answer given an episode is then that given a node.

Theorem: docs/theory/exact-leakage.md (Episodes)
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from quiltwork.audit.additive import Additive, Joint
from quiltwork.audit.inner import InnerChain
from quiltwork.beliefs.matrices import IntArray
from quiltwork.errors import UnsupportedError

_MOST_BLOCKS = 4096


def block_chain(chain: InnerChain, width: int) -> InnerChain:
    """Return the chain of blocks of `width` inner states in a row; O(n^(2·width)) numbers.

    Raises:
        UnsupportedError: if there are too many of them.
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
    places = len(chain.states) ** np.arange(width - 1, -1, -1)
    return InnerChain(matrices, start, begins, chain.shown[paths] @ places, labels)


def block_statistic(statistic: Joint, size: int, width: int) -> Joint:
    """Return statistics of a chain of `size` inner states as those of its blocks."""
    paths = _paths(size, width)
    return Joint(tuple(_part(one, paths, width) for one in statistic.parts), statistic.scales)


def _part(one: Additive, paths: IntArray, width: int) -> Additive:
    start = one.start[paths[:, 0]]
    for at in range(1, width):
        if one.first <= at + 1 <= one.last:
            start = start + one.gain[paths[:, at - 1], paths[:, at]]
    gain = one.gain[np.ix_(paths[:, -1], paths[:, -1])]
    first, last = max(one.first - width + 1, 2), one.last - width + 1
    return replace(one, start=start, gain=gain, first=first, last=last)


def _paths(size: int, width: int) -> IntArray:
    """Return all sequences of `width` inner states, one per row; the last changes fastest."""
    if size**width > _MOST_BLOCKS:
        raise UnsupportedError(
            f"{width} time points of {size} states each have {size**width:,} possible sequences, "
            f"more than the {_MOST_BLOCKS:,} whose laws are followed here; ask about fewer time "
            "points in a row. calibrate and Accountant bound episodes of any length."
        )
    return np.array(list(product(range(size), repeat=width)), dtype=np.int64)
