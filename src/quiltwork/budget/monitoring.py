"""`monitor`: the true leakage of plain differential privacy at every time step.

A release of level ε at every time point, made as if time points were independent, reveals more than
ε about each: earlier and later releases depend on it too. The levels are swept along the belief,
which bounds the leakage of all releases so far about each time point, and its limit if the releases
never stop. On two persistent states this is the recursion of Cao et al. (ICDE 2017), on others it
is never above it. Cost: a few sweeps, whatever the length.

Theorem: docs/theory/sweep.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any, overload

from quiltwork import files
from quiltwork.arguments import listed
from quiltwork.beliefs import Belief, DatedChain, as_beliefs
from quiltwork.budget.accounting.accountant import Accountant
from quiltwork.budget.accounting.worst_point import LeakageProfile
from quiltwork.budget.gaussian_monitor import (
    GaussianMonitor,
    PureBounds,
    gaussian_monitor,
)
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import Number, integer, positive_fraction, privacy_level, to_fraction
from quiltwork.report.charts import LineChart, steps
from quiltwork.report.charts import level as level_line
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

_HORIZON = 10**9
"""A length at which the leakage has converged, under every belief where it does."""
_CONVERGED = 1 + 1e-6


@dataclass(frozen=True, eq=False)
class Monitor(ChartedResult):
    """The leakage of plain differential privacy at every time step.

    Attributes:
        levels: runs (first, last, level) of equal levels, each for substituting one time point.
        length: the number of time points released so far.
        by_now: the leakage about each of them so far.
        limit: the leakage about each of them if the last level goes on for ever; None where it is
            unbounded.
        under: the bound to keep, or None.
        level_by_now: the level at every step that keeps the leakage so far under it, rounded down.
        level_for_ever: the level that keeps it for ever; 0 where none does.
        episode: how many time points in a row are one secret.
        phases: the period of the belief in time steps; 1 if all steps are alike.
    """

    levels: tuple[tuple[int, int, float], ...]
    length: int
    by_now: LeakageProfile
    limit: LeakageProfile | None
    under: float | None = None
    level_by_now: float | None = None
    level_for_ever: float | None = None
    episode: int = 1
    phases: int = 1
    schema = ("monitor", 1)

    @property
    def most_by_now(self) -> float:
        """The leakage so far about the worst time point."""
        return float(self.by_now.epsilon.max())

    @property
    def most_in_the_limit(self) -> float:
        """The leakage about the worst time point in the limit; inf where it is unbounded."""
        return math.inf if self.limit is None else float(self.limit.epsilon.max())

    def at(self, node: int) -> tuple[float, float]:
        """Return the leakage about one time point so far, and in the limit."""
        later = math.inf if self.limit is None else self.limit.at(node)
        return self.by_now.at(node), later

    def body(self) -> dict[str, Any]:
        """Return the results as JSON values."""
        return {
            "levels": [list(run) for run in self.levels],
            "length": self.length,
            "episode": self.episode,
            "by_now": self.by_now.records(),
            "limit": None if self.limit is None else self.limit.records(),
            "most_by_now": self.most_by_now,
            "most_in_the_limit": None if self.limit is None else self.most_in_the_limit,
            "under": self.under,
            "level_by_now": self.level_by_now,
            "level_for_ever": self.level_for_ever,
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run of equal level and leakage: first, last, level, by_now, limit."""
        starts = {first for first, *_ in self.levels} | set(self.by_now.first.tolist())
        starts |= set() if self.limit is None else set(self.limit.first.tolist())
        ordered = sorted(start for start in starts if start <= self.length)
        ends = [*(start - 1 for start in ordered[1:]), self.length]
        rows = []
        for first, last in zip(ordered, ends, strict=True):
            by_now, limit = self.at(first)
            level = next(level for a, b, level in self.levels if a <= first <= b)
            rows.append(
                {"first": first, "last": last, "level": level, "by_now": by_now, "limit": limit}
            )
        return rows

    def explain(self) -> str:
        """Return sentences: the leakage so far and in the limit, and the level for the bound."""
        least, most = (f(level for *_, level in self.levels) for f in (min, max))
        levels = f"{most:g}" if least == most else f"{least:g} to {most:g}"
        worst = max(self.by_now, key=lambda run: run.epsilon)
        secret = "time point" if self.episode == 1 else f"episode of {self.episode} time points"
        lines = [
            f"Released with level {levels} at each of {self.length:,} time points, as if they were "
            "independent.",
            f"By now the leakage is up to {worst.epsilon:.6g} about one {secret}, "
            f"{worst.epsilon / most:.3g} times the level (time point {worst.first:,}).",
        ]
        best = min(self.by_now, key=lambda run: run.epsilon)
        if self.phases > 1 and worst.epsilon > 1.1 * best.epsilon:
            lines.append(
                f"It rises and falls with the {self.phases:,} phases of the belief, down to "
                f"{best.epsilon:.6g} (time point {best.first:,}): in some phases neighbouring "
                "time points are more strongly correlated than in others."
            )
        if self.limit is None:
            lines.append(
                "If the releases never stop it grows without limit: the belief never forgets."
            )
        else:
            lines.append(
                f"If the releases never stop it rises to at most {self.most_in_the_limit:.6g}."
            )
        if self.under is not None:
            lines += self._bound_lines()
        return "\n".join(lines)

    def _bound_lines(self) -> list[str]:
        verdict = "keeps" if self.most_by_now <= (self.under or 0) else "is above"
        lines = [
            f"This {verdict} the bound of {self.under:g}.",
            f"A level of {self.level_by_now:.6g} keeps it for {self.length:,} steps.",
        ]
        if self.level_for_ever:
            return [*lines, f"A level of {self.level_for_ever:.6g} keeps it for ever."]
        return [*lines, "No level keeps it for ever."]

    def chart(self) -> LineChart:
        """Return a chart of levels and leakages by time point."""
        starts, levels = zip(
            *((first - 0.5, level) for first, _, level in self.levels), strict=True
        )
        stop, by_now = self.length + 0.5, self.by_now
        lines = [
            replace(steps(starts, stop, levels), name="level of each release"),
            replace(steps(by_now.first - 0.5, stop, by_now.epsilon), name="leakage by now"),
        ]
        if self.limit is not None:
            limit = steps(self.limit.first - 0.5, stop, self.limit.epsilon)
            lines.append(replace(limit, name="in the limit", dashed=True))
        if self.under is not None:
            lines.append(level_line(f"bound {self.under:g}", self.under, lines))
        return LineChart(
            "Leakage of plain differential privacy at every step, by time point",
            f"Up to {self.most_by_now:.4g} by now, where each release is made as if time points "
            "were independent.",
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
            "Plain differential privacy at every step, against an adversary who knows how strongly "
            "consecutive steps are correlated."
        )
        files.write(files.as_path(path), page("Leakage about each time point", lead, parts))


@overload
def monitor(
    beliefs: Belief | Sequence[Belief],
    levels: Number | Sequence[Number],
    length: int | None = None,
    under: Number | None = None,
    episode: int = 1,
) -> Monitor: ...
@overload
def monitor(
    beliefs: Belief | Sequence[Belief],
    levels: Number | None = None,
    length: int | None = None,
    under: Number | None = None,
    episode: int = 1,
    *,
    delta: Number,
    rho: Number | None = None,
    gdp: Number | None = None,
    level_delta: Number = 0,
) -> GaussianMonitor: ...


def monitor(
    beliefs: Belief | Sequence[Belief],
    levels: Number | Sequence[Number] | None = None,
    length: int | None = None,
    under: Number | None = None,
    episode: int = 1,
    *,
    delta: Number | None = None,
    rho: Number | None = None,
    gdp: Number | None = None,
    level_delta: Number = 0,
) -> Monitor | GaussianMonitor:
    """Return the leakage about each time point of releases about every time point.

    Args:
        beliefs: how time points depend on each other; one belief or a list.
        levels: of each release for substituting its time point: one for all, with `length`, or a
            list with one each. For a library that adds or removes records, twice its level.
        length: the number of releases so far; with a list, its length.
        under: also find the level at every step that keeps each time point under this bound.
        episode: how many time points in a row are one secret.
        delta: compute ε at this δ instead of a pure ε, where each release uses its own time point
            only; equal levels at every step, of `levels`, `rho` or `gdp`.
        rho: with `delta`, ρ of Gaussian noise at every step.
        gdp: with `delta`, its μ.
        level_delta: with `delta` and `levels`, δ of an (ε, δ) mechanism at every step.

    Raises:
        InvalidInputError: for invalid levels, lengths and bounds.
        UnsupportedError: for beliefs about rows that are in no order; with `delta` for all but
            chains and boxes, and for episodes.

    Theorem: docs/theory/sweep.md, docs/theory/f-sweep.md (one mechanism per time point)

    >>> from quiltwork import MarkovChain
    >>> seen = monitor(MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 0.1, length=20, under=1)
    >>> round(seen.most_by_now, 4), round(seen.most_in_the_limit, 4)
    (0.3115, 0.312)
    >>> round(seen.level_by_now, 4), round(seen.level_for_ever, 4)
    (0.3006, 0.2997)
    >>> days = monitor(MarkovChain([[0.9, 0.1], [0.1, 0.9]]), rho=0.015, length=365, delta=1e-6)
    >>> round(days.claimed, 3), round(days.most_by_now, 2), round(days.alike, 1)
    (0.715, 1.57, 20.6)
    """
    if delta is not None:
        if integer(episode, "episode", 1) > 1:
            raise UnsupportedError("With delta a monitor is about single time points.")
        pure_bounds = None
        if levels is not None and not to_fraction(level_delta, "level_delta"):
            pure = monitor(beliefs, levels, length, under)
            largest = (pure.level_by_now or 0.0, pure.level_for_ever or 0.0)
            pure_bounds = PureBounds(pure.by_now, pure.most_in_the_limit, *largest)
        level: Any = levels
        return gaussian_monitor(
            beliefs, level, length, under, delta, rho, gdp, level_delta, pure_bounds
        )
    if rho is not None or gdp is not None or to_fraction(level_delta, "level_delta"):
        raise InvalidInputError("rho, gdp and level_delta need a δ: give delta, too.")
    if levels is None:
        raise InvalidInputError("Give the level of the release at every step.")
    members = as_beliefs(beliefs)
    if any(belief.length is not None for belief in members):
        raise UnsupportedError("A monitor is about time points, and these beliefs about rows.")
    runs = _runs(levels, length)
    points = runs[-1].stop
    now = _account(members, points, episode, runs)
    half, whole = (_continued(members, n, episode, runs) for n in _horizons(members))
    converges = whole.epsilon() <= _CONVERGED * half.epsilon()
    bound = None if under is None else privacy_level(under, "under")
    return Monitor(
        levels=tuple((run.start, run.stop, float(run.per_point)) for run in runs),
        length=points,
        by_now=now.profile(),
        limit=_first_points(whole.profile(), points) if converges else None,
        under=None if bound is None else float(bound),
        level_by_now=None if bound is None else _largest_level(members, points, episode, bound),
        level_for_ever=None if bound is None else _largest_level_for_ever(members, episode, bound),
        episode=now.episode,
        phases=max(getattr(belief, "period", 1) for belief in members),
    )


def _runs(levels: Any, length: int | None) -> list[Spending]:
    """Parse one level for all time points, or one for each, as runs of equal levels."""
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        if length is None:
            raise InvalidInputError(
                "length is missing: give the number of releases by now, for example "
                f"{argument('length', 365)}."
            )
        points = integer(length, "length", 1, _HORIZON // 4)
        return [Spending.dp(privacy_level(levels, "epsilon"), 1, points)]
    numbered = enumerate(listed(levels, "levels"), start=1)
    exact = [positive_fraction(level, f"Level {number}") for number, level in numbered]
    if not exact or length not in (None, len(exact)):
        raise InvalidInputError(
            f"There are {len(exact)} levels; give one for each time point, and leave length out."
        )
    runs, start = [], 1
    for level, equal in groupby(exact):
        stop = start + sum(1 for _ in equal) - 1
        runs.append(Spending.dp(level, start, stop))
        start = stop + 1
    return runs


def _horizons(members: tuple[Belief, ...]) -> tuple[int, int]:
    """Return half a horizon and a whole one: equal leakage at both means convergence.

    A belief that follows a clock ends with it, and with it the horizon.
    """
    ends = [belief.longest for belief in members if isinstance(belief, DatedChain)]
    last = min([_HORIZON, *ends])
    return last // 2, last


def _account(
    members: tuple[Belief, ...], length: int, episode: int, spendings: Sequence[Spending]
) -> Accountant:
    account = Accountant(members, length, episode=episode)
    account.add_all(spendings)
    return account


def _continued(
    members: tuple[Belief, ...], length: int, episode: int, runs: list[Spending]
) -> Accountant:
    """Return an account in which the last level goes on up to `length`."""
    last = runs[-1]
    extended = Spending.dp(last.per_point, last.start, length)
    return _account(members, length, episode, [*runs[:-1], extended])


def _largest_level(
    members: tuple[Belief, ...], length: int, episode: int, bound: Fraction
) -> float:
    return Accountant(members, length, bound, episode).largest_next()


def _largest_level_for_ever(members: tuple[Belief, ...], episode: int, bound: Fraction) -> float:
    """Return the largest level at every step that keeps a bound for ever; 0 if none does."""
    half, whole = (_largest_level(members, n, episode, bound) for n in _horizons(members))
    return whole if half <= _CONVERGED * whole else 0.0


def _first_points(profile: LeakageProfile, points: int) -> LeakageProfile:
    """Return the profile of the first time points only."""
    inside = profile.first <= points
    last = profile.last[inside].copy()
    last[-1] = min(int(last[-1]), points)
    return LeakageProfile(profile.first[inside], last, profile.epsilon[inside])
