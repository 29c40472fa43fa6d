"""Broken versions of the sweep, each of which the check against the program must catch.

Every mutant is a mistake that was made or could be: a state that cannot occur taken for one that
says nothing, a fixed point approached from the wrong side, a certificate for another start, the
sides or their levels exchanged, something that is spent left out, too much charged near the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np

from evidence import random_sweeps as cases
from evidence import sweep_reference as reference
from evidence.checks.sweep import by_reference, fault
from evidence.random_sweeps import Case, Chain, truth
from evidence.sweep_program import Charges
from evidence.sweep_reference import Levels, directional

NAME = "Mutants of the sweep"
CLAIM = "every broken version of the sweep is caught by the check against all mechanisms"
SHOWN = 36  # cases, of which the first have little slack

Array = np.ndarray
Bounds = dict[int, Array]


def impossible_says_nothing() -> AbstractContextManager[object]:
    """0 instead of ∞ for states that cannot occur."""
    return mock.patch.object(reference, "IMPOSSIBLE", 0.0)


def _iterated(chain: Chain, order: Sequence[int], level: float, bound: Array, most: float) -> Array:
    """The recursion on constant levels, until a step changes little."""
    everywhere = np.ones(len(bound), dtype=bool)
    for _ in range(30 if len(order) > 1 else 0):
        apart = level * chain.differ + bound
        kernel = chain.kernel(order[0], order[1])
        before = bound
        bound = np.minimum(reference.all_pairs(kernel, apart, everywhere), 20.0)
        if np.abs(bound - before).max() <= most:
            break
    return bound


@contextmanager
def fixed_point_from_below() -> Iterator[None]:
    """Iterating from 0 until little changes, and taking that for the limit."""
    honest = reference.one_way

    def one_way(
        chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
    ) -> Bounds:
        if len(set(levels)) > 1 or any(not chain.possible(t).all() for t in order):
            return honest(chain, order, levels, differ)
        found = _iterated(chain, order, levels[0], np.zeros(differ.shape), 0.2)
        caps = [reference.cap(levels[:n]) for n in reversed(range(len(order)))]
        return {t: np.minimum(found, most) for t, most in zip(order, caps, strict=True)}

    with mock.patch.object(reference, "one_way", one_way):
        yield


@contextmanager
def certificate_of_another_start() -> Iterator[None]:
    """The left side with the kernel of the stationary chain, whatever the start."""
    honest = Chain.kernel

    def kernel(self: Chain, t: int, u: int) -> Array:
        if t > u and len({m.tobytes() for m in self.matrices}) == 1:
            long_run = cases.stationary(self.matrices[0])
            if (long_run > 0).all():
                return honest(replace(self, start=long_run), t, u)
        return honest(self, t, u)

    with mock.patch.object(Chain, "kernel", kernel):
        yield


@contextmanager
def sides_swapped() -> Iterator[None]:
    """The kernel of the left side used to the right, and the other way round."""

    def kernel(self: Chain, t: int, u: int) -> Array:
        a, b = min(t, u), max(t, u)
        joint = self.marginal(a)[:, None] * self.steps(a, b)
        rows = joint.T if t < u else joint
        rows[rows.sum(axis=1) == 0] = 1.0
        return rows / rows.sum(axis=1, keepdims=True)

    with mock.patch.object(Chain, "kernel", kernel):
        yield


def own_level_forgotten() -> AbstractContextManager[object]:
    return mock.patch.object(reference, "own_cost", return_value=0.0)


@contextmanager
def nothing_beyond_the_end() -> Iterator[None]:
    """Two steps at a time, where nothing is charged once two no longer fit: no cap."""

    def one_way(
        chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
    ) -> Bounds:
        bounds = {t: np.zeros(differ.shape) for t in order[-2:]}
        for n in reversed(range(len(order) - 2)):
            t, gap, u = order[n : n + 3]
            apart = levels[u] * differ + bounds[u]
            found = reference.all_pairs(chain.kernel(t, u), apart, chain.possible(t))
            bounds[t] = levels[gap] + found
        return bounds

    with mock.patch.object(reference, "one_way", one_way):
        yield


@contextmanager
def limit_without_cap() -> Iterator[None]:
    """The limit for endless series at every node, also where little was spent further on."""
    honest = reference.one_way

    def one_way(
        chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
    ) -> Bounds:
        if len(set(levels)) > 1 or any(not chain.possible(t).all() for t in order):
            return honest(chain, order, levels, differ)
        found = _iterated(chain, order, levels[0], 20.0 * differ, 1e-3)
        return dict.fromkeys(order, found)

    with mock.patch.object(reference, "one_way", one_way):
        yield


@contextmanager
def points_between_forgotten() -> Iterator[None]:
    """Jumping over nodes without paying for them."""

    def one_way(
        chain: Chain, order: Sequence[int], levels: Sequence[float], differ: Array
    ) -> Bounds:
        bounds: Bounds = {}
        for n in reversed(range(len(order))):
            t, bound = (
                order[n],
                np.full(differ.shape, reference.cap([levels[u] for u in order[n + 1 :]])),
            )
            for u in order[n + 1 :]:
                apart = levels[u] * differ + bounds[u]
                found = reference.all_pairs(chain.kernel(t, u), apart, chain.possible(t))
                bound = np.minimum(bound, found)
            bounds[t] = bound * ~np.eye(len(bound), dtype=bool)
        return bounds

    with mock.patch.object(reference, "one_way", one_way):
        yield


def first_node_of_the_episode() -> AbstractContextManager[object]:
    """An episode charged as its first node."""
    return mock.patch.object(reference, "own_cost", lambda levels, first, last: levels.own[first])


@contextmanager
def levels_swapped() -> Iterator[None]:
    """Charges that cost less together, with the levels of one direction used in the other."""
    honest = reference.leakage

    def leakage(chain: Chain, levels: Levels, episode: int = 1) -> Array:
        return honest(chain, Levels(levels.own, levels.backward, levels.forward), episode)

    with mock.patch.object(reference, "leakage", leakage):
        yield


def unseen_changes_free() -> AbstractContextManager[object]:
    """Charges that cost less together, paid only where the data tell states apart."""
    return mock.patch.object(reference, "charged", lambda chain, levels: chain.differ)


MUTANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "0 instead of ∞ for impossible states": impossible_says_nothing,
    "a fixed point from below": fixed_point_from_below,
    "a stationary certificate for another start": certificate_of_another_start,
    "left and right swapped": sides_swapped,
    "the node's own level forgotten": own_level_forgotten,
    "nothing charged where two steps do not fit": nothing_beyond_the_end,
    "the cap by the total left out": limit_without_cap,
    "points between forgotten": points_between_forgotten,
    "an episode charged as its first node": first_node_of_the_episode,
    "levels of the two directions swapped": levels_swapped,
    "unseen changes free where charges are shared": unseen_changes_free,
}


def little_slack() -> Iterator[Case]:
    """Small cases in which each mistake shows."""
    shared = Charges((0.0,) * 3, (0.0, 1.0))
    sticky = np.array([[0.95, 0.05], [0.1, 0.9]])
    copies = Chain.of((0.5, 0.5), [sticky] * 2)
    for chain in (hidden(), copies):
        yield Case("little slack", (chain,), 3, directional(shared), shared)
    example = np.array([[0.9, 0.1], [0.4, 0.6]])
    turning = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    closed = np.array([[0.0, 0.5, 0.5], [0.0, 0.9, 0.1], [0.0, 0.2, 0.8]])
    for begin, rows, length, episode in (
        ((0.2, 0.8), example, 3, 1),
        ((0.0, 0.5, 0.5), closed, 3, 1),
        ((0.2, 0.3, 0.5), turning, 3, 1),
        ((0.5, 0.5), sticky, 4, 2),
        ((2 / 3, 1 / 3), sticky, 6, 1),
    ):
        chain = Chain.of(begin, [rows] * (length - 1))
        for points in ((0.5,) * length, (2.0,) + (0.1,) * (length - 2) + (1.0,)):
            yield Case(
                "little slack", (chain,), length, Levels.plain(points), Charges(points), episode
            )


def hidden() -> Chain:
    """The second node shows 0 whatever happens, but the third shows the first again."""
    there = [[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0, 0, 1, 0], [0, 0, 0, 1]]
    back = [[1, 0, 0, 0], [0, 1, 0, 0], [0.9, 0.1, 0, 0], [0.1, 0.9, 0, 0]]
    return Chain.of([0.5, 0.5, 0, 0], [np.array(there), np.array(back)], (0, 1, 0, 0))


@cache
def true_of(number: int) -> tuple[Case, Array]:
    """A case that every mutant is shown, with the truth: those with little slack come first."""
    slim = list(little_slack())
    if number < len(slim):
        return slim[number], truth(slim[number])
    seed, kind = divmod(number - len(slim), len(cases.KINDS))
    case = list(cases.KINDS.values())[kind](np.random.default_rng([kind, seed]))
    return case, truth(case)


def faults(shown: int) -> Iterator[str]:
    """What is wrong with the reference as it is now, on the first cases."""
    for case, true in map(true_of, range(shown)):
        wrong = fault(case, by_reference(case), true)
        if wrong is not None:
            yield wrong


def run(progress: Callable[[int, int], None]) -> dict[str, object]:
    counts: dict[str, object] = {"cases shown to each": SHOWN}
    for done, (name, mutant) in enumerate(MUTANTS.items(), start=1):
        with mutant():
            found = list(faults(SHOWN))
        assert found, f"the mutant {name!r} survived"
        below = found.count("below the truth")
        counts[f"caught: {name}"] = f"{len(found)} times, {below} of them below the truth"
        progress(done, len(MUTANTS) + 1)
    assert list(faults(SHOWN)) == []
    progress(len(MUTANTS) + 1, len(MUTANTS) + 1)
    return {**counts, "caught without a mutant": 0}
