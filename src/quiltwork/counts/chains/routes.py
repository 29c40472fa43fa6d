"""Every route to a private count side by side, at equal proven epsilon.

Each row says what its error is, what it really leaks, what slightly wrong beliefs would leak, what
a ledger charges for it, and for whom its promise holds. Entry DP is shown as what it is: not
private on dependent data. Noise is also shown clipped to 0..n and remapped for the consumer, which
is post-processing and keeps its level.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from quiltwork.arguments import instance, listed
from quiltwork.audit import leakage
from quiltwork.audit.inner import single_chains
from quiltwork.audit.levels import Laws
from quiltwork.beliefs import Belief, MarkovChain
from quiltwork.counts.chains.mechanism import LARGEST, optimal_for_chain
from quiltwork.counts.chains.robustness import read_distance, shifted_chains
from quiltwork.counts.chains.tables import statistic_of
from quiltwork.counts.consumers.consumer import Consumer
from quiltwork.counts.geometric import GeometricMechanism
from quiltwork.counts.levels import alpha_for_epsilon
from quiltwork.errors import QuiltworkWarning, UnsupportedError
from quiltwork.exact import Number, integer, positive_fraction
from quiltwork.influence import calibrate
from quiltwork.noise import TwoSidedGeometric
from quiltwork.queries import Count, Query
from quiltwork.report.charts import BarChart
from quiltwork.results import ResultBase, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = {
    "entry": ("entry DP", "nobody: it ignores what other time points betray"),
    "group": ("group DP", "any dependence at all"),
    "spectral": ("quilts, spectral bound", "every start of these chains"),
    "approx": ("quilts, best bound", "every start of these chains"),
    "exact": ("quilts, exact influence", "these chains; composes by levels"),
    "sweep": ("sweep", "these chains; composes by the sweep"),
    "optimal-scale": ("exact calibration", "these chains only"),
}


@dataclass(frozen=True)
class Route:
    """One route.

    Attributes:
        route: its name.
        error: the expected error: of the noise itself, or the consumer's loss after its remap.
        private: whether its level is proven to be at most epsilon under the beliefs.
        level: what it really leaks under the beliefs.
        nearby: the largest level found at chains within the distance of the beliefs.
        dp_epsilon: its level for replacing one time point; infinite if it has none.
        scope: for whom the promise holds.
    """

    route: str
    error: float
    private: bool
    level: float
    nearby: float
    dp_epsilon: float
    scope: str


@dataclass(frozen=True)
class RouteComparison(ResultBase):
    """All routes at one epsilon, the largest error first."""

    epsilon: float
    length: int
    distance: float
    rows: tuple[Route, ...] = field(repr=False)

    def __getitem__(self, route: str) -> Route:
        """Return a row by the name of its route."""
        return next(row for row in self.rows if row.route == route)

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        """Return the header and the rows, for tables and files."""
        header = ("route", "error", "private", "level", "nearby", "dp_epsilon", "scope")
        return header, tuple(tuple(getattr(row, name) for name in header) for row in self.rows)

    def body(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {**super().body(), "routes": plain(self.records())}

    def records(self) -> list[dict[str, Any]]:
        """Return a row per route."""
        header, rows = self.table()
        return [dict(zip(header, row, strict=True)) for row in rows]

    def explain(self) -> str:
        """Say what each route costs, the largest error first."""
        return "\n".join(
            f"{row.route}: expected error {row.error:.6g}"
            + ("" if row.private else ", not private here")
            for row in self.rows
        )

    def chart(self) -> BarChart:
        """Return the errors as bars, those of routes that are not private here as outlines."""
        shown = {row: row.route + " (not private here)" * (not row.private) for row in self.rows}
        return BarChart(
            f"A count of {self.length} time points at epsilon {self.epsilon:g}",
            "The expected error of every route at equal proven epsilon, the largest first.",
            "expected absolute error",
            tuple((name, row.error) for row, name in shown.items()),
            log=True,
            hollow=tuple(name for row, name in shown.items() if not row.private),
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors as bars; needs the `plot` extra."""
        from quiltwork.report.plots import draw

        return draw(self.chart(), ax)


def compare_routes(
    beliefs: Belief | Sequence[Belief],
    length: int,
    epsilon: Number,
    query: Count,
    user: Consumer | None = None,
    caps: Sequence[Number] = (2, 1),
    distance: float = 0.02,
) -> RouteComparison:
    """Compare all routes to a private count at equal proven epsilon.

    Args:
        beliefs: one chain or several with known starts.
        length: the number of time points.
        epsilon: what an answer may tell about any time point.
        query: `queries.count(state)`.
        user: whose loss is minimised by remaps and programs; by default absolute error under the
            first belief's own distribution of counts.
        caps: plain levels to which the optimal mechanism is capped, besides no cap.
        distance: how far from the beliefs to look for chains that leak more.

    Cost: one audit per route and nearby chain, and one program per cap (n ≤ 120).

    >>> from quiltwork import queries
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[0.8, 0.2])
    >>> found = compare_routes(chain, 8, 1, queries.count(1), caps=[2])
    >>> found["entry DP"].private, found["optimal mechanism"].error == found.rows[-1].error
    (False, True)
    """
    chains = single_chains(beliefs)
    level = positive_fraction(epsilon, "epsilon")
    length = integer(length, "length", 1)
    n = statistic_of(instance(query, Count, "query"), chains[0], length).cells - 1
    caps = [positive_fraction(cap, "A cap") for cap in listed(caps, "caps")]
    distance = read_distance(distance)
    own = user is None and Consumer(_own_counts(chains[0], length, query))
    consumer = instance(own or user, Consumer, "user")
    around = [other for chain in chains for other in shifted_chains(chain, distance)]
    rows: list[Route] = []
    for method, (name, scope) in METHODS.items():
        try:
            scale = noise_scale(chains, length, level, query, method)
        except UnsupportedError:
            continue
        release = [(query, scale)]
        true = leakage(chains, length, release)
        near = max([true, *(leakage(chain, length, release) for chain in around)])
        plain = 1 / float(scale) if scale else float("inf")
        told = (method != "entry", true, near, plain, scope)
        face = TwoSidedGeometric.from_scale(scale).expected_absolute
        rows.append(Route(name, face, *told))
        rows.append(Route(f"{name}, remapped", remapped_loss(scale, n, consumer), *told))
    for cap in (*caps, None) if n <= LARGEST else ():
        found = optimal_for_chain(chains, length, level, consumer, query, cap)
        true = found.leakage()
        near = max([true, *(found.leakage(chain) for chain in around)])
        name = "optimal mechanism" if cap is None else f"optimal mechanism, cap {float(cap):g}"
        scope = "these chains only" + ("; nothing may follow" if cap is None else "")
        plain = float("inf") if cap is None else float(cap)
        rows.append(Route(name, found.expected_loss, True, true, near, plain, scope))
    ordered = sorted(rows, key=lambda row: -row.error)
    return RouteComparison(float(level), length, distance, tuple(ordered))


def _own_counts(chain: MarkovChain, length: int, query: Count) -> Any:
    """Return the chain's own distribution of the count; uniform where nothing is uncertain."""
    laws = Laws(chain, length, statistic_of(query, chain, length), range(1, length + 1))
    for block in laws.blocks(logs=False):
        return block.weights[:, 0] @ chain.marginal(int(block.nodes[0]))
    return "uniform"


def noise_scale(
    beliefs: Belief | Sequence[Belief], length: int, epsilon: Number, query: Query, method: str
) -> Fraction:
    """Return the scale of geometric noise by a method, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuiltworkWarning)
        return calibrate(beliefs, length, epsilon, method, query).exact_scale


def remapped_loss(scale: Fraction, n: int, user: Consumer) -> float:
    """Return what the consumer loses with noise of this scale, clipped to 0..n and remapped."""
    alpha = alpha_for_epsilon(1 / scale) if scale else Fraction(0)
    return GeometricMechanism(n, alpha=alpha).remap(user).expected_loss
