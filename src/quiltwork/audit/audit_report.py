"""Audit reports: the promised epsilon, the true leakage, and the output and secret that reach it.

A release is audited jointly over its integers where that is feasible; otherwise the true leakage is
bracketed between the largest level found and a bound, never given as one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.audit.additive import JointStatistic, joint
from quiltwork.audit.ends import TiltedChain
from quiltwork.audit.exact_leakage import (
    Leakage,
    exact_leakage,
    leakage_at_ends,
    undetermined,
    worst_leakage,
)
from quiltwork.audit.inner import require_tractable
from quiltwork.audit.laws import TooLargeError
from quiltwork.audit.node_levels import Laws, rate
from quiltwork.audit.power_iteration import OutOfRangeError
from quiltwork.beliefs import Belief
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.secrets import parse_secrets
from quiltwork.exact import (
    Number,
    float_up,
    format_number,
    integer,
    positive_fraction,
    to_fraction,
)
from quiltwork.queries import Query, Sum
from quiltwork.queries.query import States
from quiltwork.results import ResultBase


@dataclass(frozen=True)
class BeliefLevel:
    """Bounds on the leakage under one belief; `exact` if they are the exact level."""

    belief: str
    lower: float
    upper: float | None
    exact: bool

    def body(self) -> dict[str, Any]:
        """Return it as JSON values; infinite levels are null."""
        ends = {"lower": _finite(self.lower), "upper": _finite(self.upper)}
        return {"belief": self.belief, **ends, "exact": self.exact}

    def line(self) -> str:
        """Return it as a line of text."""
        if self.exact:
            return f"{self.upper:.6g} under {self.belief}"
        above = "" if self.upper is None else f" and at most {self.upper:.6g}"
        return f"at least {self.lower:.6g}{above} under {self.belief}"


@dataclass(frozen=True)
class Report(ResultBase):
    """A promised privacy level beside the true leakage.

    Attributes:
        claimed: the promised epsilon; None if there is none.
        lower: a lower bound on the true leakage.
        upper: an upper bound: the exact level, a proven bound or the promise; None without any.
        joint: whether all integers were audited together, so that both bounds are the exact level.
        worst: the secret and the output that reach `lower`.
        dp_epsilon: the level for substituting one time point, as plain differential privacy counts.
        bound: the sweep's bound under these beliefs, where the exact level was not computed.
        each: bounds under each belief alone, in the order given.
    """

    schema = ("audit", 1)

    claimed: float | None
    lower: float
    upper: float | None
    joint: bool
    worst: Leakage
    dp_epsilon: float | None = None
    bound: float | None = None
    each: tuple[BeliefLevel, ...] = ()

    def bounded(self, bounds: Callable[[int], float]) -> Report:
        """Return the report with proven bounds, such as the sweep's, in place of missing levels.

        `bounds(b)` is that of belief b, counted from 1. It replaces the promise as upper end: the
        promise may have been made for other beliefs.
        """
        if self.joint:
            return self
        each = tuple(
            level if level.exact else replace(level, upper=max(level.lower, bounds(number)))
            for number, level in enumerate(self.each, start=1)
        )
        bound = max(level.upper for level in each if level.upper is not None)
        return replace(self, upper=bound, bound=bound, each=each)

    @property
    def sound(self) -> bool | None:
        """Whether the promise holds; None without a promise, or if the audit is inconclusive."""
        if self.claimed is None:
            return None
        if self.lower > self.claimed:
            return False
        proven = self.joint or (self.bound is not None and self.bound <= self.claimed)
        return True if proven else None

    @property
    def tightness(self) -> float | None:
        """The promise divided by the exact level, for a joint audit: 1 wastes no noise."""
        if self.claimed is None or not self.joint or not 0 < self.lower < math.inf:
            return None
        return self.claimed / self.lower

    def explain(self) -> str:
        """State levels, worst case and verdict in a few lines."""
        return "\n".join(_lines(self))

    def body(self) -> dict[str, Any]:
        """Return the report as JSON values; infinite levels are null."""
        states = self.worst.states
        return {
            "claimed": self.claimed,
            "lower": _finite(self.lower),
            "upper": _finite(self.upper),
            "joint": self.joint,
            "sound": self.sound,
            "tightness": self.tightness,
            "dp_epsilon": _finite(self.dp_epsilon),
            "bound": _finite(self.bound),
            "node": self.worst.node,
            "states": None if states is None else labels_to_json(states),
            "output": list(self.worst.output),
            "belief": self.worst.belief,
            "each": [level.body() for level in self.each],
        }


def _finite(level: float | None) -> float | None:
    return None if level is None or not math.isfinite(level) else level


def report(
    beliefs: Belief | Sequence[Belief],
    length: int,
    releases: Sequence[tuple[Query, Any]],
    claimed: Number | None = None,
    secrets: tuple[int, int] | None = None,
) -> Report:
    """Return an audit of releases with additive noise against their promised epsilon.

    Args:
        beliefs: one chain or several with known starts.
        length: the number of time points.
        releases: pairs (query, scale) as for `leakage`.
        claimed: the level promised for all of them together; None for plain differential privacy,
            which promises nothing about dependent time points.
        secrets: (start, stop), the protected time points; all by default.

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> audited = report(chain, 20, [(queries.count(1), 8)], claimed=1)
    >>> audited.sound, round(audited.tightness, 2)
    (True, 2.54)

    Theorem: docs/theory/exact-leakage.md
    """
    promise = None if claimed is None else float_up(positive_fraction(claimed, "claimed"))
    chains = require_tractable(beliefs)
    points = integer(length, "length", 1)
    statistic = joint(releases, chains[0].states, points)
    nodes = parse_secrets(secrets, points)
    plain = _dp_level(statistic, releases, chains[0].states, points)
    leakages, each = [], []
    for chain in chains:
        try:
            leak, exact = exact_leakage(Laws(chain, points, statistic, nodes)), True
        except TooLargeError:
            cells = [
                _cell_leakage(Laws(chain, points, cell, nodes)) for cell in _single_cells(statistic)
            ]
            leak, exact = max(cells, key=lambda cell: cell.at_least), False
        leakages.append(leak)
        upper_end = leak.epsilon if exact else None
        each.append(BeliefLevel(chain.summary(), leak.at_least, upper_end, exact))
    largest = worst_leakage(leakages, at_least=True)
    joint_audit = all(level.exact for level in each)
    upper = largest.epsilon if joint_audit else promise
    return Report(promise, largest.at_least, upper, joint_audit, largest, plain, each=tuple(each))


def _cell_leakage(laws: Laws) -> Leakage:
    """Return the leakage of one cell if feasible, else that of its two ends, else unknown."""
    try:
        return exact_leakage(laws)
    except TooLargeError:
        with suppress(OutOfRangeError):
            rates = [rate(scale) for scale in laws.statistic.scales]
            return leakage_at_ends(TiltedChain(laws).ends(rates), laws)
        return undetermined(laws.nodes)


def _single_cells(statistic: JointStatistic) -> list[JointStatistic]:
    pairs = zip(statistic.parts, statistic.scales, strict=True)
    return [JointStatistic((part,), (scale,)) for part, scale in pairs]


def _dp_level(
    statistic: JointStatistic, releases: Sequence[tuple[Query, Any]], states: States, length: int
) -> float | None:
    """Return the level for substituting one time point; None where some integer has no noise.

    The sensitivity of sums and means is the range of the states, as in `release`.
    """
    if not all(statistic.scales):
        return None
    releases = [(q.narrowed(states) if isinstance(q, Sum) else q, scale) for q, scale in releases]
    windows = [query.window(length) for query, _ in releases]
    edges = {1, *(edge for start, stop in windows for edge in (start, start + 1, stop, stop + 1))}
    nodes = np.array(sorted(edge for edge in edges if edge <= length))
    total = np.zeros(len(nodes))
    for (query, scale), (start, stop) in zip(releases, windows, strict=True):
        unit = query.grid(stop - start + 1)[1]
        rate = float_up(unit / to_fraction(scale, "The noise scale"))
        total = total + query.l1_sensitivity(nodes, nodes, length) * rate
    return float(total.max())


def _lines(audited: Report) -> list[str]:
    lower = f"{audited.lower:.6g} (the largest level found)"
    if audited.joint:
        lines = [f"True epsilon: {audited.upper:.6g}."]
    elif audited.upper is None or (audited.bound is None and audited.upper < audited.lower):
        lines = [f"True epsilon: at least {lower}."]
    else:
        source = "the promise" if audited.bound is None else "a proven bound, by the sweep"
        lines = [
            f"True epsilon: between {lower} and {audited.upper:.6g} ({source}). The exact law is "
            "too large to compute."
        ]
    lines.append(audited.worst.explain())
    if len(audited.each) > 1:
        lines += [f"  {level.line()}" for level in audited.each]
    if audited.claimed is not None:
        verdict = {True: "holds", False: "is BROKEN", None: "is not contradicted"}[audited.sound]
        lines.append(f"The promised epsilon of {audited.claimed:.6g} {verdict}.")
    if audited.tightness is not None:
        lines.append(f"It is {format_number(audited.tightness, 3)} times the true epsilon.")
    if audited.claimed is None and audited.dp_epsilon is not None:
        lines.append(
            f"Plain differential privacy gives this noise an epsilon of {audited.dp_epsilon:.6g} "
            "per time point, which does not count what neighbouring time points reveal."
        )
    return lines
