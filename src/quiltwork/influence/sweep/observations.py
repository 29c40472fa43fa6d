"""What the data show of a node: a secret that several inner states share.

Given what a node shows, its inner state has a law, and both sides bound how far what follows from
one inner state can be from what follows from another. So what the releases tell between two shown
states is one more linear program, from the law of the inner states behind the one to that of those
behind the other.

Theorem: docs/theory/functions-of-a-state.md
"""

from __future__ import annotations

import numpy as np

from quiltwork.influence.ratios import product_margin
from quiltwork.influence.sweep.program import ComparedRows, FloatArray, IntArray, Program
from quiltwork.influence.timeline import Timeline

_PROGRAMS = 1 << 14


def between_shown(
    walk: Timeline, nodes: IntArray, own: FloatArray, sides: FloatArray
) -> FloatArray:
    """The most that is told between two secret states of each node; +inf where laws are unknown.

    `own` is what is spent on each node, `sides` is (nodes, n, n) the bounds of both sides.
    """
    with np.errstate(invalid="ignore"):
        limits = own[:, np.newaxis, np.newaxis] * walk.tells + sides + walk.tilts(nodes)
    limits[np.isnan(limits)] = np.inf
    limits[:, np.arange(walk.size), np.arange(walk.size)] = 0.0
    law, slack = _laws(walk, nodes)
    found = np.zeros(len(nodes))
    pairs = len(walk.shown_sets) * (len(walk.shown_sets) - 1)
    step = max(1, _PROGRAMS // max(1, pairs))
    for first in range(0, len(nodes), step):
        part = slice(first, first + step)
        found[part] = _worst(walk, law[part], limits[part])
    return np.where(np.isnan(law).any(axis=1), np.inf, found + 2 * slack)


def _worst(walk: Timeline, law: FloatArray, limits: FloatArray) -> FloatArray:
    behind = law[:, np.newaxis, :] * walk.shown_sets
    mass = behind.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        behind = behind / mass
    able = mass[:, :, 0] > 0
    a, b = walk.secret_sets
    node, pair = np.nonzero(able[:, a] & able[:, b])
    found = np.zeros(len(law))
    if len(node):
        program = Program(node, walk.size)
        values = program.bound(ComparedRows(behind[node, a[pair]], behind[node, b[pair]]), limits)
        np.maximum.at(found, node, values)
    return found


def _laws(walk: Timeline, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """The laws of nodes and how far off they may be, projectively; NaN where unknown."""
    unknown = np.full((walk.period, walk.size), np.nan)
    late = unknown if walk.limits is None else walk.limits
    law, slack = late[(nodes - 1) % walk.period].copy(), np.full(len(nodes), walk.slack)
    if walk.laws is not None and len(walk.laws):
        soon = nodes <= len(walk.laws)
        law[soon] = walk.laws[nodes[soon] - 1]
        slack[soon] = product_margin(nodes[soon], walk.size)
    return law, slack
