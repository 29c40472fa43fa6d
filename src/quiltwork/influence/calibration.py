"""Calibration: the least noise with which every protected node leaks at most ε.

By the sweep (`docs/theory/sweep.md`), or by quilts as in the papers: σ = max_θ max_i min_Q
change(N)/(ε − e_θ(Q|i)), Algorithm 1 with the sharper cost of the nearby set
(`docs/theory/influence-curve.md`). With the geometric or Laplace mechanism of scale σ on the
integers of the query, every node leaks at most ε under every given belief.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from quiltwork.beliefs import Belief, Gaussian, Label, MarkovChain, as_beliefs
from quiltwork.beliefs.secrets import pairs_to_json, parse_pairs
from quiltwork.errors import InvalidInputError, QuiltworkWarning, UnsupportedError
from quiltwork.exact import Number, float_up, integer, positive_fraction, privacy_level, shortened
from quiltwork.influence.belief_bound import BeliefBound, CalibrationProblem
from quiltwork.influence.calibration_arguments import (
    METHODS,
    NoiseKind,
    answer_unit,
    as_problem,
    bounds_for,
    check_states,
    parse_lengths,
    parse_noise,
)
from quiltwork.influence.profile import Profile, combined, runs_of
from quiltwork.influence.quilts.protocol import InfluenceMethod
from quiltwork.influence.quilts.quilt_bound import QuiltBound
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.audit.node_levels import Laws
    from quiltwork.influence.gaussian_noise import GaussianCalibration
    from quiltwork.influence.optimal_scale import LeastNoise
    from quiltwork.queries.query import Query
    from quiltwork.report.charts import LineChart

OPTIMAL_SCALE = "optimal-scale"


@dataclass(frozen=True)
class ActiveQuilt:
    """The quilt with which a node needs the least noise, under one belief.

    Attributes:
        belief: its number, from 1.
        node: 1-based.
        quilt: the nodes that separate the nearby set from the rest; () if all are nearby.
        influence: its max-influence, rounded up.
        scale: the noise that the node needs with it, as in `Calibration.scale`.
    """

    belief: int
    node: int
    quilt: tuple[int, ...]
    influence: float
    scale: float


@dataclass(frozen=True)
class Calibration(ChartedResult):
    """The noise scale of a query, and the node, belief and influence that determine it.

    Attributes:
        scale: per unit of Lipschitz constant, or with a query the noise to add to its answer, in
            units of the answer; rounded up.
        exact_scale: the same as a fraction at or above the least sufficient scale.
        epsilon: as passed.
        guarantee: the exact privacy level under every given belief: epsilon, except for the method
            "entry" on dependent data, where it is the leakage.
        node: a node that needs the most noise (1-based), the first one of an episode; for "entry"
            one that leaks the most.
        quilt: its best quilt, if the method works by quilts; () is the empty one.
        influence: the leakage through all other nodes: by the sweep what the releases reveal about
            them, by quilts the max-influence of the quilt; rounded up.
        nearby: the number of nodes charged together: those of the episode, or near the quilt.
        change: the sensitivity of the query to these nodes, in integers of the query as passed.
        method: the method that determined the scale.
        belief: the number of the belief that determined it, from 1.
        length: of the series (the longest one).
        unit: the value of one integer of the query in the answer; 1 without a query.
        before: the part of `influence` from earlier nodes; 0 if the method does not separate it.
        leakage: the leakage of "entry" if it exceeds epsilon, rounded up; else 0.
        scales: the scale that each belief needs alone, in order; () if unknown.

    >>> from quiltwork.beliefs import MarkovChain
    >>> calibration = calibrate(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), length=100, epsilon=1)
    >>> round(calibration.scale, 3), calibration.method
    (3.336, 'sweep')
    """

    drawn_at_once = False
    schema = ("calibration", 1)

    scale: float
    exact_scale: Fraction
    epsilon: Number
    node: int
    quilt: tuple[int, ...]
    influence: float
    nearby: int
    change: int
    method: InfluenceMethod
    belief: int
    length: int
    problem: CalibrationProblem = field(repr=False, compare=False)
    bounds: tuple[BeliefBound, ...] = field(repr=False, compare=False)
    unit: Fraction = Fraction(1)
    before: float = 0.0
    leakage: float = 0.0
    scales: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @property
    def guarantee(self) -> Fraction:
        """The privacy level of the noise under every given belief."""
        return max(positive_fraction(self.epsilon, "epsilon"), Fraction(self.leakage))

    @property
    def integer_scale(self) -> Fraction:
        """The scale of the noise on the query's integers, before its grid is refined."""
        return self.exact_scale / self.unit

    def level_kept(self) -> float:
        """The guarantee as a float, rounded up."""
        return float_up(self.guarantee)

    @property
    def states(self) -> tuple[Label, ...] | None:
        """The states of the beliefs; None for beliefs about rows of any kind."""
        return next(
            (bound.belief.states for bound in self.bounds if bound.belief.states is not None), None
        )

    def leak_under(self, beliefs: Belief | Sequence[Belief]) -> tuple[float, int]:
        """Return a bound on the leakage of this noise under other beliefs, and the worst node."""
        # without noise a likelihood ratio may be infinite
        if self.exact_scale == 0:
            raise InvalidInputError(
                "This calibration adds no noise, since no time point had several possible states. "
                "Under other beliefs the exact answer has no leakage bound; calibrate for those."
            )
        return leak_under(beliefs, self.problem, self.integer_scale)

    def for_audit(self) -> tuple[list[tuple[Query, Number]], int, tuple[int, int]] | None:
        """Return the query, its scale, the length and the secrets; None if it cannot be audited."""
        query, nodes = self.problem.query, self.problem.nodes
        if query is None or self.problem.episode > 1:
            return None
        return [(query, self.exact_scale)], self.length, (nodes.start, nodes.stop - 1)

    def per_node(self) -> Profile:
        """Return the scale that each node needs, as runs of nodes with the same scale."""
        level = positive_fraction(self.epsilon, "epsilon")
        profiles = [bound.scale_profile(self.problem, level) for bound in self.bounds]
        return combined(profiles, np.maximum).times(self.unit)

    def active_quilts(self) -> tuple[ActiveQuilt, ...]:
        """Return the active quilt of each node under each belief (Definition 3.2).

        The active quilt is the one with which the node needs the least noise at this level; () is
        the empty quilt. Nodes without a secret are left out. Cost: a search of quilts per node.

        Raises:
            UnsupportedError: for methods that work without quilts.

        >>> from quiltwork.beliefs import MarkovChain
        >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
        >>> quilts = calibrate(chain, 100, 1, "exact").active_quilts()
        >>> quilts[0].quilt, quilts[49].quilt, quilts[99].quilt
        ((5,), (45, 55), (96,))
        """
        if not all(isinstance(bound, QuiltBound) for bound in self.bounds) or not self.bounds:
            raise UnsupportedError(
                f"{argument('method', self.method)} uses no quilts, so no quilt is active; "
                f"calibrate with {argument('method', 'exact')}, 'approx' or 'spectral'."
            )
        level, quilts = positive_fraction(self.epsilon, "epsilon"), []
        for number, bound in enumerate(self.bounds, start=1):
            for node in self.problem.nodes:
                alone = replace(self.problem, nodes=range(node, node + 1))
                worst = bound.required_scale(alone, level)
                if worst.scale:
                    scale = float_up(worst.scale * self.unit)
                    quilts.append(ActiveQuilt(number, node, worst.quilt, worst.influence, scale))
        return tuple(quilts)

    def explain(self) -> str:
        """Return a few lines: which node needs this much noise, and why."""
        return _explanation(self)

    def body(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        return {
            "scale": self.scale,
            "exact_scale": str(self.exact_scale),
            "epsilon": str(positive_fraction(self.epsilon, "epsilon")),
            "guarantee": float_up(self.guarantee),
            "node": self.node,
            "quilt": list(self.quilt),
            "influence": self.influence,
            "before": self.before,
            "episode": self.problem.episode,
            **({} if self.problem.pairs is None else {"pairs": pairs_to_json(self.problem.pairs)}),
            "nearby": self.nearby,
            "change": self.change,
            "method": self.method,
            "belief": self.belief,
            "length": self.length,
        }

    def chart(self) -> LineChart:
        """Return a chart of the scale that each node needs."""
        from quiltwork.report.charts import LineChart, level, steps

        runs = self.per_node().runs
        ends = [run.first - 0.5 for run in runs], runs[-1].last + 0.5
        needed = steps(*ends, [run.scale for run in runs])
        return LineChart(
            "Noise that each time point needs",
            f"The release adds the largest, {self.scale:.4g}.",
            "time point",
            "noise scale",
            (
                replace(needed, name="needed"),
                level(f"scale {self.scale:.4g}", self.scale, [needed]),
            ),
        )


@dataclass(frozen=True)
class OptimalCalibration(Calibration):
    """The least scale whose exact leakage is at most epsilon; `quilt` is empty: none is used."""

    laws: tuple[tuple[Laws, ...], ...] = field(default=(), repr=False, compare=False)
    divisor: int = 1

    def per_node(self) -> Profile:
        """Return the scale that each node needs on its own; about forty audits of the query."""
        from quiltwork.influence.optimal_scale import scales_by_node

        nodes = np.array(self.problem.nodes)
        level = positive_fraction(self.epsilon, "epsilon")
        return runs_of(nodes, nodes, scales_by_node(self.laws, len(nodes), self.divisor, level))

    def explain(self) -> str:
        """Return which node and belief determine the scale, and what it assumes."""
        if self.exact_scale == 0:
            return "Noise scale 0: under the given beliefs the exact answer leaks at most epsilon."
        beliefs = len(self.laws)
        trusted = "the belief given" if beliefs == 1 else f"the {beliefs} beliefs given"
        return (
            f"Noise scale {self.scale:.6g} for epsilon {float(self.epsilon):g} (method "
            f"{OPTIMAL_SCALE}, {self.length} time points).\n"
            f"Node {self.node} under belief {self.belief} determines the noise: with less, some "
            "output would leak more about it.\n"
            f"The scale is exact for {trusted} alone: under a slightly different chain it may leak "
            "more."
        )


@overload
def calibrate(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    method: str | None = None,
    query: Query | None = None,
    secrets: tuple[int, int] | None = None,
    episode: int = 1,
    noise: Literal["geometric"] = "geometric",
    delta: Number = 0,
    releases: int = 1,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> Calibration: ...
@overload
def calibrate(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    method: str | None = None,
    query: Query | None = None,
    secrets: tuple[int, int] | None = None,
    episode: int = 1,
    *,
    noise: Literal["gaussian"],
    delta: Number,
    releases: int = 1,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> GaussianCalibration: ...
def calibrate(
    beliefs: Belief | Sequence[Belief],
    length: int | Sequence[int] | Counter[int] | None,
    epsilon: Number,
    method: str | None = None,
    query: Query | None = None,
    secrets: tuple[int, int] | None = None,
    episode: int = 1,
    noise: NoiseKind = "geometric",
    delta: Number = 0,
    releases: int = 1,
    pairs: Iterable[tuple[Label, Label]] | None = None,
) -> Calibration | GaussianCalibration:
    """Return the least noise scale with which every protected node leaks at most `epsilon`.

    The cost does not grow with the length: a few fixed points of O(k⁴) each for the sweep,
    O(k³·reach) for "exact", O(k³) for the bounds.

    Theorem: docs/theory/sweep.md, docs/theory/influence-curve.md

    Args:
        beliefs: one belief or a list; the scale holds under each of them.
        length: the number of time points; a list for independent subjects that are pooled (the
            longest determines the scale; for "optimal-scale" any of them may), or a Counter of
            such lengths; None for beliefs about fixed rows.
        epsilon: the most that may leak about a node, > 0.
        method: "sweep", or as in the papers "exact", "spectral" (Lemma 2.3), "approx" (the smallest
            sound bound) and "contraction", or a baseline: "group" (everything is nearby) or "entry"
            (nothing else is nearby, which does not protect correlated data: `guarantee` is then
            its leakage). None: the sweep for chains and for networks that are trees, else the
            sharpest quilts. "optimal-scale" is the least noise whose exact leakage is at most
            epsilon: it holds under the given chains alone, and covers the query, or without one
            the count of each state.
        query: the query; the scale is then that of its answer. Without one, any query that moves by
            at most 1 per node.
        secrets: (start, stop), the protected nodes; all by default.
        episode: the number of consecutive time points that form one secret.
        noise: "geometric" for pure epsilon; "gaussian" for (epsilon, delta), where the scale is the
            standard deviation (`docs/theory/f-sweep.md`).
        delta: with Gaussian noise, the probability of a larger leakage; far below one in the number
            of points.
        releases: with Gaussian noise, the number of releases like this one that share (epsilon,
            delta); the scale is that of each.
        pairs: the pairs of secret values, such as [("home", "away")]; all by default. From (a, b)
            and (b, c) it follows that a and c are protected at twice epsilon only, and values in no
            pair may become known. The sweep needs less noise for fewer pairs; methods by quilts
            protect all pairs.

    Raises:
        InvalidInputError: for invalid arguments, with the offending value.
        UnsupportedError: if the method does not support a belief.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    >>> round(calibrate(chain, length=100, epsilon=1).scale, 5)
    3.33641
    >>> quilts = calibrate(chain, length=100, epsilon=1, method="exact")
    >>> round(quilts.scale, 6), quilts.node, quilts.quilt
    (12.934051, 8, (1, 13))
    >>> rooms = MarkovChain([[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])
    >>> [round(calibrate(rooms, 100, 1, pairs=pairs).scale, 3) for pairs in (None, [(0, 1)])]
    [3.336, 1.862]
    >>> year = calibrate(chain, 100, 1, noise="gaussian", delta=1e-6, releases=365)
    >>> round(year.scale)
    269
    """
    if parse_noise(noise, delta):
        from quiltwork.influence.gaussian_noise import gaussian_calibration

        if pairs is not None:
            raise UnsupportedError(
                f"{argument('pairs')} needs geometric noise: Gaussian noise protects all pairs of "
                f"values. Leave it out, or use {argument('noise', 'geometric')}."
            )
        arguments = beliefs, length, epsilon, delta, method, query, secrets, episode, releases
        return gaussian_calibration(*arguments)
    _refuse_several(releases)
    if isinstance(method, str) and method == "optimal-scale":
        from quiltwork.influence.optimal_scale import least_noise

        if pairs is not None:
            raise UnsupportedError(
                f"{argument('method', 'optimal-scale')} protects all pairs of values; with pairs= "
                "leave method out."
            )
        least = least_noise(beliefs, length, epsilon, query, secrets, episode)
        return _optimal(least, epsilon)
    level = privacy_level(epsilon, "epsilon")
    if method is not None and not (isinstance(method, str) and method in METHODS):
        methods = ", ".join((*METHODS, "optimal-scale"))
        raise InvalidInputError(f"method is {shortened(method)}; choose one of {methods}, or None.")
    secret_pairs = parse_pairs(pairs, as_beliefs(beliefs), integer(episode, "episode", 1))
    bounds = bounds_for(beliefs, length, method, secret_pairs)
    points = bounds[0].length
    members = [bound.belief for bound in bounds]
    query = check_states(query, members)
    problem = as_problem(query, points, secrets, episode, secret_pairs)
    answers = [bound.required_scale(problem, level) for bound in bounds]
    # the belief that needs the most noise determines the scale
    scale_index = max(range(len(answers)), key=lambda i: answers[i].scale)
    unit, leakage, belief_index = (
        answer_unit(query, parse_lengths(members, length)),
        0.0,
        scale_index,
    )
    scale = answers[scale_index].scale * unit
    scales = tuple(float_up(bound.scale * unit) for bound in answers)
    # calibrated as if time points were independent: sound bounds give its true leakage
    if method == "entry":
        sound_bounds = bounds_for(members, points, None, secret_pairs)
        leaks = [bound.leakage_of(problem, answers[scale_index].scale) for bound in sound_bounds]
        belief_index = max(range(len(leaks)), key=lambda i: leaks[i][0])
        answers = [answer for _, answer in leaks]
        if leaks[belief_index][0] > float_up(level):
            leakage = leaks[belief_index][0]
            _warn_of_entry(float(scale), leakage)
    worst = answers[belief_index]
    return Calibration(
        scale=float_up(scale),
        exact_scale=scale,
        epsilon=epsilon,
        node=worst.node,
        quilt=worst.quilt,
        influence=worst.influence,
        nearby=worst.nearby,
        change=worst.change,
        method=cast("InfluenceMethod", bounds[scale_index].method),
        belief=belief_index + 1,
        length=points,
        problem=problem,
        bounds=bounds,
        unit=unit,
        before=worst.before,
        leakage=leakage,
        scales=scales,
    )


def _optimal(least: LeastNoise, epsilon: Number) -> OptimalCalibration:
    """The calibration of the least noise by exact leakage."""
    points = least.problem.length
    return OptimalCalibration(
        scale=float_up(least.scale),
        exact_scale=least.scale,
        epsilon=epsilon,
        node=least.node,
        quilt=(),
        influence=0.0,
        nearby=points,
        change=least.problem.charge.change(1, points),
        method=cast("InfluenceMethod", OPTIMAL_SCALE),
        belief=least.belief,
        length=points,
        problem=least.problem,
        bounds=bounds_for(least.chains, points, None),
        unit=least.unit,
        laws=least.laws,
        divisor=least.divisor,
    )


def _refuse_several(releases: Any) -> None:
    """Refuse `releases`, which only Gaussian noise supports."""
    if releases != 1 or isinstance(releases, bool):
        raise InvalidInputError(
            f"releases={shortened(releases)} needs noise='gaussian'. Levels of geometric noise add "
            "up: for K equal releases use K times the scale, or plan them with qw.plan."
        )


def _warn_of_entry(scale: float, leakage: float) -> None:
    """Warn that "entry" does not protect dependent data."""
    warnings.warn(
        f"{argument('method', 'entry')} treats time points as independent. Under the given belief, "
        f"noise of scale {scale:.6g} may leak up to {leakage:.6g} about a time point.",
        QuiltworkWarning,
        stacklevel=3,
    )


def leak_under(
    beliefs: Belief | Sequence[Belief], problem: CalibrationProblem, scale: Fraction
) -> tuple[float, int]:
    """Return a bound on the leakage of noise of this scale about any secret, and the worst node.

    `scale` is that of the noise on the query's integers. Cost: one sweep per belief.

    Theorem: docs/theory/sweep.md

    Raises:
        InvalidInputError: for beliefs about other states or rows.
    """
    bounds = bounds_for(beliefs, problem.length, None, problem.pairs)
    check_states(problem.query, [bound.belief for bound in bounds])
    leaks = [bound.leakage_of(problem, scale) for bound in bounds]
    leak, answer = max(leaks, key=lambda bound: bound[0])
    return leak, answer.node


def _explanation(calibration: Calibration) -> str:
    """Say which node needs the noise, what is spent on it, and what its neighbours add."""
    if calibration.exact_scale == 0:
        return "Noise scale 0: under the given beliefs no protected time point has a secret."
    if calibration.method == "entry":
        return _as_if_independent(calibration)
    if calibration.nearby == 1 or calibration.method not in _BY_NODES:
        needs = f"Node {calibration.node} needs the most."
    else:
        last = calibration.node + calibration.nearby - 1
        needs = f"Nodes {calibration.node} to {last} together need the most."
        if calibration.nearby >= calibration.length:
            needs = "All nodes together need it: less noise would not protect any of them."
    lines = [
        f"Noise scale {calibration.scale:.6g} for epsilon {float(calibration.epsilon):g} "
        f"(method {calibration.method}, {calibration.length} time points).",
        *_protects(calibration),
        needs,
        *(_parts(calibration) if calibration.method in _BY_NODES else _quilt_lines(calibration)),
    ]
    if calibration.method == "sweep" and _alternates(
        calibration.bounds[calibration.belief - 1].belief
    ):
        lines.append(
            "Its states alternate, so the query may leak far less than the worst query with this "
            f"noise: {_alone(calibration)}."
        )
    return "\n".join([*lines, *decisive_belief(calibration)])


def decisive_belief(calibration: Calibration) -> list[str]:
    """Say which of several beliefs determines the noise, and what the others need."""
    if len(calibration.bounds) < 2:
        return []
    other_scales = [
        scale for number, scale in enumerate(calibration.scales, 1) if number != calibration.belief
    ]
    noise = f" The others need noise of scale {max(other_scales):.6g}." if other_scales else ""
    belief = calibration.bounds[calibration.belief - 1].belief
    number = f"{calibration.belief} of {len(calibration.bounds)}"
    return [f"Belief {number} determines the noise: {belief.summary()}.{noise}"]


_BY_NODES = ("sweep", "gaussian")
_SHORT = 500
"""Up to this length the exact calibration of a single release takes half a second at most."""


def _alone(calibration: Calibration) -> str:
    """The noise of a single release by the exact calibration, if that is quick."""
    from quiltwork.influence.optimal_scale import least_noise

    problem, beliefs = calibration.problem, [bound.belief for bound in calibration.bounds]
    hint = 'for a single release compare method="optimal-scale"'
    unsupported = problem.query is None or problem.episode > 1 or problem.pairs is not None
    if unsupported or calibration.length > _SHORT:
        return hint
    nodes = problem.nodes.start, problem.nodes.stop - 1
    arguments = calibration.length, calibration.epsilon, problem.query, nodes
    try:
        least = float_up(least_noise(beliefs, *arguments).scale)
    except UnsupportedError:
        return hint
    return f'a single release needs {least:.6g}, by method="optimal-scale"'


def _alternates(belief: Belief) -> bool:
    """Whether the slowest part of a chain changes its sign at every step."""
    if not isinstance(belief, MarkovChain) or belief.size < 2:
        return False
    eigenvalues = np.linalg.eigvals(np.asarray(belief.transition))
    second = eigenvalues[np.argsort(-np.abs(eigenvalues))[1]]
    return bool(second.real < 0 and abs(second.imag) < 1e-9)


def _protects(calibration: Calibration) -> list[str]:
    """Sentences on what is protected: episodes, pairs of values, differences of numbers."""
    episode, belief = calibration.problem.episode, calibration.bounds[calibration.belief - 1].belief
    lines = [f"Every stretch of {episode} time points is one secret."] if episode > 1 else []
    if calibration.problem.pairs is not None:
        named = ", ".join(f"{a} and {b}" for a, b in calibration.problem.pairs)
        lines.append(f"Secret pairs of values: {named}. Other values may become known.")
    if isinstance(belief, Gaussian):
        apart = "the range" if belief.within is None else f"{float(belief.within):g}"
        lines.append(f"True differences of at most {apart} are hidden, whatever was recorded.")
    return lines


def _parts(calibration: Calibration) -> list[str]:
    """The level spent on the node itself, and the leakage through its neighbours."""
    if str(calibration.method) == "gaussian":
        return [
            f"Spent there: {float(calibration.epsilon) - calibration.influence:.6g}. The others "
            "move with it, "
            f"which adds {neighbours_text(calibration.influence, calibration.before)}.",
        ]
    own = float(calibration.change * calibration.unit / calibration.exact_scale)
    return [
        f"Spent there: {own:.6g}, since it moves the answer by up to {_in_units(calibration)}.",
        f"Neighbours add {neighbours_text(calibration.influence, calibration.before)}: the most "
        "that the answer reveals about them, passed on by the belief.",
    ]


def neighbours_text(influence: float, before: float) -> str:
    """The leakage through neighbours; in a tree they are neither before nor after the node."""
    if not before:
        return f"{influence:.6g}"
    return f"{before:.6g} from before and {max(0.0, influence - before):.6g} from after"


def _quilt_lines(calibration: Calibration) -> list[str]:
    """The best quilt and the formula of the scale."""
    return [
        _quilt(calibration),
        f"Scale: {_in_units(calibration)} / "
        f"({float(calibration.epsilon):g} − {calibration.influence:.6g}).",
    ]


def _as_if_independent(calibration: Calibration) -> str:
    """The explanation of the baseline "entry", with its true leakage."""
    level = f"{float(calibration.epsilon):g}"
    claim = (
        f"Noise scale {calibration.scale:.6g} for epsilon {level} if time points were independent "
        f"(method entry, {calibration.length} time points)."
    )
    if not calibration.leakage:
        return f"{claim}\nUnder the given beliefs they are independent, so this level holds."
    return (
        f"{claim}\nUnder the given beliefs they are not: up to {calibration.leakage:.6g} may leak "
        f"about node {calibration.node}, so time points are not protected with epsilon {level}."
    )


def _quilt(calibration: Calibration) -> str:
    """A sentence on the best quilt and its nearby set."""
    is_single = calibration.nearby == 1
    points, are = ("time point", "is") if is_single else ("time points", "are")
    counts, they = ("counts", "moves") if is_single else ("count", "they move")
    moves = f"{they} the answer by up to {_in_units(calibration)}"
    if not calibration.quilt:
        return (
            f"Its best quilt is empty: {calibration.nearby} {points} {counts} as nearby and "
            f"{moves}; no other time point has influence."
        )
    names = ", ".join(f"X_{node}" for node in calibration.quilt)
    return (
        f"Its best quilt is {{{names}}}: {calibration.nearby} {points} {are} nearby and {moves}; "
        f"the influence of the rest is at most {calibration.influence:.6g}."
    )


def _in_units(calibration: Calibration) -> str:
    """The sensitivity of the answer, in its own units."""
    change = calibration.change * calibration.unit
    return str(change) if change.denominator == 1 else f"{float(change):.6g}"
