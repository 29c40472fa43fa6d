"""Calibration: the least noise with which every protected node leaks at most ε.

By the sweep (`docs/theory/sweep.md`), or as in the papers by quilts: σ = max_θ max_i min_Q
change(N)/(ε − e_θ(Q|i)), Algorithm 1 with the sharper cost of what is nearby
(`docs/theory/influence-curve.md`). With the geometric or Laplace mechanism of scale σ on the
integers of the query, every node leaks at most ε under every belief given.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np

from quiltwork.beliefs import Belief, Label, as_beliefs
from quiltwork.beliefs.secrets import pairs_to_json, read_pairs
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
from quiltwork.influence.profile import Profile, combined
from quiltwork.influence.quilts.protocol import InfluenceMethod
from quiltwork.influence.quilts.quilt_bound import QuiltBound
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

if TYPE_CHECKING:
    from quiltwork.influence.gaussian_noise import GaussianCalibration
    from quiltwork.queries.query import Query
    from quiltwork.report.charts import LineChart


@dataclass(frozen=True)
class ActiveQuilt:
    """The quilt with which a node needs the least noise, under one belief.

    Attributes:
        belief: counted from 1.
        node: 1-based.
        quilt: what separates the nearby nodes from the rest; () if all are nearby.
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
    """The noise scale and why it is needed.

    Attributes:
        scale: per unit of Lipschitz constant, or with a query the noise to add to its answer, in
            units of the answer; rounded up.
        exact_scale: the same as a fraction at or above the least sufficient scale.
        epsilon: as it was given.
        guarantee: what the noise keeps under every belief given, exactly: epsilon, and with method
            "entry" on data that depend on each other whatever it may leak there.
        node: a node that needs the most noise (1-based), the first one of an episode; for "entry"
            one that leaks the most.
        quilt: its best quilt, where the method works by quilts; () is the empty one.
        influence: what all other nodes add to its leakage: by the sweep what the releases tell
            about them, by quilts the max-influence of the quilt; rounded up.
        nearby: how many nodes are paid for at once: those of the episode, or near the quilt.
        change: how far they can move the query, in integers of the query as it was given.
        method: how influence was computed for the belief that decided.
        belief: which belief decided, counted from 1.
        length: of the series (the longest one).
        unit: what one integer of the query is worth in the answer; 1 without a query.
        before: of `influence`, what earlier nodes add; 0 where the method does not say.
        leakage: what "entry" may leak where that is more than epsilon, rounded up; else 0.
        scales: what each of the beliefs asks for alone, in their order; () where it is not known.
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
        """The level that the noise keeps under every belief given."""
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
        """The states of the beliefs; None where they are about rows of any kind."""
        return next((o.belief.states for o in self.bounds if o.belief.states is not None), None)

    def leak_under(self, beliefs: Belief | Sequence[Belief]) -> tuple[float, int]:
        """Return a bound on what this noise tells under other beliefs, and the worst node."""
        if self.exact_scale == 0:
            raise InvalidInputError(
                "This calibration adds no noise, since nothing was unknown; under other beliefs "
                "the answer tells whatever it says."
            )
        return leak_under(beliefs, self.problem, self.integer_scale)

    def for_audit(self) -> tuple[list[tuple[Query, Number]], int, tuple[int, int]] | None:
        """Return the query, its scale, the length and the secrets, for one that can be audited."""
        query, nodes = self.problem.query, self.problem.nodes
        if query is None or self.problem.episode > 1:
            return None
        return [(query, self.exact_scale)], self.length, (nodes.start, nodes.stop - 1)

    def per_node(self) -> Profile:
        """Return the scale that each node needs, as runs of nodes with the same scale."""
        level = positive_fraction(self.epsilon, "epsilon")
        needed = [one.scale_profile(self.problem, level) for one in self.bounds]
        return combined(needed, np.maximum).times(self.unit)

    def active_quilts(self) -> tuple[ActiveQuilt, ...]:
        """Return the active quilt of each node under each belief (Definition 3.2).

        That is the quilt with which the node needs the least noise at this level; () is the empty
        one. Nodes that are known need none and are left out. Cost: a search of quilts per node.

        Raises:
            UnsupportedError: for methods that work without quilts.

        >>> from quiltwork.beliefs import MarkovChain
        >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
        >>> found = calibrate(chain, 100, 1, "exact").active_quilts()
        >>> found[0].quilt, found[49].quilt, found[99].quilt
        ((5,), (45, 55), (96,))
        """
        if not all(isinstance(one, QuiltBound) for one in self.bounds) or not self.bounds:
            raise UnsupportedError(
                f"{argument('method', self.method)} works without quilts, so none is active; "
                "calibrate with "
                f"{argument('method', 'exact')}, 'approx' or 'spectral'."
            )
        level, found = positive_fraction(self.epsilon, "epsilon"), []
        for number, bound in enumerate(self.bounds, start=1):
            for node in self.problem.nodes:
                alone = replace(self.problem, nodes=range(node, node + 1))
                worst = bound.required_scale(alone, level)
                if worst.scale:
                    scale = float_up(worst.scale * self.unit)
                    found.append(ActiveQuilt(number, node, worst.quilt, worst.influence, scale))
        return tuple(found)

    def explain(self) -> str:
        """Say in a few lines which node needs this much noise and why."""
        from quiltwork.influence.calibration_text import explain

        return explain(self)

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
        """Describe the scale that each node needs."""
        from quiltwork.report.charts import LineChart, level, steps

        runs = self.per_node().runs
        ends = [run.first - 0.5 for run in runs], runs[-1].last + 0.5
        needed = steps(*ends, [run.scale for run in runs])
        return LineChart(
            "Noise that each time point needs",
            f"The largest, {self.scale:.4g}, is what is added.",
            "time point",
            "noise scale",
            (
                replace(needed, name="needed"),
                level(f"scale {self.scale:.4g}", self.scale, [needed]),
            ),
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

    The cost does not grow with the length: some fixed points of O(k⁴) each for the sweep,
    O(k³·reach) for "exact", O(k³) for the bounds.

    Theorem: docs/theory/sweep.md, docs/theory/influence-curve.md

    Args:
        beliefs: one belief or a list; the scale holds under each of them.
        length: the number of time points; a list for independent subjects that are pooled (the
            longest decides, for "optimal-scale" any of them may), or a Counter of such lengths;
            None for beliefs about fixed rows.
        epsilon: what may be learnt about a node, > 0.
        method: "sweep", or as in the papers "exact" and "spectral", "approx" (smallest sound bound)
            (Lemma 2.3), "contraction", or a baseline: "group" (everything is nearby) or "entry"
            (nothing else is, which does not protect correlated data: `guarantee` says what it
            keeps). None: the sweep for chains and for networks that are trees, else the sharpest
            quilts. "optimal-scale" is the least noise whose exact leakage is at most epsilon: it
            rests on the chains given alone, and covers the query, or without one the count of each
            state.
        query: what will be asked; the scale is then that of the answer. Without one, any query
            that moves by at most 1 per node.
        secrets: (start, stop), the protected nodes; all by default.
        episode: how many time points in a row are one secret, whatever they are.
        noise: "geometric" for pure epsilon; "gaussian" for (epsilon, delta), where the scale is the
            standard deviation (`docs/theory/f-sweep.md`).
        delta: with Gaussian noise, the chance that is left; far below one in the number of points.
        releases: with Gaussian noise, how many releases like this one share (epsilon, delta); the
            scale is that of each.
        pairs: the pairs of values that are kept apart, such as [("home", "away")]; all by default.
            Of (a, b) and (b, c) follows that a and c are kept apart at twice epsilon only, and
            values in no pair may become known. Less noise by the sweep; methods by quilts keep all
            pairs apart, which costs as much as without.

    Raises:
        InvalidInputError: for arguments that make no sense, with the offending value.
        UnsupportedError: if the method says nothing about a belief.

    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]], initial=[1, 0])
    >>> round(calibrate(chain, length=100, epsilon=1).scale, 5)
    3.33641
    >>> found = calibrate(chain, length=100, epsilon=1, method="exact")
    >>> round(found.scale, 6), found.node, found.quilt
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
                "pairs go with geometric noise; Gaussian noise keeps all values apart."
            )
        asked = beliefs, length, epsilon, delta, method, query, secrets, episode, releases
        return gaussian_calibration(*asked)
    _refuse_several(releases)
    if isinstance(method, str) and method == "optimal-scale":
        from quiltwork.influence.optimal_scale import optimal_calibration

        if pairs is not None:
            raise UnsupportedError(
                f"{argument('method', 'optimal-scale')} keeps all values apart; with pairs leave "
                "method out."
            )
        return optimal_calibration(beliefs, length, epsilon, query, secrets, episode)
    level = privacy_level(epsilon, "epsilon")
    if method is not None and not (isinstance(method, str) and method in METHODS):
        known = ", ".join((*METHODS, "optimal-scale"))
        raise InvalidInputError(f"method is {shortened(method)}; choose one of {known}, or None.")
    apart = read_pairs(pairs, as_beliefs(beliefs), integer(episode, "episode", 1))
    seen = bounds_for(beliefs, length, method, apart)
    points = seen[0].length
    members = [one.belief for one in seen]
    query = check_states(query, members)
    problem = as_problem(query, points, secrets, episode, apart)
    answers = [one.required_scale(problem, level) for one in seen]
    index = max(range(len(answers)), key=lambda i: answers[i].scale)
    unit, leakage, decides = answer_unit(query, parse_lengths(members, length)), 0.0, index
    scale = answers[index].scale * unit
    scales = tuple(float_up(one.scale * unit) for one in answers)
    if method == "entry":
        honest = bounds_for(members, points, None, apart)
        told = [one.leakage_of(problem, answers[index].scale) for one in honest]
        decides = max(range(len(told)), key=lambda i: told[i][0])
        answers = [answer for _, answer in told]
        if told[decides][0] > float_up(level):
            leakage = told[decides][0]
            _warn_of_entry(float(scale), leakage)
    found = answers[decides]
    return Calibration(
        scale=float_up(scale),
        exact_scale=scale,
        epsilon=epsilon,
        node=found.node,
        quilt=found.quilt,
        influence=found.influence,
        nearby=found.nearby,
        change=found.change,
        method=cast("InfluenceMethod", seen[index].method),
        belief=decides + 1,
        length=points,
        problem=problem,
        bounds=seen,
        unit=unit,
        before=found.before,
        leakage=leakage,
        scales=scales,
    )


def _refuse_several(releases: Any) -> None:
    """Refuse what only Gaussian noise has."""
    if releases != 1 or isinstance(releases, bool):
        raise InvalidInputError(
            f"releases={shortened(releases)} goes with noise='gaussian'. Levels of geometric noise "
            "add up: for K releases of the same kind take K times the scale, or plan them with "
            "qw.plan."
        )


def _warn_of_entry(scale: float, leakage: float) -> None:
    warnings.warn(
        f"{argument('method', 'entry')} protects one time point as if it said nothing about the "
        "others. Under "
        f"the belief given, noise of scale {scale:.6g} may leak up to {leakage:.6g} about a time "
        f"point.",
        QuiltworkWarning,
        stacklevel=3,
    )


def leak_under(
    beliefs: Belief | Sequence[Belief], problem: CalibrationProblem, scale: Fraction
) -> tuple[float, int]:
    """Return a bound on what noise of this scale tells about any secret, and the worst node.

    `scale` is that of the noise on the query's integers. Cost: one sweep per belief.

    Theorem: docs/theory/sweep.md

    Raises:
        InvalidInputError: for beliefs about other states or rows.
    """
    seen = bounds_for(beliefs, problem.length, None, problem.pairs)
    check_states(problem.query, [one.belief for one in seen])
    told = [one.leakage_of(problem, scale) for one in seen]
    leak, answer = max(told, key=lambda one: one[0])
    return leak, answer.node
