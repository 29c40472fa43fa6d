"""`odds`: the prior and posterior distribution of every time point, given one output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from quiltwork.arguments import listed
from quiltwork.audit.additive import JointStatistic, joint
from quiltwork.audit.inner import require_tractable
from quiltwork.audit.laws import check_cost, logarithm, marginals
from quiltwork.audit.node_levels import Laws, rate
from quiltwork.beliefs import Belief, Label
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer, to_fraction
from quiltwork.queries import Query
from quiltwork.report.charts import Line, LineChart
from quiltwork.results import ChartedResult


@dataclass(frozen=True)
class Odds(ChartedResult):
    """The prior and posterior of each time point, and the log of the largest odds factor.

    Attributes:
        nodes: the time points with at least two possible states.
        states: the columns of `prior` and `posterior`.
        prior: P(X_i = state), of shape (time points, states).
        posterior: P(X_i = state) given the output, of the same shape.
        moved: the log of the largest factor by which the odds of two states changed.
    """

    nodes: IntArray = field(compare=False)
    states: tuple[Label, ...]
    prior: FloatArray = field(compare=False, repr=False)
    posterior: FloatArray = field(compare=False, repr=False)
    moved: FloatArray = field(compare=False, repr=False)

    def records(self) -> list[dict[str, Any]]:
        """Return a row per time point: log odds factor, prior and posterior."""
        before = [f"prior {state}" for state in self.states]
        after = [f"posterior {state}" for state in self.states]
        rows = np.column_stack([self.moved, self.prior, self.posterior]).tolist()
        names = ("moved", *before, *after)
        return [
            {"node": node, **dict(zip(names, row, strict=True))}
            for node, row in zip(self.nodes.tolist(), rows, strict=True)
        ]

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, a row per time point."""
        return {"nodes": self.records()}

    def explain(self) -> str:
        """Name the time point whose odds changed the most."""
        if not len(self.nodes):
            return "No odds changed: no time point has two possible states."
        most = int(np.argmax(self.moved))
        return (
            f"The odds of time point {self.nodes[most]:,} changed the most, by a factor of "
            f"{np.exp(self.moved[most]):.4g} (e^{self.moved[most]:.6g}), out of "
            f"{len(self.nodes):,} time points that were unknown."
        )

    def chart(self) -> LineChart:
        """Return a chart of the last state's probability at each time point, before and after."""
        nodes = self.nodes.tolist()
        before, after = (
            tuple(zip(nodes, beliefs[:, -1].tolist(), strict=True))
            for beliefs in (self.prior, self.posterior)
        )
        largest, node = float(self.moved.max()), nodes[int(self.moved.argmax())]
        return LineChart(
            f"The odds of two states change by at most e^{largest:.4g}, at time point {node:,}",
            "An adversary's belief about each time point, before and after seeing the output.",
            "time point",
            f"P({self.states[-1]})",
            (Line("before", before, dashed=True), Line("after", after)),
        )


def odds(
    belief: Belief, length: int, releases: Sequence[tuple[Query, Any]], output: Sequence[Number]
) -> Odds:
    """Return an adversary's prior and posterior of every time point, given `output`.

    Args:
        belief: one chain with a known start.
        length: the number of time points.
        releases: pairs (query, scale) as for `leakage`; the scales must be positive.
        output: the noisy answers, one number per cell of each release, in order.

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> coins = odds(MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 2, [(queries.count(1), 1)], [2])
    >>> coins.posterior[0].round(3).tolist()
    [0.269, 0.731]
    """
    (member,) = require_tractable(belief)
    points = integer(length, "length", 1)
    laws = Laws(member, points, joint(releases, member.states, points), range(1, points + 1))
    chain, statistic = laws.chain, laws.statistic
    check_cost(chain, points, statistic, laws.nodes)
    kernel = _log_kernel(statistic, output)
    before = np.array([chain.summed(law, np.sum) for law in marginals(chain, points)])
    moved, nodes, after = [], [], []
    for block in laws.blocks(logs=True):
        likelihood = np.logaddexp.reduce(block.weights + kernel[:, None, None], axis=0)
        top = np.where(block.possible, likelihood, -np.inf).max(axis=1)
        bottom = np.where(block.possible, likelihood, np.inf).min(axis=1)
        joint_weight = logarithm(before[block.nodes - 1]) + likelihood
        total = np.logaddexp.reduce(joint_weight, axis=1, keepdims=True)
        nodes.append(block.nodes)
        moved.append(top - bottom)
        after.append(np.exp(joint_weight - total))
    if not nodes:
        raise UnsupportedError("Under this belief every time point is known; no odds can move.")
    where = np.concatenate(nodes)
    return Odds(
        where, chain.states, before[where - 1], np.concatenate(after), np.concatenate(moved)
    )


def _log_kernel(statistic: JointStatistic, output: Sequence[Number]) -> FloatArray:
    """Log of the noise's density at the output, for every code."""
    answers = listed(output, "output")
    if len(answers) != len(statistic.parts):
        raise InvalidInputError(
            f"The output has {len(answers)} numbers; these releases give {len(statistic.parts)}."
        )
    if not all(statistic.scales):
        raise UnsupportedError("Odds need noise on every integer; a scale here is 0.")
    total = np.zeros(statistic.sizes)
    for axis, (part, scale) in enumerate(zip(statistic.parts, statistic.scales, strict=True)):
        answer = to_fraction(answers[axis], "An output") * part.divisor
        seen = max(Fraction(0), min((answer - part.offset) / part.unit, Fraction(part.size - 1)))
        line = -rate(scale) * np.abs(np.arange(part.size) - float(seen))
        shape = [-1 if j == axis else 1 for j in range(len(statistic.sizes))]
        total = total + line.reshape(shape)
    return total.ravel()
