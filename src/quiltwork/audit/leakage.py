"""Exact leakage: how far an output can move an adversary's odds about one time point.

ε* = max over beliefs, time points i, pairs of states a, b and outputs w of
log [p(w | X_i = a)/p(w | X_i = b)]. It is the true level of a release, where calibration promises
an upper bound.

Theorem: exact-leakage
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quiltwork.audit.laws import check_size
from quiltwork.audit.levels import Laws, Levels, levels
from quiltwork.audit.statistics import Joint, joint
from quiltwork.beliefs import Belief, Label, MarkovChain, as_beliefs
from quiltwork.beliefs.matrices import FloatArray
from quiltwork.beliefs.secrets import read_secrets
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import integer
from quiltwork.queries import Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOISES = ("laplace", "geometric")


@dataclass(frozen=True)
class Leakage:
    """The true level of one or several releases, and the secret and output that reach it.

    Attributes:
        epsilon: ε*, rounded up.
        at_least: ε*, rounded down.
        node: the time point about which most is learnt; None if nothing is unknown.
        states: the state that the output makes likelier, and the one it makes less likely.
        output: the noisy answer that does so, one number per cell.
        belief: the belief that decides, counted from 1.
        nodes: the protected time points.
        per_node: what each of them leaks at most, under the worst belief; rounded up.
    """

    epsilon: float
    at_least: float
    node: int | None
    states: tuple[Label, Label] | None
    output: tuple[int | float, ...]
    belief: int
    nodes: range = field(repr=False)
    per_node: FloatArray = field(repr=False, compare=False)

    def explain(self) -> str:
        """Say who learns what from which output."""
        if self.node is None or self.states is None:
            return "Nothing is learnt: under the beliefs given, no protected time point is unknown."
        shown = self.output[0] if len(self.output) == 1 else self.output
        return (
            f"An adversary who believes chain {self.belief} and sees {shown} moves their odds "
            f"about time point {self.node} between {self.states[0]!r} and {self.states[1]!r} by at "
            f"most a factor of e^{self.epsilon:.6g}."
        )

    def plot(self) -> Figure:
        """Draw what each time point leaks at most; needs the `plot` extra."""
        from quiltwork.audit.plots import leakage_figure

        return leakage_figure(self)


def leakage(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    noise: str = "laplace",
    secrets: tuple[int, int] | None = None,
) -> float:
    """Return the exact leakage ε* of releases with additive noise, rounded up.

    One count, sum, mean or window of one costs O(k·T·V²) for V values: seconds at T = 1,000 with
    two states. Several numbers (a histogram, transition counts, more than one release) are
    followed jointly, which is possible on small cases only.

    Args:
        beliefs: one chain or several, each with a known start; the worst counts.
        length: the number of time points.
        releases: pairs (query, scale): the scale of the noise actually added to every number of
            the answer, in units of the answer, such as `release.scale`. A sum or mean is taken
            exactly, or with `release.query` on the grid that the release used.
        noise: "laplace" or "geometric" (on the grid of the answer); both leak the same.
        secrets: (start, stop), the protected time points; all by default.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.
        UnsupportedError: for beliefs that are no single chains, queries without an additive form,
            and joint laws that are too large; `bracket` answers for those.

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> round(leakage(chain, 100, [(queries.count(1), 12.84)]), 4)
    0.2409

    Theorem: exact-leakage
    """
    return worst_case(beliefs, length, releases, noise, secrets).epsilon


def worst_case(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    noise: str = "laplace",
    secrets: tuple[int, int] | None = None,
) -> Leakage:
    """Return the exact leakage with the secret and the output that reach it; see `leakage`.

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> found = worst_case(chain, 20, [(queries.count(1), 2)])
    >>> round(found.epsilon, 3), found.states, found.output
    (1.726, (1, 0), (20,))

    Theorem: exact-leakage
    """
    if noise not in NOISES:
        raise InvalidInputError(f"noise is {noise!r}; choose 'laplace' or 'geometric'.")
    chains = single_chains(beliefs)
    points = integer(length, "length", 1)
    nodes = read_secrets(secrets, points)
    statistic = joint(releases, chains[0].states, points)
    check_size(chains[0], points, statistic)
    per_belief = [Laws(chain, points, statistic, nodes) for chain in chains]
    return worst_of([levels(laws) for laws in per_belief], chains[0], statistic, nodes)


def worst_of(
    found: Sequence[Iterator[Levels]], chain: MarkovChain, statistic: Joint, nodes: range
) -> Leakage:
    """Pick the worst node over all beliefs."""
    per_node = np.zeros(len(nodes))
    best = Leakage(0.0, 0.0, None, None, (), 1, nodes, per_node)
    for belief, parts in enumerate(found, start=1):
        for part in parts:
            at = part.nodes - nodes.start
            per_node[at] = np.maximum(per_node[at], part.leak)
            worst = int(part.leak.argmax())
            if best.node is None or part.leak[worst] > best.epsilon:
                pair = (chain.states[part.likelier[worst]], chain.states[part.rarer[worst]])
                output = statistic.output(int(part.code[worst]))
                level, node = float(part.leak[worst]), int(part.nodes[worst])
                least = max(0.0, level - 2 * part.margin)
                best = Leakage(level, least, node, pair, output, belief, nodes, per_node)
    return best


def single_chains(beliefs: Any) -> tuple[MarkovChain, ...]:
    """Read beliefs that are single chains with a known start.

    Raises:
        UnsupportedError: for any other belief.
    """
    members = as_beliefs(beliefs)
    for position, belief in enumerate(members, start=1):
        if not isinstance(belief, MarkovChain):
            raise UnsupportedError(
                f"Belief {position} is a {type(belief).__name__}; the exact leakage is that of "
                "one chain or a finite list of chains. Use calibrate or influence_curve for it."
            )
        if isinstance(belief.initial, str) and belief.initial == "any":
            raise UnsupportedError(
                f"Belief {position} has initial='any', every start at once; the exact leakage "
                "needs one. Give initial= a distribution or 'stationary', or list several chains."
            )
    return tuple(belief for belief in members if isinstance(belief, MarkovChain))
