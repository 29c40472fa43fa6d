"""`method="optimal-scale"`: the least noise by the exact leakage of a query instead of a bound.

The least noise of all additive mechanisms for one query, private under the given beliefs only. It
does not compose linearly: accountants charge such a release by its level per substituted time
point, like any other.

Theorem: docs/theory/exact-calibration.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, cast

import numpy as np

from quiltwork.audit.additive import AdditiveStatistic, JointStatistic, additive_parts
from quiltwork.audit.inner import TractableChain, require_tractable
from quiltwork.audit.laws import TooLargeError
from quiltwork.audit.least_noise import least_scale, scales_per_node
from quiltwork.audit.node_levels import Laws
from quiltwork.beliefs import Belief
from quiltwork.errors import UnsupportedError
from quiltwork.exact import Number, float_up, positive_fraction, privacy_level
from quiltwork.influence.calibration import Calibration
from quiltwork.influence.calibration_arguments import (
    answer_unit,
    as_problem,
    bounds_for,
    check_states,
    parse_lengths,
    points_asked,
)
from quiltwork.influence.profile import Profile, runs_of
from quiltwork.influence.quilts.protocol import InfluenceMethod
from quiltwork.queries import Count
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.queries.query import Query

METHOD = "optimal-scale"


@dataclass(frozen=True)
class OptimalCalibration(Calibration):
    """The least scale whose exact leakage is at most epsilon; `quilt` is empty, since
    none is used.
    """

    laws: tuple[tuple[Laws, ...], ...] = field(default=(), repr=False, compare=False)
    divisor: int = 1

    def per_node(self) -> Profile:
        """Return the scale that each node needs on its own; about forty audits of the query."""
        level = positive_fraction(self.epsilon, "epsilon")
        needed = np.zeros(len(self.problem.nodes))
        for law in (law for row in self.laws for law in row):
            unit = law.statistic.parts[0].unit / self.divisor
            covered = slice(0, len(law.nodes))
            scales = [float_up(Fraction(s) * unit) for s in scales_per_node(law, level).tolist()]
            needed[covered] = np.maximum(needed[covered], scales)
        nodes = np.array(self.problem.nodes)
        return runs_of(nodes, nodes, needed)

    def explain(self) -> str:
        """Return which node and belief determine the scale, and what it assumes."""
        if self.exact_scale == 0:
            return "Noise scale 0: under the given beliefs the exact answer leaks at most epsilon."
        beliefs = len(self.laws)
        trusted = "the belief given" if beliefs == 1 else f"the {beliefs} beliefs given"
        return (
            f"Noise scale {self.scale:.6g} for epsilon {float(self.epsilon):g} (method {METHOD}, "
            f"{self.length} time points).\n"
            f"Node {self.node} under belief {self.belief} determines the noise: with less, some "
            "output would leak more about it.\n"
            f"The scale is exact for {trusted} alone: under a slightly different chain it may leak "
            "more."
        )


def optimal_calibration(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    query: Query | None,
    secrets: tuple[int, int] | None,
    episode: int = 1,
) -> OptimalCalibration:
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
            "episodes leave method "
            "out."
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
    scale = least.scale / divisor
    return OptimalCalibration(
        scale=float_up(scale),
        exact_scale=scale,
        epsilon=epsilon,
        node=nodes.start if least.node is None else least.node,
        quilt=(),
        influence=0.0,
        nearby=points,
        change=problem.charge.change(1, points),
        method=cast("InfluenceMethod", METHOD),
        belief=least.belief,
        length=points,
        problem=problem,
        bounds=bounds_for(chains, points, None),
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
