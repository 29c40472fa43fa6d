"""Reports: what was promised, what is true, and who learns it from which output.

A release is audited jointly over its integers where that is in reach; otherwise the truth is
bracketed between the largest level found and the promise, never given as one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quiltwork.audit.additive import Joint, joint
from quiltwork.audit.ends import TiltedChain
from quiltwork.audit.exact_leakage import (
    Leakage,
    at_ends,
    exact_leakage,
    not_followed,
    worst_of,
)
from quiltwork.audit.inner import followed
from quiltwork.audit.laws import TooLargeError
from quiltwork.audit.node_levels import Laws, rate
from quiltwork.audit.orbits import OutOfRangeError
from quiltwork.beliefs import Belief
from quiltwork.beliefs.documents import labels_to_json
from quiltwork.beliefs.secrets import read_secrets
from quiltwork.exact import Number, float_up, integer, positive_fraction, to_fraction
from quiltwork.queries import Query, Sum
from quiltwork.queries.query import States
from quiltwork.results import ResultBase


@dataclass(frozen=True)
class BeliefLevel:
    """What is known of the level under one belief: at least, at most, and whether that is it."""

    belief: str
    lower: float
    upper: float | None
    exact: bool

    def body(self) -> dict[str, Any]:
        """As JSON values; infinite levels are null."""
        ends = {"lower": _finite(self.lower), "upper": _finite(self.upper)}
        return {"belief": self.belief, **ends, "exact": self.exact}

    def line(self) -> str:
        """Say it in a line."""
        if self.exact:
            return f"{self.upper:.6g} under {self.belief}"
        above = "" if self.upper is None else f" and at most {self.upper:.6g}"
        return f"at least {self.lower:.6g}{above} under {self.belief}"


@dataclass(frozen=True)
class Report(ResultBase):
    """A promise against the truth.

    Attributes:
        claimed: what was promised; None where nothing was.
        lower: the true level is at least this …
        upper: … and at most this: the exact level, the bound or the promise; None without any.
        joint: whether all integers were audited together, so that both ends are the exact level.
        worst: the secret and the output that reach `lower`.
        dp_epsilon: the level for replacing one time point, as plain differential privacy counts.
        bound: what the sweep proves under these beliefs, where the exact level is out of reach.
        each: per belief what is known of the level under it alone, in the order given.
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
        """The same with proven bounds, such as the sweep's, where the exact level is out of reach.

        `bounds(b)` is that of belief b, counted from 1. A promise that it exceeds says nothing
        about these beliefs, so it is the bound that counts.
        """
        if self.joint:
            return self
        each = tuple(
            one if one.exact else replace(one, upper=max(one.lower, bounds(place)))
            for place, one in enumerate(self.each, start=1)
        )
        most = max(one.upper for one in each if one.upper is not None)
        return replace(self, upper=most, bound=most, each=each)

    @property
    def sound(self) -> bool | None:
        """Whether the promise holds; None where nothing was promised or the truth is open."""
        if self.claimed is None:
            return None
        if self.lower > self.claimed:
            return False
        proven = self.joint or (self.bound is not None and self.bound <= self.claimed)
        return True if proven else None

    @property
    def tightness(self) -> float | None:
        """Promise over truth, for a joint audit: 1 is no noise wasted."""
        if self.claimed is None or not self.joint or not 0 < self.lower < math.inf:
            return None
        return self.claimed / self.lower

    def explain(self) -> str:
        """Say it in a few lines."""
        return "\n".join(_lines(self))

    def body(self) -> dict[str, Any]:
        """The report as JSON values; infinite levels are null."""
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
            "each": [one.body() for one in self.each],
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
    """Audit releases with additive noise against what they promised together.

    Args:
        beliefs: one chain or several with known starts.
        length: the number of time points.
        releases: pairs (query, scale) as for `leakage`.
        claimed: the level that was promised for all of them; None for plain differential privacy,
            which promises nothing about dependent time points.
        secrets: (start, stop), the protected time points; all by default.

    >>> from quiltwork import queries
    >>> from quiltwork.beliefs import MarkovChain
    >>> chain = MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> found = report(chain, 20, [(queries.count(1), 8)], claimed=1)
    >>> found.sound, round(found.tightness, 2)
    (True, 2.54)

    Theorem: docs/theory/exact-leakage.md
    """
    promise = None if claimed is None else float_up(positive_fraction(claimed, "claimed"))
    chains = followed(beliefs)
    points = integer(length, "length", 1)
    statistic = joint(releases, chains[0].states, points)
    nodes = read_secrets(secrets, points)
    plain = _dp_level(statistic, releases, chains[0].states, points)
    found, each = [], []
    for chain in chains:
        try:
            one, exact = exact_leakage(Laws(chain, points, statistic, nodes)), True
        except TooLargeError:
            cells = [_found(Laws(chain, points, cell, nodes)) for cell in _single_cells(statistic)]
            one, exact = max(cells, key=lambda cell: cell.at_least), False
        found.append(one)
        each.append(BeliefLevel(repr(chain), one.at_least, one.epsilon if exact else None, exact))
    largest = worst_of(found, at_least=True)
    joint_audit = all(one.exact for one in each)
    upper = largest.epsilon if joint_audit else promise
    return Report(promise, largest.at_least, upper, joint_audit, largest, plain, each=tuple(each))


def _found(laws: Laws) -> Leakage:
    """The level of one cell where that is in reach, otherwise what its two ends tell, if any."""
    try:
        return exact_leakage(laws)
    except TooLargeError:
        with suppress(OutOfRangeError):
            rates = [rate(scale) for scale in laws.statistic.scales]
            return at_ends(TiltedChain(laws).ends(rates), laws)
        return not_followed(laws.nodes)


def _single_cells(statistic: Joint) -> list[Joint]:
    pairs = zip(statistic.parts, statistic.scales, strict=True)
    return [Joint((part,), (scale,)) for part, scale in pairs]


def _dp_level(
    statistic: Joint, releases: Sequence[tuple[Query, Any]], states: States, length: int
) -> float | None:
    """The level for substituting one time point; None where some integer has no noise.

    Sums and means of states move by the range of the states, as in `release`.
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


def _lines(found: Report) -> list[str]:
    if found.joint:
        lines = [f"True level: {found.upper:.6g}."]
    elif found.bound is not None:
        lines = [
            f"True level: between {found.lower:.6g} (the largest found) and {found.bound:.6g} (a "
            "bound, by the sweep); the exact law is too large to follow."
        ]
    elif found.upper is None or found.upper < found.lower:
        lines = [f"True level: at least {found.lower:.6g} (the largest found)."]
    else:
        lines = [
            f"True level: between {found.lower:.6g} (the largest found) and {found.upper:.6g} "
            "(the promise); the exact law is too large to follow."
        ]
    lines.append(found.worst.explain())
    if len(found.each) > 1:
        lines += [f"  {one.line()}" for one in found.each]
    if found.claimed is not None:
        verdict = {True: "holds", False: "is BROKEN", None: "is not contradicted"}[found.sound]
        lines.append(f"The promise of {found.claimed:.6g} {verdict}.")
    if found.tightness is not None:
        lines.append(f"It allows {found.tightness:.3g} times what is true.")
    if found.claimed is None and found.dp_epsilon is not None:
        lines.append(
            f"Plain differential privacy calls this noise {found.dp_epsilon:.6g} per time point; "
            "it says nothing about what the others betray."
        )
    return lines
