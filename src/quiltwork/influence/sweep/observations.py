"""Leakage between two observed values when several hidden states share one.

Given the observed value of a node its hidden state has a law, and both sides bound how far what
follows from one hidden state can be from what follows from another. So the leakage between two
observed values is one more ratio program, between the laws of the hidden states behind them.

Theorem: docs/theory/functions-of-a-state.md
"""

from __future__ import annotations

import numpy as np

from quiltwork.influence.ratios import product_margin
from quiltwork.influence.sweep.program import FloatArray, IntArray, RatioProgram, RowPairs
from quiltwork.influence.timeline import Timeline

_PROGRAMS = 1 << 14


def leakage_between_observations(
    timeline: Timeline, nodes: IntArray, own: FloatArray, sides: FloatArray
) -> FloatArray:
    """The largest leakage between two secret observed values of each node; +inf for unknown laws.

    `own` is the level spent on each node, `sides` is (nodes, n, n) the bounds of both sides.
    """
    with np.errstate(invalid="ignore"):
        limits = (
            own[:, np.newaxis, np.newaxis] * timeline.distinguishable
            + sides
            + timeline.prior_log_ratios(nodes)
        )
    # ∞ − ∞: no bound between these states
    limits[np.isnan(limits)] = np.inf
    limits[:, np.arange(timeline.size), np.arange(timeline.size)] = 0.0
    law, slack = _laws(timeline, nodes)
    worst = np.zeros(len(nodes))
    pairs = len(timeline.observation_sets) * (len(timeline.observation_sets) - 1)
    step = max(1, _PROGRAMS // max(1, pairs))
    for first in range(0, len(nodes), step):
        part = slice(first, first + step)
        worst[part] = _worst(timeline, law[part], limits[part])
    return np.where(np.isnan(law).any(axis=1), np.inf, worst + 2 * slack)


def _worst(timeline: Timeline, law: FloatArray, limits: FloatArray) -> FloatArray:
    """The worst secret pair of observed values of each node."""
    behind = law[:, np.newaxis, :] * timeline.observation_sets
    mass = behind.sum(axis=2, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        behind = behind / mass
    possible = mass[:, :, 0] > 0
    a, b = timeline.secret_observations
    node, pair = np.nonzero(possible[:, a] & possible[:, b])
    worst = np.zeros(len(law))
    if len(node):
        program = RatioProgram(node, timeline.size)
        values = program.bound(RowPairs(behind[node, a[pair]], behind[node, b[pair]]), limits)
        np.maximum.at(worst, node, values)
    return worst


def _laws(timeline: Timeline, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
    """The laws of nodes and their projective errors; NaN where unknown."""
    unknown = np.full((timeline.period, timeline.size), np.nan)
    late = unknown if timeline.limits is None else timeline.limits
    law, slack = late[(nodes - 1) % timeline.period].copy(), np.full(len(nodes), timeline.slack)
    if timeline.laws is not None and len(timeline.laws):
        early = nodes <= len(timeline.laws)
        law[early] = timeline.laws[nodes[early] - 1]
        slack[early] = product_margin(nodes[early], timeline.size)
    return law, slack
