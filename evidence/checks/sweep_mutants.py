"""Broken versions of the package's sweep, each of which the check against the program must catch.

Every mutant is a mistake that was made or could be: a state that cannot occur taken for one that
says nothing, a fixed point approached from the wrong side, a certificate for another start, the
sides or their levels exchanged, something that is spent left out, too much charged near the ends.
Mutants change the package's Python, and what the kernel is given or gives back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from evidence import random_sweeps as cases
from evidence.checks.sweep import CALIBRATED, calibrated, claimed, fault
from evidence.random_sweeps import Case, Chain, truth
from evidence.sweep_program import Charges
from quiltwork.beliefs import ChainBox, MarkovChain
from quiltwork.errors import InvalidInputError
from quiltwork.influence import sweep_bound
from quiltwork.influence.sweep import (
    Levels,
    Sweep,
    construction,
    leakage,
    observations,
    step,
    sweep_of,
)
from quiltwork.influence.sweep.fixed_point import HomogeneousStep
from quiltwork.influence.sweep.program import AnyStartProgram, Bounds, RatioProgram, RowPairs
from quiltwork.influence.sweep.step import ContractionSide
from quiltwork.influence.timeline import Timeline

NAME = "Mutants of the sweep"
CLAIM = "every broken version of the package's sweep is caught by the check against all mechanisms"
SHOWN = 66  # random cases, after those with little slack
CALIBRATIONS = 16

Array = np.ndarray


@contextmanager
def changed(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Names of the package that mean something else; nothing learnt before is used."""
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(mock.patch.object(owner, name, value))
        sweep_bound._sweep_of.cache_clear()
        stack.callback(sweep_bound._sweep_of.cache_clear)
        yield


def impossible_says_nothing() -> AbstractContextManager[None]:
    """0 instead of ∞ for states that cannot occur."""
    tilts, sweep = Timeline.prior_log_ratios, step.sweep

    def nothing(found: Array) -> Array:
        return np.where(np.isinf(found), 0.0, found)

    def swept(*given: Any, **more: Any) -> Array:
        if not more["to_left"]:
            return sweep(*given, **more)
        *rows, span, margins, pairs, tells, bounds, levels, possible, block = given
        found = list(nothing(bounds))
        for j in range(len(bounds), len(levels)):  # one node at a time
            now = slice(j - 1, j + 1)
            which = span[:1], margins[:1], pairs, tells, found[-1][None], levels[now]
            ahead = sweep(*rows, *which, possible[now], block[:1, now], **more)
            found.append(nothing(ahead[1]))
        return np.array(found)

    return changed(
        (Timeline, "prior_log_ratios", lambda self, nodes: nothing(tilts(self, nodes))),
        (step, "sweep", swept),
    )


def fixed_point_from_below() -> AbstractContextManager[None]:
    """Iterating from nothing until little changes, and taking that for the limit."""

    def solve(self: HomogeneousStep, level: float) -> Array:
        r = self.boundary_value
        for _ in range(1000):
            before, r = r, self.step(level, r)[0].values
            if np.abs(r - before).max() <= 0.05:
                break
        found = np.zeros((1, self.timeline.size, self.timeline.size))
        found[0, self.x, self.y] = r
        return found

    return changed((HomogeneousStep, "solve", solve))


def certificate_of_another_start() -> AbstractContextManager[None]:
    """The chain from its stationary law, whatever the start."""
    honest = construction.timeline_of

    def timeline_of(chain: MarkovChain, length: int, *shown: Any, **kept: Any) -> Timeline:
        with suppress(InvalidInputError):  # where it has several
            return honest(MarkovChain(chain.transition), length, *shown, **kept)
        return honest(chain, length, *shown, **kept)

    return changed((construction, "timeline_of", timeline_of))


def sides_swapped() -> AbstractContextManager[None]:
    def swapped(walk: Timeline, left: Any, right: Any, *more: int) -> Sweep:
        return Sweep(walk, right, left, *more)

    return changed((construction, "Sweep", swapped))


def own_level_forgotten() -> AbstractContextManager[None]:
    return changed((Levels, "block", lambda self, start, stop: np.zeros(len(start))))


def no_cap() -> AbstractContextManager[None]:
    """Without the bound by all that is spent: no bound where a matrix has zeros."""

    def follow(self: ContractionSide, start: Array, first: int, levels: Array) -> Array:
        found, spent = start[:, 0, 0].tolist(), levels.tolist()
        for place in range(len(found), len(spent)):
            found.append(
                min(
                    (
                        step._between(spent, place, span)
                        + step.contracted(diameter, found[place - span] + spent[place - span])
                        for span, diameter in self.diameters
                        if span <= place
                    ),
                    default=np.inf,
                )
            )
        return np.array(found[: len(spent)]).reshape(-1, 1, 1)

    return changed(
        (ContractionSide, "follow", follow), levels_that(lambda one: replace(one, total=1e9))
    )


def levels_that(change: Callable[[Levels], Levels]) -> tuple[Any, str, Any]:
    """Other levels than those given."""
    honest = leakage.SweptSeries.__init__

    def build(self: Any, sweep: Sweep, levels: Levels, *more: Any) -> None:
        honest(self, sweep, change(levels), *more)

    return leakage.SweptSeries, "__init__", build


def points_between_forgotten() -> AbstractContextManager[None]:
    """Jumping over nodes without paying for them."""
    return changed((step, "_between", lambda spent, place, span: 0.0))


def first_node_of_the_episode() -> AbstractContextManager[None]:
    """An episode charged as its first node."""
    return changed((Levels, "block", lambda self, start, stop: self.at(self.own, start)))


def ends_told_apart() -> AbstractContextManager[None]:
    """An episode whose ends differ only in what the data show."""
    return changed(
        (Sweep, "_pairs", lambda self, nodes: _pairs(self, nodes) & self.timeline.distinguishable)
    )


_pairs = Sweep._pairs


def levels_swapped() -> AbstractContextManager[None]:
    """Charges that cost less together, with the levels of one direction used in the other."""
    return changed(
        levels_that(lambda one: replace(one, forward=one.backward, backward=one.forward))
    )


def unseen_changes_free() -> AbstractContextManager[None]:
    """Charges that cost less together, paid only where the data tell states apart."""
    return changed((Timeline, "fully_observed", True))


def columns_as_they_are() -> AbstractContextManager[None]:
    """Every start taken for the uniform one: columns that nobody weights."""

    sweep = step.sweep

    def uniform(rows: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(rows / rows.sum(axis=-1, keepdims=True))

    def solve(self: AnyStartProgram, rows: RowPairs, limits: Array) -> Bounds:
        compared = RowPairs(*(uniform(one) for one in rows.unrounded))
        return RatioProgram(self.group, self.size).solve(compared, limits)

    def swept(above: Array, below: Array, *given: Any, any_start: bool, **more: Any) -> Array:
        if any_start:
            above, below = uniform(above**2), uniform(below**2)
        return sweep(above, below, *given, any_start=False, **more)

    return changed((AnyStartProgram, "solve", solve), (step, "sweep", swept))


def nobody_knows_rows() -> AbstractContextManager[None]:
    """Adversaries who know rows taken for some who do not."""
    from quiltwork.influence import sweep

    return changed((sweep, "sweep_against_known_rows", sweep_of))


def middle_of_the_box() -> AbstractContextManager[None]:
    """A box taken for the matrix in its middle."""
    honest = construction.diameters

    def diameters(belief: Any) -> list[tuple[int, float]]:
        if not isinstance(belief, ChainBox):
            return honest(belief)
        middle = belief.lower + belief.upper
        return honest(MarkovChain(middle / middle.sum(axis=1, keepdims=True), "any"))

    return changed((construction, "diameters", diameters))


def phase_off_by_one() -> AbstractContextManager[None]:
    """The matrix of the next phase in every step."""
    return changed(_cyclic_that(lambda walk: replace(walk, steps=np.roll(walk.steps, -1, axis=0))))


def laws_of_the_wrong_phase() -> AbstractContextManager[None]:
    """Every phase with the law of the one before it."""

    def shifted(walk: Timeline) -> Timeline:
        late = None if walk.limits is None else np.roll(walk.limits, 1, axis=0)
        return replace(walk, limits=late)

    return changed(_cyclic_that(shifted))


def _cyclic_that(change: Callable[[Timeline], Timeline]) -> tuple[Any, str, Any]:
    honest = construction.cyclic_timeline
    return construction, "cyclic_timeline", lambda *asked: change(honest(*asked))


def law_behind_forgotten() -> AbstractContextManager[None]:
    """All states behind what a node shows taken for equally likely."""
    honest = observations._laws

    def laws(walk: Timeline, nodes: Array) -> tuple[Array, Array]:
        law, slack = honest(walk, nodes)
        return (law > 0).astype(float), slack

    return changed((observations, "_laws", laws))


def only_shown_pairs_bounded() -> AbstractContextManager[None]:
    """States that show the same taken for one and the same."""
    honest = observations._worst

    def worst(walk: Timeline, law: Array, limits: Array) -> Array:
        return honest(walk, law, np.where(walk.distinguishable, limits, 0.0))

    return changed((observations, "_worst", worst))


MUTANTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "0 instead of ∞ for impossible states": impossible_says_nothing,
    "a fixed point from below": fixed_point_from_below,
    "a stationary certificate for another start": certificate_of_another_start,
    "left and right swapped": sides_swapped,
    "the node's own level forgotten": own_level_forgotten,
    "the cap by the total left out": no_cap,
    "points between forgotten": points_between_forgotten,
    "an episode charged as its first node": first_node_of_the_episode,
    "ends of an episode that the data do not tell apart": ends_told_apart,
    "levels of the two directions swapped": levels_swapped,
    "unseen changes free where charges are shared": unseen_changes_free,
    "any start taken for the uniform one": columns_as_they_are,
    "an adversary who knows rows taken for one who does not": nobody_knows_rows,
    "a box taken for its middle": middle_of_the_box,
    "the matrix of another phase": phase_off_by_one,
    "the law of another phase": laws_of_the_wrong_phase,
    "the law behind what is shown forgotten": law_behind_forgotten,
    "states that show the same taken for one": only_shown_pairs_bounded,
}


def little_slack() -> list[Case]:
    """Small cases in which each mistake shows."""
    shared = Charges((0.0,) * 3, (0.0, 1.0))
    sticky = np.array([[0.95, 0.05], [0.1, 0.9]])
    copies = Chain.of((0.5, 0.5), [sticky] * 2)
    found = [Case("little slack", (chain,), 3, shared) for chain in (hidden(), copies)]
    for rows in ([[0.99, 0.01], [0.9, 0.1]], [[1.0, 0.0], [0.5, 0.5]]):
        chain = Chain.of((0.9, 0.1), [np.array(rows)] * 2)
        found.append(Case("little slack", (chain,), 3, Charges((1.0,) * 3), everyone=True))
    example = np.array([[0.9, 0.1], [0.4, 0.6]])
    turning = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    copied = np.array([[1.0, 0.0], [0.1, 0.9]])
    swinging = np.kron([[0, 1], [1, 0]], sticky)
    for begin, rows, length, episode in (
        ((0.2, 0.8), example, 3, 1),
        ((0.5, 0.5, 0.0, 0.0), swinging, 5, 1),
        ((0.2, 0.3, 0.5), turning, 3, 1),
        ((0.5, 0.5), sticky, 4, 2),
        ((0.5, 0.5), copied, 4, 1),
    ):
        chain = Chain.of(begin, [rows] * (length - 1))
        found += [
            Case("little slack", (chain,), length, Charges(points), episode)
            for points in ((0.5,) * length, (2.0,) + (0.1,) * (length - 2) + (1.0,))
        ]
    turn = [sticky, example, copied]
    begin = cases.stationary(np.linalg.multi_dot(turn))
    days = Chain.of(begin, [turn[t % 3] for t in range(4)], period=3)
    found += [
        Case("little slack", (days,), 5, Charges(points))
        for points in ((0.5,) * 5, (2.0, 0.1, 0.1, 0.3, 1.0))
    ]
    rarely = np.array([[0.999, 0.001], [0.3, 0.7]])
    law = cases.program.chain_law((0.9, 0.1), [rarely])
    found.append(
        Case("little slack", (Chain.of(None, [rarely]),), 2, Charges((1.0, 1.0)), laws=(law,))
    )
    box = cases.box_of(example - 0.05, example + 0.05)
    laws = [np.array([[0.95, 0.05], [0.35, 0.65]]), np.array([[0.85, 0.15], [0.45, 0.55]])]
    corners = tuple(cases.program.chain_law((0.5, 0.5), [rows] * 2) for rows in laws)
    found.append(Case("little slack", (box,), 3, Charges((1.0,) * 3), laws=corners))
    found.append(cases.longer_memory(np.random.default_rng([9, 8])))
    return [*found, cases.functions(np.random.default_rng([8, 330]))]


def hidden() -> Chain:
    """The second node shows 0 whatever happens, but the third shows the first again."""
    there = [[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0, 0, 1, 0], [0, 0, 0, 1]]
    back = [[1, 0, 0, 0], [0, 1, 0, 0], [0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0]]
    return Chain.of([0.5, 0.5, 0, 0], [np.array(there), np.array(back)], (0, 1, 0, 0))


def lenders() -> Iterator[Case]:
    """Chains for which noise is calibrated: the example, at length, from two starts; then others.

    A constant level on a long series is where a certificate decides.
    """
    example = np.array([[0.9, 0.1], [0.4, 0.6]])
    for begin in (cases.stationary(example), (0.2, 0.8)):
        chain = Chain.of(begin, [example] * 299)
        yield from [Case("little slack", (chain,), 300, Charges((0.0,) * 300))] * 2
    kinds = [kind for kind in CALIBRATED if kind != "boxes"]
    for number in range(CALIBRATIONS):
        rng = np.random.default_rng([number, number])
        yield cases.KINDS[kinds[number % len(kinds)]](rng)


@cache
def true_of(number: int) -> tuple[Case, Array]:
    """A case that every mutant is shown, with the truth: those with little slack come first."""
    slim = little_slack()
    if number < len(slim):
        return slim[number], truth(slim[number])
    short = [draw for kind, draw in cases.KINDS.items() if not kind.startswith(("trees", "long"))]
    seed, kind = divmod(number - len(slim), len(short))
    case = short[kind](np.random.default_rng([kind, seed]))
    return case, truth(case)


def faults(shown: int, lent: int = CALIBRATIONS) -> Iterator[str]:
    """What is wrong with the package as it is now: on the first cases, then in calibrations."""
    for case, true in map(true_of, range(shown)):
        try:
            wrong = fault(case, claimed(case), true)
        except AssertionError as error:  # total and nodes contradict each other
            wrong = str(error)
        if wrong is not None:
            yield wrong
    for number, case in zip(range(lent), lenders(), strict=False):
        try:
            calibrated(case, np.random.default_rng(number))
        except AssertionError as error:
            yield error.args[0][0]


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    shown = len(little_slack()) + SHOWN
    counts: dict[str, object] = {"cases shown to each": shown, "calibrations": CALIBRATIONS}
    for done, (name, mutant) in enumerate(MUTANTS.items(), start=1):
        with mutant():
            found = list(faults(shown))
        assert found, f"the mutant {name!r} survived"
        kinds = ", ".join(f"{found.count(kind)} {kind}" for kind in dict.fromkeys(found))
        counts[f"caught: {name}"] = kinds
        progress(done, len(MUTANTS) + 1)
    assert list(faults(shown)) == []
    progress(len(MUTANTS) + 1, len(MUTANTS) + 1)
    return {**counts, "caught without a mutant": 0}
