"""Exact leakage: how far an output can move an adversary's odds about one time point.

ε* = max over beliefs, time points i, pairs of states a, b and outputs w of
log [p(w | X_i = a)/p(w | X_i = b)]. It is the true level of a release, where calibration promises
an upper bound.

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
from quiltwork.audit.inner import followed
from quiltwork.audit.laws import check_cost
from quiltwork.audit.node_levels import Laws, levels, rate
from quiltwork.audit.orbits import OutOfRangeError
from quiltwork.beliefs import Belief, Label
from quiltwork.beliefs.matrices import FloatArray, IntArray
from quiltwork.beliefs.secrets import read_secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, float_down, integer, proper_fraction
from quiltwork.queries import Query
from quiltwork.report.charts import LineChart, level, steps
from quiltwork.results import ChartedResult, plain

NOISES = ("laplace", "geometric")
_MOST_NODES = 10**8


@dataclass(frozen=True)
class Leakage(ChartedResult):
    """The true level of one or several releases, and the secret and output that reach it.

    Attributes:
        epsilon: ε*, rounded up.
        at_least: ε*, rounded down.
        node: the time point about which most is learnt; None if nothing is unknown.
        states: the state that the output makes likelier, and the one it makes less likely.
        output: the noisy answer that does so, one number per cell.
        belief: the belief that decides, counted from 1.
        nodes: the protected time points.
        starts: the first time point of each run of them that leak the same …
        levels: … and what these leak at most, under the worst belief; rounded up.
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
        """What each protected time point leaks at most, under the worst belief; rounded up."""
        if len(self.nodes) > _MOST_NODES:
            raise UnsupportedError(
                f"There are {len(self.nodes):,} protected time points, too many to list; `levels` "
                "holds what runs of them leak, which begin at `starts`."
            )
        return np.repeat(self.levels, np.diff(np.append(self.starts, self.nodes.stop)))

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, with what each run of time points leaks."""
        return {**super().body(), "per_node": plain(self.records())}

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run of protected time points that leak the same."""
        lasts = [*(self.starts[1:] - 1).tolist(), self.nodes.stop - 1]
        found = zip(self.starts.tolist(), lasts, self.levels.tolist(), strict=True)
        return [{"first": a, "last": b, "epsilon": level} for a, b, level in found]

    def explain(self) -> str:
        """Say who learns what from which output."""
        if self.epsilon == math.inf and self.node is None:
            return "No output was followed: the series is too long for that under this belief."
        if self.node is None or self.states is None:
            return "Nothing is learnt: under the beliefs given, no protected time point is unknown."
        shown = self.output[0] if len(self.output) == 1 else self.output
        return (
            f"An adversary who believes chain {self.belief} and sees {shown} moves their odds "
            f"about time point {self.node} between {self.states[0]!r} and {self.states[1]!r} by at "
            f"most a factor of e^{self.epsilon:.6g}."
        )

    def chart(self) -> LineChart:
        """Return what each protected time point leaks at most, as a chart."""
        leaked = steps(self.starts - 0.5, self.nodes.stop - 0.5, self.levels)
        return LineChart(
            f"Exact leakage: {self.epsilon:.4g}",
            self.explain(),
            "time point",
            "largest log odds factor",
            (leaked, level("", self.epsilon, [leaked])),
        )


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

    Counts, sums and means on chains that keep an order in which they rise (two states with
    P₀₀ ≥ P₁₀, for one) take milliseconds at any length, also several of them together; if all
    matrices of a day do, microseconds per time point. Otherwise the law of the answer is followed:
    O(k·T·V²) for V values and k (inner) states, seconds at T = 2,000 with two states; several
    numbers (a histogram, transition counts) jointly, on small cases only.

    Args:
        beliefs: one chain of any kind or several, each with a known start; the worst counts. Of
            hidden chains, secrets and queries are about what they show.
        length: the number of time points.
        releases: pairs (query, scale): the scale of the noise actually added to every number of
            the answer, in units of the answer, such as `release.scale`. A sum or mean is taken
            exactly, or with `release.query` on the grid that the release used.
        noise: "laplace" or "geometric" (on the grid of the answer); both leak the same. With
            "gaussian" and a delta the scale is σ of one number, and the answer the least ε at
            which delta is kept.
        secrets: (start, stop), the protected time points; all by default.
        episode: how many of them in a row are one secret; by laws of all their sequences, so of
            few states and few time points.
        delta: with Gaussian noise, the chance that is left for more than the answer.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.
        UnsupportedError: for beliefs that are no single chains, queries without an additive form,
            and laws that are too large, with their cost; `report` and `misspecification` give
            bounds there.

    >>> from quiltwork import MarkovChain, queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> round(leakage(chain, 100, [(queries.count(1), 12.84)]), 4)
    0.2409

    Theorem: docs/theory/exact-leakage.md
    """
    left = _read_delta(noise, delta)
    if integer(episode, "episode", 1) == 1 and not left:
        return worst_case(beliefs, length, releases, noise, secrets).epsilon
    chains = followed(beliefs)
    points = integer(length, "length", 1)
    nodes = read_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    width = min(episode, len(nodes))
    blocks = (points - width + 1, statistic, range(nodes.start, nodes.stop - width + 1), width)
    if left:
        return max(gaussian_leakage(Laws(chain, *blocks), left) for chain in chains)
    return max(by_laws(Laws(chain, *blocks)).epsilon for chain in chains)


def _read_delta(noise: str, delta: Number) -> float:
    """δ of Gaussian noise, rounded down; 0 for the others, which have none."""
    if choice(noise, (*NOISES, "gaussian"), "noise") == "gaussian":
        if not isinstance(delta, bool) and delta == 0:
            raise InvalidInputError("Gaussian noise keeps (ε, δ): give delta, such as 1e-6.")
        return float_down(proper_fraction(delta, "delta"))
    if delta:
        raise InvalidInputError("delta goes with noise='gaussian'; leave it out.")
    return 0.0


def worst_case(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    noise: str = "laplace",
    secrets: tuple[int, int] | None = None,
) -> Leakage:
    """Return the exact leakage with the secret and the output that reach it; see `leakage`.

    >>> from quiltwork import MarkovChain, queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> found = worst_case(chain, 20, [(queries.count(1), 2)])
    >>> round(found.epsilon, 3), found.states, found.output
    (1.726, (1, 0), (20,))

    Theorem: docs/theory/exact-leakage.md
    """
    choice(noise, NOISES, "noise")
    chains = followed(beliefs)
    points = integer(length, "length", 1)
    nodes = read_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    found = [exact_leakage(Laws(chain, points, statistic, nodes)) for chain in chains]
    return worst_of(found)


def exact_leakage(laws: Laws) -> Leakage:
    """The level under one belief: at the two ends where no output tells more, else by its law.

    Raises:
        TooLargeError: if the ends may not decide and the law is out of reach.
    """
    series = TiltedChain(laws)
    if series.order is not None:
        with suppress(OutOfRangeError):
            found = series.ends([rate(scale) for scale in laws.statistic.scales])
            if series.exact(found):
                return at_ends(found, laws)
    return by_laws(laws)


def at_ends(found: Ends, laws: Laws) -> Leakage:
    """What the ends tell, as a level: the exact one where no output tells more."""
    worst = int(found.leak.argmax())
    level = float(found.leak[worst])
    if level == 0:
        return _nothing(laws.nodes)
    signs = np.sign(found.tilts[0 if found.upper[worst] else 1].rates)
    sizes = laws.statistic.sizes
    ends = [size - 1 if sign > 0 else 0 for size, sign in zip(sizes, signs, strict=True)]
    states = laws.chain.states
    return Leakage(
        level,
        max(0.0, level - 2 * float(found.margin[worst])),
        int(found.starts[worst]),
        (states[found.likelier[worst]], states[found.rarer[worst]]),
        laws.statistic.answers(ends),
        1,
        laws.nodes,
        found.starts,
        found.leak,
    )


def by_laws(laws: Laws, logs: bool = False) -> Leakage:
    """The level under one belief from the law of the answer at every node; see `levels`.

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


def not_followed(nodes: range) -> Leakage:
    """Nothing was found out: the level is anything from 0 on."""
    first = np.array([nodes.start])
    return Leakage(math.inf, 0.0, None, None, (), 1, nodes, first, np.full(1, np.inf))


def worst_of(found: Sequence[Leakage], at_least: bool = False) -> Leakage:
    """The worst of several beliefs, and the worst of them node by node."""
    levels = [one.at_least if at_least else one.epsilon for one in found]
    belief = levels.index(max(levels))
    starts = sorted_union([one.starts for one in found])
    each = [one.levels[np.searchsorted(one.starts, starts, side="right") - 1] for one in found]
    return replace(found[belief], belief=belief + 1, starts=starts, levels=np.max(each, axis=0))
