"""A monitor for plain differential privacy at every step: what each moment really leaks.

Who releases a level of ε about every time point, as if time points were independent, tells more
than ε about each: earlier and later releases speak of it too. The levels are swept along the
belief, which bounds what all releases by now tell about each time point; going on for ever tells
what they will come to. On two states that last this is the recursion of Cao et al. (ICDE 2017), on
others it is never above it. Cost: some sweeps, whatever the length.

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
from quiltwork.report.charts import Line, LineChart, level, steps
from quiltwork.results import ChartedResult
from quiltwork.wording import argument

_ENDLESS = 10**9
"""Time points after which nothing changes but for beliefs under which it never settles."""
_SETTLED = 1 + 1e-6


@dataclass(frozen=True, eq=False)
class Monitor(ChartedResult):
    """What plain differential privacy at every step leaks.

    Attributes:
        levels: runs (first, last, level) of equal levels, each for substituting one time point.
        length: time points released by now.
        by_now: what each of them leaks by now.
        limit: what each of them leaks when the last level goes on for ever; None where that grows
            without end.
        under: the bound asked about, or None.
        level_by_now: the level at every step that keeps all of them under it, rounded down.
        level_for_ever: the same if it never stops; 0 where none does.
        episode: how many time points in a row are one secret.
        phases: of how many phases a turn of the belief is; 1 if all steps are alike.
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
        """What the worst time point leaks by now."""
        return float(self.by_now.epsilon.max())

    @property
    def most_in_the_limit(self) -> float:
        """What the worst of them will leak; infinite where that grows without end."""
        return math.inf if self.limit is None else float(self.limit.epsilon.max())

    def at(self, node: int) -> tuple[float, float]:
        """Return what one time point leaks by now, and in the limit."""
        later = math.inf if self.limit is None else self.limit.at(node)
        return self.by_now.at(node), later

    def body(self) -> dict[str, Any]:
        """Return it as JSON values, numbers as numbers."""
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
        """Return a row per run of time points that leak alike: its level, by now and the limit."""
        starts = {first for first, *_ in self.levels} | set(self.by_now.first.tolist())
        starts |= set() if self.limit is None else set(self.limit.first.tolist())
        ordered = sorted(start for start in starts if start <= self.length)
        ends = [*(start - 1 for start in ordered[1:]), self.length]
        rows = []
        for first, last in zip(ordered, ends, strict=True):
            by_now, limit = self.at(first)
            spent = next(one for a, b, one in self.levels if a <= first <= b)
            rows.append(
                {"first": first, "last": last, "level": spent, "by_now": by_now, "limit": limit}
            )
        return rows

    def explain(self) -> str:
        """Say what leaks by now, what will, and which level keeps it under the bound."""
        least, most = (f(one for *_, one in self.levels) for f in (min, max))
        spent = f"{most:g}" if least == most else f"{least:g} to {most:g}"
        worst = max(self.by_now, key=lambda run: run.epsilon)
        secret = "time point" if self.episode == 1 else f"stretch of {self.episode} time points"
        lines = [
            f"Released with level {spent} at each of {self.length:,} time points, as if they were "
            "independent.",
            f"By now they tell up to {worst.epsilon:.6g} about a {secret}, "
            f"{worst.epsilon / most:.3g} times the level (time point {worst.first:,}).",
        ]
        least_told = min(self.by_now, key=lambda run: run.epsilon)
        if self.phases > 1 and worst.epsilon > 1.1 * least_told.epsilon:
            lines.append(
                f"It goes up and down with the {self.phases:,} phases of the belief, down to "
                f"{least_told.epsilon:.6g} (time point {least_told.first:,}): in some of them "
                "neighbours tell more than in others."
            )
        if self.limit is None:
            lines.append("Going on, that grows without end: the belief never forgets.")
        else:
            lines.append(f"Going on for ever they tell up to {self.most_in_the_limit:.6g}.")
        if self.under is not None:
            lines += self._bound()
        return "\n".join(lines)

    def _bound(self) -> list[str]:
        kept = "keeps" if self.most_by_now <= (self.under or 0) else "is above"
        found = [f"This {kept} the bound of {self.under:g}."]
        found.append(f"A level of {self.level_by_now:.6g} keeps it for {self.length:,} steps.")
        if self.level_for_ever:
            return [*found, f"A level of {self.level_for_ever:.6g} keeps it for ever."]
        return [*found, "No level keeps it for ever."]

    def chart(self) -> LineChart:
        """Return levels and leakages by time point."""
        starts, spent = zip(*((first - 0.5, one) for first, _, one in self.levels), strict=True)
        stop, told = self.length + 0.5, self.by_now
        drawn = [
            _named("level of each release", steps(starts, stop, spent)),
            _named("leaked by now", steps(told.first - 0.5, stop, told.epsilon)),
        ]
        if self.limit is not None:
            later = steps(self.limit.first - 0.5, stop, self.limit.epsilon)
            drawn.append(replace(later, name="in the limit", dashed=True))
        if self.under is not None:
            drawn.append(level(f"bound {self.under:g}", self.under, drawn))
        return LineChart(
            "What plain differential privacy at every step tells about each time point",
            f"Up to {self.most_by_now:.4g} by now, where each release is made as if time points "
            "were independent.",
            "time point",
            "ε",
            tuple(drawn),
        )

    def report(self, path: str | Path) -> None:
        """Write it as a page with its picture."""
        from quiltwork.report import bullets, figure, page, section

        parts = [
            section("What leaks", figure(self.chart()), anchor="leaks"),
            section("In words", bullets(self.explain().splitlines()), anchor="words"),
        ]
        lead = "Plain differential privacy at every step, seen by who knows how steps are tied."
        files.write(files.as_path(path), page("What each moment leaks", lead, parts))


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
    """Return what releases about every time point leak about each of them.

    Args:
        beliefs: how time points are tied; one belief or a list.
        levels: of each release for substituting its time point: one for all, with `length`, or a
            list with one each. For a library that adds or removes records, twice its level.
        length: how many releases there were by now; with a list, its length.
        under: also say which level at every step keeps each time point under this bound.
        episode: how many time points in a row are one secret.
        delta: look at ε at this δ instead of a pure ε, each release being about its own time point
            only; equal levels at every step, of `levels`, `rho` or `gdp`.
        rho: with `delta`, ρ of Gaussian noise at every step.
        gdp: with `delta`, its μ.
        level_delta: with `delta` and `levels`, δ of a mechanism at every step that is (ε, δ).

    Raises:
        InvalidInputError: for levels, lengths and bounds that make no sense.
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
        stated: Any = levels
        beside = None
        if levels is not None and not to_fraction(level_delta, "level_delta"):
            pure = monitor(beliefs, levels, length, under)
            kept = (pure.level_by_now or 0.0, pure.level_for_ever or 0.0)
            beside = PureBounds(pure.by_now, pure.most_in_the_limit, *kept)
        levels_given = (rho, gdp, level_delta, beside)
        return gaussian_monitor(beliefs, stated, length, under, delta, *levels_given)
    if rho is not None or gdp is not None or to_fraction(level_delta, "level_delta"):
        raise InvalidInputError("rho, gdp and level_delta are looked at with a δ: give delta.")
    if levels is None:
        raise InvalidInputError("Give the level of the release at every step.")
    members = as_beliefs(beliefs)
    if any(belief.length is not None for belief in members):
        raise UnsupportedError("A monitor is about time points, and these beliefs about rows.")
    runs = _runs(levels, length)
    points = runs[-1].stop
    now = _account(members, points, episode, runs)
    later, endless = (_going_on(members, n, episode, runs) for n in _far_ahead(members))
    settles = endless.epsilon() <= _SETTLED * later.epsilon()
    bound = None if under is None else privacy_level(under, "under")
    return Monitor(
        levels=tuple((run.start, run.stop, float(run.per_point)) for run in runs),
        length=points,
        by_now=now.profile(),
        limit=_first(endless.profile(), points) if settles else None,
        under=None if bound is None else float(bound),
        level_by_now=None if bound is None else _level(members, points, episode, bound),
        level_for_ever=None if bound is None else _for_ever(members, episode, bound),
        episode=now.episode,
        phases=max(getattr(one, "period", 1) for one in members),
    )


def _runs(levels: Any, length: int | None) -> list[Spending]:
    """Read one level for all time points, or one for each, as runs of equal ones."""
    if isinstance(levels, (str, bytes)) or not hasattr(levels, "__iter__"):
        if length is None:
            raise InvalidInputError(
                "length is missing: give the number of releases by now, for example "
                f"{argument('length', 365)}."
            )
        points = integer(length, "length", 1, _ENDLESS // 4)
        return [Spending.dp(privacy_level(levels, "epsilon"), 1, points)]
    given = enumerate(listed(levels, "levels"), start=1)
    exact = [positive_fraction(one, f"Level {n}") for n, one in given]
    if not exact or length not in (None, len(exact)):
        raise InvalidInputError(
            f"There are {len(exact)} levels; give one for each time point, and leave length out."
        )
    runs, start = [], 1
    for one, equal in groupby(exact):
        stop = start + sum(1 for _ in equal) - 1
        runs.append(Spending.dp(one, start, stop))
        start = stop + 1
    return runs


def _far_ahead(members: tuple[Belief, ...]) -> tuple[int, int]:
    """Two lengths after which nothing changes; a belief that follows a clock ends with it."""
    last = min([_ENDLESS, *(one.longest for one in members if isinstance(one, DatedChain))])
    return last // 2, last


def _account(
    members: tuple[Belief, ...], length: int, episode: int, spent: Sequence[Spending]
) -> Accountant:
    account = Accountant(members, length, episode=episode)
    account.add_all(spent)
    return account


def _going_on(
    members: tuple[Belief, ...], length: int, episode: int, runs: list[Spending]
) -> Accountant:
    last = runs[-1]
    forever = Spending.dp(last.per_point, last.start, length)
    return _account(members, length, episode, [*runs[:-1], forever])


def _level(members: tuple[Belief, ...], length: int, episode: int, bound: Fraction) -> float:
    return Accountant(members, length, bound, episode).largest_next()


def _for_ever(members: tuple[Belief, ...], episode: int, bound: Fraction) -> float:
    sooner, later = (_level(members, n, episode, bound) for n in _far_ahead(members))
    return later if sooner <= _SETTLED * later else 0.0


def _first(profile: LeakageProfile, points: int) -> LeakageProfile:
    """Keep the first time points."""
    kept = profile.first <= points
    last = profile.last[kept].copy()
    last[-1] = min(int(last[-1]), points)
    return LeakageProfile(profile.first[kept], last, profile.epsilon[kept])


def _named(name: str, line: Line) -> Line:
    return replace(line, name=name)
