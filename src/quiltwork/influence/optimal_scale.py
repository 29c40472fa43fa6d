"""`method="optimal-scale"`: the least noise by the exact leakage of a query instead of a bound.

The least noise of all additive mechanisms for one query, private under the given beliefs only. It
does not compose linearly: accountants charge such a release by its level per substituted time
point, like any other.

Theorem: docs/theory/exact-calibration.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from quiltwork.audit.additive import AdditiveStatistic, JointStatistic, additive_parts
from quiltwork.audit.inner import TractableChain, require_tractable
from quiltwork.audit.laws import TooLargeError
from quiltwork.audit.least_noise import least_scale, scales_per_node
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, float_up, privacy_level
from quiltwork.influence.belief_bound import CalibrationProblem
from quiltwork.influence.calibration_arguments import (
    answer_unit,
    as_problem,
    check_states,
    parse_lengths,
    points_asked,
)
from quiltwork.influence.quilts.protocol import FloatArray
from quiltwork.queries import Count
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.queries.query import Query


@dataclass(frozen=True, eq=False)
class LeastNoise:
    """The least noise of a query by its exact leakage.

    Attributes:
        scale: the noise to add to the answer.
        node: the node that determines it.
        belief: the number of the belief that determines it, from 1.
        chains: the beliefs.
        problem: the query and its secrets.
        unit: the value of one integer of the query in the answer.
        laws: the laws of the query's integers, by belief.
        divisor: the query's integers per unit of the answer.
    """

    scale: Fraction
    node: int
    belief: int
    chains: tuple[TractableChain, ...]
    problem: CalibrationProblem
    unit: Fraction
    laws: tuple[tuple[Laws, ...], ...]
    divisor: int


def scales_by_node(
    laws: tuple[tuple[Laws, ...], ...], nodes: int, divisor: int, epsilon: Fraction
) -> FloatArray:
    """Return the scale that each node needs on its own; about forty audits of the query."""
    needed = np.zeros(nodes)
    for law in (law for row in laws for law in row):
        unit = law.statistic.parts[0].unit / divisor
        covered = slice(0, len(law.nodes))
        scales = [float_up(Fraction(s) * unit) for s in scales_per_node(law, epsilon).tolist()]
        needed[covered] = np.maximum(needed[covered], scales)
    return needed


def least_noise(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    query: Query | None,
    secrets: tuple[int, int] | None,
    episode: int = 1,
) -> LeastNoise:
    """Return the least noise with exact leakage ≤ epsilon; without a query, for every count.

    A shorter series may leak more than a longer one, so every length is calibrated for.

    Raises:
        UnsupportedError: for beliefs other than chains with a known start, and for queries whose
            joint law is too large to follow; counts on chains of two states with P₀₀ ≥ P₁₀, and
            all others that `audit.ends` decides, have any length.

    Theorem: docs/theory/exact-calibration.md
    """
    level = privacy_level(epsilon, "epsilon")
    chains = require_tractable(beliefs)
    lengths = parse_lengths(chains, length)
    points = max(lengths)
    problem = as_problem(query, points, secrets, episode)
    if problem.episode > 1:
        raise UnsupportedError(
            f"{argument('method', 'optimal-scale')} protects single time points; for longer "
            "episodes leave method out."
        )
    nodes = problem.nodes
    check_states(query, chains)
    laws = tuple(
        tuple(
            Laws(chain, n, statistic, range(nodes.start, min(nodes.stop, n + 1)))
            for n in sorted(lengths)
            if n >= nodes.start
            for statistic in _statistics(chain, query, n)
        )
        for chain in chains
    )
    try:
        least = least_scale(laws, level)
    except TooLargeError as error:
        raise UnsupportedError(
            f"{argument('method', 'optimal-scale')} needs the joint law of the query's integers. "
            f"{error} "
            f"{argument('method', 'exact')} calibrates at any length."
        ) from None
    divisor = 1 if query is None else query.divisor(points_asked(query, lengths))
    return LeastNoise(
        scale=least.scale / divisor,
        node=nodes.start if least.node is None else least.node,
        belief=least.belief,
        chains=tuple(chains),
        problem=problem,
        unit=answer_unit(query, lengths),
        laws=laws,
        divisor=divisor,
    )


def _statistics(chain: TractableChain, query: Query | None, points: int) -> list[JointStatistic]:
    """The protected statistics: the query's integers jointly, or the count of every state."""
    if query is None:
        counts = [additive_parts(Count(state=s), chain.states, points) for s in chain.states]
        return [_noisy(parts) for parts in counts]
    return [_noisy(additive_parts(query, chain.states, points))]


def _noisy(parts: tuple[AdditiveStatistic, ...]) -> JointStatistic:
    """A statistic with noise of scale 1 on each part."""
    return JointStatistic(parts, (Fraction(1),) * len(parts))
