"""Exact leakage: the largest factor by which an output can change the odds about a time point.

ε* = max over beliefs, time points i, pairs of states a, b and outputs w of
log [p(w | X_i = a)/p(w | X_i = b)]. It is the true privacy loss of a release, for which calibration
promises an upper bound.

Theorem: docs/theory/exact-leakage.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from quiltwork.arguments import choice
from quiltwork.audit.additive import joint
from quiltwork.audit.ends import Ends, TiltedChain, sorted_union
from quiltwork.audit.gaussian_leakage import gaussian_leakage
from quiltwork.audit.inner import require_tractable
from quiltwork.audit.laws import check_cost
from quiltwork.audit.node_levels import Laws, levels, rate
from quiltwork.audit.power_iteration import OutOfRangeError
from quiltwork.beliefs import Belief, Label
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.secrets import parse_secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_down, integer, proper_fraction
from quiltwork.queries import Query
from quiltwork.report.charts import LineChart, level, steps
from quiltwork.results import ChartedResult, plain

NOISES = ("laplace", "geometric")
_MOST_NODES = 10**8
_MOST_CELLS = 12
_LARGEST_LOG = 690.0


@dataclass(frozen=True)
class Leakage(ChartedResult):
    """The exact leakage of one or several releases, with the secret and output that reach it.

    Attributes:
        epsilon: ε*, rounded up.
        at_least: ε*, rounded down.
        node: the time point that leaks the most; None if nothing is unknown.
        states: the state that the output makes likelier, and the one it makes less likely.
        output: the noisy answer, one number per cell.
        belief: the belief that decides, counted from 1.
        nodes: the protected time points.
        starts: the first time point of each run with the same leakage.
        levels: the leakage of each run under the worst belief, rounded up.
    """

    epsilon: float
    at_least: float
    node: int | None
    states: tuple[Label, Label] | None
    output: tuple[int | float, ...]
    belief: int
    nodes: range = field(repr=False)
    starts: IntArray = field(repr=False, compare=False)
    levels: FloatArray = field(repr=False, compare=False)

    @property
    def per_node(self) -> FloatArray:
        """The leakage of each protected time point under the worst belief, rounded up."""
        if len(self.nodes) > _MOST_NODES:
            raise UnsupportedError(
                f"There are {len(self.nodes):,} protected time points, too many to list; `levels` "
                "holds the leakage of runs of them, which begin at `starts`."
            )
        return np.repeat(self.levels, np.diff(np.append(self.starts, self.nodes.stop)))

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, with the leakage of each run of time points."""
        return {**super().body(), "per_node": plain(self.records())}

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run of protected time points with the same leakage."""
        lasts = [*(self.starts[1:] - 1).tolist(), self.nodes.stop - 1]
        runs = zip(self.starts.tolist(), lasts, self.levels.tolist(), strict=True)
        return [{"first": a, "last": b, "epsilon": level} for a, b, level in runs]

    def explain(self) -> str:
        """State the worst output, the secret and the factor of the odds."""
        if self.epsilon == math.inf and self.node is None:
            return "The leakage was not computed: the series is too long under this belief."
        if self.node is None or self.states is None:
            return "Nothing leaks: under the beliefs given, no protected time point is unknown."
        likelier, rarer = self.states
        return (
            f"Worst case: the answer {_shown(self.output)} changes the odds of {likelier} against "
            f"{rarer} at time point {self.node:,}{_under(self.belief)} by a factor of "
            f"{_factor(self.epsilon)} (e^{self.epsilon:.6g})."
        )

    def chart(self) -> LineChart:
        """Return the leakage of each protected time point as a chart."""
        leaked = steps(self.starts - 0.5, self.nodes.stop - 0.5, self.levels)
        return LineChart(
            f"Exact leakage: {self.epsilon:.4g}",
            self.explain(),
            "time point",
            "leakage (log of the odds factor)",
            (leaked, level("", self.epsilon, [leaked])),
        )


def _shown(output: tuple[int | float, ...]) -> str:
    """Return an answer in words; of many cells the first few."""
    if len(output) == 1:
        return f"{output[0]:,.10g}"
    cells = ", ".join(f"{value:,.10g}" for value in output[:_MOST_CELLS])
    return f"({cells}{', …' if len(output) > _MOST_CELLS else ''})"


def _under(belief: int) -> str:
    return "" if belief == 1 else f" under belief {belief}"


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.4g}" if epsilon < _LARGEST_LOG else "more than 10^300"


def leakage(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    noise: str = "laplace",
    secrets: tuple[int, int] | None = None,
    episode: int = 1,
    delta: Number = 0,
) -> float:
    """Return the exact leakage ε* of releases with additive noise, rounded up.

    Counts, sums and means on chains that are monotone in an order in which the answers rise (for
    example two states with P₀₀ ≥ P₁₀) take milliseconds at any length, several of them together
    too; with a matrix per phase, microseconds per time point. Otherwise the law of the answer is
    computed: O(k·T·V²) for V values and k (inner) states, seconds at T = 2,000 with two states;
    several numbers (a histogram, transition counts) jointly, for small cases only.

    Args:
        beliefs: one chain of any kind or several, each with a known start; the worst counts. For
            hidden chains, secrets and queries are about the shown states.
        length: the number of time points.
        releases: pairs (query, scale): the scale of the noise actually added to every number of
            the answer, in units of the answer, such as `release.scale`. A sum or mean is taken
            exactly, or with `release.query` on the grid that the release used.
        noise: "laplace" or "geometric" (on the grid of the answer); both leak the same. With
            "gaussian" and a delta the scale is σ of one number, and the answer the least ε at
            which delta is kept.
        secrets: (start, stop), the protected time points; all by default.
        episode: the number of consecutive time points that form one secret. Laws are given every
            sequence of states, so for few states and few time points.
        delta: with Gaussian noise, the δ of (ε, δ).

    Raises:
        InvalidInputError: for invalid arguments, with the offending value.
        UnsupportedError: for beliefs that are not single chains, queries that are not additive,
            and laws that are too large, with their cost; `report` and `misspecification` give
            bounds there.

    >>> from quiltwork import MarkovChain, queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> round(leakage(chain, 100, [(queries.count(1), 12.84)]), 4)
    0.2409

    Theorem: docs/theory/exact-leakage.md
    """
    kept_delta = _parse_delta(noise, delta)
    if integer(episode, "episode", 1) == 1 and not kept_delta:
        return worst_case(beliefs, length, releases, noise, secrets).epsilon
    chains = require_tractable(beliefs)
    points = integer(length, "length", 1)
    nodes = parse_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    # Longer episodes than the protected window are the window itself.
    width = min(episode, len(nodes))
    blocks = (points - width + 1, statistic, range(nodes.start, nodes.stop - width + 1), width)
    if kept_delta:
        return max(gaussian_leakage(Laws(chain, *blocks), kept_delta) for chain in chains)
    return max(leakage_by_laws(Laws(chain, *blocks)).epsilon for chain in chains)


def _parse_delta(noise: str, delta: Number) -> float:
    """Return δ of Gaussian noise, rounded down; 0 for the other kinds."""
    if choice(noise, (*NOISES, "gaussian"), "noise") == "gaussian":
        if not isinstance(delta, bool) and delta == 0:
            raise InvalidInputError("Gaussian noise has an (ε, δ) guarantee: give delta=1e-6.")
        return float_down(proper_fraction(delta, "delta"))
    if delta:
        raise InvalidInputError(
            "delta is for noise='gaussian'; laplace and geometric noise have none. Leave it out."
        )
    return 0.0


def worst_case(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    noise: str = "laplace",
    secrets: tuple[int, int] | None = None,
) -> Leakage:
    """Return the exact leakage with the secret and output that reach it; arguments as `leakage`.

    >>> from quiltwork import MarkovChain, queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> worst = worst_case(chain, 20, [(queries.count(1), 2)])
    >>> round(worst.epsilon, 3), worst.states, worst.output
    (1.726, (1, 0), (20,))

    Theorem: docs/theory/exact-leakage.md
    """
    choice(noise, NOISES, "noise")
    chains = require_tractable(beliefs)
    points = integer(length, "length", 1)
    nodes = parse_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    return worst_leakage([exact_leakage(Laws(chain, points, statistic, nodes)) for chain in chains])


def exact_leakage(laws: Laws) -> Leakage:
    """Return the leakage under one belief: at the two ends where they decide, else by laws.

    Raises:
        TooLargeError: if the ends may not decide and the law is out of reach.
    """
    series = TiltedChain(laws)
    if series.order is not None:
        # Where floats do not hold the moments of the ends, the law is computed instead.
        with suppress(OutOfRangeError):
            ends = series.ends([rate(scale) for scale in laws.statistic.scales])
            if series.exact(ends):
                return leakage_at_ends(ends, laws)
    return leakage_by_laws(laws)


def leakage_at_ends(ends: Ends, laws: Laws) -> Leakage:
    """Return the leakage of the ends: the exact one if no output in between leaks more."""
    worst = int(ends.leak.argmax())
    level = float(ends.leak[worst])
    if level == 0:
        return _nothing(laws.nodes)
    signs = np.sign(ends.tilts[0 if ends.upper[worst] else 1].rates)
    sizes = laws.statistic.sizes
    values = [size - 1 if sign > 0 else 0 for size, sign in zip(sizes, signs, strict=True)]
    states = laws.chain.states
    return Leakage(
        level,
        max(0.0, level - 2 * float(ends.margin[worst])),
        int(ends.starts[worst]),
        (states[ends.likelier[worst]], states[ends.rarer[worst]]),
        laws.statistic.answers(values),
        1,
        laws.nodes,
        ends.starts,
        ends.leak,
    )


def leakage_by_laws(laws: Laws, logs: bool = False) -> Leakage:
    """Return the leakage under one belief from the law of the answer at every node.

    Raises:
        TooLargeError: if the law is out of reach.
    """
    check_cost(laws.chain, laws.length, laws.statistic, laws.nodes)
    per_node = np.zeros(len(laws.nodes))
    best, states = _nothing(laws.nodes), laws.chain.states
    starts = np.arange(laws.nodes.start, laws.nodes.stop)
    for part in levels(laws, logs):
        per_node[part.nodes - laws.nodes.start] = part.leak
        worst = int(part.leak.argmax())
        level = float(part.leak[worst])
        if best.node is None or level > best.epsilon:
            best = Leakage(
                level,
                max(0.0, level - 2 * part.margin),
                int(part.nodes[worst]),
                (states[part.likelier[worst]], states[part.rarer[worst]]),
                laws.statistic.output(int(part.code[worst])),
                1,
                laws.nodes,
                starts,
                per_node,
            )
    return best


def _nothing(nodes: range) -> Leakage:
    first = np.array([nodes.start])
    return Leakage(0.0, 0.0, None, None, (), 1, nodes, first, np.zeros(1))


def undetermined(nodes: range) -> Leakage:
    """Return a leakage that is not known: anything from 0 to infinity."""
    first = np.array([nodes.start])
    return Leakage(math.inf, 0.0, None, None, (), 1, nodes, first, np.full(1, np.inf))


def worst_leakage(leakages: Sequence[Leakage], at_least: bool = False) -> Leakage:
    """Return the largest leakage of several beliefs, with their maximum node by node."""
    levels = [leak.at_least if at_least else leak.epsilon for leak in leakages]
    belief = levels.index(max(levels))
    starts = sorted_union([leak.starts for leak in leakages])
    # Each belief has runs of its own; the union of their starts is a common refinement.
    each = [
        leak.levels[np.searchsorted(leak.starts, starts, side="right") - 1] for leak in leakages
    ]
    return replace(leakages[belief], belief=belief + 1, starts=starts, levels=np.max(each, axis=0))
