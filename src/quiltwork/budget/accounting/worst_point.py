"""What is spent on each time point, made into what leaks about it, under every belief.

Chains and trees are swept. Under Gaussian beliefs a release costs as far as numbers move. Rows of
clusters and of networks with cycles have no order to sweep in: each pays for what is charged to its
nearby rows, and for the influence of the quilt around them.

Theorem: docs/theory/sweep.md, docs/theory/gaussian.md, docs/theory/joint-quilt-accountant.md
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from quiltwork.budget.accounting.usage import Usage
from quiltwork.budget.spending import Spending
from quiltwork.errors import InvalidInputError, UnsupportedError
from quiltwork.exact import float_up, integer
from quiltwork.influence.calibration_arguments import AnyOutlook, outlooks
from quiltwork.influence.gaussian import GaussianOutlook, no_sum
from quiltwork.influence.quilts.families import ClusterFamily, ListedFamily
from quiltwork.influence.quilts.protocol import FloatArray, IntArray
from quiltwork.influence.quilts.search import Outlook
from quiltwork.influence.sweep import Endless, Levels, Sweep, worst_between_ends, worst_of_runs
from quiltwork.influence.sweep.endless import MOST_WARM_UP
from quiltwork.influence.sweep_outlook import SweptOutlook, at_highest_levels
from quiltwork.results import ResultBase

_FAR = 1 << 62
_ADD = "Add the release itself, or Spending.of_query(queries.mean(lo, hi), scale, length)."
_TIE = 2.0**-40
_ALIKE = 2.0**-30
_ROOM = 1.25
"""So many times the highest level is looked at, so that the next releases need not look again."""


@dataclass(frozen=True)
class WorstPoint:
    """The time point that leaks most; `exact` bounds the leakage of every other, too.

    For a chain `own` is spent on it, and its neighbours add `before` and `after`; for rows of
    clusters and networks everything nearby is paid for, and the `quilt` adds `after`.
    """

    exact: Fraction = Fraction(0)
    node: int | None = None
    own: float = 0.0
    before: float = 0.0
    after: float = 0.0
    quilt: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class FoundTotal:
    """The worst time point of some releases, and what the next total can use of it.

    `everything` is what all releases charge and `peaks` bound their levels. `endless` holds for
    every series of levels up to `covered`; none for beliefs other than chains, and for short
    series. If only the time points around the latest releases were looked at, `near` is the worst
    of these, and the first and the last whose levels it rests on.
    """

    worst: WorstPoint
    everything: Fraction = Fraction(0)
    peaks: tuple[float, ...] = ()
    endless: tuple[Endless, ...] = ()
    covered: tuple[float, ...] = ()
    near: tuple[WorstPoint, int, int] | None = None

    def covers(self, peaks: Sequence[float]) -> bool:
        """Whether `endless` holds for series of such levels."""
        return bool(self.endless) and all(map(operator.le, peaks, self.covered))

    def with_endless_of(self, other: FoundTotal | None) -> FoundTotal:
        """The same, to be added to by what another has looked at, if that is enough."""
        if other is None or not self.peaks or not other.covers(self.peaks):
            return self
        return replace(self, endless=other.endless, covered=other.covered)


@dataclass(frozen=True)
class Secrets:
    """Beliefs, the time points first..last that are secret, and how many in a row."""

    outlooks: tuple[AnyOutlook, ...]
    first: int
    last: int
    episode: int = 1

    @classmethod
    def read(cls, beliefs: Any, length: Any, episode: Any) -> Secrets:
        """Read what an account is about: every stretch of `episode` time points is a secret.

        Raises:
            InvalidInputError: for arguments that make no sense, with the offending value.
            UnsupportedError: for episodes of rows that are in no order.
        """
        seen = outlooks(beliefs, length, None)
        stretch = integer(episode, "episode", 1)
        if stretch > 1 and any(one.belief.length is not None for one in seen):
            raise UnsupportedError(
                "episode is a number of time points in a row, and these beliefs are about rows in "
                "no order; leave it out."
            )
        points = seen[0].length
        return cls(seen, 1, points, min(stretch, points))

    @property
    def length(self) -> int:
        """The number of time points."""
        return self.outlooks[0].length

    @property
    def nodes(self) -> range:
        """The secret time points."""
        return range(self.first, self.last + 1)

    def found(self, usage: Usage) -> FoundTotal:
        """The time point that leaks most, with a bound on what any of them leaks. O(changes)."""
        if not usage.everything:
            return FoundTotal(WorstPoint())
        levels = usage.levels(self.length)
        found = [self._under(one, usage, levels) for one in self.outlooks]
        worst = max((one for one, _ in found), key=lambda one: one.exact)
        kept = [bounds for _, bounds in found if bounds is not None and not bounds.short]
        watched = len(kept) == len(self.outlooks) and bool(worst.before + worst.after)
        if not watched:
            return FoundTotal(worst, usage.total)
        room = min(bounds.room for bounds in kept)
        covered = tuple(peak * room for peak in usage.peaks)
        return FoundTotal(worst, usage.total, usage.peaks, tuple(kept), covered)

    def found_after(self, usage: Usage, before: FoundTotal, start: int, stop: int) -> FoundTotal:
        """The same after more releases on start..stop, from what was found before them.

        What is spent on a time point enters the bounds of those around it, as far as an end is
        felt (`Endless.felt`), and no others. So unless levels are higher than those looked at the
        others keep theirs, and the cost is that of the changes around the window. The result is
        what `found` says, to a relative 2⁻²⁸.
        """
        if not before.covers(before.peaks) or before.worst.exact >= before.everything:
            return self.found(usage)
        found, peaks, seen = [WorstPoint()], before.peaks, [start, stop]
        for bounds in before.endless:
            felt, early = bounds.felt, len(bounds.sweep.walk.possible)
            first, last = max(start - felt, 1), min(stop + felt, self.length)
            if first <= early:  # the first nodes are swept from the start, in one piece
                first, last = 1, min(max(last, early + felt), self.length)
            near = max(first - felt, 1), min(last + felt, self.length)
            seen += near
            levels = usage.levels_between(*near, self.length, before.peaks)
            rows = levels.own, levels.forward, levels.backward
            peaks = tuple(
                max(float(row.max()), peak) for row, peak in zip(rows, peaks, strict=True)
            )
            if not before.covers(peaks):
                return self.found(usage)
            nodes = range(max(first, self.first), min(last + self.episode, self.last + 1))
            if nodes:
                leak = bounds.sweep.worst(levels, nodes, bounds, float(before.worst.exact))
                parts = leak.node, leak.own, leak.before, leak.after
                found.append(WorstPoint(min(Fraction(leak.leak), usage.total), *parts))
        worst = max(found, key=lambda one: one.exact)
        higher = worst.exact > before.worst.exact
        if higher and not all(bounds.settles for bounds in before.endless):
            return self.found(usage)  # the highest levels on all nodes may tell less by now
        near_window = worst, min(seen), max(seen)
        total = max(before.worst, worst, key=lambda one: one.exact)
        return replace(before, worst=total, everything=usage.total, peaks=peaks, near=near_window)

    def _under(
        self, outlook: AnyOutlook, usage: Usage, levels: Levels
    ) -> tuple[WorstPoint, Endless | None]:
        """The worst secret under one belief, and the endless series that it rests on, if any."""
        if isinstance(outlook, SweptOutlook):
            return _swept(self, outlook, usage, levels)
        if isinstance(outlook, GaussianOutlook):
            return _moved(self, outlook, usage), None
        near = (worst for rows, worst in _near(outlook, usage) if _meets(rows, self.nodes))
        return max(near, key=lambda worst: worst.exact, default=WorstPoint()), None

    def charged(self, spending: Spending, narrowest: Fraction | None) -> Spending:
        """Return a release as it is charged, after others with this narrowest range.

        Under Gaussian beliefs no number moves farther than the farthest, however wide the range,
        when a single one is secret; within a stretch the moves of several add up.

        Raises:
            InvalidInputError: for another range, where none says how much is hidden.
            UnsupportedError: for all but sums and means of clipped numbers.
        """
        beliefs = [one.belief for one in self.outlooks if isinstance(one, GaussianOutlook)]
        if not beliefs or not spending.dp_epsilon:
            return spending
        if spending.span is None or spending.per_pair:
            raise no_sum(None, _ADD)
        farthest = [one.farthest for one in beliefs if one.farthest is not None]
        if len(farthest) == len(beliefs) and self.episode == 1:
            span = min(spending.span, max(farthest))
            per_point = spending.per_point * span / spending.span
            return replace(spending, per_point=per_point, span=span)
        if narrowest in (None, spending.span):
            return spending
        raise InvalidInputError(
            f"The releases before were clipped to a range of width {float(narrowest or 0):g}, this "
            f"one to {float(spending.span):g}, and the belief does not say how large a difference "
            "is hidden by both; give it within=, and episode=1."
        )


def _looked_at(sweep: Sweep, levels: Levels, room: float) -> Endless:
    """Endless series of levels up to `room` times the highest, or up to it where room would cost.

    Slow chains do not forget the bounds that a sweep begins with, which then are to be the lowest.
    """
    charged = sweep.charged(levels)
    found = Endless(sweep, charged, room)
    return found if found.short or found.settles else Endless(sweep, charged)


def _moved(secrets: Secrets, outlook: GaussianOutlook, usage: Usage) -> WorstPoint:
    """The worst secret among numbers that move together."""
    hidden = outlook.hidden(usage.narrowest or Fraction(1), secrets.episode)
    found = hidden.worst(usage.sum_levels(secrets.length), secrets.nodes)
    exact = min(Fraction(found.leak), usage.total)
    return WorstPoint(exact, found.node, found.own, found.before, found.after)


def _swept(
    secrets: Secrets, outlook: SweptOutlook, usage: Usage, levels: Levels
) -> tuple[WorstPoint, Endless | None]:
    """The worst node of a chain or tree, and what it rests on, unless that is all levels at once.

    Of states with many behind them the highest levels on all nodes are looked at too, and alone
    where they are everywhere, or a sweep would take minutes. Few runs are swept from end to end,
    which says no more than stretches do and is several times quicker.
    """
    sweep, endless = outlook.sweep(secrets.episode), None
    highest, is_flat = at_highest_levels(sweep, levels, secrets.nodes), len(levels.first) == 1
    if not isinstance(sweep, Sweep):
        found = sweep.worst(levels, secrets.nodes)
    elif highest is not None and (is_flat or not sweep.affordable(MOST_WARM_UP)):
        between = None if is_flat else worst_between_ends(sweep, levels, secrets.nodes)
        found = highest if between is None or between.leak >= highest.leak else between
    elif highest is not None and (runs := worst_of_runs(sweep, levels, secrets.nodes)) is not None:
        found = highest if highest.leak < runs.leak else runs
    else:
        endless = _looked_at(sweep, levels, _ROOM)
        found = sweep.worst(levels, secrets.nodes, endless)
        if not endless.short and (highest is not None or not endless.settles):  # noise is found so
            other = worst_between_ends(sweep, levels, secrets.nodes)
            flat = levels.flat()
            longest = int((flat.last - flat.first)[flat.own > 0].max())
            rounding = _ALIKE if longest > 2 * endless.warm_up else 0.0  # of ends that are unfelt
            if other is not None and other.leak < found.leak * (1 - rounding):
                found, endless = other, None
        if highest is not None and highest.leak < found.leak:
            found, endless = highest, None
    if found.before + found.after:
        exact = Fraction(found.leak)
    else:
        exact = _largest_charge(secrets, usage, levels, found.own) if found.leak else Fraction(0)
    exact = min(exact, usage.total)
    return WorstPoint(exact, found.node, found.own, found.before, found.after), endless


def _largest_charge(secrets: Secrets, usage: Usage, levels: Levels, most: float) -> Fraction:
    """The most that is spent on a secret itself, in fractions, where nothing is added.

    Floats say which secrets are close to the most; of these the exact charges are compared. More
    than `most` is spent only on what is known anyway.
    """
    episode, first, last = secrets.episode, secrets.first, secrets.last - secrets.episode + 1
    starts = np.clip(levels.first, first, last)
    starts = np.unique(starts[(levels.last >= first) & (levels.first <= secrets.last)])
    if episode > 1:
        ends = np.clip(levels.last - episode + 1, first, last)
        starts = np.unique(np.concatenate([starts, ends]))
    costs = levels.block(starts, starts + episode - 1)
    fits = costs <= most * (1 + _TIE)
    starts, costs = starts[fits], costs[fits]
    close = starts[costs >= costs.max() * (1 - _TIE)].tolist()
    return max(usage.charge(start, start + episode - 1) for start in close)


def _near(outlook: Outlook, usage: Usage) -> Iterator[tuple[IntArray, WorstPoint]]:
    """Rows of clusters or a network, and what each of them leaks. O(rows·quilts)."""
    for family in outlook.families(_FAR):
        if isinstance(family, ClusterFamily):
            runs = usage.charges(family.first, family.last)
            sums = np.add.reduceat(runs, family.offset[:-1])
            totals, which = np.unique(sums, return_inverse=True)
            order = np.argsort(which[family.cluster], kind="stable") + 1
            ends = np.cumsum(np.bincount(which[family.cluster], minlength=len(totals)))
            for rows, total in zip(np.split(order, ends[:-1]), totals.tolist(), strict=True):
                exact = min(Fraction(int(total), usage.denominator), usage.total)
                yield rows, WorstPoint(exact, int(rows[0]))
        elif isinstance(family, ListedFamily) and not family.is_known:
            yield np.array(family.nodes), _best_quilt(family, usage)


def _meets(rows: IntArray, nodes: range) -> bool:
    return bool(((rows >= nodes.start) & (rows < nodes.stop)).any())


def _best_quilt(family: ListedFamily, usage: Usage) -> WorstPoint:
    """What a row leaks at most: the least, over its quilts, of nearby charges and influence."""
    totals = np.zeros(len(family.influence), dtype=object)
    np.add.at(totals, family.owner, usage.charges(family.start, family.stop).astype(object))
    bounds = {
        number: Fraction(int(totals[number]), usage.denominator)
        + Fraction(float(family.influence[number]))
        for number in np.flatnonzero(np.isfinite(family.influence)).tolist()
    }
    best = min(bounds, key=bounds.__getitem__)
    influence = float(family.influence[best])
    own = float_up(bounds[best] - Fraction(influence))
    return WorstPoint(bounds[best], family.nodes[0], own, 0.0, influence, family.quilts[best])


class LeakageRun(NamedTuple):
    """Time points first..last, each of which leaks at most `epsilon`."""

    first: int
    last: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class LeakageProfile(ResultBase):
    """Run j of time points first[j]..last[j] leaks at most epsilon[j]; rounded up."""

    first: IntArray
    last: IntArray
    epsilon: FloatArray

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.first)

    def __iter__(self) -> Iterator[LeakageRun]:
        """The runs in order."""
        for first, last, epsilon in zip(self.first, self.last, self.epsilon, strict=True):
            yield LeakageRun(int(first), int(last), float(epsilon))

    def records(self) -> list[dict[str, Any]]:
        """Return a row per run."""
        return [run._asdict() for run in self]

    def explain(self) -> str:
        """Say where the most leaks."""
        worst = max(self, key=lambda run: run.epsilon)
        return (
            f"At most {worst.epsilon:.6g} leaks about a time point ({worst.first}..{worst.last}); "
            f"{len(self):,} runs of time points leak the same."
        )

    def at(self, node: int) -> float:
        """Return what one time point leaks at most.

        Raises:
            InvalidInputError: if there is no such time point.
        """
        if not 1 <= node <= int(self.last[-1]):
            raise InvalidInputError(f"There is no time point {node!r} in 1..{self.last[-1]}.")
        return float(self.epsilon[np.searchsorted(self.first, node, side="right") - 1])

    def values(self) -> FloatArray:
        """Return one entry per time point."""
        return np.repeat(self.epsilon, self.last - self.first + 1)


def leakage_profile(
    secrets: Secrets, usage: Usage, most: Fraction, added: Fraction
) -> LeakageProfile:
    """Bound what every secret leaks, `most` at most, and `added` to each. O(changes) or O(rows)."""
    (first, leak), *others = (_profile(secrets, one, usage) for one in secrets.outlooks)
    for other in others:
        begins = np.union1d(first, other[0])
        rows = (
            values[np.searchsorted(starts, begins, side="right") - 1]
            for starts, values in ((first, leak), other)
        )
        first, leak = begins, np.maximum(*rows)
    leak = np.minimum(leak, float_up(most)) + float_up(added)
    begins = np.flatnonzero(np.append(True, leak[1:] != leak[:-1]))
    last = np.append(first[begins[1:]] - 1, secrets.last)
    return LeakageProfile(first[begins], last, leak[begins])


def _profile(secrets: Secrets, outlook: AnyOutlook, usage: Usage) -> tuple[IntArray, FloatArray]:
    """Where runs of secrets begin and what each leaks under one belief; others leak nothing."""
    if isinstance(outlook, SweptOutlook):
        levels = usage.levels(secrets.length)
        first, _, leak = outlook.sweep(secrets.episode).profile(levels, secrets.nodes)
        return first, leak
    if isinstance(outlook, GaussianOutlook):
        hidden = outlook.hidden(usage.narrowest or Fraction(1), secrets.episode)
        first, _, leak = hidden.profile(usage.sum_levels(secrets.length), secrets.nodes)
        return first, leak
    values = np.zeros(secrets.length)
    for rows, worst in _near(outlook, usage):
        values[rows - 1] = np.maximum(values[rows - 1], float_up(worst.exact))
    nodes = np.array(secrets.nodes)
    return nodes, values[nodes - 1]
