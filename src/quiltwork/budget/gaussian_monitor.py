"""A monitor for (ε, δ) at every step: what was claimed, what is true about one time point.

Who protects a day with Gaussian noise, or with an (ε, δ) mechanism, as if days were independent,
claims the ε of one release. All releases together tell more about each, because days hang together,
and less than about somebody's days as one secret. As every release is about one time point only,
products of trade-offs are carried along the belief, which for two states and Gaussian noise is
exact. Cost: a second or so for chains that forget within some days, some tens of matrix products.

Theorem: docs/theory/f-sweep.md (one mechanism per time point)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from quiltwork import files
from quiltwork.beliefs import Belief, as_beliefs
from quiltwork.budget.accounting.worst_point import LeakageProfile
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import (
    Number,
    float_down,
    float_up,
    integer,
    positive_fraction,
    privacy_level,
    proper_fraction,
    to_fraction,
)
from quiltwork.influence.tradeoffs.one_per_point import StepLeakage, largest_step, leakage_per_step
from quiltwork.influence.tradeoffs.privacy_losses import (
    BoundedRelease,
    GaussianRelease,
    StepRelease,
)
from quiltwork.report.charts import LineChart, level, steps
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

Unit = Literal["rho", "gdp", "epsilon"]

_LONGEST = 10**9


@dataclass(frozen=True, eq=False)
class GaussianMonitor(ChartedResult):
    """What releases about every time point tell about each, as ε at a given δ.

    Attributes:
        unit: what `level` is: ρ or μ ("gdp") of Gaussian noise, or ε of a mechanism.
        level: of each release, for substituting its time point.
        level_delta: δ of each release, where it is a mechanism that is (ε, δ)-private.
        delta: at which all ε here are meant.
        length: time points released by now.
        claimed: ε of one release alone: what is claimed if time points are independent.
        by_now: ε of all releases by now about each time point.
        limit: ε about the worst time point when it goes on for ever; inf where that grows without
            end.
        alike: ε if all time points by now were one secret: what a person who never changes loses.
        under: the bound asked about, or None.
        level_by_now: the level at every step that keeps all of them under it, rounded down.
        level_for_ever: the same if it never stops; 0 where none does.
    """

    unit: Unit
    level: float
    level_delta: float
    delta: float
    length: int
    claimed: float
    by_now: LeakageProfile
    limit: float
    alike: float
    under: float | None = None
    level_by_now: float | None = None
    level_for_ever: float | None = None
    schema = ("gaussian-monitor", 1)

    @property
    def most_by_now(self) -> float:
        """What the worst time point leaks by now."""
        return float(self.by_now.epsilon.max())

    @property
    def most_in_the_limit(self) -> float:
        """What the worst of them will leak; infinite where that grows without end."""
        return self.limit

    def at(self, node: int) -> float:
        """Return what one time point leaks by now."""
        return self.by_now.at(node)

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, numbers as numbers; null where there is no end."""
        told = {name: getattr(self, name) for name in ("unit", "level", "level_delta", "delta")}
        told |= {name: getattr(self, name) for name in ("length", "claimed", "alike")}
        bound = {name: getattr(self, name) for name in ("under", "level_by_now", "level_for_ever")}
        return {
            **told,
            "by_now": self.by_now.records(),
            "most_by_now": _finite(self.most_by_now),
            "most_in_the_limit": _finite(self.limit),
            **bound,
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run of time points that leak alike."""
        return self.by_now.records()

    @property
    def _each(self) -> str:
        """One release, in words."""
        if self.unit == "epsilon":
            slack = f" and δ = {self.level_delta:g}" if self.level_delta else ""
            return f"ε = {self.level:g}{slack}"
        return f"Gaussian noise of {'ρ' if self.unit == 'rho' else 'μ'} = {self.level:g}"

    def explain(self) -> str:
        """Say what is claimed, what is true by now and later, and which level keeps a bound."""
        worst = max(self.by_now, key=lambda run: run.epsilon)
        lines = [
            f"Released with {self._each} at each of {self.length:,} time points, as if they were "
            f"independent: ε = {self.claimed:.4g} at δ = {self.delta:g} is claimed about each.",
            f"By now they tell up to {worst.epsilon:.4g} about one of them"
            + (f", {worst.epsilon / self.claimed:.3g} times that" if self.claimed else "")
            + f" (time point {worst.first:,}); if all of them were alike, {self.alike:.4g}.",
        ]
        if math.isinf(self.limit):
            lines.append("Going on, that grows without end: the belief never forgets.")
        else:
            lines.append(f"Going on for ever they tell up to {self.limit:.4g}.")
        if self.under is None:
            return "\n".join(lines)
        kept = "keeps" if self.most_by_now <= self.under else "is above"
        lines.append(f"This {kept} the bound of {self.under:g}.")
        lines.append(
            f"{self._named(self.level_by_now)} at every step keeps it for {self.length:,} steps."
        )
        if self.level_for_ever:
            lines.append(f"{self._named(self.level_for_ever)} keeps it for ever.")
        else:
            lines.append("No level keeps it for ever.")
        return "\n".join(lines)

    def _named(self, value: float | None) -> str:
        sign = {"rho": "ρ", "gdp": "μ", "epsilon": "ε"}[self.unit]
        return f"{sign} = {value or 0:.4g}"

    def chart(self) -> LineChart:
        """Return what is claimed, and what is told about each time point."""
        from dataclasses import replace

        told, stop = self.by_now, self.length + 0.5
        finite = np.isfinite(told.epsilon)
        values = np.where(finite, told.epsilon, self.alike)
        drawn = [replace(steps(told.first - 0.5, stop, values), name="told by now")]
        drawn.append(level(f"claimed {self.claimed:.3g}", self.claimed, drawn))
        if math.isfinite(self.limit):
            drawn.append(level(f"in the limit {self.limit:.3g}", self.limit, drawn[:1]))
        if self.under is not None:
            drawn.append(level(f"bound {self.under:g}", self.under, drawn[:1]))
        return LineChart(
            "What is claimed about each time point, and what all releases tell about it",
            f"ε at δ = {self.delta:g}: {self.claimed:.3g} is claimed, {self.most_by_now:.3g} told.",
            "time point",
            "ε",
            tuple(drawn),
        )

    def report(self, path: str | Path) -> None:
        """Write it as a page with its picture."""
        from quiltwork.report import bullets, figure, page, section

        parts = [
            section("What is told", figure(self.chart()), anchor="told"),
            section("In words", bullets(self.explain().splitlines()), anchor="words"),
        ]
        lead = "One release about every time point, seen by who knows how time points are tied."
        files.write(files.as_path(path), page("What each time point leaks", lead, parts))


class PureBounds(NamedTuple):
    """What the same releases tell without a δ, and which levels keep a bound; 0 if none asked."""

    by_now: LeakageProfile
    limit: float
    level_by_now: float
    level_for_ever: float


def gaussian_monitor(
    beliefs: Belief | Sequence[Belief],
    epsilon: Number | None,
    length: int | None,
    under: Number | None,
    delta: Number,
    rho: Number | None = None,
    gdp: Number | None = None,
    level_delta: Number = 0,
    beside: PureBounds | None = None,
) -> GaussianMonitor:
    """Return what equal releases at every step tell about each time point, as ε at `delta`.

    `beside` is what is known without a δ, which bounds all of it as well.

    Raises:
        InvalidInputError: for none or several levels, and for levels, lengths and bounds that make
            no sense.
        UnsupportedError: for beliefs that are no chains or boxes.
    """
    members, at = as_beliefs(beliefs), proper_fraction(delta, "delta")
    unit, exact, release = _release(epsilon, rho, gdp, level_delta, at)
    if length is None:
        raise InvalidInputError(
            "length is missing: give the number of releases by now, for example "
            f"{argument('length', 365)}."
        )
    points = integer(length, "length", 1, _LONGEST)
    if any(belief.length is not None for belief in members):
        raise UnsupportedError("A monitor is about time points, and these beliefs about rows.")
    left, bound = float_down(at), None if under is None else privacy_level(under, "under")
    found = [leakage_per_step(one, release, points, left) for one in members]
    by_now = kept = None
    if bound is not None:
        ends = float_down(bound), left
        by_now = min(largest_step(one, release, *ends, points) for one in members)
        kept = min(largest_step(one, release, *ends, None) for one in members)
    told, limit = _profile([runs for runs, _ in found], points), max(one for _, one in found)
    if beside is not None:
        told, limit = _least(told, beside.by_now), min(limit, beside.limit)
        by_now = None if by_now is None else max(by_now, beside.level_by_now)
        kept = None if kept is None else max(kept, beside.level_for_ever)
    return GaussianMonitor(
        unit=unit,
        level=float(exact),
        level_delta=float(to_fraction(level_delta, "level_delta")),
        delta=float(at),
        length=points,
        claimed=release.epsilon(1, left),
        by_now=told,
        limit=limit,
        alike=release.epsilon(points, left),
        under=None if bound is None else float(bound),
        level_by_now=_in_unit(by_now, unit),
        level_for_ever=_in_unit(kept, unit),
    )


def _release(
    epsilon: Number | None, rho: Number | None, gdp: Number | None, slack: Number, delta: Fraction
) -> tuple[Unit, Fraction, StepRelease]:
    """Read the level of each release, in one of three ways."""
    if sum(one is not None for one in (epsilon, rho, gdp)) != 1:
        raise InvalidInputError(
            "Give the level of each release in one way: rho= or gdp= of Gaussian noise, or its ε."
        )
    if hasattr(epsilon, "__iter__"):
        raise InvalidInputError("With delta give one level for all steps, not a list.")
    each = to_fraction(slack, "level_delta")
    if each:
        each = proper_fraction(slack, "level_delta")
    if each and epsilon is None:
        raise InvalidInputError("level_delta goes with the ε of a mechanism; leave it out.")
    if each >= delta:
        raise InvalidInputError(
            f"Each release leaves {float(each):g}, which is not below the δ = {float(delta):g} "
            "that all of them are looked at with; give a larger delta."
        )
    if rho is not None:
        exact = positive_fraction(rho, "rho")
        return "rho", exact, GaussianRelease(math.sqrt(float_up(2 * exact)) * (1 + 2.0**-51))
    if gdp is not None:
        exact = positive_fraction(gdp, "gdp")
        return "gdp", exact, GaussianRelease(float_up(exact))
    exact = privacy_level(epsilon, "epsilon")
    return "epsilon", exact, BoundedRelease(float_up(exact), float_up(each) if each else 0.0)


def _in_unit(value: float | None, unit: Unit) -> float | None:
    if value is None or unit != "rho":
        return value
    return value**2 / 2 * (1 - 2.0**-50)


def _profile(found: Sequence[Sequence[StepLeakage]], length: int) -> LeakageProfile:
    """The worst of some beliefs about every time point."""
    first = np.unique([one.first for runs in found for one in runs]).astype(np.int64)
    rows = []
    for runs in found:
        begins = np.array([one.first for one in runs])
        told = np.array([one.epsilon for one in runs])
        rows.append(told[np.searchsorted(begins, first, side="right") - 1])
    epsilon = np.max(rows, axis=0)
    return LeakageProfile(first, np.append(first[1:] - 1, length), epsilon)


def _least(one: LeakageProfile, other: LeakageProfile) -> LeakageProfile:
    """The lesser of two bounds on every time point."""
    first = np.union1d(one.first, other.first)
    rows = (
        told.epsilon[np.searchsorted(told.first, first, side="right") - 1] for told in (one, other)
    )
    return LeakageProfile(first, np.append(first[1:] - 1, int(one.last[-1])), np.minimum(*rows))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
