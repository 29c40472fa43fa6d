"""Fewer pairs of states to look at: drop those that another pair exceeds at every distance."""

from __future__ import annotations

import numpy as np

from quiltwork.influence.protocol import FloatArray


def without_dominated(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the columns of both that can be the largest in some sum of two rows.

    O(pairs·reach) for each of at most nine champions, the largest pairs at sample distances. A
    dropped column is never above its champion's, so every maximum over columns is unchanged.
    """
    if left.shape[1] <= 2 or not len(right):
        return left, right
    both = np.concatenate([left, right])
    keep = np.ones(left.shape[1], dtype=np.bool_)
    for champion in _champions(left, right):
        if keep[champion]:
            keep &= ~(both <= both[:, [champion]]).all(axis=0)
            keep[champion] = True
    return np.ascontiguousarray(left[:, keep]), np.ascontiguousarray(right[:, keep])


def _champions(left: FloatArray, right: FloatArray) -> list[int]:
    found: dict[int, None] = {}
    for a in {0, len(left) // 2, len(left) - 1} if len(left) else {None}:
        for b in {0, len(right) // 2, len(right) - 1}:
            sums = right[b] if a is None else left[a] + right[b]
            found[int(np.argmax(sums))] = None
    return list(found)
