"""`GaussianMonitor`: the claimed and the true (ε, δ) about one time point, with a release per step.

A deployment that protects a day with Gaussian noise, or with an (ε, δ) mechanism, as if days were
independent, claims the ε of one release. All releases together reveal more about each day, because
days are correlated, and less than if all days were one secret. As every release uses one time point
only, products of trade-off curves are carried along the belief, which is exact for two states and
Gaussian noise. Cost: about a second for chains that forget within days, some tens of matrix
products.

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
from quiltwork.influence.tradeoffs.one_per_point import (
    StepLeakage,
    forgets_within,
    largest_step,
    leakage_per_step,
)
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
    """The leakage about each time point of releases about every time point, as ε at a given δ.

    Attributes:
        unit: the unit of `level`: ρ or μ ("gdp") of Gaussian noise, or ε of a mechanism.
        level: of each release, for substituting its time point.
        level_delta: δ of each release, if it is an (ε, δ) mechanism.
        delta: the δ at which every ε here holds.
        length: the number of time points released so far.
        claimed: ε of one release alone: the claim if time points were independent.
        by_now: ε of all releases so far about each time point.
        limit: ε about the worst time point if the releases never stop; inf where it is unbounded.
        alike: ε if all time points so far were one secret: for a person who never changes.
        under: the bound to keep, or None.
        level_by_now: the level at every step that keeps the leakage so far under it, rounded down.
        level_for_ever: the level that keeps it for ever; 0 where none does.
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
        """The leakage so far about the worst time point."""
        return float(self.by_now.epsilon.max())

    @property
    def most_in_the_limit(self) -> float:
        """The leakage about the worst time point in the limit; inf where it is unbounded."""
        return self.limit

    def at(self, node: int) -> float:
        """Return the leakage so far about one time point."""
        return self.by_now.at(node)

    def body(self) -> dict[str, Any]:
        """Return the results as JSON values; null for infinity."""
        names = ("unit", "level", "level_delta", "delta", "length", "claimed", "alike")
        bound = ("under", "level_by_now", "level_for_ever")
        return {
            **{name: getattr(self, name) for name in names},
            "by_now": self.by_now.records(),
            "most_by_now": _finite(self.most_by_now),
            "most_in_the_limit": _finite(self.limit),
            **{name: getattr(self, name) for name in bound},
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run of equal leakage."""
        return self.by_now.records()

    @property
    def _release_text(self) -> str:
        """One release in words."""
        if self.unit == "epsilon":
            slack = f" and δ = {self.level_delta:g}" if self.level_delta else ""
            return f"ε = {self.level:g}{slack}"
        return f"Gaussian noise of {'ρ' if self.unit == 'rho' else 'μ'} = {self.level:g}"

    def explain(self) -> str:
        """Return sentences: the claim, the leakage so far and later, the level for a bound."""
        worst = max(self.by_now, key=lambda run: run.epsilon)
        ratio = f", {worst.epsilon / self.claimed:.3g} times the claim" if self.claimed else ""
        lines = [
            f"Released with {self._release_text} at each of {self.length:,} time points, as if "
            f"they were independent: ε = {self.claimed:.4g} at δ = {self.delta:g} is claimed about "
            "each.",
            f"By now the leakage is up to {worst.epsilon:.4g} about one of them{ratio} (time point "
            f"{worst.first:,}); if all of them were one secret, {self.alike:.4g}.",
        ]
        if math.isinf(self.limit):
            lines.append(
                "If the releases never stop no limit is known: the belief never forgets, or takes "
                "far longer than these time points."
            )
        else:
            lines.append(f"If the releases never stop it rises to at most {self.limit:.4g}.")
        if self.under is None:
            return "\n".join(lines)
        verdict = "keeps" if self.most_by_now <= self.under else "is above"
        lines.append(f"This {verdict} the bound of {self.under:g}.")
        by_now = self._level_text(self.level_by_now)
        lines.append(f"{by_now} at every step keeps it for {self.length:,} steps.")
        if self.level_for_ever:
            lines.append(f"{self._level_text(self.level_for_ever)} keeps it for ever.")
        else:
            lines.append("No level is known to keep it for ever.")
        return "\n".join(lines)

    def _level_text(self, value: float | None) -> str:
        symbol = {"rho": "ρ", "gdp": "μ", "epsilon": "ε"}[self.unit]
        return f"{symbol} = {value or 0:.4g}"

    def chart(self) -> LineChart:
        """Return a chart of the claimed and the true leakage about each time point."""
        from dataclasses import replace

        profile, stop = self.by_now, self.length + 0.5
        finite = np.where(np.isfinite(profile.epsilon), profile.epsilon, self.alike)
        lines = [replace(steps(profile.first - 0.5, stop, finite), name="leakage by now")]
        lines.append(level(f"claimed {self.claimed:.3g}", self.claimed, lines))
        if math.isfinite(self.limit):
            lines.append(level(f"in the limit {self.limit:.3g}", self.limit, lines[:1]))
        if self.under is not None:
            lines.append(level(f"bound {self.under:g}", self.under, lines[:1]))
        return LineChart(
            "Claimed and true leakage about each time point",
            f"ε at δ = {self.delta:g}: {self.claimed:.3g} is claimed, {self.most_by_now:.3g} true.",
            "time point",
            "ε",
            tuple(lines),
        )

    def report(self, path: str | Path) -> None:
        """Write a page with the chart and the explanation."""
        from quiltwork.report import bullets, figure, page, section

        parts = [
            section("Leakage by time point", figure(self.chart()), anchor="leaks"),
            section("In words", bullets(self.explain().splitlines()), anchor="words"),
        ]
        lead = (
            "One release about every time point, against an adversary who knows how strongly "
            "consecutive time points are correlated."
        )
        files.write(files.as_path(path), page("Leakage about each time point", lead, parts))


class PureBounds(NamedTuple):
    """The leakage of the same releases without a δ, and the levels that keep a bound; 0 if none."""

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
    pure_bounds: PureBounds | None = None,
) -> GaussianMonitor:
    """Return the leakage about each time point of equal releases at every step, as ε at `delta`.

    `pure_bounds` hold without a δ, so they are upper bounds here too.

    Raises:
        InvalidInputError: for no level or several, and for invalid levels, lengths and bounds.
        UnsupportedError: for beliefs other than chains and boxes.
    """
    members, exact_delta = as_beliefs(beliefs), proper_fraction(delta, "delta")
    unit, exact, release = _release(epsilon, rho, gdp, level_delta, exact_delta)
    if length is None:
        raise InvalidInputError(
            "length is missing: give the number of releases by now, for example "
            f"{argument('length', 365)}."
        )
    points = integer(length, "length", 1, _LONGEST)
    if any(belief.length is not None for belief in members):
        raise UnsupportedError("A monitor is about time points, and these beliefs about rows.")
    delta_down = float_down(exact_delta)
    bound = None if under is None else privacy_level(under, "under")
    leakages = [leakage_per_step(belief, release, points, delta_down) for belief in members]
    profile = _worst_profile([runs for runs, _ in leakages], points)
    limit = max(limit for _, limit in leakages)
    level_by_now = level_for_ever = None
    if bound is not None:
        target = float_down(bound), delta_down
        level_by_now = min(largest_step(belief, release, *target, points) for belief in members)
        level_for_ever = min(
            largest_step(belief, release, *target, None) if forgets_within(belief, points) else 0.0
            for belief in members
        )
    if pure_bounds is not None:
        profile, limit = _lower_profile(profile, pure_bounds.by_now), min(limit, pure_bounds.limit)
        if level_by_now is not None and level_for_ever is not None:
            level_by_now = max(level_by_now, pure_bounds.level_by_now)
            level_for_ever = max(level_for_ever, pure_bounds.level_for_ever)
    return GaussianMonitor(
        unit=unit,
        level=float(exact),
        level_delta=float(to_fraction(level_delta, "level_delta")),
        delta=float(exact_delta),
        length=points,
        claimed=release.epsilon(1, delta_down),
        by_now=profile,
        limit=limit,
        alike=release.epsilon(points, delta_down),
        under=None if bound is None else float(bound),
        level_by_now=_in_unit(level_by_now, unit),
        level_for_ever=_in_unit(level_for_ever, unit),
    )


def _release(
    epsilon: Number | None,
    rho: Number | None,
    gdp: Number | None,
    level_delta: Number,
    delta: Fraction,
) -> tuple[Unit, Fraction, StepRelease]:
    """Parse the level of each release, given in exactly one of three ways."""
    if sum(level is not None for level in (epsilon, rho, gdp)) != 1:
        raise InvalidInputError(
            "Give the level of each release in one way: rho= or gdp= of Gaussian noise, or its ε."
        )
    if hasattr(epsilon, "__iter__"):
        raise InvalidInputError("With delta give one level for all steps, not a list.")
    each = to_fraction(level_delta, "level_delta")
    if each:
        each = proper_fraction(level_delta, "level_delta")
    if each and epsilon is None:
        raise InvalidInputError("level_delta goes with the ε of a mechanism; leave it out.")
    if each >= delta:
        raise InvalidInputError(
            f"Each release has δ = {float(each):g}, which must be below the δ = {float(delta):g} "
            "of all of them together; give a larger delta."
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


def _worst_profile(by_belief: Sequence[Sequence[StepLeakage]], length: int) -> LeakageProfile:
    """Return the largest leakage about every time point over several beliefs."""
    first = np.unique([run.first for runs in by_belief for run in runs]).astype(np.int64)
    rows = []
    for runs in by_belief:
        starts = np.array([run.first for run in runs])
        epsilons = np.array([run.epsilon for run in runs])
        rows.append(epsilons[np.searchsorted(starts, first, side="right") - 1])
    return LeakageProfile(first, np.append(first[1:] - 1, length), np.max(rows, axis=0))


def _lower_profile(a: LeakageProfile, b: LeakageProfile) -> LeakageProfile:
    """Return the lower of two bounds on every time point."""
    first = np.union1d(a.first, b.first)
    rows = (
        profile.epsilon[np.searchsorted(profile.first, first, side="right") - 1]
        for profile in (a, b)
    )
    return LeakageProfile(first, np.append(first[1:] - 1, int(a.last[-1])), np.minimum(*rows))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
